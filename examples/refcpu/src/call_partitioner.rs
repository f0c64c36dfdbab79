//! Adapts the host's partitioners of custom calls to the interface of the compiler.

use crate::config::PLATFORM_NAME;
use crate::element_type::to_pjrt;
use crate::sharding::of_array;
use pjrt_plugin::ErrorCode;
use pjrt_plugin::ext::{self, CustomPartitioner, ShardedArray};
use pjrt_sharding::{
    CallPartitioner, Error, ErrorKind, PartitionedCall, Sharding, Subgroup, TileAssignment, WholeCall,
};
use pjrt_stablehlo::ir::TensorType;
use refcpu_kernels::DType;
use std::sync::Arc;

/// Returns the partitioner that the host has registered for a target.
pub(crate) fn find(target: &str) -> Option<Arc<dyn CallPartitioner>> {
    let found = CustomPartitioner::find(PLATFORM_NAME, target)?;
    Some(Arc::new(HostPartitioner(found)))
}

struct HostPartitioner(Arc<CustomPartitioner>);

impl CallPartitioner for HostPartitioner {
    fn partition(&self, call: &WholeCall<'_>) -> Result<PartitionedCall, Error> {
        let (operands, results) = (arrays(&call.operands)?, arrays(&call.results)?);
        let partition = self.0.partition(&operands, &results, call.backend_config).map_err(refused)?;
        Ok(PartitionedCall {
            program: partition.program,
            operands: shardings(&partition.operand_shardings, &call.operands, call.partitions)?,
            results: shardings(&partition.result_shardings, &call.results, call.partitions)?,
        })
    }

    fn infer(&self, call: &WholeCall<'_>) -> Result<Option<Vec<Option<Sharding>>>, Error> {
        let (operands, results) = (arrays(&call.operands)?, arrays(&call.results)?);
        let inferred = self.0.infer_sharding(&operands, &results, call.backend_config).map_err(refused)?;
        inferred.map(|all| shardings(&all, &call.results, call.partitions)).transpose()
    }
}

fn arrays(arrays: &[(TensorType, Option<Sharding>)]) -> Result<Vec<ShardedArray>, Error> {
    let one = |(ty, sharding): &(TensorType, Option<Sharding>)| {
        let dtype = DType::from_mlir_name(ty.element_type().name()).ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                format!("the host's partitioner cannot be called with an array of type {ty}"),
            )
        })?;
        Ok(ShardedArray {
            element_type: to_pjrt(dtype),
            dims: ty.dims().to_vec(),
            sharding: Some(of_array(sharding.as_ref())),
        })
    };
    arrays.iter().map(one).collect()
}

/// Converts the host's error.
fn refused(error: pjrt_plugin::Error) -> Error {
    let kind = match error.code() {
        ErrorCode::InvalidArgument => ErrorKind::Invalid,
        ErrorCode::Unimplemented => ErrorKind::Unsupported,
        ErrorCode::ResourceExhausted => ErrorKind::ResourceExhausted,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, format!("the host's partitioner failed: {}", error.message()))
}

fn shardings(
    all: &[ext::Sharding],
    arrays: &[(TensorType, Option<Sharding>)],
    partitions: usize,
) -> Result<Vec<Option<Sharding>>, Error> {
    if all.len() != arrays.len() {
        let why = format!(
            "the host's partitioner returned {} shardings for {} arrays; expected one for each",
            all.len(),
            arrays.len()
        );
        return Err(Error::new(ErrorKind::Internal, why));
    }
    all.iter().zip(arrays).map(|(sharding, (ty, _))| split(sharding, ty.rank(), partitions)).collect()
}

/// Converts a sharding of an array with a rank. `None` means that every partition has the whole array.
fn split(sharding: &ext::Sharding, rank: usize, partitions: usize) -> Result<Option<Sharding>, Error> {
    let unsupported = |found: &dyn std::fmt::Debug| {
        Error::new(
            ErrorKind::Unsupported,
            format!("the sharding {found:?} of the host's partitioner is not supported"),
        )
    };
    let (dimensions, devices, has_copies) = match sharding {
        ext::Sharding::Replicated => return Ok(None),
        ext::Sharding::Tiled {
            tile_assignment_dimensions,
            tile_assignment_devices,
            replicate_on_last_tile_dim,
        } => (tile_assignment_dimensions, tile_assignment_devices, *replicate_on_last_tile_dim),
        other => return Err(unsupported(other)),
    };
    if devices.len() != partitions {
        let message = format!(
            "the sharding {sharding:?} of the host's partitioner is invalid for {partitions} partitions"
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let numbers =
        |numbers: &[i64]| numbers.iter().map(|number| usize::try_from(*number).unwrap_or(0)).collect();
    let tiles = TileAssignment {
        dimensions: numbers(dimensions),
        devices: numbers(devices),
        subgroups: vec![Subgroup::Replicated; usize::from(has_copies)],
    };
    let sharding = tiles.sharding(rank)?;
    Ok(sharding.parts.iter().any(|parts| *parts > 1).then_some(sharding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sharding_of_the_host_is_the_one_that_it_was_told() {
        let position = vec![vec![0, 0], vec![1, 0], vec![0, 0], vec![1, 0]];
        let sharding = Some(Sharding { parts: vec![2, 1], position, reduction: None });
        assert_eq!(split(&of_array(sharding.as_ref()), 2, 4), Ok(sharding));
        assert_eq!(split(&ext::Sharding::Replicated, 2, 4), Ok(None));
        let whole = ext::Sharding::Tiled {
            tile_assignment_dimensions: vec![1, 2],
            tile_assignment_devices: vec![0, 1],
            replicate_on_last_tile_dim: true,
        };
        assert_eq!(split(&whole, 1, 2), Ok(None));
        assert!(split(&whole, 2, 2).is_err() && split(&whole, 1, 4).is_err());
        assert!(split(&ext::Sharding::Manual, 1, 2).is_err());
    }
}
