//! Exchanges of slices whose sizes differ between devices.

use crate::build::Builder;
use crate::ir::ops::{AllGather, AllToAll, Gather};
use crate::ir::{
    ChannelHandle, ComparisonDirection as Cmp, ElementType, GatherDimensionNumbers, OpCode, ReplicaGroups,
    TensorType, ValueId,
};

/// The operands of `ragged_all_to_all`. The offsets and sizes are vectors of integers, with the same number of slices for each
/// device of the group.
pub(crate) struct RaggedAllToAll {
    pub(crate) operand: ValueId,
    /// The array that the received slices are written to.
    pub(crate) output: ValueId,
    /// The rows of the operand at which the slices that this device sends begin.
    pub(crate) input_offsets: ValueId,
    /// The rows of the receivers' outputs at which these slices are written.
    pub(crate) output_offsets: ValueId,
    /// The numbers of rows of the slices that this device receives.
    pub(crate) recv_sizes: ValueId,
}

/// The devices that communicate.
pub(crate) struct Group {
    pub(crate) groups: ReplicaGroups,
    /// The number of devices in each group.
    pub(crate) size: i64,
    pub(crate) channel: Option<ChannelHandle>,
}

/// `ragged_all_to_all`: all devices gather the operands of all, and take the rows that are sent to them. The offsets and the
/// types are as the documentation of JAX's function of this name describes.
pub(crate) fn ragged_all_to_all(b: &mut Builder, x: &RaggedAllToAll, group: &Group) -> ValueId {
    let (operand_ty, output_ty) = (b.tensor(x.operand), b.tensor(x.output));
    let (rows, slices) = (output_ty.dims()[0], b.dims(x.recv_sizes)[0]);
    let dims = [slices, rows];
    let received = |b: &mut Builder, offsets: ValueId| {
        let offsets = all_to_all(b, offsets, group);
        b.convert(offsets, ElementType::I64)
    };
    let (first, start) = (received(b, x.input_offsets), received(b, x.output_offsets));
    let sizes = b.convert(x.recv_sizes, ElementType::I64);
    let end = b.add(start, sizes);
    // A row is that of the last slice that contains it.
    let row = b.iota(ElementType::I64, &dims, 1);
    let slice = b.iota(ElementType::I64, &dims, 0);
    let [first, start, end] = [first, start, end].map(|vector| b.broadcast(vector, &[0], &dims));
    let (is_after, is_before) = (b.compare(Cmp::Ge, row, start), b.compare(Cmp::Lt, row, end));
    let is_inside = b.and(is_after, is_before);
    let none = b.number(-1.0, slice);
    let candidates = b.select(is_inside, slice, none);
    let last = b.reduce(candidates, &[0], OpCode::Maximum, -1.0);
    let all_last = b.broadcast(last, &[1], &dims);
    let is_last = b.compare(Cmp::Eq, slice, all_last);
    // The gathered operand contains the operands of the devices one after another.
    let per_device = b.number((slices / group.size) as f64, slice);
    let device = b.divide(slice, per_device);
    let operand_rows = b.number(operand_ty.dims()[0] as f64, slice);
    let of_device = b.multiply(device, operand_rows);
    let of_slice = b.add(of_device, first);
    let within = b.subtract(row, start);
    let source = b.add(of_slice, within);
    let zero = b.number(0.0, slice);
    let source = b.select(is_last, source, zero);
    let source = b.reduce(source, &[0], OpCode::Add, 0.0);
    let all = all_gather(b, x.operand, group);
    let taken = take_rows(b, all, source, &output_ty);
    let is_taken = b.compare_with(Cmp::Ge, last, 0.0);
    let is_taken = b.broadcast(is_taken, &[0], output_ty.dims());
    b.select(is_taken, taken, x.output)
}

fn all_to_all(b: &mut Builder, vector: ValueId, group: &Group) -> ValueId {
    let kind = AllToAll {
        split_dimension: 0,
        concat_dimension: 0,
        split_count: group.size,
        replica_groups: group.groups.clone(),
        channel_handle: group.channel,
    };
    let ty = b.tensor(vector);
    b.op_of_type(kind, &[vector], ty)
}

fn all_gather(b: &mut Builder, x: ValueId, group: &Group) -> ValueId {
    let kind = AllGather {
        all_gather_dim: 0,
        replica_groups: group.groups.clone(),
        channel_handle: group.channel,
        use_global_device_ids: group.channel.is_some(),
    };
    let ty = b.tensor(x);
    let mut dims = ty.dims().to_vec();
    dims[0] *= group.size;
    b.op_of_type(kind, &[x], ty.with_dims(dims))
}

/// Returns the rows of `x` with these indices, in a tensor of the type `result`.
fn take_rows(b: &mut Builder, x: ValueId, indices: ValueId, result: &TensorType) -> ValueId {
    let dimension_numbers = GatherDimensionNumbers {
        offset_dims: (1..result.rank() as i64).collect(),
        collapsed_slice_dims: [0].into(),
        start_index_map: [0].into(),
        index_vector_dim: 1,
        ..GatherDimensionNumbers::default()
    };
    let mut slice_sizes = result.dims().to_vec();
    slice_sizes[0] = 1;
    let kind = Gather { dimension_numbers, slice_sizes: slice_sizes.into(), indices_are_sorted: false };
    b.op_of_type(kind, &[x, indices], result.clone())
}
