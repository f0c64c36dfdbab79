//! Operations on booleans, and on the bits of numbers.

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

/// `not`: a selection of booleans, or the difference from -1, whose bits are all set.
pub(crate) fn not(b: &mut Builder, x: ValueId) -> ValueId {
    let ty = b.tensor(x);
    if ty.element_type() == ElementType::I1 {
        let (no, yes) = (b.number(0.0, x), b.number(1.0, x));
        return b.select(x, no, yes);
    }
    let ones = b.integer(-1, ty);
    b.subtract(ones, x)
}

/// `and` of booleans.
pub(crate) fn and_of_booleans(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let no = b.number(0.0, x);
    b.select(x, y, no)
}

/// `or`: a selection of booleans, or the sum without the bits that are set in both.
pub(crate) fn or(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    if b.element(x) == ElementType::I1 {
        let yes = b.number(1.0, x);
        return b.select(x, yes, y);
    }
    let common = b.and(x, y);
    let sum = b.add(x, y);
    b.subtract(sum, common)
}

/// `xor`: a selection of booleans, or the bits that are set in one but not in both.
pub(crate) fn xor(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    if b.element(x) == ElementType::I1 {
        let negative = b.not(y);
        return b.select(x, negative, y);
    }
    let (all, common) = (b.or(x, y), b.and(x, y));
    b.subtract(all, common)
}

/// `popcnt`: sums of ever wider fields of bits.
pub(crate) fn population_count(b: &mut Builder, x: ValueId) -> ValueId {
    let ty = b.tensor(x);
    let bits = ty.element_type().bits();
    let mut counts = x;
    for width in (0..bits.ilog2()).map(|stage| 1 << stage) {
        // Fields of this width alternate with fields of zeros.
        let mask = u64::MAX / ((1 << width) + 1);
        let mask = b.integer(mask as i64, ty.clone());
        let shift = b.integer(width, ty.clone());
        let high = b.shift_right_logical(counts, shift);
        let (low, high) = (b.and(counts, mask), b.and(high, mask));
        counts = b.add(low, high);
    }
    counts
}

/// `count_leading_zeros`: the bits that are not set after every bit below the first one is.
pub(crate) fn count_leading_zeros(b: &mut Builder, x: ValueId) -> ValueId {
    let ty = b.tensor(x);
    let bits = ty.element_type().bits();
    let mut filled = x;
    for distance in (0..bits.ilog2()).map(|stage| 1 << stage) {
        let distance = b.integer(distance, ty.clone());
        let moved = b.shift_right_logical(filled, distance);
        filled = b.or(filled, moved);
    }
    let zeros = b.not(filled);
    b.popcnt(zeros)
}

/// A shift of integers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shift {
    Left,
    RightLogical,
    RightArithmetic,
}

/// A shift as products with, or quotients of, powers of two: one for each bit of the distance. Returns `None` for elements that
/// are not integers.
pub(crate) fn shift(b: &mut Builder, kind: Shift, x: ValueId, distance: ValueId) -> Option<ValueId> {
    let element = b.element(x);
    let unsigned = unsigned_of(element)?;
    if kind == Shift::RightArithmetic {
        let signed = b.bitcast_convert(x, signed_of(element)?);
        let distance = b.bitcast_convert(distance, unsigned);
        // The complement of a negative number is not negative, and its quotient is the complement of the result.
        let complement = b.not(signed);
        let is_negative = b.compare_with(Cmp::Lt, signed, 0.0);
        let size = b.select(is_negative, complement, signed);
        let size = b.bitcast_convert(size, unsigned);
        let size = shifted(b, size, distance, false);
        let size = b.bitcast_convert(size, signed_of(element)?);
        let complement = b.not(size);
        let result = b.select(is_negative, complement, size);
        return Some(b.bitcast_convert(result, element));
    }
    let (x, distance) = (b.bitcast_convert(x, unsigned), b.bitcast_convert(distance, unsigned));
    let result = shifted(b, x, distance, kind == Shift::Left);
    Some(b.bitcast_convert(result, element))
}

/// Shifts unsigned integers. Distances of at least the width give 0.
fn shifted(b: &mut Builder, x: ValueId, distance: ValueId, is_left: bool) -> ValueId {
    let ty = b.tensor(x);
    let bits = ty.element_type().bits();
    let (mut result, mut rest) = (x, distance);
    for step in (0..bits.ilog2()).rev().map(|stage| 1i64 << stage) {
        let limit = b.integer(step, ty.clone());
        let factor = b.integer(1 << step, ty.clone());
        let is_more = b.compare(Cmp::Ge, rest, limit);
        let less = b.subtract(rest, limit);
        let moved = if is_left { b.multiply(result, factor) } else { b.divide(result, factor) };
        result = b.select(is_more, moved, result);
        rest = b.select(is_more, less, rest);
    }
    let zero = b.zeros(ty);
    let is_all = b.compare(Cmp::Ne, rest, zero);
    b.select(is_all, zero, result)
}

/// Returns the unsigned integer type of the same width; `None` if the element is not an integer.
fn unsigned_of(element: ElementType) -> Option<ElementType> {
    Some(match element {
        ElementType::I2 | ElementType::Ui2 => ElementType::Ui2,
        ElementType::I4 | ElementType::Ui4 => ElementType::Ui4,
        ElementType::I8 | ElementType::Ui8 => ElementType::Ui8,
        ElementType::I16 | ElementType::Ui16 => ElementType::Ui16,
        ElementType::I32 | ElementType::Ui32 => ElementType::Ui32,
        ElementType::I64 | ElementType::Ui64 => ElementType::Ui64,
        _ => return None,
    })
}

/// Returns the signed integer type of the same width; `None` if the element is not an integer.
pub(crate) fn signed_of(element: ElementType) -> Option<ElementType> {
    Some(match unsigned_of(element)? {
        ElementType::Ui2 => ElementType::I2,
        ElementType::Ui4 => ElementType::I4,
        ElementType::Ui8 => ElementType::I8,
        ElementType::Ui16 => ElementType::I16,
        ElementType::Ui32 => ElementType::I32,
        _ => ElementType::I64,
    })
}

/// `compare` of floats by the total order of IEEE 754, as a comparison of integers. Returns `None` for elements without the
/// encoding of IEEE 754 or an integer type of the same width.
pub(crate) fn compare_total_order(
    b: &mut Builder,
    direction: Cmp,
    x: ValueId,
    y: ValueId,
) -> Option<ValueId> {
    let bits = match b.element(x) {
        ElementType::F8E3M4 | ElementType::F8E4M3 | ElementType::F8E4M3FN | ElementType::F8E5M2 => {
            ElementType::I8
        }
        ElementType::F16 | ElementType::BF16 => ElementType::I16,
        ElementType::F32 => ElementType::I32,
        ElementType::F64 => ElementType::I64,
        _ => return None,
    };
    let [x, y] = [x, y].map(|value| {
        let value = b.bitcast_convert(value, bits);
        // The order of negative numbers is the opposite of that of their bits.
        let greatest = b.integer(!(i64::MIN >> (64 - bits.bits())), b.tensor(value));
        let reversed = b.subtract(greatest, value);
        let is_negative = b.compare_with(Cmp::Lt, value, 0.0);
        b.select(is_negative, reversed, value)
    });
    Some(b.compare(direction, x, y))
}
