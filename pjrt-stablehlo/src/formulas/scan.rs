//! Loops over one dimension of tensors.

use crate::build::Builder;
use crate::ir::ops::{DynamicSlice, DynamicUpdateSlice, While};
use crate::ir::{BlockId, ComparisonDirection, ElementType, OpId, TensorType, ValueId};

/// A scan: each step takes a slice of each input and the carries, and returns a slice of each output and the next
/// carries.
///
/// The inputs and outputs have `steps` elements along the dimension.
pub(crate) struct Scan<'a> {
    pub(crate) dimension: usize,
    pub(crate) steps: i64,
    pub(crate) is_reverse: bool,
    pub(crate) inputs: &'a [ValueId],
    pub(crate) initial: &'a [ValueId],
    pub(crate) outputs: &'a [TensorType],
}

/// The loop of a scan whose step is being built.
pub(crate) struct Step {
    /// The loop. Its results are the counter, the outputs and the carries.
    pub(crate) op: OpId,
    /// The block to which the operations of the step are added.
    pub(crate) block: BlockId,
    /// The arguments of the step: slices of the inputs, and the carries.
    pub(crate) arguments: Vec<ValueId>,
    dimension: usize,
    counter: ValueId,
    index: ValueId,
    written: Vec<ValueId>,
}

impl Scan<'_> {
    /// Adds the loop up to the operations of its step.
    pub(crate) fn begin(&self, b: &mut Builder) -> Step {
        let counter = TensorType::new(ElementType::I64, []);
        let mut state = vec![b.integer(0, counter.clone())];
        state.extend(self.outputs.iter().map(|ty| b.zeros(ty.clone())));
        state.extend(self.initial);
        let types: Vec<_> = state.iter().map(|&value| b.ty(value).clone()).collect();
        let op = b.add_op(While {}, &state, types.clone());
        b.region(op, types.clone(), |b, state| {
            let limit = b.integer(self.steps, counter.clone());
            vec![b.compare(ComparisonDirection::Lt, state[0], limit)]
        });
        let outer = b.begin_region(op, types);
        let state = b.arguments();
        let counter = state[0];
        let index = if self.is_reverse {
            let last = b.integer(self.steps - 1, b.tensor(counter));
            b.subtract(last, counter)
        } else {
            counter
        };
        let slices = self.inputs.iter().map(|&input| slice_at(b, input, self.dimension, index));
        let mut arguments: Vec<ValueId> = slices.collect();
        arguments.extend(&state[1 + self.outputs.len()..]);
        let written = state[1..=self.outputs.len()].to_vec();
        let block = b.block();
        b.set_block(outer);
        Step { op, block, arguments, dimension: self.dimension, counter, index, written }
    }
}

impl Step {
    /// Terminates the loop's block with the results of the step: the slices of the outputs, and the carries.
    pub(crate) fn end(self, b: &mut Builder, returned: &[ValueId]) {
        let one = b.number(1.0, self.counter);
        let mut state = vec![b.add(self.counter, one)];
        for (&output, &slice) in self.written.iter().zip(returned) {
            state.push(update_at(b, output, self.dimension, self.index, slice));
        }
        state.extend(&returned[self.written.len().min(returned.len())..]);
        b.return_values(&state);
    }
}

/// Returns the start of a slice: `index` in one dimension, 0 in the others.
fn start_at(b: &mut Builder, rank: usize, dimension: usize, index: ValueId) -> Vec<ValueId> {
    let zero = b.number(0.0, index);
    (0..rank).map(|other| if other == dimension { index } else { zero }).collect()
}

/// Returns the slice at an index of a dimension, without that dimension.
fn slice_at(b: &mut Builder, x: ValueId, dimension: usize, index: ValueId) -> ValueId {
    let ty = b.tensor(x);
    let mut sizes = ty.dims().to_vec();
    sizes[dimension] = 1;
    let mut operands = vec![x];
    operands.extend(start_at(b, ty.rank(), dimension, index));
    let slice = b.op(DynamicSlice { slice_sizes: sizes.clone().into() }, &operands);
    sizes.remove(dimension);
    b.reshape(slice, &sizes)
}

/// Returns a tensor with the slice at an index of a dimension replaced.
fn update_at(b: &mut Builder, x: ValueId, dimension: usize, index: ValueId, slice: ValueId) -> ValueId {
    let ty = b.tensor(x);
    let mut sizes = ty.dims().to_vec();
    sizes[dimension] = 1;
    let slice = b.reshape(slice, &sizes);
    let mut operands = vec![x, slice];
    operands.extend(start_at(b, ty.rank(), dimension, index));
    b.op(DynamicUpdateSlice {}, &operands)
}
