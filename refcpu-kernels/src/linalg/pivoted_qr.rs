//! QR with column pivoting.

use super::lu::IndexRows;
use super::matrix::{BatchIn, BatchOut, Field, Real, Storage, for_each_matrix};
use super::panel::{Panel, Update, update_and_sum};
use super::reflector::{make_reflector, norm};
use crate::{Dst, Pool, Src};

/// Factors each matrix as LAPACK's `geqp3`. The second operand marks the columns that come first (nonzero).
/// The results are the matrix, the permutation of columns, counted from 1, and the factors.
pub(super) fn run<S: Storage>(pool: &Pool, input: Src<'_>, first: Src<'_>, w: &mut [Dst<'_>]) {
    let &[.., m, n] = input.dims() else { panic!("pivoted_qr: {:?} is not a matrix", input.dims()) };
    let k = m.min(n);
    let [out, pivots, tau] = w else { panic!("pivoted_qr: three results, not {}", w.len()) };
    let count = out.dims().iter().rev().skip(2).product();
    let (from, to) = (BatchIn::<S>::new(&input, m * n), BatchOut::<S>::new(out, m * n));
    let (pivots, tau) = (IndexRows::new(pivots, n, count), BatchOut::<S>::new(tau, k));
    let first = first.as_slice::<i32>();
    for_each_matrix(pool, count, 4 * m * n * k, &|range, _| {
        let (mut a, mut factors) = (vec![S::Number::ZERO; m * n], vec![S::Number::ZERO; k]);
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`; each index belongs
            // to one chunk.
            unsafe {
                from.load(index, &mut a);
                let order = pivots.row(index);
                order.copy_from_slice(&first[index * n..(index + 1) * n]);
                factor(&mut a, (m, n), order, &mut factors);
                to.store(index, &a);
                tau.store(index, &factors);
            }
        }
    });
}

/// Factors a matrix in place. `order` initially marks the columns that come first, and finally is the
/// permutation.
fn factor<T: Field>(a: &mut [T], (m, n): (usize, usize), order: &mut [i32], tau: &mut [T]) {
    let free = move_marked_first(a, n, order).min(tau.len());
    let mut column = vec![T::ZERO; m];
    let mut norms = ColumnNorms::<T>::new(m, n);
    let (mut weights, mut sums) = (vec![T::ZERO; m], vec![T::ZERO; n]);
    let zeros = vec![T::ZERO; m.max(n)];
    for i in 0..tau.len() {
        if i == free {
            (i..n).for_each(|j| norms.compute(a, i, j));
        }
        if i >= free {
            let pivot = norms.largest(i);
            if pivot != i {
                swap_columns(a, n, i, pivot);
                order.swap(i, pivot);
                norms.replace(pivot, i);
            }
        }
        for r in i..m {
            column[r] = a[r * n + i];
        }
        let (beta, factor) = make_reflector(&mut column[i..]);
        tau[i] = factor;
        for r in i..m {
            a[r * n + i] = column[r];
            weights[r] = column[r].conj();
        }
        a[i * n + i] = T::from_real(beta);
        let next = i + 1;
        if next == n {
            break;
        }
        // A -= conj(tau) * v * (v^H * A), in two passes.
        let rest = Panel::new(a, n, i, next);
        sums[next..].fill(T::ZERO);
        let nothing = Update {
            columns: [&zeros[..m - i], &zeros[..m - i]],
            rows: [&zeros[..n - next], &zeros[..n - next]],
        };
        update_and_sum(rest, nothing, &weights[i..], &mut sums[next..]);
        sums[next..].iter_mut().for_each(|s| *s *= factor.conj());
        let update =
            Update { columns: [&column[i..], &zeros[..m - i]], rows: [&sums[next..], &zeros[..n - next]] };
        let mut unused = vec![T::ZERO; n - next];
        update_and_sum(rest, update, &zeros[..m - i], &mut unused);
        if i >= free {
            (next..n).for_each(|j| norms.remove_row(a, i, j));
        }
    }
}

/// Moves the columns that are marked in `order` (nonzero) to the front, and returns their number. Writes the
/// permutation to `order`.
fn move_marked_first<T>(a: &mut [T], n: usize, order: &mut [i32]) -> usize {
    let mut marked = 0;
    for j in 0..n {
        let is_marked = order[j] != 0;
        order[j] = j as i32 + 1;
        if is_marked {
            swap_columns(a, n, j, marked);
            order.swap(j, marked);
            marked += 1;
        }
    }
    marked
}

/// The norms of the remaining parts of the columns of an `m` by `n` matrix.
struct ColumnNorms<T: Field> {
    m: usize,
    n: usize,
    norms: Vec<T::Real>,
    /// The norms when they were last computed exactly.
    exact: Vec<T::Real>,
    /// Scratch memory for a column.
    column: Vec<T>,
}

impl<T: Field> ColumnNorms<T> {
    fn new(m: usize, n: usize) -> Self {
        Self { m, n, norms: vec![T::Real::ZERO; n], exact: vec![T::Real::ZERO; n], column: vec![T::ZERO; m] }
    }

    /// Computes the norm of column `j` from row `i` on.
    fn compute(&mut self, a: &[T], i: usize, j: usize) {
        self.column[i..].iter_mut().zip(i..self.m).for_each(|(v, r)| *v = a[r * self.n + j]);
        self.norms[j] = norm(&self.column[i..]);
        self.exact[j] = self.norms[j];
    }

    /// Returns the first column with the largest norm, from column `i` on.
    fn largest(&self, i: usize) -> usize {
        (i + 1..self.n).fold(i, |best, j| if self.norms[j] > self.norms[best] { j } else { best })
    }

    /// Sets the norm of column `to` to that of column `from`.
    fn replace(&mut self, to: usize, from: usize) {
        (self.norms[to], self.exact[to]) = (self.norms[from], self.exact[from]);
    }

    /// Subtracts the element of row `i` from the norm of column `j`.
    fn remove_row(&mut self, a: &[T], i: usize, j: usize) {
        let norm = self.norms[j];
        if norm == T::Real::ZERO {
            return;
        }
        let ratio = a[i * self.n + j].abs() / norm;
        let left = (T::Real::ONE - ratio * ratio).most(T::Real::ZERO);
        let since = norm / self.exact[j];
        if left * since * since <= T::Real::EPSILON.root() {
            // Too many digits have cancelled.
            self.compute(a, i + 1, j);
        } else {
            self.norms[j] *= left.root();
        }
    }
}

fn swap_columns<T>(a: &mut [T], n: usize, i: usize, j: usize) {
    for row in a.chunks_exact_mut(n) {
        row.swap(i, j);
    }
}
