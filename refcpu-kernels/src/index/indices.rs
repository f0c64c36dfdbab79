//! Index arrays of any integer type, and the loops over the positions of index vectors.

use crate::few::Few;
use crate::isa::{Isa, multiversion};
use crate::view::Element;
use crate::{DType, Src};

/// Returns `true` for the types that index arrays can have.
fn is_index_type(dtype: DType) -> bool {
    dtype.compute().is_signed_integer() || dtype.compute().is_unsigned_integer()
}

/// The index vectors of an array of any integer type.
///
/// The index array is interpreted as `[high, vector, low]`, where the middle dimension contains the
/// components of a vector.
pub(super) struct IndexVectors<'a> {
    indices: Src<'a>,
    vector: usize,
    low: usize,
}

impl<'a> IndexVectors<'a> {
    /// Creates the vectors along `index_vector_dim` of `indices`. If that is the rank, each element is a
    /// vector.
    pub(super) fn new(what: &str, indices: Src<'a>, index_vector_dim: usize) -> Self {
        let dims = indices.dims();
        assert!(
            is_index_type(indices.dtype()),
            "{what}: indices must have an integer type, but have {:?}",
            indices.dtype()
        );
        assert!(index_vector_dim <= dims.len(), "{what}: index vectors along {index_vector_dim} of {dims:?}");
        let vector = dims.get(index_vector_dim).copied().unwrap_or(1);
        let low = dims.iter().skip(index_vector_dim + 1).product();
        Self { indices, vector, low }
    }

    /// Returns the number of components of a vector.
    pub(super) fn vector_len(&self) -> usize {
        self.vector
    }

    /// Adds the contribution of component `k` to the offset of each vector from number `first`: `step` times
    /// the start, which is clamped to `0..=largest`.
    pub(super) fn add_clamped(
        &self,
        k: usize,
        first: usize,
        (largest, step): (i64, isize),
        offsets: &mut [isize],
    ) {
        /// [`IndexVectors::add_clamped`] for one index type.
        struct Clamped<'o>(&'o mut [isize], i64, isize);
        impl Visit for Clamped<'_> {
            fn visit<T: Index>(&mut self, done: usize, starts: &[T], every: usize) {
                let Self(offsets, largest, step) = self;
                let n = starts.len().div_ceil(every).min(offsets.len() - done);
                // SAFETY: `starts` has a start for each of these `n` offsets, `every` elements apart.
                unsafe { clamped::<T>(starts.as_ptr(), every, &mut offsets[done..done + n], *largest, *step) }
            }
        }
        let n = offsets.len();
        self.visit(k, first, n, &mut Clamped(offsets, largest, step));
    }

    /// Adds the contribution of component `k` to the offset of each vector from number `first`, `step` times
    /// the start, and clears `inside` for vectors whose start is outside `0..=largest`. Returns `true` if
    /// there are none.
    pub(super) fn add_checked(
        &self,
        k: usize,
        first: usize,
        (largest, step): (i64, isize),
        offsets: &mut [isize],
        inside: &mut [bool],
    ) -> bool {
        /// [`IndexVectors::add_checked`] for one index type.
        struct Checked<'o>(&'o mut [isize], &'o mut [bool], i64, isize, bool);
        impl Visit for Checked<'_> {
            fn visit<T: Index>(&mut self, done: usize, starts: &[T], every: usize) {
                let Self(offsets, inside, largest, step, all) = self;
                let n = starts.len().div_ceil(every).min(offsets.len() - done);
                let some = done..done + n;
                let (offsets, inside) = (&mut offsets[some.clone()], &mut inside[some]);
                // SAFETY: as in `add_clamped`; both lists have `n` entries.
                *all &= unsafe { checked::<T>(starts.as_ptr(), every, offsets, inside, *largest, *step) };
            }
        }
        let n = offsets.len();
        let mut checked = Checked(offsets, inside, largest, step, true);
        self.visit(k, first, n, &mut checked);
        checked.4
    }

    /// Passes component `k` of `n` vectors from number `first` to `visit`, run by run.
    fn visit(&self, k: usize, first: usize, n: usize, visit: &mut impl Visit) {
        let signed = self.indices.dtype().compute().is_signed_integer();
        match self.indices.dtype().size() {
            1 if signed => self.visit_as::<i8>(k, first, n, visit),
            2 if signed => self.visit_as::<i16>(k, first, n, visit),
            4 if signed => self.visit_as::<i32>(k, first, n, visit),
            8 if signed => self.visit_as::<i64>(k, first, n, visit),
            1 => self.visit_as::<u8>(k, first, n, visit),
            2 => self.visit_as::<u16>(k, first, n, visit),
            4 => self.visit_as::<u32>(k, first, n, visit),
            _ => self.visit_as::<u64>(k, first, n, visit),
        }
    }

    fn visit_as<T: Index>(&self, k: usize, first: usize, n: usize, visit: &mut impl Visit) {
        let values = self.indices.as_slice::<T>();
        if n == 0 {
            return;
        }
        if self.low == 1 {
            let from = first * self.vector + k;
            visit.visit(0, &values[from..=from + (n - 1) * self.vector], self.vector);
            return;
        }
        // The components of vectors that are adjacent in the low dimensions are adjacent.
        let mut done = 0;
        while done < n {
            let (high, low) = ((first + done) / self.low, (first + done) % self.low);
            let run = (self.low - low).min(n - done);
            let from = (high * self.vector + k) * self.low + low;
            visit.visit(done, &values[from..from + run], 1);
            done += run;
        }
    }
}

/// A type of indices.
trait Index: Element {
    /// Returns the index. Indices that are too large for any array may be replaced by another such index.
    fn wide(self) -> i64;
}
macro_rules! index {
    ($($t:ty),*) => {$(
        impl Index for $t {
            #[inline(always)]
            fn wide(self) -> i64 {
                self.into()
            }
        }
    )*};
}
index!(i8, i16, i32, i64, u8, u16, u32);
impl Index for u64 {
    #[inline(always)]
    fn wide(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }
}

/// A function that is generic over the type of starts.
trait Visit {
    /// Calls the function with starts for the vectors from number `done`: every `every`-th element of
    /// `starts`, including its first and its last one.
    fn visit<T: Index>(&mut self, done: usize, starts: &[T], every: usize);
}

multiversion! {
    /// Adds `step` times a start, clamped to `0..=largest`, to each offset.
    ///
    /// # Safety
    /// There must be a readable start at `starts` for each offset, `every` elements apart.
    unsafe fn clamped<T: Index>(starts: *const T, every: usize, offsets: &mut [isize], largest: i64, step: isize) = clamped_body
}

/// # Safety
/// See [`clamped`].
#[inline(always)]
unsafe fn clamped_body<I: Isa, T: Index>(
    starts: *const T,
    every: usize,
    offsets: &mut [isize],
    largest: i64,
    step: isize,
) {
    let offset = |s: T| (s.wide().max(0).min(largest) as isize).wrapping_mul(step);
    if every == 1 {
        for (i, o) in offsets.iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller.
            *o = o.wrapping_add(offset(unsafe { starts.add(i).read() }));
        }
    } else if every == 2 {
        for (i, o) in offsets.iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller; the distance is a constant here.
            *o = o.wrapping_add(offset(unsafe { starts.add(2 * i).read() }));
        }
    } else {
        for (i, o) in offsets.iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller.
            *o = o.wrapping_add(offset(unsafe { starts.add(i * every).read() }));
        }
    }
}

multiversion! {
    /// Adds `step` times a start to each offset, and clears `inside` if the start is outside
    /// `0..=largest`. Returns `true` if no start is.
    ///
    /// # Safety
    /// See [`clamped`]; `inside` must be as long as `offsets`.
    unsafe fn checked<T: Index>(starts: *const T, every: usize, offsets: &mut [isize], inside: &mut [bool], largest: i64, step: isize) -> bool = checked_body
}

/// # Safety
/// See [`checked`].
#[inline(always)]
unsafe fn checked_body<I: Isa, T: Index>(
    starts: *const T,
    every: usize,
    offsets: &mut [isize],
    inside: &mut [bool],
    largest: i64,
    step: isize,
) -> bool {
    let mut outside = 0u64;
    for (i, o) in offsets.iter_mut().enumerate() {
        // SAFETY: guaranteed by the caller.
        let s = unsafe { starts.add(if every == 1 { i } else { i * every }).read() }.wide();
        *o = o.wrapping_add((s as isize).wrapping_mul(step));
        outside |= u64::from(s < 0) | u64::from(s > largest);
    }
    if outside == 0 {
        return true;
    }
    for (i, ok) in inside.iter_mut().enumerate() {
        // SAFETY: guaranteed by the caller.
        let s = unsafe { starts.add(i * every).read() }.wide();
        *ok &= (0..=largest).contains(&s);
    }
    false
}

multiversion! {
    /// Writes `x`, `x + a`, `x + 2 a`, ... to `first`, and the same of `y` and `b` to `second`.
    ///
    /// # Safety
    /// `first` and `second` must have equal lengths.
    unsafe fn ramps(first: &mut [isize], second: &mut [isize], start: (isize, isize), step: (isize, isize)) = ramps_body
}

/// # Safety
/// See [`ramps`].
#[inline(always)]
unsafe fn ramps_body<I: Isa>(
    first: &mut [isize],
    second: &mut [isize],
    start: (isize, isize),
    step: (isize, isize),
) {
    for (i, f) in first.iter_mut().enumerate() {
        *f = start.0.wrapping_add(step.0.wrapping_mul(i as isize));
    }
    for (i, s) in second.iter_mut().enumerate() {
        *s = start.1.wrapping_add(step.1.wrapping_mul(i as isize));
    }
}

/// Removes dimensions of size 1, and merges those that are contiguous in both steps. Dimensions are given as
/// size and two steps, outermost first.
pub(super) fn merge(dims: impl Iterator<Item = (usize, isize, isize)>) -> Few<(usize, isize, isize)> {
    let mut merged: Few<(usize, isize, isize)> = Few::new();
    for (count, a, b) in dims {
        match merged.last_mut() {
            Some(outer)
                if outer.1 == a.wrapping_mul(count as isize) && outer.2 == b.wrapping_mul(count as isize) =>
            {
                *outer = (outer.0.saturating_mul(count), a, b);
            }
            _ if count == 1 => {}
            _ => merged.push((count, a, b)),
        }
    }
    merged
}

/// A position that traverses nested dimensions in row-major order, with up to two offsets.
pub(super) struct Odometer {
    dims: Few<(usize, isize, isize)>,
    at: Few<usize>,
    /// The offsets of the current position.
    pub(super) offsets: (isize, isize),
}

impl Odometer {
    /// Creates an odometer over dimensions with these sizes and steps of both offsets, at position `start` in
    /// row-major order. Contiguous dimensions are merged.
    pub(super) fn new(dims: impl Iterator<Item = (usize, isize, isize)>, start: usize) -> Self {
        let merged = merge(dims);
        let mut at = Few::from_elem(0, merged.len());
        let (mut rest, mut offsets) = (start, (0isize, 0isize));
        for (i, (count, a, b)) in at.iter_mut().zip(&merged).rev() {
            if *count > 0 {
                *i = rest % count;
                rest /= count;
                offsets.0 += a * *i as isize;
                offsets.1 += b * *i as isize;
            }
        }
        Self { dims: merged, at, offsets }
    }

    /// Advances to the next position, and from the last position to the first.
    pub(super) fn advance(&mut self) {
        self.advance_by_run(1);
    }

    /// Writes the offsets of the next positions to the slices, and advances beyond them.
    pub(super) fn fill(&mut self, first: &mut [isize], second: &mut [isize]) {
        let mut at = 0;
        while at < first.len() {
            let Some((count, a, b)) = self.dims.last().copied() else {
                first[at..].fill(self.offsets.0);
                second[at..].fill(self.offsets.1);
                return;
            };
            let run = (count - self.at[self.at.len() - 1]).min(first.len() - at);
            let (first, second) = (&mut first[at..at + run], &mut second[at..at + run]);
            if run < 16 {
                let (mut x, mut y) = self.offsets;
                for (f, s) in first.iter_mut().zip(second) {
                    (*f, *s) = (x, y);
                    x += a;
                    y += b;
                }
            } else {
                // SAFETY: both have `run` entries.
                unsafe { ramps(first, second, self.offsets, (a, b)) };
            }
            self.advance_by_run(run);
            at += run;
        }
    }

    /// Advances by `steps` positions, which must not exceed the end of the last dimension.
    fn advance_by_run(&mut self, steps: usize) {
        let mut steps = steps;
        for (i, (count, a, b)) in self.at.iter_mut().zip(&self.dims).rev() {
            *i += steps;
            self.offsets.0 += a * steps as isize;
            self.offsets.1 += b * steps as isize;
            if *i < *count {
                return;
            }
            *i = 0;
            self.offsets.0 -= a * *count as isize;
            self.offsets.1 -= b * *count as isize;
            steps = 1;
        }
    }
}
