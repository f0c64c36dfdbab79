//! Rules for elementwise operations whose decomposition depends on the element type or on constant operands.

use crate::build::Builder;
use crate::formulas::{
    arithmetic, bits, both_at_least_f32, complex_elementary as complex, elementwise, power as powers,
    with_sign,
};
use crate::ir::ops::OptimizationBarrier;
use crate::ir::{
    ComparisonDirection as Cmp, ComparisonType, ElementKind, ElementType, Literal, LiteralData, Op,
    Operation, TensorType, ValueId,
};
use crate::passes::rewrite::{Rewriter, constant_splat, mismatch, unsupported};
use crate::{Bytes, Error};

/// Returns the error for an element type for which a rule has no formula.
fn no_formula(r: &Rewriter<'_>, op: &Operation, x: ValueId, expected: &str) -> Error {
    unsupported(format!(
        "{} of element type {} cannot be decomposed, expected {expected}",
        op.kind.name(),
        r.b.element(x)
    ))
}

/// Decomposes `clamp`.
pub(super) fn clamp(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [min, x, max] = r.operands(op)?;
    Ok(elementwise::clamp(&mut r.b, min, x, max))
}

/// Decomposes `sign`.
pub(super) fn sign(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    match r.b.element(x).kind() {
        ElementKind::Float | ElementKind::SignedInteger => {
            Ok(with_sign(&mut r.b, &[x], |b, x| elementwise::sign(b, x[0])))
        }
        ElementKind::Complex => Ok(complex::sign(&mut r.b, x)),
        _ => Err(mismatch(op)),
    }
}

/// Decomposes `abs`.
pub(super) fn abs(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    match r.b.element(x).kind() {
        ElementKind::Float | ElementKind::SignedInteger | ElementKind::Complex => {
            Ok(with_sign(&mut r.b, &[x], |b, x| arithmetic::abs(b, x[0])))
        }
        _ => Err(mismatch(op)),
    }
}

/// Decomposes `negate`.
pub(super) fn negate(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    Ok(with_sign(&mut r.b, &[x], |b, x| arithmetic::negate(b, x[0])))
}

/// Decomposes `subtract`.
pub(super) fn subtract(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x, y] = r.operands(op)?;
    Ok(with_sign(&mut r.b, &[x, y], |b, x| arithmetic::subtract(b, x[0], x[1])))
}

/// Decomposes `maximum`.
pub(super) fn maximum(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    extremum(r, op, Cmp::Gt)
}

/// Decomposes `minimum`.
pub(super) fn minimum(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    extremum(r, op, Cmp::Lt)
}

fn extremum(r: &mut Rewriter<'_>, op: &Operation, direction: Cmp) -> Result<ValueId, Error> {
    let [x, y] = r.operands(op)?;
    if r.b.element(x).is_complex() {
        return Ok(complex::extremum(&mut r.b, direction, x, y));
    }
    Ok(with_sign(&mut r.b, &[x, y], |b, x| arithmetic::extremum(b, direction, x[0], x[1])))
}

/// Decomposes `remainder`.
pub(super) fn remainder(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x, y] = r.operands(op)?;
    match r.b.element(x).kind() {
        ElementKind::Float => Ok(both_at_least_f32(&mut r.b, arithmetic::remainder_of_floats, x, y)),
        ElementKind::SignedInteger | ElementKind::UnsignedInteger => {
            Ok(arithmetic::remainder_of_integers(&mut r.b, x, y))
        }
        _ => Err(no_formula(r, op, x, "a real type")),
    }
}

/// Decomposes `power`.
pub(super) fn power(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x, y] = r.operands(op)?;
    let element = r.b.element(x);
    match element.kind() {
        ElementKind::Float => float_power(r, op, x, y),
        ElementKind::Complex => Ok(complex::power(&mut r.b, x, y)),
        ElementKind::SignedInteger | ElementKind::UnsignedInteger => {
            let exponent = constant_splat(r.b.body(), y);
            let exponent = exponent.and_then(|value| value.to_i64s(1)).map(|values| u32::try_from(values[0]));
            Ok(match exponent {
                Some(Ok(exponent)) => powers::integer_constant(&mut r.b, x, exponent),
                _ => powers::integer(&mut r.b, x, y),
            })
        }
        _ => Err(no_formula(r, op, x, "a real type")),
    }
}

fn float_power(r: &mut Rewriter<'_>, op: &Operation, x: ValueId, y: ValueId) -> Result<ValueId, Error> {
    let element = r.b.element(x);
    let exponent = constant_splat(r.b.body(), y);
    if let Some(exponent) = exponent.and_then(|value| value.to_f64s(1)) {
        let wide = if element == ElementType::F64 { x } else { r.b.convert(x, ElementType::F32) };
        if let Some(value) = powers::float_constant(&mut r.b, wide, exponent[0]) {
            return Ok(r.b.convert(value, element));
        }
    }
    if !powers::is_accurate(element) {
        return Err(unsupported(format!(
            "{} of {element} can be decomposed only if the exponent is a constant up to 32 in magnitude and a multiple of \
             0.5, because exp(y log(x)) would lose up to 10 bits",
            op.kind.name()
        )));
    }
    Ok(both_at_least_f32(&mut r.b, powers::float, x, y))
}

/// Decomposes `not`.
pub(super) fn not(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    Ok(bits::not(&mut r.b, x))
}

/// Decomposes `and` of booleans.
pub(super) fn and(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x, y] = r.operands(op)?;
    match r.b.element(x) {
        ElementType::I1 => Ok(bits::and_of_booleans(&mut r.b, x, y)),
        _ => Err(no_formula(r, op, x, "i1")),
    }
}

/// Decomposes `or`.
pub(super) fn or(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x, y] = r.operands(op)?;
    Ok(bits::or(&mut r.b, x, y))
}

/// Decomposes `xor`.
pub(super) fn xor(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x, y] = r.operands(op)?;
    Ok(bits::xor(&mut r.b, x, y))
}

/// Decomposes `popcnt`.
pub(super) fn population_count(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    Ok(bits::population_count(&mut r.b, x))
}

/// Decomposes `count_leading_zeros`.
pub(super) fn count_leading_zeros(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    Ok(bits::count_leading_zeros(&mut r.b, x))
}

/// Decomposes `shift_left`.
pub(super) fn shift_left(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    shift(r, op, bits::Shift::Left)
}

/// Decomposes `shift_right_logical`.
pub(super) fn shift_right_logical(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    shift(r, op, bits::Shift::RightLogical)
}

/// Decomposes `shift_right_arithmetic`.
pub(super) fn shift_right_arithmetic(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    shift(r, op, bits::Shift::RightArithmetic)
}

fn shift(r: &mut Rewriter<'_>, op: &Operation, kind: bits::Shift) -> Result<ValueId, Error> {
    let [x, distance] = r.operands(op)?;
    bits::shift(&mut r.b, kind, x, distance).ok_or_else(|| mismatch(op))
}

/// Decomposes `compare` of floats by their total order, and of complex numbers.
pub(super) fn compare(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Compare(compare) = &op.kind else { return Err(mismatch(op)) };
    let [x, y] = r.operands(op)?;
    let direction = compare.comparison_direction;
    let value = match r.b.element(x).kind() {
        ElementKind::Float if compare.compare_type == ComparisonType::TotalOrder => {
            bits::compare_total_order(&mut r.b, direction, x, y)
        }
        ElementKind::Complex => Some(complex::compare(&mut r.b, direction, x, y)),
        _ => None,
    };
    value.ok_or_else(|| {
        no_formula(r, op, x, "complex numbers, or floats that are compared by their total order")
    })
}

/// Decomposes a `bitcast_convert` to the type of the operand.
pub(super) fn bitcast_convert(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let ([x], result) = (r.operands(op)?, r.result(op)?);
    let ty = r.b.tensor(x);
    match ty == result {
        true => Ok(x),
        false => Err(unsupported(format!("{} of {ty} to {result} cannot be decomposed", op.kind.name()))),
    }
}

/// Decomposes a `constant` of complex numbers.
pub(super) fn constant(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Constant(constant) = &op.kind else { return Err(mismatch(op)) };
    let ty = constant.value.ty();
    let Some(element) = ty.element_type().complex_part() else {
        return Err(unsupported(format!(
            "{} of element type {} cannot be decomposed",
            op.kind.name(),
            ty.element_type()
        )));
    };
    let width = element.byte_width();
    let part = |index: usize| -> Result<Literal, Error> {
        let part = |bytes: &[u8]| -> Bytes {
            bytes.chunks_exact(width).skip(index).step_by(2).flatten().copied().collect::<Vec<_>>().into()
        };
        let data = match constant.value.data() {
            LiteralData::Dense(bytes) => LiteralData::Dense(part(bytes)),
            LiteralData::Splat(bytes) | LiteralData::Bits(bytes) => LiteralData::Splat(part(bytes)),
        };
        let part = Literal::new(TensorType::new(element, ty.dims()), data);
        part.map_err(|error| unsupported(error.to_string()))
    };
    let (real, imag) = (r.b.constant(part(0)?), r.b.constant(part(1)?));
    Ok(r.b.complex(real, imag))
}

/// Decomposes `convert` from and to complex numbers and booleans, from integers to unsigned ones, whose bits are those of signed
/// ones, and between floats of less than 32 bits and other types. The latter have a step at `f32`: numbers with more bits than
/// `f32` are rounded twice.
pub(super) fn convert(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let ([x], result) = (r.operands(op)?, r.result(op)?);
    let (from, to) = (r.b.element(x), result.element_type());
    let is_narrow = |element: ElementType| element.is_float() && element.bits() < 32;
    match (from, to) {
        _ if from.is_complex() || to.is_complex() => Ok(convert_parts(&mut r.b, x, to)),
        (ElementType::I1, ElementType::I1) => Ok(x),
        (ElementType::I1, _) => Ok(arithmetic::from_boolean(&mut r.b, x, to)),
        (_, ElementType::I1) => Ok(r.b.compare_with(Cmp::Ne, x, 0.0)),
        _ if from != ElementType::F32 && to != ElementType::F32 && (is_narrow(from) || is_narrow(to)) => {
            let wide = r.b.convert(x, ElementType::F32);
            // Compilers unite a conversion of integers with the one after it, and then lack what they have made.
            let kept = if from.is_integer() { r.b.op(OptimizationBarrier {}, &[wide]) } else { wide };
            Ok(r.b.convert(kept, to))
        }
        _ => match bits::signed_of(to).filter(|signed| from.is_integer() && *signed != to) {
            Some(signed) => {
                let converted = r.b.convert(x, signed);
                Ok(r.b.bitcast_convert(converted, to))
            }
            None => Err(unsupported(format!(
                "{} from {from} to {to} cannot be decomposed, expected one of them to be i1, or both to be integers and \
                 the result to be unsigned, or one of them to be a float of less than 32 bits",
                op.kind.name()
            ))),
        },
    }
}

/// Converts from or to complex numbers. The imaginary part of a real number is zero, and that of a complex number is lost.
fn convert_parts(b: &mut Builder, x: ValueId, to: ElementType) -> ValueId {
    let is_complex = b.element(x).is_complex();
    let real = if is_complex { b.real(x) } else { x };
    let Some(part) = to.complex_part() else { return b.convert(real, to) };
    let real = b.convert(real, part);
    let imag = if is_complex { b.imag(x) } else { b.number(0.0, real) };
    let imag = b.convert(imag, part);
    b.complex(real, imag)
}

/// Decomposes `select` with one predicate for all elements.
pub(super) fn select(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let ([predicate, on_true, on_false], result) = (r.operands(op)?, r.result(op)?);
    if r.b.tensor(predicate).rank() == result.rank() {
        return Err(unsupported(format!(
            "{} cannot be decomposed, unless the predicate is a scalar and the operands are not",
            op.kind.name()
        )));
    }
    let predicate = r.b.broadcast_scalar(predicate, result.dims());
    Ok(r.b.select(predicate, on_true, on_false))
}
