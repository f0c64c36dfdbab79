//! Element types.

use std::fmt;

/// An element type (`PJRT_Buffer_Type`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementType(pub u32);

/// The element types: the name in the C API after `PJRT_Buffer_Type_`, the name in StableHLO, the number of
/// bits of an element in host memory, and the minor version of the C API that introduced the type. In host
/// memory, elements of less than a byte occupy one byte each.
const ELEMENT_TYPES: &[(&str, &str, usize, i32)] = &[
    ("INVALID", "invalid", 0, 0),
    ("PRED", "i1", 8, 0),
    ("S8", "i8", 8, 0),
    ("S16", "i16", 16, 0),
    ("S32", "i32", 32, 0),
    ("S64", "i64", 64, 0),
    ("U8", "ui8", 8, 0),
    ("U16", "ui16", 16, 0),
    ("U32", "ui32", 32, 0),
    ("U64", "ui64", 64, 0),
    ("F16", "f16", 16, 0),
    ("F32", "f32", 32, 0),
    ("F64", "f64", 64, 0),
    ("BF16", "bf16", 16, 0),
    ("C64", "complex<f32>", 64, 0),
    ("C128", "complex<f64>", 128, 0),
    ("F8E5M2", "f8E5M2", 8, 0),
    ("F8E4M3FN", "f8E4M3FN", 8, 0),
    ("F8E4M3B11FNUZ", "f8E4M3B11FNUZ", 8, 0),
    ("F8E5M2FNUZ", "f8E5M2FNUZ", 8, 0),
    ("F8E4M3FNUZ", "f8E4M3FNUZ", 8, 0),
    ("S4", "i4", 8, 0),
    ("U4", "ui4", 8, 0),
    ("TOKEN", "token", 0, 50),
    ("S2", "i2", 8, 0),
    ("U2", "ui2", 8, 0),
    ("F8E4M3", "f8E4M3", 8, 55),
    ("F8E3M4", "f8E3M4", 8, 55),
    ("F8E8M0FNU", "f8E8M0FNU", 8, 63),
    ("F4E2M1FN", "f4E2M1FN", 8, 63),
    ("S1", "i1s", 8, 94),
    ("U1", "ui1", 8, 94),
    ("F6E2M3FN", "f6E2M3FN", 8, 114),
    ("F6E3M2FN", "f6E3M2FN", 8, 114),
];

impl ElementType {
    /// Booleans, which occupy one byte each.
    pub const PRED: Self = Self(1);
    /// 8-bit signed integers.
    pub const S8: Self = Self(2);
    /// 32-bit signed integers.
    pub const S32: Self = Self(4);
    /// 64-bit signed integers.
    pub const S64: Self = Self(5);
    /// 8-bit unsigned integers.
    pub const U8: Self = Self(6);
    /// 32-bit floating-point numbers.
    pub const F32: Self = Self(11);
    /// 64-bit floating-point numbers.
    pub const F64: Self = Self(12);
    /// 4-bit signed integers.
    pub const S4: Self = Self(21);

    /// Returns the name of the type in StableHLO, or `i1s` for `PJRT_Buffer_Type_S1`, which has no name.
    #[must_use]
    pub fn stablehlo_name(self) -> &'static str {
        ELEMENT_TYPES.get(self.0 as usize).map_or("unknown", |(_, name, ..)| name)
    }

    /// Returns the type with this StableHLO name.
    #[must_use]
    pub fn by_stablehlo_name(name: &str) -> Option<Self> {
        ELEMENT_TYPES.iter().position(|(_, known, ..)| *known == name).map(|index| Self(index as u32))
    }

    /// Returns the type with this name in the C API, such as `S32`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        ELEMENT_TYPES.iter().position(|(known, ..)| *known == name).map(|index| Self(index as u32))
    }

    /// Returns the number of bytes of an element in host memory. Elements of less than a byte are unpacked
    /// there to one byte each.
    #[must_use]
    pub fn byte_size(self) -> usize {
        ELEMENT_TYPES.get(self.0 as usize).map_or(0, |(_, _, bits, _)| bits / 8)
    }

    /// Returns the bits of each byte in host memory that have a meaning. In signed integers of less than a byte,
    /// the bits above the element may hold its sign or zeros.
    #[must_use]
    pub fn used_bits(self) -> u8 {
        match self.stablehlo_name() {
            "i1s" => 0x01,
            "i2" => 0x03,
            "i4" => 0x0F,
            _ => 0xFF,
        }
    }

    /// Returns `false` if elements have less than a byte, so that a device may store several of them in one.
    #[must_use]
    pub fn fills_bytes(self) -> bool {
        !matches!(
            self.stablehlo_name(),
            "i4" | "ui4" | "i2" | "ui2" | "i1s" | "ui1" | "f4E2M1FN" | "f6E2M3FN" | "f6E3M2FN"
        )
    }

    /// Returns the alignment of an element in host memory, in bytes: its size, or the size of one part of a
    /// complex number.
    #[must_use]
    pub fn alignment(self) -> usize {
        let parts = if self.stablehlo_name().starts_with("complex") { 2 } else { 1 };
        (self.byte_size() / parts).max(1)
    }

    /// Returns the minor version of the C API that introduced the type.
    #[must_use]
    pub fn since(self) -> i32 {
        ELEMENT_TYPES.get(self.0 as usize).map_or(i32::MAX, |(.., since)| *since)
    }
}

/// Writes the name in the C API, such as `S32`.
impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ELEMENT_TYPES.get(self.0 as usize) {
            Some((name, ..)) => f.write_str(name),
            None => write!(f, "unknown type {}", self.0.cast_signed()),
        }
    }
}

impl fmt::Debug for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
