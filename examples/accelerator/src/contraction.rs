//! Operations that combine elements: products, convolutions, and reductions. Movements bring their operands into the order in
//! which the processor reads them.

use pjrt_plugin::Result;
use pjrt_stablehlo::ir::ops::{Convolution, ReduceWindow};
use pjrt_stablehlo::ir::{DotDimensionNumbers, OpId, Operation};

use crate::commands::Kind;
use crate::kernel::Id;
use crate::lowering::{Lowering, ids};
use crate::movement::{Axis, transposition};

impl Lowering<'_> {
    /// Translates a product: both operands are transposed to batches of matrices.
    pub(crate) fn dot_general(&mut self, op: &Operation, numbers: &DotDimensionNumbers) -> Result<()> {
        let (batching, contracting) = (&numbers.lhs_batching_dimensions, &numbers.lhs_contracting_dimensions);
        let lhs = self.matrices(op.operand(0).index(), batching, contracting)?;
        let dims = &self.values[op.operand(0).index()].dims;
        let [batches, depth] = [batching, contracting].map(|which| size(&sizes(dims, which)));
        let (batching, contracting) = (&numbers.rhs_batching_dimensions, &numbers.rhs_contracting_dimensions);
        let rhs = self.matrices(op.operand(1).index(), batching, contracting)?;
        self.emit(Kind::Product { batches, depth }, vec![lhs, rhs], vec![op.result().index()]);
        Ok(())
    }

    /// Moves the dimensions of an operand into the order batch, row, depth.
    fn matrices(&mut self, from: Id, batching: &[i64], contracting: &[i64]) -> Result<Id> {
        let all = 0..self.values[from].dims.len() as i64;
        let free: Vec<i64> = all.filter(|d| !batching.contains(d) && !contracting.contains(d)).collect();
        self.transposed(from, &[batching, &free, contracting].concat())
    }

    /// Moves the dimensions of an array into another order, unless they are in that order.
    fn transposed(&mut self, from: Id, order: &[i64]) -> Result<Id> {
        if order.is_sorted() {
            return Ok(from);
        }
        let dims = sizes(&self.values[from].dims, order);
        self.moved(from, transposition(order), &dims, None)
    }

    /// Translates a convolution to a product of the patches under the windows with the kernel.
    pub(crate) fn convolution(&mut self, op: &Operation, conv: &Convolution) -> Result<()> {
        let [lhs, rhs, result] = [op.operand(0), op.operand(1), op.result()].map(|value| self.dims(value));
        let numbers = &conv.dimension_numbers;
        let rank = lhs.len();
        let spatial = |d: usize| numbers.output_spatial_dimensions[d];
        // Dimensions of the patches: batch, positions of the windows, feature, positions inside a window.
        let mut axes = vec![Axis::sum([]); rank];
        axes[numbers.input_batch_dimension as usize] = Axis::along(0);
        axes[numbers.input_feature_dimension as usize] = Axis::along(rank - 1);
        for (d, dimension) in numbers.input_spatial_dimensions.iter().enumerate() {
            let terms = [(1 + d, conv.window_strides[d]), (rank + d, conv.rhs_dilation[d])];
            let low = conv.padding[d][0].saturating_neg();
            axes[*dimension as usize] = Axis::sum(terms).offset(low).dilated(conv.lhs_dilation[d]);
        }
        let order: Vec<i64> =
            [numbers.output_batch_dimension].into_iter().chain((0..rank - 2).map(spatial)).collect();
        let inner = [&[numbers.kernel_input_feature_dimension], &*numbers.kernel_spatial_dimensions].concat();
        let (positions, inner_sizes) = (sizes(&result, &order), sizes(&rhs, &inner));
        let patches = [&*positions, &inner_sizes].concat();
        let patches = self.moved(op.operand(0).index(), axes, &patches, None)?;
        // Dimensions of the kernel: output feature, input feature, positions inside a window.
        let outer = numbers.kernel_output_feature_dimension;
        let kernel_order = [&[outer], &*inner].concat();
        let mut axes = transposition(&kernel_order);
        for (d, dimension) in numbers.kernel_spatial_dimensions.iter().enumerate() {
            if conv.window_reversal.get(d) == Some(&true) {
                axes[*dimension as usize] = Axis::sum([(2 + d, -1)]).offset(inner_sizes[1 + d] - 1);
            }
        }
        let kernel = self.moved(op.operand(1).index(), axes, &sizes(&rhs, &kernel_order), None)?;
        let product = [&*positions, &[rhs[outer as usize]]].concat();
        let product = self.temporary(self.values[op.result().index()].ty, &product)?;
        let kind = Kind::Product { batches: 1, depth: size(&inner_sizes) };
        self.emit(kind, vec![patches, kernel], vec![product]);
        // The dimensions of the product are those of the result in this order.
        let order = [&*order, &[numbers.output_feature_dimension]].concat();
        let axes = order.iter().map(|dimension| Axis::along(*dimension as usize)).collect();
        self.emit(Kind::Move { axes, is_padded: false }, vec![product], vec![op.result().index()]);
        Ok(())
    }

    /// Translates a reduction: the reduced dimensions become the last ones.
    pub(crate) fn reduce(&mut self, id: OpId, op: &Operation, reduced: &[i64]) -> Result<()> {
        let dims = self.dims(op.operand(0));
        let kept = (0..dims.len() as i64).filter(|d| !reduced.contains(d));
        let order: Vec<i64> = kept.chain(reduced.iter().copied()).collect();
        let arrays = ids(op.operand_group(0)).into_iter().map(|array| self.transposed(array, &order));
        let arrays = arrays.collect::<Result<_>>()?;
        self.emit_reduce(id, op, arrays, size(&sizes(&dims, reduced)))
    }

    /// Translates a reduction of windows: a movement copies the elements of each window next to each other.
    pub(crate) fn reduce_window(&mut self, id: OpId, op: &Operation, reduce: &ReduceWindow) -> Result<()> {
        let outputs = self.dims(op.results.get(0).unwrap_or(op.operand(0)));
        let factor = |factors: &[i64], d: usize| factors.get(d).copied().unwrap_or(1);
        let axis = |d: usize| {
            let within = (outputs.len() + d, factor(&reduce.window_dilations, d));
            let terms = [(d, factor(&reduce.window_strides, d)), within];
            let low = reduce.padding.get(d).map_or(0, |[low, _]| low.saturating_neg());
            Axis::sum(terms).offset(low).dilated(factor(&reduce.base_dilations, d))
        };
        let axes: Vec<Axis> = (0..outputs.len()).map(axis).collect();
        let dims = [&*outputs, &*reduce.window_dimensions].concat();
        let pairs = ids(op.operand_group(0)).into_iter().zip(ids(op.operand_group(1)));
        let arrays = pairs.map(|(array, init)| self.moved(array, axes.clone(), &dims, Some(init)));
        let arrays = arrays.collect::<Result<_>>()?;
        self.emit_reduce(id, op, arrays, size(&reduce.window_dimensions))
    }

    fn emit_reduce(&mut self, id: OpId, op: &Operation, arrays: Vec<Id>, width: usize) -> Result<()> {
        let kernel = self.region_kernel(id)?;
        let reads = [&*arrays, &ids(op.operand_group(1)), &kernel.captured].concat();
        self.emit(Kind::Reduce { width, kernel }, reads, op.results.map(|value| value.index()).collect());
        Ok(())
    }
}

fn sizes(dims: &[i64], which: &[i64]) -> Vec<i64> {
    which.iter().map(|dimension| dims[*dimension as usize]).collect()
}

fn size(dims: &[i64]) -> usize {
    dims.iter().product::<i64>() as usize
}
