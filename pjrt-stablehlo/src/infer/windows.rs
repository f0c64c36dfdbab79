//! Convolutions and reductions of windows.

use super::context::{Context, integers, list};
use super::reductions::{self, Window, at, window_attributes};
use super::result::{ResultRule, Results};
use super::shape::{Shape, Size, map_size, scalar_of, sizes_agree};
use crate::Constraint::{self, C, I};
use crate::Error;
use crate::ir::ops::{Convolution, DynamicConv, ReduceWindow, SelectAndScatter};
use crate::ir::{ConvDimensionNumbers, DYNAMIC, Op, TensorType};

/// Returns the results of operations on windows; `None` for other operations.
pub(super) fn results(cx: &Context<'_>) -> Option<Results> {
    Some(match &cx.op.kind {
        Op::Convolution(op) => convolution(cx, op),
        Op::DynamicConv(op) => dynamic_conv(cx, op),
        Op::ReduceWindow(op) => reduce_window(cx, op),
        Op::SelectAndScatter(op) => select_and_scatter(cx, op),
        _ => return None,
    })
}

/// The common part of `convolution` and `dynamic_conv`, whose constraints have the same numbers.
struct Common<'a> {
    numbers: &'a ConvDimensionNumbers,
    window_strides: &'a [i64],
    lhs_dilation: &'a [i64],
    rhs_dilation: &'a [i64],
    window_reversal: &'a [bool],
    feature_groups: i64,
    batch_groups: i64,
    precisions: usize,
}

impl Common<'_> {
    /// Checks everything except padding, and returns the number of spatial dimensions.
    fn check(&self, cx: &Context<'_>) -> Result<usize, Error> {
        let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
        cx.require(C(1), lhs.rank() == rhs.rank() && lhs.rank() >= 2, || {
            format!("expected operands of equal rank, at least 2, found {lhs} and {rhs}")
        })?;
        if lhs.quantization().is_none() && rhs.quantization().is_none() {
            cx.same_elements(C(27), 1, lhs)?;
        }
        let spatial = lhs.rank() - 2;
        window_attributes(
            cx,
            spatial,
            &[
                ("window_strides", self.window_strides, C(2), C(3)),
                ("lhs_dilation", self.lhs_dilation, C(5), C(6)),
                ("rhs_dilation", self.rhs_dilation, C(7), C(8)),
            ],
        )?;
        let reversal = self.window_reversal.len();
        cx.require(C(9), reversal == 0 || reversal == spatial, || {
            format!("window_reversal: expected {spatial} elements, found {reversal}")
        })?;
        self.dimension_numbers(cx, spatial)?;
        cx.positive(C(21), "feature_group_count", &[self.feature_groups])?;
        cx.positive(C(22), "batch_group_count", &[self.batch_groups])?;
        cx.require(C(23), self.feature_groups == 1 || self.batch_groups == 1, || {
            format!(
                "expected feature_group_count or batch_group_count to be 1, found {} and {}",
                self.feature_groups, self.batch_groups
            )
        })?;
        precision_config(cx, C(24), self.precisions)?;
        self.groups(cx, lhs, rhs)?;
        Ok(spatial)
    }

    /// Checks that dimension numbers contain each dimension of the operands and the result once.
    fn dimension_numbers(&self, cx: &Context<'_>, spatial: usize) -> Result<(), Error> {
        let numbers = self.numbers;
        for (what, named, places, length, range) in [
            (
                "input dimensions",
                [numbers.input_batch_dimension, numbers.input_feature_dimension],
                &numbers.input_spatial_dimensions,
                C(12),
                C(13),
            ),
            (
                "kernel dimensions",
                [numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension],
                &numbers.kernel_spatial_dimensions,
                C(17),
                C(18),
            ),
            (
                "output dimensions",
                [numbers.output_batch_dimension, numbers.output_feature_dimension],
                &numbers.output_spatial_dimensions,
                C(19),
                C(20),
            ),
        ] {
            cx.require(length, places.len() == spatial, || {
                format!("{what}: expected {spatial} spatial dimensions, found {}", integers(places))
            })?;
            let all: Vec<i64> = named.iter().chain(places).copied().collect();
            cx.dimensions(range, what, &all, spatial + 2)?;
            cx.unique(range, what, all)?;
        }
        Ok(())
    }

    /// Checks that the numbers of groups divide batches and features.
    fn groups(&self, cx: &Context<'_>, lhs: &TensorType, rhs: &TensorType) -> Result<(), Error> {
        let numbers = self.numbers;
        let size = |tensor: &TensorType, dimension: i64| tensor.dims()[dimension as usize];
        let features = size(lhs, numbers.input_feature_dimension);
        let kernel_outputs = size(rhs, numbers.kernel_output_feature_dimension);
        for (what, size, groups, constraint) in [
            ("batches", size(lhs, numbers.input_batch_dimension), self.batch_groups, C(10)),
            ("features", features, self.feature_groups, C(11)),
            ("kernel output features", kernel_outputs, self.batch_groups, C(15)),
            ("kernel output features", kernel_outputs, self.feature_groups, C(16)),
        ] {
            cx.require(constraint, size == DYNAMIC || size % groups == 0, || {
                format!("{what}: expected a multiple of the {groups} groups, found {size}")
            })?;
        }
        let expected = if features == DYNAMIC { DYNAMIC } else { features / self.feature_groups };
        let found = size(rhs, numbers.kernel_input_feature_dimension);
        cx.require(C(14), sizes_agree(expected, found), || {
            format!("kernel input features: expected {expected}, the number in each group, found {found}")
        })
    }

    /// Returns the shape of the result.
    fn result(
        &self,
        cx: &Context<'_>,
        spatial: usize,
        padding: impl Fn(usize) -> Option<[i64; 2]>,
    ) -> Results {
        let (lhs, rhs, numbers) = (cx.tensor(0)?, cx.tensor(1)?, self.numbers);
        let mut shape = Shape::dynamic(spatial + 2);
        let batch = map_size(Shape::size_of(lhs, numbers.input_batch_dimension as usize), |size| {
            Some(size / self.batch_groups)
        });
        shape.set(numbers.output_batch_dimension as usize, batch.unwrap_or((DYNAMIC, DYNAMIC)));
        let features = Shape::size_of(rhs, numbers.kernel_output_feature_dimension as usize);
        shape.set(numbers.output_feature_dimension as usize, features);
        for index in 0..spatial {
            let base = Shape::size_of(lhs, numbers.input_spatial_dimensions[index] as usize);
            let size = rhs.dims()[numbers.kernel_spatial_dimensions[index] as usize];
            let Some(padding) = padding(index) else { continue };
            if size == DYNAMIC {
                continue;
            }
            let window = Window {
                size,
                stride: at(self.window_strides, index),
                padding,
                base_dilation: at(self.lhs_dilation, index),
                window_dilation: at(self.rhs_dilation, index),
            };
            let place = numbers.output_spatial_dimensions[index] as usize;
            shape.set(place, moved(cx, C(25), index, base, &window)?);
        }
        Ok(vec![ResultRule::shape_of(shape, C(25))])
    }
}

/// Returns the number of positions of a window, as far as the base's size or bound is known.
fn moved(
    cx: &Context<'_>,
    constraint: Constraint,
    dimension: usize,
    base: Size,
    window: &Window,
) -> Result<Size, Error> {
    map_size(base, |base| window.positions(base)).ok_or_else(|| {
        cx.error(constraint, format!("dimension {dimension}: the number of windows overflows"))
    })
}

/// Checks that precisions are given for both operands or for neither. MLIR's verifier also accepts a single one, for
/// the first operand.
pub(super) fn precision_config(
    cx: &Context<'_>,
    constraint: impl Into<Option<Constraint>>,
    precisions: usize,
) -> Result<(), Error> {
    cx.require(constraint, precisions <= 2, || {
        format!("precision_config: expected a precision for each operand, found {precisions}")
    })
}

/// Checks that padding is empty or has a pair for each dimension.
fn padding_length(cx: &Context<'_>, constraint: Constraint, found: usize, rank: usize) -> Result<(), Error> {
    cx.require(constraint, found == 0 || found == rank, || {
        format!("padding: expected a pair for each of {rank} dimensions, found {found}")
    })
}

/// `convolution`.
fn convolution(cx: &Context<'_>, op: &Convolution) -> Results {
    let common = Common {
        numbers: &op.dimension_numbers,
        window_strides: &op.window_strides,
        lhs_dilation: &op.lhs_dilation,
        rhs_dilation: &op.rhs_dilation,
        window_reversal: &op.window_reversal,
        feature_groups: op.feature_group_count,
        batch_groups: op.batch_group_count,
        precisions: op.precision_config.len(),
    };
    let spatial = common.check(cx)?;
    padding_length(cx, C(4), op.padding.len(), spatial)?;
    common.result(cx, spatial, |index| Some(op.padding.get(index).copied().unwrap_or_default()))
}

/// `dynamic_conv`: an operand specifies the padding.
fn dynamic_conv(cx: &Context<'_>, op: &DynamicConv) -> Results {
    let common = Common {
        numbers: &op.dimension_numbers,
        window_strides: &op.window_strides,
        lhs_dilation: &op.lhs_dilation,
        rhs_dilation: &op.rhs_dilation,
        window_reversal: &op.window_reversal,
        feature_groups: op.feature_group_count,
        batch_groups: op.batch_group_count,
        precisions: op.precision_config.len(),
    };
    let spatial = common.check(cx)?;
    cx.same_shape(C(4), 2, &[spatial as i64, 2])?;
    let padding = cx.constant(2);
    common.result(cx, spatial, |index| {
        let padding = padding.as_deref()?.get(2 * index..2 * index + 2)?;
        Some([padding[0], padding[1]])
    })
}

/// `reduce_window`.
fn reduce_window(cx: &Context<'_>, op: &ReduceWindow) -> Results {
    let count = ReduceWindow::inputs(cx.op).len();
    cx.require(C(1), count > 0, || "expected at least one input".to_owned())?;
    let inputs: Vec<&TensorType> = (0..count).map(|index| cx.tensor(index)).collect::<Result<_, _>>()?;
    (1..count).try_for_each(|index| cx.same_shape(C(2), index, inputs[0].dims()))?;
    let rank = inputs[0].rank();
    cx.length(C(4), "window_dimensions", op.window_dimensions.len(), rank)?;
    window_attributes(
        cx,
        rank,
        &[
            ("window_dimensions", &op.window_dimensions, C(4), C(5)),
            ("window_strides", &op.window_strides, C(6), C(7)),
            ("base_dilations", &op.base_dilations, C(8), C(9)),
            ("window_dilations", &op.window_dilations, C(10), C(11)),
        ],
    )?;
    padding_length(cx, C(12), op.padding.len(), rank)?;
    let sums = reductions::reducer(cx, 0, &inputs, C(13))?;
    let mut results = Vec::with_capacity(count);
    for (index, (input, sum)) in inputs.into_iter().zip(sums).enumerate() {
        reductions::init_value(cx, count + index, sum, C(3), C(13))?;
        let sizes = (0..rank).map(|index| {
            let window = Window {
                size: op.window_dimensions[index],
                stride: at(&op.window_strides, index),
                padding: op.padding.get(index).copied().unwrap_or_default(),
                base_dilation: at(&op.base_dilations, index),
                window_dilation: at(&op.window_dilations, index),
            };
            moved(cx, C(15), index, Shape::size_of(input, index), &window)
        });
        let shape = sizes.collect::<Result<Shape, Error>>()?;
        let constraint = if index == 0 { C(15) } else { C(14) };
        results.push(ResultRule::of(shape.like(sum), constraint).with_elements(C(16)));
    }
    Ok(results)
}

/// `select_and_scatter`.
fn select_and_scatter(cx: &Context<'_>, op: &SelectAndScatter) -> Results {
    let (operand, source) = (cx.tensor(0)?, cx.tensor(1)?);
    let rank = operand.rank();
    cx.same_elements(C(1), 1, operand)?;
    window_attributes(
        cx,
        rank,
        &[
            ("window_dimensions", &op.window_dimensions, C(4), C(5)),
            ("window_strides", &op.window_strides, C(6), C(7)),
        ],
    )?;
    padding_length(cx, C(8), op.padding.len(), rank)?;
    let sizes = (0..rank).map(|index| {
        let window = Window {
            size: at(&op.window_dimensions, index),
            stride: at(&op.window_strides, index),
            padding: op.padding.get(index).copied().unwrap_or_default(),
            base_dilation: 1,
            window_dilation: 1,
        };
        moved(cx, C(2), index, Shape::size_of(operand, index), &window)
    });
    let windows = sizes.collect::<Result<Shape, Error>>()?;
    cx.require(C(2), super::shape::shapes_agree(source.dims(), windows.dims()), || {
        format!(
            "operand 'source': expected an element for each window, shape {}, found {source}",
            list(windows.dims())
        )
    })?;
    let element = scalar_of(operand);
    reductions::signature(cx, 0, &[element.clone(), element], &[reductions::predicate()], C(9))?;
    let sums = reductions::reducer(cx, 1, &[source], C(10))?;
    reductions::init_value(cx, 2, sums[0], C(3), I(3))?;
    Ok(vec![ResultRule::of(Shape::of(operand).like(sums[0]), C(11)).with_elements(C(12))])
}
