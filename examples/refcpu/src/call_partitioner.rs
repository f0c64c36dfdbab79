//! The host's partitioners of custom calls as the compiler wants them.

use crate::client::RefcpuClient;
use crate::element_type::to_pjrt;
use crate::sharding::of_array;
use pjrt_plugin::ext::{self, CustomPartitioner, CustomPartitioners, ShardedArray};
use pjrt_plugin::{Error, ErrorCode, PjrtClient};
use refcpu_engine::compile::{CallPartitioner, CompileError, CompileErrorKind, PartitionedCall, WholeCall};
use refcpu_engine::graph::Shape;
use refcpu_engine::plan::Sharding;
use std::sync::Arc;

/// The compiler asks for partitioners. Calls of handlers are on whole arrays, so it makes no difference which of them could run on
/// parts of batches.
impl CustomPartitioners for RefcpuClient {}

/// The partitioner that the host has registered for a target.
pub(crate) fn find(target: &str) -> Option<Arc<dyn CallPartitioner>> {
    let found = CustomPartitioner::find(RefcpuClient::PLATFORM_NAME, target)?;
    Some(Arc::new(HostPartitioner(found)))
}

struct HostPartitioner(Arc<CustomPartitioner>);

impl CallPartitioner for HostPartitioner {
    fn partition(&self, call: &WholeCall<'_>) -> Result<PartitionedCall, CompileError> {
        let (operands, results) = (arrays(&call.operands), arrays(&call.results));
        let partition = self.0.partition(&operands, &results, call.backend_config).map_err(refused)?;
        Ok(PartitionedCall {
            program: partition.program,
            operands: shardings(&partition.operand_shardings, &call.operands, call.partitions)?,
            results: shardings(&partition.result_shardings, &call.results, call.partitions)?,
        })
    }

    fn infer(&self, call: &WholeCall<'_>) -> Result<Option<Vec<Option<Sharding>>>, CompileError> {
        let (operands, results) = (arrays(&call.operands), arrays(&call.results));
        let inferred = self.0.infer_sharding(&operands, &results, call.backend_config).map_err(refused)?;
        inferred.map(|all| shardings(&all, &call.results, call.partitions)).transpose()
    }
}

fn arrays(arrays: &[(Shape, Option<Sharding>)]) -> Vec<ShardedArray> {
    let one = |(shape, sharding): &(Shape, Option<Sharding>)| ShardedArray {
        element_type: to_pjrt(shape.dtype),
        dims: shape.dims.iter().map(|size| *size as i64).collect(),
        sharding: Some(of_array(sharding.as_ref())),
    };
    arrays.iter().map(one).collect()
}

/// The host's error. What is not the program's fault is the host's own.
fn refused(error: Error) -> CompileError {
    let kind = match error.code() {
        ErrorCode::InvalidArgument => CompileErrorKind::InvalidArgument,
        ErrorCode::Unimplemented => CompileErrorKind::Unimplemented,
        ErrorCode::ResourceExhausted => CompileErrorKind::ResourceExhausted,
        _ => CompileErrorKind::Internal,
    };
    CompileError::new(kind, format!("the host does not partition this call: {}", error.message()))
}

fn shardings(
    all: &[ext::Sharding],
    arrays: &[(Shape, Option<Sharding>)],
    partitions: usize,
) -> Result<Vec<Option<Sharding>>, CompileError> {
    if all.len() != arrays.len() {
        return Err(CompileError::internal(
            "the host gives another number of shardings than there are arrays",
        ));
    }
    all.iter().zip(arrays).map(|(sharding, (shape, _))| split(sharding, shape.rank(), partitions)).collect()
}

/// What a sharding says of an array of this rank; `None`: every partition has it whole.
fn split(sharding: &ext::Sharding, rank: usize, partitions: usize) -> Result<Option<Sharding>, CompileError> {
    let (tiles, devices) = match sharding {
        ext::Sharding::Replicated => return Ok(None),
        ext::Sharding::Tiled {
            tile_assignment_dimensions,
            tile_assignment_devices,
            replicate_on_last_tile_dim,
        } if tile_assignment_dimensions.len() == rank + usize::from(*replicate_on_last_tile_dim)
            && tile_assignment_devices.len() == partitions =>
        {
            (tile_assignment_dimensions, tile_assignment_devices)
        }
        ext::Sharding::Tiled { .. } => {
            return Err(CompileError::invalid(format!(
                "the host gives the sharding {sharding:?} for an array of {rank} dimensions on {partitions} partitions"
            )));
        }
        other => {
            return Err(CompileError::unimplemented(format!(
                "an array of a call that the host partitions as {other:?}"
            )));
        }
    };
    // The SDK has checked that there is each device, and one for each tile.
    let mut position = vec![vec![]; partitions];
    for (tile, device) in devices.iter().enumerate() {
        let mut rest = tile;
        let mut at: Vec<usize> =
            tiles.iter().rev().map(|n| (rest % *n as usize, rest /= *n as usize).0).collect();
        at.reverse();
        at.truncate(rank);
        if let Some(place) = position.get_mut(*device as usize) {
            *place = at;
        }
    }
    let parts: Vec<usize> = tiles[..rank].iter().map(|parts| *parts as usize).collect();
    Ok(parts.iter().any(|parts| *parts > 1).then_some(Sharding { parts, position, summed: false }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sharding_of_the_host_is_the_one_that_it_was_told() {
        let position = vec![vec![0, 0], vec![1, 0], vec![0, 0], vec![1, 0]];
        let sharding = Some(Sharding { parts: vec![2, 1], position, summed: false });
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
