//! Products, matrix decompositions, transforms and normalizations.

use std::ops::Range;

use super::context::{Context, integers};
use super::result::{ResultRule, Results};
use super::shape::{Shape, elements_compatible, shapes_agree, sizes_agree};
use super::windows::precision_config;
use crate::Constraint::{self, C, I};
use crate::Error;
use crate::ir::ops::{DotGeneral, Fft, TriangularSolve};
use crate::ir::{
    DYNAMIC, DotAlgorithm, ElementType, FftType, Op, Precision, TensorType, TransposeKind, Type,
};

/// Returns the results of products, factorizations and normalizations; `None` for other operations.
pub(super) fn results(cx: &Context<'_>) -> Option<Results> {
    Some(match &cx.op.kind {
        Op::BatchNormGrad(op) => {
            let rules = BatchNorm { vectors: 1..4, sizes: &[5, 4, 4], result: 3, further: &[4, 4] };
            batch_norm(cx, op.feature_index, &rules)
        }
        Op::BatchNormInference(op) => {
            let rules = BatchNorm { vectors: 1..5, sizes: &[3, 4, 5, 6], result: 7, further: &[] };
            batch_norm(cx, op.feature_index, &rules)
        }
        Op::BatchNormTraining(op) => {
            let rules = BatchNorm { vectors: 1..3, sizes: &[3, 4], result: 7, further: &[5, 6] };
            batch_norm(cx, op.feature_index, &rules)
        }
        Op::Cholesky(_) => cholesky(cx),
        Op::Dot(op) => dot(cx, op.precision_config.len()),
        Op::DotGeneral(op) => dot_general(cx, op),
        Op::Fft(op) => fft(cx, op),
        Op::TriangularSolve(op) => triangular_solve(cx, op),
        _ => return None,
    })
}

/// `dot_general`.
fn dot_general(cx: &Context<'_>, op: &DotGeneral) -> Results {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    let numbers = &op.dot_dimension_numbers;
    let (lhs_batch, rhs_batch) = (&numbers.lhs_batching_dimensions, &numbers.rhs_batching_dimensions);
    let (lhs_contracted, rhs_contracted) =
        (&numbers.lhs_contracting_dimensions, &numbers.rhs_contracting_dimensions);
    cx.length(C(1), "rhs_batching_dimensions", rhs_batch.len(), lhs_batch.len())?;
    cx.length(C(2), "rhs_contracting_dimensions", rhs_contracted.len(), lhs_contracted.len())?;
    let lhs_used: Vec<i64> = lhs_batch.iter().chain(lhs_contracted).copied().collect();
    let rhs_used: Vec<i64> = rhs_batch.iter().chain(rhs_contracted).copied().collect();
    cx.unique(C(3), "lhs_batching_dimensions and lhs_contracting_dimensions", lhs_used.iter().copied())?;
    cx.unique(C(4), "rhs_batching_dimensions and rhs_contracting_dimensions", rhs_used.iter().copied())?;
    cx.dimensions(C(5), "lhs_batching_dimensions", lhs_batch, lhs.rank())?;
    cx.dimensions(C(6), "lhs_contracting_dimensions", lhs_contracted, lhs.rank())?;
    cx.dimensions(C(7), "rhs_batching_dimensions", rhs_batch, rhs.rank())?;
    cx.dimensions(C(8), "rhs_contracting_dimensions", rhs_contracted, rhs.rank())?;
    for (what, of_lhs, of_rhs, constraint) in
        [("batching", lhs_batch, rhs_batch, C(9)), ("contracting", lhs_contracted, rhs_contracted, C(10))]
    {
        for (&left, &right) in of_lhs.iter().zip(of_rhs) {
            let (left_size, right_size) = (lhs.dims()[left as usize], rhs.dims()[right as usize]);
            cx.require(constraint, sizes_agree(left_size, right_size), || {
                format!("{what} dimensions {left} of {lhs} and {right} of {rhs}: expected equal sizes")
            })?;
        }
    }
    precision_config(cx, C(11), op.precision_config.len())?;
    if lhs.quantization().is_none() && rhs.quantization().is_none() {
        elements_of_products(cx, C(13), lhs, rhs)?;
    }
    if let Some(algorithm) = &op.algorithm {
        let is_default = op.precision_config.iter().all(|&precision| precision == Precision::Default);
        cx.require(C(21), is_default, || {
            let found: Vec<&str> = op.precision_config.iter().map(|precision| precision.name()).collect();
            format!(
                "precision_config: expected DEFAULT, because an algorithm is given, found {}",
                found.join(", ")
            )
        })?;
        dot_algorithm(cx, algorithm)?;
    }
    let (of_lhs, of_rhs) = (Shape::of(lhs), Shape::of(rhs));
    let batch = lhs_batch.iter().map(|&dimension| of_lhs.size(dimension as usize));
    let free_lhs = of_lhs.sizes().enumerate().filter(|(index, _)| !lhs_used.contains(&(*index as i64)));
    let free_rhs = of_rhs.sizes().enumerate().filter(|(index, _)| !rhs_used.contains(&(*index as i64)));
    let shape = batch.chain(free_lhs.map(|(_, size)| size)).chain(free_rhs.map(|(_, size)| size)).collect();
    Ok(vec![ResultRule::shape_of(shape, C(12))])
}

/// Checks that elements can be multiplied: they have the same type, or are integers and floats. Frameworks write such
/// mixed products (JAX's singular value decomposition for TPUs, with 64-bit types), and MLIR's verifier accepts them.
fn elements_of_products(
    cx: &Context<'_>,
    constraint: Constraint,
    lhs: &TensorType,
    rhs: &TensorType,
) -> Result<(), Error> {
    let (left, right) = (lhs.element_type(), rhs.element_type());
    let is_number = |ty: ElementType| ty.is_float() || ty.is_integer();
    let mix = is_number(left) && is_number(right);
    cx.require(constraint, elements_compatible(lhs, rhs) || mix, || {
        format!("operand 'rhs': expected element type {}, found {rhs}", lhs.element_type())
    })
}

/// Checks the types and counts of an algorithm. Devices decide which algorithms they support.
fn dot_algorithm(cx: &Context<'_>, algorithm: &DotAlgorithm) -> Result<(), Error> {
    for (what, ty, input) in [
        ("lhs_precision_type", &algorithm.lhs_precision_type, 8),
        ("rhs_precision_type", &algorithm.rhs_precision_type, 9),
        ("accumulation_type", &algorithm.accumulation_type, 10),
    ] {
        let is_float = matches!(ty, Type::Scalar(element) if element.is_float());
        cx.require(I(input), is_float, || format!("{what}: expected a float type, found {ty}"))?;
    }
    for (what, count, constraint) in [
        ("lhs_component_count", algorithm.lhs_component_count, C(22)),
        ("rhs_component_count", algorithm.rhs_component_count, C(23)),
        ("num_primitive_operations", algorithm.num_primitive_operations, C(24)),
    ] {
        cx.positive(constraint, what, &[count])?;
    }
    Ok(())
}

/// `dot`: contracts the last dimension of the left operand with the first of the right operand.
fn dot(cx: &Context<'_>, precisions: usize) -> Results {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    precision_config(cx, None, precisions)?;
    let fits = (1..=2).contains(&lhs.rank())
        && (1..=2).contains(&rhs.rank())
        && sizes_agree(lhs.dims()[lhs.rank() - 1], rhs.dims()[0]);
    cx.require(None, fits, || {
        format!("expected vectors or matrices that can be multiplied, found {lhs} and {rhs}")
    })?;
    let (of_lhs, of_rhs) = (Shape::of(lhs), Shape::of(rhs));
    let shape = of_lhs.sizes().take(lhs.rank() - 1).chain(of_rhs.sizes().skip(1)).collect();
    Ok(vec![ResultRule::shape_of(shape, None)])
}

/// Returns an error unless the last two dimensions of an operand have equal sizes.
fn square(cx: &Context<'_>, index: usize, constraint: Constraint) -> Result<(), Error> {
    let matrix = cx.tensor(index)?;
    let is_square = matches!(matrix.dims(), [.., rows, columns] if sizes_agree(*rows, *columns));
    cx.require(constraint, is_square, || {
        format!("{}: expected square matrices, found {matrix}", cx.operand_name(index))
    })
}

/// `cholesky`: the operand consists of square matrices.
fn cholesky(cx: &Context<'_>) -> Results {
    let a = cx.tensor(0)?;
    cx.require(C(2), a.rank() >= 2, || format!("operand 'a': expected matrices, found {a}"))?;
    square(cx, 0, C(3))?;
    Ok(vec![ResultRule::of(a.clone(), C(1))])
}

/// `triangular_solve`: the operands are square matrices and right-hand sides of their size.
fn triangular_solve(cx: &Context<'_>, op: &TriangularSolve) -> Results {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.same_elements(C(1), 1, a)?;
    cx.require(C(2), a.rank() >= 2 && a.rank() == b.rank(), || {
        format!("expected matrices of equal rank, found {a} and {b}")
    })?;
    square(cx, 0, C(3))?;
    let batch = a.rank() - 2;
    let side = if op.left_side { batch } else { batch + 1 };
    let fits =
        sizes_agree(a.dims()[side], b.dims()[side]) && shapes_agree(&a.dims()[..batch], &b.dims()[..batch]);
    cx.require(C(3), fits, || format!("operand 'b': expected right-hand sides that fit {a}, found {b}"))?;
    cx.require(I(6), op.transpose_a != TransposeKind::Invalid, || {
        format!("transpose_a: expected NO_TRANSPOSE, TRANSPOSE or ADJOINT, found {}", op.transpose_a)
    })?;
    Ok(vec![ResultRule::of(b.clone(), C(4))])
}

/// `fft`: transforms the last dimensions.
fn fft(cx: &Context<'_>, op: &Fft) -> Results {
    let operand = cx.tensor(0)?;
    let count = op.fft_length.len();
    cx.require(C(3), (1..=3).contains(&count), || {
        format!("fft_length: expected 1 to 3 lengths, found {count}")
    })?;
    cx.require(C(1), count <= operand.rank(), || {
        format!("fft_length: expected at most one length for each dimension of {operand}, found {count}")
    })?;
    let element = operand.element_type();
    let elements = match op.fft_type {
        FftType::Fft | FftType::Ifft if element.is_complex() => Some(element),
        FftType::Rfft if element == ElementType::F32 => Some(ElementType::ComplexF32),
        FftType::Rfft if element == ElementType::F64 => Some(ElementType::ComplexF64),
        FftType::Irfft => element.complex_part(),
        _ => None,
    };
    let elements = elements.ok_or_else(|| {
        cx.error(C(2), format!("operand 'operand': expected elements for {}, found {operand}", op.fft_type))
    })?;
    let first = operand.rank() - count;
    let mut shape = Shape::of(operand);
    for (index, &length) in op.fft_length.iter().enumerate() {
        let dimension = first + index;
        let halved = if length == 0 { 0 } else { length / 2 + 1 };
        let is_last = index + 1 == count;
        let (from, to, constraint) = match op.fft_type {
            FftType::Rfft if is_last => (length, halved, C(4)),
            FftType::Irfft if is_last => (halved, length, C(5)),
            FftType::Rfft | FftType::Irfft => (length, length, C(4)),
            // The specification does not relate the lengths of complex transforms to the shape.
            FftType::Fft | FftType::Ifft => (length, length, C(5)),
        };
        cx.require(constraint, length >= 0, || {
            format!("fft_length: expected nonnegative lengths, found {}", integers(&op.fft_length))
        })?;
        cx.require(constraint, sizes_agree(operand.dims()[dimension], from), || {
            let why = if from == length { String::new() } else { format!(", {length} / 2 + 1,") };
            format!(
                "operand 'operand': expected size {from}{why} of dimension {dimension} for a {} of length {length}, \
                 found {operand}",
                op.fft_type
            )
        })?;
        if from != to {
            shape.set(dimension, (to, DYNAMIC));
        }
    }
    Ok(vec![ResultRule::of(shape.tensor(elements, None), C(5)).with_elements(C(2))])
}

/// The numbers of the specification's constraints for a `batch_norm_*` operation.
struct BatchNorm {
    /// The operands with an element for each feature.
    vectors: Range<usize>,
    /// The constraints on the sizes of these operands.
    sizes: &'static [u8],
    /// The constraint on the type of the first result.
    result: u8,
    /// The constraints on the types of further results.
    further: &'static [u8],
}

/// `batch_norm_*`.
fn batch_norm(cx: &Context<'_>, feature_index: i64, rules: &BatchNorm) -> Results {
    let operand = cx.tensor(0)?;
    let feature = cx.dimension(C(1), "feature_index", feature_index, operand.rank())?;
    (1..cx.op.operands.len()).try_for_each(|index| cx.same_elements(C(2), index, operand))?;
    let size = Shape::size_of(operand, feature);
    for (index, &constraint) in rules.vectors.clone().zip(rules.sizes) {
        cx.same_shape(C(constraint), index, &[size.0])?;
    }
    // The operand `grad_output` of `batch_norm_grad`.
    for index in rules.vectors.end..cx.op.operands.len() {
        cx.same_shape(C(3), index, operand.dims())?;
    }
    let vector: Shape = std::iter::once(size).collect();
    let mut results = vec![ResultRule::of(operand.clone(), C(rules.result)).with_elements(C(2))];
    let further = rules.further.iter();
    results.extend(
        further.map(|&constraint| {
            ResultRule::of(vector.clone().like(operand), C(constraint)).with_elements(C(2))
        }),
    );
    Ok(results)
}
