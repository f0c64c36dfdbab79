//! Operations that combine elements: products, convolutions, and reductions. Movements bring their operands into the order in
//! which the processor reads them.

use pjrt_plugin::Result;
use pjrt_stablehlo::ir::ops::{Convolution, ReduceWindow};
use pjrt_stablehlo::ir::{DotDimensionNumbers, OpId, Operation};

use crate::commands::{Command, Id};
use crate::lowering::{Lowering, ids};
use crate::movement::{Axis, transposition};

impl Lowering<'_> {
    /// Translates a product: both operands are transposed to batches of matrices.
    pub(crate) fn dot_general(&mut self, op: &Operation, numbers: &DotDimensionNumbers) -> Result<()> {
        let lhs = self.matrices(
            op.operand(0).index(),
            &numbers.lhs_batching_dimensions,
            &numbers.lhs_contracting_dimensions,
        )?;
        let rhs = self.matrices(
            op.operand(1).index(),
            &numbers.rhs_batching_dimensions,
            &numbers.rhs_contracting_dimensions,
        )?;
        let [batches, rows, depth] = lhs.1;
        let to = op.result().index();
        self.emit(Command::Product { lhs: lhs.0, rhs: rhs.0, batches, rows, columns: rhs.1[1], depth, to });
        Ok(())
    }

    /// Moves the dimensions of an operand into the order batch, row, depth, and returns the products of their sizes.
    fn matrices(&mut self, from: Id, batching: &[i64], contracting: &[i64]) -> Result<(Id, [usize; 3])> {
        let dims = self.values[from].dims.clone();
        let all = 0..dims.len() as i64;
        let free: Vec<i64> =
            all.clone().filter(|d| !batching.contains(d) && !contracting.contains(d)).collect();
        let size = |which: &[i64]| which.iter().map(|d| dims[*d as usize] as usize).product::<usize>();
        let order = [batching, &free, contracting].concat();
        let moved = if all.eq(order.iter().copied()) { from } else { self.transposed(from, &order)? };
        Ok((moved, [size(batching), size(&free), size(contracting)]))
    }

    fn transposed(&mut self, from: Id, order: &[i64]) -> Result<Id> {
        let dims: Vec<i64> = order.iter().map(|d| self.values[from].dims[*d as usize]).collect();
        self.moved(from, transposition(order), &dims, None)
    }

    /// Translates a convolution to a product of the patches under the windows with the kernel. Either the features or the
    /// batch have groups.
    pub(crate) fn convolution(&mut self, op: &Operation, conv: &Convolution) -> Result<()> {
        let [lhs, rhs, result] = [op.operand(0), op.operand(1), op.result()].map(|value| self.dims(value));
        let numbers = &conv.dimension_numbers;
        let (features, batches) = (conv.feature_group_count, conv.batch_group_count);
        let groups = features * batches;
        let batch = lhs[numbers.input_batch_dimension as usize] / batches;
        let depth = rhs[numbers.kernel_input_feature_dimension as usize];
        let columns = rhs[numbers.kernel_output_feature_dimension as usize] / groups;
        let spatial = numbers.input_spatial_dimensions.len();
        let sizes =
            |dims: &[i64], which: &[i64]| -> Vec<i64> { which.iter().map(|d| dims[*d as usize]).collect() };
        let outputs = sizes(&result, &numbers.output_spatial_dimensions);
        let windows = sizes(&rhs, &numbers.kernel_spatial_dimensions);
        // Dimensions of the patches: group, batch, positions of the windows, feature, positions inside a window.
        let (positions, feature) = (2, 2 + spatial);
        let mut axes = vec![Axis::sum([]); lhs.len()];
        let group = |groups: i64, size: i64| if groups > 1 { size } else { 0 };
        axes[numbers.input_batch_dimension as usize] = Axis::sum([(0, group(batches, batch)), (1, 1)]);
        axes[numbers.input_feature_dimension as usize] =
            Axis::sum([(0, group(features, depth)), (feature, 1)]);
        for (d, dimension) in numbers.input_spatial_dimensions.iter().enumerate() {
            let terms = [(positions + d, conv.window_strides[d]), (feature + 1 + d, conv.rhs_dilation[d])];
            let low = conv.padding[d][0].saturating_neg();
            axes[*dimension as usize] = Axis::sum(terms).offset(low).dilated(conv.lhs_dilation[d]);
        }
        let dims = [&[groups, batch][..], &outputs, &[depth], &windows].concat();
        let patches = self.moved(op.operand(0).index(), axes, &dims, None)?;
        // Dimensions of the kernel: group, output feature, input feature, positions inside a window.
        let mut axes = vec![Axis::sum([]); rhs.len()];
        axes[numbers.kernel_output_feature_dimension as usize] = Axis::sum([(0, columns), (1, 1)]);
        axes[numbers.kernel_input_feature_dimension as usize] = Axis::along(2);
        for (d, dimension) in numbers.kernel_spatial_dimensions.iter().enumerate() {
            axes[*dimension as usize] = match conv.window_reversal.get(d) {
                Some(true) => Axis::sum([(3 + d, -1)]).offset(windows[d] - 1),
                _ => Axis::along(3 + d),
            };
        }
        let dims = [&[groups, columns, depth][..], &windows].concat();
        let kernel = self.moved(op.operand(1).index(), axes, &dims, None)?;
        // Dimensions of the product: group, batch, positions of the windows, output feature.
        let dims = [&[groups, batch][..], &outputs, &[columns]].concat();
        let product = self.temporary(self.values[op.result().index()].ty, &dims)?;
        let size = |dims: &[i64]| dims.iter().product::<i64>() as usize;
        self.emit(Command::Product {
            lhs: patches,
            rhs: kernel,
            batches: groups as usize,
            rows: size(&dims[1..dims.len() - 1]),
            columns: columns as usize,
            depth: size(&[&[depth], &*windows].concat()),
            to: product,
        });
        // The group and the output feature become one dimension of the result.
        let mut order = vec![Vec::new(); result.len()];
        order[numbers.output_batch_dimension as usize] = vec![1];
        order[numbers.output_feature_dimension as usize] = vec![0, dims.len() as i64 - 1];
        for (d, dimension) in numbers.output_spatial_dimensions.iter().enumerate() {
            order[*dimension as usize] = vec![2 + d as i64];
        }
        let from = self.transposed(product, &order.concat())?;
        self.emit(Command::Copy { from, to: op.result().index() });
        Ok(())
    }

    /// Translates a reduction: the reduced dimensions become the last ones.
    pub(crate) fn reduce(&mut self, id: OpId, op: &Operation, reduced: &[i64]) -> Result<()> {
        let dims = self.dims(op.operand(0));
        let kept = (0..dims.len() as i64).filter(|d| !reduced.contains(d));
        let order: Vec<i64> = kept.chain(reduced.iter().copied()).collect();
        let arrays = ids(op.operand_group(0)).into_iter().map(|array| self.transposed(array, &order));
        let arrays = arrays.collect::<Result<_>>()?;
        let width = reduced.iter().map(|d| dims[*d as usize] as usize).product();
        self.emit_reduce(id, op, arrays, width)
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
        self.emit_reduce(id, op, arrays, reduce.window_dimensions.iter().product::<i64>() as usize)
    }

    fn emit_reduce(&mut self, id: OpId, op: &Operation, arrays: Vec<Id>, width: usize) -> Result<()> {
        let (init, kernel) = (ids(op.operand_group(1)), self.region_kernel(id)?);
        let to = op.results.map(|value| value.index()).collect();
        self.emit(Command::Reduce { arrays, init, width, kernel, to });
        Ok(())
    }
}
