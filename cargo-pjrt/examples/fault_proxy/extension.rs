//! Copies of the good plugin's extensions whose functions can have faults.

use std::ptr;

use pjrt_sys::*;

use crate::functions::EXTENSION_FUNCTIONS;
use crate::table::{Function, INNER, call};

/// Forwards to the function of an extension with this number.
///
/// # Safety
///
/// The host calls this function with the struct of the extension's function.
unsafe extern "C" fn shim<const NUMBER: usize>(args: *mut u8) -> *mut PJRT_Error {
    // SAFETY: guaranteed by the caller.
    unsafe { call(SLOTS.len() + NUMBER, args) }
}

macro_rules! shims {
    ($($number:literal)*) => { &[$(shim::<$number>),*] };
}

/// The forwarding functions. There are more than the extensions have functions.
const SHIMS: &[Function] = shims!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39
);

/// Returns the good plugin's function with this number.
///
/// # Safety
///
/// The good plugin is loaded.
pub(crate) unsafe fn good(number: usize) -> Option<Function> {
    let function = &EXTENSION_FUNCTIONS[number];
    // SAFETY: the chain is the good plugin's. Within the size of an element, its functions are at the offsets
    // of the struct's layout.
    unsafe {
        let mut next = (*INNER.0).extension_start.cast_const();
        while !next.is_null() && (*next).type_.0 != function.extension {
            next = (*next).next;
        }
        if next.is_null() {
            return None;
        }
        next.byte_add(function.offset).cast::<Option<Function>>().read()
    }
}

/// Copies all elements of a chain, and replaces their functions with forwarding ones. Optionally sets a field
/// of one of the structs to null.
///
/// # Safety
///
/// The chain is the good plugin's.
pub(crate) unsafe fn copies(
    chain: *mut PJRT_Extension_Base,
    null: Option<(&str, &str)>,
) -> *mut PJRT_Extension_Base {
    if chain.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: an element has as many bytes as it reports, of which the first are its base.
    unsafe {
        let (size, type_) = ((*chain).struct_size, (*chain).type_.0);
        let copy = Vec::leak(vec![0_u64; size.div_ceil(8)]).as_mut_ptr().cast::<u8>();
        ptr::copy_nonoverlapping(chain.cast::<u8>(), copy, size);
        for (number, function) in EXTENSION_FUNCTIONS.iter().enumerate() {
            let place = copy.add(function.offset.min(size)).cast::<Option<Function>>();
            let is_there = function.extension == type_ && function.offset + 8 <= size;
            if is_there && place.read().is_some() {
                place.write(Some(SHIMS[number]));
            }
        }
        if let Some((name, field)) = null
            && name == format!("PJRT_{}_Extension", name_of_type(type_))
            && let Some(field) =
                STRUCTS.iter().find(|layout| layout.name == name).and_then(|layout| layout.field(field))
        {
            copy.add(field.offset).cast::<usize>().write(0);
        }
        let copy = copy.cast::<PJRT_Extension_Base>();
        (*copy).next = copies((*chain).next, null);
        copy
    }
}

/// Returns the name of an extension type, as it appears in the name of its struct.
fn name_of_type(type_: u32) -> &'static str {
    let info = pjrt_testing::host::ExtensionInfo { type_, struct_size: 0 };
    info.name().unwrap_or("Unknown")
}
