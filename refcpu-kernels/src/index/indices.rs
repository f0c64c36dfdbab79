//! Index arrays of any integer type, and the loops over the positions where index vectors stand.

use crate::few::Few;
use crate::isa::{Isa, multiversion};
use crate::view::Element;
use crate::{DType, Src};

/// True for the types that index arrays may have.
fn is_index_type(dtype: DType) -> bool {
    dtype.compute().is_signed_integer() || dtype.compute().is_unsigned_integer()
}

/// The index vectors of an array of any integer type.
///
/// The index array is seen as `[high, vector, low]`, the middle one the dimension that holds a vector.
pub(super) struct IndexVectors<'a> {
    indices: Src<'a>,
    vector: usize,
    low: usize,
}

impl<'a> IndexVectors<'a> {
    /// Vectors along `index_vector_dim` of `indices`, which may be one beyond the last dimension: then each element is
    /// a vector of its own.
    pub(super) fn new(what: &str, indices: Src<'a>, index_vector_dim: usize) -> Self {
        let dims = indices.dims();
        assert!(is_index_type(indices.dtype()), "{what}: indices of type {:?}", indices.dtype());
        assert!(index_vector_dim <= dims.len(), "{what}: index vectors along {index_vector_dim} of {dims:?}");
        let vector = dims.get(index_vector_dim).copied().unwrap_or(1);
        let low = dims.iter().skip(index_vector_dim + 1).product();
        Self { indices, vector, low }
    }

    /// Components of one vector.
    pub(super) fn vector_len(&self) -> usize {
        self.vector
    }

    /// Adds to the offset of each vector from number `first` on what its component `k` moves it by: `step` for each of
    /// the places `0..=largest`, of which starts outside take the nearest.
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
                // SAFETY: `starts` has a start for each of these `n` offsets, `every` places apart.
                unsafe { clamped::<T>(starts.as_ptr(), every, &mut offsets[done..done + n], *largest, *step) }
            }
        }
        let n = offsets.len();
        self.visit(k, first, n, &mut Clamped(offsets, largest, step));
    }

    /// Adds to the offset of each vector from number `first` on what its component `k` moves it by, `step` for each
    /// place, and clears `inside` for those with a start outside of `0..=largest`. True if there are none.
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

    /// Gives component `k` of `n` vectors from number `first` on to `visit`, run by run.
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
        // Vectors next to each other in the low dimensions have their components next to each other.
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
    /// The index; those that are too large for any array may be any such one.
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

/// Something to be done with starts of any type.
trait Visit {
    /// Does it with starts for the vectors from number `done` on: every `every`-th of `starts`, its first and its last
    /// among them.
    fn visit<T: Index>(&mut self, done: usize, starts: &[T], every: usize);
}

multiversion! {
    /// Adds `step` times a start, moved into `0..=largest`, to each offset.
    ///
    /// # Safety
    /// There must be a readable start at `starts` for each offset, `every` places apart.
    unsafe fn clamped<T: Index>(starts: *const T, every: usize, offsets: &mut [isize], largest: i64, step: isize) = clamped_body
}

/// # Safety
/// As for [`clamped`].
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
            // SAFETY: the caller's contract.
            *o = o.wrapping_add(offset(unsafe { starts.add(i).read() }));
        }
    } else if every == 2 {
        for (i, o) in offsets.iter_mut().enumerate() {
            // SAFETY: the caller's contract; with a distance that the compiler knows.
            *o = o.wrapping_add(offset(unsafe { starts.add(2 * i).read() }));
        }
    } else {
        for (i, o) in offsets.iter_mut().enumerate() {
            // SAFETY: the caller's contract.
            *o = o.wrapping_add(offset(unsafe { starts.add(i * every).read() }));
        }
    }
}

multiversion! {
    /// Adds `step` times a start to each offset; where that is outside of `0..=largest`, `inside` becomes false. True if
    /// it is nowhere.
    ///
    /// # Safety
    /// As for [`clamped`]; `inside` is as long as `offsets`.
    unsafe fn checked<T: Index>(starts: *const T, every: usize, offsets: &mut [isize], inside: &mut [bool], largest: i64, step: isize) -> bool = checked_body
}

/// # Safety
/// As for [`checked`].
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
        // SAFETY: the caller's contract.
        let s = unsafe { starts.add(if every == 1 { i } else { i * every }).read() }.wide();
        *o = o.wrapping_add((s as isize).wrapping_mul(step));
        outside |= u64::from(s < 0) | u64::from(s > largest);
    }
    if outside == 0 {
        return true;
    }
    for (i, ok) in inside.iter_mut().enumerate() {
        // SAFETY: the caller's contract.
        let s = unsafe { starts.add(i * every).read() }.wide();
        *ok &= (0..=largest).contains(&s);
    }
    false
}

multiversion! {
    /// Writes `x`, `x + a`, `x + 2 a`, ... and the same of `y` and `b`.
    ///
    /// # Safety
    /// `first` and `second` are equally long.
    unsafe fn ramps(first: &mut [isize], second: &mut [isize], start: (isize, isize), step: (isize, isize)) = ramps_body
}

/// # Safety
/// As for [`ramps`].
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

/// Dimensions given as size and two steps, outermost first, without those of size 1 and with those merged that continue
/// each other in both steps.
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

/// A position that moves through nested dimensions in row-major order, with up to two offsets that follow it.
pub(super) struct Odometer {
    dims: Few<(usize, isize, isize)>,
    at: Few<usize>,
    /// The offsets at the current position.
    pub(super) offsets: (isize, isize),
}

impl Odometer {
    /// Dimensions given as size and the steps of both offsets; dimensions that continue each other are merged. Stands
    /// at position `start` in row-major order.
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

    /// Moves to the next position; after the last one comes the first.
    pub(super) fn advance(&mut self) {
        self.advance_by_run(1);
    }

    /// Writes the offsets of the next positions, as many as there is room for, and moves behind them.
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

    /// Moves by `steps` positions, which do not go past the end of the last dimension.
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
