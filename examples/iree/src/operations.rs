//! The operations that IREE compiles.

use pjrt_stablehlo::ir::{Body, ElementKind, Op, OpCode, Operation, TensorType};
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

/// The operations that IREE compiles for some operands only. The others are decomposed, or refused.
const LIMITED: &[(OpCode, fn(&Body, &Operation) -> bool)] = &[
    (OpCode::BitcastConvert, is_real_bitcast),
    (OpCode::DotGeneral, |_, op| matches!(&op.kind, Op::DotGeneral(dot) if dot.algorithm.is_none())),
    (OpCode::Scatter, indexes_leading_dimensions),
];

/// Returns the operations that IREE compiles.
pub(crate) fn supported() -> CoreOps {
    let core = CoreOps::default().named("IREE");
    let core = LIMITED.iter().fold(core, |core, (op, condition)| core.with_condition(*op, *condition));
    REFUSED.iter().fold(core, |core, (op, _)| core.without(*op))
}

/// The compiler ends the process if it reads a `bitcast_convert` of complex numbers.
fn is_real_bitcast(body: &Body, op: &Operation) -> bool {
    let of_complex =
        |ty: Option<&TensorType>| ty.is_some_and(|ty| ty.element_type().kind() == ElementKind::Complex);
    !of_complex(body.ty(op.operands[0]).as_tensor()) && !of_complex(body.ty(op.result()).as_tensor())
}

/// `iree_linalg_ext.scatter` needs indices of whole slices of the leading dimensions. The compiler moves one indexed dimension to
/// the front, but not several, and it ends the process if there are batching dimensions.
fn indexes_leading_dimensions(_: &Body, op: &Operation) -> bool {
    let Op::Scatter(scatter) = &op.kind else { return false };
    let numbers = &scatter.scatter_dimension_numbers;
    let indexed = &numbers.scatter_dims_to_operand_dims;
    let are_leading = indexed.iter().enumerate().all(|(at, dimension)| *dimension == at as i64);
    let is_whole = indexed.len() <= 1 || (are_leading && *indexed == numbers.inserted_window_dims);
    numbers.input_batching_dims.is_empty() && is_whole
}
