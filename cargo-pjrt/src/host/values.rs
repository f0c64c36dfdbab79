//! Strings, arrays and named values of the interface.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::slice;

use pjrt_sys::*;
use serde::{Deserialize, Serialize};

use super::error::{Error, Result};

/// An element type (`PJRT_Buffer_Type`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementType(pub u32);

/// The element types: the name in StableHLO, the number of bits of an element in host memory, and the minor
/// version of the C API that introduced the type. In host memory, elements of less than a byte occupy one
/// byte each.
const ELEMENT_TYPES: &[(&str, usize, i32)] = &[
    ("invalid", 0, 0),
    ("i1", 8, 0),
    ("i8", 8, 0),
    ("i16", 16, 0),
    ("i32", 32, 0),
    ("i64", 64, 0),
    ("ui8", 8, 0),
    ("ui16", 16, 0),
    ("ui32", 32, 0),
    ("ui64", 64, 0),
    ("f16", 16, 0),
    ("f32", 32, 0),
    ("f64", 64, 0),
    ("bf16", 16, 0),
    ("complex<f32>", 64, 0),
    ("complex<f64>", 128, 0),
    ("f8E5M2", 8, 0),
    ("f8E4M3FN", 8, 0),
    ("f8E4M3B11FNUZ", 8, 0),
    ("f8E5M2FNUZ", 8, 0),
    ("f8E4M3FNUZ", 8, 0),
    ("i4", 8, 0),
    ("ui4", 8, 0),
    ("token", 0, 50),
    ("i2", 8, 0),
    ("ui2", 8, 0),
    ("f8E4M3", 8, 55),
    ("f8E3M4", 8, 55),
    ("f8E8M0FNU", 8, 63),
    ("f4E2M1FN", 8, 63),
    ("i1s", 8, 94),
    ("ui1", 8, 94),
    ("f6E2M3FN", 8, 114),
    ("f6E3M2FN", 8, 114),
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
    pub fn name(self) -> &'static str {
        ELEMENT_TYPES.get(self.0 as usize).map_or("unknown", |(name, ..)| name)
    }

    /// Returns the type with this StableHLO name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        ELEMENT_TYPES.iter().position(|(known, ..)| *known == name).map(|index| Self(index as u32))
    }

    /// Returns the number of bytes of an element in host memory. Elements of less than a byte are unpacked
    /// there to one byte each.
    #[must_use]
    pub fn byte_size(self) -> usize {
        ELEMENT_TYPES.get(self.0 as usize).map_or(0, |(_, bits, _)| bits / 8)
    }

    /// Returns the alignment of an element in host memory, in bytes: its size, or the size of one part of a
    /// complex number.
    #[must_use]
    pub fn alignment(self) -> usize {
        let parts = if self.name().starts_with("complex") { 2 } else { 1 };
        (self.byte_size() / parts).max(1)
    }

    /// Returns the minor version of the C API that introduced the type.
    #[must_use]
    pub fn since(self) -> i32 {
        ELEMENT_TYPES.get(self.0 as usize).map_or(i32::MAX, |(_, _, since)| *since)
    }
}

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

/// A named value: an option, an attribute or a property (`PJRT_NamedValue`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedValue {
    /// The name.
    pub name: String,
    /// `true` if a zero byte follows the name, for hosts that read the name as a C string.
    pub name_is_terminated: bool,
    /// The value.
    pub value: Value,
}

/// The value of a [`NamedValue`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// A string.
    String(String),
    /// An integer.
    Int64(i64),
    /// A list of integers.
    Int64List(Vec<i64>),
    /// A floating-point number.
    Float(f32),
    /// A boolean.
    Bool(bool),
    /// A value of an unknown type, with the number of the type.
    Unknown(u32),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(text) => write!(f, "{text:?}"),
            Self::Int64(number) => write!(f, "{number}"),
            Self::Int64List(numbers) => write!(f, "{numbers:?}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Bool(truth) => write!(f, "{truth}"),
            Self::Unknown(number) => write!(f, "a value of the unknown type {number}"),
        }
    }
}

/// Reads an array that a function of a plugin returned.
///
/// # Errors
///
/// Returns INTERNAL if the size of the array, or of a name or value in it, is not credible.
///
/// # Safety
///
/// The pointer is null, or valid for `len` named values whose names and values can be read, if their sizes
/// are credible.
pub(crate) unsafe fn named_values(
    function: &'static str,
    start: *const PJRT_NamedValue,
    len: usize,
) -> Result<Vec<NamedValue>> {
    // SAFETY: guaranteed by the caller. The byte after a name can be read: the tests of the interface read it
    // too.
    unsafe {
        for raw in given(function, start, len)? {
            believed::<u8>(function, raw.name_size)?;
            match raw.type_.0 {
                0 => believed::<u8>(function, raw.value_size)?,
                2 => believed::<i64>(function, raw.value_size)?,
                _ => {}
            }
        }
        let mut values = named_values_of_host(start, len);
        for (value, raw) in values.iter_mut().zip(array(start, len)) {
            value.name_is_terminated = !raw.name.is_null() && raw.name.add(raw.name_size).read() == 0;
        }
        Ok(values)
    }
}

/// Reads an array that a host passed, whose names need not end with a zero byte.
///
/// # Safety
///
/// The pointer is null, or valid for `len` named values whose names and values can be read.
pub(crate) unsafe fn named_values_of_host(start: *const PJRT_NamedValue, len: usize) -> Vec<NamedValue> {
    // SAFETY: guaranteed by the caller. The type says which field of the union is set.
    unsafe {
        let read = |raw: &PJRT_NamedValue| NamedValue {
            name: text(raw.name, raw.name_size),
            name_is_terminated: false,
            value: match raw.type_.0 {
                0 => Value::String(text(raw.u.string_value, raw.value_size)),
                1 => Value::Int64(raw.u.int64_value),
                2 => Value::Int64List(array(raw.u.int64_array_value, raw.value_size).to_vec()),
                3 => Value::Float(raw.u.float_value),
                4 => Value::Bool((&raw const raw.u).cast::<u8>().read() != 0),
                other => Value::Unknown(other),
            },
        };
        array(start, len).iter().map(read).collect()
    }
}

/// Converts named values to the structs of the interface. The structs point to the strings and lists in
/// `values`.
pub(crate) fn to_raw(values: &[NamedValue]) -> Vec<PJRT_NamedValue> {
    let raw = |named: &NamedValue| {
        let (type_, u, value_size) = match &named.value {
            Value::String(text) => {
                (0, PJRT_NamedValue_Union { string_value: text.as_ptr().cast() }, text.len())
            }
            Value::Int64(number) => (1, PJRT_NamedValue_Union { int64_value: *number }, 1),
            Value::Int64List(list) => {
                (2, PJRT_NamedValue_Union { int64_array_value: list.as_ptr() }, list.len())
            }
            Value::Float(number) => (3, PJRT_NamedValue_Union { float_value: *number }, 1),
            Value::Bool(truth) => (4, PJRT_NamedValue_Union { bool_value: *truth }, 1),
            Value::Unknown(number) => (*number, PJRT_NamedValue_Union { int64_value: 0 }, 1),
        };
        PJRT_NamedValue {
            name: named.name.as_ptr().cast(),
            name_size: named.name.len(),
            type_: PJRT_NamedValue_Type(type_),
            u,
            value_size,
            ..PJRT_NamedValue::zeroed()
        }
    };
    values.iter().map(raw).collect()
}

/// The largest credible size of a string or list in bytes.
const MOST_BYTES: usize = 256 << 20;

/// Checks that the size of a list is credible.
///
/// # Errors
///
/// Returns INTERNAL if the list is larger than [`MOST_BYTES`].
pub(crate) fn believed<T>(function: &'static str, len: usize) -> Result<()> {
    let size = size_of::<T>();
    if len.checked_mul(size).is_some_and(|bytes| bytes <= MOST_BYTES) {
        return Ok(());
    }
    let what = if size == 1 {
        format!("it returned {len} bytes")
    } else {
        format!("it returned a list of {len} elements of {size} bytes")
    };
    Err(Error::broken(function, format!("{what}; expected at most {MOST_BYTES} bytes")))
}

/// Reads an array that a function of a plugin returned. A null pointer is an empty array.
///
/// # Errors
///
/// Returns INTERNAL if the array's size is not credible.
///
/// # Safety
///
/// The same as for [`array`], if the size is credible.
pub(crate) unsafe fn given<'a, T>(function: &'static str, start: *const T, len: usize) -> Result<&'a [T]> {
    believed::<T>(function, len)?;
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { array(start, len) })
}

/// Reads a string, as [`given`] reads an array. Bytes that are not UTF-8 are replaced.
///
/// # Errors
///
/// The same as for [`given`].
///
/// # Safety
///
/// The same as for [`given`].
pub(crate) unsafe fn given_text(function: &'static str, start: *const c_char, len: usize) -> Result<String> {
    believed::<u8>(function, len)?;
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { text(start, len) })
}

/// Reads a string that a plugin returned. Bytes that are not UTF-8 are replaced.
///
/// # Safety
///
/// The pointer is null, or valid for `len` bytes.
pub(crate) unsafe fn text(start: *const c_char, len: usize) -> String {
    // SAFETY: guaranteed by the caller.
    String::from_utf8_lossy(unsafe { bytes(start.cast(), len) }).into_owned()
}

/// Returns the bytes that a plugin returned.
///
/// # Safety
///
/// The pointer is null, or valid for `len` bytes, for as long as the caller uses them.
pub(crate) unsafe fn bytes<'a>(start: *const c_void, len: usize) -> &'a [u8] {
    // SAFETY: guaranteed by the caller.
    unsafe { array(start.cast::<u8>(), len) }
}

/// Returns an array that a plugin returned. A null pointer is an empty array.
///
/// # Safety
///
/// The pointer is null, or valid for `len` elements, for as long as the caller uses them.
pub(crate) unsafe fn array<'a, T>(start: *const T, len: usize) -> &'a [T] {
    if start.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { slice::from_raw_parts(start, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_nobody_has_written_are_refused_with_function_and_number() {
        let one = 7_u64;
        let of = |len| {
            // SAFETY: of the lengths that this test passes, `given` accepts only 1, the length of `one`.
            unsafe { given("PJRT_Client_Devices", &raw const one, len) }
        };
        assert_eq!(of(1), Ok(&[one][..]));
        for len in [MOST_BYTES, 1 << 40, usize::MAX] {
            let error = of(len).unwrap_err().to_string();
            assert!(error.starts_with("PJRT_Client_Devices: INTERNAL: "), "{error}");
            assert!(error.contains(&format!("a list of {len} elements")), "{error}");
        }
        assert!(believed::<u8>("PJRT_Memory_Kind", MOST_BYTES).is_ok());
        assert!(believed::<u8>("PJRT_Memory_Kind", MOST_BYTES + 1).is_err());
    }
}
