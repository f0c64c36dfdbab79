//! Schur forms.

use super::hessenberg::{reduce, unitary_factor};
use super::matrix::{BatchIn, BatchOut, Field, Real, Storage, for_each_matrix};
use super::reflector::{make_reflector, range_scale};
use crate::isa::{Isa, multiversion};
use crate::{Dst, Pool, Src};
use rustfft::num_complex::Complex;

/// Computes the Schur form of each matrix (for real ones, the real form with standardized blocks of two),
/// and, if there is a second result, the unitary factor; NaN for matrices that are not finite.
pub(super) fn run<S: Storage<Number: Schur>>(pool: &Pool, input: Src<'_>, w: &mut [Dst<'_>]) {
    let n = input.dims()[input.dims().len() - 1];
    let count = input.len() / (n * n).max(1);
    let from = BatchIn::<S>::new(&input, n * n);
    let (form, vectors) = w.split_first_mut().expect("schur: results");
    let form = BatchOut::<S>::new(form, n * n);
    let vectors = vectors.first_mut().map(|v| BatchOut::<S>::new(v, n * n));
    for_each_matrix(pool, count, 20 * n * n * n, &|range, pool| {
        let mut a = vec![S::Number::ZERO; n * n];
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe { from.load(index, &mut a) };
            let scale = range_scale(&a);
            if let Ok(Some(scale)) = scale {
                a.iter_mut().for_each(|v| *v = v.scale(scale));
            }
            let mut z = vec![];
            let found = scale.is_ok().then(|| decompose(pool, &mut a, n, vectors.is_some(), true)).flatten();
            match found {
                Some(rows) => z = rows,
                None => {
                    a.fill(S::Number::NAN);
                    z.resize(if vectors.is_some() { n * n } else { 0 }, S::Number::NAN);
                }
            }
            if let Ok(Some(scale)) = scale {
                a.iter_mut().for_each(|v| *v = v.scale(<S::Number as Field>::Real::ONE / scale));
            }
            // SAFETY: as above; each index belongs to one chunk.
            unsafe {
                form.store(index, &a);
                if let Some(vectors) = &vectors {
                    let turned: Vec<_> = (0..n * n).map(|at| z[at % n * n + at / n]).collect();
                    vectors.store(index, &turned);
                }
            }
        }
    });
}

/// Replaces the `n` by `n` matrix `a` with its Schur form. Unless `whole`, only the eigenvalues are computed,
/// and the elements above them are incomplete. Returns the transposed unitary factor, which is empty unless
/// `vectors`, or `None` if the iteration does not converge.
pub(super) fn decompose<T: Schur>(
    pool: &Pool,
    a: &mut [T],
    n: usize,
    vectors: bool,
    whole: bool,
) -> Option<Vec<T>> {
    let tau = reduce(a, n);
    let mut z = vec![];
    if vectors {
        let q = unitary_factor(pool, a, n, &tau);
        z = (0..n * n).map(|at| q[at % n * n + at / n]).collect();
    }
    for i in 2..n {
        a[i * n..i * n + i - 1].fill(T::ZERO);
    }
    let mut hessenberg = Hessenberg { h: a, z: &mut z, n, whole };
    let mut hi = n;
    let mut tries = 0;
    while hi > 0 {
        let lo = hessenberg.start_of_block(hi);
        if hi - lo > T::BLOCK {
            if tries > MAX_TRIES {
                return None;
            }
            T::step(&mut hessenberg, lo, hi - 1, tries);
            tries += 1;
            continue;
        }
        T::finish(&mut hessenberg, lo, hi - 1);
        tries = 0;
        hi = lo;
    }
    Some(z)
}

/// The maximum number of steps per eigenvalue or pair of eigenvalues. Three are usual.
const MAX_TRIES: usize = 300;

/// A matrix on its way from Hessenberg to Schur form.
pub(super) struct Hessenberg<'a, T> {
    h: &'a mut [T],
    /// The unitary factor transposed, or empty.
    z: &'a mut [T],
    n: usize,
    whole: bool,
}

/// Numbers whose matrices have a Schur form over the same numbers.
pub(super) trait Schur: Field {
    /// The number of rows of the largest block on the diagonal of a Schur form.
    const BLOCK: usize;
    /// Performs a QR step on the unreduced block of rows `lo..=hi`.
    fn step(m: &mut Hessenberg<'_, Self>, lo: usize, hi: usize, tries: usize);
    /// Brings a block of at most [`Self::BLOCK`] rows to its standard form.
    fn finish(m: &mut Hessenberg<'_, Self>, lo: usize, hi: usize);
}

macro_rules! schur {
    ($($t:ident)*) => {$(
        impl Schur for $t {
            const BLOCK: usize = 2;
            fn step(m: &mut Hessenberg<'_, Self>, lo: usize, hi: usize, tries: usize) {
                m.double_step(lo, hi, tries);
            }
            fn finish(m: &mut Hessenberg<'_, Self>, lo: usize, hi: usize) {
                if hi > lo {
                    m.standardise(lo);
                }
            }
        }

        impl Schur for Complex<$t> {
            const BLOCK: usize = 1;
            fn step(m: &mut Hessenberg<'_, Self>, lo: usize, hi: usize, tries: usize) {
                m.single_step(lo, hi, tries);
            }
            fn finish(_: &mut Hessenberg<'_, Self>, _: usize, _: usize) {}
        }
    )*};
}
schur!(f32 f64);

impl<T: Field> Hessenberg<'_, T> {
    fn at(&self, i: usize, j: usize) -> T {
        self.h[i * self.n + j]
    }

    fn set(&mut self, i: usize, j: usize, value: T) {
        self.h[i * self.n + j] = value;
    }

    /// Returns the first row that a step on the block at `lo` changes.
    fn first_row(&self, lo: usize) -> usize {
        if self.whole { 0 } else { lo }
    }

    /// Returns the end of the columns that a step on the block that ends at `hi` changes.
    fn end_column(&self, hi: usize) -> usize {
        if self.whole { self.n } else { hi + 1 }
    }

    /// Returns the start of the unreduced block that ends before row `end`, and sets the negligible element
    /// to its left to zero. An element is negligible, relative to its neighbors on the diagonal, if removing
    /// it changes eigenvalues by less than rounding does (Ahues and Tisseur's criterion).
    fn start_of_block(&mut self, end: usize) -> usize {
        let epsilon = T::Real::EPSILON;
        let small = T::Real::TINY * (T::Real::from_f64(self.n as f64) / epsilon);
        for k in (1..end).rev() {
            let below = self.at(k, k - 1).abs1();
            let mut size = self.at(k - 1, k - 1).abs1() + self.at(k, k).abs1();
            if size == T::Real::ZERO {
                if k >= 2 {
                    size += self.at(k - 1, k - 2).abs1();
                }
                if k + 1 < end {
                    size += self.at(k + 1, k).abs1();
                }
            }
            let mut negligible = below <= small;
            if !negligible && below <= epsilon * size {
                let above = self.at(k - 1, k).abs1();
                let (ab, ba) = (below.most(above), below.least(above));
                let (d, difference) = (self.at(k, k).abs1(), (self.at(k - 1, k - 1) - self.at(k, k)).abs1());
                let (aa, bb) = (d.most(difference), d.least(difference));
                let sum = aa + ab;
                negligible = ba * (ab / sum) <= small.most(epsilon * (bb * (aa / sum)));
            }
            if negligible {
                self.set(k, k - 1, T::ZERO);
                return k;
            }
        }
        0
    }

    /// Replaces rows `k` and `k + 1` by `c * x + s * y` and `c * y - conj(s) * x`, in columns of `range`, and
    /// does the same to the unitary factor and, adjointly, to the columns in rows of `rows`.
    fn rotate(
        &mut self,
        k: usize,
        (c, s): (T::Real, T),
        columns: std::ops::Range<usize>,
        rows: std::ops::Range<usize>,
    ) {
        let n = self.n;
        let (x, y) = self.h[k * n..(k + 2) * n].split_at_mut(n);
        rotate_rows(&mut x[columns.clone()], &mut y[columns], c, s);
        for row in self.h[rows.start * n..rows.end * n].chunks_exact_mut(n) {
            let (x, y) = (row[k], row[k + 1]);
            row[k] = x.scale(c) + y * s.conj();
            row[k + 1] = y.scale(c) - x * s;
        }
        if !self.z.is_empty() {
            let (x, y) = self.z[k * n..(k + 2) * n].split_at_mut(n);
            rotate_rows(x, y, c, s.conj());
        }
    }
}

impl<R: Real> Hessenberg<'_, R> {
    /// Performs Francis's step with two shifts at once, which is real even if they are a complex pair.
    fn double_step(&mut self, lo: usize, hi: usize, tries: usize) {
        let (start, mut v) = self.start_of_double_step(lo, hi, self.shifts(lo, hi, tries));
        let (first_row, end) = (self.first_row(lo), self.end_column(hi));
        let n = self.n;
        for k in start..hi {
            let count = 3.min(hi - k + 1);
            if k > start {
                v = [R::ZERO; 3];
                for (i, v) in v.iter_mut().enumerate().take(count) {
                    *v = self.at(k + i, k - 1);
                }
            }
            let (beta, tau) = make_reflector(&mut v[..count]);
            if k > start {
                self.set(k, k - 1, beta);
                for i in 1..count {
                    self.set(k + i, k - 1, R::ZERO);
                }
            } else if k > lo {
                self.set(k, k - 1, self.at(k, k - 1) * (R::ONE - tau));
            }
            v[count..].fill(R::ZERO);
            reflect_rows(&mut self.h[k * n..(k + count) * n], n, k..end, v, tau);
            let last_row = hi.min(k + 3);
            for row in self.h[first_row * n..(last_row + 1) * n].chunks_exact_mut(n) {
                let row = &mut row[k..k + count];
                let sum = tau * row.iter().zip(&v).fold(R::ZERO, |s, (x, v)| s + *x * *v);
                row.iter_mut().zip(&v).for_each(|(x, v)| *x -= sum * *v);
            }
            if !self.z.is_empty() {
                reflect_rows(&mut self.z[k * n..(k + count) * n], n, 0..n, v, tau);
            }
        }
    }

    /// Returns the real and imaginary parts of two shifts: the eigenvalues of the last block of two or, if
    /// they are real, the nearer one twice. At intervals, returns exceptional shifts, for matrices on which
    /// the usual ones have no effect.
    fn shifts(&self, lo: usize, hi: usize, tries: usize) -> [(R, R); 2] {
        let exceptional = |near: usize, size: R| {
            let h = R::from_f64(0.75) * size + self.at(near, near);
            [h, R::from_f64(-0.4375) * size, size, h]
        };
        let [a, b, c, d] = match tries % 20 {
            10 => exceptional(lo, self.at(lo + 1, lo).magnitude() + self.at(lo + 2, lo + 1).magnitude()),
            0 if tries > 0 => {
                exceptional(hi, self.at(hi, hi - 1).magnitude() + self.at(hi - 1, hi - 2).magnitude())
            }
            _ => [self.at(hi - 1, hi - 1), self.at(hi - 1, hi), self.at(hi, hi - 1), self.at(hi, hi)],
        };
        let size = a.magnitude() + b.magnitude() + c.magnitude() + d.magnitude();
        if size == R::ZERO {
            return [(R::ZERO, R::ZERO); 2];
        }
        let [a, b, c, d] = [a / size, b / size, c / size, d / size];
        let middle = (a + d) / (R::ONE + R::ONE);
        let determinant = (a - middle) * (d - middle) - b * c;
        let distance = determinant.magnitude().root();
        if determinant >= R::ZERO {
            return [(middle * size, distance * size), (middle * size, -distance * size)];
        }
        let (first, second) = (middle + distance, middle - distance);
        let nearer = if (first - d).magnitude() <= (second - d).magnitude() { first } else { second };
        [(nearer * size, R::ZERO); 2]
    }

    /// Returns the row where a step can begin, because the product of two neighboring elements below the
    /// diagonal is small, and the first column of the product of the shifted matrices from there on.
    fn start_of_double_step(&self, lo: usize, hi: usize, shifts: [(R, R); 2]) -> (usize, [R; 3]) {
        let [(r1, i1), (r2, i2)] = shifts;
        let mut m = hi - 2;
        loop {
            let below = self.at(m + 1, m);
            let (a, d) = (self.at(m, m), self.at(m + 1, m + 1));
            let size = (a - r2).magnitude() + i2.magnitude() + below.magnitude();
            let ratio = below / size;
            let mut v = [
                ratio * self.at(m, m + 1) + (a - r1) * ((a - r2) / size) - i1 * (i2 / size),
                ratio * (a + d - r1 - r2),
                ratio * self.at(m + 2, m + 1),
            ];
            let sum = v.iter().fold(R::ZERO, |s, v| s + v.magnitude());
            v.iter_mut().for_each(|v| *v = *v / sum);
            if m == lo {
                return (m, v);
            }
            let left = self.at(m, m - 1).magnitude() * (v[1].magnitude() + v[2].magnitude());
            let around = self.at(m - 1, m - 1).magnitude() + a.magnitude() + d.magnitude();
            if left <= R::EPSILON * v[0].magnitude() * around {
                return (m, v);
            }
            m -= 1;
        }
    }

    /// Brings the block of rows `k` and `k + 1` to standard form: upper triangular if its eigenvalues are
    /// real, else with equal elements on the diagonal.
    fn standardise(&mut self, k: usize) {
        let n = self.n;
        let block = [self.at(k, k), self.at(k, k + 1), self.at(k + 1, k), self.at(k + 1, k + 1)];
        let (standard, c, s) = standard_form(block);
        let (first_row, end) = (self.first_row(k), self.end_column(k + 1));
        self.rotate(k, (c, s), (k + 2).min(end)..end, first_row..k);
        self.h[k * n + k..k * n + k + 2].copy_from_slice(&standard[..2]);
        self.h[(k + 1) * n + k..(k + 1) * n + k + 2].copy_from_slice(&standard[2..]);
    }
}

/// Returns the standard form of a block `[a, b, c, d]`, and the rotation to it.
fn standard_form<R: Real>([mut a, mut b, mut c, mut d]: [R; 4]) -> ([R; 4], R, R) {
    let half = R::ONE / (R::ONE + R::ONE);
    let same_sign = |x: R, y: R| (x >= R::ZERO) == (y >= R::ZERO);
    if c == R::ZERO || (a == d && !same_sign(b, c) && b != R::ZERO) {
        return ([a, b, c, d], R::ONE, R::ZERO);
    }
    if b == R::ZERO {
        return ([d, -c, R::ZERO, a], R::ZERO, R::ONE);
    }
    let p = half * (a - d);
    let most = b.magnitude().most(c.magnitude());
    let mut least = b.magnitude().least(c.magnitude());
    if !same_sign(b, c) {
        least = -least;
    }
    let size = p.magnitude().most(most);
    let z = p / size * p + most / size * least;
    if z >= R::from_f64(4.0) * R::EPSILON {
        // Real eigenvalues.
        let z = p + (size.root() * z.root()).with_sign(p);
        let tau = c.hypot(z);
        return ([d + z, b - c, R::ZERO, d - most / z * least], z / tau, c / tau);
    }
    // A complex pair, or nearly equal real ones: equal elements on the diagonal first.
    let sigma = b + c;
    let tau = sigma.hypot(a - d);
    let mut cos = (half * (R::ONE + sigma.magnitude() / tau)).root();
    let mut sin = -(p / (tau * cos)) * R::ONE.with_sign(sigma);
    let (x, y) = (a * cos + b * sin, b * cos - a * sin);
    let (z, w) = (c * cos + d * sin, d * cos - c * sin);
    (a, b, c, d) = (x * cos + z * sin, y * cos + w * sin, z * cos - x * sin, w * cos - y * sin);
    let middle = half * (a + d);
    (a, d) = (middle, middle);
    if c != R::ZERO && b == R::ZERO {
        (b, c) = (-c, R::ZERO);
        (cos, sin) = (-sin, cos);
    } else if c != R::ZERO && same_sign(b, c) {
        // They are real after all.
        let (above, below) = (b.magnitude().root(), c.magnitude().root());
        let p = (above * below).with_sign(c);
        let tau = R::ONE / (b + c).magnitude().root();
        (a, d) = (middle + p, middle - p);
        (b, c) = (b - c, R::ZERO);
        let (cos1, sin1) = (above * tau, below * tau);
        (cos, sin) = (cos * cos1 - sin * sin1, cos * sin1 + sin * cos1);
    }
    ([a, b, c, d], cos, sin)
}

impl<R: Real> Hessenberg<'_, Complex<R>>
where
    Complex<R>: Field<Real = R, Complex = Complex<R>>,
{
    /// Performs an implicit QR step with Wilkinson's shift.
    fn single_step(&mut self, lo: usize, hi: usize, tries: usize) {
        let shift = self.shift(lo, hi, tries);
        let (first_row, end) = (self.first_row(lo), self.end_column(hi));
        let (mut x, mut y) = (self.at(lo, lo) - shift, self.at(lo + 1, lo));
        for k in lo..hi {
            let (c, s, r) = complex_rotation(x, y);
            if k > lo {
                self.set(k, k - 1, r);
                self.set(k + 1, k - 1, Field::ZERO);
            }
            self.rotate(k, (c, s), k..end, first_row..hi.min(k + 2) + 1);
            if k + 1 < hi {
                (x, y) = (self.at(k + 1, k), self.at(k + 2, k));
            }
        }
    }

    /// Returns the eigenvalue of the last block of two that is nearer to its last element. At intervals,
    /// returns an exceptional shift, for a matrix on which the usual one has no effect.
    fn shift(&self, lo: usize, hi: usize, tries: usize) -> Complex<R> {
        let exceptional = |near: usize, size: Complex<R>| {
            self.at(near, near) + Complex::from_real(R::from_f64(0.75) * size.re().magnitude())
        };
        match tries % 20 {
            10 => return exceptional(lo, self.at(lo + 1, lo)),
            0 if tries > 0 => return exceptional(hi, self.at(hi, hi - 1)),
            _ => {}
        }
        let last = self.at(hi, hi);
        let product = principal_root(self.at(hi - 1, hi)) * principal_root(self.at(hi, hi - 1));
        if product.abs1() == R::ZERO {
            return last;
        }
        let half = (self.at(hi - 1, hi - 1) - last).scale(R::ONE / (R::ONE + R::ONE));
        let size = product.abs1().most(half.abs1());
        if size < R::TINY / R::EPSILON {
            return last;
        }
        let (x, u) = (half.scale(R::ONE / size), product.scale(R::ONE / size));
        let mut y = principal_root(x * x + u * u);
        if x.re() * y.re() + x.im() * y.im() < R::ZERO {
            y = -y;
        }
        last - product * u.over(x + y)
    }
}

/// Returns the square root with a real part that is not negative; zero for numbers below the least normal
/// one.
fn principal_root<R: Real>(z: Complex<R>) -> Complex<R>
where
    Complex<R>: Field<Real = R>,
{
    let size = z.abs();
    if size < R::TINY {
        return Field::ZERO;
    }
    let half = R::ONE / (R::ONE + R::ONE);
    let large = (half * (size + z.re().magnitude())).root();
    let small = half * (z.im() / large);
    if z.re() >= R::ZERO {
        Complex::new(large, small)
    } else {
        Complex::new(small.magnitude(), large.with_sign(z.im()))
    }
}

/// Returns a real `c` and an `s` with `c * x + s * y = r` and `c * y - conj(s) * x = 0`, and `r`.
fn complex_rotation<T: Field>(x: T, y: T) -> (T::Real, T, T) {
    let (long, other) = (x.abs(), y.abs());
    if other == T::Real::ZERO {
        return (T::Real::ONE, T::ZERO, x);
    }
    if long == T::Real::ZERO {
        return (T::Real::ZERO, y.conj().over(T::from_real(other)), T::from_real(other));
    }
    let norm = long.hypot(other);
    let phase = x.over(T::from_real(long));
    (long / norm, phase * y.conj().over(T::from_real(norm)), phase.scale(norm))
}

/// Computes `x = c * x + s * y` and `y = c * y - conj(s) * x`.
fn rotate_rows<T: Field>(x: &mut [T], y: &mut [T], c: T::Real, s: T) {
    // SAFETY: it has no contract.
    unsafe { rotate_rows_of(x, y, c, s) }
}

multiversion! {
    unsafe fn rotate_rows_of<T: Field>(x: &mut [T], y: &mut [T], c: T::Real, s: T) = rotate_rows_body
}

#[inline(always)]
unsafe fn rotate_rows_body<I: Isa, T: Field>(x: &mut [T], y: &mut [T], c: T::Real, s: T) {
    for (x, y) in x.iter_mut().zip(y) {
        let (first, second) = (*x, *y);
        *x = first.scale(c) + s * second;
        *y = second.scale(c) - s.conj() * first;
    }
}

/// Applies a reflector to two or three neighboring rows of `n` elements, in some columns.
fn reflect_rows<R: Real>(rows: &mut [R], n: usize, columns: std::ops::Range<usize>, v: [R; 3], tau: R) {
    let (x, rest) = rows.split_at_mut(n);
    let (y, z) = rest.split_at_mut(n);
    let z = if z.is_empty() { z } else { &mut z[columns.clone()] };
    // SAFETY: it has no contract.
    unsafe { reflect_rows_of(&mut x[columns.clone()], &mut y[columns], z, v, tau) }
}

multiversion! {
    unsafe fn reflect_rows_of<R: Real>(x: &mut [R], y: &mut [R], z: &mut [R], v: [R; 3], tau: R) = reflect_rows_body
}

#[inline(always)]
unsafe fn reflect_rows_body<I: Isa, R: Real>(x: &mut [R], y: &mut [R], z: &mut [R], v: [R; 3], tau: R) {
    if z.is_empty() {
        for (x, y) in x.iter_mut().zip(y) {
            let sum = tau * (*x + v[1] * *y);
            *x -= sum;
            *y -= sum * v[1];
        }
        return;
    }
    for ((x, y), z) in x.iter_mut().zip(y).zip(z) {
        let sum = tau * (*x + v[1] * *y + v[2] * *z);
        *x -= sum;
        *y -= sum * v[1];
        *z -= sum * v[2];
    }
}
