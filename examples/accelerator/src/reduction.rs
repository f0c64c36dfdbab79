//! Reductions.

use pjrt_plugin::Result;

use crate::movement::transpose;

/// Reduces arrays of equal dimensions together, along some of their dimensions. `combine` takes two elements
/// of each array and returns one, for many positions at a time (an array of one element is broadcast).
///
/// Neighboring elements are combined first, then neighboring results, and so on. Sums of many numbers are
/// more accurate in this order, and all lanes of the device are used.
pub(crate) fn reduce(
    arrays: &[Vec<u64>],
    init: &[Vec<u64>],
    dims: &[i64],
    reduced: &[i64],
    mut combine: impl FnMut(Vec<Vec<u64>>, Vec<Vec<u64>>) -> Result<Vec<Vec<u64>>>,
) -> Result<Vec<Vec<u64>>> {
    let kept: Vec<i64> = (0..dims.len() as i64).filter(|d| !reduced.contains(d)).collect();
    let product = |which: &[i64]| which.iter().map(|d| dims[*d as usize] as usize).product::<usize>();
    let (mut rows, width) = (product(reduced), product(&kept));
    let order = [reduced, &kept].concat();
    let mut arrays: Vec<Vec<u64>> = arrays.iter().map(|array| transpose(array, dims, &order).0).collect();
    while rows > 1 {
        let pairs = rows / 2;
        let every_other = |first: usize| -> Vec<Vec<u64>> {
            let row = |array: &[u64], pair: usize| array[(2 * pair + first) * width..][..width].to_vec();
            arrays.iter().map(|array| (0..pairs).flat_map(|pair| row(array, pair)).collect()).collect()
        };
        let combined = combine(every_other(0), every_other(1))?;
        // The last row of an odd number of rows is left for the next round.
        let left_over = |array: &[u64]| array[2 * pairs * width..].to_vec();
        arrays = combined
            .into_iter()
            .zip(&arrays)
            .map(|(combined, array)| [repeated(combined, pairs * width), left_over(array)].concat())
            .collect();
        rows -= pairs;
    }
    let reduced = if rows == 0 { init.to_vec() } else { combine(init.to_vec(), arrays)? };
    Ok(reduced.into_iter().map(|array| repeated(array, width)).collect())
}

/// Returns `len` elements from an array that has either this length or one element, which is broadcast.
fn repeated(elements: Vec<u64>, len: usize) -> Vec<u64> {
    if elements.len() == 1 { vec![elements[0]; len] } else { elements }
}
