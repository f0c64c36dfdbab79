//! Named values of the interface.

use std::fmt;

use pjrt_sys::*;
use serde::{Deserialize, Serialize};

use super::error::Result;
use super::slices::{array, believed, given, given_text, text};

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
/// Returns INTERNAL if the size of the array, or of a name or value in it, is not credible, or if the size of a text
/// is wrong.
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
            given_text(function, raw.name, raw.name_size)?;
            match raw.type_.0 {
                0 => drop(given_text(function, raw.u.string_value, raw.value_size)?),
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
pub unsafe fn named_values_of_host(start: *const PJRT_NamedValue, len: usize) -> Vec<NamedValue> {
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
