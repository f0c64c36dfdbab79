//! Systems with tridiagonal matrices.

use super::matrix::{BatchIn, BatchOut, Field, Real, Storage, for_each_matrix};
use crate::{Dst, Pool, Src};

/// Solves by elimination with partial pivoting (LAPACK's `gtsv`). The operands are the subdiagonal (whose
/// first element is ignored), the main diagonal, the superdiagonal (whose last element is ignored), and the
/// right-hand sides. The result is NaN for singular matrices. If `perturb`, pivots that are too small are
/// replaced with numbers of the size of rounding errors (LAPACK's `lagts`).
pub(super) fn run<S: Storage>(pool: &Pool, r: &[Src<'_>], w: &mut [Dst<'_>], perturb: bool) {
    let ([below, main, above, right], [out]) = (r, w) else {
        panic!("tridiagonal_solve: four operands and a result");
    };
    let &[.., n, sides] = right.dims() else { panic!("tridiagonal_solve: {:?}", right.dims()) };
    let count = out.dims().iter().rev().skip(2).product();
    let [below, main, above] = [below, main, above].map(|d| BatchIn::<S>::new(d, n));
    let (right, out) = (BatchIn::<S>::new(right, n * sides), BatchOut::<S>::new(out, n * sides));
    for_each_matrix(pool, count, n * (sides + 1) * 8, &|range, _| {
        let [mut dl, mut d, mut du, mut du2] = [0; 4].map(|_| vec![S::Number::ZERO; n]);
        let mut x = vec![S::Number::ZERO; n * sides];
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`; each index belongs
            // to one chunk.
            unsafe {
                below.load(index, &mut dl);
                main.load(index, &mut d);
                above.load(index, &mut du);
                right.load(index, &mut x);
            }
            if !solve([&mut dl, &mut d, &mut du, &mut du2], &mut x, perturb) {
                x.fill(S::Number::NAN);
            }
            // SAFETY: as above.
            unsafe { out.store(index, &x) };
        }
    });
}

/// Solves one system in place; false if the matrix is singular.
fn solve<T: Field>([dl, d, du, du2]: [&mut [T]; 4], x: &mut [T], perturb: bool) -> bool {
    let n = d.len();
    if n == 0 || x.is_empty() {
        return true;
    }
    let sides = x.len() / n;
    (dl[0], du[n - 1]) = (T::ZERO, T::ZERO);
    du2.fill(T::ZERO);
    let mut least = T::Real::ZERO;
    if perturb {
        least =
            [&*dl, &*d, &*du].into_iter().flatten().fold(least, |s, v| s.most(v.abs1())) * T::Real::EPSILON;
        if least == T::Real::ZERO {
            least = T::Real::EPSILON;
        }
    }
    let pivot = |v: T| if v.abs1() < least { T::from_real(least.with_sign(v.re())) } else { v };
    for k in 0..n - 1 {
        let (row, next) = x[k * sides..(k + 2) * sides].split_at_mut(sides);
        if dl[k + 1].abs1() > d[k].abs1() {
            let below = pivot(dl[k + 1]);
            let factor = d[k].over(below);
            d[k] = below;
            (du[k], d[k + 1]) = (d[k + 1], du[k] - factor * d[k + 1]);
            (du2[k], du[k + 1]) = (du[k + 1], -factor * du[k + 1]);
            for (a, b) in row.iter_mut().zip(next) {
                (*a, *b) = (*b, *a - factor * *b);
            }
        } else {
            d[k] = pivot(d[k]);
            if d[k] == T::ZERO {
                return false;
            }
            let factor = dl[k + 1].over(d[k]);
            d[k + 1] -= factor * du[k];
            for (a, b) in row.iter_mut().zip(next) {
                *b -= factor * *a;
            }
        }
    }
    d[n - 1] = pivot(d[n - 1]);
    if d[n - 1] == T::ZERO {
        return false;
    }
    for k in (0..n).rev() {
        let (head, tail) = x.split_at_mut((k + 1) * sides);
        let row = &mut head[k * sides..];
        for (side, a) in row.iter_mut().enumerate() {
            let mut sum = *a;
            if k + 1 < n {
                sum -= du[k] * tail[side];
            }
            if k + 2 < n {
                sum -= du2[k] * tail[sides + side];
            }
            *a = sum.over(d[k]);
        }
    }
    true
}
