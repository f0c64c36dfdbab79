//! Householder QR factorizations, which JAX requests from unknown platforms with the custom calls `Qr` and
//! `ProductOfElementaryHouseholderReflectors`.

use super::matrix::{
    BatchIn, BatchOut, Field, Storage, View, by_storage, for_each_matrix, matrix_dims, set_product,
    subtract_product,
};
use super::reflector::make_reflector;
use crate::copy::check_same_type;
use crate::{Dst, Pool, Src};
use std::cmp::Ordering;

/// Factors each `m` by `n` matrix of `input` as LAPACK's `geqrf`: `R` in the upper triangle of `out`, the
/// reflectors' vectors below it (without their first element, which is 1), and their factors in `taus`,
/// `min(m, n)` per matrix. Allocates memory for one matrix per thread.
///
/// # Panics
/// Panics if shapes or types do not match, or if the type is not supported by linear algebra.
pub fn qr(pool: &Pool, input: Src<'_>, out: Dst<'_>, taus: Dst<'_>) {
    check_same_type("qr", &input, &out);
    check_same_type("qr", &input, &taus);
    let (batch, m, n) = matrix_dims("qr", input.dtype(), input.dims());
    let fits = out.dims() == input.dims() && taus.dims().split_last() == Some((&m.min(n), batch));
    assert!(fits, "qr: {:?} to {:?} and {:?}", input.dims(), out.dims(), taus.dims());
    by_storage!("qr", input.dtype(), run_qr(pool, input, out, taus, m, n));
}

/// The number of columns whose reflectors are applied together.
const BLOCK: usize = 32;

fn run_qr<S: Storage>(pool: &Pool, input: Src<'_>, mut out: Dst<'_>, mut taus: Dst<'_>, m: usize, n: usize) {
    if out.is_empty() {
        return;
    }
    let (count, k) = (out.len() / (m * n), m.min(n));
    let from = BatchIn::<S>::new(&input, m * n);
    let (to, factors) = (BatchOut::<S>::new(&mut out, m * n), BatchOut::<S>::new(&mut taus, k));
    for_each_matrix(pool, count, 2 * m * n * k, &|range, pool| {
        let (mut a, mut tau) = (vec![S::Number::ZERO; m * n], vec![S::Number::ZERO; k]);
        let mut block = Block::new(m, n);
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe { from.load(index, &mut a) };
            factor(pool, &mut a, n, &mut tau, &mut block);
            // SAFETY: as above; each index belongs to one chunk.
            unsafe {
                to.store(index, &a);
                factors.store(index, &tau);
            }
        }
    });
}

/// Performs [`qr`] on one matrix with rows of `n`, in place.
pub(super) fn factor<T: Field>(pool: &Pool, a: &mut [T], n: usize, tau: &mut [T], block: &mut Block<T>) {
    let (m, k) = (a.len() / n.max(1), tau.len());
    let mut column = vec![T::ZERO; m];
    for first in (0..k).step_by(BLOCK) {
        let last = k.min(first + BLOCK);
        for (j, tau) in (first..).zip(&mut tau[first..last]) {
            column[j..].iter_mut().zip(j..m).for_each(|(v, i)| *v = a[i * n + j]);
            let (beta, factor) = make_reflector(&mut column[j..]);
            column[j..].iter().zip(j..m).for_each(|(v, i)| a[i * n + j] = *v);
            a[j * n + j] = T::from_real(beta);
            *tau = factor;
            apply_one(a, n, j, last, m, tau.conj());
        }
        if last < n {
            block.gather(a, n, first, &tau[first..last]);
            let rest = View::dense(a.as_mut_ptr(), n).at(first, last);
            // SAFETY: the rest of the matrix is to the right of the columns that were gathered, and nothing
            // else accesses it.
            unsafe { block.apply(pool, rest, n - last, true) };
        }
    }
}

/// Multiplies `c` from the left by the product of the reflectors in the columns of `a` (rows of `n`), or by
/// its adjoint.
///
/// # Safety
/// `c` must have as many rows as `a` and `width` columns, which nothing else may access.
pub(super) unsafe fn apply_reflectors<T: Field>(
    pool: &Pool,
    a: &[T],
    n: usize,
    tau: &[T],
    block: &mut Block<T>,
    (c, width): (View<T>, usize),
    adjoint: bool,
) {
    let mut one = |first: usize| {
        block.gather(a, n, first, &tau[first..tau.len().min(first + BLOCK)]);
        // SAFETY: guaranteed by the caller.
        unsafe { block.apply(pool, c.at(first, 0), width, adjoint) };
    };
    let firsts = (0..tau.len()).step_by(BLOCK);
    if adjoint { firsts.for_each(&mut one) } else { firsts.rev().for_each(&mut one) }
}

/// Writes the first columns of the product of the reflectors in the columns of `v` (rows of `width`) to `q`,
/// whose rows have `n`.
pub(super) fn multiply_out<T: Field>(
    pool: &Pool,
    (v, width): (&[T], usize),
    tau: &[T],
    (q, n): (&mut [T], usize),
    block: &mut Block<T>,
) {
    q.fill(T::ZERO);
    q.iter_mut().step_by(n + 1).take(n).for_each(|d| *d = T::ONE);
    for first in (0..tau.len()).step_by(BLOCK).rev() {
        block.gather(v, width, first, &tau[first..tau.len().min(first + BLOCK)]);
        // Columns before `first` are still those of the identity, and the reflectors do not change them.
        let rest = View::dense(q.as_mut_ptr(), n).at(first, first);
        // SAFETY: nothing else accesses the rest of the matrix.
        unsafe { block.apply(pool, rest, n - first, false) };
    }
}

/// Applies the reflector of column `j`, with factor `tau`, to columns `j + 1..last`.
fn apply_one<T: Field>(a: &mut [T], n: usize, j: usize, last: usize, m: usize, tau: T) {
    if tau == T::ZERO || j + 1 >= last {
        return;
    }
    let mut sums = [T::ZERO; BLOCK];
    let sums = &mut sums[..last - j - 1];
    sums.copy_from_slice(&a[j * n + j + 1..j * n + last]);
    for i in j + 1..m {
        let v = a[i * n + j].conj();
        for (s, x) in sums.iter_mut().zip(&a[i * n + j + 1..i * n + last]) {
            *s += v * *x;
        }
    }
    for s in sums.iter_mut() {
        *s *= tau;
    }
    for (x, s) in a[j * n + j + 1..j * n + last].iter_mut().zip(&*sums) {
        *x -= *s;
    }
    for i in j + 1..m {
        let v = a[i * n + j];
        for (x, s) in a[i * n + j + 1..i * n + last].iter_mut().zip(&*sums) {
            *x -= v * *s;
        }
    }
}

/// Reflectors of neighboring columns in the form `1 - V * T * V^H` (LAPACK's `larft`), and memory to apply
/// them.
pub(super) struct Block<T> {
    /// A unit lower trapezoidal matrix of `rows` by `count`.
    v: Vec<T>,
    /// An upper triangular matrix of `count` by `count`.
    t: Vec<T>,
    /// `V^H * C` and the triangle times that.
    products: [Vec<T>; 2],
    rows: usize,
    count: usize,
    height: usize,
}

impl<T: Field> Block<T> {
    /// Allocates memory for matrices of `height` by `width`.
    pub(super) fn new(height: usize, width: usize) -> Self {
        Self {
            v: vec![T::ZERO; height * BLOCK],
            t: vec![T::ZERO; BLOCK * BLOCK],
            products: [vec![T::ZERO; BLOCK * width], vec![T::ZERO; BLOCK * width]],
            rows: 0,
            count: 0,
            height,
        }
    }

    /// Gathers the reflectors of columns `first..first + taus.len()` of a matrix with rows of `n`.
    fn gather(&mut self, a: &[T], n: usize, first: usize, taus: &[T]) {
        let count = taus.len();
        (self.rows, self.count) = (self.height - first, count);
        for (i, row) in self.v.chunks_exact_mut(count).take(self.rows).enumerate() {
            for (j, v) in row.iter_mut().enumerate() {
                *v = match i.cmp(&j) {
                    Ordering::Less => T::ZERO,
                    Ordering::Equal => T::ONE,
                    Ordering::Greater => a[(first + i) * n + first + j],
                };
            }
        }
        self.t.fill(T::ZERO);
        for (j, tau) in taus.iter().copied().enumerate() {
            // -tau * V^H * v, of the vectors before this one.
            let mut dots = [T::ZERO; BLOCK];
            for row in self.v.chunks_exact(count).take(self.rows).skip(j) {
                for (d, v) in dots[..j].iter_mut().zip(row) {
                    *d += v.conj() * row[j];
                }
            }
            for i in 0..j {
                let sum = (i..j).map(|l| self.t[i * count + l] * dots[l]).fold(T::ZERO, |s, v| s + v);
                self.t[i * count + j] = -tau * sum;
            }
            self.t[j * count + j] = tau;
        }
    }

    /// Computes `c = (1 - V * T * V^H) * c`, or with the adjoint of `T`, for `rows` by `width` elements.
    ///
    /// # Safety
    /// `c` must be accessible, nothing else may access it, and it must not overlap this block's memory.
    /// `width` must not exceed that which the memory was allocated for.
    unsafe fn apply(&mut self, pool: &Pool, c: View<T>, width: usize, adjoint: bool) {
        const STRIP: usize = 64;
        let (rows, count) = (self.rows, self.count);
        let v = View::dense(self.v.as_mut_ptr(), count);
        let t = View::dense(self.t.as_mut_ptr(), count);
        let t = if adjoint { t.transposed().conj() } else { t };
        let [first, second] = &mut self.products;
        let (first, second) =
            (View::dense(first.as_mut_ptr(), width), View::dense(second.as_mut_ptr(), width));
        pool.run(width.div_ceil(STRIP), &|strip| {
            let (at, n) = (strip * STRIP, STRIP.min(width - strip * STRIP));
            let (c, first, second) = (c.at(0, at), first.at(0, at), second.at(0, at));
            // SAFETY: `v` has `rows * count` elements, `t` has `count * count`, and the products have `count
            // * width`; the caller guarantees those of `c`. Strips consist of different columns.
            unsafe {
                set_product(first, v.transposed().conj(), c, (count, rows, n));
                set_product(second, t, first, (count, count, n));
                subtract_product(c, v, second, (rows, count, n));
            }
        });
    }
}

/// Multiplies the reflectors that [`qr`] returned (LAPACK's `orgqr` and `ungqr`): for each `m` by `n` matrix
/// of `a`, `m >= n`, with `k <= n` factors, computes the first `n` columns of the unitary matrix. Allocates
/// memory for two matrices per thread.
///
/// # Panics
/// Panics if shapes or types do not match, or if the type is not supported by linear algebra.
pub fn householder_product(pool: &Pool, a: Src<'_>, taus: Src<'_>, out: Dst<'_>) {
    check_same_type("householder_product", &a, &out);
    check_same_type("householder_product", &taus, &out);
    let (batch, m, n) = matrix_dims("householder_product", a.dtype(), a.dims());
    let fits = out.dims() == a.dims()
        && m >= n
        && taus.dims().split_last().is_some_and(|(k, outer)| *k <= n && outer == batch);
    assert!(fits, "householder_product: {:?} and {:?} to {:?}", a.dims(), taus.dims(), out.dims());
    by_storage!("householder_product", a.dtype(), run_product(pool, a, taus, out, m, n));
}

fn run_product<S: Storage>(pool: &Pool, a: Src<'_>, taus: Src<'_>, mut out: Dst<'_>, m: usize, n: usize) {
    if out.is_empty() {
        return;
    }
    let (count, k) = (out.len() / (m * n), taus.dims().last().copied().unwrap_or(0));
    let (vectors, factors) = (BatchIn::<S>::new(&a, m * n), BatchIn::<S>::new(&taus, k));
    let to = BatchOut::<S>::new(&mut out, m * n);
    for_each_matrix(pool, count, 2 * m * n * k, &|range, pool| {
        let (mut v, mut tau) = (vec![S::Number::ZERO; m * n], vec![S::Number::ZERO; k]);
        let mut q = vec![S::Number::ZERO; m * n];
        let mut block = Block::new(m, n);
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe {
                vectors.load(index, &mut v);
                if k > 0 {
                    factors.load(index, &mut tau);
                }
            }
            multiply_out(pool, (&v, n), &tau, (&mut q, n), &mut block);
            // SAFETY: as above; each index belongs to one chunk.
            unsafe { to.store(index, &q) };
        }
    });
}
