//! The cost of an execution.

use pjrt_stablehlo::ir::{Op, Trait, ValueId};

use crate::program::Program;

/// The number of arithmetic operations, and the number of bytes read and written. The body of a loop is
/// counted once, and all branches are counted, because the number of their executions is unknown at compile
/// time.
pub(crate) struct Cost {
    pub(crate) flops: f32,
    pub(crate) bytes: f32,
}

impl Cost {
    pub(crate) fn of(program: &Program) -> Self {
        let elements =
            |value: ValueId| program.values[value.index()].dims.iter().map(|d| *d as f32).product::<f32>();
        let bytes = |value: ValueId| program.values[value.index()].rows.padded_size() as f32;
        let mut cost = Self { flops: 0.0, bytes: 0.0 };
        for (_, op) in program.main.body.all_ops() {
            cost.bytes += op.operands.iter().copied().chain(op.results).map(bytes).sum::<f32>();
            cost.flops += match &op.kind {
                Op::DotGeneral(dot) => {
                    let dims = &program.values[op.operand(0).index()].dims;
                    let contracting = dot.dot_dimension_numbers.lhs_contracting_dimensions.iter();
                    let depth: f32 = contracting.map(|d| dims[*d as usize] as f32).product();
                    2.0 * depth * elements(op.result())
                }
                Op::Reduce(_) => elements(op.operand(0)),
                kind if kind.info().has(Trait::Elementwise) => elements(op.result()),
                _ => 0.0,
            };
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_cost_two_operations_for_each_pair_of_numbers() {
        let text = "func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
            %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
            %1 = stablehlo.add %0, %0 : tensor<2x4xf32>
            return %1 : tensor<2x4xf32>
        }";
        let module = pjrt_stablehlo::parse(text.as_bytes().to_vec()).unwrap();
        let cost = Cost::of(&Program::new(module.main().unwrap().clone()).unwrap());
        // The rows have 32 bytes: 2 + 3 + 2 rows of the product, 2 + 2 + 2 of the sum, and 2 that are
        // returned.
        assert_eq!((cost.flops, cost.bytes), (2.0 * 24.0 + 8.0, 32.0 * 15.0));
    }
}
