//! Element types: the representation of elements in memory, and the types in which arithmetic on them is
//! performed.

/// The type of a register, in which arithmetic is performed.
///
/// Elements of storage types that have no arithmetic are converted when a tile is loaded, and results are
/// rounded back after each operation: f16, bf16 and the 4-, 6- and 8-bit floats to `F32`, sub-byte integers
/// to `S8` or `U8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComputeType {
    /// A boolean: one byte, 0 or 1.
    Pred,
    /// 8-bit signed integer.
    S8,
    /// 16-bit signed integer.
    S16,
    /// 32-bit signed integer.
    S32,
    /// 64-bit signed integer.
    S64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Two binary32: real, imaginary.
    C64,
    /// Two binary64: real, imaginary.
    C128,
}

impl ComputeType {
    /// Returns the size of an element in a register, in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Pred | Self::S8 | Self::U8 => 1,
            Self::S16 | Self::U16 => 2,
            Self::S32 | Self::U32 | Self::F32 => 4,
            Self::S64 | Self::U64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// Returns `true` for `F32` and `F64`.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Returns `true` for `C64` and `C128`.
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::C64 | Self::C128)
    }

    /// Returns `true` for the signed integers.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Returns `true` for the unsigned integers, but not for `Pred`.
    pub const fn is_unsigned_integer(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }
}

macro_rules! dtypes {
    ($($(#[doc = $doc:literal])* $variant:ident $mlir:literal bits $bits:literal bytes $bytes:literal compute $compute:ident;)*) => {
        /// The type of an array element in memory (little-endian).
        ///
        /// An element narrower than a byte occupies a whole byte, with its value in the low bits; integers
        /// are sign-extended. Hosts pass elements in this form, and packing them would cost more than it
        /// saves on a CPU.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DType {
            $($(#[doc = $doc])* $variant,)*
        }

        impl DType {
            /// All element types.
            pub const ALL: &'static [DType] = &[$(DType::$variant,)*];

            /// Returns the type's name in MLIR and StableHLO (`f32`, `i1`, `ui8`, `complex<f32>`,
            /// `f8E4M3FN`).
            pub const fn mlir_name(self) -> &'static str {
                match self { $(Self::$variant => $mlir,)* }
            }

            /// Returns the number of bits in a value, including both parts of a complex number.
            pub const fn bits(self) -> usize {
                match self { $(Self::$variant => $bits,)* }
            }

            /// Returns the size of an element in memory, in bytes.
            pub const fn size(self) -> usize {
                match self { $(Self::$variant => $bytes,)* }
            }

            /// Returns the required alignment of an array in bytes: that of an element, or of one part of a
            /// complex element.
            pub const fn align(self) -> usize {
                if self.compute().is_complex() { self.size() / 2 } else { self.size() }
            }

            /// Returns the type in which arithmetic on elements of this type is performed.
            pub const fn compute(self) -> ComputeType {
                match self { $(Self::$variant => ComputeType::$compute,)* }
            }
        }
    };
}

dtypes! {
    /// Boolean: one byte, 0 or 1.
    Pred "i1" bits 1 bytes 1 compute Pred;
    /// 2-bit signed integer.
    S2 "i2" bits 2 bytes 1 compute S8;
    /// 4-bit signed integer.
    S4 "i4" bits 4 bytes 1 compute S8;
    /// 8-bit signed integer.
    S8 "i8" bits 8 bytes 1 compute S8;
    /// 16-bit signed integer.
    S16 "i16" bits 16 bytes 2 compute S16;
    /// 32-bit signed integer.
    S32 "i32" bits 32 bytes 4 compute S32;
    /// 64-bit signed integer.
    S64 "i64" bits 64 bytes 8 compute S64;
    /// 2-bit unsigned integer.
    U2 "ui2" bits 2 bytes 1 compute U8;
    /// 4-bit unsigned integer.
    U4 "ui4" bits 4 bytes 1 compute U8;
    /// 8-bit unsigned integer.
    U8 "ui8" bits 8 bytes 1 compute U8;
    /// 16-bit unsigned integer.
    U16 "ui16" bits 16 bytes 2 compute U16;
    /// 32-bit unsigned integer.
    U32 "ui32" bits 32 bytes 4 compute U32;
    /// 64-bit unsigned integer.
    U64 "ui64" bits 64 bytes 8 compute U64;
    /// 4-bit float, 2 exponent bits, no infinities or NaN.
    F4E2M1FN "f4E2M1FN" bits 4 bytes 1 compute F32;
    /// 6-bit float, 2 exponent bits, no infinities or NaN.
    F6E2M3FN "f6E2M3FN" bits 6 bytes 1 compute F32;
    /// 6-bit float, 3 exponent bits, no infinities or NaN.
    F6E3M2FN "f6E3M2FN" bits 6 bytes 1 compute F32;
    /// 8-bit IEEE-like float, 3 exponent bits.
    F8E3M4 "f8E3M4" bits 8 bytes 1 compute F32;
    /// 8-bit IEEE-like float, 4 exponent bits.
    F8E4M3 "f8E4M3" bits 8 bytes 1 compute F32;
    /// 8-bit float, 4 exponent bits, finite with NaN.
    F8E4M3FN "f8E4M3FN" bits 8 bytes 1 compute F32;
    /// 8-bit float, 4 exponent bits, bias 11, unsigned zero, one NaN.
    F8E4M3B11FNUZ "f8E4M3B11FNUZ" bits 8 bytes 1 compute F32;
    /// 8-bit float, 4 exponent bits, unsigned zero, one NaN.
    F8E4M3FNUZ "f8E4M3FNUZ" bits 8 bytes 1 compute F32;
    /// 8-bit IEEE-like float, 5 exponent bits.
    F8E5M2 "f8E5M2" bits 8 bytes 1 compute F32;
    /// 8-bit float, 5 exponent bits, unsigned zero, one NaN.
    F8E5M2FNUZ "f8E5M2FNUZ" bits 8 bytes 1 compute F32;
    /// 8-bit power of two, no sign, no zero, one NaN.
    F8E8M0FNU "f8E8M0FNU" bits 8 bytes 1 compute F32;
    /// IEEE binary16.
    F16 "f16" bits 16 bytes 2 compute F32;
    /// bfloat16.
    BF16 "bf16" bits 16 bytes 2 compute F32;
    /// IEEE binary32.
    F32 "f32" bits 32 bytes 4 compute F32;
    /// IEEE binary64.
    F64 "f64" bits 64 bytes 8 compute F64;
    /// Complex of two binary32.
    C64 "complex<f32>" bits 64 bytes 8 compute C64;
    /// Complex of two binary64.
    C128 "complex<f64>" bits 128 bytes 16 compute C128;
}

impl DType {
    /// Returns the type with this MLIR name, if kernels support it.
    pub fn from_mlir_name(name: &str) -> Option<DType> {
        Self::ALL.iter().copied().find(|d| d.mlir_name() == name)
    }

    /// Returns `true` if the representation in memory is that in registers, so that loads and stores do not
    /// convert.
    pub const fn is_computed_directly(self) -> bool {
        matches!(
            self,
            Self::Pred
                | Self::S8
                | Self::S16
                | Self::S32
                | Self::S64
                | Self::U8
                | Self::U16
                | Self::U32
                | Self::U64
                | Self::F32
                | Self::F64
                | Self::C64
                | Self::C128
        )
    }

    /// Returns the register type that holds the bits of an element in memory.
    pub(crate) const fn raw_type(self) -> ComputeType {
        if self.is_computed_directly() || !self.is_float() {
            self.compute()
        } else if self.size() == 2 {
            ComputeType::U16
        } else {
            ComputeType::U8
        }
    }

    /// Returns `true` for the real floating-point types.
    pub const fn is_float(self) -> bool {
        self.compute().is_float()
    }

    /// Returns `true` for the two complex types.
    pub const fn is_complex(self) -> bool {
        self.compute().is_complex()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directly_computed_types_have_the_size_of_their_register() {
        for d in DType::ALL {
            if d.is_computed_directly() {
                assert_eq!(d.size(), d.compute().size(), "{d:?}");
            }
        }
    }

    #[test]
    fn names_lead_back_to_their_type() {
        for d in DType::ALL {
            assert_eq!(DType::from_mlir_name(d.mlir_name()), Some(*d));
        }
    }
}
