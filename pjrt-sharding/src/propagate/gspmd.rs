//! The differences between the propagation of XLA's GSPMD partitioner and that of Shardy.

use crate::rule::{ShardingRule, shapes};
use pjrt_stablehlo::ir::{Body, Op, Operation, ops};

/// Excludes the factors of an operation from propagation along which XLA's GSPMD partitioner does not propagate.
pub(super) fn block_for_gspmd(body: &Body, op: &Operation, rule: &mut ShardingRule) {
    let is_top_k = |composite: &ops::Composite| &*composite.name == "chlo.top_k";
    let factors: Vec<usize> = match &op.kind {
        Op::Fft(_) => (0..rule.factors.len()).collect(),
        Op::Composite(composite) if is_top_k(composite) => (0..rule.factors.len()).collect(),
        Op::BitcastConvert(_) if rule.operands[0].len() != rule.results[0].len() => {
            (0..rule.factors.len()).collect()
        }
        Op::Convolution(convolution) => of_convolution(body, op, convolution, rule),
        _ => return,
    };
    factors.into_iter().for_each(|factor| rule.factors[factor].blocks_propagation = true);
}

/// Returns the factors of the features if they are divided into groups, and the spatial factors if the kernel is at least as large
/// as the output along one of them.
fn of_convolution(body: &Body, op: &Operation, o: &ops::Convolution, rule: &ShardingRule) -> Vec<usize> {
    let mut factors = vec![];
    if o.feature_group_count > 1 || o.batch_group_count > 1 {
        factors.extend(rule.operands[1].iter().flatten());
    }
    let numbers = &o.dimension_numbers;
    let Some([kernel, output]) = shapes(body, [op.operand(1), op.result()].into_iter())
        .and_then(|shapes| <[Vec<usize>; 2]>::try_from(shapes).ok())
    else {
        return factors;
    };
    let mut windows = numbers.kernel_spatial_dimensions.iter().zip(&*numbers.output_spatial_dimensions);
    if windows.any(|(window, to)| kernel[*window as usize] >= output[*to as usize]) {
        let spatial = numbers.input_spatial_dimensions.iter();
        factors.extend(spatial.flat_map(|dim| &rule.operands[0][*dim as usize]));
    }
    factors
}
