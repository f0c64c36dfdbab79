//! Attributes that several operations share.

use super::instruction::Instruction;
use super::reader::Reader;
use super::{proto, sharding};
use crate::ir::{
    ChannelHandle, ConvDimensionNumbers, DotAlgorithm, DotDimensionNumbers, ElementType, IntPairs, Ints,
    MeshReference, Precision, PrecisionConfig, ReplicaGroupMeshAxes, ReplicaGroups, ResultAccuracy,
    ResultAccuracyMode, Type,
};
use crate::{Error, ErrorKind};

/// XLA's dot algorithms in the order of their codes from 1: the type of the operands, the type of the sum, the number
/// of products, and whether sums may be imprecise.
const DOT_ALGORITHMS: &[(ElementType, ElementType, i64, bool)] = &[
    (ElementType::F8E5M2, ElementType::F32, 1, false),
    (ElementType::F8E5M2, ElementType::F32, 1, true),
    (ElementType::F16, ElementType::F16, 1, false),
    (ElementType::F16, ElementType::F32, 1, false),
    (ElementType::BF16, ElementType::BF16, 1, false),
    (ElementType::BF16, ElementType::F32, 1, false),
    (ElementType::BF16, ElementType::F32, 3, false),
    (ElementType::BF16, ElementType::F32, 6, false),
    (ElementType::Tf32, ElementType::F32, 1, false),
    (ElementType::Tf32, ElementType::F32, 3, false),
    (ElementType::F32, ElementType::F32, 1, false),
    (ElementType::F64, ElementType::F64, 1, false),
    (ElementType::BF16, ElementType::F32, 9, false),
];

/// The codes of the algorithms whose operands may have any 8-bit float type.
const ANY_F8: [i32; 2] = [1, 2];

pub(super) fn precisions(at: &Instruction) -> Result<PrecisionConfig, Error> {
    let config = at.proto.precision_config.iter().flat_map(|config| &config.operand_precision);
    let precisions = config.map(|&code| {
        let known = u64::try_from(code).ok().and_then(Precision::from_code);
        known.ok_or_else(|| at.unsupported(format!("the precision code {code} is not supported")))
    });
    precisions.collect()
}

/// Returns the algorithm of a dot product with elements of these types.
pub(super) fn dot_algorithm(
    at: &Instruction,
    lhs: ElementType,
    rhs: ElementType,
) -> Result<Option<DotAlgorithm>, Error> {
    let code = at.proto.precision_config.as_ref().map_or(0, |config| config.algorithm);
    if code == 0 {
        return Ok(None);
    }
    let entry = usize::try_from(code).ok().and_then(|code| DOT_ALGORITHMS.get(code - 1));
    let &(operands, sum, products, is_imprecise) =
        entry.ok_or_else(|| at.unsupported(format!("the dot algorithm code {code} is not supported")))?;
    let is_own = |ty: ElementType| ANY_F8.contains(&code) && ty.is_float() && ty.bits() == 8;
    let precision = |ty: ElementType| Type::Scalar(if is_own(ty) { ty } else { operands });
    Ok(Some(DotAlgorithm {
        lhs_precision_type: precision(lhs),
        rhs_precision_type: precision(rhs),
        accumulation_type: Type::Scalar(sum),
        // The number of products implies how XLA splits the operands into components.
        lhs_component_count: 1,
        rhs_component_count: 1,
        num_primitive_operations: products,
        allow_imprecise_accumulation: is_imprecise,
    }))
}

pub(super) fn dot_dimensions(numbers: &proto::DotDimensionNumbers) -> DotDimensionNumbers {
    DotDimensionNumbers {
        lhs_batching_dimensions: ints(&numbers.lhs_batch_dimensions),
        rhs_batching_dimensions: ints(&numbers.rhs_batch_dimensions),
        lhs_contracting_dimensions: ints(&numbers.lhs_contracting_dimensions),
        rhs_contracting_dimensions: ints(&numbers.rhs_contracting_dimensions),
    }
}

pub(super) fn conv_dimensions(numbers: &proto::ConvolutionDimensionNumbers) -> ConvDimensionNumbers {
    ConvDimensionNumbers {
        input_batch_dimension: numbers.input_batch_dimension,
        input_feature_dimension: numbers.input_feature_dimension,
        input_spatial_dimensions: ints(&numbers.input_spatial_dimensions),
        kernel_input_feature_dimension: numbers.kernel_input_feature_dimension,
        kernel_output_feature_dimension: numbers.kernel_output_feature_dimension,
        kernel_spatial_dimensions: ints(&numbers.kernel_spatial_dimensions),
        output_batch_dimension: numbers.output_batch_dimension,
        output_feature_dimension: numbers.output_feature_dimension,
        output_spatial_dimensions: ints(&numbers.output_spatial_dimensions),
    }
}

pub(super) fn ints(numbers: &[i64]) -> Ints {
    numbers.into()
}

/// Returns the requested accuracy of an elementwise function.
pub(super) fn accuracy(at: &Instruction, accuracy: &proto::ResultAccuracy) -> Result<ResultAccuracy, Error> {
    if let Some(tolerance) = &accuracy.tolerance {
        return Ok(ResultAccuracy {
            atol: tolerance.atol,
            rtol: tolerance.rtol,
            ulps: tolerance.ulps,
            mode: ResultAccuracyMode::Tolerance,
        });
    }
    let mode = match accuracy.mode {
        0 => ResultAccuracyMode::Default,
        1 => ResultAccuracyMode::Highest,
        other => return Err(at.unsupported(format!("the accuracy code {other} is not supported"))),
    };
    Ok(ResultAccuracy { mode, ..ResultAccuracy::default() })
}

/// Returns the channel of a collective. A nonpositive id means no channel.
pub(super) fn channel(at: &Instruction) -> Option<ChannelHandle> {
    let handle = if at.proto.channel_id > 0 { at.proto.channel_id } else { at.proto.all_reduce_id };
    (handle > 0).then_some(ChannelHandle { handle, channel_type: 0 })
}

pub(super) fn source_target_pairs(at: &Instruction) -> IntPairs {
    at.proto.source_target_pairs.iter().map(|pair| [pair.source, pair.target]).collect()
}

impl Reader {
    /// Returns the replica groups of a collective, which are a list, a reshaped and transposed iota, or axes of a mesh.
    pub(super) fn replica_groups(&mut self, at: &Instruction) -> Result<ReplicaGroups, Error> {
        let list = at.proto.collective_device_list.as_ref();
        let iota = at.proto.iota_collective_device_list.as_ref();
        let iota = iota.or_else(|| list.and_then(|list| list.iota_replica_group_list.as_ref()));
        if let Some(axes) = &at.proto.mesh_axes_collective_device_list {
            let mesh = sharding::mesh(axes.mesh.as_ref());
            let axes = sharding::axis_refs(&mesh, &axes.axes).map_err(|error| at.placed(error))?;
            let groups = ReplicaGroupMeshAxes { mesh: MeshReference::Mesh(mesh), axes };
            return Ok(ReplicaGroups::MeshAxes(groups.into()));
        }
        if let Some(iota) = iota {
            return self.iota_groups(at, iota);
        }
        let groups = match list {
            Some(list) if !list.replica_groups.is_empty() => &list.replica_groups,
            _ => &at.proto.replica_groups,
        };
        let group_size = groups.iter().map(|group| group.replica_ids.len()).max().unwrap_or(0);
        let total = group_size.saturating_mul(groups.len());
        self.spend_numbers(total).map_err(|error| at.placed(error))?;
        let mut ids = Vec::with_capacity(total);
        for group in groups {
            ids.extend_from_slice(&group.replica_ids);
            ids.resize(ids.len() + group_size - group.replica_ids.len(), -1);
        }
        Ok(ReplicaGroups::Dense { group_size, ids: ids.into() })
    }

    /// Returns the groups that are the rows of a reshaped and transposed iota.
    fn iota_groups(
        &mut self,
        at: &Instruction,
        iota: &proto::IotaReplicaGroupList,
    ) -> Result<ReplicaGroups, Error> {
        let invalid = || at.error(ErrorKind::Malformed, "the sizes of the replica groups overflow");
        let sizes: Option<Vec<usize>> =
            iota.iota_reshape_dims.iter().map(|&size| usize::try_from(size).ok()).collect();
        let sizes = sizes.ok_or_else(invalid)?;
        let product =
            |sizes: &[usize]| sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
        let total = product(&sizes).ok_or_else(invalid)?;
        let group_size = usize::try_from(iota.num_devices_per_group).map_err(|_| invalid())?;
        let count = usize::try_from(iota.num_replica_groups).map_err(|_| invalid())?;
        let order: Vec<usize> = iota.iota_transpose_perm.iter().map(|&place| place as usize).collect();
        let is_permutation =
            order.len() == sizes.len() && (0..sizes.len()).all(|place| order.contains(&place));
        if product(&[group_size, count]) != Some(total) || total == 0 || !is_permutation {
            return Err(invalid());
        }
        self.spend_numbers(total).map_err(|error| at.placed(error))?;
        let stride = |place: usize| sizes[place + 1..].iter().product::<usize>();
        let mut ids = vec![0];
        for &place in &order {
            ids = ids
                .iter()
                .flat_map(|&id| (0..sizes[place]).map(move |step| (id, step)))
                .map(|(id, step)| id + (step * stride(place)) as i64)
                .collect();
        }
        Ok(ReplicaGroups::Dense { group_size, ids: ids.into() })
    }
}
