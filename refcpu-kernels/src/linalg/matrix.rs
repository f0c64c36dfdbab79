//! The number types of linear algebra, and batches of matrices of these types.

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
    type Real: Real;
    /// The type of complex numbers with such parts.
    type Complex: Field<Real = Self::Real, Complex = Self::Complex>;
    /// `true` if the numbers have imaginary parts.
    const IS_COMPLEX: bool;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// NaN in every part.
    const NAN: Self;
    /// Returns the complex conjugate.
    fn conj(self) -> Self;
    /// Returns the real part.
    fn re(self) -> Self::Real;
    /// Returns the imaginary part.
    fn im(self) -> Self::Real;
    /// Returns the real number as one of this type.
    fn from_real(re: Self::Real) -> Self;
    /// Returns the imaginary number `im * i`; zero if there are no imaginary parts.
    fn imaginary(im: Self::Real) -> Self;
    /// Returns the complex number of these parts.
    fn complex(re: Self::Real, im: Self::Real) -> Self::Complex;
    /// Returns the square root of a real number.
    fn sqrt(re: Self::Real) -> Self::Real {
        re.root()
    }
    /// Returns the squared magnitude.
    fn norm_sqr(self) -> Self::Real {
        (self * self.conj()).re()
    }
    /// Returns the magnitude, without intermediate overflow.
    fn abs(self) -> Self::Real {
        if Self::IS_COMPLEX { self.re().hypot(self.im()) } else { self.re().magnitude() }
    }
    /// Returns the sum of the parts' magnitudes, which LAPACK compares pivots by.
    fn abs1(self) -> Self::Real {
        self.re().magnitude() + self.im().magnitude()
    }
    /// Returns the product with a real number.
    fn scale(self, by: Self::Real) -> Self {
        self * Self::from_real(by)
    }
    /// Returns the quotient, without intermediate overflow.
    fn over(self, by: Self) -> Self {
        self / by
    }
    /// Returns the same number as a complex one.
    fn to_complex(self) -> Self::Complex {
        Self::complex(self.re(), self.im())
    }
    /// Returns `true` unless a part is infinite or NaN.
    fn is_finite(self) -> bool {
        self.re().is_number() && self.im().is_number()
    }
}

/// A real number.
pub(super) trait Real: Field<Real = Self> + PartialOrd {
    /// Distance from 1 to the next number.
    const EPSILON: Self;
    /// The least normal number.
    const TINY: Self;
    /// Returns the nearest number.
    fn from_f64(v: f64) -> Self;
    /// Returns the absolute value.
    fn magnitude(self) -> Self;
    /// Returns the square root.
    fn root(self) -> Self;
    /// Returns `sqrt(self^2 + other^2)`, without intermediate overflow.
    fn hypot(self, other: Self) -> Self;
    /// Returns the magnitude of this number with the sign of another.
    fn with_sign(self, of: Self) -> Self;
    /// Returns the exponent of two: `2^exponent <= |self| < 2^(exponent + 1)`.
    fn exponent(self) -> i32;
    /// Returns two to this power.
    fn power_of_two(exponent: i32) -> Self;
    /// Returns `true` unless the value is infinite or NaN.
    fn is_number(self) -> bool;
    /// Returns the lesser one.
    fn least(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
    /// Returns the greater one.
    fn most(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

macro_rules! fields {
    ($($t:ident)*) => {$(
        impl Field for $t {
            type Real = $t;
            type Complex = Complex<$t>;
            const IS_COMPLEX: bool = false;
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const NAN: $t = $t::NAN;
            fn conj(self) -> $t {
                self
            }
            fn re(self) -> $t {
                self
            }
            fn im(self) -> $t {
                0.0
            }
            fn from_real(re: $t) -> $t {
                re
            }
            fn imaginary(_: $t) -> $t {
                0.0
            }
            fn complex(re: $t, im: $t) -> Complex<$t> {
                Complex::new(re, im)
            }
        }

        impl Field for Complex<$t> {
            type Real = $t;
            type Complex = Self;
            const IS_COMPLEX: bool = true;
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);
            const NAN: Self = Complex::new($t::NAN, $t::NAN);
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            fn re(self) -> $t {
                self.re
            }
            fn im(self) -> $t {
                self.im
            }
            fn from_real(re: $t) -> Self {
                Complex::new(re, 0.0)
            }
            fn imaginary(im: $t) -> Self {
                Complex::new(0.0, im)
            }
            fn complex(re: $t, im: $t) -> Self {
                Complex::new(re, im)
            }
            fn scale(self, by: $t) -> Self {
                Complex::new(self.re * by, self.im * by)
            }
            fn over(self, by: Self) -> Self {
                let size = by.abs1();
                Complex::new(self.re / size, self.im / size) / Complex::new(by.re / size, by.im / size)
            }
        }

        impl Real for $t {
            const EPSILON: $t = $t::EPSILON;
            const TINY: $t = $t::MIN_POSITIVE;
            fn from_f64(v: f64) -> $t {
                v as $t
            }
            fn magnitude(self) -> $t {
                $t::abs(self)
            }
            fn root(self) -> $t {
                $t::sqrt(self)
            }
            fn hypot(self, other: $t) -> $t {
                $t::hypot(self, other)
            }
            fn with_sign(self, of: $t) -> $t {
                self.copysign(of)
            }
            fn exponent(self) -> i32 {
                self.abs().log2().floor() as i32
            }
            fn power_of_two(exponent: i32) -> $t {
                (2.0 as $t).powi(exponent)
            }
            fn is_number(self) -> bool {
                self.is_finite()
            }
        }
    )*};
}
fields!(f32 f64);

/// A way to read elements as numbers of a field and to write them back.
pub(super) trait Storage: Copy + Send + Sync + 'static {
    /// The type in which arithmetic is performed.
    type Number: Field;
    /// The type in which real parts are stored.
    type Real: Storage<Number = <Self::Number as Field>::Real>;
    /// The type in which complex numbers with such parts are stored.
    type Complex: Storage<Number = <Self::Number as Field>::Complex>;
    /// Converts the value to a number.
    fn load(self) -> Self::Number;
    /// Rounds the number to this type.
    fn store(n: Self::Number) -> Self;
}

macro_rules! direct {
    ($($t:ty, $real:ty, $complex:ty;)*) => {$(
        impl Storage for $t {
            type Number = $t;
            type Real = $real;
            type Complex = $complex;
            fn load(self) -> $t {
                self
            }
            fn store(n: $t) -> $t {
                n
            }
        }
    )*};
}
direct! {
    f32, f32, Complex<f32>;
    f64, f64, Complex<f64>;
    Complex<f32>, f32, Complex<f32>;
    Complex<f64>, f64, Complex<f64>;
}

macro_rules! narrow {
    ($($t:ty)*) => {$(
        impl Storage for $t {
            type Number = f32;
            type Real = $t;
            type Complex = Complex<f32>;
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
    ($what:literal, $dtype:expr, $($f:ident)::+($($arg:expr),*)) => {
        match $dtype {
            $crate::DType::F16 => $($f)::+::<half::f16>($($arg),*),
            $crate::DType::BF16 => $($f)::+::<half::bf16>($($arg),*),
            $crate::DType::F32 => $($f)::+::<f32>($($arg),*),
            $crate::DType::F64 => $($f)::+::<f64>($($arg),*),
            $crate::DType::C64 => $($f)::+::<rustfft::num_complex::Complex<f32>>($($arg),*),
            $crate::DType::C128 => $($f)::+::<rustfft::num_complex::Complex<f64>>($($arg),*),
            other => panic!(concat!($what, ": matrices of {:?} are not supported"), other),
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
    /// Panics if `S` does not have the element's size.
    pub(super) fn new(src: &Src<'_>, len: usize) -> Self {
        assert_eq!(size_of::<S>(), src.dtype().size());
        let count = src.len().checked_div(len).unwrap_or(0);
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
    /// The source that this value was created from must still exist, and must have the type that `S`
    /// represents.
    pub(super) unsafe fn load(&self, index: usize, to: &mut [S::Number]) {
        assert!(to.len() == self.len && (index < self.count || self.len == 0));
        // SAFETY: the array was cut off a live source (the caller's contract) within its bounds (checked
        // above).
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
    /// Panics if `S` does not have the element's size.
    pub(super) fn new(dst: &mut Dst<'_>, len: usize) -> Self {
        assert_eq!(size_of::<S>(), dst.dtype().size());
        let count = dst.len().checked_div(len).unwrap_or(0);
        Self { ptr: SyncPtr::new(dst), len, count, storage: std::marker::PhantomData }
    }

    /// Writes one array.
    ///
    /// # Safety
    /// The destination that this value was created from must still exist, and must have the type that `S`
    /// represents. No other thread may write the same matrix.
    pub(super) unsafe fn store(&self, index: usize, from: &[S::Number]) {
        assert!(from.len() == self.len && (index < self.count || self.len == 0));
        // SAFETY: the matrix lies within the bounds of a live destination, and nothing else accesses it, as
        // the caller guarantees.
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
    assert!(dims.len() >= 2, "{what}: {dtype:?}{dims:?} is not a matrix");
    let (batch, matrix) = dims.split_at(dims.len() - 2);
    (batch, matrix[0], matrix[1])
}

/// Calls `work` for each of `count` matrices with the pool to use: large matrices are processed one at a
/// time, each in parallel, and small ones concurrently.
pub(super) fn for_each_matrix(
    pool: &Pool,
    count: usize,
    operations_each: usize,
    work: &(dyn Fn(std::ops::Range<usize>, &Pool) + Sync),
) {
    const OPERATIONS_PER_CHUNK: usize = 50_000;
    const LARGE: usize = 4_000_000;
    if operations_each >= LARGE {
        return work(0..count, pool);
    }
    let part = (OPERATIONS_PER_CHUNK / operations_each.max(1)).max(1);
    pool.run(count.div_ceil(part), &|chunk| {
        work(chunk * part..count.min((chunk + 1) * part), &Pool::inline());
    });
}

/// A matrix somewhere in memory.
#[derive(Clone, Copy)]
pub(super) struct View<T> {
    /// The element of row 0 and column 0.
    pub(super) ptr: *mut T,
    /// The distance between rows, in elements.
    pub(super) row: isize,
    /// The distance between columns, in elements.
    pub(super) column: isize,
    /// `true` if the view represents the complex conjugate. Only for matrices that are read.
    pub(super) conjugated: bool,
}

// SAFETY: a view is only dereferenced in unsafe code, which proves that no thread writes elements that others
// access.
unsafe impl<T: Send> Send for View<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for View<T> {}

impl<T: Field> View<T> {
    /// Creates a view of a dense row-major matrix.
    pub(super) fn dense(ptr: *mut T, columns: usize) -> Self {
        Self { ptr, row: columns as isize, column: 1, conjugated: false }
    }

    /// Returns the part that begins at row `i` and column `j`.
    pub(super) fn at(self, i: usize, j: usize) -> Self {
        Self { ptr: self.ptr.wrapping_offset(i as isize * self.row + j as isize * self.column), ..self }
    }

    /// Returns the transposed matrix.
    pub(super) fn transposed(self) -> Self {
        Self { row: self.column, column: self.row, ..self }
    }

    /// Returns the conjugated matrix.
    pub(super) fn conj(self) -> Self {
        Self { conjugated: !self.conjugated, ..self }
    }

    /// Returns an element.
    ///
    /// # Safety
    /// The element must are in the matrix, and nothing may write it.
    #[inline(always)]
    pub(super) unsafe fn read(self, i: usize, j: usize) -> T {
        // SAFETY: guaranteed by the caller.
        let value = unsafe { *self.at(i, j).ptr };
        if self.conjugated { value.conj() } else { value }
    }
}

/// Computes `c -= a * b`, where `a` is `m` by `k` and `b` is `k` by `n`.
///
/// # Safety
/// All elements of the three matrices must be accessible, and nothing else may access those of `c`; `c` must
/// not overlap the others.
pub(super) unsafe fn subtract_product<T: Field>(
    c: View<T>,
    a: View<T>,
    b: View<T>,
    (m, k, n): (usize, usize, usize),
) {
    // SAFETY: guaranteed by the caller, which is the function's.
    unsafe { product(c, a, b, (m, k, n), T::ONE, -T::ONE) }
}

/// Computes `c = a * b`; see [`subtract_product`].
///
/// # Safety
/// See [`subtract_product`].
pub(super) unsafe fn set_product<T: Field>(
    c: View<T>,
    a: View<T>,
    b: View<T>,
    (m, k, n): (usize, usize, usize),
) {
    // SAFETY: guaranteed by the caller, which is the function's.
    unsafe { product(c, a, b, (m, k, n), T::ZERO, T::ONE) }
}

/// Computes `c = old * c + new * a * b`; `c` is not read if `old` is zero.
///
/// # Safety
/// See [`subtract_product`].
unsafe fn product<T: Field>(
    c: View<T>,
    a: View<T>,
    b: View<T>,
    (m, k, n): (usize, usize, usize),
    old: T,
    new: T,
) {
    // SAFETY: guaranteed by the caller: `gemm` accesses exactly the elements that strides and sizes describe.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.ptr,
            c.column,
            c.row,
            old != T::ZERO,
            a.ptr.cast_const(),
            a.column,
            a.row,
            b.ptr.cast_const(),
            b.column,
            b.row,
            old,
            new,
            false,
            a.conjugated,
            b.conjugated,
            gemm::Parallelism::None,
        );
    }
}
