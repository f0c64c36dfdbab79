//! Conversion of floating-point numbers of every type to and from their bits.

use super::ElementType;

/// Returns the bits of the number of a float type that is nearest to `value`, ties to even.
///
/// Values beyond the greatest finite number become infinity, or NaN if the type has no infinity, or the greatest finite
/// number if it has neither, as in LLVM.
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
    // The magnitudes of the greatest finite number, of greater values, and of NaN.
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
    // `f8E8M0FNU` has no sign, so negative values become NaN.
    let is_number = !value.is_nan() && (ty != T::F8E8M0FNU || value >= 0.0);
    let magnitude = if !is_number {
        nan
    } else if value.is_infinite() {
        overflow
    } else {
        let magnitude = value.abs();
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
        // The magnitude in units in the last place.
        let units = (magnitude / 2f64.powi(exponent - mantissa_bits as i32)).round_ties_even() as u64;
        let rounded = ((exponent + bias - 1) as u64).wrapping_shl(mantissa_bits) + units;
        if rounded > greatest { overflow } else { rounded }
    };
    let has_negative_zero = !matches!(ty, T::F8E4M3FNUZ | T::F8E4M3B11FNUZ | T::F8E5M2FNUZ);
    if magnitude == 0 && !has_negative_zero { 0 } else { sign | magnitude }
}

/// Returns the exact value of a float with these bits.
pub(crate) fn float_value(ty: ElementType, raw: u64) -> f64 {
    match ty {
        ElementType::F64 => return f64::from_bits(raw),
        ElementType::F32 => return f64::from(f32::from_bits(raw as u32)),
        _ => {}
    }
    let (exponent_bits, mantissa_bits) = (ty.exponent_bits(), ty.mantissa_bits());
    let mantissa = raw & ((1 << mantissa_bits) - 1);
    let exponent = raw >> mantissa_bits & ((1 << exponent_bits) - 1);
    if ty == ElementType::F8E8M0FNU {
        return if exponent == 0xff { f64::NAN } else { 2f64.powi(exponent as i32 - 127) };
    }
    let sign = raw >> (exponent_bits + mantissa_bits) & 1;
    let magnitude_bits = raw & ((1 << (exponent_bits + mantissa_bits)) - 1);
    let all_ones = (1 << exponent_bits) - 1;
    use ElementType as T;
    let (bias, special) = match ty {
        T::F8E4M3FNUZ => (8, sign == 1 && magnitude_bits == 0),
        T::F8E4M3B11FNUZ => (11, sign == 1 && magnitude_bits == 0),
        T::F8E5M2FNUZ => (16, sign == 1 && magnitude_bits == 0),
        T::F8E4M3FN => (7, exponent == all_ones && mantissa == 7),
        T::F4E2M1FN | T::F6E2M3FN | T::F6E3M2FN => ((1 << (exponent_bits - 1)) - 1, false),
        _ => ((1 << (exponent_bits - 1)) - 1, exponent == all_ones),
    };
    let has_infinity = matches!(ty, T::F8E3M4 | T::F8E4M3 | T::F8E5M2 | T::F16 | T::BF16 | T::Tf32);
    let magnitude = if special {
        if has_infinity && mantissa == 0 { f64::INFINITY } else { f64::NAN }
    } else if exponent == 0 {
        mantissa as f64 * 2f64.powi(1 - bias - mantissa_bits as i32)
    } else {
        (mantissa | 1 << mantissa_bits) as f64 * 2f64.powi(exponent as i32 - bias - mantissa_bits as i32)
    };
    if sign == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_every_kind() {
        for (ty, raw, value) in [
            (ElementType::F16, 0x3c00, 1.0),
            (ElementType::F16, 0x0001, 5.960464477539063e-8),
            (ElementType::F16, 0xfc00, f64::NEG_INFINITY),
            (ElementType::BF16, 0x3fc0, 1.5),
            (ElementType::F8E4M3FN, 0x7e, 448.0),
            (ElementType::F8E5M2, 0x7b, 57344.0),
            (ElementType::F8E4M3FNUZ, 0x7f, 240.0),
            (ElementType::F8E8M0FNU, 0x80, 2.0),
            (ElementType::F4E2M1FN, 0x7, 6.0),
            (ElementType::F6E3M2FN, 0x1f, 28.0),
        ] {
            assert_eq!(float_value(ty, raw), value, "{ty} {raw:#x}");
        }
        assert!(float_value(ElementType::F8E4M3FNUZ, 0x80).is_nan());
        assert!(float_value(ElementType::F8E4M3FN, 0x7f).is_nan());
    }

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
