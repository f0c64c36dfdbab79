//! The table of rules for the operations of the op table.

use super::rule::Rewrite;
use super::{
    batch_norm, chlo, dynamic, einsum, elementwise, indexing, legacy, linear_algebra, movement, products,
    ragged_all_to_all, reductions, select_and_scatter, sorting,
};
use crate::Error;
use crate::formulas::{arithmetic, complex_elementary as complex, elementwise as formulas, trigonometric};
use crate::ir::ops::{CustomCall, FuncCall};
use crate::ir::{Body, Op, OpCode, Operation, ValueId};
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
    use Rewrite::{Blocks, Complex, Complexes, Float, Real, RealOrComplex, Reals, Value, Values};
    &[
        always(O::Broadcast, "`broadcast_in_dim`", Value(legacy::broadcast)),
        always(O::CreateToken, "`after_all` without operands", Value(legacy::create_token)),
        always(O::CrossReplicaSum, "`all_reduce` with `add`", Value(legacy::cross_replica_sum)),
        always(O::Dot, "`dot_general`", Value(legacy::dot)),
        always(O::TorchIndexSelect, "`gather`", Value(legacy::torch_index_select)),
        always(O::Einsum, "`dot_general`, `reduce`, `transpose`", Value(einsum::einsum)),
        always(O::UnaryEinsum, "`reduce`, `transpose`", Value(einsum::unary_einsum)),
        always(O::Map, "its computation on whole tensors, if it is elementwise", Values(legacy::map)),
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
        on_demand(
            O::Fft,
            "`dot_general` with constant matrices, for lengths without prime factors above 256",
            Value(linear_algebra::fft),
        ),
        on_demand(O::Clamp, "`maximum`, `minimum`", Value(elementwise::clamp)),
        on_demand(
            O::Cbrt,
            "`power` and a step of Newton's method",
            RealOrComplex(formulas::cbrt, complex::cbrt),
        ),
        on_demand(
            O::ExponentialMinusOne,
            "`exponential`, `tanh`, arithmetic",
            RealOrComplex(formulas::exponential_minus_one, complex::exponential_minus_one),
        ),
        on_demand(O::IsFinite, "`subtract`, `compare`", Float(formulas::is_finite)),
        on_demand(
            O::LogPlusOne,
            "`log`, a polynomial",
            RealOrComplex(formulas::log_plus_one, complex::log_plus_one),
        ),
        on_demand(
            O::Logistic,
            "`exponential`, arithmetic",
            RealOrComplex(formulas::logistic, complex::logistic),
        ),
        on_demand(O::RoundNearestAfz, "`floor`, `compare`, `select`", Float(formulas::round_nearest_afz)),
        on_demand(O::RoundNearestEven, "`floor`, `compare`, `select`", Float(formulas::round_nearest_even)),
        on_demand(O::Rsqrt, "`sqrt`, `divide`", RealOrComplex(formulas::rsqrt, complex::rsqrt)),
        on_demand(O::Sign, "`compare`, `select`", Value(elementwise::sign)),
        on_demand(O::Abs, "`compare`, `select`, `subtract`", Value(elementwise::abs)),
        on_demand(O::And, "`select`, for booleans", Value(elementwise::and)),
        on_demand(O::Ceil, "`floor`, `negate`", Float(arithmetic::ceil)),
        on_demand(O::Atan2, "`divide`, a polynomial", Reals(trigonometric::atan2)),
        on_demand(
            O::BitcastConvert,
            "its operand, if the types are equal",
            Value(elementwise::bitcast_convert),
        ),
        on_demand(
            O::Compare,
            "`compare` of integers, for floats by their total order; of parts, for complex numbers",
            Value(elementwise::compare),
        ),
        on_demand(
            O::Constant,
            "`complex` of constants of the parts, for complex numbers",
            Value(elementwise::constant),
        ),
        on_demand(
            O::Convert,
            "`select`, `compare`, from and to booleans; `bitcast_convert` of signed integers, to unsigned ones; conversions from and to f32, for narrower floats",
            Value(elementwise::convert),
        ),
        on_demand(
            O::CountLeadingZeros,
            "`shift_right_logical`, `or`, `not`, `popcnt`",
            Value(elementwise::count_leading_zeros),
        ),
        on_demand(
            O::Cosine,
            "`round_nearest_even`, `floor`, a polynomial; functions of the parts, for complex numbers",
            RealOrComplex(trigonometric::cosine, complex::cosine),
        ),
        on_demand(O::Divide, "quotients of the parts, for complex numbers", Complexes(complex::divide)),
        on_demand(
            O::Exponential,
            "functions of the parts, for complex numbers",
            Complex(complex::exponential),
        ),
        on_demand(O::Floor, "`convert` to integers and back, `compare`, `select`", Real(arithmetic::floor)),
        on_demand(O::Log, "functions of the parts, for complex numbers", Complex(complex::log)),
        on_demand(O::Maximum, "`compare`, `select`, `add`", Value(elementwise::maximum)),
        on_demand(O::Minimum, "`compare`, `select`, `negate`, `subtract`", Value(elementwise::minimum)),
        on_demand(O::Multiply, "products of the parts, for complex numbers", Complexes(complex::multiply)),
        on_demand(O::Negate, "`multiply`", Value(elementwise::negate)),
        on_demand(O::Not, "`subtract`; `select`, for booleans", Value(elementwise::not)),
        on_demand(O::Or, "`add`, `and`, `subtract`; `select`, for booleans", Value(elementwise::or)),
        on_demand(
            O::PopulationCount,
            "`shift_right_logical`, `and`, `add`",
            Value(elementwise::population_count),
        ),
        on_demand(
            O::Power,
            "`multiply`, `divide`, `sqrt` for constant exponents; `log`, `exponential`; for integers, products",
            Value(elementwise::power),
        ),
        on_demand(
            O::Remainder,
            "`divide`, `multiply`, `subtract` of integers; long division of floats in a `while`",
            Value(elementwise::remainder),
        ),
        on_demand(
            O::Select,
            "`broadcast_in_dim` of the predicate, if it is a scalar",
            Value(elementwise::select),
        ),
        on_demand(
            O::ShiftLeft,
            "`multiply` by powers of two, `compare`, `select`",
            Value(elementwise::shift_left),
        ),
        on_demand(
            O::ShiftRightArithmetic,
            "`divide` by powers of two, `not`, `compare`, `select`",
            Value(elementwise::shift_right_arithmetic),
        ),
        on_demand(
            O::ShiftRightLogical,
            "`divide` by powers of two, `compare`, `select`",
            Value(elementwise::shift_right_logical),
        ),
        on_demand(
            O::Sine,
            "`round_nearest_even`, `floor`, a polynomial; functions of the parts, for complex numbers",
            RealOrComplex(trigonometric::sine, complex::sine),
        ),
        on_demand(
            O::Sqrt,
            "`log`, `exponential` and a step of Newton's method",
            RealOrComplex(arithmetic::sqrt, complex::sqrt),
        ),
        on_demand(O::Subtract, "`add`, `negate`", Value(elementwise::subtract)),
        on_demand(
            O::Tanh,
            "`exponential`, a continued fraction",
            RealOrComplex(arithmetic::tanh, complex::tanh),
        ),
        on_demand(O::Xor, "`or`, `and`, `subtract`; `select`, for booleans", Value(elementwise::xor)),
        on_demand(
            O::Convolution,
            "`dot_general` of the kernel and the windows, which are slices",
            Value(products::convolution),
        ),
        on_demand(
            O::DotGeneral,
            "products without an algorithm, of the components of its operands; products of matrices of MxK and KxN, by `transpose` and `reshape`; then `multiply` and `reduce`",
            Value(products::dot_general),
        ),
        on_demand(
            O::DynamicSlice,
            "`slice`, for constant starts; rotations by `concatenate` and `select`",
            Value(movement::dynamic_slice),
        ),
        on_demand(
            O::DynamicUpdateSlice,
            "`slice`, `concatenate`, for constant starts; rotations and `select`",
            Value(movement::dynamic_update_slice),
        ),
        on_demand(
            O::Gather,
            "`slice`, `concatenate`, for few constant indices; `dynamic_slice` in a `while`",
            Value(indexing::gather),
        ),
        on_demand(O::Iota, "`constant`", Value(movement::iota)),
        on_demand(O::Pad, "`concatenate`, `slice`, `reshape`", Value(movement::pad)),
        on_demand(
            O::Reduce,
            "its computation on neighbors, by `slice`, if it is elementwise",
            Values(reductions::reduce),
        ),
        on_demand(
            O::ReduceWindow,
            "its computation on windows of half the size, by `slice` and `pad`, if it is elementwise",
            Values(reductions::reduce_window),
        ),
        on_demand(
            O::Reverse,
            "`slice`, `concatenate`; `gather`, for more than 64 elements",
            Value(movement::reverse),
        ),
        on_demand(
            O::Scatter,
            "`dynamic_slice`, its computation and `dynamic_update_slice` in a `while`, if it is elementwise",
            Values(indexing::scatter),
        ),
        on_demand(
            O::Sort,
            "its comparison of elements at distances, or a reduction if few elements are read, in a `while`, if it is elementwise",
            Values(sorting::sort),
        ),
        on_demand(O::Tan, "`sine`, `cosine`, `divide`", RealOrComplex(formulas::tan, complex::tan)),
    ]
};

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
pub(crate) fn rewrite_of(body: &Body, op: &Operation) -> Option<Rewrite> {
    let rewrite = match &op.kind {
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
    };
    let is_complex = || body.element_types(op).iter().any(|element| element.is_complex());
    rewrite.filter(|rewrite| !rewrite.is_of_complex_numbers() || is_complex())
}

/// Returns `true` if the default set of core operations contains the operation although it has a rule.
pub(crate) fn is_core_by_default(kind: &Op) -> bool {
    RULES.iter().any(|rule| rule.op == kind.code() && !rule.by_default)
}
