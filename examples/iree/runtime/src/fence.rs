//! Points in time for which hosts and devices wait.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use eerie_sys::runtime as sys;

use crate::allocator::allocator;
use crate::device::{Device, called_by_iree};
use crate::handle::Handle;
use crate::status::{Code, Result, check};

/// A point in time: it is reached when all work that signals it is done. A clone is the same point.
#[derive(Clone)]
pub struct Fence {
    // Fields are dropped in this order.
    fence: Handle<sys::iree_hal_fence_t>,
    /// The devices of the semaphores, which have no references to them.
    devices: Vec<Device>,
}

/// No limit for the time of a wait.
const FOREVER: sys::iree_timeout_t =
    sys::iree_timeout_t { type_: sys::iree_timeout_type_e_IREE_TIMEOUT_ABSOLUTE, nanos: i64::MAX };

/// Returns the timeout without a limit.
pub(crate) fn forever() -> sys::iree_timeout_t {
    FOREVER
}

impl Fence {
    /// Creates a fence that is not reached, on a semaphore of its own, so that its failure concerns nothing else.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is no memory for it.
    pub fn new(device: &Device) -> Result<Self> {
        let (mut semaphore, mut fence) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: The device is alive, and the pointers are valid for writes. The new objects belong to the handles; the fence
        // has a reference of its own to the semaphore.
        unsafe {
            check(sys::iree_hal_semaphore_create(device.as_ptr(), u64::MAX, 0, 0, &mut semaphore))?;
            let semaphore = Handle::own(semaphore)?;
            check(sys::iree_hal_fence_create_at(semaphore.as_ptr(), 1, allocator(), &mut fence))?;
            Ok(Self { fence: Handle::own(fence)?, devices: vec![device.clone()] })
        }
    }

    /// Creates a fence that is reached when all of these are: immediately if there are none.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is no memory for it.
    pub fn join(fences: &[&Fence]) -> Result<Self> {
        let mut joined = ptr::null_mut();
        let devices = fences.iter().flat_map(|fence| fence.devices.iter().cloned()).collect();
        let mut fences: Vec<_> = fences.iter().map(|fence| fence.as_ptr()).collect();
        // SAFETY: The fences are alive, the list has this length, and the pointer is valid for writes. The new fence belongs to
        // the handle.
        unsafe {
            if fences.is_empty() {
                check(sys::iree_hal_fence_create(0, allocator(), &mut joined))?;
            } else {
                check(sys::iree_hal_fence_join(fences.len(), fences.as_mut_ptr(), allocator(), &mut joined))?;
            }
            Ok(Self { fence: Handle::own(joined)?, devices })
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::iree_hal_fence_t {
        self.fence.as_ptr()
    }

    /// Returns whether the fence is reached.
    ///
    /// # Errors
    ///
    /// Returns the error of the work that should signal it.
    pub fn is_reached(&self) -> Result<bool> {
        // SAFETY: The fence is alive.
        match unsafe { check(sys::iree_hal_fence_query(self.as_ptr())) } {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Code::Deferred => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until the fence is reached.
    ///
    /// # Errors
    ///
    /// Returns the error of the work that should signal it.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: The fence is alive.
        let waited = unsafe { check(sys::iree_hal_fence_wait(self.as_ptr(), FOREVER, 0)) };
        // The error of the wait only says that the work failed.
        waited.or_else(|error| self.is_reached().and(Err(error)))
    }

    /// Calls a function when the fence is reached, or with the error of the work that should signal it: now if that has happened,
    /// and otherwise on any thread that signals the fence or notices that it is reached, without a switch to another thread. The
    /// function must neither block nor start calls. It may drop the last reference to a device.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is no memory for the registration. The function is dropped then.
    pub fn on_reached(&self, then: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        Waiting { fence: self.clone(), reached: 0, then }.register()
    }

    /// Marks the fence as reached.
    ///
    /// # Errors
    ///
    /// Returns an error if it is reached or failed already.
    pub fn signal(&self) -> Result<()> {
        // SAFETY: The fence is alive.
        unsafe { check(sys::iree_hal_fence_signal(self.as_ptr())) }
    }
}

/// A function that waits for the semaphores of a fence, one after another.
struct Waiting<F> {
    fence: Fence,
    /// The number of semaphores that have been waited for.
    reached: usize,
    then: F,
}

impl<F: FnOnce(Result<()>) + Send + 'static> Waiting<F> {
    /// Registers the function with the next semaphore, or calls it if there is none.
    fn register(self) -> Result<()> {
        // SAFETY: The fence is alive, and its list stays as it is as long as the fence.
        let next = unsafe {
            let list = sys::iree_hal_fence_semaphore_list(self.fence.as_ptr());
            (self.reached < list.count)
                .then(|| (*list.semaphores.add(self.reached), *list.payload_values.add(self.reached)))
        };
        let Some((semaphore, value)) = next else {
            (self.then)(Ok(()));
            return Ok(());
        };
        let waiting = Box::into_raw(Box::new(self));
        // SAFETY: Every semaphore begins with the asynchronous one that it extends, and is alive as long as the fence, which the box
        // owns with its devices. The callback is called once, with the box, unless the registration fails.
        unsafe {
            let registered = sys::iree_async_semaphore_resolve(
                semaphore.cast(),
                value,
                FOREVER,
                Some(resolved::<F>),
                waiting.cast(),
            );
            check(registered).inspect_err(|_| drop(Box::from_raw(waiting)))
        }
    }
}

/// Continues a [`Waiting`] after one of its semaphores.
///
/// # Safety
///
/// `waiting` must be a box that its `register` has given away, and the callee owns the status.
unsafe extern "C" fn resolved<F: FnOnce(Result<()>) + Send + 'static>(
    waiting: *mut c_void,
    status: sys::iree_status_t,
) {
    called_by_iree(|| {
        // SAFETY: This function's contract.
        let (mut waiting, outcome) = unsafe { (*Box::from_raw(waiting.cast::<Waiting<F>>()), check(status)) };
        waiting.reached += 1;
        // A panic must not enter IREE. It drops the function, whose owner notices that.
        let _ = catch_unwind(AssertUnwindSafe(|| match outcome {
            Ok(()) => drop(waiting.register()),
            Err(error) => (waiting.then)(Err(error)),
        }));
    });
}
