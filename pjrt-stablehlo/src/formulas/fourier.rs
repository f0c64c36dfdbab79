//! Discrete Fourier transforms, as products with matrices of constants.

use std::f64::consts::TAU;

use crate::build::Builder;
use crate::ir::ops::{Concatenate, DotGeneral, Reverse};
use crate::ir::{DotDimensionNumbers, ElementType, FftType, Precision, ValueId};

/// The greatest length of a transform that is computed by one product if it can be divided.
const MAX_WHOLE: i64 = 32;

/// The greatest prime factor of a length. The matrix of its transform is a constant of four times the square of elements.
pub(crate) const MAX_FACTOR: i64 = 256;

/// `fft`: transforms the last dimensions, of these lengths, which have no prime factor above [`MAX_FACTOR`].
pub(crate) fn fft(b: &mut Builder, x: ValueId, kind: FftType, lengths: &[i64]) -> ValueId {
    let is_inverse = matches!(kind, FftType::Ifft | FftType::Irfft);
    let rank = b.dims(x).len();
    let last = rank.saturating_sub(1);
    let length = lengths.last().copied().unwrap_or(1);
    let mut parts = match kind {
        FftType::Rfft => [x, b.zeros(b.tensor(x))],
        _ => [b.real(x), b.imag(x)],
    };
    let others = (rank - lengths.len()..last).zip(lengths.iter().copied());
    if kind == FftType::Irfft {
        for (dimension, length) in others {
            parts = along(b, parts, dimension, length, is_inverse);
        }
        parts = with_conjugates(b, parts, length);
        return along(b, parts, last, length, is_inverse)[0];
    }
    parts = along(b, parts, last, length, is_inverse);
    if kind == FftType::Rfft {
        parts = parts.map(|part| b.slice_in_dim(part, last, 0, length / 2 + 1));
    }
    for (dimension, length) in others {
        parts = along(b, parts, dimension, length, is_inverse);
    }
    b.complex(parts[0], parts[1])
}

/// Returns `true` if [`fft`] transforms this length.
pub(crate) fn is_transformable(length: i64) -> bool {
    let mut rest = length;
    (2..=MAX_FACTOR).for_each(|factor| {
        while rest > 0 && rest % factor == 0 {
            rest /= factor;
        }
    });
    rest <= 1
}

/// Transforms the real and imaginary parts along a dimension.
fn along(
    b: &mut Builder,
    parts: [ValueId; 2],
    dimension: usize,
    length: i64,
    is_inverse: bool,
) -> [ValueId; 2] {
    let dims = b.dims(parts[0]);
    let count: i64 = dims.iter().product();
    if count == 0 {
        return parts;
    }
    let mut order: Vec<i64> = (0..dims.len() as i64).collect();
    order.swap(dimension, dims.len() - 1);
    let mut moved_dims = dims.clone();
    moved_dims.swap(dimension, dims.len() - 1);
    let rows = parts.map(|part| {
        let moved = b.transpose(part, &order);
        b.reshape(moved, &[count / length, length])
    });
    let mut rows = transformed(b, rows, is_inverse);
    if is_inverse {
        rows = rows.map(|part| {
            let scale = b.number(1.0 / length as f64, part);
            b.multiply(part, scale)
        });
    }
    rows.map(|part| {
        let part = b.reshape(part, &moved_dims);
        b.transpose(part, &order)
    })
}

/// Transforms the rows of matrices, without the scale of an inverse transform: by one product, or, if the length is `first *
/// second`, by transforms of both lengths with a multiplication between them.
fn transformed(b: &mut Builder, parts: [ValueId; 2], is_inverse: bool) -> [ValueId; 2] {
    let dims = b.dims(parts[0]);
    let (rows, length) = (dims[0], dims[1]);
    let first = (2..=MAX_WHOLE).rev().find(|factor| length % factor == 0 && *factor < length);
    let Some(first) = first.filter(|_| length > MAX_WHOLE) else {
        return product(b, parts, length, is_inverse);
    };
    let second = length / first;
    // The element at `i * second + j` of a row goes to (j, i).
    let columns = parts.map(|part| {
        let split = b.reshape(part, &[rows, first, second]);
        let exchanged = b.transpose(split, &[0, 2, 1]);
        b.reshape(exchanged, &[rows * second, first])
    });
    let columns = product(b, columns, first, is_inverse);
    let split = columns.map(|part| b.reshape(part, &[rows, second, first]));
    let turned = turned(b, split, length, is_inverse);
    let inner = turned.map(|part| {
        let exchanged = b.transpose(part, &[0, 2, 1]);
        b.reshape(exchanged, &[rows * first, second])
    });
    let inner = transformed(b, inner, is_inverse);
    inner.map(|part| {
        let split = b.reshape(part, &[rows, first, second]);
        let exchanged = b.transpose(split, &[0, 2, 1]);
        b.reshape(exchanged, &[rows, length])
    })
}

/// Returns cosine and sine of the angle of the root of unity that a transform multiplies by.
fn root(power: i64, length: i64, is_inverse: bool) -> [f64; 2] {
    let angle = TAU * (power % length) as f64 / length as f64;
    [angle.cos(), if is_inverse { angle.sin() } else { -angle.sin() }]
}

/// Multiplies the element (j, i) of each matrix by the root of unity of the power `j * i`.
fn turned(b: &mut Builder, parts: [ValueId; 2], length: i64, is_inverse: bool) -> [ValueId; 2] {
    let dims = b.dims(parts[0]);
    let element = b.element(parts[0]);
    let roots: Vec<[f64; 2]> =
        (0..dims[1]).flat_map(|j| (0..dims[2]).map(move |i| root(j * i, length, is_inverse))).collect();
    let [cosine, sine] = [0, 1].map(|part| {
        let numbers: Vec<f64> = roots.iter().map(|root| root[part]).collect();
        let factors = matrix(b, &numbers, element, [dims[1], dims[2]]);
        b.broadcast(factors, &[1, 2], &dims)
    });
    let [real, imag] = parts;
    let (a, c) = (b.multiply(real, cosine), b.multiply(imag, sine));
    let (d, e) = (b.multiply(real, sine), b.multiply(imag, cosine));
    [b.subtract(a, c), b.add(d, e)]
}

/// Transforms rows by a product with the matrix of the transform: [real, imag] times [[cosine, sine], [-sine, cosine]].
fn product(b: &mut Builder, parts: [ValueId; 2], length: i64, is_inverse: bool) -> [ValueId; 2] {
    let (rows, element) = (b.dims(parts[0])[0], b.element(parts[0]));
    let mut numbers = Vec::new();
    for is_imag in [false, true] {
        for j in 0..length {
            let roots: Vec<[f64; 2]> = (0..length).map(|k| root(j * k, length, is_inverse)).collect();
            let of_real = roots.iter().map(|[cosine, sine]| if is_imag { -sine } else { *cosine });
            let of_imag = roots.iter().map(|[cosine, sine]| if is_imag { *cosine } else { *sine });
            numbers.extend(of_real.chain(of_imag));
        }
    }
    let factors = matrix(b, &numbers, element, [2 * length, 2 * length]);
    let joined = b.op(Concatenate { dimension: 1 }, &parts);
    let kind = DotGeneral {
        dot_dimension_numbers: DotDimensionNumbers {
            lhs_batching_dimensions: [].into(),
            rhs_batching_dimensions: [].into(),
            lhs_contracting_dimensions: [1].into(),
            rhs_contracting_dimensions: [0].into(),
        },
        precision_config: [Precision::Highest; 2].into(),
        algorithm: None,
    };
    let ty = b.tensor(joined).with_dims([rows, 2 * length]);
    let product = b.op_of_type(kind, &[joined, factors], ty);
    [0, length].map(|start| b.slice_in_dim(product, 1, start, start + length))
}

fn matrix(b: &mut Builder, numbers: &[f64], element: ElementType, dims: [i64; 2]) -> ValueId {
    let vector = b.numbers(numbers, element);
    b.reshape(vector, &dims)
}

/// Returns all `length` elements of the transform of real numbers: those of the second half are the conjugates of the first.
fn with_conjugates(b: &mut Builder, parts: [ValueId; 2], length: i64) -> [ValueId; 2] {
    let last = b.dims(parts[0]).len() - 1;
    let end = length - length / 2;
    if end <= 1 {
        return parts;
    }
    let [real, imag] = parts.map(|part| {
        let inner = b.slice_in_dim(part, last, 1, end);
        b.op(Reverse { dimensions: [last as i64].into() }, &[inner])
    });
    let conjugate = b.negate(imag);
    let mut join = |half, other| b.op(Concatenate { dimension: last as i64 }, &[half, other]);
    [join(parts[0], real), join(parts[1], conjugate)]
}
