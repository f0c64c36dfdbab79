//! Conversions between f32 and the narrow floats (f16, bf16 and the 8-, 6- and 4-bit floats).

use crate::DType;

/// The meaning of the largest codes of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Top {
    /// The largest exponent holds infinity and NaNs, as in IEEE 754.
    Ieee,
    /// The largest code is NaN; the format has no infinity.
    Nan,
    /// The code of negative zero is NaN; the format has neither infinity nor negative zero.
    Unsigned,
    /// Every code is a finite number.
    Finite,
}

/// A float format with a sign bit, of at most 16 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    exponent: u32,
    mantissa: u32,
    bias: u32,
    top: Top,
}

impl Format {
    const fn new(exponent: u32, mantissa: u32, bias: u32, top: Top) -> Self {
        Self { exponent, mantissa, bias, top }
    }

    /// Returns the number of exponent bits.
    pub(crate) const fn exponent_bits(self) -> u32 {
        self.exponent
    }

    /// Returns the number of mantissa bits.
    pub(crate) const fn mantissa_bits(self) -> u32 {
        self.mantissa
    }

    /// Returns the smallest normal number, which f32 represents exactly.
    pub(crate) const fn smallest_normal(self) -> f32 {
        Self::power(self.min_exponent())
    }

    const fn sign_bit(self) -> u32 {
        1 << (self.exponent + self.mantissa)
    }

    /// Returns the code of infinity, or the first code above the finite ones.
    const fn limit(self) -> u32 {
        match self.top {
            Top::Ieee => ((1 << self.exponent) - 1) << self.mantissa,
            Top::Nan => self.sign_bit() - 1,
            Top::Unsigned | Top::Finite => self.sign_bit(),
        }
    }

    /// Returns the bits of a power of two as f32.
    const fn power(e: i32) -> f32 {
        f32::from_bits(((e + 127) as u32) << 23)
    }

    /// Returns the exponent of the smallest normal number.
    const fn min_exponent(self) -> i32 {
        1 - self.bias as i32
    }
}

/// A type for a narrow float with a sign.
pub(crate) trait Narrow: 'static {
    /// The format.
    const FORMAT: Format;

    /// Returns the bits of the value nearest to `x`, with ties to even. Values that are too large become
    /// infinity, NaN or the largest number, whichever the format has, in this order. NaN becomes negative
    /// zero if the format has no NaN.
    #[inline(always)]
    fn encode(x: f32) -> u32 {
        let f = Self::FORMAT;
        let bits = x.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        let shift = 23 - f.mantissa;
        let normal = {
            let odd = magnitude >> shift & 1;
            let rounded = magnitude + ((1 << (shift - 1)) - 1) + odd;
            (rounded >> shift).wrapping_sub((127 - f.bias) << f.mantissa)
        };
        let subnormal = {
            // Adding 2^23 units in the last place rounds to a whole number of units.
            let magic = Format::power(23 + f.min_exponent() - f.mantissa as i32);
            (f32::from_bits(magnitude) + magic).to_bits().wrapping_sub(magic.to_bits())
        };
        let is_subnormal = magnitude < f.smallest_normal().to_bits();
        let code = if is_subnormal { subnormal } else { normal };
        let is_nan = magnitude > 0x7f80_0000;
        let sign = (bits >> 31) * f.sign_bit();
        let limit = f.limit();
        match f.top {
            Top::Ieee => {
                let code = if code > limit { limit } else { code };
                let code = if is_nan { limit | 1 << (f.mantissa - 1) } else { code };
                code | sign
            }
            Top::Nan => {
                let code = if code > limit || is_nan { limit } else { code };
                code | sign
            }
            Top::Unsigned => {
                let signed = if code == 0 { 0 } else { code | sign };
                if code >= limit || is_nan { f.sign_bit() } else { signed }
            }
            Top::Finite => {
                let code = if code >= limit { limit - 1 } else { code };
                if is_nan { f.sign_bit() } else { code | sign }
            }
        }
    }

    /// Returns the value of these bits. A NaN keeps its sign and its payload, which determine its place in
    /// the total order. The NaN of formats without negative zero has the bits of negative zero.
    #[inline(always)]
    fn decode(bits: u32) -> f32 {
        let f = Self::FORMAT;
        let code = bits & (f.sign_bit() - 1);
        let sign = (bits & f.sign_bit()) << (31 - f.exponent - f.mantissa);
        let normal = f32::from_bits((code << (23 - f.mantissa)).wrapping_add((127 - f.bias) << 23));
        let subnormal = code as i32 as f32 * Format::power(f.min_exponent() - f.mantissa as i32);
        let value = if code >> f.mantissa == 0 { subnormal } else { normal };
        let limit = f.limit();
        let value = match f.top {
            Top::Ieee if code == limit => f32::INFINITY,
            Top::Ieee if code > limit => f32::from_bits(0x7f80_0000 | code << (23 - f.mantissa)),
            Top::Nan if code == limit => f32::NAN,
            _ => value,
        };
        let is_nan = f.top == Top::Unsigned && bits & (2 * f.sign_bit() - 1) == f.sign_bit();
        let value = if is_nan { f32::NAN } else { value };
        f32::from_bits(value.to_bits() | sign)
    }
}

macro_rules! formats {
    ($($name:ident $e:literal $m:literal $bias:literal $top:ident;)*) => {$(
        #[doc = concat!("[`DType::", stringify!($name), "`] as a Rust type.")]
        pub(crate) struct $name;
        impl Narrow for $name {
            const FORMAT: Format = Format::new($e, $m, $bias, Top::$top);
        }
    )*};
}
formats! {
    F4E2M1FN 2 1 1 Finite;
    F6E2M3FN 2 3 1 Finite;
    F6E3M2FN 3 2 3 Finite;
    F8E3M4 3 4 3 Ieee;
    F8E4M3 4 3 7 Ieee;
    F8E4M3FN 4 3 7 Nan;
    F8E4M3B11FNUZ 4 3 11 Unsigned;
    F8E4M3FNUZ 4 3 8 Unsigned;
    F8E5M2 5 2 15 Ieee;
    F8E5M2FNUZ 5 2 16 Unsigned;
    F16 5 10 15 Ieee;
}

/// [`DType::BF16`] as a Rust type.
pub(crate) struct BF16;
impl Narrow for BF16 {
    const FORMAT: Format = Format::new(8, 7, 127, Top::Ieee);

    #[inline(always)]
    fn encode(x: f32) -> u32 {
        let bits = x.to_bits();
        let rounded = (bits.wrapping_add(0x7fff + (bits >> 16 & 1))) >> 16;
        if x.is_nan() { bits >> 16 | 0x40 } else { rounded }
    }

    #[inline(always)]
    fn decode(bits: u32) -> f32 {
        f32::from_bits(bits << 16)
    }
}

/// [`DType::F8E8M0FNU`] as a Rust type: a power of two without a sign.
pub(crate) struct F8E8M0FNU;
impl Narrow for F8E8M0FNU {
    const FORMAT: Format = Format::new(8, 0, 127, Top::Nan);

    #[inline(always)]
    fn encode(x: f32) -> u32 {
        let bits = x.to_bits();
        // A mantissa of 1.5 is halfway between two powers. Because there is no mantissa to be even, it is
        // rounded up, as in XLA.
        let normal = bits.wrapping_add(0x40_0000) >> 23;
        // For subnormal f32, 2^-127 is code 0, the smallest; values at least halfway to 2^-126 are code 1.
        let small = u32::from(bits >= 0x60_0000);
        let code = if bits < 0x80_0000 { small } else { normal };
        if x > 0.0 && code < 255 { code } else { 255 }
    }

    #[inline(always)]
    fn decode(bits: u32) -> f32 {
        let code = bits & 0xff;
        let value = if code == 0 { f32::from_bits(0x40_0000) } else { f32::from_bits(code << 23) };
        if code == 255 { f32::NAN } else { value }
    }
}

/// Calls a generic function with the Rust type of a narrow float, or returns `None` for other types.
macro_rules! with_narrow {
    ($dtype:expr, $f:ident) => {
        match $dtype {
            $crate::DType::F4E2M1FN => Some($f!($crate::convert::F4E2M1FN, u8)),
            $crate::DType::F6E2M3FN => Some($f!($crate::convert::F6E2M3FN, u8)),
            $crate::DType::F6E3M2FN => Some($f!($crate::convert::F6E3M2FN, u8)),
            $crate::DType::F8E3M4 => Some($f!($crate::convert::F8E3M4, u8)),
            $crate::DType::F8E4M3 => Some($f!($crate::convert::F8E4M3, u8)),
            $crate::DType::F8E4M3FN => Some($f!($crate::convert::F8E4M3FN, u8)),
            $crate::DType::F8E4M3B11FNUZ => Some($f!($crate::convert::F8E4M3B11FNUZ, u8)),
            $crate::DType::F8E4M3FNUZ => Some($f!($crate::convert::F8E4M3FNUZ, u8)),
            $crate::DType::F8E5M2 => Some($f!($crate::convert::F8E5M2, u8)),
            $crate::DType::F8E5M2FNUZ => Some($f!($crate::convert::F8E5M2FNUZ, u8)),
            $crate::DType::F8E8M0FNU => Some($f!($crate::convert::F8E8M0FNU, u8)),
            $crate::DType::F16 => Some($f!($crate::convert::F16, u16)),
            $crate::DType::BF16 => Some($f!($crate::convert::BF16, u16)),
            _ => None,
        }
    };
}
pub(crate) use with_narrow;

/// Returns the format of a narrow float, or `None` if `dtype` is not one.
pub(crate) fn format(dtype: DType) -> Option<Format> {
    macro_rules! format {
        ($n:ty, $b:ty) => {
            <$n>::FORMAT
        };
    }
    with_narrow!(dtype, format)
}

/// Returns the f32 value of the bits of a narrow float, or `None` if `dtype` is not one.
pub fn narrow_to_f32(dtype: DType, bits: u16) -> Option<f32> {
    macro_rules! decode {
        ($n:ty, $b:ty) => {
            <$n>::decode(u32::from(bits))
        };
    }
    with_narrow!(dtype, decode)
}

/// Returns the bits of the narrow float nearest to `x` (ties to even, or up if the type has no mantissa), or
/// `None` if `dtype` is not a narrow float.
pub fn f32_to_narrow(dtype: DType, x: f32) -> Option<u16> {
    macro_rules! encode {
        ($n:ty, $b:ty) => {
            <$n>::encode(x) as u16
        };
    }
    with_narrow!(dtype, encode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_the_way_through_f32() {
        for &d in DType::ALL {
            if d.is_computed_directly() || !d.is_float() {
                continue;
            }
            for code in 0..1u32 << d.bits() {
                let value = narrow_to_f32(d, code as u16).unwrap();
                if value.is_nan() {
                    assert!(
                        narrow_to_f32(d, f32_to_narrow(d, value).unwrap()).unwrap().is_nan(),
                        "{d:?} {code:#x}"
                    );
                } else {
                    assert_eq!(f32_to_narrow(d, value), Some(code as u16), "{d:?} {code:#x} = {value}");
                }
            }
        }
    }

    #[test]
    fn bits_are_in_the_total_order_of_their_values() {
        let key = |bits: u32, top: u32| if bits & top != 0 { -i64::from(bits) } else { i64::from(bits) };
        for d in [DType::F16, DType::BF16, DType::F8E3M4, DType::F8E4M3, DType::F8E4M3FN, DType::F8E5M2] {
            let top = 1u32 << (d.bits() - 1);
            let mut codes: Vec<u32> = (0..2 * top).collect();
            codes.sort_by_key(|c| key(*c, top));
            let values: Vec<f32> = codes.iter().map(|c| narrow_to_f32(d, *c as u16).unwrap()).collect();
            assert!(values.is_sorted_by(|a, b| a.total_cmp(b).is_lt()), "{d:?}");
        }
    }

    #[test]
    fn ties_between_powers_of_two_go_to_the_larger() {
        for power in [-100, -1, 0, 1, 2, 100] {
            let tie = 1.5 * 2f32.powi(power);
            let rounded = F8E8M0FNU::decode(F8E8M0FNU::encode(tie));
            assert_eq!(rounded, 2f32.powi(power + 1));
            assert_eq!(F8E8M0FNU::decode(F8E8M0FNU::encode(tie.next_down())), 2f32.powi(power));
        }
    }

    #[test]
    fn halves_agree_with_the_half_crate() {
        for i in 0..=u16::MAX {
            let v = half::f16::from_bits(i).to_f32();
            let w = half::bf16::from_bits(i).to_f32();
            assert!(F16::decode(u32::from(i)) == v || v.is_nan());
            assert!(BF16::decode(u32::from(i)) == w || w.is_nan());
        }
        for i in (0..u32::MAX).step_by(65_521) {
            let x = f32::from_bits(i);
            if !x.is_nan() {
                assert_eq!(F16::encode(x), u32::from(half::f16::from_f32(x).to_bits()), "{x:e}");
                assert_eq!(BF16::encode(x), u32::from(half::bf16::from_f32(x).to_bits()), "{x:e}");
            }
        }
    }

    #[test]
    fn a_narrow_float_is_the_nearest_one() {
        for &d in DType::ALL {
            if d.is_computed_directly() || !d.is_float() || d.size() == 2 {
                continue;
            }
            let values: Vec<f32> = (0..1u16 << d.bits())
                .map(|c| narrow_to_f32(d, c).unwrap())
                .filter(|v| v.is_finite())
                .collect();
            let largest = values.iter().fold(0f32, |m, v| m.max(*v));
            for i in (0..u32::MAX).step_by(1_048_573) {
                let x = f32::from_bits(i);
                if x.abs() > largest || x.is_nan() || (x < 0.0 && d == DType::F8E8M0FNU) || x == 0.0 {
                    continue;
                }
                let got = narrow_to_f32(d, f32_to_narrow(d, x).unwrap()).unwrap();
                let best =
                    values.iter().map(|v| (f64::from(*v) - f64::from(x)).abs()).fold(f64::INFINITY, f64::min);
                assert_eq!((f64::from(got) - f64::from(x)).abs(), best, "{d:?} {x:e} -> {got:e}");
            }
        }
    }
}
