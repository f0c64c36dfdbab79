//! Checks of the number and types of operands and results.

use super::Shape;
use refcpu_kernels::DType;

/// Whether types fit; if not, what is wrong.
pub(crate) type Check = Result<(), String>;

/// An error unless something holds.
pub(crate) fn need(holds: bool, otherwise: &str) -> Check {
    if holds { Ok(()) } else { Err(otherwise.to_string()) }
}

/// So many operands and results.
pub(crate) fn counts(x: &[&Shape], y: &[&Shape], operands: usize, results: usize) -> Check {
    if (x.len(), y.len()) == (operands, results) {
        return Ok(());
    }
    Err(format!("{} operands and {} results instead of {operands} and {results}", x.len(), y.len()))
}

pub(crate) fn same(a: &Shape, b: &Shape) -> Check {
    need(a == b, "types differ")
}

pub(crate) fn same_type(a: &Shape, b: &Shape) -> Check {
    need(a.dtype == b.dtype, "element types differ")
}

/// Distinct dimensions of an array of this rank.
pub(crate) fn need_dims(dims: &[usize], rank: usize, otherwise: &str) -> Check {
    let distinct = dims.iter().enumerate().all(|(i, d)| *d < rank && !dims[..i].contains(d));
    need(distinct, otherwise)
}

/// A single integer.
pub(crate) fn is_index(s: &Shape) -> bool {
    s.rank() == 0 && !s.dtype.is_float() && !s.dtype.is_complex() && s.dtype != DType::Pred
}
