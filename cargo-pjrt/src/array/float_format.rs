//! The bits of floating-point numbers.

use pjrt_testing::host::ElementType;

/// The bit patterns that are NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nans {
    /// The largest exponent with a mantissa other than 0, as in IEEE 754.
    Ieee,
    /// All bits of the exponent and the mantissa are set.
    AllOnes,
    /// The pattern of the negative zero.
    NegativeZero,
}

/// The format of floating-point numbers: a sign, an exponent and a mantissa.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatFormat {
    exponent: u32,
    mantissa: u32,
    nans: Nans,
}

/// The kind of a floating-point number that copies often change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatKind {
    /// Zero with a sign, which must stay.
    Zero,
    /// A number whose exponent is 0, which some processors replace with zero.
    Denormal,
    /// Not a number. Some processors set the bit that makes a NaN quiet, or replace its other bits.
    Nan,
}

impl FloatKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Zero, Self::Denormal, Self::Nan];
}

/// The formats of the types with sign, exponent and mantissa: the type's name, the number of bits of exponent
/// and mantissa, and the NaNs.
const FORMATS: &[(&str, u32, u32, Nans)] = &[
    ("f16", 5, 10, Nans::Ieee),
    ("bf16", 8, 7, Nans::Ieee),
    ("f32", 8, 23, Nans::Ieee),
    ("f64", 11, 52, Nans::Ieee),
    ("complex<f32>", 8, 23, Nans::Ieee),
    ("complex<f64>", 11, 52, Nans::Ieee),
    ("f8E5M2", 5, 2, Nans::Ieee),
    ("f8E4M3", 4, 3, Nans::Ieee),
    ("f8E3M4", 3, 4, Nans::Ieee),
    ("f8E4M3FN", 4, 3, Nans::AllOnes),
    ("f8E4M3B11FNUZ", 4, 3, Nans::NegativeZero),
    ("f8E5M2FNUZ", 5, 2, Nans::NegativeZero),
    ("f8E4M3FNUZ", 4, 3, Nans::NegativeZero),
];

impl FloatFormat {
    /// Returns the format of an element type, or of the parts of a complex type.
    #[must_use]
    pub fn of(element_type: ElementType) -> Option<Self> {
        let row = FORMATS.iter().find(|(name, ..)| *name == element_type.stablehlo_name());
        row.map(|&(_, exponent, mantissa, nans)| Self { exponent, mantissa, nans })
    }

    /// Returns the types that have a format.
    pub fn types() -> impl Iterator<Item = ElementType> {
        FORMATS.iter().filter_map(|(name, ..)| ElementType::by_stablehlo_name(name))
    }

    /// Returns the number of bytes of a number.
    #[must_use]
    pub fn byte_size(self) -> usize {
        (1 + self.exponent + self.mantissa) as usize / 8
    }

    /// Returns the bit of the sign.
    #[must_use]
    pub fn sign(self) -> u64 {
        1 << (self.exponent + self.mantissa)
    }

    /// Returns the bit that makes a NaN quiet, if the format has both kinds of NaNs.
    #[must_use]
    pub fn quiet(self) -> Option<u64> {
        (self.nans == Nans::Ieee).then(|| 1 << (self.mantissa - 1))
    }

    /// Returns the number of bits of the mantissa.
    pub(crate) fn mantissa_bits(self) -> u32 {
        self.mantissa
    }

    fn mantissa_mask(self) -> u64 {
        (1 << self.mantissa) - 1
    }

    /// Returns the exponent's bits of infinity.
    fn largest_exponent(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    /// Returns the kind of a number, given its bits, or `None` if copies do not endanger it.
    #[must_use]
    pub fn kind(self, bits: u64) -> Option<FloatKind> {
        let (magnitude, mantissa) = (bits & !self.sign(), bits & self.mantissa_mask());
        let is_nan = match self.nans {
            Nans::Ieee => magnitude - mantissa == self.largest_exponent() && mantissa != 0,
            Nans::AllOnes => magnitude == self.largest_exponent() | self.mantissa_mask(),
            Nans::NegativeZero => bits == self.sign(),
        };
        match magnitude {
            _ if is_nan => Some(FloatKind::Nan),
            0 => Some(FloatKind::Zero),
            _ if magnitude == mantissa => Some(FloatKind::Denormal),
            _ => None,
        }
    }

    /// Returns the bits of numbers of a kind: of both signs, with few and with many bits.
    #[must_use]
    pub fn numbers(self, kind: FloatKind) -> Vec<u64> {
        let mask = self.mantissa_mask();
        let mantissas = [0, 1, 1 << (self.mantissa - 1), (mask / 3) | 1, mask >> 1, mask];
        let exponents = [0, self.largest_exponent()];
        let mut all: Vec<u64> = exponents
            .iter()
            .flat_map(|exponent| mantissas.map(|mantissa| exponent | mantissa))
            .flat_map(|bits| [bits, bits | self.sign()])
            .filter(|bits| self.kind(*bits) == Some(kind))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Splits the bytes of an array into the bits of its numbers.
    #[must_use]
    pub fn split(self, bytes: &[u8]) -> Vec<u64> {
        let bits = |number: &[u8]| {
            let mut wide = [0; 8];
            wide[..number.len()].copy_from_slice(number);
            u64::from_le_bytes(wide)
        };
        bytes.chunks_exact(self.byte_size()).map(bits).collect()
    }

    /// Joins the bits of numbers to the bytes of an array.
    #[must_use]
    pub fn join(self, numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(self.byte_size())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_of_f32_are_those_of_rust() {
        let f32s = FloatFormat::of(ElementType::F32).unwrap();
        for kind in FloatKind::ALL {
            let numbers = f32s.numbers(kind);
            assert!(numbers.len() >= 2, "{kind:?}");
            for bits in numbers {
                let number = f32::from_bits(bits as u32);
                let expected = match kind {
                    FloatKind::Zero => number == 0.0,
                    FloatKind::Denormal => number.is_subnormal(),
                    FloatKind::Nan => number.is_nan(),
                };
                assert!(expected, "{bits:#x} is {kind:?}");
            }
        }
        assert_eq!(f32s.kind(u64::from(1.0_f32.to_bits())), None);
        assert_eq!(f32s.kind(u64::from(f32::INFINITY.to_bits())), None);
    }

    #[test]
    fn every_format_has_the_size_of_its_type() {
        for element_type in FloatFormat::types() {
            let format = FloatFormat::of(element_type).unwrap();
            assert_eq!(format.byte_size(), element_type.alignment(), "{element_type}");
            let bytes: Vec<u8> = (1..=16).collect();
            assert_eq!(format.join(&format.split(&bytes)), bytes, "{element_type}");
        }
    }
}
