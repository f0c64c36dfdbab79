//! Points in time for which hosts and devices wait.

use std::ptr;

use eerie_sys::runtime as sys;

use crate::allocator::allocator;
use crate::device::Device;
use crate::handle::Handle;
use crate::status::{Code, Result, check};

/// A point in time: it is reached when all work that signals it is done. A clone is the same point.
#[derive(Clone)]
pub struct Fence(Handle<sys::iree_hal_fence_t>);

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
            Ok(Self(Handle::own(fence)?))
        }
    }

    /// Creates a fence that is reached when all of these are: immediately if there are none.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is no memory for it.
    pub fn join(fences: &[&Fence]) -> Result<Self> {
        let mut joined = ptr::null_mut();
        let mut fences: Vec<_> = fences.iter().map(|fence| fence.0.as_ptr()).collect();
        // SAFETY: The fences are alive, the list has this length, and the pointer is valid for writes. The new fence belongs to
        // the handle.
        unsafe {
            if fences.is_empty() {
                check(sys::iree_hal_fence_create(0, allocator(), &mut joined))?;
            } else {
                check(sys::iree_hal_fence_join(fences.len(), fences.as_mut_ptr(), allocator(), &mut joined))?;
            }
            Ok(Self(Handle::own(joined)?))
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::iree_hal_fence_t {
        self.0.as_ptr()
    }

    /// Returns whether the fence is reached.
    ///
    /// # Errors
    ///
    /// Returns the error of the work that should signal it.
    pub fn is_reached(&self) -> Result<bool> {
        // SAFETY: The fence is alive.
        match unsafe { check(sys::iree_hal_fence_query(self.0.as_ptr())) } {
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
        let waited = unsafe { check(sys::iree_hal_fence_wait(self.0.as_ptr(), FOREVER, 0)) };
        // The error of the wait only says that the work failed.
        waited.or_else(|error| self.is_reached().and(Err(error)))
    }

    /// Marks the fence as reached.
    ///
    /// # Errors
    ///
    /// Returns an error if it is reached or failed already.
    pub fn signal(&self) -> Result<()> {
        // SAFETY: The fence is alive.
        unsafe { check(sys::iree_hal_fence_signal(self.0.as_ptr())) }
    }
}
