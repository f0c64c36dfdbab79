//! `PJRT_Memory`, and the table of functions in a memory's first word.
//!
//! `PJRT_Memory_Id`, `PJRT_Memory_Kind`, `PJRT_Memory_DebugString`, `PJRT_Memory_ToString`,
//! `PJRT_Memory_AddressableByDevices`, `PJRT_Memory_Kind_Id`.

use std::ffi::c_void;
use std::ptr;

use pjrt_sys::{
    PJRT_Device, PJRT_Memory, PJRT_Memory_AddressableByDevices_Args, PJRT_Memory_DebugString_Args,
    PJRT_Memory_FunctionTable, PJRT_Memory_Id_Args, PJRT_Memory_Kind_Args, PJRT_Memory_Kind_Id_Args,
    PJRT_Memory_ToString_Args, SizedStruct,
};

use crate::abi::args::{View, handle, output, output_slice, output_str};
use crate::abi::handle::{self, Handle};
use crate::client::PjrtClient;
use crate::core::fork;
use crate::core::sync::lock;
use crate::error::Result;
use crate::memory::Memory;
use std::sync::Mutex;

/// The object behind a `PJRT_Memory`, which its client owns.
#[repr(C)]
pub(crate) struct MemoryHandle {
    vtable: *const PJRT_Memory_FunctionTable,
    pub(crate) memory: Memory,
    text: String,
    devices: Box<[*mut PJRT_Device]>,
    user_data: Mutex<Vec<UserData>>,
}

/// Data that the host has attached to a memory. Its key is an address.
struct UserData {
    key: *const c_void,
    data: *mut c_void,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the first word points to a static table. The devices are handles, which the host may use on any thread. The
// attached data is only returned to the host, and the C API allows that on any thread.
unsafe impl Send for MemoryHandle {}
// SAFETY: as above; the attached data is behind a lock.
unsafe impl Sync for MemoryHandle {}

impl Handle for MemoryHandle {
    type Opaque = PJRT_Memory;
    const KIND: &'static str = "PJRT_Memory";
}

impl MemoryHandle {
    pub(crate) fn new(memory: Memory, devices: Box<[*mut PJRT_Device]>) -> Self {
        let text = format!("{}(id={})", memory.kind(), memory.id());
        Self { vtable: &TABLE.0, memory, text, devices, user_data: Mutex::new(Vec::new()) }
    }

    /// Destroys the data that the host attached, when its client is destroyed.
    pub(crate) fn clear_user_data(&self) {
        let all = std::mem::take(&mut *lock(&self.user_data));
        for data in all {
            data.destroy();
        }
    }
}

impl UserData {
    fn destroy(self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: the host passed the function for this data; it is called once, after the data has been detached.
            unsafe { destroy(self.data) };
        }
    }
}

struct Table(PJRT_Memory_FunctionTable);

// SAFETY: the table's only pointer is null, and nothing changes it.
unsafe impl Sync for Table {}

static TABLE: Table = Table(PJRT_Memory_FunctionTable {
    struct_size: PJRT_Memory_FunctionTable::STRUCT_SIZE,
    extension_start: ptr::null_mut(),
    instance_struct_size: size_of::<MemoryHandle>(),
    get_user_data: Some(get_user_data),
    set_user_data: Some(set_user_data),
});

/// # Safety
///
/// `memory` is null or a memory of a live client.
unsafe extern "C" fn get_user_data(memory: *mut PJRT_Memory, key: *const c_void) -> *mut c_void {
    // SAFETY: this function's contract.
    let Ok(memory) = (unsafe { handle::borrow::<MemoryHandle>(memory, "memory") }) else {
        return ptr::null_mut();
    };
    if fork::is_child() {
        return ptr::null_mut();
    }
    let all = lock(&memory.user_data);
    all.iter().find(|data| data.key == key).map_or(ptr::null_mut(), |data| data.data)
}

/// # Safety
///
/// `memory` is null or a memory of a live client; `destroy` is null or can be called once with `data`.
unsafe extern "C" fn set_user_data(
    memory: *mut PJRT_Memory,
    key: *const c_void,
    data: *mut c_void,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
) {
    // SAFETY: this function's contract.
    let Ok(memory) = (unsafe { handle::borrow::<MemoryHandle>(memory, "memory") }) else { return };
    // In a forked child, a thread that does not exist there may hold the lock.
    if fork::is_child() {
        return;
    }
    let new = UserData { key, data, destroy };
    let old = {
        let mut all = lock(&memory.user_data);
        match all.iter_mut().find(|data| data.key == key) {
            Some(slot) => Some(std::mem::replace(slot, new)),
            None => {
                all.push(new);
                None
            }
        }
    };
    if let Some(old) = old {
        old.destroy();
    }
}

/// `PJRT_Memory_Id`.
pub(crate) fn memory_id<C: PjrtClient>(args: View<'_, PJRT_Memory_Id_Args>) -> Result<()> {
    output!(args.id = handle!(args.memory: MemoryHandle)?.memory.id());
    Ok(())
}

/// `PJRT_Memory_Kind`.
pub(crate) fn memory_kind<C: PjrtClient>(args: View<'_, PJRT_Memory_Kind_Args>) -> Result<()> {
    output_str!(args.kind, kind_size = handle!(args.memory: MemoryHandle)?.memory.kind());
    Ok(())
}

/// `PJRT_Memory_Kind_Id`.
pub(crate) fn memory_kind_id<C: PjrtClient>(args: View<'_, PJRT_Memory_Kind_Id_Args>) -> Result<()> {
    output!(args.kind_id = handle!(args.memory: MemoryHandle)?.memory.kind_id());
    Ok(())
}

/// `PJRT_Memory_DebugString`.
pub(crate) fn memory_debug_string<C: PjrtClient>(args: View<'_, PJRT_Memory_DebugString_Args>) -> Result<()> {
    output_str!(args.debug_string, debug_string_size = &handle!(args.memory: MemoryHandle)?.text);
    Ok(())
}

/// `PJRT_Memory_ToString`.
pub(crate) fn memory_to_string<C: PjrtClient>(args: View<'_, PJRT_Memory_ToString_Args>) -> Result<()> {
    output_str!(args.to_string, to_string_size = &handle!(args.memory: MemoryHandle)?.text);
    Ok(())
}

/// `PJRT_Memory_AddressableByDevices`: returns the handles of the devices that can address the memory.
pub(crate) fn memory_addressable_by_devices<C: PjrtClient>(
    args: View<'_, PJRT_Memory_AddressableByDevices_Args>,
) -> Result<()> {
    output_slice!(args.devices, num_devices = &handle!(args.memory: MemoryHandle)?.devices);
    Ok(())
}
