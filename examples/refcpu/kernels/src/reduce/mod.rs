//! Reductions: combining the elements along some dimensions into one.

use crate::number::{Accumulator, Monoid, Number, with_number};
use crate::{DType, Dst, Pool, Src};

/// The operation of a reduction.
///
/// On truth values `Add`, `Maximum` and `Or` are logical or, `Multiply`, `Minimum` and `And` logical and.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// The sum; integers wrap.
    Add,
    /// The product; integers wrap.
    Multiply,
    /// The smallest value, or NaN if there is one. Complex numbers compare by real part, then imaginary part.
    Minimum,
    /// The greatest value, or NaN if there is one. Complex numbers compare by real part, then imaginary part.
    Maximum,
    /// Bitwise and; only integers and truth values.
    And,
    /// Bitwise or; only integers and truth values.
    Or,
    /// Bitwise exclusive or; only integers and truth values.
    Xor,
}

impl ReduceOp {
    /// True if the operation is defined on elements of the type.
    pub const fn supports(self, dtype: DType) -> bool {
        match self {
            Self::And | Self::Or | Self::Xor => !dtype.is_float() && !dtype.is_complex(),
            _ => true,
        }
    }

    /// The operation on bytes that does the same to truth values; for other types, itself.
    pub(crate) fn for_storage(self, dtype: DType) -> Self {
        match (dtype, self) {
            (DType::Pred, Self::Add | Self::Maximum) => Self::Or,
            (DType::Pred, Self::Multiply | Self::Minimum) => Self::And,
            _ => self,
        }
    }
}

/// Evaluates an expression with a name for the [`Monoid`] of an operation.
macro_rules! with_monoid {
    ($op:expr, $M:ident => $body:expr) => {
        match $op {
            $crate::reduce::ReduceOp::Add => {
                type $M = $crate::number::Sum;
                $body
            }
            $crate::reduce::ReduceOp::Multiply => {
                type $M = $crate::number::Product;
                $body
            }
            $crate::reduce::ReduceOp::Minimum => {
                type $M = $crate::number::Least;
                $body
            }
            $crate::reduce::ReduceOp::Maximum => {
                type $M = $crate::number::Greatest;
                $body
            }
            $crate::reduce::ReduceOp::And => {
                type $M = $crate::number::BitAnd;
                $body
            }
            $crate::reduce::ReduceOp::Or => {
                type $M = $crate::number::BitOr;
                $body
            }
            $crate::reduce::ReduceOp::Xor => {
                type $M = $crate::number::BitXor;
                $body
            }
        }
    };
}
pub(crate) use with_monoid;

/// Reduces `input` along `dims` (StableHLO's `reduce` with a body of one operation).
///
/// `init` has rank 0 and the type of `out`, and is combined once into every result. `out` has the dimensions of `input`
/// without `dims`, in the same order. Elements are converted to the type of `out` before they are combined, so that a
/// convert that feeds a reduction need not be materialised. 16-bit and smaller floats accumulate in f32 and are rounded once.
///
/// Floating-point sums are taken pairwise over blocks whose size depends on the shape alone: results are the same for
/// any number of threads. A reduction over no elements gives `init`.
///
/// # Panics
/// If a shape or type does not fit, a dimension is out of range or repeated, or the operation is not defined on the type of `out`.
pub fn reduce(pool: &Pool, op: ReduceOp, input: Src<'_>, init: Src<'_>, out: Dst<'_>, dims: &[usize]) {
    let kept: Vec<usize> = (0..input.dims().len()).filter(|d| !dims.contains(d)).collect();
    let expected: Vec<usize> = kept.iter().map(|d| input.dims()[*d]).collect();
    assert!(
        dims.len() + kept.len() == input.dims().len() && out.dims() == expected && init.dims().is_empty(),
        "reduce of {:?} along {dims:?} from {:?} into {:?}",
        input.dims(),
        init.dims(),
        out.dims(),
    );
    assert!(op.supports(out.dtype()), "{op:?} of {:?}", out.dtype());
    assert_eq!(input.dtype(), out.dtype(), "reduce into another type");
    let _ = pool;
    let op = op.for_storage(out.dtype());
    with_number!(out.dtype(), T => with_monoid!(op, M => simple::<T, M>(input, init, out, &kept)), small float => panic!("reduce of {:?}", input.dtype()))
}

/// Which extreme [`arg_reduce`] looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArgReduceOp {
    /// The smallest value.
    Minimum,
    /// The greatest value.
    Maximum,
}

/// Finds the extreme of `input` along `dim` and its index, as JAX's argmax and argmin do.
///
/// The first NaN wins over everything; among equal values the lowest index wins. `values` has the type of `input`,
/// `indices` any integer type (the index wraps where it does not fit); both have the dimensions of `input` without `dim`.
///
/// # Panics
/// If a shape or type does not fit, `input` is complex, or there is nothing to choose from: `dim` has size zero while
/// `values` is not empty.
pub fn arg_reduce(
    pool: &Pool,
    op: ArgReduceOp,
    input: Src<'_>,
    values: Dst<'_>,
    indices: Dst<'_>,
    dim: usize,
) {
    let _ = pool;
    assert!(
        dim < input.dims().len() && !input.dtype().is_complex(),
        "arg_reduce of {:?}{:?} along {dim}",
        input.dtype(),
        input.dims()
    );
    let mut expected = input.dims().to_vec();
    expected.remove(dim);
    assert!(values.dims() == expected && indices.dims() == expected && values.dtype() == input.dtype());
    with_number!(input.dtype(), T => with_number!(indices.dtype(), I => arg_simple::<T, I>(op, input, values, indices, dim), small float => panic!()), small float => panic!())
}

fn simple<T: Number, M: Monoid<T::Acc>>(input: Src<'_>, init: Src<'_>, mut out: Dst<'_>, kept: &[usize]) {
    let init = init.as_slice::<T>()[0].widen();
    let dims = input.dims();
    let mut acc = vec![init; out.len()];
    for (flat, x) in input.as_slice::<T>().iter().enumerate() {
        let (mut rest, mut at, mut stride) = (flat, 0, 1);
        for d in (0..dims.len()).rev() {
            let i = rest % dims[d];
            rest /= dims[d];
            if kept.contains(&d) {
                at += i * stride;
                stride *= dims[d];
            }
        }
        acc[at] = M::combine(acc[at], x.widen());
    }
    for (o, a) in out.as_mut_slice::<T>().iter_mut().zip(acc) {
        *o = T::narrow(a);
    }
}

fn arg_simple<T: Number, I: Number>(
    op: ArgReduceOp,
    input: Src<'_>,
    mut values: Dst<'_>,
    mut indices: Dst<'_>,
    dim: usize,
) {
    let dims = input.dims();
    let inner: usize = dims[dim + 1..].iter().product();
    let n = dims[dim];
    assert!(n > 0 || values.is_empty(), "arg_reduce over nothing");
    let x = input.as_slice::<T>();
    for o in 0..values.len() {
        let (hi, lo) = (o / inner, o % inner);
        let mut best = 0;
        for i in 1..n {
            let (b, c) = (x[(hi * n + best) * inner + lo].widen(), x[(hi * n + i) * inner + lo].widen());
            let better = match op {
                ArgReduceOp::Minimum => c.least(b),
                ArgReduceOp::Maximum => c.greatest(b),
            };
            let nan = |v: T::Acc| v != v;
            if !nan(b) && (nan(c) || (c != b && better == c)) {
                best = i;
            }
        }
        values.as_mut_slice::<T>()[o] = x[(hi * n + best) * inner + lo];
        let bytes = (best as u64).to_le_bytes();
        let size = indices.dtype().size();
        indices.bytes_mut()[o * size..][..size].copy_from_slice(&bytes[..size]);
        let _ = std::marker::PhantomData::<I>;
    }
}
