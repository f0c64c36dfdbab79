//! The types of the elements of arrays.

macro_rules! element_types {
    ($($name:ident $number:literal $bits:literal $meaning:literal;)*) => {
        /// The type of the elements of an array (`iree_hal_element_type_t`). Integers have no sign: the operations have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ElementType {
            $(#[doc = $meaning] $name,)*
        }

        impl ElementType {
            /// Returns the number of IREE's runtime.
            pub(crate) fn number(self) -> u32 {
                match self {
                    $(Self::$name => ($number << 24) | $bits,)*
                }
            }

            /// Returns the size of an element in bytes.
            #[must_use]
            pub fn byte_size(self) -> usize {
                match self {
                    $(Self::$name => $bits / 8,)*
                }
            }
        }
    };
}

element_types! {
    Bool 0x13 8 "A boolean, which occupies a byte.";
    I8 0x10 8 "An integer of 8 bits.";
    I16 0x10 16 "An integer of 16 bits.";
    I32 0x10 32 "An integer of 32 bits.";
    I64 0x10 64 "An integer of 64 bits.";
    F16 0x21 16 "A number of half precision.";
    BF16 0x22 16 "A number with the exponent of `F32` and 7 bits of fraction.";
    F32 0x21 32 "A number of single precision.";
    F64 0x21 64 "A number of double precision.";
    C64 0x23 64 "A complex number of two `F32`.";
    C128 0x23 128 "A complex number of two `F64`.";
    F8E5M2 0x24 8 "A number of 8 bits with 5 bits of exponent.";
    F8E4M3FN 0x25 8 "A number of 8 bits with 4 bits of exponent, without infinities.";
    F8E5M2FNUZ 0x26 8 "A number of 8 bits with 5 bits of exponent, without infinities and negative zero.";
    F8E4M3FNUZ 0x27 8 "A number of 8 bits with 4 bits of exponent, without infinities and negative zero.";
    F8E8M0FNU 0x28 8 "A power of two of 8 bits.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use eerie_sys::runtime as sys;

    #[test]
    fn the_numbers_are_those_of_the_runtime() {
        use sys::*;
        for (ty, number) in [
            (ElementType::Bool, iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_BOOL_8),
            (ElementType::I32, iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_INT_32),
            (ElementType::F16, iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_FLOAT_16),
            (ElementType::BF16, iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_BFLOAT_16),
            (ElementType::F64, iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_FLOAT_64),
            (ElementType::C64, iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_COMPLEX_FLOAT_64),
            (ElementType::F8E8M0FNU, iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_FLOAT_8_E8M0_FNU),
        ] {
            assert_eq!(ty.number(), number, "{ty:?}");
        }
    }
}
