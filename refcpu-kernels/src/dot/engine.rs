//! The selection of the inner kernel for a type on this machine.

use super::kernel::{Arith, Block, Portable, block};
use crate::isa::{self, Level};
use crate::number::Accumulator;

/// An inner kernel, and the properties that its callers need.
#[derive(Clone, Copy)]
pub(crate) struct Engine<U, O> {
    /// The function that computes a block. It is safe to call under the conditions of [`block`].
    pub block: unsafe fn(&Block<U, O>),
    /// The number of columns per vector.
    pub lanes: usize,
    /// The number of rows per full tile.
    pub rows: usize,
    /// `true` if B need not be padded to whole vectors.
    pub masked: bool,
}

impl<U, O> Engine<U, O> {
    /// # Safety
    /// `f` must be [`block`] for `K`, on a machine that has `K`'s instruction set.
    unsafe fn new<K: Arith<Unit = U, Out = O>>(f: unsafe fn(&Block<U, O>)) -> Self {
        Self { block: f, lanes: K::LANES, rows: K::ROWS, masked: K::MASKED }
    }
}

/// A type in which matrix products are computed.
pub(crate) trait Compute: Accumulator {
    /// Returns the best inner kernel for the type on this machine.
    fn engine() -> Engine<Self, Self>;
}

macro_rules! engines {
    ($($t:ty: $avx512:ty, $avx2:ty, $baseline:ty;)*) => {$(
        impl Compute for $t {
            fn engine() -> Engine<Self, Self> {
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512cd,avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
                unsafe fn avx512(b: &Block<$t, $t>) {
                    // SAFETY: the conditions are those of `block`, which the caller guarantees, and the
                    // features are enabled here.
                    unsafe { block::<$avx512>(b) }
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
                unsafe fn avx2(b: &Block<$t, $t>) {
                    // SAFETY: as above.
                    unsafe { block::<$avx2>(b) }
                }
                unsafe fn baseline(b: &Block<$t, $t>) {
                    // SAFETY: as above; no instruction set is needed.
                    unsafe { block::<$baseline>(b) }
                }
                // SAFETY: each function is `block` for the arithmetic named with it, and `level` returns what
                // the machine supports.
                unsafe {
                    match isa::level() {
                        #[cfg(target_arch = "x86_64")]
                        Level::Avx512 => Engine::new::<$avx512>(avx512),
                        #[cfg(target_arch = "x86_64")]
                        Level::Avx2 => Engine::new::<$avx2>(avx2),
                        _ => Engine::new::<$baseline>(baseline),
                    }
                }
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
use super::x86::{Complex, F32x8, F32x16, F64x4, F64x8};

engines! {
    f32: F32x16, F32x8, Portable<f32, 4>;
    f64: F64x8, F64x4, Portable<f64, 2>;
    i32: Portable<i32, 16>, Portable<i32, 8>, Portable<i32, 4>;
    i64: Portable<i64, 8>, Portable<i64, 4>, Portable<i64, 2>;
    [f32; 2]: Complex<F32x16>, Complex<F32x8>, Portable<[f32; 2], 2>;
    [f64; 2]: Complex<F64x8>, Complex<F64x4>, Portable<[f64; 2], 1>;
}
