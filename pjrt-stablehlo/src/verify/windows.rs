//! Convolutions and reductions of windows.

use super::context::{Check, element_of, sizes_agree};
use crate::Error;
use crate::ir::ops::{Convolution, DynamicConv, ReduceWindow, SelectAndScatter};
use crate::ir::{ConvDimensionNumbers, DYNAMIC, Type};

/// How a window moves along one dimension.
struct Window {
    size: i64,
    stride: i64,
    padding: [i64; 2],
    base_dilation: i64,
    window_dilation: i64,
}

/// Number of positions of a window along a dimension of size `base`; `None` when something is out of range.
fn positions(base: i64, window: &Window) -> Option<i64> {
    let valid = window.stride > 0 && window.base_dilation > 0 && window.window_dilation > 0;
    if !valid || (window.size < 0 && window.size != DYNAMIC) {
        return None;
    }
    if base == DYNAMIC || window.size == DYNAMIC {
        return Some(DYNAMIC);
    }
    let dilated = |size: i64, dilation: i64| {
        if size == 0 { 0 } else { (i128::from(size) - 1) * i128::from(dilation) + 1 }
    };
    let [low, high] = window.padding.map(i128::from);
    let padded = low + dilated(base, window.base_dilation) + high;
    let width = dilated(window.size, window.window_dilation);
    if padded < width || padded <= 0 {
        return Some(0);
    }
    i64::try_from((padded - width) / i128::from(window.stride) + 1).ok()
}

/// `value`, or what stands for it when a list is left out.
fn at(list: &[i64], index: usize) -> i64 {
    list.get(index).copied().unwrap_or(1)
}

fn optional_length(check: &Check<'_>, what: &str, len: usize, count: usize) -> Result<(), Error> {
    if len == 0 { Ok(()) } else { check.length(what, len, count) }
}

/// Checks that dimension numbers name each dimension of a convolution's operands and result once.
fn dimension_numbers(check: &Check<'_>, numbers: &ConvDimensionNumbers) -> Result<usize, Error> {
    let spatial = numbers.input_spatial_dimensions.len();
    let (lhs, rhs, result) = (check.tensor(0)?, check.tensor(1)?, check.result_tensor(0)?);
    for (what, named, places, rank) in [
        (
            "input dimensions",
            [numbers.input_batch_dimension, numbers.input_feature_dimension],
            &numbers.input_spatial_dimensions,
            lhs.rank(),
        ),
        (
            "kernel dimensions",
            [numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension],
            &numbers.kernel_spatial_dimensions,
            rhs.rank(),
        ),
        (
            "output dimensions",
            [numbers.output_batch_dimension, numbers.output_feature_dimension],
            &numbers.output_spatial_dimensions,
            result.rank(),
        ),
    ] {
        let all: Vec<i64> = named.iter().chain(places).copied().collect();
        check.length(what, all.len(), spatial + 2)?;
        check.length(what, all.len(), rank)?;
        check.unique_dimensions(what, &all, rank)?;
    }
    Ok(spatial)
}

/// Checks the feature and batch groups of a convolution and gives the sizes of the result but for spatial dimensions.
fn groups(
    check: &Check<'_>,
    numbers: &ConvDimensionNumbers,
    feature_groups: i64,
    batch_groups: i64,
) -> Result<Vec<i64>, Error> {
    check.require(feature_groups > 0 && batch_groups > 0, || {
        format!("expected positive group counts, found {feature_groups} and {batch_groups}")
    })?;
    check.require(feature_groups == 1 || batch_groups == 1, || {
        format!("expected groups of features or batches, found {feature_groups} and {batch_groups}")
    })?;
    let (lhs, rhs, result) = (check.tensor(0)?, check.tensor(1)?, check.result_tensor(0)?);
    let batch = lhs.dims()[numbers.input_batch_dimension as usize];
    let features = lhs.dims()[numbers.input_feature_dimension as usize];
    let kernel_inputs = rhs.dims()[numbers.kernel_input_feature_dimension as usize];
    let kernel_outputs = rhs.dims()[numbers.kernel_output_feature_dimension as usize];
    let divides = |count: i64, size: i64| size == DYNAMIC || size % count == 0;
    let grouped = |size: i64, count: i64| if size == DYNAMIC { DYNAMIC } else { size / count };
    let fits = divides(feature_groups, features)
        && divides(batch_groups, batch)
        && divides(feature_groups, kernel_outputs)
        && divides(batch_groups, kernel_outputs)
        && sizes_agree(grouped(features, feature_groups), kernel_inputs);
    check.require(fits, || {
        format!(
            "expected groups that divide batches and features, and as many kernel inputs as features of a group; \
             found {lhs} and {rhs} with {feature_groups} feature and {batch_groups} batch groups"
        )
    })?;
    let mut expected = vec![DYNAMIC; result.rank()];
    expected[numbers.output_batch_dimension as usize] = grouped(batch, batch_groups);
    expected[numbers.output_feature_dimension as usize] = kernel_outputs;
    Ok(expected)
}

/// `convolution`.
pub(super) fn convolution(check: &Check<'_>, op: &Convolution) -> Result<(), Error> {
    let numbers = &op.dimension_numbers;
    let spatial = dimension_numbers(check, numbers)?;
    optional_length(check, "window_strides", op.window_strides.len(), spatial)?;
    optional_length(check, "padding", op.padding.len(), spatial)?;
    optional_length(check, "lhs_dilation", op.lhs_dilation.len(), spatial)?;
    optional_length(check, "rhs_dilation", op.rhs_dilation.len(), spatial)?;
    optional_length(check, "window_reversal", op.window_reversal.len(), spatial)?;
    let (lhs, rhs) = (check.tensor(0)?, check.tensor(1)?);
    let mut expected = groups(check, numbers, op.feature_group_count, op.batch_group_count)?;
    for index in 0..spatial {
        let base = lhs.dims()[numbers.input_spatial_dimensions[index] as usize];
        let window = Window {
            size: rhs.dims()[numbers.kernel_spatial_dimensions[index] as usize],
            stride: at(&op.window_strides, index),
            padding: op.padding.get(index).copied().unwrap_or_default(),
            base_dilation: at(&op.lhs_dilation, index),
            window_dilation: at(&op.rhs_dilation, index),
        };
        let count = positions(base, &window);
        expected[numbers.output_spatial_dimensions[index] as usize] = count.ok_or_else(|| {
            check.error(format!(
                "spatial dimension {index}: expected positive strides and dilations and a valid padded size"
            ))
        })?;
    }
    check.result_shape(0, &expected)
}

/// `dynamic_conv`: spatial sizes of the result depend on the padding.
pub(super) fn dynamic_conv(check: &Check<'_>, op: &DynamicConv) -> Result<(), Error> {
    let numbers = &op.dimension_numbers;
    let spatial = dimension_numbers(check, numbers)?;
    optional_length(check, "window_strides", op.window_strides.len(), spatial)?;
    optional_length(check, "lhs_dilation", op.lhs_dilation.len(), spatial)?;
    optional_length(check, "rhs_dilation", op.rhs_dilation.len(), spatial)?;
    optional_length(check, "window_reversal", op.window_reversal.len(), spatial)?;
    let positive = [&op.window_strides, &op.lhs_dilation, &op.rhs_dilation];
    check.require(positive.iter().all(|list| list.iter().all(|&value| value > 0)), || {
        "expected positive strides and dilations".to_owned()
    })?;
    let padding = check.tensor(2)?;
    check.require(super::context::shapes_agree(padding.dims(), &[spatial as i64, 2]), || {
        format!(
            "operand 'padding': expected a pair for each of {spatial} spatial dimensions, found {padding}"
        )
    })?;
    let expected = groups(check, numbers, op.feature_group_count, op.batch_group_count)?;
    check.result_shape(0, &expected)
}

/// `reduce_window`.
pub(super) fn reduce_window(check: &Check<'_>, op: &ReduceWindow) -> Result<(), Error> {
    let inputs = ReduceWindow::inputs(check.op).len();
    check.require(inputs > 0, || "expected at least one input".to_owned())?;
    check.length("results", check.op.results.len(), inputs)?;
    let first = check.tensor(0)?;
    let rank = first.rank();
    check.length("window_dimensions", op.window_dimensions.len(), rank)?;
    optional_length(check, "window_strides", op.window_strides.len(), rank)?;
    optional_length(check, "base_dilations", op.base_dilations.len(), rank)?;
    optional_length(check, "window_dilations", op.window_dilations.len(), rank)?;
    optional_length(check, "padding", op.padding.len(), rank)?;
    for index in 0..inputs {
        let input = check.tensor(index)?;
        check.require(super::context::shapes_agree(first.dims(), input.dims()), || {
            format!("operand {index}: expected the shape of {first}, found {input}")
        })?;
        let expected = windows(check, input.dims(), op)?;
        check.result_shape(index, &expected)?;
        super::control::accumulated(check, index, inputs)?;
    }
    super::control::reducer(check, 0, inputs)
}

fn windows(check: &Check<'_>, dims: &[i64], op: &ReduceWindow) -> Result<Vec<i64>, Error> {
    let sizes = dims.iter().enumerate().map(|(index, &base)| {
        let window = Window {
            size: op.window_dimensions[index],
            stride: at(&op.window_strides, index),
            padding: op.padding.get(index).copied().unwrap_or_default(),
            base_dilation: at(&op.base_dilations, index),
            window_dilation: at(&op.window_dilations, index),
        };
        let count = if window.size > 0 { positions(base, &window) } else { None };
        count.ok_or_else(|| {
            check.error(format!("dimension {index}: expected a positive window, strides and dilations, and a valid padded size"))
        })
    });
    sizes.collect()
}

/// `select_and_scatter`.
pub(super) fn select_and_scatter(check: &Check<'_>, op: &SelectAndScatter) -> Result<(), Error> {
    let (operand, source, init) = (check.tensor(0)?, check.tensor(1)?, check.scalar(2)?);
    let rank = operand.rank();
    optional_length(check, "window_dimensions", op.window_dimensions.len(), rank)?;
    optional_length(check, "window_strides", op.window_strides.len(), rank)?;
    optional_length(check, "padding", op.padding.len(), rank)?;
    check.same_elements("operand 'source'", operand, source)?;
    check.same_elements("operand 'init_value'", operand, init)?;
    let mut expected = Vec::with_capacity(rank);
    for (index, &base) in operand.dims().iter().enumerate() {
        let window = Window {
            size: at(&op.window_dimensions, index),
            stride: at(&op.window_strides, index),
            padding: op.padding.get(index).copied().unwrap_or_default(),
            base_dilation: 1,
            window_dilation: 1,
        };
        let count = if window.size > 0 { positions(base, &window) } else { None };
        expected.push(count.ok_or_else(|| {
            check.error(format!(
                "dimension {index}: expected a positive window and stride, and a valid padded size"
            ))
        })?);
    }
    check.require(super::context::shapes_agree(source.dims(), &expected), || {
        format!(
            "operand 'source': expected a value for each window, {}, found {source}",
            super::context::shape_text(&expected)
        )
    })?;
    let element: Type = element_of(operand);
    check.region_signature(0, &[element.clone(), element.clone()], &[super::context::predicate()])?;
    let result = check.result_tensor(0)?;
    let accumulator = element_of(result);
    check.region_signature(1, &[accumulator.clone(), accumulator.clone()], &[accumulator])?;
    check.result_shape(0, operand.dims())
}
