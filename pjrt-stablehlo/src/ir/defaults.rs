//! Defaults of attributes that depend on the rank, and of new calls.

use super::ops::FuncCall;
use super::{Ints, Op, Str};

impl Op {
    /// Fills in strides, dilations, padding and window sizes that the program omits. `rank` is the rank of the first
    /// operand.
    pub(crate) fn fill_defaults(&mut self, rank: usize) {
        let ones = |list: &mut Ints, count: usize| {
            if list.is_empty() {
                *list = vec![1; count].into();
            }
        };
        let zeros = |list: &mut Box<[[i64; 2]]>, count: usize| {
            if list.is_empty() {
                *list = vec![[0; 2]; count].into();
            }
        };
        let no_reversal = |list: &mut Box<[bool]>, count: usize| {
            if list.is_empty() {
                *list = vec![false; count].into();
            }
        };
        match self {
            Op::Convolution(op) => {
                let spatial = op.dimension_numbers.input_spatial_dimensions.len();
                ones(&mut op.window_strides, spatial);
                zeros(&mut op.padding, spatial);
                ones(&mut op.lhs_dilation, spatial);
                ones(&mut op.rhs_dilation, spatial);
                no_reversal(&mut op.window_reversal, spatial);
            }
            Op::DynamicConv(op) => {
                let spatial = op.dimension_numbers.input_spatial_dimensions.len();
                ones(&mut op.window_strides, spatial);
                ones(&mut op.lhs_dilation, spatial);
                ones(&mut op.rhs_dilation, spatial);
                no_reversal(&mut op.window_reversal, spatial);
            }
            Op::ReduceWindow(op) => {
                ones(&mut op.window_strides, rank);
                ones(&mut op.base_dilations, rank);
                ones(&mut op.window_dilations, rank);
                zeros(&mut op.padding, rank);
            }
            Op::SelectAndScatter(op) => {
                ones(&mut op.window_dimensions, rank);
                ones(&mut op.window_strides, rank);
                zeros(&mut op.padding, rank);
            }
            _ => {}
        }
    }
}

impl FuncCall {
    /// Creates a call of the function with this name, without further attributes.
    pub fn new(callee: impl Into<Str>) -> FuncCall {
        FuncCall { arg_attrs: None, callee: callee.into(), no_inline: false, res_attrs: None }
    }
}
