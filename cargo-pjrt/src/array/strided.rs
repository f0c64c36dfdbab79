//! The elements of arrays with strides, and with their dimensions in another order.

use std::collections::HashMap;
use std::hash::Hash;

/// Returns the strides of a dense row-major array whose elements have this size.
pub(crate) fn dense_strides(dims: &[i64], size: i64) -> Vec<i64> {
    (0..dims.len()).map(|at| size * dims[at + 1..].iter().product::<i64>()).collect()
}

/// Returns the offset of each element of an array with these strides, in row-major order. `first` is that of the element whose
/// indices are all 0.
///
/// # Panics
///
/// Panics if an offset is negative.
pub(crate) fn offsets(dims: &[i64], strides: &[i64], first: usize) -> Vec<usize> {
    let mut all = vec![first as i64];
    for (dim, stride) in dims.iter().zip(strides) {
        let mut longer = Vec::with_capacity(all.len() * *dim as usize);
        for start in all {
            longer.extend((0..*dim).map(|index| start + index.wrapping_mul(*stride)));
        }
        all = longer;
    }
    all.into_iter().map(|offset| usize::try_from(offset).expect("the element is in the array")).collect()
}

/// Returns the row-major index of each element of an array, in the order in which the elements are in memory if the
/// dimensions are ordered from major to minor in this way.
pub(crate) fn reading_order(dims: &[i64], order: &[usize]) -> Vec<usize> {
    let strides = dense_strides(dims, 1);
    let of = |values: &[i64]| order.iter().map(|dim| values[*dim]).collect::<Vec<_>>();
    offsets(&of(dims), &of(&strides), 0)
}

/// Returns the elements of `size` bytes at these offsets.
pub(crate) fn elements_at(bytes: &[u8], offsets: &[usize], size: usize) -> Vec<u8> {
    let mut elements = Vec::with_capacity(offsets.len() * size);
    for &at in offsets {
        elements.extend_from_slice(&bytes[at..at + size]);
    }
    elements
}

/// Returns the elements of a dense row-major array in the order in which they are in memory if the dimensions are
/// ordered from major to minor in this way.
pub(crate) fn reordered(bytes: &[u8], size: usize, dims: &[i64], order: &[usize]) -> Vec<u8> {
    let offsets: Vec<usize> = reading_order(dims, order).into_iter().map(|index| index * size).collect();
    elements_at(bytes, &offsets, size)
}

/// Returns the order of the dimensions in which the expected elements of an array of more than one dimension are the found ones, or
/// whose inverse is such an order; `true` stands for the inverse.
pub(crate) fn order_of<T: PartialEq>(
    dims: &[i64],
    expected: &[T],
    found: &[T],
) -> Option<(Vec<usize>, bool)> {
    let reads = |at: &[usize], from: &[T], to: &[T]| {
        from.len() == to.len() && at.iter().zip(to).all(|(at, to)| from.get(*at) == Some(to))
    };
    permutations(dims.len()).into_iter().find_map(|order| {
        let at = reading_order(dims, &order);
        match () {
            () if reads(&at, expected, found) => Some((order, false)),
            () if reads(&at, found, expected) => Some((order, true)),
            () => None,
        }
    })
}

/// Describes wrong elements, with these numbers in row-major order, that are other elements of the array, all of them at the same
/// distance.
pub(crate) fn displaced<T: PartialEq>(expected: &[T], found: &[T], wrong: &[usize]) -> Option<String> {
    const LEAST: usize = 3;
    const MOST: usize = 1 << 12;
    // Few different elements, such as truth values or zeros, are at several places by accident.
    let mut different: Vec<&T> = Vec::new();
    for element in wrong.iter().filter_map(|at| found.get(*at)) {
        if different.len() < LEAST && !different.contains(&element) {
            different.push(element);
        }
    }
    if different.len() < LEAST {
        return None;
    }
    let is_at = |distance: &isize| {
        wrong.iter().all(|at| {
            let other = at.checked_add_signed(*distance).and_then(|other| expected.get(other));
            other.is_some_and(|other| found.get(*at) == Some(other))
        })
    };
    let most = expected.len().min(MOST) as isize;
    let mut distances = (1..most).flat_map(|distance| [distance, -distance]).filter(is_at);
    // An array that repeats itself has such elements at several places.
    let (Some(distance), None) = (distances.next(), distances.next()) else { return None };
    let way = if distance > 0 { "further on" } else { "before" };
    let places = if distance.abs() == 1 { "place" } else { "places" };
    Some(format!(
        "each of them is the element that belongs {} {places} {way} in row-major order: parts of the array, such as rows, \
         probably overlap on the device, because the size of a part is wrong",
        distance.abs()
    ))
}

/// The cause of elements whose distance is a multiple of a large power of two.
pub(crate) const WRAPPED: &str =
    "a counter, an index or an address of the plugin probably has too few bits, and begins again at 0";

/// Describes wrong elements, with these numbers in row-major order, of which a part belongs to other places of an array without
/// equal elements, all of them at distances that are multiples of a large power of two. The others are nowhere in the array: a
/// device that writes to wrong addresses leaves the right ones as they are.
pub(crate) fn wrapped<T: Eq + Hash>(expected: &[T], found: &[T], wrong: &[usize]) -> Option<String> {
    const LEAST: usize = 3;
    // Shorter distances are those of parts that overlap, or are in another order.
    const SHORTEST: u32 = 8;
    let places: HashMap<&T, usize> = expected.iter().enumerate().map(|(at, element)| (element, at)).collect();
    if places.len() < expected.len() {
        return None;
    }
    let distance = |at: &usize| places.get(found.get(*at)?).map(|place| place.abs_diff(*at));
    let distances: Vec<usize> = wrong.iter().filter_map(distance).collect();
    let least = distances.iter().map(|distance| distance.trailing_zeros()).min()?;
    let (moved, all) = (distances.len(), wrong.len());
    (least >= SHORTEST && moved >= LEAST.max(all / 4)).then(|| {
        let which = match moved == all {
            true => "each wrong element belongs".to_owned(),
            false => format!("{moved} of {all} wrong elements belong"),
        };
        format!("{which} 2^{least} = {} places away, or a multiple of that: {WRAPPED}", 1_u64 << least)
    })
}

/// Returns the orders of some dimensions, except the original one.
pub(crate) fn permutations(rank: usize) -> Vec<Vec<usize>> {
    const MOST: usize = 5;
    let mut all = vec![Vec::new()];
    for _ in 0..rank.min(MOST) {
        let longer = |order: Vec<usize>| {
            let rest: Vec<usize> = (0..rank).filter(|dim| !order.contains(dim)).collect();
            rest.into_iter().map(move |dim| [order.clone(), vec![dim]].concat()).collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all.retain(|order| !order.is_sorted());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displaced_elements_are_seen_only_if_they_differ() {
        let expected: Vec<u8> = (0..12).collect();
        let found = [0, 1, 2, 6, 7, 8, 6, 7, 8, 9, 10, 11];
        assert!(displaced(&expected, &found, &[3, 4, 5]).unwrap().contains(" 3 places further on"));
        let truth = [true, true, false, true, false, false, true];
        assert_eq!(displaced(&truth, &[true, true, true, false, false, true, true], &[2, 3, 5]), None);
    }

    #[test]
    fn wrapped_elements_are_multiples_of_a_power_of_two_away() {
        let expected: Vec<u32> = (0..1500).collect();
        let found: Vec<u32> = (0..1500).map(|at| if at < 476 { at + 1024 } else { at }).collect();
        let wrong: Vec<usize> = (0..476).collect();
        assert!(wrapped(&expected, &found, &wrong).unwrap().contains("2^10 = 1024 places"));
        let unwritten = |at: usize| if at < 300 { u32::MAX } else { found[at] };
        let partly = wrapped(&expected, &(0..1500).map(unwritten).collect::<Vec<_>>(), &wrong).unwrap();
        assert!(partly.starts_with("176 of 476 wrong elements belong 2^10 = 1024 places"), "{partly}");
        let shifted: Vec<u32> = (0..1500).map(|at| (at + 3) % 1500).collect();
        assert_eq!(wrapped(&expected, &shifted, &(0..1500).collect::<Vec<_>>()), None);
        assert_eq!(wrapped(&[0_u8; 1500], &[0; 1500], &wrong), None);
    }

    #[test]
    fn elements_come_in_the_order_of_the_dimensions_and_strides() {
        let bytes = [1, 2, 3, 4, 5, 6];
        assert_eq!(reordered(&bytes, 1, &[2, 3], &[1, 0]), [1, 4, 2, 5, 3, 6]);
        let backwards = offsets(&[2, 2], &[-2, 2], 2);
        assert_eq!(backwards, [2, 4, 0, 2]);
        assert_eq!(elements_at(&bytes, &backwards, 2), [3, 4, 5, 6, 1, 2, 3, 4]);
        assert!(offsets(&[2, 0], &[1, 1], 0).is_empty());
    }
}
