//! Operations that only move elements: each element of the result is a copy of an element of the operand.

/// Creates an array of dimensions `to` from one of dimensions `from`. `source(index, d)` is coordinate `d` of
/// the element that is copied to `index`. If a coordinate is out of bounds, `outside` is used instead.
pub(crate) fn gather(
    elements: &[u64],
    from: &[i64],
    to: &[i64],
    outside: u64,
    source: impl Fn(&[i64], usize) -> i64,
) -> Vec<u64> {
    let mut gathered = Vec::new();
    for_each_index(to, |index| {
        let at = position(from, |d| source(index, d));
        gathered.push(at.map_or(outside, |at| elements[at]));
    });
    gathered
}

/// Copies a block into an array, with its first element at `start`. The block lies within the array.
pub(crate) fn insert(array: &mut [u64], dims: &[i64], block: &[u64], block_dims: &[i64], start: &[i64]) {
    let mut elements = block.iter();
    for_each_index(block_dims, |index| {
        if let (Some(at), Some(element)) = (position(dims, |d| start[d] + index[d]), elements.next()) {
            array[at] = *element;
        }
    });
}

/// Returns the transposed array, whose dimension `d` is dimension `permutation[d]` of the operand, and its
/// dimensions.
pub(crate) fn transpose(elements: &[u64], dims: &[i64], permutation: &[i64]) -> (Vec<u64>, Vec<i64>) {
    let to: Vec<i64> = permutation.iter().map(|d| dims[*d as usize]).collect();
    let mut inverse = vec![0; dims.len()];
    permutation.iter().enumerate().for_each(|(to, from)| inverse[*from as usize] = to);
    (gather(elements, dims, &to, 0, |index, d| index[inverse[d]]), to)
}

/// Clamps the start of a slice, so that the slice lies within the array.
pub(crate) fn clamped_start(start: &[i128], dims: &[i64], sizes: &[i64]) -> Vec<i64> {
    let last = dims.iter().zip(sizes).map(|(dim, size)| dim - size);
    start.iter().zip(last).map(|(start, last)| (*start).clamp(0, i128::from(last)) as i64).collect()
}

/// Calls a function with every index of an array, in row-major order.
pub(crate) fn for_each_index(dims: &[i64], mut call: impl FnMut(&[i64])) {
    if dims.contains(&0) {
        return;
    }
    let mut index = vec![0; dims.len()];
    loop {
        call(&index);
        // Increments the last coordinate that is not at its end, and resets the following ones.
        let Some(next) = (0..dims.len()).rev().find(|d| index[*d] + 1 < dims[*d]) else { return };
        index[next] += 1;
        index[next + 1..].fill(0);
    }
}

/// Returns the position of an element in a dense, row-major array, or `None` if it is out of bounds.
fn position(dims: &[i64], coordinate: impl Fn(usize) -> i64) -> Option<usize> {
    let mut position = 0;
    for (d, dim) in dims.iter().enumerate() {
        let coordinate = coordinate(d);
        if !(0..*dim).contains(&coordinate) {
            return None;
        }
        position = position * *dim as usize + coordinate as usize;
    }
    Some(position)
}
