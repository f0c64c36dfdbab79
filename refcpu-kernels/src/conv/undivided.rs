//! Convolutions that are not divided into phases: the zeros between elements of a dilated input are
//! multiplied too.

use super::depthwise::Depthwise;
use super::im2col::PatchProduct;
use super::spec::{ConvSpec, Sizes};
use crate::dot::{Operands, compute_type, with_compute};
use crate::{Dst, Pool, Src};

/// Computes [`convolution`](super::convolution) for a result that has elements.
pub(super) fn convolve(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, out: &mut Dst<'_>, spec: &ConvSpec) {
    with_compute!(compute_type(lhs.dtype(), rhs.dtype(), out.dtype()), U => typed::<U>(pool, lhs, rhs, out, spec))
}

fn typed<U: Operands>(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, out: &mut Dst<'_>, spec: &ConvSpec) {
    let output = out.dims().to_vec();
    let sizes = Sizes::new(spec, lhs.dims(), rhs.dims(), &output);
    match Depthwise::new(&sizes) {
        Some(depthwise) => depthwise.convolve::<U>(pool, lhs, rhs, out),
        None => PatchProduct::new(&sizes).convolve::<U>(pool, lhs, rhs, out),
    }
}
