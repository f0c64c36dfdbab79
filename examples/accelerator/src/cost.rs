//! The cost of an execution.

use crate::commands::{Block, Command, Id, Program};

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
        let elements = |id: Id| program.values[id].dims.iter().map(|d| *d as f32).product::<f32>();
        for command in &block.commands {
            let values = command.reads().into_iter().chain(command.writes().iter().copied());
            self.bytes += values.map(|id| program.values[id].rows.padded_size() as f32).sum::<f32>();
            self.flops += match command {
                Command::Compute { kernel, to } => kernel.steps.len() as f32 * elements(*to),
                Command::Product { depth, to, .. } => 2.0 * *depth as f32 * elements(*to),
                Command::Reduce { arrays, kernel, .. } => kernel.steps.len() as f32 * elements(arrays[0]),
                _ => 0.0,
            };
            command.blocks().into_iter().for_each(|block| self.add(program, block));
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
        // The rows have 32 bytes: 2 + 4 + 2 rows of the product, and 2 + 2 of the sum.
        assert_eq!((cost.flops, cost.bytes), (2.0 * 24.0 + 8.0, 32.0 * 12.0));
    }
}
