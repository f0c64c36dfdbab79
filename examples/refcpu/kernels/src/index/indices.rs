//! Index arrays of any integer type, and the loops over the positions where index vectors stand.

use crate::few::Few;
use crate::{DType, Src};

/// True for the types that index arrays may have.
fn is_index_type(dtype: DType) -> bool {
    dtype.compute().is_signed_integer() || dtype.compute().is_unsigned_integer()
}

/// Component `k` of index vectors `first..first + out.len()`, as `i64`; unsigned values beyond its range become
/// `i64::MAX`, which is out of every array.
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

    /// Reads component `k` of the vectors from number `first` on.
    pub(super) fn read(&self, k: usize, first: usize, out: &mut [i64]) {
        match self.indices.dtype().size() {
            1 if self.signed() => self.read_as(k, first, out, |v: i8| v.into()),
            2 if self.signed() => self.read_as(k, first, out, |v: i16| v.into()),
            4 if self.signed() => self.read_as(k, first, out, |v: i32| v.into()),
            8 if self.signed() => self.read_as(k, first, out, |v: i64| v),
            1 => self.read_as(k, first, out, |v: u8| v.into()),
            2 => self.read_as(k, first, out, |v: u16| v.into()),
            4 => self.read_as(k, first, out, |v: u32| v.into()),
            _ => self.read_as(k, first, out, |v: u64| i64::try_from(v).unwrap_or(i64::MAX)),
        }
    }

    fn signed(&self) -> bool {
        self.indices.dtype().compute().is_signed_integer()
    }

    #[inline(always)]
    fn read_as<T: crate::view::Element>(
        &self,
        k: usize,
        first: usize,
        out: &mut [i64],
        widen: impl Fn(T) -> i64,
    ) {
        let values = self.indices.as_slice::<T>();
        if self.low == 1 && self.vector == 1 {
            for (o, v) in out.iter_mut().zip(&values[first..]) {
                *o = widen(*v);
            }
        } else if self.low == 1 {
            let from = &values[(first * self.vector + k).min(values.len())..];
            for (o, v) in out.iter_mut().zip(from.iter().step_by(self.vector.max(1))) {
                *o = widen(*v);
            }
        } else {
            for (i, o) in out.iter_mut().enumerate() {
                let (high, low) = ((first + i) / self.low, (first + i) % self.low);
                *o = widen(values[(high * self.vector + k) * self.low + low]);
            }
        }
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
            let (mut x, mut y) = self.offsets;
            for (f, s) in first[at..at + run].iter_mut().zip(&mut second[at..at + run]) {
                (*f, *s) = (x, y);
                x += a;
                y += b;
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
