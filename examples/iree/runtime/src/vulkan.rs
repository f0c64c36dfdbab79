//! The driver of Vulkan devices, without two errors of IREE 3.13.
//!
//! Vulkan requires that the values with which a semaphore is signaled increase (VUID-VkSemaphoreSignalInfo-value-03258). IREE
//! 3.13 wakes the thread of a queue from several threads: each takes the next value of an atomic counter and signals it, without
//! a lock around both, so the values may arrive in another order. Mesa's drivers then report VK_ERROR_DEVICE_LOST. IREE accepts
//! a loader of the application; this one gives it [`signal_semaphore`] in place of `vkSignalSemaphore`.
//!
//! IREE keeps the commands that it has recorded for a program, and submits them again for later calls. In copies and fills are the
//! buffers of the first call, so later ones write to these, which may be freed. The driver is started without this cache.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use eerie_sys::runtime as sys;
use libloading::Library;

use crate::allocator::allocator;
use crate::handle::Handle;
use crate::status::{Code, Error, Result, check};
use crate::strings::view;

/// Any function of Vulkan (`PFN_vkVoidFunction`); null if there is none.
type Function = *const c_void;

/// `PFN_vkGetInstanceProcAddr` and `PFN_vkGetDeviceProcAddr`, which have the handle of an instance or of a device.
type Lookup = unsafe extern "system" fn(*mut c_void, *const c_char) -> Function;

/// `VkResult`.
type Outcome = i32;

const SUCCESS: Outcome = 0;

/// `VkSemaphoreSignalInfo`.
#[repr(C)]
struct SignalInfo {
    structure: u32,
    next: *const c_void,
    semaphore: u64,
    value: u64,
}

/// The functions of Vulkan's loader that this module calls.
struct Loader {
    get_instance_function: Lookup,
    get_device_function: Lookup,
    get_counter_value: unsafe extern "system" fn(*mut c_void, u64, *mut u64) -> Outcome,
    signal_semaphore: unsafe extern "system" fn(*mut c_void, *const SignalInfo) -> Outcome,
    /// Held while a semaphore is compared and signaled.
    order: Mutex<()>,
}

impl Loader {
    /// Loads the library, which stays loaded.
    fn load() -> Result<Self> {
        let failed = |error| Error::new(Code::NotFound, format!("Vulkan's loader cannot be used: {error}"));
        // SAFETY: The initializers of Vulkan's loader have no preconditions, and it exports these functions with these types
        // since Vulkan 1.2.
        unsafe {
            let library = Library::new("libvulkan.so.1").or_else(|_| Library::new("libvulkan.so"));
            let library = Box::leak(Box::new(library.map_err(failed)?));
            Ok(Self {
                get_instance_function: *library.get("vkGetInstanceProcAddr").map_err(failed)?,
                get_device_function: *library.get("vkGetDeviceProcAddr").map_err(failed)?,
                get_counter_value: *library.get("vkGetSemaphoreCounterValue").map_err(failed)?,
                signal_semaphore: *library.get("vkSignalSemaphore").map_err(failed)?,
                order: Mutex::new(()),
            })
        }
    }

    /// Returns the loader of the process.
    fn get() -> Result<&'static Self> {
        static LOADER: OnceLock<Result<Loader>> = OnceLock::new();
        LOADER.get_or_init(Self::load).as_ref().map_err(Clone::clone)
    }

    /// Signals a semaphore, unless it has this value or a later one, which implies this one.
    ///
    /// # Safety
    ///
    /// As for `vkSignalSemaphore`, except for the order of the values.
    unsafe fn signal(&self, device: *mut c_void, info: *const SignalInfo) -> Outcome {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let mut current = 0;
        // SAFETY: The caller guarantees that device, semaphore and structure are valid. Under the lock, no other thread of the
        // host signals a semaphore after its value has been read, so the values increase.
        unsafe {
            let outcome = (self.get_counter_value)(device, (*info).semaphore, &mut current);
            let is_new = outcome == SUCCESS && current < (*info).value;
            if is_new { (self.signal_semaphore)(device, info) } else { outcome }
        }
    }
}

/// `vkGetInstanceProcAddr` as IREE sees it.
unsafe extern "system" fn get_instance_function(instance: *mut c_void, name: *const c_char) -> Function {
    let Ok(loader) = Loader::get() else { return ptr::null() };
    // SAFETY: IREE passes a string with a terminator, and an instance that is null or valid.
    unsafe {
        match CStr::from_ptr(name).to_bytes() {
            b"vkGetDeviceProcAddr" => get_device_function as Function,
            _ => (loader.get_instance_function)(instance, name),
        }
    }
}

/// `vkGetDeviceProcAddr` as IREE sees it.
unsafe extern "system" fn get_device_function(device: *mut c_void, name: *const c_char) -> Function {
    let Ok(loader) = Loader::get() else { return ptr::null() };
    // SAFETY: IREE passes a string with a terminator, and a valid device.
    unsafe {
        match CStr::from_ptr(name).to_bytes() {
            b"vkSignalSemaphore" => signal_semaphore as Function,
            _ => (loader.get_device_function)(device, name),
        }
    }
}

/// `vkSignalSemaphore` as IREE sees it.
unsafe extern "system" fn signal_semaphore(device: *mut c_void, info: *const SignalInfo) -> Outcome {
    const ERROR_INITIALIZATION_FAILED: Outcome = -3;
    // SAFETY: IREE passes what `vkSignalSemaphore` needs, except for the order of the values.
    Loader::get().map_or(ERROR_INITIALIZATION_FAILED, |loader| unsafe { loader.signal(device, info) })
}

/// `iree_hal_vulkan_driver_options_t`, of which this module sets two fields.
#[repr(C)]
#[derive(Default)]
struct Options {
    search_paths: [usize; 2],
    api_version: u32,
    request_flags: u32,
    requested_features: u32,
    debug_verbosity: i32,
    device: DeviceOptions,
}

/// `iree_hal_vulkan_device_options_t`.
#[repr(C)]
#[derive(Default)]
struct DeviceOptions {
    flags: u32,
    dispatch_abis: u32,
    /// The number of recorded command buffers that a queue keeps for later calls.
    max_cached_replay_instances: u32,
    max_cached_replay_bytes: u64,
    retained_cached_replay_instances: u32,
}

/// Programs can read buffers through their addresses, which IREE's tools permit, too
/// (`IREE_HAL_VULKAN_FEATURE_ENABLE_BUFFER_DEVICE_ADDRESSES`).
const BUFFER_DEVICE_ADDRESSES: u32 = 1 << 6;

// IREE's headers for Vulkan are not among those for which `eerie-sys` has bindings.
unsafe extern "C" {
    fn iree_hal_vulkan_syms_create(
        get_instance_function: *const c_void,
        allocator: sys::iree_allocator_t,
        out: *mut *mut c_void,
    ) -> sys::iree_status_t;
    fn iree_hal_vulkan_syms_release(symbols: *mut c_void);
    fn iree_hal_vulkan_driver_options_initialize(options: *mut Options);
    fn iree_hal_vulkan_driver_create(
        identifier: sys::iree_string_view_t,
        options: *const Options,
        symbols: *mut c_void,
        allocator: sys::iree_allocator_t,
        out: *mut *mut sys::iree_hal_driver_t,
    ) -> sys::iree_status_t;
}

/// Starts the driver.
///
/// # Errors
///
/// Returns NOT_FOUND if Vulkan's loader is missing, or the error of IREE.
pub(crate) fn driver() -> Result<Handle<sys::iree_hal_driver_t>> {
    Loader::get()?;
    let (mut symbols, mut driver) = (ptr::null_mut(), ptr::null_mut());
    let mut options = Options::default();
    // SAFETY: The functions have the types of IREE's header `hal/drivers/vulkan/api.h`, the options have the layout of
    // IREE's, and the pointers are valid for writes. The loader's function is one that IREE can call at any time. IREE copies
    // what it needs of options and symbols; the new driver belongs to the handle.
    unsafe {
        let lookup = get_instance_function as *const c_void;
        check(iree_hal_vulkan_syms_create(lookup, allocator(), &mut symbols))?;
        iree_hal_vulkan_driver_options_initialize(&mut options);
        options.requested_features |= BUFFER_DEVICE_ADDRESSES;
        // IREE 3.13 keeps recorded copies and fills with the buffers of the call for which it recorded them.
        options.device.max_cached_replay_instances = 0;
        let created =
            iree_hal_vulkan_driver_create(view("vulkan"), &options, symbols, allocator(), &mut driver);
        iree_hal_vulkan_syms_release(symbols);
        check(created)?;
        Handle::own(driver)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    /// A semaphore, for which a value that does not increase is an error as in Mesa's drivers.
    static SEMAPHORE: AtomicU64 = AtomicU64::new(0);

    const ERROR_DEVICE_LOST: Outcome = -4;

    unsafe extern "system" fn lookup(_: *mut c_void, _: *const c_char) -> Function {
        ptr::null()
    }

    unsafe extern "system" fn value(_: *mut c_void, _: u64, value: *mut u64) -> Outcome {
        // SAFETY: The test passes a pointer that is valid for writes.
        unsafe { *value = SEMAPHORE.load(Ordering::SeqCst) };
        thread::yield_now();
        SUCCESS
    }

    unsafe extern "system" fn signal(_: *mut c_void, info: *const SignalInfo) -> Outcome {
        // SAFETY: The test passes a valid structure.
        let value = unsafe { (*info).value };
        if SEMAPHORE.fetch_max(value, Ordering::SeqCst) < value { SUCCESS } else { ERROR_DEVICE_LOST }
    }

    #[test]
    fn the_values_of_a_semaphore_increase_if_several_threads_signal_it() {
        let loader = Loader {
            get_instance_function: lookup,
            get_device_function: lookup,
            get_counter_value: value,
            signal_semaphore: signal,
            order: Mutex::new(()),
        };
        let next = AtomicU64::new(0);
        let wake = || {
            for _ in 0..1000 {
                let value = next.fetch_add(1, Ordering::SeqCst) + 1;
                thread::yield_now();
                let info = SignalInfo { structure: 0, next: ptr::null(), semaphore: 1, value };
                // SAFETY: The functions of this loader need no device.
                assert_eq!(unsafe { loader.signal(ptr::null_mut(), &info) }, SUCCESS);
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(wake))));
        assert_eq!(SEMAPHORE.load(Ordering::SeqCst), 4000);
    }

    #[test]
    fn the_options_have_the_layout_of_iree() {
        let mut options = Options::default();
        // SAFETY: The options are valid for writes.
        unsafe { iree_hal_vulkan_driver_options_initialize(&mut options) };
        let DeviceOptions {
            dispatch_abis,
            max_cached_replay_instances,
            max_cached_replay_bytes,
            retained_cached_replay_instances,
            ..
        } = options.device;
        assert_eq!((dispatch_abis, max_cached_replay_instances), (3, 16));
        assert_eq!((max_cached_replay_bytes, retained_cached_replay_instances), (64 << 20, 1));
    }
}
