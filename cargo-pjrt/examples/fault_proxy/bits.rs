//! Faults of plugins that change the bits of floating-point numbers while they copy them.

use std::collections::HashMap;
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use cargo_pjrt::array::float_format::{FloatFormat, FloatKind};
use pjrt_sys::*;
use pjrt_testing::host::ElementType;

use crate::fault::name_of;
use crate::table::{INNER, field, inner, place, read};

/// Buffers whose numbers of a kind are changed when they are read.
static CHANGED: LazyLock<Mutex<HashMap<usize, FloatKind>>> = LazyLock::new(Mutex::default);

fn changed() -> MutexGuard<'static, HashMap<usize, FloatKind>> {
    CHANGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the bits of a number after a careless copy.
fn changed_number(format: FloatFormat, kind: FloatKind, bits: u64) -> u64 {
    match kind {
        _ if format.kind(bits) != Some(kind) => bits,
        FloatKind::Zero => 0,
        FloatKind::Denormal => bits & format.sign(),
        FloatKind::Nan => format.quiet().map_or(bits & !format.sign(), |quiet| bits | quiet),
    }
}

/// Changes the numbers at an address.
///
/// # Safety
///
/// The address is that of `size` bytes of the host.
unsafe fn change(buffer: usize, kind: FloatKind, to: usize, size: usize) {
    let buffer = ptr::with_exposed_provenance_mut::<PJRT_Buffer>(buffer);
    let (type_, _) = inner!(PJRT_Buffer_ElementType PJRT_Buffer_ElementType_Args { buffer: buffer });
    let Some(format) = FloatFormat::of(ElementType(type_.type_.0)) else { return };
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { std::slice::from_raw_parts_mut(ptr::with_exposed_provenance_mut::<u8>(to), size) };
    let numbers: Vec<u64> =
        format.split(bytes).into_iter().map(|bits| changed_number(format, kind, bits)).collect();
    // A raw copy may end within a number, which stays as it is.
    let changed = format.join(&numbers);
    bytes[..changed.len()].copy_from_slice(&changed);
}

/// Performs an action after a successful call: `bits zero`, `bits denormal` or `bits nan`. A function that
/// reads an array changes the host's memory; a function that creates one marks it. Returns `false` if there
/// is no such action.
///
/// # Safety
///
/// The struct is that of the slot.
pub(crate) unsafe fn after(name: &str, words: &[String], slot: usize, args: *mut u8) -> bool {
    if name != "bits" {
        return false;
    }
    let kind = match words[0].as_str() {
        "zero" => FloatKind::Zero,
        "denormal" => FloatKind::Denormal,
        _ => FloatKind::Nan,
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        let created = match name_of(slot) {
            "PJRT_Client_BufferFromHostBuffer" => "buffer",
            "PJRT_Buffer_CopyToMemory" | "PJRT_Buffer_CopyToDevice" => "dst_buffer",
            function => {
                change_destination(function, args, Some(kind));
                return true;
            }
        };
        let path = field(slot, created);
        if let Some(place) = place(args, &path) {
            changed().insert(read(place, &path) as usize, kind);
        }
    }
    true
}

/// Changes the numbers that a readback wrote, if its array is marked or the kind is given.
///
/// # Safety
///
/// The struct is that of the function, which succeeded. Hosts of this example never free the memory that they
/// read to.
unsafe fn change_destination(function: &str, args: *mut u8, kind: Option<FloatKind>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (buffer, to, size, event) = match function {
            "PJRT_Buffer_ToHostBuffer" => {
                let args = &*args.cast::<PJRT_Buffer_ToHostBuffer_Args>();
                (args.src, args.dst, args.dst_size, args.event)
            }
            "PJRT_Buffer_CopyRawToHost" => {
                let args = &*args.cast::<PJRT_Buffer_CopyRawToHost_Args>();
                (args.buffer, args.dst, args.transfer_size as usize, args.event)
            }
            _ => return,
        };
        let buffer = buffer.expose_provenance();
        let Some(kind) = kind.or_else(|| changed().get(&buffer).copied()) else { return };
        if !to.is_null() {
            inner!(PJRT_Event_Await PJRT_Event_Await_Args { event: event });
            change(buffer, kind, to.expose_provenance(), size);
        }
    }
}

/// Follows a successful call of the host.
///
/// # Safety
///
/// The struct is that of the function.
pub(crate) unsafe fn after_call(function: &str, args: *mut u8, buffer: usize) {
    if function == "PJRT_Buffer_Destroy" {
        changed().remove(&buffer);
    }
    if !changed().is_empty() {
        // SAFETY: guaranteed by the caller.
        unsafe { change_destination(function, args, None) };
    }
}
