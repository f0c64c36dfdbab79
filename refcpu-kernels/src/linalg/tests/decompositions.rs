//! Tests of decompositions by their defining equations, for all types, shapes and batches.

use super::*;
use crate::linalg::{LinalgOp, SvdVectors, linalg};

/// Runs an operation; operands are of the kind's type unless they are arrays already.
fn apply(op: LinalgOp, operands: &[&Array]) -> Vec<Array> {
    let types: Vec<_> = operands.iter().map(|a| (a.src().dtype(), a.src().dims().to_vec())).collect();
    let types: Vec<_> = types.iter().map(|(dtype, dims)| (*dtype, &dims[..])).collect();
    let mut results: Vec<Array> =
        op.results(&types).unwrap().iter().map(|(dtype, dims)| Array::new(*dtype, dims)).collect();
    let sources: Vec<_> = operands.iter().map(|a| a.src()).collect();
    let mut destinations: Vec<_> = results.iter_mut().map(Array::dst).collect();
    linalg(&Pool::inline(), op, &sources, &mut destinations);
    drop(destinations);
    results
}

const EXACT_KINDS: [Kind; 4] = [
    Kind { dtype: DType::F32, is_complex: false, tolerance: 2e-5 },
    Kind { dtype: DType::F64, is_complex: false, tolerance: 1e-12 },
    Kind { dtype: DType::C64, is_complex: true, tolerance: 2e-5 },
    Kind { dtype: DType::C128, is_complex: true, tolerance: 1e-12 },
];

impl Kind {
    /// Returns a matrix of numbers around zero; imaginary parts as the kind has them.
    fn matrix(&self, rows: usize, columns: usize, seed: u64) -> Vec<C> {
        let mut a = random(rows * columns, seed);
        if !self.is_complex {
            a.iter_mut().for_each(|v| v.im = 0.0);
        }
        a
    }

    fn real(&self) -> Kind {
        let dtype = if matches!(self.dtype, DType::F32 | DType::C64) { DType::F32 } else { DType::F64 };
        Kind { dtype, is_complex: false, tolerance: self.tolerance }
    }

    fn complex(&self) -> Kind {
        let dtype = if matches!(self.dtype, DType::F32 | DType::C64) { DType::C64 } else { DType::C128 };
        Kind { dtype, is_complex: true, tolerance: self.tolerance }
    }
}

fn identity(n: usize) -> Vec<C> {
    (0..n * n).map(|at| if at / n == at % n { C::ONE } else { C::ZERO }).collect()
}

fn diagonal(d: &[C]) -> Vec<C> {
    let n = d.len();
    (0..n * n).map(|at| if at / n == at % n { d[at / n] } else { C::ZERO }).collect()
}

fn hermitian(a: &[C], n: usize) -> Vec<C> {
    a.iter().zip(adjoint(a, n, n)).map(|(x, y)| (x + y) * 0.5).collect()
}

#[track_caller]
fn unitary(q: &[C], rows: usize, columns: usize, tolerance: f64) {
    close(&product(&adjoint(q, rows, columns), q, columns, rows, columns), &identity(columns), tolerance);
}

/// Matrices that iterations find hard: clustered, graded, deficient, with zeros where they divide.
fn special(n: usize) -> Vec<(&'static str, Vec<C>)> {
    let of = |f: &dyn Fn(usize, usize) -> f64| -> Vec<C> {
        (0..n * n).map(|at| C::new(f(at / n.max(1), at % n.max(1)), 0.0)).collect()
    };
    vec![
        ("zero", of(&|_, _| 0.0)),
        ("identity", of(&|i, j| f64::from(u8::from(i == j)))),
        ("ones", of(&|_, _| 1.0)),
        ("graded", of(&|i, j| if i == j { 10f64.powi(-(i as i32) % 12) } else { 0.0 })),
        ("graded upwards", of(&|i, j| 0.5f64.powi((2 * n - i - j).min(60) as i32))),
        ("ones next to the diagonal", of(&|i, j| f64::from(u8::from(i.abs_diff(j) == 1)))),
        ("cycle", of(&|i, j| f64::from(u8::from((i + 1) % n.max(1) == j)))),
        ("tiny", of(&|i, j| 1e-30 * ((i * 7 + j * 3) % 11) as f64)),
        ("huge", of(&|i, j| 1e30 * ((i * 5 + j) % 13) as f64)),
        ("one row", of(&|i, j| if i == 0 { j as f64 + 1.0 } else { 0.0 })),
    ]
}

/// Returns all matrices of a size and a kind, with names for messages.
fn cases(kind: &Kind, n: usize) -> Vec<(String, Vec<C>)> {
    let random = (0..2).map(|seed| (format!("random {seed}"), kind.matrix(n, n, 17 + seed)));
    let special = special(n).into_iter().map(|(name, a)| (name.to_string(), a));
    random.chain(special).collect()
}

#[test]
fn hermitian_matrices_are_their_eigenvectors_times_eigenvalues() {
    for kind in EXACT_KINDS {
        for n in [0, 1, 2, 3, 20, 70] {
            for (name, a) in cases(&kind, n) {
                for lower in [true, false] {
                    let a = hermitian(&a, n);
                    // The other triangle is not looked at.
                    let given: Vec<C> = (0..n * n)
                        .map(|at| {
                            if (at / n >= at % n) == lower || at / n == at % n {
                                a[at]
                            } else {
                                C::new(7e8, 0.0)
                            }
                        })
                        .collect();
                    let results = apply(LinalgOp::Eigh { lower }, &[&kind.array(&[n, n], &given)]);
                    let (v, w) = (kind.read(&results[0]), kind.real().read(&results[1]));
                    unitary(&v, n, n, kind.tolerance);
                    let scale = a.iter().map(|v| v.norm()).fold(1e-300, f64::max);
                    let scaled = |m: &[C]| m.iter().map(|v| v / scale).collect::<Vec<_>>();
                    let left = scaled(&product(&a, &v, n, n, n));
                    let right = scaled(&product(&v, &diagonal(&w), n, n, n));
                    println!("{name} of {n}, {:?}", kind.dtype);
                    close(&left, &right, kind.tolerance * (1.0 + n as f64 / 4.0));
                    assert!(w.windows(2).all(|w| w[0].re <= w[1].re), "{name}: eigenvalues are not sorted");
                }
            }
        }
    }
}

#[test]
fn matrices_are_the_product_of_their_singular_vectors_and_values() {
    for kind in EXACT_KINDS {
        for (m, n) in [(0, 3), (3, 0), (1, 1), (4, 4), (7, 3), (3, 7), (33, 20), (20, 33), (60, 11), (40, 40)]
        {
            let mut all = vec![("random".to_string(), kind.matrix(m, n, 5))];
            if m == n {
                all.extend(cases(&kind, n));
            }
            for (name, a) in all {
                println!("{name} of {m} by {n}, {:?}", kind.dtype);
                let scale = a.iter().map(|v| v.norm()).fold(1e-300, f64::max);
                let input = kind.array(&[m, n], &a);
                let k = m.min(n);
                let mut found = vec![];
                for wanted in [SvdVectors::Nothing, SvdVectors::Thin, SvdVectors::Full] {
                    let results = apply(LinalgOp::Svd(wanted), &[&input]);
                    let s: Vec<C> = kind.real().read(&results[0]).iter().map(|v| v / scale).collect();
                    assert!(s.windows(2).all(|s| s[0].re >= s[1].re) && s.iter().all(|s| s.re >= 0.0));
                    if wanted == SvdVectors::Nothing {
                        found = s;
                        continue;
                    }
                    close(&s, &found, kind.tolerance * 4.0);
                    let (rows, columns) = if wanted == SvdVectors::Full { (m, n) } else { (k, k) };
                    let (u, v) = (kind.read(&results[1]), kind.read(&results[2]));
                    unitary(&u, m, rows, kind.tolerance);
                    unitary(&adjoint(&v, columns, n), n, columns, kind.tolerance);
                    let middle: Vec<C> = (0..rows * columns)
                        .map(|at| if at / columns == at % columns { s[at % columns] } else { C::ZERO })
                        .collect();
                    let back = product(&product(&u, &middle, m, rows, columns), &v, m, columns, n);
                    let a: Vec<C> = a.iter().map(|v| v / scale).collect();
                    close(&back, &a, kind.tolerance * 4.0);
                }
            }
        }
    }
}

#[test]
fn schur_forms_are_triangular_and_multiply_back() {
    for kind in EXACT_KINDS {
        for n in [0, 1, 2, 3, 5, 20, 60] {
            for (name, a) in cases(&kind, n) {
                println!("{name} of {n}, {:?}", kind.dtype);
                let results = apply(LinalgOp::Schur { vectors: true }, &[&kind.array(&[n, n], &a)]);
                let (t, z) = (kind.read(&results[0]), kind.read(&results[1]));
                unitary(&z, n, n, kind.tolerance * 2.0);
                let scale = a.iter().map(|v| v.norm()).fold(1e-300, f64::max);
                let back = product(&product(&z, &t, n, n, n), &adjoint(&z, n, n), n, n, n);
                let scaled = |m: &[C]| m.iter().map(|v| v / scale).collect::<Vec<_>>();
                close(&scaled(&back), &scaled(&a), kind.tolerance * (1.0 + n as f64));
                for i in 0..n {
                    for j in 0..i {
                        let is_block = !kind.is_complex && j + 1 == i;
                        assert!(is_block || t[i * n + j] == C::ZERO, "{name}: {i}, {j}");
                    }
                    if i + 1 < n && t[(i + 1) * n + i] != C::ZERO {
                        assert_eq!(t[i * n + i], t[(i + 1) * n + i + 1], "{name}: block {i} is not standard");
                        assert!(
                            t[(i + 1) * n + i].re * t[i * n + i + 1].re < 0.0,
                            "{name}: block {i} is real"
                        );
                        assert!(
                            i + 2 >= n || t[(i + 2) * n + i + 1] == C::ZERO,
                            "{name}: block {i} is larger"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn eigenvectors_of_general_matrices_satisfy_their_equation() {
    for kind in EXACT_KINDS {
        for n in [0, 1, 2, 3, 5, 20, 60] {
            for (name, a) in cases(&kind, n) {
                println!("{name} of {n}, {:?}", kind.dtype);
                let results = apply(LinalgOp::Eig { left: true, right: true }, &[&kind.array(&[n, n], &a)]);
                let complex = kind.complex();
                let [w, left, right] = [0, 1, 2].map(|at| complex.read(&results[at]));
                let scale = a.iter().map(|v| v.norm()).fold(1e-300, f64::max);
                let tolerance = kind.tolerance * (1.0 + n as f64);
                for (a, vectors, w) in [
                    (a.clone(), &right, w.clone()),
                    (adjoint(&a, n, n), &left, w.iter().map(|w| w.conj()).collect()),
                ] {
                    let scaled = |m: Vec<C>| m.iter().map(|v| v / scale).collect::<Vec<_>>();
                    let x = scaled(product(&a, vectors, n, n, n));
                    close(&x, &scaled(product(vectors, &diagonal(&w), n, n, n)), tolerance);
                    for j in 0..n {
                        let norm: f64 = (0..n).map(|i| vectors[i * n + j].norm_sqr()).sum();
                        assert!((norm - 1.0).abs() < tolerance, "{name}: vector {j} has norm {norm}");
                    }
                }
            }
        }
    }
}

/// Returns the unitary matrix of reflectors below the first `skip` diagonals of `packed`.
fn reflected(packed: &[C], taus: &[C], n: usize) -> Vec<C> {
    let mut q = identity(n);
    for (j, tau) in taus.iter().enumerate() {
        let v: Vec<C> = (0..n)
            .map(|i| match i.cmp(&(j + 1)) {
                std::cmp::Ordering::Less => C::ZERO,
                std::cmp::Ordering::Equal => C::ONE,
                std::cmp::Ordering::Greater => packed[i * n + j],
            })
            .collect();
        let mut h = identity(n);
        for (at, h) in h.iter_mut().enumerate() {
            *h -= tau * v[at / n] * v[at % n].conj();
        }
        q = product(&q, &h, n, n, n);
    }
    q
}

#[test]
fn hessenberg_and_tridiagonal_forms_multiply_back() {
    for kind in EXACT_KINDS {
        for n in [1, 2, 3, 20] {
            let a = kind.matrix(n, n, 3);
            let results = apply(LinalgOp::Hessenberg, &[&kind.array(&[n, n], &a)]);
            let (packed, taus) = (kind.read(&results[0]), kind.read(&results[1]));
            let q = reflected(&packed, &taus, n);
            let mut h = packed.clone();
            (0..n * n).filter(|at| at / n > at % n + 1).for_each(|at| h[at] = C::ZERO);
            close(&product(&product(&q, &h, n, n, n), &adjoint(&q, n, n), n, n, n), &a, kind.tolerance);

            let a = hermitian(&a, n);
            for lower in [true, false] {
                let results = apply(LinalgOp::Tridiagonal { lower }, &[&kind.array(&[n, n], &a)]);
                let mut packed = kind.read(&results[0]);
                let [mut d, mut e] = [1, 2].map(|at| kind.real().read(&results[at]));
                let mut taus = kind.read(&results[3]);
                let mut a = a.clone();
                let given = kind.read(&kind.array(&[n, n], &a));
                for (at, (found, given)) in packed.iter().zip(&given).enumerate() {
                    let other = if lower { at / n < at % n } else { at / n > at % n };
                    assert!(!other || found == given);
                }
                if !lower {
                    [&mut packed, &mut a, &mut d, &mut e, &mut taus].into_iter().for_each(|v| v.reverse());
                }
                let mut t = diagonal(&d);
                for (i, e) in e.iter().enumerate() {
                    (t[i * n + i + 1], t[(i + 1) * n + i]) = (*e, *e);
                }
                let q = reflected(&packed, &taus, n);
                close(&product(&product(&q, &t, n, n, n), &adjoint(&q, n, n), n, n, n), &a, kind.tolerance);
            }
        }
    }
}

#[test]
fn lu_factors_multiply_to_the_permuted_matrix() {
    for kind in EXACT_KINDS {
        for (m, n) in [(0, 2), (1, 1), (5, 5), (20, 50), (50, 20), (90, 90), (130, 70)] {
            let mut a = kind.matrix(m, n, 9);
            if m > 4 {
                // Singular, and with pivots far away.
                a[..n].fill(C::ZERO);
                a.copy_within(n..2 * n, 3 * n);
            }
            let results = apply(LinalgOp::Lu, &[&kind.array(&[m, n], &a)]);
            let packed = kind.read(&results[0]);
            let (pivots, permutation) = (results[1].values::<i32>(), results[2].values::<i32>());
            let k = m.min(n);
            let l: Vec<C> = (0..m * k)
                .map(|at| match (at / k).cmp(&(at % k)) {
                    std::cmp::Ordering::Less => C::ZERO,
                    std::cmp::Ordering::Equal => C::ONE,
                    std::cmp::Ordering::Greater => packed[at / k * n + at % k],
                })
                .collect();
            assert!(l.iter().all(|v| v.norm() < 1.5), "pivots are not the greatest");
            let u: Vec<C> = (0..k * n).map(|at| if at / n > at % n { C::ZERO } else { packed[at] }).collect();
            let permuted: Vec<C> =
                permutation.iter().flat_map(|i| a[*i as usize * n..][..n].to_vec()).collect();
            close(&product(&l, &u, m, k, n), &permuted, kind.tolerance);
            let again = apply(LinalgOp::LuPivotsToPermutation { size: m }, &[&results[1]]);
            assert_eq!(again[0].values::<i32>(), permutation);
            assert_eq!(pivots.len(), k);
        }
    }
}

#[test]
fn pivoted_qr_has_a_falling_diagonal_and_respects_columns_that_come_first() {
    for kind in EXACT_KINDS {
        for (m, n) in [(1, 1), (6, 4), (4, 6), (30, 30)] {
            for first in [0, 1] {
                let a = kind.matrix(m, n, 21);
                let mut chosen = vec![0i32; n];
                chosen[n - 1] = first;
                let chosen = Array::of(DType::S32, &[n], &chosen);
                let results = apply(LinalgOp::Geqp3, &[&kind.array(&[m, n], &a), &chosen]);
                let (packed, order, taus) =
                    (kind.read(&results[0]), results[1].values::<i32>(), kind.read(&results[2]));
                let k = m.min(n);
                let mut back: Vec<C> =
                    (0..m * n).map(|at| if at / n > at % n { C::ZERO } else { packed[at] }).collect();
                let fixed = usize::from(first > 0);
                assert!(fixed == 0 || order[0] as usize == n);
                for i in fixed + 1..k {
                    assert!(back[i * n + i].norm() <= back[(i - 1) * n + i - 1].norm() * 1.0001, "{i}");
                }
                let q = kind.array(&[m, n], &packed);
                let tau = kind.array(&[k], &taus);
                let product_of = |c: &[C], dims: [usize; 2], left, transpose| {
                    let op = LinalgOp::Ormqr { left, transpose };
                    kind.read(&apply(op, &[&q, &tau, &kind.array(&dims, c)])[0])
                };
                back = product_of(&back, [m, n], true, false);
                let expected: Vec<C> =
                    (0..m * n).map(|at| a[at / n * n + order[at % n] as usize - 1]).collect();
                close(&back, &expected, kind.tolerance);
                // The four products of one factor agree.
                let whole = product_of(&identity(m), [m, m], true, false);
                unitary(&whole, m, m, kind.tolerance);
                let c = kind.matrix(5, m, 2);
                close(&product_of(&c, [5, m], false, false), &product(&c, &whole, 5, m, m), kind.tolerance);
                let turned = product(&c, &adjoint(&whole, m, m), 5, m, m);
                close(&product_of(&c, [5, m], false, true), &turned, kind.tolerance);
                let c = adjoint(&c, 5, m);
                let turned = product(&adjoint(&whole, m, m), &c, m, m, 5);
                close(&product_of(&c, [m, 5], true, true), &turned, kind.tolerance);
            }
        }
    }
}

#[test]
fn tridiagonal_systems_are_solved_with_pivoting() {
    for kind in EXACT_KINDS {
        for n in [0, 1, 2, 3, 40] {
            let [below, above, right] = [1, 2, 3].map(|seed| kind.matrix(n, 1 + seed as usize / 3, seed));
            let mut main = kind.matrix(n, 1, 4);
            // Without pivoting, this one would divide by zero.
            if n > 2 {
                main[0] = C::ZERO;
            }
            let vectors = [&below, &main, &above].map(|v| kind.array(&[n], v));
            let right_side = kind.array(&[n, 2], &right);
            for perturb_singular in [false, true] {
                let results = apply(
                    LinalgOp::TridiagonalSolve { perturb_singular },
                    &[&vectors[0], &vectors[1], &vectors[2], &right_side],
                );
                let mut a = diagonal(&main);
                for i in 1..n {
                    (a[i * n + i - 1], a[(i - 1) * n + i]) = (below[i], above[i - 1]);
                }
                close(&product(&a, &kind.read(&results[0]), n, n, 2), &right, kind.tolerance * 100.0);
            }
            let zero = kind.array(&[n], &vec![C::ZERO; n]);
            for perturb_singular in [false, true] {
                let results = apply(
                    LinalgOp::TridiagonalSolve { perturb_singular },
                    &[&zero, &zero, &zero, &right_side],
                );
                assert!(kind.read(&results[0]).iter().all(|v| v.re.is_finite() == perturb_singular));
            }
        }
    }
}

#[test]
fn an_updated_cholesky_factor_is_that_of_the_updated_matrix() {
    for kind in [&EXACT_KINDS[0], &EXACT_KINDS[1]] {
        for n in [0, 1, 5, 30] {
            let mut r = kind.matrix(n, n, 8);
            for i in 0..n {
                r[i * n..i * n + i].fill(C::ZERO);
                r[i * n + i] += 2.0;
            }
            let w = kind.matrix(n, 1, 9);
            let result = apply(LinalgOp::CholeskyUpdate, &[&kind.array(&[n, n], &r), &kind.array(&[n], &w)]);
            let found = kind.read(&result[0]);
            let mut expected = product(&adjoint(&r, n, n), &r, n, n, n);
            (0..n * n).for_each(|at| expected[at] += w[at / n] * w[at % n]);
            close(&product(&adjoint(&found, n, n), &found, n, n, n), &expected, kind.tolerance);
            assert!((0..n).all(|i| found[i * n..i * n + i].iter().all(|v| *v == C::ZERO)));
        }
    }
}

#[test]
fn what_is_not_finite_gives_nan_and_leaves_the_rest_of_the_batch() {
    let ops = [
        LinalgOp::Eigh { lower: true },
        LinalgOp::Eig { left: true, right: true },
        LinalgOp::Svd(SvdVectors::Full),
        LinalgOp::Schur { vectors: true },
    ];
    for kind in EXACT_KINDS {
        for bad in [f64::NAN, f64::INFINITY] {
            for op in ops {
                let mut a = kind.matrix(12, 6, 1);
                a[7].re = bad;
                for result in apply(op, &[&kind.array(&[2, 6, 6], &a)]) {
                    let like = Kind { dtype: result.src().dtype(), is_complex: false, tolerance: 0.0 };
                    let values = like.read(&result);
                    let half = values.len() / 2;
                    assert!(values[..half].iter().all(|v| v.re.is_nan()), "{op:?}");
                    assert!(values[half..].iter().all(|v| v.re.is_finite()), "{op:?}");
                }
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let ops = [
        LinalgOp::Eigh { lower: true },
        LinalgOp::Eig { left: true, right: true },
        LinalgOp::Svd(SvdVectors::Full),
        LinalgOp::Lu,
    ];
    let n = 150;
    let input = EXACT_KINDS[1].array(&[n, n], &EXACT_KINDS[1].matrix(n, n, 1));
    for op in ops {
        let mut found = [1, 4].map(|threads| {
            let pool = Pool::new(threads);
            let types = op.results(&[(DType::F64, &[n, n])]).unwrap();
            let mut results: Vec<Array> =
                types.iter().map(|(dtype, dims)| Array::new(*dtype, dims)).collect();
            let mut destinations: Vec<_> = results.iter_mut().map(Array::dst).collect();
            linalg(&pool, op, &[input.src()], &mut destinations);
            drop(destinations);
            results.iter().map(|r| r.src().bytes().to_vec()).collect::<Vec<_>>()
        });
        let [one, four] = &mut found;
        assert!(one == four, "{op:?}");
    }
}

#[test]
fn operands_that_do_not_fit_are_refused_with_a_reason() {
    let square: &[usize] = &[4, 4];
    for (op, operands) in [
        (LinalgOp::Eigh { lower: true }, vec![(DType::F32, &[3, 4][..])]),
        (LinalgOp::Eigh { lower: true }, vec![(DType::S32, square)]),
        (LinalgOp::Eigh { lower: true }, vec![(DType::F32, square), (DType::F32, square)]),
        (LinalgOp::Lu, vec![(DType::F32, &[4][..])]),
        (LinalgOp::CholeskyUpdate, vec![(DType::C64, square), (DType::C64, &[4][..])]),
        (LinalgOp::Geqp3, vec![(DType::F32, square), (DType::S64, &[4][..])]),
        (LinalgOp::LuPivotsToPermutation { size: 3 }, vec![(DType::S32, &[4][..])]),
        (
            LinalgOp::Ormqr { left: true, transpose: false },
            vec![(DType::F32, square), (DType::F32, &[5][..]), (DType::F32, square)],
        ),
        (
            LinalgOp::TridiagonalSolve { perturb_singular: false },
            vec![
                (DType::F32, &[4][..]),
                (DType::F32, &[4][..]),
                (DType::F32, &[3][..]),
                (DType::F32, square),
            ],
        ),
    ] {
        assert!(op.results(&operands).is_err(), "{op:?} of {operands:?}");
    }
}
