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
mod opcode;
pub(crate) mod reduce;
mod select;
#[cfg(test)]
mod tests;
mod transcendental;

pub(crate) use arithmetic::{Int, Num};
pub use op::TileOp;
pub(crate) use opcode::Opcode;
pub use opcode::{Direction, Order};

use crate::ComputeType;

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

/// Returns the loop for an operation on tiles of these types with a result of type `ty`, if there is one.
pub(crate) fn kernel(opcode: Opcode, ty: ComputeType, args: &[ComputeType]) -> Option<Kernel> {
    kernel_with_scalars(opcode, ty, args, 0)
}

/// Returns the same as [`kernel`] for operands of which those with their bit set in `mask` are a single
/// element for the whole tile.
pub(crate) fn kernel_with_scalars(
    opcode: Opcode,
    ty: ComputeType,
    args: &[ComputeType],
    mask: u8,
) -> Option<Kernel> {
    match (opcode, args) {
        (Opcode::Tile(op), [first, rest @ ..])
            if args.len() == op.arity()
                && rest.iter().all(|a| a == first)
                && op.result(*first) == Some(ty) =>
        {
            elementwise(op, *first, mask)
        }
        (Opcode::Compare(direction, order), [a, b]) if ty == ComputeType::Pred && a == b => {
            compare::kernel(direction, order, *a, mask)
        }
        (Opcode::Select, [ComputeType::Pred, a, b]) if [*a, *b] == [ty; 2] => select::select(ty, mask),
        (Opcode::Clamp, _) if args == [ty; 3] => select::clamp(ty, mask),
        (Opcode::MulAdd | Opcode::MulSub | Opcode::NegMulAdd, _) if args == [ty; 3] => {
            arithmetic::multiply_add(opcode, ty, mask)
        }
        _ if mask != 0 => None,
        (Opcode::Convert, [from]) => cast::convert(*from, ty),
        (Opcode::Reinterpret, [from]) if from.size() == ty.size() => cast::copy(ty),
        (Opcode::Round(d) | Opcode::ToBits(d) | Opcode::FromBits(d), [from]) => {
            cast::narrow_float(opcode, d, *from, ty)
        }
        (Opcode::Wrap(d), [from]) if *from == ty => cast::wrap(d, ty),
        (Opcode::ReducePrecision, [from, ComputeType::U32]) if *from == ty => cast::reduce_precision(ty),
        _ => None,
    }
}

/// Returns the loop for an elementwise operation on operands of type `t`.
fn elementwise(op: TileOp, t: ComputeType, mask: u8) -> Option<Kernel> {
    if op.arity() == 2 {
        arithmetic::binary(op, t, mask)
            .or_else(|| transcendental::binary(op, t, mask))
            .or_else(|| complex::binary(op, t, mask))
    } else if mask == 0 {
        arithmetic::unary(op, t).or_else(|| transcendental::unary(op, t)).or_else(|| complex::unary(op, t))
    } else {
        None
    }
}

/// Returns the approximate cost of one element, in hundredths of a nanosecond.
pub(crate) fn cost(opcode: Opcode, ty: ComputeType, args: &[ComputeType]) -> u32 {
    let size = args.iter().map(|a| a.size()).max().unwrap_or(0).max(ty.size()) as u32;
    let base = match opcode {
        Opcode::Tile(op) => {
            let complex = if ty.is_complex() && op.cost() > 6 { 4 } else { 1 };
            op.cost() * complex
        }
        Opcode::Round(_) | Opcode::ToBits(_) | Opcode::FromBits(_) | Opcode::ReducePrecision => 5,
        _ => 3,
    };
    (base * size).div_ceil(4)
}
