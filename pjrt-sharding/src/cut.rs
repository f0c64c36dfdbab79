//! How a dimension is cut into parts.

use std::sync::Arc;

/// How a dimension is cut: the part that each partition has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    pub(crate) parts: usize,
    pub(crate) of_partition: Arc<[usize]>,
}

/// True if `fine` cuts every part of `coarse` further.
pub(crate) fn refines(fine: &Cut, coarse: &Cut) -> bool {
    fine.parts.is_multiple_of(coarse.parts) && {
        let factor = fine.parts / coarse.parts;
        fine.of_partition.iter().zip(&*coarse.of_partition).all(|(fine, coarse)| fine / factor == *coarse)
    }
}

/// The cut along which partitions have parts of all of these; `None` of none.
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
