//! A loop over one dimension of tensors.

use crate::build::Builder;
use crate::ir::ops::{DynamicSlice, DynamicUpdateSlice, While};
use crate::ir::{BlockId, ComparisonDirection, ElementType, OpId, TensorType, ValueId};

/// A scan: each step takes a slice of each input and the carries, and gives a slice of each output and the next carries.
///
/// The tensors have this dimension, and `steps` elements along it.
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
    /// The loop; its results are the counter, the outputs and the carries.
    pub(crate) op: OpId,
    /// The block that the step is to be added to.
    pub(crate) block: BlockId,
    /// What the step takes: slices of the inputs, and the carries.
    pub(crate) arguments: Vec<ValueId>,
    dimension: usize,
    counter: ValueId,
    index: ValueId,
    written: Vec<ValueId>,
}

impl Scan<'_> {
    /// Adds the loop, up to its step.
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
    /// Ends the loop's block with what the step gives: the slices of the outputs, and the carries.
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

/// The start of a slice: an index in one dimension, 0 in the others.
fn start_at(b: &mut Builder, rank: usize, dimension: usize, index: ValueId) -> Vec<ValueId> {
    let zero = b.number(0.0, index);
    (0..rank).map(|other| if other == dimension { index } else { zero }).collect()
}

/// The slice at an index of a dimension, without that dimension.
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

/// A tensor with the slice at an index of a dimension replaced.
fn update_at(b: &mut Builder, x: ValueId, dimension: usize, index: ValueId, slice: ValueId) -> ValueId {
    let ty = b.tensor(x);
    let mut sizes = ty.dims().to_vec();
    sizes[dimension] = 1;
    let slice = b.reshape(slice, &sizes);
    let mut operands = vec![x, slice];
    operands.extend(start_at(b, ty.rank(), dimension, index));
    b.op(DynamicUpdateSlice {}, &operands)
}
