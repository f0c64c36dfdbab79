mod decompositions;

use super::matrix::Field;
use super::*;
use crate::testing::Array;
use crate::view::Element;
use crate::{DType, Pool};
use rustfft::num_complex::Complex;

type C = Complex<f64>;

/// Sizes on both sides of every block size.
const SIZES: [usize; 7] = [0, 1, 2, 5, 33, 70, 150];

fn random(n: usize, seed: u64) -> Vec<C> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5
    };
    (0..n).map(|_| C::new(next(), next())).collect()
}

/// Types to test with: how to make an array of complex numbers, how to read it back, and how exact it is.
struct Kind {
    dtype: DType,
    is_complex: bool,
    tolerance: f64,
}

const KINDS: [Kind; 5] = [
    Kind { dtype: DType::F32, is_complex: false, tolerance: 2e-4 },
    Kind { dtype: DType::F64, is_complex: false, tolerance: 1e-11 },
    Kind { dtype: DType::C64, is_complex: true, tolerance: 2e-4 },
    Kind { dtype: DType::C128, is_complex: true, tolerance: 1e-11 },
    Kind { dtype: DType::BF16, is_complex: false, tolerance: 0.2 },
];

impl Kind {
    fn array(&self, dims: &[usize], values: &[C]) -> Array {
        fn of<T: Element>(dtype: DType, dims: &[usize], values: &[C], f: impl Fn(&C) -> T) -> Array {
            Array::of(dtype, dims, &values.iter().map(f).collect::<Vec<T>>())
        }
        match self.dtype {
            DType::F32 => of(self.dtype, dims, values, |v| v.re as f32),
            DType::F64 => of(self.dtype, dims, values, |v| v.re),
            DType::C64 => of(self.dtype, dims, values, |v| [v.re as f32, v.im as f32]),
            DType::C128 => of(self.dtype, dims, values, |v| [v.re, v.im]),
            _ => of(self.dtype, dims, values, |v| half::bf16::from_f64(v.re)),
        }
    }

    fn read(&self, array: &Array) -> Vec<C> {
        match self.dtype {
            DType::F32 => array.values::<f32>().iter().map(|v| C::new((*v).into(), 0.0)).collect(),
            DType::F64 => array.values::<f64>().iter().map(|v| C::new(*v, 0.0)).collect(),
            DType::C64 => {
                array.values::<[f32; 2]>().iter().map(|v| C::new(v[0].into(), v[1].into())).collect()
            }
            DType::C128 => array.values::<[f64; 2]>().iter().map(|v| C::new(v[0], v[1])).collect(),
            _ => array.values::<half::bf16>().iter().map(|v| C::new(v.to_f64(), 0.0)).collect(),
        }
    }

    fn sizes(&self) -> impl Iterator<Item = usize> {
        let limit = if self.dtype == DType::BF16 { 6 } else { usize::MAX };
        SIZES.into_iter().filter(move |n| *n < limit)
    }
}

fn product(a: &[C], b: &[C], rows: usize, inner: usize, columns: usize) -> Vec<C> {
    let mut out = vec![C::ZERO; rows * columns];
    for i in 0..rows {
        for k in 0..inner {
            for j in 0..columns {
                out[i * columns + j] += a[i * inner + k] * b[k * columns + j];
            }
        }
    }
    out
}

fn adjoint(a: &[C], rows: usize, columns: usize) -> Vec<C> {
    (0..rows * columns).map(|i| a[i % rows * columns + i / rows].conj()).collect()
}

#[track_caller]
fn close(a: &[C], b: &[C], tolerance: f64) {
    let scale = b.iter().map(|v| v.norm()).fold(1.0, f64::max);
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert!((x - y).norm() <= tolerance * scale, "{x} is not {y} at {i}");
    }
}

/// Returns a well-conditioned Hermitian positive definite matrix.
fn definite(n: usize, seed: u64) -> Vec<C> {
    let a = random(n * n, seed);
    let mut m = product(&a, &adjoint(&a, n, n), n, n, n);
    (0..n).for_each(|i| m[i * n + i] += n as f64 * 0.2 + 1.0);
    m
}

#[test]
fn cholesky_factors_multiply_back() {
    for kind in KINDS {
        for n in kind.sizes() {
            for lower in [true, false] {
                let mut m = [definite(n, 3), definite(n, 4)].concat();
                if !kind.is_complex {
                    m.iter_mut().for_each(|v| v.im = 0.0);
                }
                let mut input = m.clone();
                // The other triangle must not be read.
                for b in 0..2 {
                    for i in 0..n {
                        for j in 0..n {
                            if if lower { j > i } else { j < i } {
                                input[(b * n + i) * n + j] = C::new(f64::NAN, f64::NAN);
                            }
                        }
                    }
                }
                let input = kind.array(&[2, n, n], &input);
                let mut out = kind.array(&[2, n, n], &m);
                cholesky(&Pool::inline(), input.src(), out.dst(), lower);
                let out = kind.read(&out);
                for b in 0..2 {
                    let l = &out[b * n * n..(b + 1) * n * n];
                    let l = if lower { l.to_vec() } else { adjoint(l, n, n) };
                    close(
                        &product(&l, &adjoint(&l, n, n), n, n, n),
                        &m[b * n * n..(b + 1) * n * n],
                        kind.tolerance,
                    );
                }
            }
        }
    }
}

#[test]
fn cholesky_of_an_indefinite_matrix_is_nan_and_leaves_the_others_of_the_batch() {
    for at in [0, 1, 69] {
        let n = 70;
        let mut m: Vec<f32> = definite(n, 1).iter().map(|v| v.re as f32).collect();
        m = [m.clone(), m].concat();
        m[at * n + at] = -1.0;
        let input = Array::of(DType::F32, &[2, n, n], &m);
        let mut out = Array::new(DType::F32, &[2, n, n]);
        cholesky(&Pool::inline(), input.src(), out.dst(), true);
        let out = out.values::<f32>();
        assert!(out[..n * n].iter().all(|v| v.is_nan()) && out[n * n..].iter().all(|v| v.is_finite()));
    }
}

#[test]
fn triangular_solves_satisfy_their_equation() {
    for kind in KINDS {
        for n in kind.sizes() {
            for case in 0..24 {
                let spec = TriangularSolve {
                    left_side: case & 1 == 1,
                    lower: case & 2 == 2,
                    unit_diagonal: case & 4 == 4,
                    transpose_a: [TransposeA::NoTranspose, TransposeA::Transpose, TransposeA::Adjoint]
                        [case / 8],
                };
                let k = 3 + case;
                let (rows, columns) = if spec.left_side { (n, k) } else { (k, n) };
                let mut a = [random(n * n, 5), random(n * n, 6)].concat();
                let mut b = random(2 * n * k, 7);
                if !kind.is_complex {
                    a.iter_mut().chain(&mut b).for_each(|v| v.im = 0.0);
                }
                for (at, v) in a.iter_mut().enumerate() {
                    let (i, j) = (at / n.max(1) % n.max(1), at % n.max(1));
                    *v = if i == j { *v + 2.0 } else { *v * (2.0 / n as f64) };
                }
                // The elements that the solver may read, and those that it must not.
                let mut full = a.clone();
                for at in 0..a.len() {
                    let (i, j) = (at / n % n, at % n);
                    if if spec.lower { j > i } else { j < i } {
                        (full[at], a[at]) = (C::ZERO, C::new(1e9, 0.0));
                    } else if i == j && spec.unit_diagonal {
                        (full[at], a[at]) = (C::ONE, C::new(1e9, 0.0));
                    }
                }
                let (sa, sb) = (kind.array(&[2, n, n], &a), kind.array(&[2, rows, columns], &b));
                let mut out = kind.array(&[2, rows, columns], &b);
                triangular_solve(&Pool::inline(), sa.src(), sb.src(), out.dst(), spec);
                let x = kind.read(&out);
                for batch in 0..2 {
                    let a = &full[batch * n * n..(batch + 1) * n * n];
                    let op = match spec.transpose_a {
                        TransposeA::NoTranspose => a.to_vec(),
                        TransposeA::Transpose => adjoint(a, n, n).iter().map(|v| v.conj()).collect(),
                        TransposeA::Adjoint => adjoint(a, n, n),
                    };
                    let range = batch * n * k..(batch + 1) * n * k;
                    let x = &x[range.clone()];
                    let got =
                        if spec.left_side { product(&op, x, n, n, k) } else { product(x, &op, k, n, n) };
                    close(&got, &b[range], kind.tolerance * 4.0);
                }
            }
        }
    }
}

#[test]
fn reflectors_multiply_out_to_a_unitary_factor() {
    for kind in KINDS {
        for (m, n) in [(1, 1), (5, 3), (3, 5), (4, 4), (70, 33), (33, 70), (150, 150), (0, 3)] {
            if kind.dtype == DType::BF16 && m.max(n) > 6 {
                continue;
            }
            let k = m.min(n);
            let mut a = random(2 * m * n, 11);
            if !kind.is_complex {
                a.iter_mut().for_each(|v| v.im = 0.0);
            }
            let input = kind.array(&[2, m, n], &a);
            let (mut packed, mut taus) =
                (Array::new(kind.dtype, &[2, m, n]), Array::new(kind.dtype, &[2, k]));
            qr(&Pool::inline(), input.src(), packed.dst(), taus.dst());
            // The square factor: the vectors in the first k columns, zeros to the right.
            let values = kind.read(&packed);
            let mut wide = vec![C::ZERO; 2 * m * m];
            for row in 0..2 * m {
                wide[row * m..row * m + k].copy_from_slice(&values[row * n..row * n + k]);
            }
            let vectors = kind.array(&[2, m, m], &wide);
            let mut q = Array::new(kind.dtype, &[2, m, m]);
            householder_product(&Pool::inline(), vectors.src(), taus.src(), q.dst());
            let q = kind.read(&q);
            for batch in 0..2 {
                let q = &q[batch * m * m..(batch + 1) * m * m];
                let mut r = values[batch * m * n..(batch + 1) * m * n].to_vec();
                for i in 0..m {
                    r[i * n..i * n + i.min(n)].fill(C::ZERO);
                }
                close(&product(q, &r, m, m, n), &a[batch * m * n..(batch + 1) * m * n], kind.tolerance);
                let identity: Vec<C> =
                    (0..m * m).map(|i| if i / m == i % m { C::ONE } else { C::ZERO }).collect();
                close(&product(&adjoint(q, m, m), q, m, m, m), &identity, kind.tolerance);
            }
        }
    }
}

#[test]
fn a_column_that_is_zero_below_needs_no_reflector() {
    let input = Array::of(DType::F32, &[2, 2], &[3.0f32, 1.0, 0.0, 2.0]);
    let (mut out, mut taus) = (Array::new(DType::F32, &[2, 2]), Array::new(DType::F32, &[2]));
    qr(&Pool::inline(), input.src(), out.dst(), taus.dst());
    assert_eq!(taus.values::<f32>(), [0.0, 0.0]);
    assert_eq!(out.values::<f32>(), [3.0, 1.0, 0.0, 2.0]);
}
