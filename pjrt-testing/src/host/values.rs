//! Named values of the interface.

use std::fmt;

use pjrt_sys::*;
use serde::{Deserialize, Serialize};

use super::error::{Error, Result};
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
/// Returns INTERNAL if the size of the array, or of a name or value in it, is not credible, if the size of a text is wrong, if a
/// name is empty, or if the size of a single value is not 1.
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
            let name = given_text(function, raw.name, raw.name_size)?;
            if name.is_empty() {
                return Err(Error::broken(function, "the name of a value is empty: its name_size is 0"));
            }
            match raw.type_.0 {
                0 => drop(given_text(function, raw.u.string_value, raw.value_size)?),
                2 => believed::<i64>(function, raw.value_size)?,
                1 | 3 | 4 if raw.value_size != 1 => {
                    let message = format!(
                        "the value_size of {name} is {}; expected 1: it is a single value",
                        raw.value_size
                    );
                    return Err(Error::broken(function, message));
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads one value, of which the sizes are these.
    fn read(value: Value, name_size: usize, value_size: usize) -> Result<Vec<NamedValue>> {
        let named = [NamedValue { name: "limit".to_owned(), name_is_terminated: false, value }];
        let mut raw = to_raw(&named);
        (raw[0].name, raw[0].name_size, raw[0].value_size) = (c"limit".as_ptr(), name_size, value_size);
        // SAFETY: the value points to a name of this size, which a zero byte follows.
        unsafe { named_values("PJRT_X", raw.as_ptr(), raw.len()) }
    }

    #[test]
    fn single_values_have_the_size_one_and_names_are_not_empty() {
        assert_eq!(read(Value::Int64(7), 5, 1).unwrap()[0].value, Value::Int64(7));
        for value in [Value::Int64(7), Value::Float(1.5), Value::Bool(true)] {
            let error = read(value, 5, 0).unwrap_err();
            assert!(error.message.contains("value_size of limit is 0"), "{error}");
        }
        assert!(read(Value::Int64(7), 0, 1).unwrap_err().message.contains("is empty"));
    }
}
