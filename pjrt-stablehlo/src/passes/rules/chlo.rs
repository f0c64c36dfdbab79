//! Rules for CHLO operations, which occur in text only: portable artifacts contain composites or their expansions.

use super::rule::{Rewrite, require_real};
use super::scan;
use crate::Error;
use crate::build::Builder;
use crate::formulas::{self, Binary, bessel, bits, complex, erf, gamma, hyperbolic, ragged_dot, top_k, zeta};
use crate::ir::chlo_attributes as attributes;
use crate::ir::ops::{Compare, Composite, CustomCall};
use crate::ir::{
    Attribute, ComparisonDirection as Cmp, ElementType, Op, OpCode, Operation, RaggedDotDimensionNumbers,
    TensorType, Type, ValueId,
};
use crate::passes::rewrite::{Rewriter, mismatch, unsupported};

/// The rule for a CHLO operation.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// A description of the decomposition, for documentation.
    pub(crate) into: &'static str,
    pub(crate) rewrite: Rewrite,
}

const fn rule(name: &'static str, into: &'static str, rewrite: Rewrite) -> Rule {
    Rule { name, into, rewrite }
}

/// The rules for CHLO operations.
pub(crate) const RULES: &[Rule] = {
    use Rewrite::{Real, RealOrComplex, Reals, Value, Values};
    const BROADCAST: &str = "`broadcast_in_dim` of the operands, and the operation";
    &[
        rule("chlo.acos", "`atan2`, `sqrt`, arithmetic", RealOrComplex(hyperbolic::acos, complex::acos)),
        rule(
            "chlo.acosh",
            "`log_plus_one`, `log`, `sqrt`, arithmetic",
            RealOrComplex(hyperbolic::acosh, complex::acosh),
        ),
        rule("chlo.asin", "`atan2`, `sqrt`, arithmetic", RealOrComplex(hyperbolic::asin, complex::asin)),
        rule(
            "chlo.asinh",
            "`log_plus_one`, `log`, `sqrt`, arithmetic",
            RealOrComplex(hyperbolic::asinh, complex::asinh),
        ),
        rule("chlo.atan", "`atan2`", RealOrComplex(hyperbolic::atan, complex::atan)),
        rule("chlo.atanh", "`log_plus_one`, arithmetic", RealOrComplex(hyperbolic::atanh, complex::atanh)),
        rule("chlo.bessel_i1e", "power and Chebyshev series, `exponential`", Real(bessel::bessel_i1e)),
        rule("chlo.broadcast_add", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Add))),
        rule("chlo.broadcast_and", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::And))),
        rule("chlo.broadcast_atan2", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Atan2))),
        rule("chlo.broadcast_compare", BROADCAST, Value(broadcast_compare)),
        rule("chlo.broadcast_complex", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Complex))),
        rule("chlo.broadcast_divide", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Divide))),
        rule("chlo.broadcast_maximum", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Maximum))),
        rule("chlo.broadcast_minimum", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Minimum))),
        rule("chlo.broadcast_multiply", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Multiply))),
        rule("chlo.broadcast_next_after", BROADCAST, Value(broadcast_next_after)),
        rule("chlo.broadcast_or", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Or))),
        rule("chlo.broadcast_polygamma", BROADCAST, Value(|r, op| broadcast_reals(r, op, zeta::polygamma))),
        rule("chlo.broadcast_power", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Power))),
        rule("chlo.broadcast_remainder", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Remainder))),
        rule("chlo.broadcast_select", BROADCAST, Value(broadcast_select)),
        rule("chlo.broadcast_shift_left", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::ShiftLeft))),
        rule(
            "chlo.broadcast_shift_right_arithmetic",
            BROADCAST,
            Value(|r, op| broadcast(r, op, OpCode::ShiftRightArithmetic)),
        ),
        rule(
            "chlo.broadcast_shift_right_logical",
            BROADCAST,
            Value(|r, op| broadcast(r, op, OpCode::ShiftRightLogical)),
        ),
        rule("chlo.broadcast_subtract", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Subtract))),
        rule("chlo.broadcast_xor", BROADCAST, Value(|r, op| broadcast(r, op, OpCode::Xor))),
        rule("chlo.broadcast_zeta", BROADCAST, Value(|r, op| broadcast_reals(r, op, zeta::zeta))),
        rule("chlo.conj", "`real`, `imag`, `negate`, `complex`", Value(conj)),
        rule("chlo.constant", "`constant`", Value(constant)),
        rule("chlo.constant_like", "`constant`", Value(constant_like)),
        rule("chlo.cosh", "`exponential`, arithmetic", RealOrComplex(hyperbolic::cosh, complex::cosh)),
        rule("chlo.digamma", "Chebyshev and asymptotic series, recurrence", Real(gamma::digamma)),
        rule("chlo.erf", "Chebyshev series, `exponential`", Real(erf::erf)),
        rule("chlo.erf_inv", "Chebyshev series, `log`, `sqrt`", Real(erf::erf_inv)),
        rule("chlo.erfc", "Chebyshev series, `exponential`", Real(erf::erfc)),
        rule("chlo.is_inf", "`abs`, `compare`", Value(is_inf)),
        rule("chlo.is_neg_inf", "`compare`", Value(is_neg_inf)),
        rule("chlo.is_pos_inf", "`compare`", Value(is_pos_inf)),
        rule("chlo.lgamma", "Lanczos' approximation and reflection", Real(gamma::lgamma)),
        rule("chlo.mulhi", "`convert`, `multiply`, shifts", Value(|r, op| of_two(r, op, bits::mulhi))),
        rule("chlo.next_after", "arithmetic on the bits", Value(|r, op| of_two(r, op, bits::next_after))),
        rule(
            "chlo.polygamma",
            "the operations of `chlo.zeta` and `chlo.digamma`, `gather` of factorials",
            Reals(zeta::polygamma),
        ),
        rule("chlo.ragged_dot", "`dot_general` of all groups, masks, `reduce`", Value(ragged_dot)),
        rule("chlo.scan", "`while`, `dynamic_slice`, `dynamic_update_slice`", Values(scan::scan)),
        rule(
            "chlo.sinh",
            "`exponential_minus_one`, `exponential`, arithmetic",
            RealOrComplex(hyperbolic::sinh, complex::sinh),
        ),
        rule("chlo.square", "`multiply`", Value(square)),
        rule("chlo.tan", "`tan`", RealOrComplex(Builder::tan, Builder::tan)),
        rule("chlo.top_k", "`iota`, `sort`, `slice`", Values(top_k)),
        rule("chlo.zeta", "sums and an asymptotic series", Reals(zeta::zeta)),
    ]
};

/// Returns the results of a composite that represents an operation of CHLO; `None` for a composite whose decomposition
/// is called.
pub(crate) fn composite<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    composite: &Composite,
) -> Result<Option<Vec<ValueId>>, Error> {
    if scan::overrides_decomposition(r.module, op, composite)? {
        return scan::composite(r, op).map(Some);
    }
    match rule_for_composite(r, op, composite) {
        Some(rule) => rule.apply(r, op),
        None => Ok(None),
    }
}

/// Returns the rule for a composite that represents a function of real numbers. Such rules are more accurate than the
/// decompositions that compilers write into programs.
fn rule_for_composite(r: &Rewriter<'_>, op: &Operation, composite: &Composite) -> Option<Rewrite> {
    let rewrite = RULES.iter().find(|rule| rule.name == &*composite.name)?.rewrite;
    rewrite.operands_of_formula().filter(|&operands| operands == op.operands.len())?;
    let ty = r.any_result(op).ok().filter(|ty| ty.element_type().is_float())?;
    let mut types = op.operands.iter().map(|&operand| r.old_type(operand));
    let is_plain = composite.composite_attributes.is_empty()
        && op.results.len() == 1
        && ty.num_elements().is_some()
        && types.all(|operand| operand.as_tensor() == Some(&ty));
    is_plain.then_some(rewrite)
}

/// Returns the rule for a function that a custom call represents. XLA's exporter to StableHLO writes functions that
/// StableHLO lacks as calls such as `mhlo.erf`.
pub(crate) fn rule_of_call(call: &CustomCall) -> Option<&'static Rule> {
    let name = call.call_target_name.strip_prefix("mhlo.")?;
    let of_name = |name: &str| RULES.iter().find(|rule| rule.name.strip_prefix("chlo.") == Some(name));
    match name {
        "topk" => of_name("top_k"),
        name => of_name(name).filter(|rule| rule.rewrite.operands_of_formula().is_some()),
    }
}

/// Decomposes a custom call that [`rule_of_call`] has a rule for. The verifier does not check the types of such calls.
pub(crate) fn custom_call<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let Op::CustomCall(call) = &op.kind else { return Err(mismatch(op)) };
    let rewrite = rule_of_call(call).ok_or_else(|| mismatch(op))?.rewrite;
    let operands: Option<Vec<_>> =
        op.operands.iter().map(|&operand| r.old_type(operand).as_tensor()).collect();
    let Some([first, others @ ..]) = operands.as_deref() else { return Err(mismatch(op)) };
    if first.num_elements().is_none() || others.iter().any(|other| other != first) {
        return Err(mismatch(op));
    }
    let is_largest = attributes::get(op, "largest").is_none_or(|largest| largest.as_bool() == Some(true));
    let fits = match rewrite.operands_of_formula() {
        Some(_) => first.element_type().is_float(),
        None => is_largest,
    };
    let values = if fits { rewrite.apply(r, op)? } else { None };
    let values = values.ok_or_else(|| mismatch(op))?;
    let types = values.iter().map(|&value| Type::from(r.b.tensor(value)));
    if !types.eq(r.result_types(op)) {
        return Err(mismatch(op));
    }
    Ok(values)
}

/// Broadcasts the operands to the shape of the result, according to `broadcast_dimensions` or by aligning their last
/// dimensions.
fn broadcasted<const N: usize>(r: &mut Rewriter<'_>, op: &Operation) -> Result<[ValueId; N], Error> {
    let mut operands: [ValueId; N] = r.operands(op)?;
    let mut dims: Vec<i64> = Vec::new();
    let given = attributes::integers(op, "broadcast_dimensions")?;
    let rank = operands.iter().map(|&x| r.b.tensor(x).rank()).max().unwrap_or(0);
    let mut places = Vec::with_capacity(N);
    for &x in &operands {
        let own = r.b.tensor(x).rank();
        let place: Vec<i64> = match &given {
            Some(given) if own < rank => given.clone(),
            _ => (rank as i64 - own as i64..rank as i64).collect(),
        };
        let is_increasing = place.windows(2).all(|pair| pair[0] < pair[1]);
        if place.len() != own || !is_increasing || place.iter().any(|&p| !(0..rank as i64).contains(&p)) {
            return Err(unsupported(format!(
                "attribute 'broadcast_dimensions': expected {own} increasing dimensions below {rank}, found {place:?}"
            )));
        }
        places.push(place);
    }
    dims.resize(rank, 1);
    for (&x, place) in operands.iter().zip(&places) {
        for (&size, &p) in r.b.dims(x).iter().zip(place) {
            let slot = &mut dims[p as usize];
            if *slot != 1 && size != 1 && *slot != size {
                return Err(unsupported(format!(
                    "the sizes {slot} and {size} of dimension {p} cannot be broadcast"
                )));
            }
            if *slot == 1 {
                *slot = size;
            }
        }
    }
    for (x, place) in operands.iter_mut().zip(&places) {
        *x = r.b.broadcast(*x, place, &dims);
    }
    Ok(operands)
}

/// Decomposes a binary operation with broadcasting.
fn broadcast(r: &mut Rewriter<'_>, op: &Operation, code: OpCode) -> Result<ValueId, Error> {
    let operands: [ValueId; 2] = broadcasted(r, op)?;
    Ok(r.b.apply(code, &operands))
}

fn broadcast_compare(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let operands: [ValueId; 2] = broadcasted(r, op)?;
    let comparison_direction = attributes::comparison_direction(op)?;
    let compare_type = attributes::comparison_type(op)?;
    Ok(r.b.op(Compare { comparison_direction, compare_type }, &operands))
}

fn broadcast_select(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [predicate, on_true, on_false] = broadcasted(r, op)?;
    Ok(r.b.select(predicate, on_true, on_false))
}

fn broadcast_next_after(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x, y] = broadcasted(r, op)?;
    bits::next_after(&mut r.b, x, y).ok_or_else(|| mismatch(op))
}

/// Decomposes a function of two floats with broadcasting.
fn broadcast_reals(r: &mut Rewriter<'_>, op: &Operation, function: Binary) -> Result<ValueId, Error> {
    let [x, y] = broadcasted(r, op)?;
    require_real(r, op, x)?;
    Ok(formulas::both_at_least_f32(&mut r.b, function, x, y))
}

/// Applies a function of two values of one type, if it supports this type.
fn of_two(
    r: &mut Rewriter<'_>,
    op: &Operation,
    function: fn(&mut Builder, ValueId, ValueId) -> Option<ValueId>,
) -> Result<ValueId, Error> {
    let [x, y] = r.operands(op)?;
    function(&mut r.b, x, y).ok_or_else(|| mismatch(op))
}

fn ragged_dot(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    const NAME: &str = RaggedDotDimensionNumbers::NAME;
    let (operands, result) = (r.operands(op)?, r.result(op)?);
    let attribute = attributes::require(op, NAME)?;
    let dimensions = RaggedDotDimensionNumbers::from_attribute(attribute).map_err(|expected| {
        unsupported(format!("attribute '{NAME}': expected {expected}, found {attribute}"))
    })?;
    ragged_dot::ragged_dot(&mut r.b, operands, &dimensions, &Box::default(), &result).map_err(unsupported)
}

/// Decomposes `chlo.conj`.
fn conj(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    if !r.b.element(x).is_complex() {
        return Ok(x);
    }
    let (real, imag) = complex::parts(&mut r.b, x);
    let negative = r.b.negate(imag);
    Ok(r.b.complex(real, negative))
}

fn constant(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    match attributes::require(op, "value")? {
        Attribute::Elements(value) => Ok(r.b.constant(value.clone())),
        other => Err(unsupported(format!("attribute 'value': expected elements, found {}", other.kind()))),
    }
}

fn constant_like(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let ([x], result) = (r.operands(op)?, r.any_result(op)?);
    let result = result.with_dims(r.b.dims(x));
    match attributes::require(op, "value")? {
        Attribute::Integer { value, .. } if result.element_type().is_integer() => {
            Ok(r.b.integer(*value, result))
        }
        Attribute::Integer { value, .. } => Ok(r.b.number_of_type(*value as f64, result)),
        Attribute::Bool(value) => Ok(r.b.number_of_type(f64::from(u8::from(*value)), result)),
        Attribute::Float { value, .. } => Ok(r.b.number_of_type(*value, result)),
        other => Err(unsupported(format!("attribute 'value': expected a number, found {}", other.kind()))),
    }
}

fn is_inf(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    let magnitude = r.b.abs(x);
    equals_infinity(r, op, magnitude, f64::INFINITY)
}

fn is_neg_inf(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    equals_infinity(r, op, x, f64::NEG_INFINITY)
}

fn is_pos_inf(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    equals_infinity(r, op, x, f64::INFINITY)
}

fn equals_infinity(
    r: &mut Rewriter<'_>,
    op: &Operation,
    x: ValueId,
    infinity: f64,
) -> Result<ValueId, Error> {
    use ElementType as T;
    match r.b.element(x) {
        T::F16 | T::BF16 | T::F32 | T::F64 | T::F8E5M2 | T::F8E4M3 | T::F8E3M4 => {
            Ok(r.b.compare_with(Cmp::Eq, x, infinity))
        }
        // Other types have no infinities.
        element if element.is_float() => Ok(r.b.number_of_type(0.0, TensorType::new(T::I1, r.b.dims(x)))),
        _ => Err(mismatch(op)),
    }
}

fn square(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    Ok(if r.b.element(x).is_complex() { complex::square(&mut r.b, x) } else { r.b.multiply(x, x) })
}

/// Decomposes `chlo.top_k`: the greatest elements along the last dimension and their indices; the first of equal
/// elements comes first.
fn top_k(r: &mut Rewriter<'_>, op: &Operation) -> Result<Vec<ValueId>, Error> {
    let [x] = r.operands(op)?;
    let k = attributes::integer(op, "k")?;
    let (ty, index) = (r.b.tensor(x), r.nth_result(op, 1)?.element_type());
    let Some(last) = ty.rank().checked_sub(1) else { return Err(mismatch(op)) };
    if !(0..=ty.dims()[last]).contains(&k) {
        return Err(unsupported(format!("attribute 'k': expected at most {}, found {k}", ty.dims()[last])));
    }
    Ok(top_k::top_k(&mut r.b, x, k, index, true).to_vec())
}
