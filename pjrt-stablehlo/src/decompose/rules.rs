//! What becomes of each operation that is not in the set.

use super::rewriter::Rewriter;
use super::{
    batch_norm, chlo, dynamic, einsum, elementwise, legacy, quantized, select_and_scatter, unsupported,
};
use crate::Error;
use crate::ir::ops::FuncCall;
use crate::ir::{Op, OpCode, Operation, Type, ValueId};

/// Gives the value that takes the place of an operation's only result.
pub(super) type ValueRule = for<'m> fn(&mut Rewriter<'m>, &'m Operation) -> Result<ValueId, Error>;

/// How an operation is replaced.
#[derive(Clone, Copy)]
pub(super) enum Rewrite {
    /// By the value of its only result.
    Value(ValueRule),
    /// By the values of its results.
    Values(for<'m> fn(&mut Rewriter<'m>, &'m Operation) -> Result<Vec<ValueId>, Error>),
    /// By a block of the program, whose end gives the results.
    Blocks(for<'m> fn(&mut Rewriter<'m>, &'m Operation) -> Result<(), Error>),
}

/// How an operation of the table is replaced.
pub(super) struct Rule {
    pub(super) op: OpCode,
    /// Whether the default set lacks the operation.
    pub(super) by_default: bool,
    /// What it becomes, for documentation.
    pub(super) into: &'static str,
    pub(super) rewrite: Rewrite,
}

const fn always(op: OpCode, into: &'static str, rewrite: Rewrite) -> Rule {
    Rule { op, by_default: true, into, rewrite }
}

const fn on_demand(op: OpCode, into: &'static str, rewrite: Rewrite) -> Rule {
    Rule { op, by_default: false, into, rewrite }
}

/// The rules for operations of the table. No chain of rules leads back to the operation that it starts from, `if` and
/// `case` excepted, of which a set needs one.
pub(super) const RULES: &[Rule] = {
    use OpCode as O;
    use Rewrite::{Blocks, Value, Values};
    &[
        always(O::Broadcast, "`broadcast_in_dim`", Value(legacy::broadcast)),
        always(O::CreateToken, "`after_all` without operands", Value(legacy::create_token)),
        always(O::CrossReplicaSum, "`all_reduce` with `add`", Value(legacy::cross_replica_sum)),
        always(O::Dot, "`dot_general`", Value(legacy::dot)),
        always(O::TorchIndexSelect, "`gather`", Value(legacy::torch_index_select)),
        always(O::Einsum, "`dot_general`, `reduce`, `transpose`", Value(einsum::einsum)),
        always(O::UnaryEinsum, "`reduce`, `transpose`", Value(einsum::unary_einsum)),
        always(O::Map, "its computation on whole tensors, if it is elementwise", Blocks(legacy::map)),
        always(
            O::BatchNormInference,
            "elementwise arithmetic and `broadcast_in_dim`, in f32 for narrower elements",
            Value(batch_norm::inference),
        ),
        always(
            O::BatchNormTraining,
            "`reduce`, elementwise arithmetic and `broadcast_in_dim`, in f32 for narrower elements",
            Values(batch_norm::training),
        ),
        always(
            O::BatchNormGrad,
            "`reduce`, elementwise arithmetic and `broadcast_in_dim`, in f32 for narrower elements",
            Values(batch_norm::grad),
        ),
        always(
            O::SelectAndScatter,
            "`reduce_window` of values and positions, `scatter`",
            Value(select_and_scatter::select_and_scatter),
        ),
        always(
            O::DynamicBroadcastInDim,
            "`broadcast_in_dim`, to a constant shape",
            Value(dynamic::broadcast_in_dim),
        ),
        always(O::DynamicConv, "`convolution`, for constant padding", Value(dynamic::conv)),
        always(O::DynamicGather, "`gather`, for constant slice sizes", Value(dynamic::gather)),
        always(O::DynamicIota, "`iota`, of a constant shape", Value(dynamic::iota)),
        always(O::DynamicPad, "`pad`, for constant padding", Value(dynamic::pad)),
        always(O::DynamicReshape, "`reshape`, to a constant shape", Value(dynamic::reshape)),
        always(
            O::RealDynamicSlice,
            "`slice` for constant bounds; `dynamic_slice` for a constant size",
            Value(dynamic::real_dynamic_slice),
        ),
        always(O::GetDimensionSize, "`constant`, for a known size", Value(dynamic::get_dimension_size)),
        always(
            O::SetDimensionSize,
            "its operand, if the size is that of the dimension",
            Value(dynamic::set_dimension_size),
        ),
        always(O::AsyncStart, "the started operation", Values(futures_are_kept)),
        always(O::AsyncDone, "the results of the started operation", Values(futures_are_kept)),
        always(O::Tuple, "its operands", Values(tuples_are_kept)),
        always(O::GetTupleElement, "an element of the tuple", Values(tuples_are_kept)),
        always(
            O::Composite,
            "CHLO's function of its name, or `func.call` of its decomposition",
            Blocks(composite),
        ),
        always(O::UniformQuantize, "arithmetic on floats, `convert`", Value(quantized::types_are_kept)),
        always(O::UniformDequantize, "`convert`, `subtract`, `multiply`", Value(quantized::types_are_kept)),
        on_demand(O::FuncCall, "the function's operations", Blocks(func_call)),
        on_demand(O::Case, "`if`, nested", Values(legacy::case)),
        on_demand(O::If, "`case`", Values(legacy::if_)),
        on_demand(O::OptimizationBarrier, "its operands", Values(legacy::operands)),
        on_demand(O::ShardingConstraint, "its operand", Values(legacy::operands)),
        on_demand(O::Reshard, "its operand", Values(legacy::operands)),
        on_demand(O::ShardingGroup, "nothing", Values(legacy::nothing)),
        on_demand(O::Clamp, "`maximum`, `minimum`", Value(elementwise::clamp)),
        on_demand(O::Cbrt, "`power` and a step of Newton's method", Value(elementwise::cbrt)),
        on_demand(
            O::ExponentialMinusOne,
            "`exponential`, `tanh`, arithmetic",
            Value(elementwise::exponential_minus_one),
        ),
        on_demand(O::IsFinite, "`subtract`, `compare`", Value(elementwise::is_finite)),
        on_demand(O::LogPlusOne, "`log`, a polynomial", Value(elementwise::log_plus_one)),
        on_demand(O::Logistic, "`exponential`, arithmetic", Value(elementwise::logistic)),
        on_demand(O::RoundNearestAfz, "`floor`, `compare`, `select`", Value(elementwise::round_nearest_afz)),
        on_demand(
            O::RoundNearestEven,
            "`floor`, `compare`, `select`",
            Value(elementwise::round_nearest_even),
        ),
        on_demand(O::Rsqrt, "`sqrt`, `divide`", Value(elementwise::rsqrt)),
        on_demand(O::Sign, "`compare`, `select`", Value(elementwise::sign)),
        on_demand(O::Tan, "`sine`, `cosine`, `divide`", Value(elementwise::tan)),
    ]
};

/// `composite`: a function of CHLO's by its name, otherwise a call of the function that computes the same.
fn composite<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<(), Error> {
    let Op::Composite(composite) = &op.kind else { return Err(mismatch(op)) };
    let first_new = r.b.body.num_ops();
    if let Some(values) = chlo::composite(r, op, composite)? {
        r.keep_attributes(op, &values, first_new);
        r.bind(op, values);
        return Ok(());
    }
    if super::inlines_calls(r.core) {
        return r.inline_call(op, &composite.decomposition);
    }
    r.call(op, FuncCall::new(composite.decomposition.clone()));
    Ok(())
}

/// `func.call`: what the function does.
fn func_call<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<(), Error> {
    let Op::FuncCall(call) = &op.kind else { return Err(mismatch(op)) };
    r.inline_call(op, &call.callee)
}

/// The parts that the result of `tuple` or `get_tuple_element` is, where tuples are replaced, and what the future of an
/// `async_done` holds, where futures are.
pub(super) fn parts(r: &Rewriter<'_>, op: &Operation) -> Result<Option<Vec<ValueId>>, Error> {
    match &op.kind {
        Op::AsyncDone(_) if r.replaces_futures() => Ok(Some(r.flat(&op.operands))),
        _ if !r.flattens() => Ok(None),
        Op::Tuple(_) => Ok(Some(r.flat(&op.operands))),
        Op::GetTupleElement(get) => {
            let Type::Tuple(parts) = r.old_type(op.operand(0)) else { return Err(mismatch(op)) };
            let index = usize::try_from(get.index).unwrap_or(usize::MAX).min(parts.len());
            let skipped: usize = parts[..index].iter().map(|ty| r.leaf_count(ty)).sum();
            let count = parts.get(index).map_or(0, |ty| r.leaf_count(ty));
            Ok(Some(r.flat(&op.operands)[skipped..][..count].to_vec()))
        }
        Op::CustomCall(call) => {
            let mut values = op.operands.iter().copied().chain(op.results);
            let has_tuples = values.any(|value| matches!(r.old_type(value), Type::Tuple(_)));
            if has_tuples && (call.operand_layouts.is_some() || !call.output_operand_aliases.is_empty()) {
                return Err(unsupported("tuples with layouts or aliases cannot be replaced by their parts"));
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// `tuple` or `get_tuple_element` without the other.
fn tuples_are_kept(_: &mut Rewriter<'_>, _: &Operation) -> Result<Vec<ValueId>, Error> {
    Err(unsupported(
        "tuples are kept because either 'stablehlo.tuple' or 'stablehlo.get_tuple_element' is a core operation; have \
         both, or neither",
    ))
}

/// `async_start` or `async_done` without the other.
fn futures_are_kept(_: &mut Rewriter<'_>, _: &Operation) -> Result<Vec<ValueId>, Error> {
    Err(unsupported(
        "futures are kept because either 'stablehlo.async_start' or 'stablehlo.async_done' is a core operation; have \
         both, or neither",
    ))
}

/// A rule was applied to an operation that it is not for, or that the verifier would not have let pass.
pub(super) fn mismatch(op: &Operation) -> Error {
    unsupported(format!("there is no decomposition of {} for these operands", op.kind.name()))
}
