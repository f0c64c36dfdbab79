//! The number types of linear algebra, and batches of matrices of them.

use crate::view::SyncPtr;
use crate::{DType, Dst, Pool, Src};
use half::{bf16, f16};
use rustfft::num_complex::Complex;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// A real or complex number. All implementors are plain data without padding.
pub(super) trait Field:
    Copy
    + Send
    + Sync
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + 'static
{
    /// The type of real and imaginary parts.
    type Real: Field<Real = Self::Real> + PartialOrd;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Not a number, in every part.
    const NAN: Self;
    /// The complex conjugate.
    fn conj(self) -> Self;
    /// The real part.
    fn re(self) -> Self::Real;
    /// The real number as one of this type.
    fn from_real(re: Self::Real) -> Self;
    /// The square root of a real number.
    fn sqrt(re: Self::Real) -> Self::Real;
    /// The squared magnitude.
    fn norm_sqr(self) -> Self::Real {
        (self * self.conj()).re()
    }
}

macro_rules! fields {
    ($($t:ident)*) => {$(
        impl Field for $t {
            type Real = $t;
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const NAN: $t = $t::NAN;
            fn conj(self) -> $t {
                self
            }
            fn re(self) -> $t {
                self
            }
            fn from_real(re: $t) -> $t {
                re
            }
            fn sqrt(re: $t) -> $t {
                re.sqrt()
            }
        }

        impl Field for Complex<$t> {
            type Real = $t;
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);
            const NAN: Self = Complex::new($t::NAN, $t::NAN);
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            fn re(self) -> $t {
                self.re
            }
            fn from_real(re: $t) -> Self {
                Complex::new(re, 0.0)
            }
            fn sqrt(re: $t) -> $t {
                re.sqrt()
            }
        }
    )*};
}
fields!(f32 f64);

/// A way to read elements as numbers of a field and to write them back.
pub(super) trait Storage: Copy + Send + Sync + 'static {
    /// What arithmetic happens in.
    type Number: Field;
    /// To a number.
    fn load(self) -> Self::Number;
    /// Rounded back.
    fn store(n: Self::Number) -> Self;
}

macro_rules! direct {
    ($($t:ty)*) => {$(
        impl Storage for $t {
            type Number = $t;
            fn load(self) -> $t {
                self
            }
            fn store(n: $t) -> $t {
                n
            }
        }
    )*};
}
direct!(f32 f64 Complex<f32> Complex<f64>);

macro_rules! narrow {
    ($($t:ty)*) => {$(
        impl Storage for $t {
            type Number = f32;
            fn load(self) -> f32 {
                self.to_f32()
            }
            fn store(n: f32) -> $t {
                <$t>::from_f32(n)
            }
        }
    )*};
}
narrow!(f16 bf16);

/// Calls `$f::<S>($args)` with the [`Storage`] of a type.
macro_rules! by_storage {
    ($what:literal, $dtype:expr, $f:ident($($arg:expr),*)) => {
        match $dtype {
            $crate::DType::F16 => $f::<half::f16>($($arg),*),
            $crate::DType::BF16 => $f::<half::bf16>($($arg),*),
            $crate::DType::F32 => $f::<f32>($($arg),*),
            $crate::DType::F64 => $f::<f64>($($arg),*),
            $crate::DType::C64 => $f::<rustfft::num_complex::Complex<f32>>($($arg),*),
            $crate::DType::C128 => $f::<rustfft::num_complex::Complex<f64>>($($arg),*),
            other => panic!(concat!($what, ": no {:?} matrices"), other),
        }
    };
}
pub(super) use by_storage;

/// A batch of arrays of `len` elements that is read.
#[derive(Clone, Copy)]
pub(super) struct BatchIn<S> {
    ptr: SyncPtr,
    len: usize,
    count: usize,
    storage: std::marker::PhantomData<S>,
}

/// A batch of arrays of `len` elements that is written.
#[derive(Clone, Copy)]
pub(super) struct BatchOut<S> {
    ptr: SyncPtr,
    len: usize,
    count: usize,
    storage: std::marker::PhantomData<S>,
}

impl<S: Storage> BatchIn<S> {
    /// Cuts `src` into arrays of `len` elements. `src` must outlive the value.
    ///
    /// # Panics
    /// If `S` does not have the element's size.
    pub(super) fn new(src: &Src<'_>, len: usize) -> Self {
        assert_eq!(size_of::<S>(), src.dtype().size());
        let count = if len == 0 { 0 } else { src.len() / len };
        Self {
            ptr: SyncPtr::from_raw(src.as_ptr().cast_mut()),
            len,
            count,
            storage: std::marker::PhantomData,
        }
    }

    /// Reads one array.
    ///
    /// # Safety
    /// The source that this was made of still lives, and is of the type that `S` stands for.
    pub(super) unsafe fn load(&self, index: usize, to: &mut [S::Number]) {
        assert!(index < self.count && to.len() == self.len);
        // SAFETY: the array was cut off a live source (the caller's contract) within its bounds (checked above).
        let from =
            unsafe { std::slice::from_raw_parts(self.ptr.get().cast::<S>().add(index * self.len), self.len) };
        for (t, f) in to.iter_mut().zip(from) {
            *t = f.load();
        }
    }
}

impl<S: Storage> BatchOut<S> {
    /// Cuts `dst` into arrays of `len` elements. `dst` must outlive the value.
    ///
    /// # Panics
    /// If `S` does not have the element's size.
    pub(super) fn new(dst: &mut Dst<'_>, len: usize) -> Self {
        assert_eq!(size_of::<S>(), dst.dtype().size());
        let count = if len == 0 { 0 } else { dst.len() / len };
        Self { ptr: SyncPtr::new(dst), len, count, storage: std::marker::PhantomData }
    }

    /// Writes one array.
    ///
    /// # Safety
    /// The destination that this was made of still lives, is of the type that `S` stands for, and no other thread is
    /// writing the same array.
    pub(super) unsafe fn store(&self, index: usize, from: &[S::Number]) {
        assert!(index < self.count && from.len() == self.len);
        // SAFETY: the array was cut off a live destination within its bounds and is ours alone (the caller's contract).
        let to = unsafe {
            std::slice::from_raw_parts_mut(self.ptr.get().cast::<S>().add(index * self.len), self.len)
        };
        for (t, f) in to.iter_mut().zip(from) {
            *t = S::store(*f);
        }
    }
}

/// Splits dimensions into a batch and the rows and columns of its matrices.
#[track_caller]
pub(super) fn matrix_dims<'a>(what: &str, dtype: DType, dims: &'a [usize]) -> (&'a [usize], usize, usize) {
    assert!(dims.len() >= 2, "{what}: {dtype:?}{dims:?} is no matrix");
    let (batch, matrix) = dims.split_at(dims.len() - 2);
    (batch, matrix[0], matrix[1])
}

/// Calls `work` for each of `count` matrices: together in chunks where one matrix is little work.
pub(super) fn for_each_matrix(
    pool: &Pool,
    count: usize,
    operations_each: usize,
    work: &(dyn Fn(std::ops::Range<usize>) + Sync),
) {
    const OPERATIONS_PER_CHUNK: usize = 50_000;
    let part = (OPERATIONS_PER_CHUNK / operations_each.max(1)).max(1);
    pool.run(count.div_ceil(part), &|chunk| work(chunk * part..count.min((chunk + 1) * part)));
}
