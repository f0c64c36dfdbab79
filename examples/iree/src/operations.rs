//! The operations that IREE compiles.

use pjrt_stablehlo::ir::{Op, OpCode};
use pjrt_stablehlo::passes::CoreOps;

/// The compiler's reason: it cannot convert the operation to those of its own dialects.
const FAILED: &str = "failed to legalize";

/// The operations of [`CoreOps::default`] that IREE does not compile, with the reason. Programs that need them are refused with
/// the operation and its location, unless `pjrt-stablehlo` has a decomposition.
///
/// [`FAILED`] is the answer of IREE 3.13, which a test compares. The other operations need something that this plugin does not
/// have.
const REFUSED: &[(OpCode, &str)] = &[
    (OpCode::AllGather, "a channel between devices"),
    (OpCode::AllReduce, "a channel between devices"),
    (OpCode::AllToAll, "a channel between devices"),
    (OpCode::Cholesky, FAILED),
    (OpCode::CollectiveBroadcast, "a channel between devices"),
    (OpCode::CollectivePermute, "a channel between devices"),
    (OpCode::CollectiveReduce, "a channel between devices"),
    (OpCode::CustomCall, FAILED),
    (OpCode::Infeed, "a channel to the host"),
    (OpCode::Outfeed, "a channel to the host"),
    (OpCode::PartitionId, "a channel between devices"),
    (OpCode::Recv, "a channel to the host"),
    (OpCode::ReduceScatter, "a channel between devices"),
    (OpCode::ReplicaId, "a channel between devices"),
    (OpCode::ManualComputation, "the dialect of Shardy, which IREE does not register"),
    (OpCode::Reshard, "the dialect of Shardy, which IREE does not register"),
    (OpCode::ShardingConstraint, "the dialect of Shardy, which IREE does not register"),
    (OpCode::ShardingGroup, "the dialect of Shardy, which IREE does not register"),
    (OpCode::Send, "a channel to the host"),
    (OpCode::TriangularSolve, FAILED),
];

/// Returns the operations that IREE compiles. Of the products, these are the ones without an algorithm.
pub(crate) fn supported() -> CoreOps {
    let core = CoreOps::default().named("IREE").with_condition(
        OpCode::DotGeneral,
        |_, op| matches!(&op.kind, Op::DotGeneral(dot) if dot.algorithm.is_none()),
    );
    REFUSED.iter().fold(core, |core, (op, _)| core.without(*op))
}
