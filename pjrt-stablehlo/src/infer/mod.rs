//! Inference of result types from operations and their operands.

mod collectives;
mod context;
mod control;
mod elementwise;
mod indexing;
mod products;
mod reductions;
mod result;
mod shape;
mod shapes;
mod windows;

pub(crate) use context::{Context, counts};
pub(crate) use control::{custom_call, manual_computation};
pub(crate) use elementwise::uniform_quantize;
pub use result::Inferred;
pub(crate) use result::{ResultRule, Results};
pub use shape::types_compatible;
pub(crate) use shape::{Shape, shapes_agree, sizes_agree};

use crate::Constraint::C;
use crate::Error;
use crate::ir::{Body, Module, Op, OpId};
use products::BatchNorm;

/// Infers the types of an operation's results from its operands, attributes and regions. The declared types are not
/// considered.
///
/// The function returns one element for each result, which says how much of the type is determined ([`Inferred`]).
/// Nothing is determined for results whose type the program chooses: those of `custom_call`, `infeed`, `recv`, `iota`,
/// `bitcast_convert`, `einsum`, `unary_einsum`, `sdy.manual_computation` and of operations outside of the op table, and
/// the bits of `rng_bit_generator`. The element type is determined for `reshape` and `broadcast_in_dim`; the shape is
/// determined for `convert`, `uniform_quantize`, `dynamic_iota`, `dot`, `dot_general`, `convolution` and
/// `dynamic_conv`.
///
/// # Inferred and declared types
///
/// The declared type of a result must be compatible with the inferred type ([`types_compatible`]), but need not equal
/// it, because each may have static sizes where the other has dynamic ones. For example, the result of a
/// `dynamic_reshape` by an argument may be declared as `tensor<4xf32>` although only its rank can be inferred, and a
/// program may declare `tensor<?xf32>` where the size 4 can be inferred. Code that changes a program should keep the
/// static sizes of both, as [`refine_shapes`](crate::passes::refine_shapes) does.
///
/// StableHLO specification: the constraints of each operation; section "Type inference" for dynamic sizes.
///
/// # Errors
/// Returns an error for the first violated constraint on operands, attributes and regions. The numbers of operands and
/// regions must be those of the op table, which [`verify`](crate::verify) checks.
///
/// ```
/// use pjrt_stablehlo::ir::Op;
/// use pjrt_stablehlo::{Inferred, infer_result_types};
///
/// let module = pjrt_stablehlo::parse(
///     r#"func.func @main(%a: tensor<?x3xf32>) -> tensor<3x?xf32> {
///       %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
///       return %0 : tensor<3x?xf32>
///     }"#
///     .as_bytes()
///     .to_vec(),
/// )?;
/// let body = &module.main().unwrap().body;
/// let (id, op) = body.ops().find(|(_, op)| matches!(op.kind, Op::Transpose(_))).unwrap();
/// let inferred = infer_result_types(&module, body, id)?;
/// assert_eq!(inferred, [Inferred::Type(body.ty(op.result()).clone())]);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
pub fn infer_result_types(module: &Module, body: &Body, op: OpId) -> Result<Vec<Inferred>, Error> {
    let rules = results(&Context { module, body, op: body.op(op) })?;
    Ok(rules.into_iter().map(|rule| rule.inferred).collect())
}

/// Checks an operation's operands, attributes and regions, and infers the types of its results.
pub(crate) fn results(cx: &Context<'_>) -> Results {
    match &cx.op.kind {
        Op::Abs(_) | Op::Imag(_) | Op::Real(_) => elementwise::part(cx),
        Op::Add(_) => elementwise::add(cx),
        Op::AfterAll(_) | Op::CreateToken(_) | Op::Outfeed(_) => shapes::token(),
        Op::AllGather(op) => collectives::all_gather(cx, op),
        Op::AllReduce(op) => collectives::all_reduce(cx, op),
        Op::AllToAll(op) => collectives::all_to_all(cx, op),
        Op::AsyncStart(_) => control::async_start(cx),
        Op::AsyncDone(_) => control::async_done(cx),
        Op::BatchNormGrad(op) => {
            let rules = BatchNorm { vectors: 1..4, sizes: &[5, 4, 4], result: 3, further: &[4, 4] };
            products::batch_norm(cx, op.feature_index, &rules)
        }
        Op::BatchNormInference(op) => {
            let rules = BatchNorm { vectors: 1..5, sizes: &[3, 4, 5, 6], result: 7, further: &[] };
            products::batch_norm(cx, op.feature_index, &rules)
        }
        Op::BatchNormTraining(op) => {
            let rules = BatchNorm { vectors: 1..3, sizes: &[3, 4], result: 7, further: &[5, 6] };
            products::batch_norm(cx, op.feature_index, &rules)
        }
        Op::Broadcast(op) => shapes::broadcast(cx, &op.broadcast_sizes),
        Op::BroadcastInDim(_) | Op::Reshape(_) => shapes::same_elements(cx),
        Op::Case(_) => control::case(cx),
        Op::Cholesky(_) => products::cholesky(cx),
        Op::Clamp(_) => elementwise::clamp(cx),
        Op::CollectiveBroadcast(op) => collectives::collective_broadcast(cx, op),
        Op::CollectivePermute(op) => collectives::collective_permute(cx, op),
        Op::CollectiveReduce(op) => collectives::collective_reduce(cx, op),
        Op::Compare(op) => elementwise::compare(cx, op.compare_type),
        Op::Complex(_) => elementwise::complex(cx),
        Op::Composite(op) => control::composite(cx, op),
        Op::Concatenate(op) => shapes::concatenate(cx, op.dimension),
        Op::Constant(op) => shapes::constant(&op.value),
        Op::Convert(_) | Op::UniformQuantize(_) => elementwise::convert(cx),
        Op::Convolution(op) => windows::convolution(cx, op),
        Op::CrossReplicaSum(_) => collectives::cross_replica_sum(cx),
        Op::Dot(op) => products::dot(cx, op.precision_config.len()),
        Op::DotGeneral(op) => products::dot_general(cx, op),
        Op::DynamicBroadcastInDim(op) => shapes::dynamic_broadcast_in_dim(
            cx,
            &op.known_expanding_dimensions,
            &op.known_nonexpanding_dimensions,
        ),
        Op::DynamicConv(op) => windows::dynamic_conv(cx, op),
        Op::DynamicGather(op) => indexing::gather(cx, &op.dimension_numbers, None),
        Op::DynamicIota(op) => shapes::dynamic_iota(cx, op.iota_dimension),
        Op::DynamicPad(_) => shapes::dynamic_pad(cx),
        Op::DynamicReshape(_) => shapes::dynamic_reshape(cx),
        Op::DynamicSlice(op) => indexing::dynamic_slice(cx, op),
        Op::DynamicUpdateSlice(_) => indexing::dynamic_update_slice(cx),
        Op::Fft(op) => products::fft(cx, op),
        Op::FuncCall(op) => control::call(cx, op),
        Op::Gather(op) => indexing::gather(cx, &op.dimension_numbers, Some(&op.slice_sizes)),
        Op::GetDimensionSize(op) => shapes::get_dimension_size(cx, op.dimension),
        Op::GetTupleElement(op) => control::get_tuple_element(cx, op.index),
        Op::If(_) => control::branches(cx, C(1), C(2), C(3)),
        Op::Infeed(_) => Ok(control::received(cx, Some(C(3)))),
        Op::IsFinite(_) => elementwise::is_finite(cx),
        Op::Map(op) => elementwise::map(cx, &op.dimensions),
        Op::OptimizationBarrier(_) => shapes::same_types(cx, C(1)),
        Op::Pad(op) => shapes::pad(cx, op),
        Op::PartitionId(_) | Op::ReplicaId(_) => shapes::process_id(),
        Op::RealDynamicSlice(_) => shapes::real_dynamic_slice(cx),
        Op::Recv(op) => {
            let channel_type = op.channel_handle.channel_type;
            control::transfer(cx, channel_type, op.is_host_transfer, &op.source_target_pairs)?;
            Ok(control::received(cx, None))
        }
        Op::Reduce(op) => reductions::reduce(cx, &op.dimensions),
        Op::ReducePrecision(op) => elementwise::reduce_precision(cx, op),
        Op::ReduceScatter(op) => collectives::reduce_scatter(cx, op),
        Op::ReduceWindow(op) => windows::reduce_window(cx, op),
        Op::Reshard(op) => shapes::sharded(cx, &op.sharding),
        Op::ShardingConstraint(op) => shapes::sharded(cx, &op.sharding),
        Op::Reverse(op) => shapes::reverse(cx, &op.dimensions),
        Op::Rng(op) => shapes::rng(cx, op.rng_distribution),
        Op::RngBitGenerator(op) => shapes::rng_bit_generator(cx, op.rng_algorithm),
        Op::Scatter(op) => indexing::scatter(cx, &op.scatter_dimension_numbers),
        Op::Select(_) => elementwise::select(cx),
        Op::SelectAndScatter(op) => windows::select_and_scatter(cx, op),
        Op::Send(op) => {
            let channel_type = op.channel_handle.channel_type;
            control::transfer(cx, channel_type, op.is_host_transfer, &op.source_target_pairs)?;
            shapes::token()
        }
        Op::SetDimensionSize(op) => shapes::set_dimension_size(cx, op.dimension),
        Op::Slice(op) => shapes::slice(cx, op),
        Op::Sort(op) => reductions::sort(cx, op),
        Op::TorchIndexSelect(op) => shapes::torch_index_select(cx, op.dim, op.batch_dims),
        Op::Transpose(op) => shapes::transpose(cx, &op.permutation),
        Op::TriangularSolve(op) => products::triangular_solve(cx, op),
        Op::Tuple(_) => control::tuple(cx),
        Op::UniformDequantize(_) => elementwise::uniform_dequantize(cx),
        Op::While(_) => control::while_(cx),
        kind if kind.info().has(crate::ir::Trait::SameType) => elementwise::same_type(cx),
        _ => Ok(cx.op.results.map(|_| ResultRule::declared()).collect()),
    }
}
