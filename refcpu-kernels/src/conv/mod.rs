//! Convolutions of any rank: StableHLO's `convolution`.

mod depthwise;
mod im2col;
mod patches;
mod phases;
mod spec;
#[cfg(test)]
mod tests;
mod undivided;

pub use self::spec::ConvSpec;

use crate::{Dst, Pool, Src};

/// Convolves `lhs` with the kernel `rhs`, and writes the result to `out`.
///
/// Operands and result may have different element types; accumulation is as in
/// [`dot_general`](crate::dot::dot_general). Scratch memory is bounded by some megabytes, plus the size of
/// the kernel, plus one table entry per output position and kernel element of each single dimension. Operands
/// of 4-, 6- and 8-bit float types, and of unusual combinations of types, are converted as a whole. A dilated
/// input needs additional scratch memory of the size of the part of the result that depends on the same
/// kernel elements, because each such part is computed separately.
///
/// # Panics
/// Panics if `spec` does not match the operands, if the dimensions of `out` are not
/// [`ConvSpec::output_dims`], or if the types are not supported (see
/// [`dot_general`](crate::dot::dot_general)).
pub fn convolution(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, mut out: Dst<'_>, spec: &ConvSpec) {
    let expected = spec.output_dims(lhs.dims(), rhs.dims()).unwrap_or_else(|message| panic!("{message}"));
    assert_eq!(out.dims(), expected, "convolution of {:?} and {:?} by {spec:?}", lhs.dims(), rhs.dims());
    if out.is_empty() {
        return;
    }
    if phases::fit(lhs, rhs, out.dims(), spec) {
        phases::convolve(pool, lhs, rhs, &mut out, spec);
    } else {
        undivided::convolve(pool, lhs, rhs, &mut out, spec);
    }
}
