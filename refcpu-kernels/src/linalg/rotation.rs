//! Plane rotations of the rows of a matrix.
//!
//! Iterations on a few diagonals compute rotations one at a time, which are also applied to the matrix of
//! vectors. The rotations are collected, and then applied to one strip of columns at a time, with the row
//! that two consecutive rotations share in registers.

use super::matrix::{Field, Real};
use crate::Pool;
use crate::isa::{Isa, multiversion};
use crate::view::SyncPtr;

/// Returns `c` and `s` with `c * x + s * y = r` and `c * y - s * x = 0`, and `r`.
pub(super) fn rotation<R: Real>(x: R, y: R) -> (R, R, R) {
    if y == R::ZERO {
        return (R::ONE, R::ZERO, x);
    }
    if x == R::ZERO {
        return (R::ZERO, R::ONE, y);
    }
    let r = x.hypot(y).with_sign(x);
    (x / r, y / r, r)
}

/// The number of columns that are rotated at a time.
const STRIP: usize = 16;

/// A matrix of real numbers whose rows are rotated. A complex column is stored as two real columns.
pub(super) struct Rows<R> {
    values: Vec<R>,
    /// The distance between rows in elements, a multiple of [`STRIP`].
    stride: usize,
}

impl<R: Real> Rows<R> {
    /// Creates rows of `count` numbers of type `T`; `of` returns the number in row `i` and column `j`.
    pub(super) fn from_fn<T: Field<Real = R>>(
        rows: usize,
        count: usize,
        mut of: impl FnMut(usize, usize) -> T,
    ) -> Self {
        let stride = (count * parts::<T>()).next_multiple_of(STRIP);
        let mut values = vec![R::ZERO; rows * stride];
        for (i, row) in values.chunks_exact_mut(stride.max(1)).enumerate() {
            for j in 0..count {
                let value = of(i, j);
                row[j * parts::<T>()] = value.re();
                if T::IS_COMPLEX {
                    row[2 * j + 1] = value.im();
                }
            }
        }
        Self { values, stride }
    }

    /// Returns the number of type `T` in row `i` and column `j`.
    pub(super) fn get<T: Field<Real = R>>(&self, i: usize, j: usize) -> T {
        let at = i * self.stride + j * parts::<T>();
        let value = T::from_real(self.values[at]);
        if T::IS_COMPLEX { value + T::imaginary(self.values[at + 1]) } else { value }
    }

    /// Changes the signs of a row.
    pub(super) fn negate(&mut self, row: usize) {
        for v in &mut self.values[row * self.stride..(row + 1) * self.stride] {
            *v = -*v;
        }
    }

    /// Applies the collected rotations in order.
    pub(super) fn apply(&mut self, pool: &Pool, rotations: &mut Rotations<R>) {
        let rows = self.values.len().checked_div(self.stride).unwrap_or(0);
        assert!(rotations.end <= rows, "rotation of row {} of {rows}", rotations.end);
        let at = SyncPtr::from_raw(self.values.as_mut_ptr().cast());
        let cost = 5.0 * rotations.values.len() as f64;
        pool.run_costed(self.stride / STRIP, cost, &|strip| {
            // SAFETY: the rows exist (checked above), have `stride` elements, and strips are different
            // columns.
            unsafe { rotate_strip(at.get().cast::<R>().add(strip * STRIP), self.stride, rotations) };
        });
        rotations.clear();
    }
}

/// Returns the number of real numbers that represent a number of type `T`.
fn parts<T: Field>() -> usize {
    if T::IS_COMPLEX { 2 } else { 1 }
}

/// Consecutive rotations of neighboring rows: of `first` and the next row, of that and the next, and so on,
/// upwards or downwards.
struct Sweep {
    first: usize,
    downwards: bool,
    /// The number of rotations before this sweep.
    start: usize,
}

/// Collected rotations.
pub(super) struct Rotations<R> {
    sweeps: Vec<Sweep>,
    values: Vec<[R; 2]>,
    /// The end of the rows that are rotated.
    end: usize,
}

impl<R: Real> Rotations<R> {
    pub(super) fn new() -> Self {
        Self { sweeps: vec![], values: vec![], end: 0 }
    }

    fn clear(&mut self) {
        self.sweeps.clear();
        self.values.clear();
        self.end = 0;
    }

    /// Returns the number of rotations.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Begins a sweep at a row.
    pub(super) fn sweep(&mut self, first: usize, downwards: bool) {
        self.sweeps.push(Sweep { first, downwards, start: self.values.len() });
        self.end = self.end.max(first + 1);
    }

    /// Adds the next rotation of the sweep: the current row becomes `c` times itself plus `s` times the next
    /// row, and the next row becomes `c` times itself minus `s` times the previous value of the current row.
    pub(super) fn push(&mut self, c: R, s: R) {
        self.values.push([c, s]);
        if let Some(sweep) = self.sweeps.last() {
            let count = self.values.len() - sweep.start;
            if sweep.downwards {
                assert!(count <= sweep.first);
            } else {
                self.end = self.end.max(sweep.first + count + 1);
            }
        }
    }
}

multiversion! {
    unsafe fn rotate_strip<R: Real>(ptr: *mut R, stride: usize, rotations: &Rotations<R>) = rotate_strip_body
}

#[inline(always)]
unsafe fn rotate_strip_body<I: Isa, R: Real>(ptr: *mut R, stride: usize, rotations: &Rotations<R>) {
    let sweeps = &rotations.sweeps;
    for (index, sweep) in sweeps.iter().enumerate() {
        let end = sweeps.get(index + 1).map_or(rotations.values.len(), |next| next.start);
        let step = if sweep.downwards { (stride as isize).wrapping_neg() } else { stride as isize };
        let mut at = ptr.wrapping_add(sweep.first * stride).cast::<[R; STRIP]>();
        // SAFETY: guaranteed by the caller: all rows of the sweep have `STRIP` elements from here on.
        let mut carried = unsafe { *at };
        for [c, s] in &rotations.values[sweep.start..end] {
            let next = at.cast::<R>().wrapping_offset(step).cast::<[R; STRIP]>();
            // SAFETY: as above.
            let other = unsafe { *next };
            let mut rotated = [R::ZERO; STRIP];
            for l in 0..STRIP {
                rotated[l] = *c * carried[l] + *s * other[l];
                carried[l] = *c * other[l] - *s * carried[l];
            }
            // SAFETY: as above.
            unsafe { *at = rotated };
            at = next;
        }
        // SAFETY: as above.
        unsafe { *at = carried };
    }
}
