//! Reductions of a tile to one value.

use super::Kernel;
use super::arithmetic::{Int, Num};
use crate::ComputeType;
use crate::isa::{Isa, multiversion};
use crate::region::ReduceOp;
use crate::region::node::Code;

/// The running result of a reduction.
///
/// Sums of f32 are kept in f64 between tiles, so that their error does not grow with the number of tiles.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    bits: u128,
}

fn is_wide_sum(op: ReduceOp, ty: ComputeType) -> bool {
    op == ReduceOp::Sum && matches!(ty, ComputeType::F32 | ComputeType::C64)
}

/// The type in which partial results are combined.
fn running(op: ReduceOp, ty: ComputeType) -> ComputeType {
    match ty {
        ComputeType::F32 if is_wide_sum(op, ty) => ComputeType::F64,
        ComputeType::C64 if is_wide_sum(op, ty) => ComputeType::C128,
        _ => ty,
    }
}

/// The identity of the operation.
fn identity(op: ReduceOp, ty: ComputeType) -> u128 {
    use ComputeType as C;
    let one = match ty {
        C::F32 | C::C64 => u128::from(1f32.to_bits()),
        C::F64 | C::C128 => u128::from(1f64.to_bits()),
        _ => 1,
    };
    let bits = 8 * ty.size() as u32;
    let all = u128::MAX >> (128 - bits);
    let float = |f: f64| if ty == C::F32 { u128::from((f as f32).to_bits()) } else { u128::from(f.to_bits()) };
    match op {
        // -0 is what adding changes nothing to, but an empty sum is +0 and a sum of -0 alone may be +0.
        ReduceOp::Sum | ReduceOp::Or | ReduceOp::Xor => 0,
        ReduceOp::Product => one,
        ReduceOp::And => {
            if ty == C::Pred {
                1
            } else {
                all
            }
        }
        ReduceOp::Max if ty.is_float() => float(f64::NEG_INFINITY),
        ReduceOp::Min if ty.is_float() => float(f64::INFINITY),
        ReduceOp::Max if ty.is_signed_integer() => 1 << (bits - 1),
        ReduceOp::Min if ty.is_signed_integer() => all >> 1,
        ReduceOp::Max => 0,
        ReduceOp::Min => {
            if ty == C::Pred {
                1
            } else {
                all
            }
        }
    }
}

/// The elementwise operation; truth values are combined by logic.
fn combine(op: ReduceOp, ty: ComputeType) -> Option<Kernel> {
    let op = match (op, ty) {
        (ReduceOp::Sum | ReduceOp::Max, ComputeType::Pred) => ReduceOp::Or,
        (ReduceOp::Product | ReduceOp::Min, ComputeType::Pred) => ReduceOp::And,
        _ => op,
    };
    super::kernel(Code::Tile(op.tile_op()), ty, &[ty, ty], super::Shape::Full)
}

impl Accumulator {
    /// The result over no elements.
    pub(crate) fn new(op: ReduceOp, ty: ComputeType) -> Self {
        Self { bits: identity(op, running(op, ty)) }
    }

    /// Takes in the result over further elements.
    pub(crate) fn merge(&mut self, other: &Accumulator, op: ReduceOp, ty: ComputeType) {
        if let Some(k) = combine(op, running(op, ty)) {
            self.bits = k.on_scalars(&[self.bits, other.bits]);
        }
    }

    /// The result as bits of the reduction's type.
    pub(crate) fn value(&self, op: ReduceOp, ty: ComputeType) -> u128 {
        match super::kernel(Code::Convert, ty, &[running(op, ty)], super::Shape::Full) {
            Some(k) if running(op, ty) != ty => k.on_scalars(&[self.bits]),
            _ => self.bits,
        }
    }
}

/// Lanes that a tile is reduced in before they are combined.
const LANES: usize = 64;

/// # Safety
/// `src` must be readable for `n` elements.
#[inline(always)]
unsafe fn fold_body<I: Isa, T: Copy, O: Fold<T>>(src: *const u8, n: usize, identity: T) -> T {
    // SAFETY: the caller's contract.
    let src = unsafe { std::slice::from_raw_parts(src.cast::<T>(), n) };
    let (blocks, rest) = src.as_chunks::<LANES>();
    let mut lanes = [identity; LANES];
    for b in blocks {
        for i in 0..LANES {
            lanes[i] = O::fold(lanes[i], b[i]);
        }
    }
    for (l, r) in lanes.iter_mut().zip(rest) {
        *l = O::fold(*l, *r);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = O::fold(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}
multiversion!(
    /// The combination of `n` elements, in an order that depends on `n` alone.
    ///
    /// # Safety
    /// `src` must be readable for `n` elements.
    unsafe fn fold<T: Copy, O: Fold<T>>(src: *const u8, n: usize, identity: T) -> T = fold_body
);

/// How two elements combine.
trait Fold<T> {
    fn fold(a: T, b: T) -> T;
}

macro_rules! folds {
    ($($name:ident $bound:ident $f:ident;)*) => {$(
        struct $name;
        impl<T: $bound> Fold<T> for $name {
            #[inline(always)]
            fn fold(a: T, b: T) -> T {
                a.$f(b)
            }
        }
    )*};
}
folds! {
    Sum Num add;
    Product Num mul;
    Max Num maximum;
    Min Num minimum;
    And Int and;
    Or Int or;
    Xor Int xor;
}

struct ComplexSum;
macro_rules! complex_sum {
    ($($t:ty),*) => {$(
        impl Fold<[$t; 2]> for ComplexSum {
            #[inline(always)]
            fn fold(a: [$t; 2], b: [$t; 2]) -> [$t; 2] {
                [a[0] + b[0], a[1] + b[1]]
            }
        }
    )*};
}
complex_sum!(f32, f64);

struct ComplexProduct;
macro_rules! complex_product {
    ($($t:ty),*) => {$(
        impl Fold<[$t; 2]> for ComplexProduct {
            #[inline(always)]
            fn fold(a: [$t; 2], b: [$t; 2]) -> [$t; 2] {
                [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
            }
        }
    )*};
}
complex_product!(f32, f64);

/// Plain values as bits in the low end, and back.
trait Bits: Copy {
    fn of(bits: u128) -> Self;
    fn bits(self) -> u128;
}
macro_rules! bits {
    ($($t:ty),*) => {$(
        impl Bits for $t {
            fn of(bits: u128) -> Self {
                let mut b = [0u8; size_of::<$t>()];
                b.copy_from_slice(&bits.to_le_bytes()[..size_of::<$t>()]);
                <$t>::from_le_bytes(b)
            }
            fn bits(self) -> u128 {
                let mut b = [0u8; 16];
                b[..size_of::<$t>()].copy_from_slice(&self.to_le_bytes());
                u128::from_le_bytes(b)
            }
        }
    )*};
}
bits!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);
impl Bits for [f32; 2] {
    fn of(bits: u128) -> Self {
        [f32::of(bits), f32::of(bits >> 32)]
    }
    fn bits(self) -> u128 {
        self[0].bits() | self[1].bits() << 32
    }
}
impl Bits for [f64; 2] {
    fn of(bits: u128) -> Self {
        [f64::of(bits), f64::of(bits >> 64)]
    }
    fn bits(self) -> u128 {
        self[0].bits() | self[1].bits() << 64
    }
}

/// Combines `n` elements of a tile (or one element `n` times) into `acc`.
///
/// # Safety
/// `src` must be aligned and readable for `n` elements of type `ty`, or one if `repeated`.
pub(crate) unsafe fn accumulate(acc: &mut Accumulator, op: ReduceOp, ty: ComputeType, src: *const u8, n: usize, repeated: bool) {
    use ComputeType as C;
    if repeated {
        // SAFETY: one element is readable.
        for _ in 0..n {
            unsafe { accumulate(acc, op, ty, src, 1, false) };
        }
        return;
    }
    let start = identity(op, ty);
    macro_rules! go {
        ($t:ty, $o:ty) => {
            // SAFETY: the caller's contract: `n` elements of `ty`, which `$t` is.
            unsafe { fold::<$t, $o>(src, n, <$t>::of(start)) }.bits()
        };
    }
    macro_rules! num {
        ($t:ty) => {
            match op {
                ReduceOp::Sum => go!($t, Sum),
                ReduceOp::Product => go!($t, Product),
                ReduceOp::Max => go!($t, Max),
                ReduceOp::Min => go!($t, Min),
                _ => start,
            }
        };
    }
    macro_rules! int {
        ($t:ty) => {
            match op {
                ReduceOp::And => go!($t, And),
                ReduceOp::Or => go!($t, Or),
                ReduceOp::Xor => go!($t, Xor),
                _ => num!($t),
            }
        };
    }
    macro_rules! complex {
        ($t:ty) => {
            if op == ReduceOp::Product { go!($t, ComplexProduct) } else { go!($t, ComplexSum) }
        };
    }
    let bits = match ty {
        C::Pred => match op {
            ReduceOp::Sum | ReduceOp::Max | ReduceOp::Or => go!(u8, Or),
            ReduceOp::Xor => go!(u8, Xor),
            _ => go!(u8, And),
        },
        C::U8 => int!(u8),
        C::U16 => int!(u16),
        C::U32 => int!(u32),
        C::U64 => int!(u64),
        C::S8 => int!(i8),
        C::S16 => int!(i16),
        C::S32 => int!(i32),
        C::S64 => int!(i64),
        C::F32 => num!(f32),
        C::F64 => num!(f64),
        C::C64 => complex!([f32; 2]),
        C::C128 => complex!([f64; 2]),
    };
    let mut partial = Accumulator { bits };
    if running(op, ty) != ty {
        match super::kernel(Code::Convert, running(op, ty), &[ty], super::Shape::Full) {
            Some(widen) => partial.bits = widen.on_scalars(&[bits]),
            None => return,
        }
    }
    acc.merge(&partial, op, ty);
}
