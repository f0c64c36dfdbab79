//! Memory that the host lends to the plugin, and opaque pointers of the host.

#![allow(unsafe_code, reason = "wraps pointers of the host")]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::slice;

/// Host memory that is readable until this is dropped.
pub(crate) struct HostBytes {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the range is only read, through `&self`, and the contract of `new` allows any thread to read it.
unsafe impl Send for HostBytes {}
// SAFETY: as above: shared access only reads.
unsafe impl Sync for HostBytes {}

impl HostBytes {
    /// # Safety
    ///
    /// Until the value is dropped, the `len` bytes from `start` on are readable from any thread and do not change. `len` is
    /// at most `isize::MAX`. `start` may be dangling if `len` is zero.
    pub(crate) unsafe fn new(start: *const u8, len: usize) -> Self {
        let start = NonNull::new(start.cast_mut()).filter(|_| len > 0).unwrap_or(NonNull::dangling());
        Self { start, len }
    }

    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `new`'s contract makes the range readable and unchanged while `self` lives, which outlives the borrow; a
        // range of zero bytes has a dangling but non-null pointer, which is what a slice needs.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

/// Host memory that the host may write to between the operations that read it.
pub(crate) struct ViewedBytes {
    start: *const u8,
    len: usize,
}

// SAFETY: the range is only read, and the contract of `new` allows any thread to read it.
unsafe impl Send for ViewedBytes {}
// SAFETY: as above: shared access only reads.
unsafe impl Sync for ViewedBytes {}

impl ViewedBytes {
    /// # Safety
    ///
    /// Until the value is dropped, the `len` bytes from `start` on are readable from any thread, and do not change during an
    /// operation that reads their buffer. `len` is at most `isize::MAX`. `start` may be any pointer if `len` is zero.
    pub(crate) unsafe fn new(start: *const u8, len: usize) -> Self {
        Self { start, len }
    }

    /// Returns the host's address of the bytes, even if there are none.
    pub(crate) fn address(&self) -> usize {
        self.start.expose_provenance()
    }

    /// Returns the bytes. Only `HostViewLease` calls this, during an operation that reads the buffer.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `new`'s contract makes the range readable while `self` lives, and unchanged during an operation. Leases
        // are created and used only during operations.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

/// Host memory that is writable until this is dropped.
pub(crate) struct HostBytesMut {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the contract of `new` gives this value exclusive access to the range, from any thread.
unsafe impl Send for HostBytesMut {}
// SAFETY: access goes through `&mut self` only.
unsafe impl Sync for HostBytesMut {}

impl HostBytesMut {
    /// # Safety
    ///
    /// Until the value is dropped, it has exclusive access to the `len` bytes from `start` on, which are writable from any
    /// thread. `len` is at most `isize::MAX`. `start` may be dangling if `len` is zero.
    pub(crate) unsafe fn new(start: *mut u8, len: usize) -> Self {
        let start = NonNull::new(start).filter(|_| len > 0).unwrap_or(NonNull::dangling());
        Self { start, len }
    }

    /// Returns the bytes, whose content is unspecified before they are written.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `new`'s contract gives `self` exclusive access to the range, and `&mut self` makes this the only slice of
        // it. The memory is the host's, allocated outside this program, so its bytes have some value.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// A pointer of the host that is only passed back to the host. The C API allows its use on any thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostPointer(pub(crate) *mut c_void);

// SAFETY: the pointer is only passed back to the host, which the C API allows on any thread.
unsafe impl Send for HostPointer {}
// SAFETY: as above.
unsafe impl Sync for HostPointer {}

impl HostPointer {
    /// Returns the pointer. Closures that use this method capture the wrapper, which is `Send`, and not the pointer.
    pub(crate) fn get(&self) -> *mut c_void {
        self.0
    }
}
