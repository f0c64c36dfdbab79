//! CHLO operations, which come in text only: portable artifacts have composites or expansions in their place.

use super::rewriter::Rewriter;
use super::rules::{Rewrite, ValueRule, mismatch};
use super::{attributes, bits, complex, hyperbolic, ragged_dot, scan, special, unsupported};
use crate::Error;
use crate::ir::ops::{Compare, Composite, CustomCall, Sort};
use crate::ir::{
    Attribute, ComparisonDirection as Cmp, ComparisonType, ElementType, Op, OpCode, Operation, TensorType,
    Type, ValueId,
};

/// How a CHLO operation is replaced.
pub(super) struct Rule {
    pub(super) name: &'static str,
    /// What it becomes, for documentation.
    pub(super) into: &'static str,
    pub(super) rewrite: Rewrite,
}

const fn rule(name: &'static str, into: &'static str, rewrite: Rewrite) -> Rule {
    Rule { name, into, rewrite }
}

/// The rules for CHLO operations.
pub(super) const RULES: &[Rule] = {
    use Rewrite::{Value, Values};
    const BROADCAST: &str = "`broadcast_in_dim` of the operands, and the operation";
    &[
        rule("chlo.acos", "`atan2`, `sqrt`, arithmetic", Value(hyperbolic::acos)),
        rule("chlo.acosh", "`log_plus_one`, `log`, `sqrt`, arithmetic", Value(hyperbolic::acosh)),
        rule("chlo.asin", "`atan2`, `sqrt`, arithmetic", Value(hyperbolic::asin)),
        rule("chlo.asinh", "`log_plus_one`, `log`, `sqrt`, arithmetic", Value(hyperbolic::asinh)),
        rule("chlo.atan", "`atan2`", Value(hyperbolic::atan)),
        rule("chlo.atanh", "`log_plus_one`, arithmetic", Value(hyperbolic::atanh)),
        rule("chlo.bessel_i1e", "power and Chebyshev series, `exponential`", Value(special::bessel_i1e)),
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
        rule("chlo.broadcast_polygamma", BROADCAST, Value(broadcast_polygamma)),
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
        rule("chlo.broadcast_zeta", BROADCAST, Value(broadcast_zeta)),
        rule("chlo.conj", "`real`, `imag`, `negate`, `complex`", Value(conj)),
        rule("chlo.constant", "`constant`", Value(constant)),
        rule("chlo.constant_like", "`constant`", Value(constant_like)),
        rule("chlo.cosh", "`exponential`, arithmetic", Value(hyperbolic::cosh)),
        rule("chlo.digamma", "Chebyshev and asymptotic series, recurrence", Value(special::digamma)),
        rule("chlo.erf", "Chebyshev series, `exponential`", Value(special::erf)),
        rule("chlo.erf_inv", "Chebyshev series, `log`, `sqrt`", Value(special::erf_inv)),
        rule("chlo.erfc", "Chebyshev series, `exponential`", Value(special::erfc)),
        rule("chlo.is_inf", "`abs`, `compare`", Value(is_inf)),
        rule("chlo.is_neg_inf", "`compare`", Value(is_neg_inf)),
        rule("chlo.is_pos_inf", "`compare`", Value(is_pos_inf)),
        rule("chlo.lgamma", "Lanczos' approximation and reflection", Value(special::lgamma)),
        rule("chlo.mulhi", "`convert`, `multiply`, shifts", Value(bits::mulhi)),
        rule("chlo.next_after", "arithmetic on the bits", Value(bits::next_after)),
        rule(
            "chlo.polygamma",
            "the operations of `chlo.zeta` and `chlo.digamma`, `gather` of factorials",
            Value(special::polygamma),
        ),
        rule(
            "chlo.ragged_dot",
            "`dot_general` of all groups, masks, `reduce`",
            Value(ragged_dot::ragged_dot),
        ),
        rule("chlo.scan", "`while`, `dynamic_slice`, `dynamic_update_slice`", Values(scan::scan)),
        rule("chlo.sinh", "`exponential_minus_one`, `exponential`, arithmetic", Value(hyperbolic::sinh)),
        rule("chlo.square", "`multiply`", Value(square)),
        rule("chlo.tan", "`tan`", Value(tan)),
        rule("chlo.top_k", "`iota`, `sort`, `slice`", Values(top_k)),
        rule("chlo.zeta", "sums and an asymptotic series", Value(special::zeta)),
    ]
};

/// Functions of real numbers without attributes, with the number of their operands.
const FUNCTIONS: &[(&str, usize)] = &[
    ("chlo.acos", 1),
    ("chlo.acosh", 1),
    ("chlo.asin", 1),
    ("chlo.asinh", 1),
    ("chlo.atan", 1),
    ("chlo.atanh", 1),
    ("chlo.bessel_i1e", 1),
    ("chlo.cosh", 1),
    ("chlo.digamma", 1),
    ("chlo.erf", 1),
    ("chlo.erf_inv", 1),
    ("chlo.erfc", 1),
    ("chlo.lgamma", 1),
    ("chlo.polygamma", 2),
    ("chlo.sinh", 1),
    ("chlo.tan", 1),
    ("chlo.zeta", 2),
];

/// The values of a composite that stands for an operation of CHLO's; `None` for those whose decomposition is
/// called instead.
pub(super) fn composite<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    composite: &Composite,
) -> Result<Option<Vec<ValueId>>, Error> {
    if scan::overrides_decomposition(r.module, op, composite)? {
        return scan::composite(r, op).map(Some);
    }
    rule_for_composite(r, op, composite).map(|rule| Ok(vec![rule(r, op)?])).transpose()
}

/// The rule for a composite with the name of one of [`FUNCTIONS`]. The rules here are more accurate than the decompositions
/// that compilers write into programs.
fn rule_for_composite(r: &Rewriter<'_>, op: &Operation, composite: &Composite) -> Option<ValueRule> {
    FUNCTIONS.iter().find(|&&(name, operands)| name == &*composite.name && operands == op.operands.len())?;
    let ty = r.any_result(op).ok().filter(|ty| ty.element_type().is_float())?;
    let mut types = op.operands.iter().map(|&operand| r.old_type(operand));
    let is_plain = composite.composite_attributes.is_empty()
        && op.results.len() == 1
        && ty.num_elements().is_some()
        && types.all(|operand| operand.as_tensor() == Some(&ty));
    match RULES.iter().find(|rule| rule.name == &*composite.name)?.rewrite {
        Rewrite::Value(rule) if is_plain => Some(rule),
        _ => None,
    }
}

/// The rule of the function that a custom call stands for: XLA's exporter to StableHLO writes `mhlo.erf` and others that
/// StableHLO has no operation for as calls.
pub(super) fn rule_of_call(call: &CustomCall) -> Option<&'static Rule> {
    let name = match call.call_target_name.strip_prefix("mhlo.")? {
        "topk" => "top_k",
        name if FUNCTIONS.iter().any(|(function, _)| function.strip_prefix("chlo.") == Some(name)) => name,
        _ => return None,
    };
    RULES.iter().find(|rule| rule.name.strip_prefix("chlo.") == Some(name))
}

/// A custom call that [`rule_of_call`] has a rule for. Nobody has verified its types.
pub(super) fn custom_call<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let Op::CustomCall(call) = &op.kind else { return Err(mismatch(op)) };
    let rewrite = rule_of_call(call).ok_or_else(|| mismatch(op))?.rewrite;
    let operands: Option<Vec<_>> =
        op.operands.iter().map(|&operand| r.old_type(operand).as_tensor()).collect();
    let Some([first, others @ ..]) = operands.as_deref() else { return Err(mismatch(op)) };
    if first.num_elements().is_none() || others.iter().any(|other| other != first) {
        return Err(mismatch(op));
    }
    let is_largest = attributes::get(op, "largest").is_none_or(|largest| largest.as_bool() == Some(true));
    let values = match rewrite {
        Rewrite::Value(rule) if first.element_type().is_float() => vec![rule(r, op)?],
        Rewrite::Values(rule) if is_largest => rule(r, op)?,
        _ => return Err(mismatch(op)),
    };
    let types = values.iter().map(|&value| Type::from(r.b.ty(value)));
    if !types.eq(r.result_types(op)) {
        return Err(mismatch(op));
    }
    Ok(values)
}

/// The operands, repeated to the shape of the result as `broadcast_dimensions` says, or with their last dimensions
/// aligned.
fn broadcasted<const N: usize>(r: &mut Rewriter<'_>, op: &Operation) -> Result<[ValueId; N], Error> {
    let mut operands: [ValueId; N] = r.operands(op)?;
    let mut dims: Vec<i64> = Vec::new();
    let given = attributes::integers(op, "broadcast_dimensions")?;
    let rank = operands.iter().map(|&x| r.b.ty(x).rank()).max().unwrap_or(0);
    let mut places = Vec::with_capacity(N);
    for &x in &operands {
        let own = r.b.ty(x).rank();
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
                    "sizes {slot} and {size} of dimension {p} do not broadcast"
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

/// A binary operation with broadcasting.
fn broadcast(r: &mut Rewriter<'_>, op: &Operation, code: OpCode) -> Result<ValueId, Error> {
    let operands: [ValueId; 2] = broadcasted(r, op)?;
    let result = r.any_result(op)?.with_dims(r.b.dims(operands[0]));
    Ok(r.b.plain(code, &operands, result))
}

fn broadcast_compare(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let operands: [ValueId; 2] = broadcasted(r, op)?;
    let comparison_direction = attributes::comparison_direction(op)?;
    let compare_type = attributes::comparison_type(op)?;
    let result = TensorType::new(ElementType::I1, r.b.dims(operands[0]));
    Ok(r.b.op(Op::Compare(Compare { comparison_direction, compare_type }), &operands, result))
}

fn broadcast_select(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [predicate, on_true, on_false] = broadcasted(r, op)?;
    Ok(r.b.select(predicate, on_true, on_false))
}

fn broadcast_next_after(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x, y] = broadcasted(r, op)?;
    bits::next_after_of(&mut r.b, x, y).ok_or_else(|| mismatch(op))
}

fn broadcast_polygamma(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [n, x] = broadcasted(r, op)?;
    special::polygamma_of(r, op, n, x)
}

fn broadcast_zeta(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x, q] = broadcasted(r, op)?;
    special::zeta_of(r, op, x, q)
}

/// The complex conjugate.
fn conj(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    if !r.b.element(x).is_complex() {
        return Ok(x);
    }
    let (real, imag) = complex::parts(&mut r.b, x);
    let negative = r.b.neg(imag);
    Ok(complex::complex(&mut r.b, real, negative))
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
        Attribute::Integer { value, .. } => Ok(r.b.splat(*value as f64, result)),
        Attribute::Bool(value) => Ok(r.b.splat(f64::from(u8::from(*value)), result)),
        Attribute::Float { value, .. } => Ok(r.b.splat(*value, result)),
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
        // The others have no infinity.
        element if element.is_float() => Ok(r.b.splat(0.0, TensorType::new(T::I1, r.b.dims(x)))),
        _ => Err(mismatch(op)),
    }
}

fn square(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    Ok(if r.b.element(x).is_complex() { complex::square(&mut r.b, x) } else { r.b.mul(x, x) })
}

fn tan(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    Ok(r.b.same(OpCode::Tan, &[x]))
}

/// `chlo.top_k`: the greatest elements of the last dimension and where they are, of equal ones the first.
fn top_k(r: &mut Rewriter<'_>, op: &Operation) -> Result<Vec<ValueId>, Error> {
    let [x] = r.operands(op)?;
    let k = attributes::integer(op, "k")?;
    let (ty, index) = (r.b.ty(x), r.nth_result(op, 1)?.element_type());
    let Some(last) = ty.rank().checked_sub(1) else { return Err(mismatch(op)) };
    if !(0..=ty.dims()[last]).contains(&k) {
        return Err(unsupported(format!("attribute 'k': expected at most {}, found {k}", ty.dims()[last])));
    }
    let positions = r.b.iota(index, ty.dims(), last as i64);
    let position_ty = r.b.ty(positions);
    let kind = Op::Sort(Sort { dimension: last as i64, is_stable: true });
    let sort = r.b.add_op(kind, &[x, positions], vec![ty.clone().into(), position_ty.into()]);
    let (value, position) = (TensorType::new(ty.element_type(), []), TensorType::new(index, []));
    let region = r.b.begin_region(sort, &[&value, &value, &position, &position].map(|ty| ty.clone().into()));
    let compare_type =
        if ty.element_type().is_float() { ComparisonType::TotalOrder } else { ComparisonType::NoType };
    let kind = Op::Compare(Compare { comparison_direction: Cmp::Gt, compare_type });
    let is_greater = r.b.op(kind, &region.values[..2], TensorType::new(ElementType::I1, []));
    r.b.end_region(region, &[is_greater]);
    let mut limit = ty.dims().to_vec();
    limit[last] = k;
    let start = vec![0; limit.len()];
    let sorted: Vec<ValueId> = r.b.body.op(sort).results.collect();
    Ok(sorted.into_iter().map(|value| r.b.slice(value, &start, &limit)).collect())
}
