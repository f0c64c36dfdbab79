//! The shapes of loops, instantiated for each instruction set.

use super::Kernel;
use crate::isa::{self, Isa, Level};

/// An elementwise function of one operand.
pub(super) trait Unary {
    /// The operand.
    type A: Copy;
    /// The result.
    type R: Copy;
    /// Computes the function.
    fn apply<I: Isa>(a: Self::A) -> Self::R;
    /// `true` if `apply` is incorrect for some operands, for which [`Self::is_slow`] returns `true`.
    const HAS_SLOW: bool = false;
    /// Returns `true` if the operand requires [`Self::slow`].
    #[inline(always)]
    fn is_slow(_: Self::A) -> bool {
        false
    }
    /// Computes the function for operands for which [`Self::is_slow`] returns `true`.
    fn slow(a: Self::A) -> Self::R {
        Self::apply::<isa::Baseline>(a)
    }
}

/// An elementwise function of two operands.
pub(super) trait Binary {
    /// The first operand.
    type A: Copy;
    /// The second operand.
    type B: Copy;
    /// The result.
    type R: Copy;
    /// Computes the function.
    fn apply<I: Isa>(a: Self::A, b: Self::B) -> Self::R;
    /// `true` if `apply` is incorrect for some operands, for which [`Self::is_slow`] returns `true`.
    const HAS_SLOW: bool = false;
    /// Returns `true` if the operands require [`Self::slow`].
    #[inline(always)]
    fn is_slow(_: Self::A, _: Self::B) -> bool {
        false
    }
    /// Computes the function for operands for which [`Self::is_slow`] returns `true`.
    fn slow(a: Self::A, b: Self::B) -> Self::R {
        Self::apply::<isa::Baseline>(a, b)
    }
}

/// An elementwise function of three operands.
pub(super) trait Ternary {
    /// The first operand.
    type A: Copy;
    /// The second operand.
    type B: Copy;
    /// The third operand.
    type C: Copy;
    /// The result.
    type R: Copy;
    /// Computes the function.
    fn apply<I: Isa>(a: Self::A, b: Self::B, c: Self::C) -> Self::R;
}

/// Returns the operands of a loop: `n` elements, or one for all if its bit in the mask `M` is set.
///
/// # Safety
/// See [`Kernel::call`].
#[inline(always)]
unsafe fn operand<'a, T: Copy>(p: *const u8, n: usize, scalar: bool) -> &'a [T] {
    // SAFETY: guaranteed by the caller: this many elements are readable.
    unsafe { std::slice::from_raw_parts(p.cast(), if scalar { 1 } else { n }) }
}

/// # Safety
/// See [`Kernel::call`].
#[inline(always)]
unsafe fn result<'a, T: Copy>(p: *mut u8, n: usize) -> &'a mut [T] {
    // SAFETY: guaranteed by the caller: this many elements are writable, initialized, and overlap no source.
    unsafe { std::slice::from_raw_parts_mut(p.cast(), n) }
}

/// # Safety
/// See [`Kernel::call`].
#[inline(always)]
unsafe fn unary_body<I: Isa, O: Unary>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
    // SAFETY: guaranteed by the caller.
    let (dst, a) = unsafe { (result::<O::R>(dst, n), operand::<O::A>(a, n, false)) };
    for (d, a) in dst.iter_mut().zip(a) {
        *d = O::apply::<I>(*a);
    }
    if O::HAS_SLOW && a.iter().fold(false, |any, a| any | O::is_slow(*a)) {
        for (d, a) in dst.iter_mut().zip(a) {
            if O::is_slow(*a) {
                *d = O::slow(*a);
            }
        }
    }
}

/// # Safety
/// See [`Kernel::call`].
#[inline(always)]
unsafe fn binary_body<I: Isa, O: Binary, const M: u8>(
    dst: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
    n: usize,
) {
    // SAFETY: guaranteed by the caller.
    let (dst, a, b) = unsafe {
        (result::<O::R>(dst, n), operand::<O::A>(a, n, M & 1 != 0), operand::<O::B>(b, n, M & 2 != 0))
    };
    match M {
        0 => {
            for (d, (a, b)) in dst.iter_mut().zip(a.iter().zip(b)) {
                *d = O::apply::<I>(*a, *b);
            }
        }
        1 => {
            let a = a[0];
            for (d, b) in dst.iter_mut().zip(b) {
                *d = O::apply::<I>(a, *b);
            }
        }
        _ => {
            let b = b[0];
            for (d, a) in dst.iter_mut().zip(a) {
                *d = O::apply::<I>(*a, b);
            }
        }
    }
    if O::HAS_SLOW {
        let at = |i: usize| (a[if M & 1 != 0 { 0 } else { i }], b[if M & 2 != 0 { 0 } else { i }]);
        let mut any = false;
        for i in 0..n {
            let (a, b) = at(i);
            any |= O::is_slow(a, b);
        }
        if any {
            for (i, d) in dst.iter_mut().enumerate() {
                let (a, b) = at(i);
                if O::is_slow(a, b) {
                    *d = O::slow(a, b);
                }
            }
        }
    }
}

/// # Safety
/// See [`Kernel::call`].
#[inline(always)]
unsafe fn ternary_body<I: Isa, O: Ternary, const M: u8>(
    dst: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
    n: usize,
) {
    // SAFETY: guaranteed by the caller.
    let (dst, a, b, c) = unsafe {
        (
            result::<O::R>(dst, n),
            operand::<O::A>(a, n, M & 1 != 0),
            operand::<O::B>(b, n, M & 2 != 0),
            operand::<O::C>(c, n, M & 4 != 0),
        )
    };
    match M {
        0 => {
            for ((d, a), (b, c)) in dst.iter_mut().zip(a).zip(b.iter().zip(c)) {
                *d = O::apply::<I>(*a, *b, *c);
            }
        }
        2 => {
            let b = b[0];
            for ((d, a), c) in dst.iter_mut().zip(a).zip(c) {
                *d = O::apply::<I>(*a, b, *c);
            }
        }
        4 => {
            let c = c[0];
            for ((d, a), b) in dst.iter_mut().zip(a).zip(b) {
                *d = O::apply::<I>(*a, *b, c);
            }
        }
        5 => {
            let (a, c) = (a[0], c[0]);
            for (d, b) in dst.iter_mut().zip(b) {
                *d = O::apply::<I>(a, *b, c);
            }
        }
        _ => {
            let (b, c) = (b[0], c[0]);
            for (d, a) in dst.iter_mut().zip(a) {
                *d = O::apply::<I>(*a, b, c);
            }
        }
    }
}

macro_rules! instantiate {
    ($(#[$meta:meta])* $name:ident, $body:ident, $bound:ident $(, $m:ident)?) => {
        $(#[$meta])*
        pub(super) fn $name<O: $bound $(, const $m: u8)?>() -> Kernel {
            /// # Safety
            /// See [`Kernel::call`]; the machine must have the features.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512cd,avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
            unsafe fn avx512<O: $bound $(, const $m: u8)?>(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
                // SAFETY: guaranteed by the caller.
                unsafe { $body::<isa::Avx512, O $(, $m)?>(d, a, b, c, n) }
            }
            /// # Safety
            /// See [`Kernel::call`]; the machine must have the features.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
            unsafe fn avx2<O: $bound $(, const $m: u8)?>(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
                // SAFETY: guaranteed by the caller.
                unsafe { $body::<isa::Avx2, O $(, $m)?>(d, a, b, c, n) }
            }
            /// # Safety
            /// See [`Kernel::call`].
            unsafe fn baseline<O: $bound $(, const $m: u8)?>(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
                // SAFETY: guaranteed by the caller.
                unsafe { $body::<isa::Baseline, O $(, $m)?>(d, a, b, c, n) }
            }
            match isa::level() {
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => Kernel(avx512::<O $(, $m)?>),
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => Kernel(avx2::<O $(, $m)?>),
                _ => Kernel(baseline::<O $(, $m)?>),
            }
        }
    };
}

instantiate!(
    /// The loop of a function of one operand.
    unary, unary_body, Unary
);
instantiate!(
    /// The loop of a function of two operands, those in mask `M` scalars.
    binary_masked, binary_body, Binary, M
);
instantiate!(
    /// The loop of a function of three operands, those in mask `M` scalars.
    ternary_masked, ternary_body, Ternary, M
);

/// Returns the loop of a function of two operands, of which those in `mask` are scalars.
pub(super) fn binary<O: Binary>(mask: u8) -> Option<Kernel> {
    match mask {
        0 => Some(binary_masked::<O, 0>()),
        1 => Some(binary_masked::<O, 1>()),
        2 => Some(binary_masked::<O, 2>()),
        _ => None,
    }
}

/// # Safety
/// See [`Kernel::call`].
unsafe fn plain_unary_body<O: Unary>(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { unary_body::<isa::Baseline, O>(d, a, b, c, n) }
}

/// Returns the loop of a function of one operand that does not vectorize, for every instruction set.
pub(super) fn plain_unary<O: Unary>() -> Option<Kernel> {
    Some(Kernel(plain_unary_body::<O>))
}

/// # Safety
/// See [`Kernel::call`].
unsafe fn plain_binary_body<O: Binary>(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { binary_body::<isa::Baseline, O, 0>(d, a, b, c, n) }
}

/// Returns the loop of a function of two operands that does not vectorize, for every instruction set.
pub(super) fn plain_binary<O: Binary>(mask: u8) -> Option<Kernel> {
    (mask == 0).then_some(Kernel(plain_binary_body::<O>))
}
