//! The allocator of host memory.

use std::ffi::c_void;
use std::ptr;

use eerie_sys::runtime as sys;

unsafe extern "C" {
    /// The functions of the C library as an allocator. IREE's headers name it in a macro only, so `eerie-sys` does not declare
    /// it.
    fn iree_allocator_libc_ctl(
        this: *mut c_void,
        command: sys::iree_allocator_command_t,
        params: *const c_void,
        inout_ptr: *mut *mut c_void,
    ) -> sys::iree_status_t;
}

/// Returns the allocator of host memory: that of the C library.
pub(crate) fn allocator() -> sys::iree_allocator_t {
    sys::iree_allocator_t { self_: ptr::null_mut(), ctl: Some(iree_allocator_libc_ctl) }
}
