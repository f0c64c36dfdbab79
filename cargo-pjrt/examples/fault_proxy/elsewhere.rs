//! The device and the memory of a call.

use std::ptr;

use pjrt_sys::*;

use crate::fault::{args_of, name_of};
use crate::table::{INNER, inner};

/// Returns `true` if the call is about a device other than the first one of the process.
///
/// # Safety
///
/// The struct is that of the slot, and the object is its third word.
pub(crate) unsafe fn is_on_another_device(slot: usize, args: *mut u8, object: usize) -> bool {
    // SAFETY: guaranteed by the caller.
    let device = unsafe { device_of(slot, args, object) };
    if device.is_null() {
        return false;
    }
    let on = device;
    let (local, error) = inner!(PJRT_Device_LocalHardwareId PJRT_Device_LocalHardwareId_Args { device: on });
    error.is_null() && local.local_hardware_id > 0
}

/// Returns `true` if the object is an array that is not in the default memory of its device.
pub(crate) fn is_in_another_memory(object: usize) -> bool {
    let array = ptr::with_exposed_provenance_mut(object);
    let (device, _) = inner!(PJRT_Buffer_Device PJRT_Buffer_Device_Args { buffer: array });
    let (memory, _) = inner!(PJRT_Buffer_Memory PJRT_Buffer_Memory_Args { buffer: array });
    let of = device.device;
    let (default, error) = inner!(PJRT_Device_DefaultMemory PJRT_Device_DefaultMemory_Args { device: of });
    error.is_null() && default.memory != memory.memory
}

/// Returns the device of a call, or null if it has none.
///
/// # Safety
///
/// As for [`is_on_another_device`].
unsafe fn device_of(slot: usize, args: *mut u8, object: usize) -> *mut PJRT_Device {
    let pointer = |name: &str| {
        let field = args_of(slot).field(name)?;
        // SAFETY: the field is a pointer of the struct of the slot.
        let value = unsafe { args.add(field.offset).cast::<*mut u8>().read() };
        Some(value).filter(|value| !value.is_null())
    };
    if let Some(device) = pointer("device") {
        return device.cast();
    }
    if let Some(memory) = pointer("memory") {
        let (of_memory, error) = inner!(PJRT_Memory_AddressableByDevices PJRT_Memory_AddressableByDevices_Args {
            memory: memory.cast()
        });
        // SAFETY: the good plugin returns an array of this size.
        return unsafe { if error.is_null() { of_memory.devices.read() } else { ptr::null_mut() } };
    }
    let name = name_of(slot);
    if name.starts_with("PJRT_LoadedExecutable_") {
        let program = ptr::with_exposed_provenance_mut(object);
        let (of_program, error) = inner!(PJRT_LoadedExecutable_AddressableDevices PJRT_LoadedExecutable_AddressableDevices_Args {
            executable: program
        });
        let has_device = error.is_null() && of_program.num_addressable_devices > 0;
        // SAFETY: the good plugin returns an array of this size.
        return unsafe { if has_device { of_program.addressable_devices.read() } else { ptr::null_mut() } };
    }
    if name.starts_with("PJRT_Buffer_") {
        let array = ptr::with_exposed_provenance_mut(object);
        return inner!(PJRT_Buffer_Device PJRT_Buffer_Device_Args { buffer: array }).0.device;
    }
    ptr::null_mut()
}
