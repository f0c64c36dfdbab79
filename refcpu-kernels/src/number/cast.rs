//! Conversions of element types for the inputs and outputs of the reducing kernels.

use super::Accumulator;
use super::Number;
use crate::convert::{self, Narrow, with_narrow};
use crate::scratch::Scratch;
use crate::{DType, Src};
use half::{bf16, f16};

/// An element type that is converted to another when a block is packed.
pub(crate) trait Load<U>: Copy + Send + Sync + 'static {
    /// `true` if both types are the same.
    const SAME: bool = false;
    /// Returns the converted value.
    fn load(self) -> U;
}

macro_rules! loads {
    ($($u:ty: $($t:ty),*;)*) => {$($(
        impl Load<$u> for $t {
            const SAME: bool = is_same(stringify!($u), stringify!($t));
            #[inline(always)]
            fn load(self) -> $u { self as $u }
        }
    )*)*};
}
/// Compares type names at compile time.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
loads! {
    f32: f32;
    u8: u8;
    i8: i8;
    u16: u16;
    i16: i16;
    u32: u32;
    u64: u64;
    f64: f64, f32;
    i32: i32, i8, u8;
    i64: i64;
}
impl Load<f32> for bf16 {
    #[inline(always)]
    fn load(self) -> f32 {
        self.widen()
    }
}
impl Load<f32> for f16 {
    #[inline(always)]
    fn load(self) -> f32 {
        self.widen()
    }
}
impl Load<[f32; 2]> for [f32; 2] {
    const SAME: bool = true;
    #[inline(always)]
    fn load(self) -> [f32; 2] {
        self
    }
}
impl Load<[f64; 2]> for [f64; 2] {
    const SAME: bool = true;
    #[inline(always)]
    fn load(self) -> [f64; 2] {
        self
    }
}

/// A type that whole arrays are converted to, for operands of mixed types.
pub(crate) trait Target: Accumulator {
    /// Returns the elements of `src`, which must not be complex if this type is not.
    fn array_of(src: Src<'_>) -> Scratch;

    /// Returns the function that stores values as elements of a type of the same kind (float, integer,
    /// complex) that is not wider, or `None` if the elements are values of this type.
    fn store(dtype: DType) -> Option<Store<Self>>;
}

macro_rules! targets {
    ($($u:ty: $x:ident => $real:expr, $z:ident => $complex:expr, $d:ident => $store:expr;)*) => {$(
        impl Target for $u {
            fn array_of(src: Src<'_>) -> Scratch {
                let mut scratch = Scratch::new::<$u>(src.len());
                // SAFETY: the scratch memory has room for this number of elements, and zero bits are a value
                // of the type.
                let out = unsafe {
                    std::ptr::write_bytes(scratch.ptr::<$u>(), 0, src.len());
                    std::slice::from_raw_parts_mut(scratch.ptr::<$u>(), src.len())
                };
                macro_rules! real {
                    ($t:ty) => {
                        for (o, s) in out.iter_mut().zip(src.as_slice::<$t>()) {
                            let $x = s.widen();
                            *o = $real;
                        }
                    };
                }
                macro_rules! complex {
                    ($t:ty) => {
                        for (o, $z) in out.iter_mut().zip(src.as_slice::<$t>()) {
                            *o = $complex;
                        }
                    };
                }
                match src.dtype() {
                    DType::Pred | DType::U2 | DType::U4 | DType::U8 => real!(u8),
                    DType::S2 | DType::S4 | DType::S8 => real!(i8),
                    DType::S16 => real!(i16),
                    DType::S32 => real!(i32),
                    DType::S64 => real!(i64),
                    DType::U16 => real!(u16),
                    DType::U32 => real!(u32),
                    DType::U64 => real!(u64),
                    DType::F16 => real!(f16),
                    DType::BF16 => real!(bf16),
                    DType::F32 => real!(f32),
                    DType::F64 => real!(f64),
                    DType::C64 => complex!([f32; 2]),
                    DType::C128 => complex!([f64; 2]),
                    small => {
                        let table = small_float_values(small);
                        for (o, s) in out.iter_mut().zip(src.bytes()) {
                            let $x = table[usize::from(*s)];
                            *o = $real;
                        }
                    }
                }
                scratch
            }

            fn store($d: DType) -> Option<Store<Self>> {
                let row: Option<RowStore<$u>> = $store;
                row.map(|row| Store { row, size: $d.size() })
            }
        }
    )*};
}
targets! {
    f32: x => x as f32, z => z[0] as f32, d => store_f32(d);
    f64: x => x as f64, z => z[0] as f64, d => match d {
        DType::F64 => None,
        DType::F32 => Some(f64_as_f32),
        small => Some(f64_by_f32(small)),
    };
    i32: x => x as i32, z => z[0] as i32, d => match d {
        DType::S32 | DType::U32 => None,
        DType::S16 | DType::U16 => Some(i32_as_i16),
        DType::S4 => Some(i32_as_i4),
        DType::S2 => Some(i32_as_i2),
        DType::U4 => Some(i32_as_u4),
        DType::U2 => Some(i32_as_u2),
        DType::Pred => Some(i32_as_pred),
        _ => Some(i32_as_i8),
    };
    i64: x => x as i64, z => z[0] as i64, d => (d.size() == 4).then_some(i64_as_i32);
    [f32; 2]: x => [x as f32, 0.0], z => [z[0] as f32, z[1] as f32], d => { let _ = d; None };
    [f64; 2]: x => [x as f64, 0.0], z => [z[0] as f64, z[1] as f64], d => (d == DType::C64).then_some(c128_as_c64);
}

/// Returns the values of all 256 bytes as elements of a 4-, 6- or 8-bit float type.
pub(crate) fn small_float_values(dtype: DType) -> [f32; 256] {
    std::array::from_fn(|i| convert::narrow_to_f32(dtype, i as u16).expect("a small float type"))
}

/// Rounds and stores a number of accumulators. The function is unsafe because it takes raw pointers.
pub(crate) type RowStore<U> = unsafe fn(*const U, *mut u8, usize);

/// Rounds results to the array's element type.
#[derive(Clone, Copy)]
pub(crate) struct Store<U> {
    /// Stores a number of results at an address.
    pub row: RowStore<U>,
    /// The size of an element of the array in bytes.
    pub size: usize,
}

/// Rounds `n` accumulators to elements of type `T`.
///
/// # Safety
/// `n` elements must be readable at `src` and writable at `dst`.
unsafe fn narrow_row<T: Number>(src: *const T::Acc, dst: *mut u8, n: usize) {
    for i in 0..n {
        // SAFETY: guaranteed by the caller.
        unsafe { *dst.cast::<T>().add(i) = T::narrow(*src.add(i)) };
    }
}

/// The same as [`narrow_row`], for the floats of one byte.
///
/// # Safety
/// See [`narrow_row`].
unsafe fn encode_row<N: Narrow>(src: *const f32, dst: *mut u8, n: usize) {
    for i in 0..n {
        // SAFETY: guaranteed by the caller.
        unsafe { *dst.add(i) = N::encode(*src.add(i)) as u8 };
    }
}

/// Returns the function that stores f32 accumulators as elements of a float type whose values f32 represents
/// exactly, or `None` for f32 itself.
pub(crate) fn store_f32(dtype: DType) -> Option<RowStore<f32>> {
    macro_rules! row {
        ($n:ty, $b:ty) => {
            encode_row::<$n> as RowStore<f32>
        };
    }
    match dtype {
        DType::F32 => None,
        DType::F16 => Some(narrow_row::<f16>),
        DType::BF16 => Some(narrow_row::<bf16>),
        small => with_narrow!(small, row),
    }
}

macro_rules! stores {
    ($($name:ident: $u:ty as $t:ty, $x:ident => $e:expr;)*) => {$(
        /// Rounds `n` accumulators to elements of another type.
        ///
        /// # Safety
        /// `n` elements must be readable at `src` and writable at `dst`.
        unsafe fn $name(src: *const $u, dst: *mut u8, n: usize) {
            for i in 0..n {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let $x = *src.add(i);
                    *dst.cast::<$t>().add(i) = $e;
                }
            }
        }
    )*};
}
stores! {
    f64_as_f32: f64 as f32, x => x as f32;
    c128_as_c64: [f64; 2] as [f32; 2], x => [x[0] as f32, x[1] as f32];
    i64_as_i32: i64 as i32, x => x as i32;
    i32_as_i16: i32 as i16, x => x as i16;
    i32_as_i8: i32 as i8, x => x as i8;
    i32_as_i4: i32 as i8, x => (x as i8) << 4 >> 4;
    i32_as_i2: i32 as i8, x => (x as i8) << 6 >> 6;
    i32_as_u4: i32 as u8, x => x as u8 & 15;
    i32_as_u2: i32 as u8, x => x as u8 & 3;
    i32_as_pred: i32 as u8, x => u8::from(x != 0);
}
/// Returns the function that rounds accumulators from f64 to f32 and then to types that are much narrower
/// than f32.
fn f64_by_f32(dtype: DType) -> unsafe fn(*const f64, *mut u8, usize) {
    macro_rules! via {
        ($n:ty, $b:ty) => {{
            /// Rounds `n` accumulators to elements of another type.
            ///
            /// # Safety
            /// `n` elements must be readable at `src` and writable at `dst`.
            unsafe fn row(src: *const f64, dst: *mut u8, n: usize) {
                for i in 0..n {
                    // SAFETY: guaranteed by the caller.
                    unsafe { *dst.cast::<$b>().add(i) = <$n>::encode(*src.add(i) as f32) as $b };
                }
            }
            row as unsafe fn(*const f64, *mut u8, usize)
        }};
    }
    with_narrow!(dtype, via).expect("a narrow float")
}
