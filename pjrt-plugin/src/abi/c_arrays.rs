//! Strings and arrays in the form that C reads. Each stays at its address as long as the object that it describes.

use std::ffi::{c_char, c_void};
use std::ptr;

use pjrt_sys::{
    PJRT_NamedValue, PJRT_NamedValue_Type, PJRT_NamedValue_Union, PJRT_NamedValue_kBool,
    PJRT_NamedValue_kFloat, PJRT_NamedValue_kInt64, PJRT_NamedValue_kInt64List, PJRT_NamedValue_kString,
    SizedStruct,
};

use crate::abi::args::{View, bytes, chars, input, text};
use crate::attributes::AttributeValue;
use crate::error::{Error, Result};
use crate::options::OptionValue;

/// Strings, or other bytes, as an array of pointers and an array of lengths.
pub(crate) struct Strings {
    pointers: Box<[*const c_char]>,
    lengths: Box<[usize]>,
    _bytes: Vec<Vec<u8>>,
}

// SAFETY: the pointers point into `_bytes`, which is never changed.
unsafe impl Send for Strings {}
// SAFETY: as above.
unsafe impl Sync for Strings {}

impl Strings {
    pub(crate) fn new(strings: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        let bytes: Vec<Vec<u8>> = strings.into_iter().map(Into::into).collect();
        Self {
            pointers: bytes.iter().map(|bytes| chars(bytes)).collect(),
            lengths: bytes.iter().map(Vec::len).collect(),
            _bytes: bytes,
        }
    }

    pub(crate) fn pointers(&self) -> &[*const c_char] {
        &self.pointers
    }

    pub(crate) fn lengths(&self) -> &[usize] {
        &self.lengths
    }
}

/// Attributes as an array of `PJRT_NamedValue`. Names and strings end with a NUL, because some hosts read them as C strings.
pub(crate) struct NamedValues {
    values: Box<[PJRT_NamedValue]>,
    _bytes: Vec<Vec<u8>>,
    _lists: Vec<Vec<i64>>,
}

// SAFETY: the pointers in `values` point into `_bytes` and `_lists`, which are never changed.
unsafe impl Send for NamedValues {}
// SAFETY: as above.
unsafe impl Sync for NamedValues {}

impl NamedValues {
    pub(crate) fn new<'a>(attributes: impl IntoIterator<Item = &'a (String, AttributeValue)>) -> Self {
        let (mut values, mut bytes, mut lists) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in attributes {
            let mut pin = |text: &str| {
                let text: Vec<u8> = text.bytes().chain([0]).collect();
                let pointer = chars(&text);
                bytes.push(text);
                pointer
            };
            let name_pointer = pin(name);
            let (type_, u, value_size) = match value {
                AttributeValue::String(text) => {
                    (PJRT_NamedValue_kString, PJRT_NamedValue_Union { string_value: pin(text) }, text.len())
                }
                AttributeValue::Int64(value) => {
                    (PJRT_NamedValue_kInt64, PJRT_NamedValue_Union { int64_value: *value }, 1)
                }
                AttributeValue::Int64List(list) => {
                    let list = list.clone();
                    let (pointer, len) = (list.as_ptr(), list.len());
                    lists.push(list);
                    (PJRT_NamedValue_kInt64List, PJRT_NamedValue_Union { int64_array_value: pointer }, len)
                }
                AttributeValue::Float(value) => {
                    (PJRT_NamedValue_kFloat, PJRT_NamedValue_Union { float_value: *value }, 1)
                }
                AttributeValue::Bool(value) => {
                    (PJRT_NamedValue_kBool, PJRT_NamedValue_Union { bool_value: *value }, 1)
                }
            };
            values.push(PJRT_NamedValue {
                struct_size: PJRT_NamedValue::STRUCT_SIZE,
                extension_start: ptr::null_mut(),
                name: name_pointer,
                name_size: name.len(),
                type_,
                u,
                value_size,
            });
        }
        Self { values: values.into(), _bytes: bytes, _lists: lists }
    }

    pub(crate) fn as_slice(&self) -> &[PJRT_NamedValue] {
        &self.values
    }
}

/// Reads an array of `PJRT_NamedValue` of the host. Its elements have the same size in all versions of the C API.
///
/// # Safety
///
/// `values` is null or the start of `len` values as the C API describes them, readable until the call returns.
pub(crate) unsafe fn read_named_values(
    values: *const PJRT_NamedValue,
    len: usize,
) -> Result<Vec<(String, OptionValue)>> {
    if len > 0 && values.is_null() {
        return Err(Error::invalid_argument(format!(
            "the pointer to an array of {len} named values is null"
        )));
    }
    let mut read = Vec::new();
    for index in 0..len {
        // SAFETY: the caller's contract makes `index` an element, and a valid one.
        let value = unsafe { View::new(values.add(index).cast_mut()) }?;
        let name = text(bytes!(value.name, name_size)?);
        let union = input!(value.u);
        let type_: PJRT_NamedValue_Type = input!(value.type_);
        let read_value = match type_ {
            PJRT_NamedValue_kString => {
                // SAFETY: the type says which member of the union is there.
                let pointer: *const c_void = unsafe { union.string_value }.cast();
                let size = input!(value.value_size);
                // SAFETY: a string value is pointer and length.
                let bytes = unsafe { super::args::borrowed_slice::<u8>(pointer.cast(), size, &name) }?;
                OptionValue::String(text(bytes))
            }
            // SAFETY: the type says which member of the union is there.
            PJRT_NamedValue_kInt64 => OptionValue::Integer(unsafe { union.int64_value }),
            PJRT_NamedValue_kInt64List => {
                // SAFETY: the type says which member of the union is there.
                let pointer = unsafe { union.int64_array_value };
                let size = input!(value.value_size);
                // SAFETY: a list is pointer and length.
                let list = unsafe { super::args::borrowed_slice::<i64>(pointer, size, &name) }?;
                OptionValue::IntegerList(list.to_vec())
            }
            // SAFETY: the type says which member of the union is there.
            PJRT_NamedValue_kFloat => OptionValue::Float(unsafe { union.float_value }),
            PJRT_NamedValue_kBool => {
                // SAFETY: the type says which member of the union is there; it is read as a number, since a host may have
                // written any byte.
                let byte = unsafe { (&raw const union.bool_value).cast::<u8>().read() };
                OptionValue::Boolean(byte != 0)
            }
            other => {
                return Err(Error::invalid_argument(format!(
                    "option '{name}' has the type {}, which is not a value of PJRT_NamedValue_Type",
                    other.0
                )));
            }
        };
        read.push((name, read_value));
    }
    Ok(read)
}

/// Passes bytes to the host: their address, their size, and the holder that [`delete_serialized`] frees.
pub(crate) fn serialized<T>(bytes: Vec<u8>) -> (*const c_char, usize, *mut T) {
    let holder = Box::new(bytes);
    let (pointer, len) = (chars(&holder), holder.len());
    (pointer, len, Box::into_raw(holder).cast())
}

/// Frees the bytes of [`serialized`].
///
/// # Safety
///
/// `holder` is null or came from [`serialized`], and is not used afterwards.
pub(crate) unsafe extern "C" fn delete_serialized<T>(holder: *mut T) {
    if !holder.is_null() {
        // SAFETY: the caller's contract: it is the pointer of a `Box<Vec<u8>>`.
        drop(unsafe { Box::from_raw(holder.cast::<Vec<u8>>()) });
    }
}

/// Copies bytes to memory that [`free_c`] frees, for functions whose deleters receive only the pointer.
pub(crate) fn copy_to_c(bytes: &[u8]) -> Result<*const c_char> {
    // SAFETY: `malloc` has no preconditions. The size is at least one, so that null means failure.
    let place = unsafe { libc::malloc(bytes.len().max(1)) };
    if place.is_null() {
        return Err(Error::resource_exhausted(format!(
            "cannot allocate {} bytes for a result that the host frees",
            bytes.len()
        )));
    }
    // SAFETY: the memory is new and large enough.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place.cast(), bytes.len()) };
    Ok(place.cast_const().cast())
}

/// Frees the bytes of [`copy_to_c`].
///
/// # Safety
///
/// `bytes` is null or came from [`copy_to_c`], and is not used afterwards.
pub(crate) unsafe extern "C" fn free_c(bytes: *const c_char) {
    // SAFETY: the caller's contract.
    unsafe { libc::free(bytes.cast_mut().cast()) };
}
