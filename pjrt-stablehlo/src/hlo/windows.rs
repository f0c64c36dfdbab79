//! Convolutions and reductions of windows.

use super::attributes::{conv_dimensions, precisions};
use super::instruction::Instruction;
use super::proto::WindowDimension;
use super::reader::Reader;
use crate::Error;
use crate::ir::{IntPairs, Ints, ValueId, ops};

fn window(at: &Instruction) -> &[WindowDimension] {
    at.proto.window.as_ref().map_or(&[], |window| &window.dimensions)
}

fn each(window: &[WindowDimension], number: impl Fn(&WindowDimension) -> i64) -> Ints {
    window.iter().map(number).collect()
}

fn padding(window: &[WindowDimension]) -> IntPairs {
    window.iter().map(|dimension| [dimension.padding_low, dimension.padding_high]).collect()
}

/// Returns an error for reversed windows, which have no meaning where a computation combines all elements.
fn not_reversed(at: &Instruction) -> Result<(), Error> {
    if window(at).iter().any(|dimension| dimension.window_reversal) {
        return Err(at.unsupported("reversed windows are only supported in convolutions"));
    }
    Ok(())
}

impl Reader {
    pub(super) fn convolution(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let numbers =
            at.required("convolution_dimension_numbers", &at.proto.convolution_dimension_numbers)?;
        if at.operands.len() != 2 {
            let message = format!("convolutions of {} operands are not supported", at.operands.len());
            return Err(at.unsupported(message));
        }
        let window = window(at);
        let op = ops::Convolution {
            window_strides: each(window, |dimension| dimension.stride),
            padding: padding(window),
            lhs_dilation: each(window, |dimension| dimension.base_dilation),
            rhs_dilation: each(window, |dimension| dimension.window_dilation),
            window_reversal: window.iter().map(|dimension| dimension.window_reversal).collect(),
            dimension_numbers: conv_dimensions(numbers),
            // Older writers omit counts of 1.
            feature_group_count: at.proto.feature_group_count.max(1),
            batch_group_count: at.proto.batch_group_count.max(1),
            precision_config: precisions(at)?,
        };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn reduce_window(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        not_reversed(at)?;
        let window = window(at);
        let op = ops::ReduceWindow {
            window_dimensions: each(window, |dimension| dimension.size),
            window_strides: each(window, |dimension| dimension.stride),
            base_dilations: each(window, |dimension| dimension.base_dilation),
            window_dilations: each(window, |dimension| dimension.window_dilation),
            padding: padding(window),
        };
        self.applied(at, op, &at.arrays()?)
    }

    pub(super) fn select_and_scatter(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        not_reversed(at)?;
        let window = window(at);
        if window.iter().any(|dimension| dimension.base_dilation > 1 || dimension.window_dilation > 1) {
            return Err(at.unsupported("window dilation is not supported"));
        }
        let op = ops::SelectAndScatter {
            window_dimensions: each(window, |dimension| dimension.size),
            window_strides: each(window, |dimension| dimension.stride),
            padding: padding(window),
        };
        self.applied(at, op, &at.arrays()?)
    }
}
