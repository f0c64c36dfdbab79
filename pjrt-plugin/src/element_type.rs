//! The element types of arrays.

use std::fmt;

macro_rules! element_types {
    ($($variant:ident $number:literal $xla:literal $name:literal $bits:literal $doc:literal;)*) => {
        /// The type of an array's elements (`PJRT_Buffer_Type`).
        ///
        /// The names are those of PJRT and XLA. Programs have the names of MLIR instead: `pjrt_stablehlo::ir::ElementType` has
        /// `I1` for [`Pred`](Self::Pred), `I32` for [`S32`](Self::S32), `Ui32` for [`U32`](Self::U32), and `ComplexF32` for
        /// [`C64`](Self::C64); floats have the same names. With the feature `stablehlo`, `TryFrom` converts in both directions.
        ///
        /// ```
        /// use pjrt_plugin::ElementType;
        ///
        /// assert_eq!(ElementType::BF16.to_string(), "bf16");
        /// assert_eq!(ElementType::from_number(11), Some(ElementType::F32));
        /// // In host memory, an element of less than a byte occupies one byte.
        /// assert_eq!((ElementType::S4.bits(), ElementType::S4.byte_size()), (4, 1));
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum ElementType {
            $(#[doc = $doc] $variant = $number,)*
        }

        impl ElementType {
            /// All element types, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns XLA's name of the type, such as `f32`, `pred` or `s4`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the number of bits of an element, which is 0 for a token.
            #[must_use]
            pub const fn bits(self) -> usize {
                match self { $(Self::$variant => $bits,)* }
            }

            /// Returns the number of the type in XLA's protocol buffers and FFI (`xla.PrimitiveType`), which differs from
            /// that of the C API.
            #[must_use]
            pub(crate) const fn xla_number(self) -> u32 {
                match self { $(Self::$variant => $xla,)* }
            }
        }
    };
}

element_types! {
    Pred 1 1 "pred" 8 "A boolean of one byte, 0 or 1.";
    S8 2 2 "s8" 8 "A signed integer of 8 bits.";
    S16 3 3 "s16" 16 "A signed integer of 16 bits.";
    S32 4 4 "s32" 32 "A signed integer of 32 bits.";
    S64 5 5 "s64" 64 "A signed integer of 64 bits.";
    U8 6 6 "u8" 8 "An unsigned integer of 8 bits.";
    U16 7 7 "u16" 16 "An unsigned integer of 16 bits.";
    U32 8 8 "u32" 32 "An unsigned integer of 32 bits.";
    U64 9 9 "u64" 64 "An unsigned integer of 64 bits.";
    F16 10 10 "f16" 16 "IEEE half precision.";
    F32 11 11 "f32" 32 "IEEE single precision.";
    F64 12 12 "f64" 64 "IEEE double precision.";
    BF16 13 16 "bf16" 16 "The upper 16 bits of an IEEE single precision number.";
    C64 14 15 "c64" 64 "A complex number of two `f32`, real part first.";
    C128 15 18 "c128" 128 "A complex number of two `f64`, real part first.";
    F8E5M2 16 19 "f8e5m2" 8 "A float with 5 exponent bits and 2 mantissa bits, IEEE-like.";
    F8E4M3FN 17 20 "f8e4m3fn" 8 "A float with 4 exponent bits and 3 mantissa bits, without infinities.";
    F8E4M3B11FNUZ 18 23 "f8e4m3b11fnuz" 8 "The same format as `F8E4M3FNUZ`, with exponent bias 11.";
    F8E5M2FNUZ 19 24 "f8e5m2fnuz" 8 "A float with 5 exponent bits and 2 mantissa bits, one NaN, no infinities and no negative zero.";
    F8E4M3FNUZ 20 25 "f8e4m3fnuz" 8 "A float with 4 exponent bits and 3 mantissa bits, one NaN, no infinities and no negative zero.";
    S4 21 21 "s4" 4 "A signed integer of 4 bits.";
    U4 22 22 "u4" 4 "An unsigned integer of 4 bits.";
    Token 23 17 "token" 0 "A value without data, which orders side effects.";
    S2 24 26 "s2" 2 "A signed integer of 2 bits.";
    U2 25 27 "u2" 2 "An unsigned integer of 2 bits.";
    F8E4M3 26 28 "f8e4m3" 8 "A float with 4 exponent bits and 3 mantissa bits, IEEE-like.";
    F8E3M4 27 29 "f8e3m4" 8 "A float with 3 exponent bits and 4 mantissa bits, IEEE-like.";
    F8E8M0FNU 28 33 "f8e8m0fnu" 8 "A power of two with 8 exponent bits, without sign and mantissa bits.";
    F4E2M1FN 29 32 "f4e2m1fn" 4 "A float with 2 exponent bits and 1 mantissa bit, finite values only.";
    S1 30 30 "s1" 1 "A signed integer of 1 bit: 0 or -1.";
    U1 31 31 "u1" 1 "An unsigned integer of 1 bit.";
    F6E2M3FN 32 36 "f6e2m3fn" 6 "A float with 2 exponent bits and 3 mantissa bits, finite values only.";
    F6E3M2FN 33 35 "f6e3m2fn" 6 "A float with 3 exponent bits and 2 mantissa bits, finite values only.";
}

impl ElementType {
    /// Returns the element type with a number of the C API, or `None` if there is none.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        (number as usize).checked_sub(1).and_then(|index| Self::ALL.get(index).copied())
    }

    /// Returns the size of an element in host memory, in bytes. An element of less than a byte occupies the low bits of one
    /// byte. A token has size 0.
    #[must_use]
    pub const fn byte_size(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// Returns the number of bits of an element in an array whose elements share bytes. Elements of 6 bits do not.
    pub(crate) const fn packed_bits(self) -> usize {
        match self.bits() {
            bits @ (1 | 2 | 4) => bits,
            _ => 8 * self.byte_size(),
        }
    }

    /// Returns the alignment of an element in host memory, in bytes, as in C: its size, or half of it for complex numbers.
    #[must_use]
    pub const fn alignment(self) -> usize {
        match self {
            Self::C64 | Self::C128 => self.byte_size() / 2,
            Self::Token => 1,
            _ => self.byte_size(),
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_c_api() {
        for (index, element_type) in ElementType::ALL.iter().enumerate() {
            assert_eq!(*element_type as usize, index + 1);
            assert_eq!(ElementType::from_number(*element_type as u32), Some(*element_type));
        }
        assert_eq!(ElementType::F6E3M2FN as u32, pjrt_sys::PJRT_Buffer_Type_F6E3M2FN.0);
        assert_eq!(ElementType::from_number(0), None);
        assert_eq!(ElementType::from_number(34), None);
    }

    #[test]
    fn numbers_of_xla_are_different_and_those_of_no_tuple_opaque_value_or_buffer() {
        let mut numbers: Vec<u32> = ElementType::ALL.iter().map(|ty| ty.xla_number()).collect();
        numbers.sort_unstable();
        let expected: Vec<u32> = (1..=36).filter(|number| ![13, 14, 34].contains(number)).collect();
        assert_eq!(numbers, expected);
        assert_eq!((ElementType::F6E3M2FN.xla_number(), ElementType::F6E2M3FN.xla_number()), (35, 36));
    }

    #[test]
    fn types_of_less_than_a_byte_take_a_byte_on_the_host() {
        assert_eq!(ElementType::S4.byte_size(), 1);
        assert_eq!(ElementType::Token.byte_size(), 0);
        assert_eq!(ElementType::C128.byte_size(), 16);
    }

    #[test]
    fn alignments_are_those_of_c() {
        let alignments = |types: &[ElementType]| types.iter().map(|t| t.alignment()).collect::<Vec<_>>();
        let types = [ElementType::Token, ElementType::S4, ElementType::BF16, ElementType::F64];
        assert_eq!(alignments(&types), [1, 1, 2, 8]);
        assert_eq!(alignments(&[ElementType::C64, ElementType::C128]), [4, 8]);
        assert!(ElementType::ALL.iter().all(|t| t.alignment().is_power_of_two()));
    }
}
