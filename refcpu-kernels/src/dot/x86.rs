//! Vectors of f32, f64 and complex numbers for the inner kernel, with AVX-512, and with AVX2 and FMA.

use super::kernel::Arith;
use std::arch::x86_64::*;

macro_rules! avx512 {
    ($(#[doc = $doc:literal])* $name:ident, $t:ty, $v:ty, $mask:ty, $lanes:literal, $zero:ident $set1:ident $load:ident $maskz_load:ident $fma:ident $add:ident $mask_store:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        // SAFETY: loads and stores are of whole vectors, or masked to the first `n` lanes.
        unsafe impl Arith for $name {
            type Unit = $t;
            type Out = $t;
            type Units = $v;
            type Accs = $v;
            const LANES: usize = $lanes;
            const ROWS: usize = 8;
            const MASKED: bool = true;

            #[inline(always)]
            unsafe fn zero() -> $v {
                // SAFETY: the caller guarantees the instruction set.
                unsafe { $zero() }
            }
            #[inline(always)]
            unsafe fn splat(p: *const $t) -> $v {
                // SAFETY: the caller guarantees the instruction set and for `p`.
                unsafe { $set1(*p) }
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> $v {
                // SAFETY: as above, for a whole vector.
                unsafe { $load(p) }
            }
            #[inline(always)]
            unsafe fn load_part(p: *const $t, n: usize) -> $v {
                // SAFETY: as above; masked lanes are not accessed.
                unsafe { $maskz_load(((1u32 << n) - 1) as $mask, p) }
            }
            #[inline(always)]
            unsafe fn mul_acc(acc: $v, a: $v, b: $v) -> $v {
                // SAFETY: the caller guarantees the instruction set.
                unsafe { $fma(a, b, acc) }
            }
            #[inline(always)]
            unsafe fn add(a: $v, b: $v) -> $v {
                // SAFETY: as above.
                unsafe { $add(a, b) }
            }
            #[inline(always)]
            unsafe fn read(p: *const $t, n: usize) -> $v {
                // SAFETY: guaranteed by the caller.
                unsafe { Self::load_part(p, n) }
            }
            #[inline(always)]
            unsafe fn write(p: *mut $t, v: $v, n: usize) {
                // SAFETY: the caller guarantees `n` elements; masked lanes are not accessed.
                unsafe { $mask_store(p, ((1u32 << n) - 1) as $mask, v) }
            }
        }
    };
}

avx512!(
    /// 16 lanes of f32.
    F32x16, f32, __m512, __mmask16, 16,
    _mm512_setzero_ps _mm512_set1_ps _mm512_loadu_ps _mm512_maskz_loadu_ps _mm512_fmadd_ps _mm512_add_ps _mm512_mask_storeu_ps
);
avx512!(
    /// 8 lanes of f64.
    F64x8, f64, __m512d, __mmask8, 8,
    _mm512_setzero_pd _mm512_set1_pd _mm512_loadu_pd _mm512_maskz_loadu_pd _mm512_fmadd_pd _mm512_add_pd _mm512_mask_storeu_pd
);

macro_rules! avx2 {
    ($(#[doc = $doc:literal])* $name:ident, $t:ty, $v:ty, $lanes:literal, $zero:ident $set1:ident $load:ident $store:ident $fma:ident $add:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        // SAFETY: loads and stores are of whole vectors, or go through an array of which `n` elements are
        // copied.
        unsafe impl Arith for $name {
            type Unit = $t;
            type Out = $t;
            type Units = $v;
            type Accs = $v;
            const LANES: usize = $lanes;
            const ROWS: usize = 4;
            const MASKED: bool = false;

            #[inline(always)]
            unsafe fn zero() -> $v {
                // SAFETY: the caller guarantees the instruction set.
                unsafe { $zero() }
            }
            #[inline(always)]
            unsafe fn splat(p: *const $t) -> $v {
                // SAFETY: the caller guarantees the instruction set and for `p`.
                unsafe { $set1(*p) }
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> $v {
                // SAFETY: as above, for a whole vector.
                unsafe { $load(p) }
            }
            #[inline(always)]
            unsafe fn load_part(p: *const $t, n: usize) -> $v {
                let mut lanes = [0.0; $lanes];
                // SAFETY: the caller guarantees `n` elements at `p`; `n` is at most the lanes.
                unsafe {
                    std::ptr::copy_nonoverlapping(p, lanes.as_mut_ptr(), n);
                    $load(lanes.as_ptr())
                }
            }
            #[inline(always)]
            unsafe fn mul_acc(acc: $v, a: $v, b: $v) -> $v {
                // SAFETY: the caller guarantees the instruction set.
                unsafe { $fma(a, b, acc) }
            }
            #[inline(always)]
            unsafe fn add(a: $v, b: $v) -> $v {
                // SAFETY: as above.
                unsafe { $add(a, b) }
            }
            #[inline(always)]
            unsafe fn read(p: *const $t, n: usize) -> $v {
                // SAFETY: guaranteed by the caller.
                unsafe { if n == $lanes { $load(p) } else { Self::load_part(p, n) } }
            }
            #[inline(always)]
            unsafe fn write(p: *mut $t, v: $v, n: usize) {
                // SAFETY: the caller guarantees `n` elements at `p`; `n` is at most the lanes.
                unsafe {
                    if n == $lanes {
                        $store(p, v);
                    } else {
                        let mut lanes = [0.0; $lanes];
                        $store(lanes.as_mut_ptr(), v);
                        std::ptr::copy_nonoverlapping(lanes.as_ptr(), p, n);
                    }
                }
            }
        }
    };
}

avx2!(
    /// 8 lanes of f32.
    F32x8, f32, __m256, 8,
    _mm256_setzero_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_fmadd_ps _mm256_add_ps
);
avx2!(
    /// 4 lanes of f64.
    F64x4, f64, __m256d, 4,
    _mm256_setzero_pd _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_fmadd_pd _mm256_add_pd
);

/// Vectors of reals for the multiplication of complex numbers, whose real and imaginary parts alternate.
///
/// # Safety
/// See [`Arith`].
pub(crate) unsafe trait Pairs:
    Arith<Units = <Self as Arith>::Accs, Unit = <Self as Arith>::Out>
{
    /// Returns `a + i b`, where `a` and `b` contain complex numbers.
    ///
    /// # Safety
    /// The machine must have the instruction set.
    unsafe fn plus_i_times(a: Self::Accs, b: Self::Accs) -> Self::Accs;
}

macro_rules! pairs {
    ($($name:ident, $v:ty, |$a:ident, $b:ident| $e:expr;)*) => {$(
        // SAFETY: no memory is accessed.
        unsafe impl Pairs for $name {
            #[inline(always)]
            unsafe fn plus_i_times($a: $v, $b: $v) -> $v {
                // SAFETY: the caller guarantees the instruction set.
                unsafe { $e }
            }
        }
    )*};
}
pairs! {
    F32x16, __m512, |a, b| _mm512_fmaddsub_ps(a, _mm512_set1_ps(1.0), _mm512_permute_ps::<0b1011_0001>(b));
    F64x8, __m512d, |a, b| _mm512_fmaddsub_pd(a, _mm512_set1_pd(1.0), _mm512_permute_pd::<0b0101_0101>(b));
    F32x8, __m256, |a, b| _mm256_addsub_ps(a, _mm256_permute_ps::<0b1011_0001>(b));
    F64x4, __m256d, |a, b| _mm256_addsub_pd(a, _mm256_permute_pd::<0b0101>(b));
}

/// Complex numbers in vectors of reals. An accumulator is a pair: the sums of B times the real parts and of B
/// times the imaginary parts of A, which are combined when they are stored.
#[derive(Clone, Copy)]
pub(crate) struct Complex<V>(V);

// SAFETY: a complex number is two adjacent reals, and every function requests twice as many reals from `V`.
unsafe impl<V: Pairs> Arith for Complex<V> {
    type Unit = [V::Unit; 2];
    type Out = [V::Unit; 2];
    type Units = (V::Units, V::Units);
    type Accs = (V::Accs, V::Accs);
    const LANES: usize = V::LANES / 2;
    const ROWS: usize = 4;
    const MASKED: bool = V::MASKED;

    #[inline(always)]
    unsafe fn zero() -> Self::Accs {
        // SAFETY: guaranteed by the caller.
        unsafe { (V::zero(), V::zero()) }
    }
    #[inline(always)]
    unsafe fn splat(p: *const Self::Unit) -> Self::Units {
        // SAFETY: both parts of the unit at `p` are readable.
        unsafe { (V::splat(p.cast()), V::splat(p.cast::<V::Unit>().add(1))) }
    }
    #[inline(always)]
    unsafe fn load(p: *const Self::Unit) -> Self::Units {
        // SAFETY: guaranteed by the caller.
        let v = unsafe { V::load(p.cast()) };
        (v, v)
    }
    #[inline(always)]
    unsafe fn load_part(p: *const Self::Unit, n: usize) -> Self::Units {
        // SAFETY: `n` units are readable, which are twice as many reals.
        let v = unsafe { V::load_part(p.cast(), 2 * n) };
        (v, v)
    }
    #[inline(always)]
    unsafe fn mul_acc(acc: Self::Accs, a: Self::Units, b: Self::Units) -> Self::Accs {
        // SAFETY: guaranteed by the caller.
        unsafe { (V::mul_acc(acc.0, a.0, b.0), V::mul_acc(acc.1, a.1, b.0)) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::Accs, b: Self::Accs) -> Self::Accs {
        // SAFETY: guaranteed by the caller.
        unsafe { (V::add(a.0, b.0), V::add(a.1, b.1)) }
    }
    #[inline(always)]
    unsafe fn read(p: *const Self::Out, n: usize) -> Self::Accs {
        // SAFETY: as in `load_part`.
        unsafe { (V::read(p.cast(), 2 * n), V::zero()) }
    }
    #[inline(always)]
    unsafe fn write(p: *mut Self::Out, v: Self::Accs, n: usize) {
        // SAFETY: `n` elements are writable, which are twice as many reals.
        unsafe { V::write(p.cast(), V::plus_i_times(v.0, v.1), 2 * n) }
    }
}
