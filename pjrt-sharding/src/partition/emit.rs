//! Adds operations to the partitioned program.

use crate::devices::Devices;
use crate::error::{Error, Result};
use pjrt_stablehlo::ir::ops;
use pjrt_stablehlo::ir::{
    BlockId, Body, ChannelHandle, ElementType, Literal, LiteralData, Location, Op, OpCode, OpId,
    ReplicaGroups, TensorType, Type, ValueId,
};

/// A body, the block that operations are added to, and their location.
pub(super) struct Emitter {
    pub(super) body: Body,
    pub(super) block: BlockId,
    pub(super) location: Location,
    pub(super) devices: Devices,
    /// The number of the last channel.
    pub(super) channels: i64,
}

/// Converts sizes to the integers of the program.
pub(crate) fn ints(values: &[usize]) -> Box<[i64]> {
    values.iter().map(|value| *value as i64).collect()
}

impl Emitter {
    /// Adds an operation with one result.
    pub(super) fn op(&mut self, kind: Op, operands: &[ValueId], result: TensorType) -> ValueId {
        let id = self.body.add_op(self.block, kind, operands, [result.into()], self.location.clone());
        self.body.op(id).result()
    }

    /// Returns the type of a tensor.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) if the value is not a tensor, which callers have excluded.
    pub(super) fn tensor(&self, value: ValueId) -> Result<TensorType> {
        let ty = self.body.ty(value).as_tensor().cloned();
        ty.ok_or_else(|| Error::internal("a value that is not a tensor cannot be partitioned"))
    }

    /// Returns the dimensions of a tensor.
    pub(super) fn dims(&self, value: ValueId) -> Result<Vec<usize>> {
        let ty = self.tensor(value)?;
        let dims = ty.static_dims().and_then(|dims| dims.iter().map(|d| usize::try_from(*d).ok()).collect());
        dims.ok_or_else(|| Error::internal(format!("{ty} does not have a static shape")))
    }

    /// Adds a constant with this value in all elements.
    pub(super) fn splat(&mut self, ty: TensorType, element: Vec<u8>) -> Result<ValueId> {
        let value = Literal::new(ty.clone(), LiteralData::Splat(element.into()));
        let value = value.map_err(|error| Error::internal(error.to_string()))?;
        Ok(self.op(Op::Constant(ops::Constant { value }), &[], ty))
    }

    /// Adds a constant of zeros.
    pub(super) fn zeros(&mut self, ty: TensorType) -> Result<ValueId> {
        let element = vec![0; ty.storage_type().byte_width()];
        self.splat(ty, element)
    }

    /// Adds a scalar of type `i64`, which on each partition is the number that `numbers` has for it.
    pub(super) fn of_partition(&mut self, numbers: &[usize]) -> Result<ValueId> {
        let i64s = |dims: &[i64]| TensorType::new(ElementType::I64, dims);
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| (*number as i64).to_le_bytes()).collect();
        let table = i64s(&[numbers.len() as i64]);
        let value = Literal::new(table.clone(), LiteralData::Dense(bytes.into()));
        let value = value.map_err(|error| Error::internal(error.to_string()))?;
        let table = self.op(Op::Constant(ops::Constant { value }), &[], table);
        let scalar = TensorType::new(ElementType::Ui32, []);
        let partition = self.op(Op::PartitionId(ops::PartitionId {}), &[], scalar);
        let slice = ops::DynamicSlice { slice_sizes: Box::new([1]) };
        let one = self.op(Op::DynamicSlice(slice), &[table, partition], i64s(&[1]));
        Ok(self.op(Op::Reshape(ops::Reshape {}), &[one], i64s(&[])))
    }

    /// Adds a slice of these sizes, which begins at an index per partition in each dimension that `starts` has indices for, and
    /// at 0 in the others.
    pub(super) fn slice(
        &mut self,
        value: ValueId,
        starts: &[Option<Vec<usize>>],
        sizes: &[usize],
    ) -> Result<ValueId> {
        let mut operands = vec![value];
        for starts in starts {
            operands.push(match starts {
                Some(starts) => self.of_partition(starts)?,
                None => self.zeros(TensorType::new(ElementType::I64, []))?,
            });
        }
        let ty = self.tensor(value)?.with_dims(ints(sizes));
        Ok(self.op(Op::DynamicSlice(ops::DynamicSlice { slice_sizes: ints(sizes) }), &operands, ty))
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
        let ty = self.tensor(value)?.with_dims(ints(&dims));
        Ok(self.op(Op::AllGather(gather.into()), &[value], ty))
    }

    /// Splits a value along one dimension and concatenates the parts of a group's members along another.
    pub(super) fn all_to_all(
        &mut self,
        value: ValueId,
        cut: usize,
        join: usize,
        groups: &[Vec<usize>],
    ) -> Result<ValueId> {
        let count = groups.first().map_or(1, Vec::len);
        let mut dims = self.dims(value)?;
        dims[cut] /= count;
        dims[join] *= count;
        let exchange = ops::AllToAll {
            split_dimension: cut as i64,
            concat_dimension: join as i64,
            split_count: count as i64,
            // The groups contain partition numbers, which apply within every replica.
            replica_groups: Self::groups(groups),
            channel_handle: self.channel(),
        };
        let ty = self.tensor(value)?.with_dims(ints(&dims));
        Ok(self.op(Op::AllToAll(exchange.into()), &[value], ty))
    }

    /// Sends a value from the first partition of each pair to the second.
    pub(super) fn collective_permute(&mut self, value: ValueId, pairs: &[(usize, usize)]) -> Result<ValueId> {
        let source_target_pairs = pairs.iter().map(|(from, to)| [*from as i64, *to as i64]).collect();
        let permute = ops::CollectivePermute { source_target_pairs, channel_handle: self.channel() };
        let ty = self.tensor(value)?;
        Ok(self.op(Op::CollectivePermute(permute), &[value], ty))
    }

    /// Sends the value of the first partition of each group to the others.
    pub(super) fn collective_broadcast(&mut self, value: ValueId, groups: &[Vec<usize>]) -> Result<ValueId> {
        let broadcast = ops::CollectiveBroadcast {
            // The groups contain partition numbers, which apply within every replica.
            replica_groups: Self::groups(groups),
            channel_handle: self.channel(),
            has_dynamic_root: false,
        };
        let ty = self.tensor(value)?;
        Ok(self.op(Op::CollectiveBroadcast(broadcast.into()), &[value], ty))
    }

    /// Reduces a value elementwise over the members of each group.
    pub(super) fn all_reduce(
        &mut self,
        value: ValueId,
        by: OpCode,
        groups: &[Vec<usize>],
    ) -> Result<ValueId> {
        Ok(self.all_reduce_together(&[value], by, groups)?[0])
    }

    /// Reduces several values of one element type in one operation. There must be at least one value.
    pub(super) fn all_reduce_together(
        &mut self,
        values: &[ValueId],
        by: OpCode,
        groups: &[Vec<usize>],
    ) -> Result<Vec<ValueId>> {
        let reduce = ops::AllReduce {
            replica_groups: Self::groups(&self.devices.of_devices(groups)),
            channel_handle: self.channel(),
            use_global_device_ids: true,
        };
        let types = values.iter().map(|value| self.tensor(*value)).collect::<Result<Vec<_>>>()?;
        let results: Vec<Type> = types.iter().map(|ty| ty.clone().into()).collect();
        let kind = Op::AllReduce(reduce.into());
        let op = self.body.add_op(self.block, kind, values, results, self.location.clone());
        self.reducer(op, by, &types[0])?;
        Ok(self.body.op(op).results.collect())
    }

    /// Sums a value over the members of each group. Each member receives its part of the sum along a dimension.
    pub(super) fn reduce_scatter(
        &mut self,
        value: ValueId,
        dim: usize,
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
        let ty = self.tensor(value)?;
        let (kind, result) = (Op::ReduceScatter(scatter.into()), ty.with_dims(ints(&dims)));
        let op = self.body.add_op(self.block, kind, [value], [result.into()], self.location.clone());
        self.reducer(op, OpCode::Add, &ty)?;
        Ok(self.body.op(op).result())
    }

    /// Adds a region to an operation, which combines two scalars.
    fn reducer(&mut self, op: OpId, by: OpCode, ty: &TensorType) -> Result<()> {
        let region = self.body.add_region(Some(op));
        let outer = std::mem::replace(&mut self.block, self.body.add_block(region));
        let scalar = ty.with_dims([]);
        let operands = [(); 2].map(|()| self.body.add_argument(self.block, scalar.clone().into()));
        let kind = match by {
            OpCode::Add => Op::Add(ops::Add {}),
            OpCode::Multiply => Op::Multiply(ops::Multiply {}),
            OpCode::Maximum => Op::Maximum(ops::Maximum {}),
            OpCode::Minimum => Op::Minimum(ops::Minimum {}),
            OpCode::And => Op::And(ops::And {}),
            OpCode::Or => Op::Or(ops::Or {}),
            other => {
                return Err(Error::internal(format!(
                    "partial results cannot be reduced by {}",
                    other.info().name
                )));
            }
        };
        let result = self.op(kind, &operands, scalar);
        let end = Op::Return(ops::Return {});
        self.body.add_op(self.block, end, [result], [] as [Type; 0], self.location.clone());
        self.block = outer;
        Ok(())
    }

    /// Places a value into zeros of these sizes, at an index per partition along one dimension.
    pub(super) fn place(
        &mut self,
        value: ValueId,
        dim: usize,
        starts: &[usize],
        sizes: &[usize],
    ) -> Result<ValueId> {
        let ty = self.tensor(value)?.with_dims(ints(sizes));
        let mut operands = vec![self.zeros(ty.clone())?, value];
        for d in 0..sizes.len() {
            operands.push(if d == dim {
                self.of_partition(starts)?
            } else {
                self.zeros(TensorType::new(ElementType::I64, []))?
            });
        }
        Ok(self.op(Op::DynamicUpdateSlice(ops::DynamicUpdateSlice {}), &operands, ty))
    }

    /// Returns the value on the partitions in `keep`, and zeros on the others.
    pub(super) fn only_where(&mut self, value: ValueId, keep: &[bool]) -> Result<ValueId> {
        let keep: Vec<usize> = keep.iter().map(|keep| usize::from(*keep)).collect();
        let number = self.of_partition(&keep)?;
        let nothing = self.zeros(TensorType::new(ElementType::I64, []))?;
        let compare = ops::Compare {
            comparison_direction: pjrt_stablehlo::ir::ComparisonDirection::Ne,
            compare_type: pjrt_stablehlo::ir::ComparisonType::NoType,
        };
        let kept = self.op(Op::Compare(compare), &[number, nothing], TensorType::new(ElementType::I1, []));
        let ty = self.tensor(value)?;
        let zeros = self.zeros(ty.clone())?;
        Ok(self.op(Op::Select(ops::Select {}), &[kept, value, zeros], ty))
    }
}
