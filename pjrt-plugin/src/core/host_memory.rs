//! Host memory that the host lends to the plugin, and pointers that it passes through.

#![allow(unsafe_code, reason = "wraps pointers of the host")]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::slice;

/// Host memory that may be read until this is dropped.
pub(crate) struct HostBytes {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the range is only read, through `&self`, and the contract of `new` lets any thread do so.
unsafe impl Send for HostBytes {}
// SAFETY: as above: shared access only reads.
unsafe impl Sync for HostBytes {}

impl HostBytes {
    /// # Safety
    ///
    /// Until the value is dropped, the `len` bytes from `start` on can be read from any thread and are not written to;
    /// `len` is at most `isize::MAX`. `start` may be dangling if `len` is zero.
    pub(crate) unsafe fn new(start: *const u8, len: usize) -> Self {
        let start = NonNull::new(start.cast_mut()).filter(|_| len > 0).unwrap_or(NonNull::dangling());
        Self { start, len }
    }

    /// The bytes.
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

// SAFETY: the range is only read, and the contract of `new` lets any thread do so.
unsafe impl Send for ViewedBytes {}
// SAFETY: as above: shared access only reads.
unsafe impl Sync for ViewedBytes {}

impl ViewedBytes {
    /// # Safety
    ///
    /// Until the value is dropped, the `len` bytes from `start` on can be read from any thread, and are not written to while an
    /// operation that reads the buffer over them is unfinished; `len` is at most `isize::MAX`. `start` may be anything if `len`
    /// is zero.
    pub(crate) unsafe fn new(start: *const u8, len: usize) -> Self {
        Self { start, len }
    }

    /// The host's address of the bytes, also of none.
    pub(crate) fn address(&self) -> usize {
        self.start.expose_provenance()
    }

    /// The bytes. `HostViewLease` calls it, in the course of an operation that reads the buffer.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `new`'s contract makes the range readable while `self` lives, and unchanged in the course of an operation;
        // leases are made and used in that only.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

/// Host memory that may be written until this is dropped.
pub(crate) struct HostBytesMut {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the contract of `new` gives this value alone access to the range, from any thread.
unsafe impl Send for HostBytesMut {}
// SAFETY: access goes through `&mut self` only.
unsafe impl Sync for HostBytesMut {}

impl HostBytesMut {
    /// # Safety
    ///
    /// Until the value is dropped, the `len` bytes from `start` on belong to this value alone and can be written from any
    /// thread; `len` is at most `isize::MAX`. `start` may be dangling if `len` is zero.
    pub(crate) unsafe fn new(start: *mut u8, len: usize) -> Self {
        let start = NonNull::new(start).filter(|_| len > 0).unwrap_or(NonNull::dangling());
        Self { start, len }
    }

    /// The bytes. What they hold before they are written is the host's affair.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `new`'s contract gives `self` exclusive access to the range, and `&mut self` makes this the only slice of
        // it. The memory is the host's, allocated outside this program, so its bytes have some value.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// A pointer of the host's, to be handed back to it and not looked at. C callers share such pointers between threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostPointer(pub(crate) *mut c_void);

// SAFETY: the pointer is only handed back to the host, which the C API allows on any thread.
unsafe impl Send for HostPointer {}
// SAFETY: as above.
unsafe impl Sync for HostPointer {}

impl HostPointer {
    /// The pointer; a method, so that closures capture the wrapper.
    pub(crate) fn get(&self) -> *mut c_void {
        self.0
    }
}
