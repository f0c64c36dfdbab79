//! The cost of an execution.

use crate::commands::{Block, Kind, Program};
use crate::kernel::Id;

/// The number of arithmetic operations, and the number of bytes read and written. The body of a loop is counted once, and all
/// branches are counted, because the number of their executions is unknown at compile time.
#[derive(Default)]
pub(crate) struct Cost {
    pub(crate) flops: f32,
    pub(crate) bytes: f32,
}

impl Cost {
    pub(crate) fn of(program: &Program) -> Self {
        let mut cost = Self::default();
        cost.add(program, &program.main);
        cost
    }

    fn add(&mut self, program: &Program, block: &Block) {
        let elements = |id: Id| program.values[id].len() as f32;
        for command in &block.commands {
            let values = command.reads.iter().chain(&command.writes);
            self.bytes += values.map(|id| program.values[*id].size() as f32).sum::<f32>();
            self.flops += match &command.kind {
                Kind::Compute(kernel) => kernel.steps.len() as f32 * elements(command.writes[0]),
                Kind::Product { depth, .. } => 2.0 * *depth as f32 * elements(command.writes[0]),
                Kind::Reduce { kernel, .. } => kernel.steps.len() as f32 * elements(command.reads[0]),
                _ => 0.0,
            };
            command.blocks.iter().for_each(|block| self.add(program, block));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_cost_two_operations_for_each_pair_of_numbers() {
        let text = "func.func @main(%x: tensor<2x3xf32>, %y: tensor<4x3xf32>) -> tensor<2x4xf32> {
            %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
            %1 = stablehlo.add %0, %0 : tensor<2x4xf32>
            return %1 : tensor<2x4xf32>
        }";
        let module = pjrt_stablehlo::parse(text.as_bytes().to_vec()).unwrap();
        let cost = Cost::of(&crate::lowering::lower(module.main().unwrap()).unwrap());
        assert_eq!((cost.flops, cost.bytes), (2.0 * 24.0 + 8.0, 4.0 * (6.0 + 12.0 + 8.0 + 8.0 + 8.0)));
    }
}
