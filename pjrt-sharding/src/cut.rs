//! The split of one dimension into equal parts.

use std::sync::Arc;

/// The split of one dimension into equal parts: for each partition, the index of the part that it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    pub(crate) parts: usize,
    pub(crate) of_partition: Arc<[usize]>,
}

impl Cut {
    /// Returns the split whose parts are the single partitions.
    pub(crate) fn single_partitions(partitions: usize) -> Self {
        Self { parts: partitions, of_partition: (0..partitions).collect() }
    }

    /// Returns the same split with its parts numbered in the order of their first partitions.
    pub(crate) fn renumbered(&self) -> Self {
        let mut numbers = vec![None; self.parts];
        let mut next = 0;
        let mut number = |part: &usize| {
            *numbers[*part].get_or_insert_with(|| {
                next += 1;
                next - 1
            })
        };
        Self { parts: self.parts, of_partition: self.of_partition.iter().map(&mut number).collect() }
    }
}

/// Returns whether `fine` splits every part of `coarse` into equally many consecutive parts.
pub(crate) fn refines(fine: &Cut, coarse: &Cut) -> bool {
    fine.parts.is_multiple_of(coarse.parts) && {
        let factor = fine.parts / coarse.parts;
        fine.of_partition.iter().zip(&*coarse.of_partition).all(|(fine, coarse)| fine / factor == *coarse)
    }
}

/// Returns the split whose parts are the combinations of the parts of these, the first being the major one; `None` for an empty
/// list.
pub(crate) fn product(cuts: &[&Cut]) -> Option<Cut> {
    let (first, rest) = cuts.split_first()?;
    let finer = |all: Cut, cut: &&Cut| {
        let of_partition = all.of_partition.iter().zip(&*cut.of_partition);
        Cut {
            parts: all.parts * cut.parts,
            of_partition: of_partition.map(|(major, minor)| major * cut.parts + minor).collect(),
        }
    };
    Some(rest.iter().fold((*first).clone(), finer))
}

/// Returns the split into this many parts, each of which consists of equally many consecutive parts of `cut`; `None` if there is
/// no such split, or if it has a single part.
pub(crate) fn coarse(cut: &Cut, parts: usize) -> Option<Cut> {
    if parts < 2 || !cut.parts.is_multiple_of(parts) {
        return None;
    }
    let factor = cut.parts / parts;
    Some(Cut { parts, of_partition: cut.of_partition.iter().map(|part| part / factor).collect() })
}

/// Returns the finest split that both of these refine; `None` if there is none.
pub(crate) fn common(a: &Cut, b: &Cut) -> Option<Cut> {
    (2..=a.parts.min(b.parts)).rev().filter_map(|parts| coarse(a, parts)).find(|cut| refines(b, cut))
}

/// Returns the split of each part of `coarse` into parts of `fine`: for each partition, the index of its part among those in the
/// same part of `coarse`. Returns `None` if a part of `fine` is in several parts of `coarse`, or if these have different numbers
/// of parts of `fine`. The parts need not be consecutive.
pub(crate) fn remainder(fine: &Cut, coarse: &Cut) -> Option<Cut> {
    let mut around: Vec<Option<usize>> = vec![None; fine.parts];
    for (fine, coarse) in fine.of_partition.iter().zip(&*coarse.of_partition) {
        if around[*fine].get_or_insert(*coarse) != coarse {
            return None;
        }
    }
    let mut counts = vec![0; coarse.parts];
    let mut index = vec![0; fine.parts];
    for (index, coarse) in index.iter_mut().zip(around) {
        let count = &mut counts[coarse?];
        (*index, *count) = (*count, *count + 1);
    }
    let parts = counts[0];
    let of_partition = || fine.of_partition.iter().map(|part| index[*part]).collect();
    counts.iter().all(|count| *count == parts).then(|| Cut { parts, of_partition: of_partition() })
}

/// Returns whether two splits have the same parts, which may be numbered differently.
pub(crate) fn has_same_parts(a: &Cut, b: &Cut) -> bool {
    remainder(a, b).is_some_and(|rest| rest.parts == 1)
}

/// Returns whether a split is one along several of these axes, of which each is the split along one axis.
pub(crate) fn is_along_axes(cut: &Cut, axes: &[Cut]) -> bool {
    let rest_is = |axis: &Cut| {
        let parts = cut.parts / axis.parts;
        let rest = Cut { parts, of_partition: cut.of_partition.iter().map(|part| part % parts).collect() };
        is_along_axes(&rest, axes)
    };
    cut.parts == 1 || axes.iter().any(|axis| axis.parts > 1 && refines(cut, axis) && rest_is(axis))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(of_partition: &[usize]) -> Cut {
        Cut { parts: of_partition.iter().max().unwrap() + 1, of_partition: of_partition.into() }
    }

    #[test]
    fn the_common_split_is_the_major_part_of_both() {
        let (fine, other) = (cut(&[0, 1, 2, 3]), cut(&[1, 0, 3, 2]));
        assert_eq!(common(&fine, &other), Some(cut(&[0, 0, 1, 1])));
        assert_eq!(common(&fine, &cut(&[0, 2, 1, 3])), None);
        assert_eq!((coarse(&fine, 3), coarse(&fine, 1)), (None, None));
    }

    #[test]
    fn the_remainder_of_a_split_numbers_the_parts_within_each_part() {
        let (x, y) = (cut(&[0, 0, 1, 1]), cut(&[0, 1, 0, 1]));
        let both = product(&[&x, &y]).unwrap();
        assert_eq!(remainder(&both, &x), Some(y.clone()));
        assert_eq!(remainder(&both, &y), Some(x.clone()));
        assert_eq!(remainder(&x, &y), None);
        assert_eq!(remainder(&cut(&[0, 1, 2, 2]), &x), None);
        assert!(has_same_parts(&both, &product(&[&y, &x]).unwrap()));
        assert!(!has_same_parts(&both, &x) && !has_same_parts(&x, &y));
    }

    #[test]
    fn a_split_along_axes_has_them_in_any_order() {
        let (x, y) = (cut(&[0, 0, 1, 1]), cut(&[0, 1, 0, 1]));
        let axes = [x.clone(), y.clone()];
        assert!(is_along_axes(&product(&[&x, &y]).unwrap(), &axes));
        assert!(is_along_axes(&product(&[&y, &x]).unwrap(), &axes));
        assert!(!is_along_axes(&x, &[product(&[&x, &y]).unwrap()]));
    }
}
