//! Formats a host's structs as JSON, for traces.

use std::slice;

use pjrt_sys::{FieldLayout, StructLayout};

use crate::element_type::ElementType;

/// The most bytes of a string, and the most elements of an array, that are shown.
const MOST_BYTES: usize = 200;
const MOST_NUMBERS: usize = 64;

/// Returns the names of the host's fields after the size and the extensions, with their values in JSON. Strings and arrays
/// are read only if `complete` is true; after an error, output fields are uninitialized.
///
/// # Safety
///
/// `args` is null or a struct of this layout that begins with its size. If `complete`, its strings and arrays of integers
/// are null or as long as their lengths say.
pub(crate) unsafe fn fields(
    args: *const u8,
    layout: &StructLayout,
    complete: bool,
) -> Vec<(&'static str, String)> {
    if args.is_null() {
        return Vec::new();
    }
    // SAFETY: every struct begins with its size.
    let size = unsafe { args.cast::<usize>().read_unaligned() };
    let value = |field: &FieldLayout| {
        let mut bytes = [0; 8];
        let len = (field.end - field.offset).min(8);
        // SAFETY: the field lies within the size, which makes it readable.
        let read = unsafe { slice::from_raw_parts(args.add(field.offset), len) };
        bytes[..len].copy_from_slice(read);
        u64::from_le_bytes(bytes)
    };
    let there = |field: &&FieldLayout| field.end <= size;
    let fields = layout.fields.iter().filter(there).filter(|field| field.offset >= 16);
    let length = |name: &str| {
        let field = layout.fields.iter().filter(there).find(|field| field.name == name)?;
        usize::try_from(value(field)).ok()
    };
    let show = |field: &FieldLayout| {
        let number = value(field);
        let pointee = field.ty.strip_prefix("*const ").or_else(|| field.ty.strip_prefix("*mut "));
        match (field.ty, pointee) {
            ("bool", _) => (number != 0).to_string(),
            ("usize" | "u64", _) => number.to_string(),
            ("i64", _) => number.cast_signed().to_string(),
            ("::core::ffi::c_int" | "i32", _) => (number as u32).cast_signed().to_string(),
            ("PJRT_Buffer_Type", _) => ElementType::from_number(number as u32)
                .map_or_else(|| number.to_string(), |element_type| quoted(element_type.name())),
            (_, Some("::core::ffi::c_char")) if complete && is_text(field.name) => {
                let len = length(&format!("{}_size", field.name));
                // SAFETY: this function's contract.
                len.and_then(|len| unsafe { text(number, len) }).unwrap_or_else(|| address(number))
            }
            (_, Some("i64")) if complete => {
                let len = length(&count_of(field.name)).or_else(|| length(&format!("num_{}", field.name)));
                // SAFETY: this function's contract.
                len.and_then(|len| unsafe { numbers(number, len) }).unwrap_or_else(|| address(number))
            }
            (_, Some(_)) => address(number),
            _ if field.ty.starts_with("::core::option::Option") => address(number),
            _ if field.end - field.offset <= 8 => number.to_string(),
            _ => quoted(&format!("{} bytes", field.end - field.offset)),
        }
    };
    fields.map(|field| (field.name, show(field))).collect()
}

/// Returns whether a `char` pointer is a string. An `error_message` is uninitialized if the error code is OK.
fn is_text(name: &str) -> bool {
    name != "error_message"
}

/// Returns the name of the field with an array's length: `shape_num_dims` for `shape_dims`.
fn count_of(name: &str) -> String {
    match name.rsplit_once('_') {
        Some((prefix, last)) => format!("{prefix}_num_{last}"),
        None => format!("num_{name}"),
    }
}

fn address(value: u64) -> String {
    if value == 0 { "null".to_owned() } else { format!("\"{value:#x}\"") }
}

/// # Safety
///
/// The address is null or that of `len` readable bytes.
unsafe fn text(address: u64, len: usize) -> Option<String> {
    if address == 0 {
        return None;
    }
    let start = std::ptr::with_exposed_provenance::<u8>(usize::try_from(address).ok()?);
    // SAFETY: this function's contract.
    let bytes = unsafe { slice::from_raw_parts(start, len.min(MOST_BYTES)) };
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    Some(match text {
        Some(text) if len <= MOST_BYTES => quoted(text),
        Some(text) => quoted(&format!("{text}... ({len} bytes)")),
        None => quoted(&format!("{len} bytes")),
    })
}

/// # Safety
///
/// The address is null or that of `len` readable, aligned numbers.
unsafe fn numbers(address: u64, len: usize) -> Option<String> {
    if address == 0 {
        return None;
    }
    let start = std::ptr::with_exposed_provenance::<i64>(usize::try_from(address).ok()?);
    // SAFETY: this function's contract.
    let numbers = unsafe { slice::from_raw_parts(start, len.min(MOST_NUMBERS)) };
    let mut shown: Vec<String> = numbers.iter().map(i64::to_string).collect();
    if len > MOST_NUMBERS {
        shown.push(format!("\"{len} in all\""));
    }
    Some(format!("[{}]", shown.join(",")))
}

/// Formats a string as JSON, with quotes and escapes.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            control if control < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use pjrt_sys::{PJRT_Client_LookupDevice_Args, PJRT_Client_PlatformName_Args, SizedStruct};

    use super::*;

    #[test]
    fn only_fields_within_the_declared_size_are_shown() {
        let mut args = PJRT_Client_LookupDevice_Args { id: -3, ..SizedStruct::zeroed() };
        let show = |args: &PJRT_Client_LookupDevice_Args| {
            // SAFETY: the struct lives and holds no arrays.
            unsafe { fields(std::ptr::from_ref(args).cast(), PJRT_Client_LookupDevice_Args::LAYOUT, true) }
        };
        let shown = show(&args);
        assert!(shown.contains(&("id", "-3".to_owned())), "{shown:?}");
        assert!(shown.contains(&("device", "null".to_owned())), "{shown:?}");
        args.struct_size = 24;
        assert_eq!(show(&args).len(), 1);
    }

    #[test]
    fn strings_are_followed_only_after_success() {
        let name = "a \"b\"\n\u{1}";
        let args = PJRT_Client_PlatformName_Args {
            platform_name: name.as_ptr().cast(),
            platform_name_size: name.len(),
            ..SizedStruct::zeroed()
        };
        let show = |complete| {
            // SAFETY: the struct lives, and so does its string.
            unsafe { fields((&raw const args).cast(), PJRT_Client_PlatformName_Args::LAYOUT, complete) }
        };
        assert_eq!(show(true)[1], ("platform_name", "\"a \\\"b\\\"\\n\\u0001\"".to_owned()));
        assert!(show(false)[1].1.starts_with("\"0x"));
    }
}
