//! The table of rules for the operations of the op table.

use super::rule::Rewrite;
use super::{
    batch_norm, chlo, dynamic, einsum, legacy, linear_algebra, ragged_all_to_all, select_and_scatter,
};
use crate::Error;
use crate::formulas::elementwise;
use crate::ir::ops::{CustomCall, FuncCall};
use crate::ir::{ElementKind, Op, OpCode, Operation, ValueId};
use crate::passes::rewrite::{Rewriter, mismatch, unsupported};

/// The rule for an operation of the op table.
pub(crate) struct Rule {
    pub(crate) op: OpCode,
    /// `true` if the default set of core operations does not contain the operation.
    pub(crate) by_default: bool,
    /// A description of the decomposition, for documentation.
    pub(crate) into: &'static str,
    pub(crate) rewrite: Rewrite,
}

const fn always(op: OpCode, into: &'static str, rewrite: Rewrite) -> Rule {
    Rule { op, by_default: true, into, rewrite }
}

const fn on_demand(op: OpCode, into: &'static str, rewrite: Rewrite) -> Rule {
    Rule { op, by_default: false, into, rewrite }
}

/// The rules for operations of the op table. No chain of rules is cyclic, except that of `if` and `case`, of which
/// every set needs one.
pub(crate) const RULES: &[Rule] = {
    use OpCode as O;
    use Rewrite::{Blocks, Float, Real, RealOrComplex, Value, Values};
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
        always(O::UniformQuantize, "arithmetic on floats, `convert`", Value(types_are_kept)),
        always(O::UniformDequantize, "`convert`, `subtract`, `multiply`", Value(types_are_kept)),
        on_demand(O::FuncCall, "the function's operations", Blocks(func_call)),
        on_demand(O::Case, "`if`, nested", Values(legacy::case)),
        on_demand(O::If, "`case`", Values(legacy::if_)),
        on_demand(O::OptimizationBarrier, "its operands", Values(legacy::operands)),
        on_demand(O::ShardingConstraint, "its operand", Values(legacy::operands)),
        on_demand(O::Reshard, "its operand", Values(legacy::operands)),
        on_demand(O::ShardingGroup, "nothing", Values(legacy::nothing)),
        on_demand(
            O::Cholesky,
            "`while`, with `dot_general` and `sqrt` for each column",
            Value(linear_algebra::cholesky),
        ),
        on_demand(
            O::TriangularSolve,
            "`while`, with `dot_general` and `divide` for each row",
            Value(linear_algebra::triangular_solve),
        ),
        on_demand(O::Clamp, "`maximum`, `minimum`", Value(clamp)),
        on_demand(O::Cbrt, "`power` and a step of Newton's method", Real(elementwise::cbrt)),
        on_demand(
            O::ExponentialMinusOne,
            "`exponential`, `tanh`, arithmetic",
            Real(elementwise::exponential_minus_one),
        ),
        on_demand(O::IsFinite, "`subtract`, `compare`", Float(elementwise::is_finite)),
        on_demand(O::LogPlusOne, "`log`, a polynomial", Real(elementwise::log_plus_one)),
        on_demand(O::Logistic, "`exponential`, arithmetic", Real(elementwise::logistic)),
        on_demand(O::RoundNearestAfz, "`floor`, `compare`, `select`", Float(elementwise::round_nearest_afz)),
        on_demand(
            O::RoundNearestEven,
            "`floor`, `compare`, `select`",
            Float(elementwise::round_nearest_even),
        ),
        on_demand(O::Rsqrt, "`sqrt`, `divide`", Float(elementwise::rsqrt)),
        on_demand(O::Sign, "`compare`, `select`", Value(sign)),
        on_demand(O::Tan, "`sine`, `cosine`, `divide`", RealOrComplex(elementwise::tan, elementwise::tan)),
    ]
};

/// Decomposes `clamp`.
fn clamp(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [min, x, max] = r.operands(op)?;
    Ok(elementwise::clamp(&mut r.b, min, x, max))
}

/// Decomposes `sign` of real numbers.
fn sign(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    match r.b.element(x).kind() {
        ElementKind::Float | ElementKind::SignedInteger => Ok(elementwise::sign(&mut r.b, x)),
        _ => Err(mismatch(op)),
    }
}

/// Decomposes `composite`: by the rule of CHLO's function with its name, or to a call of its decomposition.
fn composite<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<(), Error> {
    let Op::Composite(composite) = &op.kind else { return Err(mismatch(op)) };
    let first_new = r.b.body.num_ops();
    if let Some(values) = chlo::composite(r, op, composite)? {
        r.keep_attributes(op, &values, first_new);
        r.bind(op, values);
        return Ok(());
    }
    if r.inlines_calls() {
        return r.inline_call(op, &composite.decomposition);
    }
    r.call(op, FuncCall::new(composite.decomposition.clone()));
    Ok(())
}

/// Decomposes `func.call` to the operations of the function.
fn func_call<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<(), Error> {
    let Op::FuncCall(call) = &op.kind else { return Err(mismatch(op)) };
    r.inline_call(op, &call.callee)
}

/// Returns the error for `tuple` or `get_tuple_element` if only the other is a core operation.
fn tuples_are_kept(_: &mut Rewriter<'_>, _: &Operation) -> Result<Vec<ValueId>, Error> {
    Err(unsupported(
        "tuples are kept because either 'stablehlo.tuple' or 'stablehlo.get_tuple_element' is a core operation; have \
         both, or neither",
    ))
}

/// Returns the error for `async_start` or `async_done` if only the other is a core operation.
fn futures_are_kept(_: &mut Rewriter<'_>, _: &Operation) -> Result<Vec<ValueId>, Error> {
    Err(unsupported(
        "futures are kept because either 'stablehlo.async_start' or 'stablehlo.async_done' is a core operation; have \
         both, or neither",
    ))
}

/// Returns the error for `uniform_quantize` or `uniform_dequantize` if quantized types are kept.
fn types_are_kept(_: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    Err(unsupported(format!(
        "'{}' must be a core operation, because quantized types are kept",
        op.kind.name()
    )))
}

/// Returns the name of the function that a custom call represents.
pub(crate) fn function_of_call(call: &CustomCall) -> Option<&'static str> {
    let is_ragged = ragged_all_to_all::is_call(call);
    let target = is_ragged.then_some(ragged_all_to_all::TARGET).or(linear_algebra::target_of_call(call));
    chlo::rule_of_call(call).map(|rule| rule.name).or(target)
}

/// Returns the rule for an operation that is not in the set; `None` if it cannot be decomposed.
pub(crate) fn rewrite_of(kind: &Op) -> Option<Rewrite> {
    match kind {
        Op::Other(other) => {
            chlo::RULES.iter().find(|rule| rule.name == &*other.name).map(|rule| rule.rewrite)
        }
        Op::CustomCall(call) if ragged_all_to_all::is_call(call) => {
            Some(Rewrite::Values(ragged_all_to_all::custom_call))
        }
        Op::CustomCall(call) if linear_algebra::target_of_call(call).is_some() => {
            Some(Rewrite::Values(linear_algebra::custom_call))
        }
        Op::CustomCall(call) => chlo::rule_of_call(call).map(|_| Rewrite::Values(chlo::custom_call)),
        kind => RULES.iter().find(|rule| rule.op == kind.code()).map(|rule| rule.rewrite),
    }
}
