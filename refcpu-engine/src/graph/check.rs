//! Checks of the numbers and types of operands and results.

use super::Shape;
use refcpu_kernels::DType;

/// The result of checking types, with a message if they do not fit.
pub(crate) type Check = Result<(), String>;

/// Returns an error with this message unless the condition holds.
pub(crate) fn need(holds: bool, otherwise: &str) -> Check {
    if holds { Ok(()) } else { Err(otherwise.to_string()) }
}

/// Checks the numbers of operands and results.
pub(crate) fn counts(x: &[&Shape], y: &[&Shape], operands: usize, results: usize) -> Check {
    if (x.len(), y.len()) == (operands, results) {
        return Ok(());
    }
    Err(format!("found {} operands and {} results; expected {operands} and {results}", x.len(), y.len()))
}

pub(crate) fn same(a: &Shape, b: &Shape) -> Check {
    need(a == b, "the types differ")
}

pub(crate) fn same_type(a: &Shape, b: &Shape) -> Check {
    need(a.dtype == b.dtype, "the element types differ")
}

/// Checks that `dims` are distinct dimensions of an array of this rank.
pub(crate) fn need_dims(dims: &[usize], rank: usize, otherwise: &str) -> Check {
    let distinct = dims.iter().enumerate().all(|(i, d)| *d < rank && !dims[..i].contains(d));
    need(distinct, otherwise)
}

/// Returns whether the type is that of an integer scalar.
pub(crate) fn is_index(s: &Shape) -> bool {
    s.rank() == 0 && !s.dtype.is_float() && !s.dtype.is_complex() && s.dtype != DType::Pred
}
