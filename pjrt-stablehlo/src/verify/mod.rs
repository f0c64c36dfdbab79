//! Checks that a module is what consumers rely on.

mod context;
mod control;
mod elementwise;
mod indexing;
mod linear;
mod shapes;
mod structure;
mod windows;

use context::Check;

use crate::ir::{Function, Module, Op};
use crate::{Error, ErrorKind};

/// Checks a module; [`parse`](crate::parse) has done so with what it gives.
///
/// What is checked:
/// * structure: every operation has the operands, results and regions of its entry in the op table, values are defined
///   before they are used and are in scope, blocks end with the right terminator, functions take and return what their
///   type says, called functions exist, take these operands, and do not call themselves;
/// * shapes and types of operations, so that a consumer that follows the StableHLO specification stays inside of its
///   buffers: dimensions in range, sizes that agree, results of the size that operands give. Sizes that are not known
///   before run time agree with every size.
///
/// # Errors
/// The first rule that is broken, with the operation, its operand or attribute, what was expected and found, and the
/// operation's source location.
pub fn verify(module: &Module) -> Result<(), Error> {
    for function in module.functions() {
        structure::function(function)?;
        for (_, op) in function.body.ops() {
            operation(&Check::new(module, function, op))?;
        }
    }
    structure::calls(module)
}

/// Checks one operation whose operands, results and regions are as many as they have to be.
fn operation(check: &Check<'_>) -> Result<(), Error> {
    elementwise::traits(check)?;
    match &check.op.kind {
        Op::AllGather(op) => linear::all_gather(check, op),
        Op::AllReduce(_) | Op::CollectiveReduce(_) => linear::all_reduce(check),
        Op::AllToAll(op) => linear::all_to_all(check, op),
        Op::AfterAll(_) => check.all_tokens(),
        Op::Abs(_) => elementwise::abs(check),
        Op::BatchNormGrad(op) => linear::batch_norm(check, op.feature_index, 1..4),
        Op::BatchNormInference(op) => linear::batch_norm(check, op.feature_index, 1..5),
        Op::BatchNormTraining(op) => linear::batch_norm(check, op.feature_index, 1..3),
        Op::BitcastConvert(_) => elementwise::bitcast_convert(check),
        Op::Broadcast(op) => shapes::broadcast(check, &op.broadcast_sizes),
        Op::BroadcastInDim(op) => shapes::broadcast_in_dim(check, &op.broadcast_dimensions),
        Op::Case(_) => control::case(check),
        Op::Cholesky(_) => linear::cholesky(check),
        Op::Clamp(_) => elementwise::clamp(check),
        Op::CollectivePermute(_) | Op::CrossReplicaSum(_) => check.result_is_operand(0),
        Op::CollectiveBroadcast(op) => linear::collective_broadcast(check, op),
        Op::Compare(_) => elementwise::compare(check),
        Op::Complex(_) => elementwise::complex(check),
        Op::Composite(op) => control::composite(check, op),
        Op::Concatenate(op) => shapes::concatenate(check, op.dimension),
        Op::Constant(op) => shapes::constant(check, &op.value),
        Op::Convolution(op) => windows::convolution(check, op),
        Op::CustomCall(op) => control::custom_call(check, op),
        Op::Dot(_) => linear::dot(check),
        Op::DotGeneral(op) => linear::dot_general(check, op),
        Op::DynamicBroadcastInDim(op) => shapes::dynamic_broadcast_in_dim(check, &op.broadcast_dimensions),
        Op::DynamicConv(op) => windows::dynamic_conv(check, op),
        Op::DynamicGather(op) => indexing::gather(check, &op.dimension_numbers, None),
        Op::DynamicIota(op) => {
            shapes::shape_operand(check, 0)?;
            shapes::iota(check, op.iota_dimension)
        }
        Op::DynamicPad(_) => shapes::dynamic_pad(check),
        Op::DynamicReshape(_) => shapes::shape_operand(check, 1),
        Op::DynamicSlice(op) => indexing::dynamic_slice(check, op),
        Op::DynamicUpdateSlice(_) => indexing::dynamic_update_slice(check),
        Op::Fft(op) => linear::fft(check, op),
        Op::FuncCall(op) => control::call(check, op),
        Op::Gather(op) => indexing::gather(check, &op.dimension_numbers, Some(&op.slice_sizes)),
        Op::GetDimensionSize(op) => shapes::get_dimension_size(check, op.dimension),
        Op::GetTupleElement(op) => control::get_tuple_element(check, op.index),
        Op::If(_) => control::if_(check),
        Op::Imag(_) | Op::Real(_) => elementwise::part(check),
        Op::Iota(op) => shapes::iota(check, op.iota_dimension),
        Op::IsFinite(_) => elementwise::is_finite(check),
        Op::ManualComputation(op) => control::manual_computation(check, op),
        Op::Map(op) => control::map(check, &op.dimensions),
        Op::OptimizationBarrier(_) | Op::ShardingConstraint(_) | Op::Reshard(_) => {
            check.results_are_operands()
        }
        Op::Pad(op) => shapes::pad(check, op),
        Op::PartitionId(_) | Op::ReplicaId(_) => shapes::process_id(check),
        Op::RealDynamicSlice(_) => shapes::real_dynamic_slice(check),
        Op::Reduce(op) => control::reduce(check, &op.dimensions),
        Op::ReduceScatter(op) => linear::reduce_scatter(check, op),
        Op::ReduceWindow(op) => windows::reduce_window(check, op),
        Op::Reshape(_) => shapes::reshape(check),
        Op::Reverse(op) => shapes::reverse(check, &op.dimensions),
        Op::Rng(_) => shapes::rng(check),
        Op::Scatter(op) => indexing::scatter(check, &op.scatter_dimension_numbers),
        Op::Select(_) => elementwise::select(check),
        Op::SelectAndScatter(op) => windows::select_and_scatter(check, op),
        Op::SetDimensionSize(op) => shapes::set_dimension_size(check, op.dimension),
        Op::Slice(op) => shapes::slice(check, op),
        Op::Sort(op) => control::sort(check, op.dimension),
        Op::Transpose(op) => shapes::transpose(check, &op.permutation),
        Op::TriangularSolve(op) => linear::triangular_solve(check, op),
        Op::Tuple(_) => control::tuple(check),
        Op::UniformDequantize(_) | Op::UniformQuantize(_) => elementwise::same_shapes(check),
        Op::While(_) => control::while_(check),
        _ => Ok(()),
    }
}

/// An error about a function rather than one of its operations.
fn invalid_function(function: &Function, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, format!("function '{}': {}", function.name, message.into()))
        .in_op("func.func", &function.location)
}
