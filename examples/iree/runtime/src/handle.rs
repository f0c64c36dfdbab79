//! References to objects of IREE.

use std::ptr::NonNull;

use eerie_sys::runtime as sys;

use crate::status::{Code, Error, Result};

/// A type of IREE's runtime whose objects count their references.
///
/// # Safety
///
/// The functions must be those of the type, and must be callable from any thread.
pub(crate) unsafe trait Counted {
    /// Adds a reference.
    ///
    /// # Safety
    ///
    /// The object must be alive.
    unsafe fn retain(object: *mut Self);

    /// Removes a reference.
    ///
    /// # Safety
    ///
    /// The caller must own the reference.
    unsafe fn release(object: *mut Self);
}

/// One reference to an object.
pub(crate) struct Handle<T: Counted>(NonNull<T>);

impl<T: Counted> Handle<T> {
    /// Takes a reference that a function of IREE has returned.
    ///
    /// # Errors
    ///
    /// Returns an error if the pointer is null.
    ///
    /// # Safety
    ///
    /// The pointer must be null, or the caller must own a reference to a valid object, which it gives away.
    pub(crate) unsafe fn own(object: *mut T) -> Result<Self> {
        let object = NonNull::new(object);
        object.map(Self).ok_or_else(|| Error::new(Code::Internal, "IREE returned no object"))
    }

    /// Returns the object, which is alive as long as this reference.
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Counted> Clone for Handle<T> {
    fn clone(&self) -> Self {
        // SAFETY: The object is alive, because `self` owns a reference. The new reference belongs to the new handle.
        unsafe { T::retain(self.0.as_ptr()) };
        Self(self.0)
    }
}

impl<T: Counted> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: The handle owns the reference, and is not used any more.
        unsafe { T::release(self.0.as_ptr()) }
    }
}

// SAFETY: The counting functions can be called from any thread (`Counted`), and the handle does nothing else with its object.
unsafe impl<T: Counted> Send for Handle<T> {}
// SAFETY: As above: a shared handle can only be cloned, and its pointer read.
unsafe impl<T: Counted> Sync for Handle<T> {}

macro_rules! counted {
    ($($object:ident $retain:ident $release:ident;)*) => {$(
        // SAFETY: These are the functions of the type, whose counter is atomic.
        unsafe impl Counted for sys::$object {
            unsafe fn retain(object: *mut Self) {
                // SAFETY: The caller guarantees that the object is alive.
                unsafe { sys::$retain(object) }
            }

            unsafe fn release(object: *mut Self) {
                // SAFETY: The caller owns the reference.
                unsafe { sys::$release(object) }
            }
        }
    )*};
}

counted! {
    iree_async_frontier_tracker_t iree_async_frontier_tracker_retain iree_async_frontier_tracker_release;
    iree_async_proactor_pool_t iree_async_proactor_pool_retain iree_async_proactor_pool_release;
    iree_hal_buffer_t iree_hal_buffer_retain iree_hal_buffer_release;
    iree_hal_buffer_view_t iree_hal_buffer_view_retain iree_hal_buffer_view_release;
    iree_hal_device_t iree_hal_device_retain iree_hal_device_release;
    iree_hal_device_group_t iree_hal_device_group_retain iree_hal_device_group_release;
    iree_hal_driver_t iree_hal_driver_retain iree_hal_driver_release;
    iree_hal_fence_t iree_hal_fence_retain iree_hal_fence_release;
    iree_hal_semaphore_t iree_hal_semaphore_retain iree_hal_semaphore_release;
    iree_vm_context_t iree_vm_context_retain iree_vm_context_release;
    iree_vm_instance_t iree_vm_instance_retain iree_vm_instance_release;
    iree_vm_list_t iree_vm_list_retain iree_vm_list_release;
    iree_vm_module_t iree_vm_module_retain iree_vm_module_release;
}
