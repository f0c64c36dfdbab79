//! CHLO's operations on the bits of numbers.

use crate::build::Builder;
use crate::ir::{ComparisonDirection as Cmp, ElementKind, ElementType, OpCode, ValueId};

/// `chlo.next_after`: the next representable number after `x` in the direction of `y`. Numbers of one sign are ordered
/// like their bits, so the next number is one step away in the bits. The number after zero is the least number with the
/// sign of `y`. Returns `None` for elements that are not floats of at least 16 bits.
pub(crate) fn next_after(b: &mut Builder, x: ValueId, y: ValueId) -> Option<ValueId> {
    let element = b.element(x);
    let bits = match element {
        ElementType::F16 | ElementType::BF16 => ElementType::I16,
        ElementType::F32 => ElementType::I32,
        ElementType::F64 => ElementType::I64,
        _ => return None,
    };
    let (x_bits, y_bits) = (b.bitcast_convert(x, bits), b.bitcast_convert(y, bits));
    let ty = b.tensor(x_bits);
    let sign_bit = b.integer(i64::MIN >> (64 - bits.bits()), ty.clone());
    let magnitude_bits = b.integer(!(i64::MIN >> (64 - bits.bits())), ty.clone());
    let (one, minus_one) = (b.integer(1, ty.clone()), b.integer(-1, ty));
    let (x_sign, y_sign) = (b.and(x_bits, sign_bit), b.and(y_bits, sign_bit));
    let (x_magnitude, y_magnitude) = (b.and(x_bits, magnitude_bits), b.and(y_bits, magnitude_bits));
    let signs_differ = b.compare(Cmp::Ne, x_sign, y_sign);
    let is_beyond = b.compare(Cmp::Gt, x_magnitude, y_magnitude);
    let goes_to_zero = b.or(is_beyond, signs_differ);
    let step = b.select(goes_to_zero, minus_one, one);
    let next = b.add(x_bits, step);
    let from_zero = b.or(y_sign, one);
    let x_is_zero = b.compare_with(Cmp::Eq, x_magnitude, 0.0);
    let next = b.select(x_is_zero, from_zero, next);
    let are_equal = b.compare(Cmp::Eq, x, y);
    let next = b.select(are_equal, y_bits, next);
    let next = b.bitcast_convert(next, element);
    // The sum of NaN and any number is NaN.
    let (x_is_nan, y_is_nan) = (b.compare(Cmp::Ne, x, x), b.compare(Cmp::Ne, y, y));
    let is_nan = b.or(x_is_nan, y_is_nan);
    let nan = b.add(x, y);
    Some(b.select(is_nan, nan, next))
}

/// `chlo.mulhi`: the upper half of a product's bits. Returns `None` for elements that are not integers.
pub(crate) fn mulhi(b: &mut Builder, x: ValueId, y: ValueId) -> Option<ValueId> {
    let element = b.element(x);
    let is_signed = element.kind() == ElementKind::SignedInteger;
    let wide = match element.bits() {
        _ if !element.is_integer() => return None,
        64 => return Some(mulhi_64(b, x, y, is_signed)),
        _ if is_signed => ElementType::I64,
        _ => ElementType::Ui64,
    };
    let (x, y) = (b.convert(x, wide), b.convert(y, wide));
    let product = b.multiply(x, y);
    let width = b.number(f64::from(element.bits()), product);
    let shift = if is_signed { OpCode::ShiftRightArithmetic } else { OpCode::ShiftRightLogical };
    let high = b.apply(shift, &[product, width]);
    Some(b.convert(high, element))
}

/// Computes the upper half from the products of the factors' halves and their carries. The upper half of a signed
/// product differs from that of the unsigned product by one factor if the other factor is negative.
fn mulhi_64(b: &mut Builder, x: ValueId, y: ValueId, is_signed: bool) -> ValueId {
    let ty = b.tensor(x);
    let low_bits = b.integer(0xffff_ffff, ty.clone());
    let width = b.integer(32, ty);
    let high = |b: &mut Builder, value: ValueId| b.shift_right_logical(value, width);
    let low = |b: &mut Builder, value: ValueId| b.and(value, low_bits);
    let (x_low, y_low) = (low(b, x), low(b, y));
    let (x_high, y_high) = (high(b, x), high(b, y));
    let low_low = b.multiply(x_low, y_low);
    let high_low = b.multiply(x_high, y_low);
    let low_high = b.multiply(x_low, y_high);
    let high_high = b.multiply(x_high, y_high);
    let carry = high(b, low_low);
    let middle = b.add(high_low, carry);
    let middle_low = low(b, middle);
    let other = b.add(low_high, middle_low);
    let (middle_high, other_high) = (high(b, middle), high(b, other));
    let sum = b.add(high_high, middle_high);
    let product = b.add(sum, other_high);
    if !is_signed {
        return product;
    }
    let zero = b.number(0.0, x);
    let correction = |b: &mut Builder, factor: ValueId, other: ValueId| {
        let is_negative = b.compare(Cmp::Lt, factor, zero);
        b.select(is_negative, other, zero)
    };
    let (from_x, from_y) = (correction(b, x, y), correction(b, y, x));
    let product = b.subtract(product, from_x);
    b.subtract(product, from_y)
}
