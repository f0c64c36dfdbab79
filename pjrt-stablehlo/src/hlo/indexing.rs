//! Operations that use values as indices.

use super::attributes::ints;
use super::instruction::Instruction;
use super::reader::Reader;
use crate::Error;
use crate::ir::{GatherDimensionNumbers, ScatterDimensionNumbers, ValueId, ops};

impl Reader {
    pub(super) fn dynamic_slice(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let mut operands = vec![at.array(0)?];
        operands.extend(self.start_indices(at, 1)?);
        let op = ops::DynamicSlice { slice_sizes: ints(&at.proto.dynamic_slice_sizes) };
        Ok(vec![self.code.op_of_type(op, &operands, at.result()?)])
    }

    pub(super) fn dynamic_update_slice(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let mut operands = vec![at.array(0)?, at.array(1)?];
        operands.extend(self.start_indices(at, 2)?);
        let op = ops::DynamicUpdateSlice {};
        Ok(vec![self.code.op_of_type(op, &operands, at.result()?)])
    }

    /// Returns the indices as scalars. Older programs contain a single vector of indices.
    fn start_indices(&mut self, at: &Instruction, first: usize) -> Result<Vec<ValueId>, Error> {
        if at.operands.len() != first + 1 || at.tensor(&self.code, first)?.rank() != 1 {
            return (first..at.operands.len()).map(|index| at.array(index)).collect();
        }
        let rank = at.tensor(&self.code, 0)?.rank() as i64;
        let vector = at.tensor(&self.code, first)?;
        if vector.dims() != [rank] {
            return Err(at.invalid(format!("operand {first}: expected {rank} indices, found {vector}")));
        }
        let indices = at.array(first)?;
        let scalars = (0..rank).map(|place| {
            let index = self.code.slice(indices, &[place], &[place + 1]);
            self.code.reshape(index, &[])
        });
        Ok(scalars.collect())
    }

    pub(super) fn gather(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let numbers = at.required("gather_dimension_numbers", &at.proto.gather_dimension_numbers)?;
        let op = ops::Gather {
            dimension_numbers: GatherDimensionNumbers {
                offset_dims: ints(&numbers.offset_dims),
                collapsed_slice_dims: ints(&numbers.collapsed_slice_dims),
                operand_batching_dims: ints(&numbers.operand_batching_dims),
                start_indices_batching_dims: ints(&numbers.start_indices_batching_dims),
                start_index_map: ints(&numbers.start_index_map),
                index_vector_dim: numbers.index_vector_dim,
            },
            slice_sizes: ints(&at.proto.gather_slice_sizes),
            indices_are_sorted: at.proto.indices_are_sorted,
        };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn scatter(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let numbers = at.required("scatter_dimension_numbers", &at.proto.scatter_dimension_numbers)?;
        let op = ops::Scatter {
            scatter_dimension_numbers: ScatterDimensionNumbers {
                update_window_dims: ints(&numbers.update_window_dims),
                inserted_window_dims: ints(&numbers.inserted_window_dims),
                input_batching_dims: ints(&numbers.input_batching_dims),
                scatter_indices_batching_dims: ints(&numbers.scatter_indices_batching_dims),
                scatter_dims_to_operand_dims: ints(&numbers.scatter_dims_to_operand_dims),
                index_vector_dim: numbers.index_vector_dim,
            },
            indices_are_sorted: at.proto.indices_are_sorted,
            unique_indices: at.proto.unique_indices,
        };
        self.applied(at, op, &at.arrays()?)
    }
}
