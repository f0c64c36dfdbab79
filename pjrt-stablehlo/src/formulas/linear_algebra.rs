//! Factorizations and triangular systems of batches of matrices. A loop computes a row or a column at a time.
//!
//! The last two dimensions are those of the matrices, and all others are batches.

use crate::build::Builder;
use crate::ir::ops::{DotGeneral, DynamicSlice, TriangularSolve, While};
use crate::ir::{
    ComparisonDirection as Cmp, DotDimensionNumbers, ElementType, OpCode, Precision, TensorType,
    TransposeKind, ValueId,
};

/// The type of the indices of rows and columns.
const INDEX: ElementType = ElementType::I32;

/// `stablehlo.cholesky`: the factor of positive definite matrices, with zeros in the other triangle. The factor of any other
/// matrix is NaN.
///
/// Column `j` of the lower factor is `(a[:, j] - l l[j, :]^H) / sqrt(a[j, j] - |l[j, :]|^2)` with the columns of `l` before `j`.
pub(crate) fn cholesky(b: &mut Builder, a: ValueId, lower: bool) -> ValueId {
    let ty = b.tensor(a);
    let (dims, [row, column]) = (ty.dims().to_vec(), last_two(&ty));
    if dims.contains(&0) {
        return a;
    }
    let source = if lower { a } else { adjoint(b, a) };
    let empty = b.zeros(ty.clone());
    let [factor] = repeat(b, dims[row], [empty], |b, j, [factor]| {
        let known = slice_at(b, factor, row, j);
        let known = conjugate(b, known);
        let sum = product(b, [factor, known], [column, column]);
        let given = slice_at(b, source, column, j);
        let rest = b.subtract(given, sum);
        let pivot = slice_at(b, rest, row, j);
        let pivot = real(b, pivot);
        let root = b.sqrt(pivot);
        let root = of_real(b, root, ty.element_type());
        let next = b.dims(rest);
        let root = spread(b, root, &next);
        let below = b.divide(rest, root);
        let zero = b.number(0.0, below);
        let next = choose(b, row, j, [zero, root, below]);
        let next = spread(b, next, &dims);
        let is_next = compare_index(b, &dims, column, Cmp::Eq, j);
        [b.select(is_next, next, factor)]
    });
    // A pivot that is not positive makes all that follow NaN.
    let starts: Vec<i64> =
        dims.iter().enumerate().map(|(d, &size)| if d < row { 0 } else { size - 1 }).collect();
    let last = b.slice(factor, &starts, &dims);
    let last = real(b, last);
    let is_positive = b.compare_with(Cmp::Gt, last, 0.0);
    let is_positive = spread(b, is_positive, &dims);
    let nan = b.number(f64::NAN, factor);
    let factor = b.select(is_positive, factor, nan);
    if lower { factor } else { adjoint(b, factor) }
}

/// `stablehlo.triangular_solve`. A system on the right is the transposed system on the left.
pub(crate) fn triangular_solve(b: &mut Builder, a: ValueId, rhs: ValueId, op: &TriangularSolve) -> ValueId {
    let ty = b.tensor(a);
    let (dims, [row, column]) = (ty.dims().to_vec(), last_two(&ty));
    if b.dims(rhs).contains(&0) {
        return rhs;
    }
    let (mut matrix, mut lower) = (a, op.lower);
    if op.transpose_a == TransposeKind::Adjoint {
        matrix = conjugate(b, matrix);
    }
    let is_transposed = op.transpose_a != TransposeKind::NoTranspose;
    if is_transposed == op.left_side {
        (matrix, lower) = (transpose(b, matrix), !lower);
    }
    let rhs = if op.left_side { rhs } else { transpose(b, rhs) };
    let (rows, columns) = (b.iota(INDEX, &dims, row as i64), b.iota(INDEX, &dims, column as i64));
    let zero = b.number(0.0, matrix);
    let is_before = b.compare(if lower { Cmp::Lt } else { Cmp::Gt }, columns, rows);
    let before = b.select(is_before, matrix, zero);
    let diagonal = (!op.unit_diagonal).then(|| {
        let is_diagonal = b.compare(Cmp::Eq, rows, columns);
        let diagonal = b.select(is_diagonal, matrix, zero);
        sum(b, diagonal, column)
    });
    let unsolved = b.number(0.0, rhs);
    let [solution] = repeat(b, dims[row], [unsolved], |b, step, [solution]| {
        let i = if lower { step } else { reversed(b, step, dims[row]) };
        let factors = slice_at(b, before, row, i);
        let known = product(b, [factors, solution], [column, row]);
        let given = slice_at(b, rhs, row, i);
        let mut next = b.subtract(given, known);
        if let Some(diagonal) = diagonal {
            let divisor = slice_at(b, diagonal, row, i);
            let size = b.dims(next);
            let divisor = spread(b, divisor, &size);
            next = b.divide(next, divisor);
        }
        let size = b.dims(solution);
        let next = spread(b, next, &size);
        let is_next = compare_index(b, &size, row, Cmp::Eq, i);
        [b.select(is_next, next, solution)]
    });
    if op.left_side { solution } else { transpose(b, solution) }
}

/// LAPACK's `geqrf`, which is HLO's custom call `Qr`: the upper triangle of R, with the reflectors below the diagonal, and their
/// factors. Reflector `k` is `1 - tau v v^H`, where `v` is zero before element `k`, which is 1.
pub(crate) fn qr(b: &mut Builder, a: ValueId) -> [ValueId; 2] {
    let ty = b.tensor(a);
    let (dims, [row, column]) = (ty.dims().to_vec(), last_two(&ty));
    let count = dims[row].min(dims[column]);
    let mut factor_dims = dims.clone();
    (factor_dims[row], factor_dims[column]) = (1, count);
    let factors = b.zeros(ty.with_dims(factor_dims.clone()));
    let results = if dims.contains(&0) {
        [a, factors]
    } else {
        repeat(b, count, [a, factors], |b, k, [packed, factors]| {
            let x = slice_at(b, packed, column, k);
            let Reflector { v, factor, diagonal } = Reflector::of(b, x, row, k);
            let conjugated = conjugate(b, factor);
            let reflected = reflect(b, packed, v, conjugated);
            let is_after = compare_index(b, &dims, column, Cmp::Gt, k);
            let size = b.dims(x);
            let diagonal = spread(b, diagonal, &size);
            let own = choose(b, row, k, [x, diagonal, v]);
            let own = spread(b, own, &dims);
            let is_own = compare_index(b, &dims, column, Cmp::Eq, k);
            let others = b.select(is_after, reflected, packed);
            let factor = spread(b, factor, &factor_dims);
            let is_factor = compare_index(b, &factor_dims, column, Cmp::Eq, k);
            [b.select(is_own, own, others), b.select(is_factor, factor, factors)]
        })
    };
    factor_dims.remove(row);
    [results[0], b.reshape(results[1], &factor_dims)]
}

/// LAPACK's `orgqr`, which is HLO's custom call `ProductOfElementaryHouseholderReflectors`: the first columns of the product of
/// the reflectors that [`qr`] returns.
pub(crate) fn householder_product(b: &mut Builder, packed: ValueId, factors: ValueId) -> ValueId {
    let ty = b.tensor(packed);
    let (dims, [row, column]) = (ty.dims().to_vec(), last_two(&ty));
    let (rows, columns) = (b.iota(INDEX, &dims, row as i64), b.iota(INDEX, &dims, column as i64));
    let is_diagonal = b.compare(Cmp::Eq, rows, columns);
    let (one, zero) = (b.number(1.0, packed), b.number(0.0, packed));
    let identity = b.select(is_diagonal, one, zero);
    let mut size = b.dims(factors);
    let count = size[row];
    size.insert(row, 1);
    if dims.contains(&0) || count == 0 {
        return identity;
    }
    let factors = b.reshape(factors, &size);
    let [product] = repeat(b, count, [identity], |b, step, [product]| {
        let k = reversed(b, step, count);
        let x = slice_at(b, packed, column, k);
        let (one, zero) = (b.number(1.0, x), b.number(0.0, x));
        let v = choose(b, row, k, [zero, one, x]);
        let factor = slice_at(b, factors, column, k);
        [reflect(b, product, v, factor)]
    });
    product
}

/// The reflection that makes a column zero after element `k`.
struct Reflector {
    v: ValueId,
    factor: ValueId,
    /// Element `k` after the reflection, which is real.
    diagonal: ValueId,
}

impl Reflector {
    /// Computes a reflection as LAPACK's `larfg`: with `beta = -sign(re(x[k])) norm(x[k..])`, `tau = (beta - x[k]) / beta` and
    /// `v = x / (x[k] - beta)`. If there is nothing to make zero, `tau` is zero.
    fn of(b: &mut Builder, x: ValueId, row: usize, k: ValueId) -> Self {
        let element = b.element(x);
        let zero = b.number(0.0, x);
        let tail = choose(b, row, k, [zero, zero, x]);
        let alpha = slice_at(b, x, row, k);
        let squares = square_of_modulus(b, tail);
        let tail_square = sum(b, squares, row);
        let alpha_square = square_of_modulus(b, alpha);
        let norm = b.add(tail_square, alpha_square);
        let norm = b.sqrt(norm);
        let start = real(b, alpha);
        let opposite = b.negate(norm);
        let is_negative = b.compare_with(Cmp::Lt, start, 0.0);
        let beta = b.select(is_negative, norm, opposite);
        let beta = of_real(b, beta, element);
        let is_done = is_zero_with(b, tail_square, alpha);
        let difference = b.subtract(beta, alpha);
        let factor = b.divide(difference, beta);
        let nothing = b.number(0.0, factor);
        let factor = b.select(is_done, nothing, factor);
        let diagonal = b.select(is_done, alpha, beta);
        let one = b.number(1.0, difference);
        let divisor = b.negate(difference);
        let divisor = b.select(is_done, one, divisor);
        let size = b.dims(tail);
        let divisor = spread(b, divisor, &size);
        let below = b.divide(tail, divisor);
        let one = b.number(1.0, below);
        Self { v: choose(b, row, k, [zero, one, below]), factor, diagonal }
    }
}

/// Returns whether the rest of a column is zero and its first element is real.
fn is_zero_with(b: &mut Builder, tail_square: ValueId, alpha: ValueId) -> ValueId {
    let is_zero = b.compare_with(Cmp::Eq, tail_square, 0.0);
    if !b.element(alpha).is_complex() {
        return is_zero;
    }
    let imaginary = b.imag(alpha);
    let is_real = b.compare_with(Cmp::Eq, imaginary, 0.0);
    b.and(is_zero, is_real)
}

/// Returns `(1 - factor v v^H) x`.
fn reflect(b: &mut Builder, x: ValueId, v: ValueId, factor: ValueId) -> ValueId {
    let ty = b.tensor(x);
    let [row, _] = last_two(&ty);
    let conjugated = conjugate(b, v);
    let projection = product(b, [conjugated, x], [row, row]);
    let size = b.dims(projection);
    let factor = spread(b, factor, &size);
    let scaled = b.multiply(projection, factor);
    let (v, scaled) = (spread(b, v, ty.dims()), spread(b, scaled, ty.dims()));
    let change = b.multiply(v, scaled);
    b.subtract(x, change)
}

/// Adds a loop. `step` receives the number of the step and the state, and returns the next state.
fn repeat<const N: usize>(
    b: &mut Builder,
    steps: i64,
    initial: [ValueId; N],
    step: impl FnOnce(&mut Builder, ValueId, [ValueId; N]) -> [ValueId; N],
) -> [ValueId; N] {
    let counter = TensorType::new(INDEX, []);
    let state = [&[b.integer(0, counter.clone())][..], &initial].concat();
    let types: Vec<_> = state.iter().map(|&value| b.ty(value).clone()).collect();
    let op = b.add_op(While {}, &state, types.clone());
    b.region(op, types.clone(), |b, state| {
        let limit = b.integer(steps, counter.clone());
        vec![b.compare(Cmp::Lt, state[0], limit)]
    });
    b.region(op, types, |b, state| {
        let (number, mut next) = (state[0], [state[0]; N]);
        next.copy_from_slice(&state[1..]);
        let next = step(b, number, next);
        let one = b.number(1.0, number);
        [&[b.add(number, one)][..], &next].concat()
    });
    let results = b.all_results(op);
    std::array::from_fn(|index| results[index + 1])
}

/// Returns the dimensions of the rows and the columns.
fn last_two(ty: &TensorType) -> [usize; 2] {
    [ty.rank() - 2, ty.rank() - 1]
}

/// Returns `count - 1 - index`.
fn reversed(b: &mut Builder, index: ValueId, count: i64) -> ValueId {
    let last = b.number((count - 1) as f64, index);
    b.subtract(last, index)
}

/// Returns the slice at an index of a dimension, which it keeps.
fn slice_at(b: &mut Builder, x: ValueId, dimension: usize, index: ValueId) -> ValueId {
    let mut sizes = b.dims(x);
    sizes[dimension] = 1;
    let zero = b.number(0.0, index);
    let starts = (0..sizes.len()).map(|other| if other == dimension { index } else { zero });
    let operands: Vec<ValueId> = [x].into_iter().chain(starts).collect();
    b.op(DynamicSlice { slice_sizes: sizes.into() }, &operands)
}

/// Compares the indices of a dimension with a scalar.
fn compare_index(b: &mut Builder, dims: &[i64], dimension: usize, direction: Cmp, index: ValueId) -> ValueId {
    let positions = b.iota(INDEX, dims, dimension as i64);
    let index = b.broadcast_scalar(index, dims);
    b.compare(direction, positions, index)
}

/// Returns the elements of the first value before an index of a dimension, that of the second one there, and those of the third
/// one after it.
fn choose(b: &mut Builder, dimension: usize, index: ValueId, values: [ValueId; 3]) -> ValueId {
    let dims = b.dims(values[0]);
    let is_there = compare_index(b, &dims, dimension, Cmp::Eq, index);
    let is_after = compare_index(b, &dims, dimension, Cmp::Gt, index);
    let others = b.select(is_after, values[2], values[0]);
    b.select(is_there, values[1], others)
}

/// Repeats a value along the dimensions in which it has one element.
fn spread(b: &mut Builder, x: ValueId, dims: &[i64]) -> ValueId {
    let all: Vec<i64> = (0..dims.len() as i64).collect();
    b.broadcast(x, &all, dims)
}

/// Returns the sum along a dimension, which it keeps.
fn sum(b: &mut Builder, x: ValueId, dimension: usize) -> ValueId {
    let mut dims = b.dims(x);
    dims[dimension] = 1;
    let sum = b.reduce(x, &[dimension as i64], OpCode::Add, 0.0);
    b.reshape(sum, &dims)
}

/// Returns the products of matrices that contract a dimension of each.
fn product(b: &mut Builder, operands: [ValueId; 2], contracted: [usize; 2]) -> ValueId {
    let [lhs, rhs] = operands.map(|operand| b.tensor(operand));
    let [row, column] = last_two(&lhs);
    let batch: Vec<i64> = (0..row as i64).collect();
    let free = |ty: &TensorType, contracted| ty.dims()[if contracted == row { column } else { row }];
    let dims: Vec<i64> = lhs.dims()[..row]
        .iter()
        .copied()
        .chain([free(&lhs, contracted[0]), free(&rhs, contracted[1])])
        .collect();
    let kind = DotGeneral {
        dot_dimension_numbers: DotDimensionNumbers {
            lhs_batching_dimensions: batch.clone().into(),
            rhs_batching_dimensions: batch.into(),
            lhs_contracting_dimensions: [contracted[0] as i64].into(),
            rhs_contracting_dimensions: [contracted[1] as i64].into(),
        },
        precision_config: [Precision::Highest; 2].into(),
        algorithm: None,
    };
    b.op_of_type(kind, &operands, lhs.with_dims(dims))
}

fn transpose(b: &mut Builder, x: ValueId) -> ValueId {
    let [row, column] = last_two(&b.tensor(x));
    let mut permutation: Vec<i64> = (0..=column as i64).collect();
    permutation.swap(row, column);
    b.transpose(x, &permutation)
}

fn adjoint(b: &mut Builder, x: ValueId) -> ValueId {
    let transposed = transpose(b, x);
    conjugate(b, transposed)
}

fn conjugate(b: &mut Builder, x: ValueId) -> ValueId {
    if !b.element(x).is_complex() {
        return x;
    }
    let (real, imaginary) = (b.real(x), b.imag(x));
    let negative = b.negate(imaginary);
    b.complex(real, negative)
}

fn real(b: &mut Builder, x: ValueId) -> ValueId {
    if b.element(x).is_complex() { b.real(x) } else { x }
}

/// Converts real numbers to an element type, which may be complex.
fn of_real(b: &mut Builder, x: ValueId, element: ElementType) -> ValueId {
    if !element.is_complex() {
        return x;
    }
    let zero = b.number(0.0, x);
    b.complex(x, zero)
}

fn square_of_modulus(b: &mut Builder, x: ValueId) -> ValueId {
    if !b.element(x).is_complex() {
        return b.multiply(x, x);
    }
    let (real, imaginary) = (b.real(x), b.imag(x));
    let (real, imaginary) = (b.multiply(real, real), b.multiply(imaginary, imaginary));
    b.add(real, imaginary)
}
