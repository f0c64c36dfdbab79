//! The operations that IREE compiles.

use pjrt_stablehlo::ir::OpCode;
use pjrt_stablehlo::passes::CoreOps;

/// The operations of [`CoreOps::default`] that IREE does not compile, with its answer. Programs that need them are refused with the
/// operation and its location, unless `pjrt-stablehlo` has a decomposition.
///
/// The answers are those of IREE 3.13, found with `cargo pjrt needs --plugin`.
const REFUSED: &[(OpCode, &str)] = &[
    (OpCode::AllGather, "collectives need a channel, which IREE's drivers of processors lack"),
    (OpCode::AllReduce, "as all_gather"),
    (OpCode::AllToAll, "as all_gather"),
    (OpCode::Cholesky, "failed to legalize"),
    (OpCode::CollectiveBroadcast, "as all_gather"),
    (OpCode::CollectivePermute, "as all_gather"),
    (OpCode::CollectiveReduce, "as all_gather"),
    (OpCode::CustomCall, "failed to legalize"),
    (OpCode::Infeed, "failed to legalize"),
    (OpCode::Outfeed, "failed to legalize"),
    (OpCode::PartitionId, "as all_gather"),
    (OpCode::Recv, "failed to legalize"),
    (OpCode::ReduceScatter, "as all_gather"),
    (OpCode::ReplicaId, "as all_gather"),
    (OpCode::ManualComputation, "the dialect of Shardy is not registered"),
    (OpCode::Reshard, "as sdy.manual_computation"),
    (OpCode::ShardingConstraint, "as sdy.manual_computation"),
    (OpCode::ShardingGroup, "as sdy.manual_computation"),
    (OpCode::Send, "failed to legalize"),
    (OpCode::TriangularSolve, "failed to legalize"),
];

/// Returns the operations that IREE compiles.
pub(crate) fn supported() -> CoreOps {
    REFUSED.iter().fold(CoreOps::default().named("IREE"), |core, (op, _)| core.without(*op))
}
