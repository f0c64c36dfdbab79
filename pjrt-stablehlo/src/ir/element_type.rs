//! The element types of tensors, defined in one table.

use std::fmt;

/// The family that an [`ElementType`] belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementKind {
    /// `i1`: `false` or `true`.
    Boolean,
    /// Integers in two's complement.
    SignedInteger,
    /// Unsigned integers.
    UnsignedInteger,
    /// Floating-point numbers.
    Float,
    /// Complex numbers: pairs of floating-point numbers, real part first.
    Complex,
    /// Integers that represent real numbers; see [`QuantizedType`](crate::ir::QuantizedType).
    Quantized,
}

macro_rules! element_types {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $kind:ident, $bits:literal bits, $exponent:literal exponent, $mantissa:literal mantissa, $xla:literal xla;)*) => {
        /// The type of a tensor's elements.
        ///
        /// The names are those of MLIR. Hosts pass arrays with the names of PJRT, such as `S32` for [`I32`](Self::I32); `TryFrom`
        /// of `pjrt_plugin::ElementType`, with the feature `stablehlo` of that crate, converts them.
        ///
        /// Signless integer types of MLIR (`i8`) are signed, as in StableHLO. The parameters of quantized types are
        /// part of the tensor's type: [`TensorType::quantization`](crate::ir::TensorType::quantization).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ElementType {
            $($(#[$doc])* $variant,)*
        }

        impl ElementType {
            /// Every element type, in the order of the variants.
            pub const ALL: &'static [ElementType] = &[$(ElementType::$variant),*];

            /// Returns MLIR's spelling, such as `ui8`, `bf16` or `complex<f32>`.
            pub fn name(self) -> &'static str {
                match self { $(ElementType::$variant => $name,)* }
            }

            /// Returns the family of the type.
            pub fn kind(self) -> ElementKind {
                match self { $(ElementType::$variant => ElementKind::$kind,)* }
            }

            /// Returns the number of bits of information in one element: 1 for `i1`, 4 for `i4`, 64 for `complex<f32>`.
            /// Returns 0 for [`ElementType::Quantized`]; see
            /// [`TensorType::storage_type`](crate::ir::TensorType::storage_type).
            pub fn bits(self) -> u32 {
                match self { $(ElementType::$variant => $bits,)* }
            }

            /// Returns the number of exponent bits of a float, or of the parts of a complex number; 0 for other types.
            pub fn exponent_bits(self) -> u32 {
                match self { $(ElementType::$variant => $exponent,)* }
            }

            /// Returns the number of stored mantissa bits of a float, or of the parts of a complex number; 0 for other
            /// types. The implicit leading bit is not stored.
            pub fn mantissa_bits(self) -> u32 {
                match self { $(ElementType::$variant => $mantissa,)* }
            }

            /// Returns the number of the type in XLA's `PrimitiveType`, which HLO programs use; 0 if XLA lacks the
            /// type.
            pub fn xla_number(self) -> i32 {
                match self { $(ElementType::$variant => $xla,)* }
            }
        }
    };
}

element_types! {
    /// Boolean.
    I1 = "i1", Boolean, 1 bits, 0 exponent, 0 mantissa, 1 xla;
    /// Signed 1-bit integer: 0 or -1.
    Si1 = "si1", SignedInteger, 1 bits, 0 exponent, 0 mantissa, 30 xla;
    /// Signed 2-bit integer.
    I2 = "i2", SignedInteger, 2 bits, 0 exponent, 0 mantissa, 26 xla;
    /// Signed 4-bit integer.
    I4 = "i4", SignedInteger, 4 bits, 0 exponent, 0 mantissa, 21 xla;
    /// Signed 8-bit integer.
    I8 = "i8", SignedInteger, 8 bits, 0 exponent, 0 mantissa, 2 xla;
    /// Signed 16-bit integer.
    I16 = "i16", SignedInteger, 16 bits, 0 exponent, 0 mantissa, 3 xla;
    /// Signed 32-bit integer.
    I32 = "i32", SignedInteger, 32 bits, 0 exponent, 0 mantissa, 4 xla;
    /// Signed 64-bit integer.
    I64 = "i64", SignedInteger, 64 bits, 0 exponent, 0 mantissa, 5 xla;
    /// Unsigned 1-bit integer.
    Ui1 = "ui1", UnsignedInteger, 1 bits, 0 exponent, 0 mantissa, 31 xla;
    /// Unsigned 2-bit integer.
    Ui2 = "ui2", UnsignedInteger, 2 bits, 0 exponent, 0 mantissa, 27 xla;
    /// Unsigned 4-bit integer.
    Ui4 = "ui4", UnsignedInteger, 4 bits, 0 exponent, 0 mantissa, 22 xla;
    /// Unsigned 8-bit integer.
    Ui8 = "ui8", UnsignedInteger, 8 bits, 0 exponent, 0 mantissa, 6 xla;
    /// Unsigned 16-bit integer.
    Ui16 = "ui16", UnsignedInteger, 16 bits, 0 exponent, 0 mantissa, 7 xla;
    /// Unsigned 32-bit integer.
    Ui32 = "ui32", UnsignedInteger, 32 bits, 0 exponent, 0 mantissa, 8 xla;
    /// Unsigned 64-bit integer.
    Ui64 = "ui64", UnsignedInteger, 64 bits, 0 exponent, 0 mantissa, 9 xla;
    /// MLIR's `index`: a signed 64-bit integer, used in attributes and shapes.
    Index = "index", SignedInteger, 64 bits, 0 exponent, 0 mantissa, 0 xla;
    /// 4-bit float without infinities and NaN.
    F4E2M1FN = "f4E2M1FN", Float, 4 bits, 2 exponent, 1 mantissa, 32 xla;
    /// 6-bit float without infinities and NaN.
    F6E2M3FN = "f6E2M3FN", Float, 6 bits, 2 exponent, 3 mantissa, 36 xla;
    /// 6-bit float without infinities and NaN.
    F6E3M2FN = "f6E3M2FN", Float, 6 bits, 3 exponent, 2 mantissa, 35 xla;
    /// 8-bit float with infinities.
    F8E3M4 = "f8E3M4", Float, 8 bits, 3 exponent, 4 mantissa, 29 xla;
    /// 8-bit float with infinities.
    F8E4M3 = "f8E4M3", Float, 8 bits, 4 exponent, 3 mantissa, 28 xla;
    /// 8-bit float without infinities.
    F8E4M3FN = "f8E4M3FN", Float, 8 bits, 4 exponent, 3 mantissa, 20 xla;
    /// 8-bit float without infinities and without negative zero, with exponent bias 8.
    F8E4M3FNUZ = "f8E4M3FNUZ", Float, 8 bits, 4 exponent, 3 mantissa, 25 xla;
    /// 8-bit float without infinities and without negative zero, with exponent bias 11.
    F8E4M3B11FNUZ = "f8E4M3B11FNUZ", Float, 8 bits, 4 exponent, 3 mantissa, 23 xla;
    /// 8-bit float with infinities.
    F8E5M2 = "f8E5M2", Float, 8 bits, 5 exponent, 2 mantissa, 19 xla;
    /// 8-bit float without infinities and without negative zero, with exponent bias 16.
    F8E5M2FNUZ = "f8E5M2FNUZ", Float, 8 bits, 5 exponent, 2 mantissa, 24 xla;
    /// 8-bit power of two, without sign and zero.
    F8E8M0FNU = "f8E8M0FNU", Float, 8 bits, 8 exponent, 0 mantissa, 33 xla;
    /// IEEE 754 half precision.
    F16 = "f16", Float, 16 bits, 5 exponent, 10 mantissa, 10 xla;
    /// Brain floating point: the upper half of an `f32`.
    BF16 = "bf16", Float, 16 bits, 8 exponent, 7 mantissa, 16 xla;
    /// NVIDIA's 19-bit float: a precision in dot algorithms, never the type of stored elements.
    Tf32 = "tf32", Float, 19 bits, 8 exponent, 10 mantissa, 0 xla;
    /// IEEE 754 single precision.
    F32 = "f32", Float, 32 bits, 8 exponent, 23 mantissa, 11 xla;
    /// IEEE 754 double precision.
    F64 = "f64", Float, 64 bits, 11 exponent, 52 mantissa, 12 xla;
    /// Two `f32`: real and imaginary part.
    ComplexF32 = "complex<f32>", Complex, 64 bits, 8 exponent, 23 mantissa, 15 xla;
    /// Two `f64`: real and imaginary part.
    ComplexF64 = "complex<f64>", Complex, 128 bits, 11 exponent, 52 mantissa, 18 xla;
    /// A quantized number, whose parameters are part of the tensor's type.
    Quantized = "!quant.uniform", Quantized, 0 bits, 0 exponent, 0 mantissa, 0 xla;
}

impl ElementType {
    /// Returns the element type with this MLIR spelling; `None` if there is none.
    pub fn from_name(name: &str) -> Option<ElementType> {
        Self::ALL.iter().copied().find(|ty| ty.name() == name)
    }

    /// Returns the element type with this number in XLA's `PrimitiveType`.
    pub(crate) fn from_xla_number(number: i32) -> Option<ElementType> {
        Self::ALL.iter().copied().find(|ty| number != 0 && ty.xla_number() == number)
    }

    /// Returns the number of bytes that one element takes in the dense data of a [`Literal`](crate::ir::Literal): the
    /// number of bits rounded up, so 1 for `i1`, `i4` and `f4E2M1FN`.
    pub fn byte_width(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// Returns `true` if the type is a signed or unsigned integer. `i1` is not.
    pub fn is_integer(self) -> bool {
        matches!(self.kind(), ElementKind::SignedInteger | ElementKind::UnsignedInteger)
    }

    /// Returns `true` if the type is a real floating-point type.
    pub fn is_float(self) -> bool {
        self.kind() == ElementKind::Float
    }

    /// Returns `true` if the type is complex.
    pub fn is_complex(self) -> bool {
        self.kind() == ElementKind::Complex
    }

    /// Returns the type of a complex type's parts; `None` for other types.
    pub fn complex_part(self) -> Option<ElementType> {
        match self {
            ElementType::ComplexF32 => Some(ElementType::F32),
            ElementType::ComplexF64 => Some(ElementType::F64),
            _ => None,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
