//! Eigenvalues and eigenvectors of general matrices, from their Schur form.

use super::matrix::{BatchIn, BatchOut, Field, Real, Storage, View, for_each_matrix, set_product};
use super::reflector::{norm, range_scale};
use super::schur::{Schur, decompose};
use crate::{Dst, Pool, Src};

/// Computes the eigenvalues, then left and right eigenvectors if requested, in columns of norm 1; NaN for
/// matrices that are not finite. All are complex.
pub(super) fn run<S: Storage<Number: Schur>>(
    pool: &Pool,
    input: Src<'_>,
    w: &mut [Dst<'_>],
    left: bool,
    right: bool,
) {
    let n = input.dims()[input.dims().len() - 1];
    let count = input.len() / (n * n).max(1);
    let from = BatchIn::<S>::new(&input, n * n);
    let mut results = w.iter_mut();
    let values = BatchOut::<S::Complex>::new(results.next().expect("eig: results"), n);
    let mut vectors = |wanted: bool| {
        wanted.then(|| BatchOut::<S::Complex>::new(results.next().expect("eig: results"), n * n))
    };
    let (left, right) = (vectors(left), vectors(right));
    for_each_matrix(pool, count, 25 * n * n * n, &|range, pool| {
        let mut a = vec![S::Number::ZERO; n * n];
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe { from.load(index, &mut a) };
            let found = eig(pool, &mut a, n, left.is_some(), right.is_some());
            let nan = || vec![<S::Number as Field>::Complex::NAN; n * n];
            let found = found.unwrap_or_else(|| Eig {
                values: vec![<S::Number as Field>::Complex::NAN; n],
                left: nan(),
                right: nan(),
            });
            // SAFETY: as above; each index belongs to one chunk.
            unsafe {
                values.store(index, &found.values);
                if let Some(left) = &left {
                    left.store(index, &found.left);
                }
                if let Some(right) = &right {
                    right.store(index, &found.right);
                }
            }
        }
    });
}

struct Eig<T: Field> {
    values: Vec<T::Complex>,
    left: Vec<T::Complex>,
    right: Vec<T::Complex>,
}

/// Returns `None` if the matrix is not finite, or if the iteration does not converge.
fn eig<T: Schur>(pool: &Pool, a: &mut [T], n: usize, left: bool, right: bool) -> Option<Eig<T>> {
    let scale = range_scale(a).ok()?;
    if let Some(scale) = scale {
        a.iter_mut().for_each(|v| *v = v.scale(scale));
    }
    let balance = balance(a, n);
    let z = decompose(pool, a, n, left || right, left || right)?;
    let mut found = Eig { values: eigenvalues(a, n), left: vec![], right: vec![] };
    if right {
        let x = triangular_eigenvectors(a, n, &found.values);
        found.right = finish(&z, &x, n, |i| balance[i]);
    }
    if left {
        // Left eigenvectors of T are right ones of T^H, which is triangular from its end on.
        let turned: Vec<T> = (0..n * n).map(|at| a[(n - 1 - at % n) * n + n - 1 - at / n].conj()).collect();
        let values: Vec<T::Complex> = found.values.iter().rev().map(|v: &T::Complex| v.conj()).collect();
        let mut x = triangular_eigenvectors(&turned, n, &values);
        x.reverse();
        found.left = finish(&z, &x, n, |i| T::Real::ONE / balance[i]);
    }
    if let Some(scale) = scale {
        let undo = T::Real::ONE / scale;
        found.values.iter_mut().for_each(|v: &mut T::Complex| *v = v.scale(undo));
    }
    Some(found)
}

/// Scales the matrix to `D^-1 * A * D`, such that each row is about as large as the column that it meets on
/// the diagonal (as LAPACK's `gebal` does), and returns the diagonal of `D`: powers of two.
fn balance<T: Field>(a: &mut [T], n: usize) -> Vec<T::Real> {
    let two = T::Real::ONE + T::Real::ONE;
    let four = two * two;
    let mut factors = vec![T::Real::ONE; n];
    loop {
        let mut done = true;
        for i in 0..n {
            let others = || (0..n).filter(move |j| *j != i);
            let mut column = others().fold(T::Real::ZERO, |s, j| s + a[j * n + i].abs1());
            let row = others().fold(T::Real::ZERO, |s, j| s + a[i * n + j].abs1());
            if column == T::Real::ZERO || row == T::Real::ZERO {
                continue;
            }
            let (size, mut factor) = (column + row, T::Real::ONE);
            while column < row / two {
                (factor, column) = (factor * two, column * four);
            }
            while column >= row * two {
                (factor, column) = (factor / two, column / four);
            }
            if (column + row) / factor < T::Real::from_f64(0.95) * size {
                done = false;
                factors[i] *= factor;
                others().for_each(|j| a[i * n + j] = a[i * n + j].scale(T::Real::ONE / factor));
                others().for_each(|j| a[j * n + i] = a[j * n + i].scale(factor));
            }
        }
        if done {
            return factors;
        }
    }
}

/// Returns `true` if row `i` and the next one form a block of a real Schur form.
fn is_block<T: Field>(t: &[T], n: usize, i: usize) -> bool {
    !T::IS_COMPLEX && i + 1 < n && t[(i + 1) * n + i] != T::ZERO
}

/// Returns the eigenvalues of a Schur form, in order; of a pair, the one with the positive imaginary part
/// first.
fn eigenvalues<T: Field>(t: &[T], n: usize) -> Vec<T::Complex> {
    let mut values: Vec<T::Complex> = (0..n).map(|i| t[i * n + i].to_complex()).collect();
    let mut i = 0;
    while i < n {
        if is_block(t, n, i) {
            let im = t[i * n + i + 1].abs().root() * t[(i + 1) * n + i].abs().root();
            values[i + 1] = T::complex(t[(i + 1) * n + i + 1].re(), -im);
            values[i] = T::complex(t[i * n + i].re(), im);
            i += 1;
        }
        i += 1;
    }
    values
}

/// Returns the eigenvectors of a Schur form, in columns, by substitution from below.
fn triangular_eigenvectors<T: Field>(t: &[T], n: usize, values: &[T::Complex]) -> Vec<T::Complex> {
    let mut vectors = vec![<T::Complex as Field>::ZERO; n * n];
    let mut x = vec![<T::Complex as Field>::ZERO; n];
    let mut k = 0;
    while k < n {
        x.fill(<T::Complex as Field>::ZERO);
        let pair = is_block(t, n, k);
        x[k] = <T::Complex as Field>::ONE;
        if pair {
            // (T - lambda) * x = 0 within the block, from the row with the greater element.
            let (above, below) = (t[k * n + k + 1], t[(k + 1) * n + k]);
            let im = <T::Complex as Field>::imaginary(values[k].im());
            if above.abs() >= below.abs() {
                x[k + 1] = im.over(above.to_complex());
            } else {
                x[k] = im.over(below.to_complex());
                x[k + 1] = <T::Complex as Field>::ONE;
            }
        }
        substitute(t, n, k, values[k], &mut x[..k + 1 + usize::from(pair)]);
        for (i, value) in x.iter().enumerate() {
            vectors[i * n + k] = *value;
            if pair {
                vectors[i * n + k + 1] = value.conj();
            }
        }
        k += 1 + usize::from(pair);
    }
    vectors
}

/// Finds elements `0..known` of an eigenvector `x` from those after them.
fn substitute<T: Field>(t: &[T], n: usize, known: usize, value: T::Complex, x: &mut [T::Complex]) {
    let least = (T::Real::EPSILON * value.abs1()).most(T::Real::TINY / T::Real::EPSILON);
    let mut end = known;
    while end > 0 {
        let block = end > 1 && is_block(t, n, end - 2);
        let start = end - 1 - usize::from(block);
        let right = |i: usize, x: &[T::Complex]| {
            let row = &t[i * n + end..i * n + x.len()];
            let zero = <T::Complex as Field>::ZERO;
            row.iter().zip(&x[end..]).fold(zero, |s, (t, x)| s - t.to_complex() * *x)
        };
        let shifted = |i: usize| t[i * n + i].to_complex() - value;
        if block {
            let (first, second) = (right(start, x), right(start + 1, x));
            let (above, below) =
                (t[start * n + start + 1].to_complex(), t[(start + 1) * n + start].to_complex());
            let (a, d) = (shifted(start), shifted(start + 1));
            let determinant = at_least::<T>(a * d - above * below, (least * least).most(T::Real::TINY));
            (x[start], x[start + 1]) = (first * d - second * above, second * a - first * below);
            divide::<T>(x, start, end, determinant);
        } else {
            x[start] = right(start, x);
            divide::<T>(x, start, end, at_least::<T>(shifted(start), least));
        }
        end = start;
    }
}

/// Divides elements `start..end` by a number; makes all elements from `start` on smaller where they would
/// overflow.
fn divide<T: Field>(x: &mut [T::Complex], start: usize, end: usize, by: T::Complex) {
    let one = T::Real::ONE;
    let most = one / (T::Real::TINY / T::Real::EPSILON).root();
    let size = x[start..end].iter().fold(T::Real::ZERO, |s, v| s.most(v.abs1()));
    if size <= by.abs1().least(one) * most {
        x[start..end].iter_mut().for_each(|v| *v = v.over(by));
        return;
    }
    let direction = by.over(<T::Complex as Field>::from_real(by.abs1()));
    let size_as_number = <T::Complex as Field>::from_real(size);
    x[start..end].iter_mut().for_each(|v| *v = v.over(size_as_number).over(direction));
    x[end..].iter_mut().for_each(|v| *v = v.scale(by.abs1() / size));
}

/// Returns the number, or one of size `least` in its place if it is smaller.
fn at_least<T: Field>(v: T::Complex, least: T::Real) -> T::Complex {
    if v.abs1() < least { <T::Complex as Field>::from_real(least) } else { v }
}

/// Computes eigenvectors of the matrix from those of its Schur form: multiplies them by the unitary factor
/// (which is passed transposed) and by `scale` of the row, and normalizes them to norm 1 with a real greatest
/// element.
fn finish<T: Field>(
    z: &[T],
    x: &[T::Complex],
    n: usize,
    scale: impl Fn(usize) -> T::Real,
) -> Vec<T::Complex> {
    let mut z: Vec<T::Complex> = z.iter().map(|v| v.to_complex()).collect();
    let mut x = x.to_vec();
    let mut vectors = vec![<T::Complex as Field>::ZERO; n * n];
    let dense = |m: &mut Vec<T::Complex>| View::dense(m.as_mut_ptr(), n);
    // SAFETY: the three matrices are `n` by `n`, and nothing else accesses them.
    unsafe { set_product(dense(&mut vectors), dense(&mut z).transposed(), dense(&mut x), (n, n, n)) };
    let mut column = vec![<T::Complex as Field>::ZERO; n];
    for j in 0..n {
        for (i, v) in column.iter_mut().enumerate() {
            *v = vectors[i * n + j].scale(scale(i));
        }
        let length = norm(&column);
        column.iter_mut().for_each(|v| *v = v.scale(T::Real::ONE / length));
        if column.iter().any(|v| v.im() != T::Real::ZERO) {
            let mut greatest = 0;
            for i in 1..n {
                if column[i].norm_sqr() > column[greatest].norm_sqr() {
                    greatest = i;
                }
            }
            let size = column[greatest].abs();
            let phase = column[greatest].conj().scale(T::Real::ONE / size);
            column.iter_mut().for_each(|v| *v *= phase);
            column[greatest] = <T::Complex as Field>::from_real(size);
        }
        for (i, v) in column.iter().enumerate() {
            vectors[i * n + j] = *v;
        }
    }
    vectors
}
