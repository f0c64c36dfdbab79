//! Operations that communicate between the processes of a program.

use super::attributes::{channel, source_target_pairs};
use super::instruction::Instruction;
use super::reader::Reader;
use super::shape::Shape;
use crate::Error;
use crate::ir::{
    Attribute, BackendConfig, CustomCallApiVersion, DictionaryAttribute, ElementType, Literal, LiteralData,
    Module, ReplicaGroups, Str, TensorType, Type, ValueId, ops,
};

/// Returns the shape of a collective's result. If the instruction only starts the collective, it is the second element
/// of the instruction's shape.
fn gathered(at: &Instruction) -> &Shape {
    match at.proto.opcode.ends_with("-start") {
        true => at.shape.elements().get(1).unwrap_or(&at.shape),
        false => &at.shape,
    }
}

impl Reader {
    pub(super) fn all_reduce(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::AllReduce {
            replica_groups: self.replica_groups(at)?,
            channel_handle: channel(at),
            use_global_device_ids: at.proto.use_global_device_ids,
        };
        self.applied(at, op, &at.arrays()?)
    }

    pub(super) fn all_gather(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::AllGather {
            all_gather_dim: at.dimension(0)?,
            replica_groups: self.replica_groups(at)?,
            channel_handle: channel(at),
            use_global_device_ids: at.proto.use_global_device_ids,
        };
        Ok(self.code.op_of_types(op, &at.arrays()?, gathered(at).leaves()))
    }

    /// Each operand becomes a separate operation, because StableHLO's operation has a single operand.
    pub(super) fn reduce_scatter(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let mut results = Vec::new();
        for (operand, ty) in at.arrays()?.into_iter().zip(at.shape.leaves()) {
            let op = ops::ReduceScatter {
                scatter_dimension: at.dimension(0)?,
                replica_groups: self.replica_groups(at)?,
                channel_handle: channel(at),
                use_global_device_ids: at.proto.use_global_device_ids,
            };
            let op = self.code.add_op(op, &[operand], [ty]);
            self.region(at, op, 0)?;
            results.push(self.code.body.op(op).result());
        }
        Ok(results)
    }

    pub(super) fn collective_broadcast(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let operands = at.arrays()?;
        let results = at.shape.leaves();
        let op = ops::CollectiveBroadcast {
            replica_groups: self.replica_groups(at)?,
            channel_handle: channel(at),
            has_dynamic_root: operands.len() == results.len() + 1,
        };
        Ok(self.code.op_of_types(op, &operands, results))
    }

    /// Each operand becomes a separate operation, because StableHLO's operation has a single operand.
    pub(super) fn collective_permute(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let operands = at.arrays()?;
        let types = gathered(at).leaves();
        if operands.len() != types.len() {
            return Err(at.unsupported("collective permutations into operand buffers are not supported"));
        }
        let results = operands.into_iter().zip(types).map(|(operand, ty)| {
            let op = ops::CollectivePermute {
                source_target_pairs: source_target_pairs(at),
                channel_handle: channel(at),
            };
            self.code.op_of_type(op, &[operand], ty)
        });
        Ok(results.collect())
    }

    pub(super) fn all_to_all(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let groups = self.replica_groups(at)?;
        let operands = at.arrays()?;
        if let Shape::Tuple { elements, .. } = &at.shape {
            return self.all_to_all_of_parts(at, groups, &operands, elements);
        }
        let split_count = match self.dims_of_groups(at, &groups)? {
            [count, size] if count > 0 => size,
            _ => return Err(at.unsupported("expected replica groups, because the operand is a single array")),
        };
        let op = ops::AllToAll {
            split_dimension: at.dimension(0)?,
            concat_dimension: at.dimension(0)?,
            split_count,
            replica_groups: groups,
            channel_handle: channel(at),
        };
        Ok(self.code.op_of_types(op, &operands, [at.result()?]))
    }

    /// Returns the number of groups, and the number of processes in each. Groups along the axes of a mesh refer to a
    /// mesh in the instruction rather than in the module.
    fn dims_of_groups(&self, at: &Instruction, groups: &ReplicaGroups) -> Result<[i64; 2], Error> {
        groups.dims(&Module::new()).map_err(|error| at.placed(error))
    }

    /// StableHLO represents the operation by a custom call.
    pub(super) fn ragged_all_to_all(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let groups = self.replica_groups(at)?;
        let dims = self.dims_of_groups(at, &groups)?;
        let total = usize::try_from(dims[0].saturating_mul(dims[1])).unwrap_or(usize::MAX);
        self.spend_numbers(total).map_err(|error| at.placed(error))?;
        let mut ids: Vec<i64> = Vec::with_capacity(total);
        for group in groups.groups(&Module::new()).map_err(|error| at.placed(error))? {
            let end = ids.len() + dims[1] as usize;
            ids.extend(group);
            ids.resize(end, -1);
        }
        let ty = TensorType::new(ElementType::I64, dims);
        let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let groups = Literal::new(ty, LiteralData::Dense(ids.into()));
        let groups = groups.map_err(|error| at.invalid(error.to_string()))?;
        let mut config = vec![(Str::from("replica_groups"), Attribute::Elements(groups))];
        if let Some(channel) = channel(at) {
            let number = Attribute::Integer { value: channel.handle, ty: ElementType::I64 };
            config.push(("channel_id".into(), number));
        }
        let op = ops::CustomCall {
            call_target_name: "ragged_all_to_all".into(),
            has_side_effect: false,
            backend_config: BackendConfig::Dictionary(DictionaryAttribute::new(config)),
            api_version: CustomCallApiVersion::TypedFfi,
            called_computations: Box::default(),
            operand_layouts: None,
            result_layouts: None,
            output_operand_aliases: Box::default(),
            result_tilings: None,
        };
        Ok(self.code.op_of_types(op, &at.arrays()?, [at.result()?]))
    }

    /// Decomposes the form in which operand `i` is sent to process `i` of the group: the operands are concatenated to
    /// one array. Without groups, all processes are in one group, and there is an operand for each of them.
    fn all_to_all_of_parts(
        &mut self,
        at: &Instruction,
        groups: ReplicaGroups,
        operands: &[ValueId],
        results: &[Shape],
    ) -> Result<Vec<ValueId>, Error> {
        let ty = at.static_tensor(&self.code, 0)?;
        let same =
            (0..operands.len()).all(|index| *self.code.body.ty(operands[index]) == Type::Tensor(ty.clone()));
        if !same || results.len() != operands.len() {
            return Err(at.invalid("expected an equal number of operands and results, all of one type"));
        }
        let part_dims: Vec<i64> = std::iter::once(1).chain(ty.dims().iter().copied()).collect();
        let whole_dims: Vec<i64> =
            std::iter::once(operands.len() as i64).chain(ty.dims().iter().copied()).collect();
        let parts: Vec<ValueId> =
            operands.iter().map(|&operand| self.code.reshape(operand, &part_dims)).collect();
        let whole = ty.with_dims(whole_dims);
        let joined = self.code.op_of_type(ops::Concatenate { dimension: 0 }, &parts, whole.clone());
        let replica_groups = match groups {
            ReplicaGroups::Dense { ids, .. } if ids.is_empty() => {
                ReplicaGroups::Dense { group_size: operands.len(), ids: (0..operands.len() as i64).collect() }
            }
            groups => groups,
        };
        let op = ops::AllToAll {
            split_dimension: 0,
            concat_dimension: 0,
            split_count: operands.len() as i64,
            replica_groups,
            channel_handle: channel(at),
        };
        let exchanged = self.code.op_of_type(op, &[joined], whole);
        let results = (0..operands.len() as i64).map(|place| {
            let part = self.code.slice_in_dim(exchanged, 0, place, place + 1);
            self.code.reshape(part, ty.dims())
        });
        Ok(results.collect())
    }
}
