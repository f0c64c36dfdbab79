//! Loops over tiles, with one compiled loop for each elementwise operation, type and instruction set.
//!
//! The loops are looked up in tables when a region is built (`kernel`), never while it runs.

mod arithmetic;
mod cast;
mod compare;
mod complex;
#[cfg(target_arch = "x86_64")]
mod half;
mod loops;
mod op;
pub(crate) mod reduce;
mod select;
#[cfg(test)]
mod tests;
mod transcendental;

pub(crate) use arithmetic::{Int, Num};
pub use op::TileOp;

use crate::ComputeType;
use crate::region::node::Code;

/// The form of a compiled loop: destination, three sources (unused ones are ignored), number of elements.
pub(crate) type Loop = unsafe fn(*mut u8, *const u8, *const u8, *const u8, usize);

/// A compiled loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel(Loop);

impl Kernel {
    /// Runs the loop.
    ///
    /// # Safety
    /// `dst` must be writable and the sources that the operation has readable, for `n` elements of the types
    /// that the kernel was chosen for (one element where it was chosen for a scalar), aligned and
    /// initialized. `dst` must not overlap a source.
    #[inline(always)]
    pub(crate) unsafe fn call(self, dst: *mut u8, src: [*mut u8; 3], n: usize) {
        // SAFETY: guaranteed by the caller; `loops` chose a loop for the instruction set of this machine.
        unsafe { (self.0)(dst, src[0], src[1], src[2], n) }
    }

    /// Applies the operation to single elements, which are passed and returned as bits in the low end.
    pub(crate) fn on_scalars(self, args: &[u128]) -> u128 {
        let mut result = 0u128;
        let mut at = [std::ptr::null_mut(); 3];
        for (p, a) in at.iter_mut().zip(args) {
            *p = std::ptr::from_ref(a).cast_mut().cast();
        }
        // SAFETY: 16 aligned bytes hold one element of any type; sources are only read.
        unsafe { self.call(std::ptr::from_mut(&mut result).cast(), at, 1) };
        result
    }
}

/// The operands of a loop that are a single element for the whole tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// None.
    Full,
    /// Those with their bit set.
    Scalars(u8),
}

impl Shape {
    fn mask(self) -> u8 {
        match self {
            Self::Full => 0,
            Self::Scalars(mask) => mask,
        }
    }
}

/// Returns the loop for an operation on operands of these types with a result of type `ty`, if there is one.
pub(crate) fn kernel(code: Code, ty: ComputeType, args: &[ComputeType], shape: Shape) -> Option<Kernel> {
    let mask = shape.mask();
    let arg = |i: usize| args.get(i).copied();
    let arity = |n: usize| (args.len() == n).then_some(());
    match code {
        Code::Tile(op) => {
            arity(op.arity())?;
            if args.iter().any(|a| Some(*a) != arg(0)) || op.result(arg(0)?) != Some(ty) {
                return None;
            }
            if op.arity() == 1 {
                if mask != 0 {
                    return None;
                }
                let t = arg(0)?;
                arithmetic::unary(op, t)
                    .or_else(|| transcendental::unary(op, t))
                    .or_else(|| complex::unary(op, t))
            } else {
                let t = arg(0)?;
                arithmetic::binary(op, t, mask)
                    .or_else(|| transcendental::binary(op, t, mask))
                    .or_else(|| complex::binary(op, t, mask))
            }
        }
        Code::Compare(direction, order) => {
            arity(2)?;
            if ty != ComputeType::Pred || arg(0) != arg(1) {
                return None;
            }
            compare::kernel(direction, order, arg(0)?, mask)
        }
        Code::Select => {
            arity(3)?;
            if arg(0) != Some(ComputeType::Pred) || arg(1) != Some(ty) || arg(2) != Some(ty) {
                return None;
            }
            select::select(ty, mask)
        }
        Code::Clamp => {
            arity(3)?;
            if args.iter().any(|a| *a != ty) { None } else { select::clamp(ty, mask) }
        }
        Code::MulAdd | Code::MulSub | Code::NegMulAdd => {
            arity(3)?;
            if args.iter().any(|a| *a != ty) { None } else { arithmetic::multiply_add(code, ty, mask) }
        }
        _ if mask != 0 => None,
        Code::Convert => {
            arity(1)?;
            cast::convert(arg(0)?, ty)
        }
        Code::Reinterpret => {
            arity(1)?;
            if arg(0)?.size() == ty.size() { cast::copy(ty) } else { None }
        }
        Code::Round(d) | Code::ToBits(d) | Code::FromBits(d) => {
            arity(1)?;
            cast::narrow_float(code, d, arg(0)?, ty)
        }
        Code::Wrap(d) => {
            arity(1)?;
            if arg(0) == Some(ty) { cast::wrap(d, ty) } else { None }
        }
        Code::ReducePrecision => {
            arity(2)?;
            if arg(0) == Some(ty) && arg(1) == Some(ComputeType::U32) {
                cast::reduce_precision(ty)
            } else {
                None
            }
        }
    }
}

/// Returns the approximate cost of one element, in hundredths of a nanosecond.
pub(crate) fn cost(code: Code, ty: ComputeType, args: &[ComputeType]) -> u32 {
    let size = args.iter().map(|a| a.size()).max().unwrap_or(0).max(ty.size()) as u32;
    let base = match code {
        Code::Tile(op) => {
            let complex = if ty.is_complex() && op.cost() > 6 { 4 } else { 1 };
            op.cost() * complex
        }
        Code::Round(_) | Code::ToBits(_) | Code::FromBits(_) | Code::ReducePrecision => 5,
        _ => 3,
    };
    (base * size).div_ceil(4)
}
