//! f16 by the processor's own conversion instructions (F16C), which are several times faster than bit
//! arithmetic.

use crate::convert::{F16, Narrow};
use std::arch::x86_64::{
    __m128i, _MM_FROUND_TO_NEAREST_INT, _mm_cvtph_ps, _mm_cvtsi32_si128, _mm_cvtss_f32, _mm_loadu_si128,
    _mm_storeu_si128, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
};

/// Computes the values of f16 bits.
///
/// # Safety
/// See [`super::Kernel::call`]; the machine must have F16C and AVX2.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn decode(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
    let (dst, a) = (dst.cast::<f32>(), a.cast::<u16>());
    let whole = n & !7;
    // SAFETY: guaranteed by the caller: `n` elements, eight or one at a time.
    unsafe {
        for i in (0..whole).step_by(8) {
            _mm256_storeu_ps(dst.add(i), _mm256_cvtph_ps(_mm_loadu_si128(a.add(i).cast::<__m128i>())));
        }
        for i in whole..n {
            // `F16` is not used, because it leaves NaNs signaling, whereas the instruction makes them quiet.
            *dst.add(i) = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(*a.add(i)))));
        }
    }
}

/// Computes the bits of the nearest f16.
///
/// # Safety
/// See [`super::Kernel::call`]; the machine must have F16C and AVX2.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn encode(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
    let (dst, a) = (dst.cast::<u16>(), a.cast::<f32>());
    let whole = n & !7;
    // SAFETY: as in `decode`.
    unsafe {
        for i in (0..whole).step_by(8) {
            let bits = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(a.add(i)));
            _mm_storeu_si128(dst.add(i).cast::<__m128i>(), bits);
        }
        for i in whole..n {
            *dst.add(i) = F16::encode(*a.add(i)) as u16;
        }
    }
}

/// Computes the nearest number that f16 represents.
///
/// # Safety
/// See [`super::Kernel::call`]; the machine must have F16C and AVX2.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn round(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
    let (dst, a) = (dst.cast::<f32>(), a.cast::<f32>());
    let whole = n & !7;
    // SAFETY: as in `decode`.
    unsafe {
        for i in (0..whole).step_by(8) {
            let bits = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(a.add(i)));
            _mm256_storeu_ps(dst.add(i), _mm256_cvtph_ps(bits));
        }
        for i in whole..n {
            *dst.add(i) = F16::decode(F16::encode(*a.add(i)));
        }
    }
}
