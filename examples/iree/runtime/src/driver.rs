//! HAL drivers, such as `local-task` and `vulkan`.

use std::{ptr, slice};

use eerie_sys::runtime as sys;

use crate::allocator::allocator;
use crate::device::Device;
use crate::handle::Handle;
use crate::instance::drivers;
use crate::status::{Code, Error, Result, check};
use crate::strings::{text_of, view};

/// A driver of devices of one kind.
#[derive(Clone)]
pub struct Driver(Handle<sys::iree_hal_driver_t>);

/// A device that a driver has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The path of the device, such as a UUID. It may be empty.
    pub path: String,
    /// The name of the device.
    pub name: String,
}

impl Driver {
    /// Returns the names of the drivers that are built in.
    ///
    /// # Errors
    ///
    /// Returns an error if the drivers cannot be registered.
    pub fn names() -> Result<Vec<String>> {
        let (mut count, mut infos) = (0, ptr::null_mut());
        // SAFETY: The registry is valid, and the pointers are valid for writes.
        unsafe {
            check(sys::iree_hal_driver_registry_enumerate(drivers()?, allocator(), &mut count, &mut infos))?
        };
        // SAFETY: The function has allocated `count` elements, and their names are static.
        let names = unsafe { array(infos, count) }.iter().map(|info| {
            // SAFETY: As above.
            unsafe { text_of(info.driver_name.data, info.driver_name.size) }
        });
        let names = names.collect();
        // SAFETY: The list was allocated with this allocator, and is not used any more.
        unsafe { sys::iree_allocator_free(allocator(), infos.cast()) };
        Ok(names)
    }

    /// Starts a driver.
    ///
    /// # Errors
    ///
    /// Returns NOT_FOUND if no such driver is built in, or UNAVAILABLE or NOT_FOUND if its library or its hardware is missing.
    pub fn open(name: &str) -> Result<Self> {
        #[cfg(feature = "vulkan")]
        if name == "vulkan" {
            return crate::vulkan::driver().map(Self);
        }
        let mut driver = ptr::null_mut();
        // SAFETY: The registry and the name are valid for the call, and the pointer is valid for writes. The new driver belongs
        // to the handle.
        unsafe {
            check(sys::iree_hal_driver_registry_try_create(
                drivers()?,
                view(name),
                allocator(),
                &mut driver,
            ))?;
            Ok(Self(Handle::own(driver)?))
        }
    }

    /// Returns the devices, in the order of their ordinals.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver cannot enumerate them.
    pub fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let (mut count, mut infos) = (0, ptr::null_mut());
        let driver = self.0.as_ptr();
        // SAFETY: The driver is alive, and the pointers are valid for writes.
        unsafe {
            check(sys::iree_hal_driver_query_available_devices(driver, allocator(), &mut count, &mut infos))?;
        }
        // SAFETY: The function has allocated `count` elements, and the strings that they refer to.
        let devices = unsafe { array(infos, count) }.iter().map(|info| {
            // SAFETY: As above.
            let text = |view: sys::iree_string_view_t| unsafe { text_of(view.data, view.size) };
            DeviceInfo { path: text(info.path), name: text(info.name) }
        });
        let devices = devices.collect();
        // SAFETY: The list was allocated with this allocator, and is not used any more.
        unsafe { sys::iree_allocator_free(allocator(), infos.cast()) };
        Ok(devices)
    }

    /// Starts a device.
    ///
    /// # Errors
    ///
    /// Returns NOT_FOUND if there is no device with this ordinal, or any other error that prevents its use.
    pub fn device(&self, ordinal: usize) -> Result<Device> {
        let count = self.devices()?.len();
        if ordinal >= count {
            let message =
                format!("the driver has {count} devices, so it has none with the ordinal {ordinal}");
            return Err(Error::new(Code::NotFound, message));
        }
        Device::create(&self.0, ordinal)
    }
}

/// Returns a list of IREE, which is empty if the pointer is null.
///
/// # Safety
///
/// Otherwise, the pointer must be valid for reads of `count` elements for the life of the result.
unsafe fn array<'a, T>(elements: *const T, count: usize) -> &'a [T] {
    if elements.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: The caller guarantees it.
    unsafe { slice::from_raw_parts(elements, count) }
}
