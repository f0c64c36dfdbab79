//! Bits of floating-point numbers.

use crate::ir::ElementType;

/// The bits of the number of a float type that is nearest to a value, ties to even.
///
/// Values beyond the greatest number become infinity, or NaN where the type has no infinity, or the greatest number where
/// it has neither, as in LLVM's conversion.
pub(crate) fn float_bits(ty: ElementType, value: f64) -> u64 {
    use ElementType as T;
    match ty {
        T::F64 => return value.to_bits(),
        T::F32 => return u64::from((value as f32).to_bits()),
        _ => {}
    }
    let (exponent_bits, mantissa_bits) = (ty.exponent_bits(), ty.mantissa_bits());
    let sign_bit = 1u64 << (exponent_bits + mantissa_bits);
    let infinity = ((1u64 << exponent_bits) - 1) << mantissa_bits;
    let bias = match ty {
        T::F8E4M3FNUZ => 8,
        T::F8E4M3B11FNUZ => 11,
        T::F8E5M2FNUZ => 16,
        T::F8E8M0FNU => 127,
        _ => (1i32 << (exponent_bits - 1)) - 1,
    };
    // The greatest finite number, what is beyond it, and NaN.
    let (greatest, overflow, nan) = match ty {
        T::F8E4M3FNUZ | T::F8E4M3B11FNUZ | T::F8E5M2FNUZ => (sign_bit - 1, sign_bit, sign_bit),
        T::F8E4M3FN => (0x7e, 0x7f, 0x7f),
        T::F8E8M0FNU => (0xfe, 0xff, 0xff),
        T::F4E2M1FN | T::F6E2M3FN | T::F6E3M2FN => (sign_bit - 1, sign_bit - 1, 0),
        _ => (infinity - 1, infinity, infinity | 1 << mantissa_bits.saturating_sub(1)),
    };
    let sign = match ty {
        T::F8E8M0FNU => 0,
        _ if value.is_sign_negative() => sign_bit,
        _ => 0,
    };
    // A type without a sign has no negative numbers.
    let is_number = !value.is_nan() && (ty != T::F8E8M0FNU || value >= 0.0);
    let magnitude = if !is_number {
        nan
    } else if value.is_infinite() {
        overflow
    } else {
        let magnitude = value.abs();
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
        // In units of the last place.
        let units = (magnitude / 2f64.powi(exponent - mantissa_bits as i32)).round_ties_even() as u64;
        let rounded = ((exponent + bias - 1) as u64).wrapping_shl(mantissa_bits) + units;
        if rounded > greatest { overflow } else { rounded }
    };
    let has_negative_zero = !matches!(ty, T::F8E4M3FNUZ | T::F8E4M3B11FNUZ | T::F8E5M2FNUZ);
    if magnitude == 0 && !has_negative_zero { 0 } else { sign | magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytecode::float_value;

    #[test]
    fn every_number_of_small_types_has_its_own_bits() {
        for &ty in ElementType::ALL {
            if !ty.is_float() || ty.bits() > 16 {
                continue;
            }
            for raw in 0..1u64 << ty.bits() {
                let value = float_value(ty, raw);
                if !value.is_nan() {
                    assert_eq!(float_bits(ty, value), raw, "{ty} {value}");
                }
            }
        }
    }

    #[test]
    fn ties_round_to_even_and_overflow_follows_the_type() {
        assert_eq!(float_bits(ElementType::BF16, 1.0 + 1.0 / 256.0), 0x3f80);
        assert_eq!(float_bits(ElementType::BF16, 1.0 + 3.0 / 256.0), 0x3f82);
        assert_eq!(float_bits(ElementType::F16, 65520.0), 0x7c00);
        assert_eq!(float_bits(ElementType::F8E4M3FN, 1e9), 0x7f);
        assert_eq!(float_bits(ElementType::F4E2M1FN, -1e9), 0xf);
        assert_eq!(float_bits(ElementType::F8E4M3FNUZ, -0.0), 0);
        assert_eq!(float_bits(ElementType::F16, 1e-30), 0);
        assert_eq!(float_bits(ElementType::F8E8M0FNU, -1.0), 0xff);
    }
}
