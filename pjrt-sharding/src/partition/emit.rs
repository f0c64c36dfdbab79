//! Adds operations to the partitioned program.

use crate::devices::Devices;
use crate::error::{Error, Result};
use pjrt_stablehlo::build::Builder;
use pjrt_stablehlo::ir::ops;
use pjrt_stablehlo::ir::{
    ChannelHandle, ComparisonDirection, ElementType, Function, OpCode, OpId, ReplicaGroups, Str, TensorType,
    ValueId,
};

/// Builds the function of one partition.
#[derive(Clone)]
pub(super) struct Emitter {
    pub(super) builder: Builder,
    pub(super) devices: Devices,
    /// The number of the last channel.
    channels: i64,
}

/// Converts sizes to the integers of the program.
pub(crate) fn ints(values: &[usize]) -> Box<[i64]> {
    values.iter().map(|value| *value as i64).collect()
}

pub(crate) fn not_built(error: pjrt_stablehlo::Error) -> Error {
    Error::internal(format!("an operation of the partitioned program is not valid: {error}"))
}

/// Adds a slice of the first elements of a tensor, of these sizes.
pub(crate) fn trimmed(builder: &mut Builder, value: ValueId, sizes: &[usize]) -> ValueId {
    builder.slice(value, &ints(&vec![0; sizes.len()]), &ints(sizes))
}

/// Pads a tensor with zeros at the end of its dimensions, up to these sizes.
///
/// # Errors
/// Returns an error if the value is not a tensor.
pub(crate) fn padded(builder: &mut Builder, value: ValueId, sizes: &[usize]) -> Result<ValueId> {
    let Some(ty) = builder.ty(value).as_tensor().cloned() else {
        return Err(Error::internal(format!("cannot pad a value of type {}", builder.ty(value))));
    };
    let sizes = ints(sizes);
    let high: Box<[i64]> = sizes.iter().zip(ty.dims()).map(|(size, now)| size - now).collect();
    if high.iter().all(|high| *high == 0) {
        return Ok(value);
    }
    let zero = builder.zeros(ty.with_dims([]));
    let none: Box<[i64]> = vec![0; sizes.len()].into();
    let pad = ops::Pad { edge_padding_low: none.clone(), edge_padding_high: high, interior_padding: none };
    Ok(builder.op(pad, &[value, zero]))
}

impl Emitter {
    /// Creates an emitter of a function without arguments.
    pub(super) fn new(devices: Devices) -> Self {
        Self { builder: Builder::default(), devices, channels: 0 }
    }

    /// Ends the function, and returns it.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) if an operation that was added is not valid.
    pub(super) fn finish(&mut self, name: Str, returned: &[ValueId]) -> Result<Function> {
        std::mem::take(&mut self.builder).finish(name, returned).map_err(not_built)
    }

    /// Checks the operations that were added.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) if one of them is not valid.
    pub(super) fn check(&self) -> Result<()> {
        self.builder.check().map_err(not_built)
    }

    /// Returns the dimensions of a tensor.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) if the value is not a tensor with a static shape, which callers have
    /// excluded.
    pub(super) fn dims(&self, value: ValueId) -> Result<Vec<usize>> {
        let ty = self.builder.ty(value);
        let dims = ty.as_tensor().and_then(TensorType::static_dims);
        let dims = dims.and_then(|dims| dims.iter().map(|d| usize::try_from(*d).ok()).collect());
        dims.ok_or_else(|| Error::internal(format!("expected a tensor with a static shape, found {ty}")))
    }

    /// Adds a scalar of type `i64`, which on each partition is the number that `numbers` has for it.
    pub(super) fn of_partition(&mut self, numbers: &[usize]) -> ValueId {
        let table = self.builder.integers(&ints(numbers), ElementType::I64);
        let partition = self.builder.op(ops::PartitionId {}, &[]);
        let one = self.builder.op(ops::DynamicSlice { slice_sizes: [1].into() }, &[table, partition]);
        self.builder.reshape(one, &[])
    }

    fn zero_index(&mut self) -> ValueId {
        self.builder.zeros(TensorType::new(ElementType::I64, []))
    }

    /// Adds a slice of these sizes, which begins at an index per partition in each dimension that `starts` has indices for, and
    /// at 0 in the others.
    pub(super) fn slice(
        &mut self,
        value: ValueId,
        starts: &[Option<Vec<usize>>],
        sizes: &[usize],
    ) -> ValueId {
        let mut operands = vec![value];
        for starts in starts {
            operands.push(match starts {
                Some(starts) => self.of_partition(starts),
                None => self.zero_index(),
            });
        }
        self.builder.op(ops::DynamicSlice { slice_sizes: ints(sizes) }, &operands)
    }

    fn channel(&mut self) -> Option<ChannelHandle> {
        self.channels += 1;
        Some(ChannelHandle { handle: self.channels, channel_type: 1 })
    }

    fn groups(groups: &[Vec<usize>]) -> ReplicaGroups {
        let group_size = groups.iter().map(Vec::len).max().unwrap_or(0);
        ReplicaGroups::Dense { group_size, ids: ints(&groups.concat()) }
    }

    /// Concatenates the parts of a group's members along a dimension.
    pub(super) fn all_gather(
        &mut self,
        value: ValueId,
        dim: usize,
        groups: &[Vec<usize>],
    ) -> Result<ValueId> {
        let mut dims = self.dims(value)?;
        dims[dim] *= groups.first().map_or(1, Vec::len);
        let gather = ops::AllGather {
            all_gather_dim: dim as i64,
            replica_groups: Self::groups(&self.devices.of_devices(groups)),
            channel_handle: self.channel(),
            use_global_device_ids: true,
        };
        let ty = self.builder.tensor(value).with_dims(ints(&dims));
        Ok(self.builder.op_of_type(gather, &[value], ty))
    }

    /// Splits a value along one dimension and concatenates the parts of a group's members along another.
    pub(super) fn all_to_all(
        &mut self,
        value: ValueId,
        cut: usize,
        join: usize,
        groups: &[Vec<usize>],
    ) -> ValueId {
        let exchange = ops::AllToAll {
            split_dimension: cut as i64,
            concat_dimension: join as i64,
            split_count: groups.first().map_or(1, Vec::len) as i64,
            // The groups contain partition numbers, which apply within every replica.
            replica_groups: Self::groups(groups),
            channel_handle: self.channel(),
        };
        self.builder.op(exchange, &[value])
    }

    /// Sends a value from the first partition of each pair to the second.
    pub(super) fn collective_permute(&mut self, value: ValueId, pairs: &[(usize, usize)]) -> ValueId {
        let source_target_pairs = pairs.iter().map(|(from, to)| [*from as i64, *to as i64]).collect();
        let permute = ops::CollectivePermute { source_target_pairs, channel_handle: self.channel() };
        self.builder.op(permute, &[value])
    }

    /// Sends the value of the first partition of each group to the others.
    pub(super) fn collective_broadcast(&mut self, value: ValueId, groups: &[Vec<usize>]) -> ValueId {
        let broadcast = ops::CollectiveBroadcast {
            // The groups contain partition numbers, which apply within every replica.
            replica_groups: Self::groups(groups),
            channel_handle: self.channel(),
            has_dynamic_root: false,
        };
        self.builder.op(broadcast, &[value])
    }

    /// Reduces a value elementwise over the members of each group.
    pub(super) fn all_reduce(&mut self, value: ValueId, by: OpCode, groups: &[Vec<usize>]) -> ValueId {
        let op = self.all_reduce_op(&[value], by, groups);
        self.builder.result(op)
    }

    /// Reduces several values of one element type in one operation. There must be at least one value.
    pub(super) fn all_reduce_together(
        &mut self,
        values: &[ValueId],
        by: OpCode,
        groups: &[Vec<usize>],
    ) -> Vec<ValueId> {
        let op = self.all_reduce_op(values, by, groups);
        self.builder.all_results(op)
    }

    fn all_reduce_op(&mut self, values: &[ValueId], by: OpCode, groups: &[Vec<usize>]) -> OpId {
        let reduce = ops::AllReduce {
            replica_groups: Self::groups(&self.devices.of_devices(groups)),
            channel_handle: self.channel(),
            use_global_device_ids: true,
        };
        let scalar = self.builder.tensor(values[0]).with_dims([]);
        self.builder.op_with_regions(reduce, values, |b, op| b.combiner(op, by, scalar))
    }

    /// Reduces a value elementwise over the members of each group. Each member receives its part of the result along a dimension.
    pub(super) fn reduce_scatter(
        &mut self,
        value: ValueId,
        dim: usize,
        by: OpCode,
        groups: &[Vec<usize>],
    ) -> Result<ValueId> {
        let mut dims = self.dims(value)?;
        dims[dim] /= groups.first().map_or(1, Vec::len);
        let scatter = ops::ReduceScatter {
            scatter_dimension: dim as i64,
            replica_groups: Self::groups(&self.devices.of_devices(groups)),
            channel_handle: self.channel(),
            use_global_device_ids: true,
        };
        let ty = self.builder.tensor(value);
        let op = self.builder.add_op(scatter, &[value], [ty.with_dims(ints(&dims)).into()]);
        self.builder.combiner(op, by, ty.with_dims([]));
        Ok(self.builder.result(op))
    }

    /// Places a value into zeros of these sizes, at an index per partition along one dimension.
    pub(super) fn place(&mut self, value: ValueId, dim: usize, starts: &[usize], sizes: &[usize]) -> ValueId {
        let ty = self.builder.tensor(value).with_dims(ints(sizes));
        let mut operands = vec![self.builder.zeros(ty), value];
        for d in 0..sizes.len() {
            operands.push(if d == dim { self.of_partition(starts) } else { self.zero_index() });
        }
        self.builder.op(ops::DynamicUpdateSlice {}, &operands)
    }

    /// Returns the value on the partitions in `keep`, and zeros on the others.
    pub(super) fn only_where(&mut self, value: ValueId, keep: &[bool]) -> ValueId {
        let keep: Vec<usize> = keep.iter().map(|keep| usize::from(*keep)).collect();
        let number = self.of_partition(&keep);
        let kept = self.builder.compare_with(ComparisonDirection::Ne, number, 0.0);
        let zeros = self.builder.zeros(self.builder.tensor(value));
        self.builder.select(kept, value, zeros)
    }
}
