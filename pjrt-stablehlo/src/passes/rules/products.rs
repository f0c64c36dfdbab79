//! Rules for `dot_general` and `convolution`: to simpler forms of `dot_general`, and to products and sums.

use super::dot_algorithm;
use super::movement::{concatenate, strided_slice};
use crate::Error;
use crate::build::Builder;
use crate::ir::ops::{Convolution, DotGeneral, Pad, Reverse};
use crate::ir::{DotDimensionNumbers, ElementType, Op, OpCode, Operation, TensorType, ValueId};
use crate::passes::rewrite::{Rewriter, mismatch, unsupported};

/// The maximum number of products of a `dot_general` that is decomposed into `multiply` and `reduce`.
const MAX_PRODUCTS: i64 = 1 << 24;

/// The maximum number of matrices of a `dot_general` that is decomposed into products of single matrices.
const MAX_MATRICES: i64 = 256;

/// Decomposes `dot_general`, step by step: to products without an algorithm, these to products of matrices with at most one
/// batching dimension, these to products of single matrices, and these to `multiply` and `reduce`. A product without terms is a
/// constant. A device that supports one of these forms states so by [`CoreOps::with_condition`](crate::passes::CoreOps::with_condition).
pub(super) fn dot_general(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::DotGeneral(dot) = &op.kind else { return Err(mismatch(op)) };
    let ([lhs, rhs], result) = (r.operands(op)?, r.result(op)?);
    // Without elements of an operand, there are no terms or no results.
    if [lhs, rhs].into_iter().any(|operand| r.b.dims(operand).contains(&0)) {
        return Ok(r.b.zeros(result));
    }
    if let Some(algorithm) = &dot.algorithm {
        return dot_algorithm::decompose(&mut r.b, dot, algorithm, [lhs, rhs], &result);
    }
    let (lhs_dims, rhs_dims) = (r.b.dims(lhs), r.b.dims(rhs));
    let numbers = &dot.dot_dimension_numbers;
    let batches = numbers.lhs_batching_dimensions.len();
    if *numbers == matrix_numbers(1) && lhs_dims.len() == 3 && rhs_dims.len() == 3 {
        return matrices(r, op, dot, [lhs, rhs], &result);
    }
    if *numbers == matrix_numbers(0) && lhs_dims.len() == 2 && rhs_dims.len() == 2 {
        return products(r, op, [lhs, rhs], &result);
    }
    let b = &mut r.b;
    let sizes = |dims: &[i64], which: &[i64]| -> i64 { which.iter().map(|&at| dims[at as usize]).product() };
    let free = |dims: &[i64], batching: &[i64], contracting: &[i64]| -> Vec<i64> {
        let is_free = |at: &i64| !batching.contains(at) && !contracting.contains(at);
        (0..dims.len() as i64).filter(is_free).collect()
    };
    let (lhs_batch, lhs_sum) = (&*numbers.lhs_batching_dimensions, &*numbers.lhs_contracting_dimensions);
    let (rhs_batch, rhs_sum) = (&*numbers.rhs_batching_dimensions, &*numbers.rhs_contracting_dimensions);
    let lhs_free = free(&lhs_dims, lhs_batch, lhs_sum);
    let rhs_free = free(&rhs_dims, rhs_batch, rhs_sum);
    let lhs = b.transpose(lhs, &[lhs_batch, &lhs_free, lhs_sum].concat());
    let rhs = b.transpose(rhs, &[rhs_batch, rhs_sum, &rhs_free].concat());
    let batch: Vec<i64> = (batches > 0).then(|| sizes(&lhs_dims, lhs_batch)).into_iter().collect();
    let (rows, columns) = (sizes(&lhs_dims, &lhs_free), sizes(&rhs_dims, &rhs_free));
    let terms = sizes(&lhs_dims, lhs_sum);
    let lhs = b.reshape(lhs, &[&*batch, &[rows, terms]].concat());
    let rhs = b.reshape(rhs, &[&*batch, &[terms, columns]].concat());
    let kind = Op::DotGeneral(Box::new(DotGeneral {
        dot_dimension_numbers: matrix_numbers(batch.len() as i64),
        ..DotGeneral::clone(dot)
    }));
    let ty = result.with_dims([&*batch, &[rows, columns]].concat());
    let product = b.op_of_type(kind, &[lhs, rhs], ty);
    Ok(b.reshape(product, result.dims()))
}

/// Returns the dimensions of a product of matrices, with one batching dimension or none.
fn matrix_numbers(batches: i64) -> DotDimensionNumbers {
    DotDimensionNumbers {
        lhs_batching_dimensions: (0..batches).collect(),
        rhs_batching_dimensions: (0..batches).collect(),
        lhs_contracting_dimensions: [batches + 1].into(),
        rhs_contracting_dimensions: [batches].into(),
    }
}

/// Decomposes the product of two lists of matrices into products of single matrices.
fn matrices(
    r: &mut Rewriter<'_>,
    op: &Operation,
    dot: &DotGeneral,
    [lhs, rhs]: [ValueId; 2],
    result: &TensorType,
) -> Result<ValueId, Error> {
    let b = &mut r.b;
    let (count, rows, columns) = (result.dims()[0], result.dims()[1], result.dims()[2]);
    if count > MAX_MATRICES {
        return Err(unsupported(format!(
            "{} of {count} matrices cannot be decomposed into products of single matrices, of which there would be more than \
             {MAX_MATRICES}",
            op.kind.name()
        )));
    }
    if count == 0 {
        return Ok(b.zeros(result.clone()));
    }
    let mut products = Vec::new();
    for index in 0..count {
        let [lhs, rhs] = [lhs, rhs].map(|matrices| {
            let matrix = b.slice_in_dim(matrices, 0, index, index + 1);
            let dims = b.dims(matrix)[1..].to_vec();
            b.reshape(matrix, &dims)
        });
        let kind = Op::DotGeneral(Box::new(DotGeneral {
            dot_dimension_numbers: matrix_numbers(0),
            ..DotGeneral::clone(dot)
        }));
        let product = b.op_of_type(kind, &[lhs, rhs], result.with_dims([rows, columns]));
        products.push(b.reshape(product, &[1, rows, columns]));
    }
    Ok(concatenate(b, &products, 0))
}

/// Decomposes the product of two matrices into the products of their elements and the sums of these, in `f32` for narrower
/// floats.
fn products(
    r: &mut Rewriter<'_>,
    op: &Operation,
    [lhs, rhs]: [ValueId; 2],
    result: &TensorType,
) -> Result<ValueId, Error> {
    let b = &mut r.b;
    let (rows, columns) = (result.dims()[0], result.dims()[1]);
    let terms = b.dims(lhs)[1];
    let count = rows.saturating_mul(columns).saturating_mul(terms);
    if count > MAX_PRODUCTS {
        return Err(unsupported(format!(
            "{} of a {rows}x{terms} and a {terms}x{columns} matrix cannot be decomposed into products and sums, which is \
             possible for at most {MAX_PRODUCTS} products",
            op.kind.name()
        )));
    }
    let element = result.element_type();
    let wide = if element.is_float() && element.bits() < 32 { ElementType::F32 } else { element };
    let (lhs, rhs) = (b.convert(lhs, wide), b.convert(rhs, wide));
    let rhs = b.transpose(rhs, &[1, 0]);
    let dims = [rows, columns, terms];
    let (lhs, rhs) = (b.broadcast(lhs, &[0, 2], &dims), b.broadcast(rhs, &[1, 2], &dims));
    let products = b.multiply(lhs, rhs);
    let sums = b.reduce(products, &[2], OpCode::Add, 0.0);
    Ok(b.convert(sums, element))
}

/// Decomposes `convolution` into a `dot_general` of the kernel with the windows of the input, which are slices for each
/// position in the kernel.
pub(super) fn convolution(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Convolution(o) = &op.kind else { return Err(mismatch(op)) };
    let ([input, kernel], result) = (r.operands(op)?, r.result(op)?);
    // Sums of nothing are zeros.
    if result.num_elements() == Some(0) || r.b.tensor(kernel).num_elements() == Some(0) {
        return Ok(r.b.zeros(result));
    }
    let b = &mut r.b;
    let numbers = &o.dimension_numbers;
    let spatial = numbers.input_spatial_dimensions.len();
    let output_sizes: Vec<i64> =
        numbers.output_spatial_dimensions.iter().map(|&at| result.dims()[at as usize]).collect();
    let order = [
        &[numbers.input_batch_dimension],
        &*numbers.input_spatial_dimensions,
        &[numbers.input_feature_dimension],
    ];
    let input = b.transpose(input, &order.concat());
    let order = [
        &*numbers.kernel_spatial_dimensions,
        &[numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension],
    ];
    let mut kernel = b.transpose(kernel, &order.concat());
    let reversed = (0..spatial as i64).filter(|&at| o.window_reversal[at as usize]);
    let reversed: Vec<i64> = reversed.collect();
    if !reversed.is_empty() {
        kernel = b.op(Reverse { dimensions: reversed.into() }, &[kernel]);
    }
    let kernel_sizes = b.dims(kernel)[..spatial].to_vec();
    let windows = windows(b, o, input, &kernel_sizes, &output_sizes);
    let product = grouped_product(b, o, [windows, kernel], spatial, result.element_type());
    // The dimensions are the batch, the spatial dimensions and the features.
    let mut permutation = vec![0; result.rank()];
    permutation[numbers.output_batch_dimension as usize] = 0;
    for (index, &at) in numbers.output_spatial_dimensions.iter().enumerate() {
        permutation[at as usize] = index as i64 + 1;
    }
    permutation[numbers.output_feature_dimension as usize] = spatial as i64 + 1;
    Ok(b.transpose(product, &permutation))
}

/// Returns the windows of an input whose dimensions are the batch, the spatial ones and the features. The dimensions of the
/// result are the batch, the positions of the windows, the positions in them, and the features.
fn windows(
    b: &mut Builder,
    o: &Convolution,
    input: ValueId,
    kernel_sizes: &[i64],
    output_sizes: &[i64],
) -> ValueId {
    let spatial = kernel_sizes.len();
    let around = |values: Vec<i64>| -> Box<[i64]> { [&[0], &*values, &[0]].concat().into() };
    let kind = Pad {
        edge_padding_low: around(o.padding.iter().map(|pair| pair[0]).collect()),
        edge_padding_high: around(o.padding.iter().map(|pair| pair[1]).collect()),
        interior_padding: around(o.lhs_dilation.iter().map(|dilation| dilation - 1).collect()),
    };
    let zero = b.zeros(b.tensor(input).with_dims([]));
    let mut x = b.op(kind, &[input, zero]);
    // The positions in the window along a dimension are inserted after those of the window.
    for (index, (&size, &count)) in kernel_sizes.iter().zip(output_sizes).enumerate() {
        let dimension = 1 + 2 * index;
        let (stride, dilation) = (o.window_strides[index], o.rhs_dilation[index]);
        let mut slices = Vec::new();
        for position in 0..size {
            let start = position * dilation;
            let slice = strided_slice(b, x, dimension, [start, start + (count - 1) * stride + 1, stride]);
            let mut dims = b.dims(slice);
            dims.insert(dimension + 1, 1);
            slices.push(b.reshape(slice, &dims));
        }
        x = concatenate(b, &slices, dimension + 1);
    }
    let spatial = spatial as i64;
    let outer = (0..spatial).map(|index| 1 + 2 * index);
    let inner = (0..spatial).map(|index| 2 + 2 * index);
    let permutation: Vec<i64> = [0].into_iter().chain(outer).chain(inner).chain([1 + 2 * spatial]).collect();
    b.transpose(x, &permutation)
}

/// Multiplies windows with a kernel, whose dimensions are the positions, the input features and the output features. The
/// dimensions of the result are the batch, the positions of the windows and the features.
fn grouped_product(
    b: &mut Builder,
    o: &Convolution,
    [windows, kernel]: [ValueId; 2],
    spatial: usize,
    element: ElementType,
) -> ValueId {
    let spatial = spatial as i64;
    let (mut window_dims, mut kernel_dims) = (b.dims(windows), b.dims(kernel));
    let groups = o.feature_group_count.max(o.batch_group_count);
    let has_groups = groups > 1;
    // The position of the groups among the windows' dimensions. The kernel's come before its output features.
    let group_at = if o.batch_group_count > 1 { 0 } else { 1 + 2 * spatial };
    let kernel_group_at = spatial + 1;
    if has_groups {
        split(&mut window_dims, group_at as usize, groups);
        split(&mut kernel_dims, kernel_group_at as usize, groups);
    }
    let (windows, kernel) = (b.reshape(windows, &window_dims), b.reshape(kernel, &kernel_dims));
    let shift = i64::from(has_groups && group_at == 0);
    let positions = (1 + spatial + shift)..(1 + 2 * spatial + shift);
    let features = window_dims.len() as i64 - 1;
    let numbers = DotDimensionNumbers {
        lhs_batching_dimensions: has_groups.then_some(group_at).into_iter().collect(),
        rhs_batching_dimensions: has_groups.then_some(kernel_group_at).into_iter().collect(),
        lhs_contracting_dimensions: positions.chain([features]).collect(),
        rhs_contracting_dimensions: (0..=spatial).collect(),
    };
    let is_summed = |at: &i64| {
        !numbers.lhs_contracting_dimensions.contains(at)
            && Some(at) != numbers.lhs_batching_dimensions.first()
    };
    let kept: Vec<i64> =
        (0..window_dims.len() as i64).filter(is_summed).map(|at| window_dims[at as usize]).collect();
    let outputs = kernel_dims.last().copied().unwrap_or(1);
    let group = has_groups.then_some(groups);
    let dims: Vec<i64> = group.into_iter().chain(kept.iter().copied()).chain([outputs]).collect();
    let kind = Op::DotGeneral(Box::new(DotGeneral {
        dot_dimension_numbers: numbers,
        precision_config: o.precision_config.clone(),
        algorithm: None,
    }));
    let product = b.op_of_type(kind, &[windows, kernel], TensorType::new(element, dims));
    if !has_groups {
        return product;
    }
    // The groups become the outer part of the output features.
    let permutation: Vec<i64> = (1..=spatial + 1).chain([0, spatial + 2]).collect();
    let product = b.transpose(product, &permutation);
    let dims: Vec<i64> = kept.into_iter().chain([groups * outputs]).collect();
    b.reshape(product, &dims)
}

/// Splits a dimension into groups and the elements of each.
fn split(dims: &mut Vec<i64>, at: usize, groups: i64) {
    dims[at] /= groups;
    dims.insert(at, groups);
}
