//! Reductions of matrices to bidiagonal form, and of bidiagonal matrices to diagonal form.

use super::matrix::{Field, Real};
use super::panel::{Panel, Update, row_products, update_and_sum};
use super::reflector::make_reflector;
use super::rotation::{Rotations, Rows, rotation};
use crate::Pool;

/// A matrix, with no fewer rows than columns, as `Q * B * P^H` with a real upper bidiagonal matrix.
pub(super) struct Bidiagonal<T: Field> {
    /// The diagonal, `n`.
    pub(super) d: Vec<T::Real>,
    /// The diagonal above it, `n - 1`.
    pub(super) e: Vec<T::Real>,
    /// Factors of the `n` reflectors whose product is `Q`.
    pub(super) tau_q: Vec<T>,
    /// Factors of the `n - 1` reflectors whose product is the lower right part of `P`.
    pub(super) tau_p: Vec<T>,
    /// Their vectors, in the columns of an `n - 1` by `n - 1` matrix from the diagonal on.
    pub(super) right: Vec<T>,
}

/// Reduces the `m` by `n` matrix `a`, `m >= n`, and stores the vectors of the reflectors from the left in its
/// columns, from the diagonal down.
pub(super) fn bidiagonalise<T: Field>(a: &mut [T], m: usize, n: usize) -> Bidiagonal<T> {
    let inner = n.saturating_sub(1);
    let (mut d, mut e) = (vec![T::Real::ZERO; n], vec![T::Real::ZERO; inner]);
    let (mut tau_q, mut tau_p) = (vec![T::ZERO; n], vec![T::ZERO; inner]);
    let mut right = vec![T::ZERO; inner * inner];
    // The update `v * y + x * u^H` of the step before.
    let (mut v, mut x) = (vec![T::ZERO; m], vec![T::ZERO; m]);
    let (mut y, mut u_adjoint) = (vec![T::ZERO; n], vec![T::ZERO; n]);
    let (mut column, mut weights) = (vec![T::ZERO; m], vec![T::ZERO; m]);
    let (mut sums, mut u) = (vec![T::ZERO; n], vec![T::ZERO; n]);
    for i in 0..n {
        for r in i..m {
            column[r] = a[r * n + i] - v[r] * y[i] - x[r] * u_adjoint[i];
        }
        (d[i], tau_q[i]) = make_reflector(&mut column[i..]);
        for r in i..m {
            a[r * n + i] = column[r];
            weights[r] = column[r].conj();
        }
        let next = i + 1;
        if next == n {
            break;
        }
        sums[next..].fill(T::ZERO);
        let update = Update { columns: [&v[i..], &x[i..]], rows: [&y[next..], &u_adjoint[next..]] };
        update_and_sum(Panel::new(a, n, i, next), update, &weights[i..], &mut sums[next..]);
        v[i..].copy_from_slice(&column[i..]);
        for j in next..n {
            y[j] = tau_q[i].conj() * sums[j];
            u[j] = (a[i * n + j] - y[j]).conj();
        }
        (e[i], tau_p[i]) = make_reflector(&mut u[next..]);
        let mut product = T::ZERO;
        for j in next..n {
            right[(j - 1) * inner + i] = u[j];
            u_adjoint[j] = u[j].conj();
            product += y[j] * u[j];
        }
        row_products(Panel::new(a, n, next, next), &u[next..], &mut x[next..]);
        for r in next..m {
            x[r] = tau_p[i] * (x[r] - v[r] * product);
        }
    }
    Bidiagonal { d, e, tau_q, tau_p, right }
}

/// The maximum number of sweeps per singular value. Two are usual.
const MAX_SWEEPS: usize = 60;
/// Rotations that are collected before they are applied.
const ROTATIONS: usize = 1 << 15;

/// The vectors that [`diagonalise`] transforms.
pub(super) struct Vectors<'a, R> {
    /// Left vectors in rows.
    pub(super) left: &'a mut Rows<R>,
    /// Right vectors in rows.
    pub(super) right: &'a mut Rows<R>,
}

/// Reduces a bidiagonal matrix to diagonal form by rotations from both sides (Golub and Kahan's iteration;
/// without a shift, as by Demmel and Kahan, if a shift would lose small singular values). Returns `None` if
/// the iteration does not converge.
pub(super) fn diagonalise<R: Real>(
    pool: &Pool,
    d: &mut [R],
    e: &mut [R],
    mut vectors: Option<Vectors<'_, R>>,
) -> Option<()> {
    let n = d.len();
    let tolerance = R::EPSILON * R::from_f64(if R::EPSILON > R::from_f64(1e-10) { 10.0 } else { 90.0 });
    // A lower bound of the least singular value; elements this small next to it do not matter.
    let mut least = d.first().map_or(R::ZERO, |v| v.magnitude());
    let mut bound = least;
    for k in 0..n.saturating_sub(1) {
        bound = d[k + 1].magnitude() * (bound / (bound + e[k].magnitude()).most(R::TINY));
        least = least.least(bound);
    }
    let size = R::from_f64(n.max(1) as f64);
    let threshold = (tolerance * least / size.root()).most(R::TINY * size * size * R::from_f64(6.0));
    let mut found = [Rotations::new(), Rotations::new()];
    let mut sweeps = 0;
    let mut hi = n.saturating_sub(1);
    while hi > 0 {
        if e[hi - 1].magnitude() <= threshold {
            e[hi - 1] = R::ZERO;
            hi -= 1;
            continue;
        }
        let mut lo = hi - 1;
        while lo > 0 && e[lo - 1].magnitude() > threshold {
            lo -= 1;
        }
        if lo > 0 {
            e[lo - 1] = R::ZERO;
        }
        sweeps += 1;
        if sweeps > MAX_SWEEPS * n {
            return None;
        }
        // Small singular values are found at the end where the diagonal is small.
        let turned = d[lo].magnitude() < d[hi].magnitude();
        let [left, right] = &mut found;
        let (left, right) = if turned { (right, left) } else { (left, right) };
        let mut block = Chase { d: &mut d[lo..=hi], e: &mut e[lo..hi], turned, lo };
        block.step(tolerance, left, right);
        if found[0].len() >= ROTATIONS {
            vectors.iter_mut().for_each(|v| v.apply(pool, &mut found));
        }
        if vectors.is_none() {
            found = [Rotations::new(), Rotations::new()];
        }
    }
    if let Some(vectors) = &mut vectors {
        vectors.apply(pool, &mut found);
    }
    Some(())
}

impl<R: Real> Vectors<'_, R> {
    fn apply(&mut self, pool: &Pool, [left, right]: &mut [Rotations<R>; 2]) {
        self.left.apply(pool, left);
        self.right.apply(pool, right);
    }
}

/// An unreduced bidiagonal matrix whose first row is `lo`. If `turned`, it is read from its end, so that
/// rotations from the left become rotations from the right.
struct Chase<'a, R> {
    d: &'a mut [R],
    e: &'a mut [R],
    turned: bool,
    lo: usize,
}

impl<R: Real> Chase<'_, R> {
    fn row(&self, k: usize) -> usize {
        if self.turned { self.d.len() - 1 - k } else { k }
    }

    fn d(&mut self, k: usize) -> &mut R {
        let at = self.row(k);
        &mut self.d[at]
    }

    fn e(&mut self, k: usize) -> &mut R {
        let at = if self.turned { self.e.len() - 1 - k } else { k };
        &mut self.e[at]
    }

    /// Performs an implicit QR step, unless an element of the superdiagonal is negligible, which is then set
    /// to zero.
    fn step(&mut self, tolerance: R, left: &mut Rotations<R>, right: &mut Rotations<R>) {
        let last = self.d.len() - 1;
        if self.e(last - 1).magnitude() <= tolerance * self.d(last).magnitude() {
            *self.e(last - 1) = R::ZERO;
            return;
        }
        let mut bound = self.d(0).magnitude();
        let mut least = bound;
        let mut most = bound.most(self.d(last).magnitude());
        for k in 0..last {
            let off = self.e(k).magnitude();
            if off <= tolerance * bound {
                *self.e(k) = R::ZERO;
                return;
            }
            let next = self.d(k + 1).magnitude();
            bound = next * (bound / (bound + off));
            least = least.least(bound);
            most = most.most(next).most(off);
        }
        let size = R::from_f64((last + 1) as f64);
        let first = *self.d(0);
        let mut shift = R::ZERO;
        if size * tolerance * (least / most) > R::EPSILON.most(R::from_f64(0.01) * tolerance) {
            shift = least_singular_value(*self.d(last - 1), *self.e(last - 1), *self.d(last));
            let ratio = shift / first;
            if ratio * ratio < R::EPSILON {
                shift = R::ZERO;
            }
        }
        let start = self.lo + self.row(0);
        left.sweep(start, self.turned);
        right.sweep(start, self.turned);
        if shift == R::ZERO {
            self.without_shift(left, right);
        } else {
            self.with_shift(shift, left, right);
        }
    }

    fn without_shift(&mut self, left: &mut Rotations<R>, right: &mut Rotations<R>) {
        let last = self.d.len() - 1;
        let (mut cos, mut old_cos, mut old_sin) = (R::ONE, R::ONE, R::ZERO);
        for k in 0..last {
            let (c, s, r) = rotation(*self.d(k) * cos, *self.e(k));
            if k > 0 {
                *self.e(k - 1) = old_sin * r;
            }
            let (d, below) = (old_cos * r, *self.d(k + 1) * s);
            cos = c;
            (old_cos, old_sin, *self.d(k)) = rotation(d, below);
            right.push(c, s);
            left.push(old_cos, old_sin);
        }
        let corner = *self.d(last) * cos;
        *self.d(last) = corner * old_cos;
        *self.e(last - 1) = corner * old_sin;
    }

    fn with_shift(&mut self, shift: R, left: &mut Rotations<R>, right: &mut Rotations<R>) {
        let last = self.d.len() - 1;
        let first = *self.d(0);
        let mut f = (first.magnitude() - shift) * (R::ONE.with_sign(first) + shift / first);
        let mut g = *self.e(0);
        for k in 0..last {
            let (c, s, r) = rotation(f, g);
            if k > 0 {
                *self.e(k - 1) = r;
            }
            let (d, e, below) = (*self.d(k), *self.e(k), *self.d(k + 1));
            f = c * d + s * e;
            *self.e(k) = c * e - s * d;
            g = s * below;
            *self.d(k + 1) = c * below;
            right.push(c, s);
            let (c, s, r) = rotation(f, g);
            *self.d(k) = r;
            let (e, below) = (*self.e(k), *self.d(k + 1));
            f = c * e + s * below;
            *self.d(k + 1) = c * below - s * e;
            if k + 1 < last {
                g = s * *self.e(k + 1);
                *self.e(k + 1) = c * *self.e(k + 1);
            }
            left.push(c, s);
        }
        *self.e(last - 1) = f;
    }
}

/// Returns the lesser singular value of an upper triangular matrix with this diagonal and this element above
/// it.
fn least_singular_value<R: Real>(first: R, above: R, second: R) -> R {
    let (a, b, off) = (first.magnitude(), second.magnitude(), above.magnitude());
    let (small, large) = (a.least(b), a.most(b));
    if small == R::ZERO {
        return R::ZERO;
    }
    let (sum, difference) = (R::ONE + small / large, (large - small) / large);
    let two = R::ONE + R::ONE;
    if off < large {
        let t = (off / large) * (off / large);
        return small * (two / ((sum * sum + t).root() + (difference * difference + t).root()));
    }
    let t = large / off;
    if t == R::ZERO {
        return small * large / off;
    }
    let (x, y) = (sum * t, difference * t);
    two * (small / ((R::ONE + x * x).root() + (R::ONE + y * y).root())) * t
}
