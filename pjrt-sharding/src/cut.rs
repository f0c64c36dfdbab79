//! The split of one dimension into equal parts.

use std::sync::Arc;

/// The split of one dimension into equal parts: for each partition, the index of the part that it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    pub(crate) parts: usize,
    pub(crate) of_partition: Arc<[usize]>,
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
