//! Vectors of f32 and f64 for the inner kernel, with AVX-512 and with AVX2 and FMA.

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
                // SAFETY: the caller vouches for the instruction set.
                unsafe { $zero() }
            }
            #[inline(always)]
            unsafe fn splat(p: *const $t) -> $v {
                // SAFETY: the caller vouches for the instruction set and for `p`.
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
                // SAFETY: the caller vouches for the instruction set.
                unsafe { $fma(a, b, acc) }
            }
            #[inline(always)]
            unsafe fn add(a: $v, b: $v) -> $v {
                // SAFETY: as above.
                unsafe { $add(a, b) }
            }
            #[inline(always)]
            unsafe fn read(p: *const $t, n: usize) -> $v {
                // SAFETY: the caller's contract.
                unsafe { Self::load_part(p, n) }
            }
            #[inline(always)]
            unsafe fn write(p: *mut $t, v: $v, n: usize) {
                // SAFETY: the caller vouches for `n` elements; masked lanes are not accessed.
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

        // SAFETY: loads and stores are of whole vectors, or go through an array of which `n` elements are copied.
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
                // SAFETY: the caller vouches for the instruction set.
                unsafe { $zero() }
            }
            #[inline(always)]
            unsafe fn splat(p: *const $t) -> $v {
                // SAFETY: the caller vouches for the instruction set and for `p`.
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
                // SAFETY: the caller vouches for `n` elements at `p`; `n` is at most the lanes.
                unsafe {
                    std::ptr::copy_nonoverlapping(p, lanes.as_mut_ptr(), n);
                    $load(lanes.as_ptr())
                }
            }
            #[inline(always)]
            unsafe fn mul_acc(acc: $v, a: $v, b: $v) -> $v {
                // SAFETY: the caller vouches for the instruction set.
                unsafe { $fma(a, b, acc) }
            }
            #[inline(always)]
            unsafe fn add(a: $v, b: $v) -> $v {
                // SAFETY: as above.
                unsafe { $add(a, b) }
            }
            #[inline(always)]
            unsafe fn read(p: *const $t, n: usize) -> $v {
                // SAFETY: the caller's contract.
                unsafe { if n == $lanes { $load(p) } else { Self::load_part(p, n) } }
            }
            #[inline(always)]
            unsafe fn write(p: *mut $t, v: $v, n: usize) {
                // SAFETY: the caller vouches for `n` elements at `p`; `n` is at most the lanes.
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
