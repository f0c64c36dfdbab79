//! Reductions of tiles to one value.

use super::TileOp;
use super::arithmetic::{Int, Num};
use crate::isa::{self, Level};
use crate::{ComputeType, ReduceOp};

impl TileOp {
    /// Returns the elementwise operation that combines two elements in a reduction.
    pub fn combining(op: ReduceOp) -> Self {
        match op {
            ReduceOp::Add => Self::Add,
            ReduceOp::Multiply => Self::Multiply,
            ReduceOp::Minimum => Self::Minimum,
            ReduceOp::Maximum => Self::Maximum,
            ReduceOp::And => Self::And,
            ReduceOp::Or => Self::Or,
            ReduceOp::Xor => Self::Xor,
        }
    }
}

/// The loops of a reduction, which are selected when a region is built.
///
/// The running result has 16 bytes. Sums of f32 are accumulated in f64 between tiles, so that their error
/// does not grow with the number of tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reducer {
    accumulate: unsafe fn(&mut u128, *const u8, usize),
    segments: unsafe fn(*mut u8, *const u8, usize, usize),
    merge: fn(&mut u128, u128),
    value: fn(u128) -> u128,
    identity: u128,
}

impl Reducer {
    /// Returns the running result over no elements.
    pub(crate) fn identity(&self) -> u128 {
        self.identity
    }

    /// Combines `n` elements with the running result, in an order that depends only on `n`.
    ///
    /// # Safety
    /// `src` must be aligned and readable for `n` elements of the type that the reducer was chosen for.
    #[inline(always)]
    pub(crate) unsafe fn accumulate(&self, running: &mut u128, src: *const u8, n: usize) {
        // SAFETY: guaranteed by the caller; `of` selected a loop for the instruction set of this machine.
        unsafe { (self.accumulate)(running, src, n) }
    }

    /// Reduces each of `count` runs of `length` elements to one element.
    ///
    /// # Safety
    /// `src` must be aligned and readable for `count * length` elements of the type that the reducer was
    /// chosen for, `dst` writable for `count`. They must not overlap.
    pub(crate) unsafe fn segments(&self, dst: *mut u8, src: *const u8, count: usize, length: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.segments)(dst, src, count, length) }
    }

    /// Combines the running result with that of further elements.
    pub(crate) fn merge(&self, running: &mut u128, further: u128) {
        (self.merge)(running, further);
    }

    /// Returns the result, as bits of the type that was reduced.
    pub(crate) fn value(&self, running: u128) -> u128 {
        (self.value)(running)
    }
}

/// Conversions between values and bits in the low end.
trait Bits: Copy {
    fn of(bits: u128) -> Self;
    fn bits(self) -> u128;
}
macro_rules! bits {
    ($($t:ty),*) => {$(
        impl Bits for $t {
            #[inline(always)]
            fn of(bits: u128) -> Self {
                let mut b = [0u8; size_of::<$t>()];
                b.copy_from_slice(&bits.to_le_bytes()[..size_of::<$t>()]);
                <$t>::from_le_bytes(b)
            }
            #[inline(always)]
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
    #[inline(always)]
    fn of(bits: u128) -> Self {
        [f32::of(bits), f32::of(bits >> 32)]
    }
    #[inline(always)]
    fn bits(self) -> u128 {
        self[0].bits() | self[1].bits() << 32
    }
}
impl Bits for [f64; 2] {
    #[inline(always)]
    fn of(bits: u128) -> Self {
        [f64::of(bits), f64::of(bits >> 64)]
    }
    #[inline(always)]
    fn bits(self) -> u128 {
        self[0].bits() | self[1].bits() << 64
    }
}

/// The operation on elements, and the type of the results of tiles.
trait Monoid {
    /// The type of the elements.
    type T: Copy;
    /// The type of the running result.
    type W: Bits;
    /// The identity of the operation.
    const IDENTITY: Self::T;
    fn fold(a: Self::T, b: Self::T) -> Self::T;
    fn widen(a: Self::T) -> Self::W;
    fn merge(a: Self::W, b: Self::W) -> Self::W;
    fn narrow(a: Self::W) -> u128;
}

struct Sum<T>(std::marker::PhantomData<T>);
struct Product<T>(std::marker::PhantomData<T>);
struct Max<T>(std::marker::PhantomData<T>);
struct Min<T>(std::marker::PhantomData<T>);
struct And<T>(std::marker::PhantomData<T>);
struct Or<T>(std::marker::PhantomData<T>);
struct Xor<T>(std::marker::PhantomData<T>);

macro_rules! same_type {
    ($($name:ident<$t:ty> $identity:expr, $f:expr;)*) => {$(
        impl Monoid for $name<$t> {
            type T = $t;
            type W = $t;
            const IDENTITY: $t = $identity;
            #[inline(always)]
            fn fold(a: $t, b: $t) -> $t {
                let f: fn($t, $t) -> $t = $f;
                f(a, b)
            }
            #[inline(always)]
            fn widen(a: $t) -> $t {
                a
            }
            fn merge(a: $t, b: $t) -> $t {
                Self::fold(a, b)
            }
            fn narrow(a: $t) -> u128 {
                a.bits()
            }
        }
    )*};
}
macro_rules! integers {
    ($($t:ty),*) => {$(
        same_type! {
            Sum<$t> 0, |a, b| Num::add(a, b);
            Product<$t> 1, |a, b| Num::mul(a, b);
            Max<$t> <$t>::MIN, |a, b| Num::maximum(a, b);
            Min<$t> <$t>::MAX, |a, b| Num::minimum(a, b);
            And<$t> !0, |a, b| Int::and(a, b);
            Or<$t> 0, |a, b| Int::or(a, b);
            Xor<$t> 0, |a, b| Int::xor(a, b);
        }
    )*};
}
integers!(u8, u16, u32, u64, i8, i16, i32, i64);
same_type! {
    Product<f32> 1.0, |a, b| a * b;
    Max<f32> f32::NEG_INFINITY, |a, b| Num::maximum(a, b);
    Min<f32> f32::INFINITY, |a, b| Num::minimum(a, b);
    Sum<f64> 0.0, |a, b| a + b;
    Product<f64> 1.0, |a, b| a * b;
    Max<f64> f64::NEG_INFINITY, |a, b| Num::maximum(a, b);
    Min<f64> f64::INFINITY, |a, b| Num::minimum(a, b);
    Sum<[f64; 2]> [0.0; 2], |a, b| [a[0] + b[0], a[1] + b[1]];
    Product<[f32; 2]> [1.0, 0.0], |a, b| [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
    Product<[f64; 2]> [1.0, 0.0], |a, b| [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
}

impl Monoid for Sum<f32> {
    type T = f32;
    type W = f64;
    const IDENTITY: f32 = 0.0;
    #[inline(always)]
    fn fold(a: f32, b: f32) -> f32 {
        a + b
    }
    #[inline(always)]
    fn widen(a: f32) -> f64 {
        f64::from(a)
    }
    fn merge(a: f64, b: f64) -> f64 {
        a + b
    }
    fn narrow(a: f64) -> u128 {
        (a as f32).bits()
    }
}

impl Monoid for Sum<[f32; 2]> {
    type T = [f32; 2];
    type W = [f64; 2];
    const IDENTITY: [f32; 2] = [0.0; 2];
    #[inline(always)]
    fn fold(a: [f32; 2], b: [f32; 2]) -> [f32; 2] {
        [a[0] + b[0], a[1] + b[1]]
    }
    #[inline(always)]
    fn widen(a: [f32; 2]) -> [f64; 2] {
        a.map(f64::from)
    }
    fn merge(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
        [a[0] + b[0], a[1] + b[1]]
    }
    fn narrow(a: [f64; 2]) -> u128 {
        a.map(|v| v as f32).bits()
    }
}

/// Combines all elements in `N` lanes.
#[inline(always)]
fn in_lanes<M: Monoid, const N: usize>(src: &[M::T]) -> [M::T; N] {
    let (blocks, rest) = src.as_chunks::<N>();
    let mut lanes = [M::IDENTITY; N];
    for b in blocks {
        for i in 0..N {
            lanes[i] = M::fold(lanes[i], b[i]);
        }
    }
    if rest.is_empty() {
        return lanes;
    }
    // In another array, so that the lanes above need no memory.
    let mut last = lanes;
    for (l, r) in last.iter_mut().zip(rest) {
        *l = M::fold(*l, *r);
    }
    last
}

/// Combines the two halves of some lanes.
#[inline(always)]
fn halves<M: Monoid, const FROM: usize, const TO: usize>(lanes: &[M::T; FROM]) -> [M::T; TO] {
    std::array::from_fn(|l| M::fold(lanes[l], lanes[l + TO]))
}

/// Combines all elements: in 8 lanes, which are then combined pairwise.
#[inline(always)]
fn in_eight<M: Monoid>(src: &[M::T]) -> M::T {
    pairwise::<M>(&in_lanes::<M, 8>(src))
}

/// Combines 8 lanes pairwise.
#[inline(always)]
fn pairwise<M: Monoid>(lanes: &[M::T; 8]) -> M::T {
    halves::<M, 2, 1>(&halves::<M, 4, 2>(&halves::<M, 8, 4>(lanes)))[0]
}

/// # Safety
/// `src` must be aligned and readable for `n` elements.
#[inline(always)]
unsafe fn accumulate_body<M: Monoid>(running: &mut u128, src: *const u8, n: usize) {
    // SAFETY: guaranteed by the caller.
    let src = unsafe { std::slice::from_raw_parts(src.cast::<M::T>(), n) };
    let result = if n >= 64 {
        let lanes = halves::<M, 64, 32>(&in_lanes::<M, 64>(src));
        pairwise::<M>(&halves::<M, 16, 8>(&halves::<M, 32, 16>(&lanes)))
    } else {
        in_eight::<M>(src)
    };
    *running = M::merge(M::W::of(*running), M::widen(result)).bits();
}

/// # Safety
/// `src` must be aligned and readable for `count * length` elements, `dst` writable for `count`; they must
/// not overlap.
#[inline(always)]
unsafe fn segments_body<M: Monoid>(dst: *mut u8, src: *const u8, count: usize, length: usize) {
    #[inline(always)]
    fn fixed<M: Monoid, const N: usize>(dst: &mut [M::T], src: &[M::T]) {
        for (d, s) in dst.iter_mut().zip(src.as_chunks::<N>().0) {
            let mut r = M::IDENTITY;
            for v in s {
                r = M::fold(r, *v);
            }
            *d = r;
        }
    }
    // SAFETY: guaranteed by the caller.
    let (dst, src) = unsafe {
        (
            std::slice::from_raw_parts_mut(dst.cast::<M::T>(), count),
            std::slice::from_raw_parts(src.cast::<M::T>(), count * length),
        )
    };
    match length {
        2 => fixed::<M, 2>(dst, src),
        3 => fixed::<M, 3>(dst, src),
        4 => fixed::<M, 4>(dst, src),
        8 => fixed::<M, 8>(dst, src),
        0..16 => {
            for (d, s) in dst.iter_mut().zip(src.chunks_exact(length.max(1))) {
                *d = s.iter().fold(M::IDENTITY, |a, b| M::fold(a, *b));
            }
        }
        _ => {
            for (d, s) in dst.iter_mut().zip(src.chunks_exact(length)) {
                *d = in_eight::<M>(s);
            }
        }
    }
}

/// Returns the loop of [`accumulate_body`] for the instruction set of this machine.
fn accumulate_loop<M: Monoid>() -> unsafe fn(&mut u128, *const u8, usize) {
    /// # Safety
    /// See [`accumulate_body`]; the machine must have the features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(
        enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512cd,avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c"
    )]
    unsafe fn avx512<M: Monoid>(running: &mut u128, src: *const u8, n: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { accumulate_body::<M>(running, src, n) }
    }
    /// # Safety
    /// See [`accumulate_body`]; the machine must have the features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    unsafe fn avx2<M: Monoid>(running: &mut u128, src: *const u8, n: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { accumulate_body::<M>(running, src, n) }
    }
    /// # Safety
    /// See [`accumulate_body`].
    unsafe fn baseline<M: Monoid>(running: &mut u128, src: *const u8, n: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { accumulate_body::<M>(running, src, n) }
    }
    match isa::level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::<M>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::<M>,
        _ => baseline::<M>,
    }
}

/// Returns the loop of [`segments_body`] for the instruction set of this machine.
fn segments_loop<M: Monoid>() -> unsafe fn(*mut u8, *const u8, usize, usize) {
    /// # Safety
    /// See [`segments_body`]; the machine must have the features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(
        enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512cd,avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c"
    )]
    unsafe fn avx512<M: Monoid>(dst: *mut u8, src: *const u8, count: usize, length: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { segments_body::<M>(dst, src, count, length) }
    }
    /// # Safety
    /// See [`segments_body`]; the machine must have the features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    unsafe fn avx2<M: Monoid>(dst: *mut u8, src: *const u8, count: usize, length: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { segments_body::<M>(dst, src, count, length) }
    }
    /// # Safety
    /// See [`segments_body`].
    unsafe fn baseline<M: Monoid>(dst: *mut u8, src: *const u8, count: usize, length: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { segments_body::<M>(dst, src, count, length) }
    }
    match isa::level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::<M>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::<M>,
        _ => baseline::<M>,
    }
}

fn of_monoid<M: Monoid>() -> Reducer {
    Reducer {
        accumulate: accumulate_loop::<M>(),
        segments: segments_loop::<M>(),
        merge: |running, further| *running = M::merge(M::W::of(*running), M::W::of(further)).bits(),
        value: |running| M::narrow(M::W::of(running)),
        identity: M::widen(M::IDENTITY).bits(),
    }
}

/// Returns the loops of a reduction of elements of this type, if it is supported.
pub(crate) fn reducer(op: ReduceOp, ty: ComputeType) -> Option<Reducer> {
    use ComputeType as C;
    macro_rules! integer {
        ($t:ty) => {
            match op {
                ReduceOp::Add => of_monoid::<Sum<$t>>(),
                ReduceOp::Multiply => of_monoid::<Product<$t>>(),
                ReduceOp::Maximum => of_monoid::<Max<$t>>(),
                ReduceOp::Minimum => of_monoid::<Min<$t>>(),
                ReduceOp::And => of_monoid::<And<$t>>(),
                ReduceOp::Or => of_monoid::<Or<$t>>(),
                ReduceOp::Xor => of_monoid::<Xor<$t>>(),
            }
        };
    }
    macro_rules! float {
        ($t:ty) => {
            match op {
                ReduceOp::Add => of_monoid::<Sum<$t>>(),
                ReduceOp::Multiply => of_monoid::<Product<$t>>(),
                ReduceOp::Maximum => of_monoid::<Max<$t>>(),
                ReduceOp::Minimum => of_monoid::<Min<$t>>(),
                _ => return None,
            }
        };
    }
    macro_rules! complex {
        ($t:ty) => {
            match op {
                ReduceOp::Add => of_monoid::<Sum<$t>>(),
                ReduceOp::Multiply => of_monoid::<Product<$t>>(),
                _ => return None,
            }
        };
    }
    Some(match ty {
        C::Pred => match op {
            ReduceOp::Add | ReduceOp::Maximum | ReduceOp::Or => of_monoid::<Or<u8>>(),
            ReduceOp::Xor => of_monoid::<Xor<u8>>(),
            // The identity is a boolean, not all ones.
            _ => Reducer { identity: 1, ..of_monoid::<And<u8>>() },
        },
        C::U8 => integer!(u8),
        C::U16 => integer!(u16),
        C::U32 => integer!(u32),
        C::U64 => integer!(u64),
        C::S8 => integer!(i8),
        C::S16 => integer!(i16),
        C::S32 => integer!(i32),
        C::S64 => integer!(i64),
        C::F32 => float!(f32),
        C::F64 => float!(f64),
        C::C64 => complex!([f32; 2]),
        C::C128 => complex!([f64; 2]),
    })
}
