//! The state of IREE's runtime that a process has once.

use std::ptr;
use std::sync::OnceLock;

use eerie_sys::runtime as sys;

use crate::allocator::allocator;
use crate::handle::Handle;
use crate::status::{Result, check};

/// Returns the VM instance of the process, in which the types of the HAL are registered.
pub(crate) fn instance() -> Result<&'static Handle<sys::iree_vm_instance_t>> {
    static INSTANCE: OnceLock<Result<Handle<sys::iree_vm_instance_t>>> = OnceLock::new();
    INSTANCE.get_or_init(create).as_ref().map_err(Clone::clone)
}

fn create() -> Result<Handle<sys::iree_vm_instance_t>> {
    let mut instance = ptr::null_mut();
    let capacity = sys::IREE_VM_TYPE_CAPACITY_DEFAULT as usize;
    // SAFETY: The pointer is valid for writes. The new instance belongs to the handle.
    let instance = unsafe {
        check(sys::iree_vm_instance_create(capacity, allocator(), &mut instance))?;
        Handle::own(instance)?
    };
    // SAFETY: The instance is alive. This runs once in the process.
    unsafe { check(sys::iree_hal_module_register_all_types(instance.as_ptr()))? };
    Ok(instance)
}

/// Returns the registry with all drivers that are built in.
pub(crate) fn drivers() -> Result<*mut sys::iree_hal_driver_registry_t> {
    static REGISTERED: OnceLock<Result<()>> = OnceLock::new();
    // SAFETY: The function has no preconditions; the registry is static.
    let registry = unsafe { sys::iree_hal_driver_registry_default() };
    // SAFETY: The registry is valid, and the drivers are registered once.
    let register = || unsafe { check(sys::iree_hal_register_all_available_drivers(registry)) };
    REGISTERED.get_or_init(register).clone()?;
    Ok(registry)
}
