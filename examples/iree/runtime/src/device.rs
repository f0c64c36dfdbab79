//! Devices.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::thread;

use eerie_sys::runtime as sys;

use crate::allocator::allocator;
use crate::handle::Handle;
use crate::instance::instance;
use crate::status::{Result, check};
use crate::strings::{text_of, view};

/// A device with its queues and its memory. A clone is the same device.
#[derive(Clone)]
pub struct Device(Arc<Shared>);

struct Shared(ManuallyDrop<Handles>);

struct Handles {
    // Fields are dropped in this order.
    module: Handle<sys::iree_vm_module_t>,
    device: Handle<sys::iree_hal_device_t>,
    _driver: Handle<sys::iree_hal_driver_t>,
}

/// The memory that the allocator of a device has given out (`iree_hal_allocator_statistics_t`), in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// The memory in use.
    pub in_use: u64,
    /// The maximum of `in_use`.
    pub peak: u64,
    /// The sum of the sizes of all allocations.
    pub allocated: u64,
}

thread_local! {
    /// `true` while IREE calls a function of this crate on this thread, which may be one of a device.
    static IS_CALLED_BY_IREE: Cell<bool> = const { Cell::new(false) };
}

/// Performs work in a function that IREE calls.
pub(crate) fn called_by_iree<T>(work: impl FnOnce() -> T) -> T {
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            IS_CALLED_BY_IREE.set(self.0);
        }
    }
    let _reset = Reset(IS_CALLED_BY_IREE.replace(true));
    work()
}

impl Drop for Shared {
    /// Ends the device: on a thread of its own if this may be one of the device's threads, which cannot wait for its own end.
    fn drop(&mut self) {
        // SAFETY: The handles are taken once, and not used afterwards.
        let handles = unsafe { ManuallyDrop::take(&mut self.0) };
        if !IS_CALLED_BY_IREE.get() {
            return drop(handles);
        }
        let handles = ManuallyDrop::new(handles);
        let end = move || drop(ManuallyDrop::into_inner(handles));
        // A device that cannot be ended, because the system has no more threads, stays.
        let _ = thread::Builder::new().name("iree-end".to_owned()).spawn(end);
    }
}

impl Device {
    /// Starts the device of a driver. The driver has a device with this ordinal.
    pub(crate) fn create(driver: &Handle<sys::iree_hal_driver_t>, ordinal: usize) -> Result<Self> {
        let (mut pool, mut device) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: The pointers are valid for writes and the driver is alive. The device has references of its own to the objects
        // with which it is created, and the new objects belong to the handles.
        let device = unsafe {
            let options = sys::iree_async_proactor_pool_options_default();
            check(sys::iree_async_proactor_pool_create(1, ptr::null(), options, allocator(), &mut pool))?;
            let pool = Handle::own(pool)?;
            let params =
                sys::iree_hal_device_create_params_t { next: ptr::null(), proactor_pool: pool.as_ptr() };
            let (driver, none) = (driver.as_ptr(), ptr::null());
            check(sys::iree_hal_driver_create_device_by_ordinal(
                driver,
                ordinal,
                0,
                none,
                &params,
                allocator(),
                &mut device,
            ))?;
            Handle::own(device)?
        };
        let handles = Handles { module: hal_module(&device)?, device, _driver: driver.clone() };
        Ok(Self(Arc::new(Shared(ManuallyDrop::new(handles)))))
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::iree_hal_device_t {
        self.0.0.device.as_ptr()
    }

    /// Returns the module with which programs call the device.
    pub(crate) fn module(&self) -> *mut sys::iree_vm_module_t {
        self.0.0.module.as_ptr()
    }

    /// Returns the allocator, which is alive as long as the device.
    pub(crate) fn allocator(&self) -> *mut sys::iree_hal_allocator_t {
        // SAFETY: The device is alive.
        unsafe { sys::iree_hal_device_allocator(self.as_ptr()) }
    }

    /// Returns the identifier that the driver gave to the device.
    #[must_use]
    pub fn id(&self) -> String {
        // SAFETY: The device is alive, and the string is alive as long as the device.
        unsafe {
            let id = sys::iree_hal_device_id(self.as_ptr());
            text_of(id.data, id.size)
        }
    }

    /// Returns a property that the driver knows by a name, such as `shader_int8` of the category `vulkan.feature`.
    ///
    /// # Errors
    ///
    /// Returns NOT_FOUND if the driver does not know it.
    pub fn query(&self, category: &str, name: &str) -> Result<i64> {
        let mut value = 0;
        // SAFETY: The device is alive, the strings are valid for the call, and the pointer is valid for writes.
        unsafe {
            check(sys::iree_hal_device_query_i64(self.as_ptr(), view(category), view(name), &mut value))?;
        }
        Ok(value)
    }

    /// Returns the statistics of the memory.
    #[must_use]
    pub fn memory_statistics(&self) -> MemoryStatistics {
        let mut statistics = sys::iree_hal_allocator_statistics_t::default();
        // SAFETY: The allocator is alive, and the pointer is valid for writes.
        unsafe { sys::iree_hal_allocator_query_statistics(self.allocator(), &mut statistics) };
        let sys::iree_hal_allocator_statistics_t {
            host_bytes_peak,
            host_bytes_allocated,
            host_bytes_freed,
            device_bytes_peak,
            device_bytes_allocated,
            device_bytes_freed,
        } = statistics;
        let allocated = host_bytes_allocated.saturating_add(device_bytes_allocated) as u64;
        let freed = host_bytes_freed.saturating_add(device_bytes_freed) as u64;
        let peak = host_bytes_peak.saturating_add(device_bytes_peak) as u64;
        MemoryStatistics { in_use: allocated.saturating_sub(freed), peak, allocated }
    }
}

/// Creates the HAL module of a device, which is alone in its group.
fn hal_module(device: &Handle<sys::iree_hal_device_t>) -> Result<Handle<sys::iree_vm_module_t>> {
    let (mut tracker, mut group, mut module) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let options = sys::iree_async_frontier_tracker_options_t {
        axis_table_capacity: 256,
        session_epoch: 1,
        machine_index: 0,
    };
    // SAFETY: The pointers are valid for writes, and device and instance are alive. The objects have references of their own to
    // those with which they are created, and the new objects belong to the handles.
    unsafe {
        check(sys::iree_async_frontier_tracker_create(options, allocator(), &mut tracker))?;
        let tracker = Handle::own(tracker)?;
        let (device, tracker) = (device.as_ptr(), tracker.as_ptr());
        check(sys::iree_hal_device_group_create_from_device(device, tracker, allocator(), &mut group))?;
        let group = Handle::own(group)?;
        check(sys::iree_hal_module_create(
            instance()?.as_ptr(),
            sys::iree_hal_module_device_policy_default(),
            group.as_ptr(),
            0,
            sys::iree_hal_module_debug_sink_t::default(),
            allocator(),
            &mut module,
        ))?;
        Handle::own(module)
    }
}
