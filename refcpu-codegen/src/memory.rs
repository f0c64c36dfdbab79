//! Memory that holds machine code, and the calls of that code. `Compiled::call_at` passes its contract to this module.
//!
//! A page is never writable and executable at once: it is mapped writable, filled, and then made executable.
#![allow(unsafe_code)]

use crate::ir::Error;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The size of the pages in bytes in which code memory is counted. Larger pages of a system are a multiple of it.
const PAGE: usize = 4096;

/// The bytes of all code memory of the process.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// The machine code of a function.
///
/// Its arguments are the addresses of the arrays, the state of the calls, and the function that answers them.
type Entry = unsafe extern "sysv64" fn(*const *mut u8, *mut c_void, Answer) -> u32;

/// The function that answers calls.
pub(crate) type Answer = unsafe extern "sysv64" fn(*mut c_void, u32) -> u64;

/// Pages with machine code, which do not change.
#[derive(Debug)]
pub(crate) struct CodeMemory {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: the pages are only read and executed after `new`, and the value owns them.
unsafe impl Send for CodeMemory {}
// SAFETY: as above.
unsafe impl Sync for CodeMemory {}

impl CodeMemory {
    /// Maps pages with this code, if all code memory occupies at most `limit` bytes with them.
    pub(crate) fn new(code: &[u8], limit: usize) -> Result<Self, Error> {
        let len = code.len().max(1).next_multiple_of(PAGE);
        let room = |used: usize| used.checked_add(len).filter(|used| *used <= limit);
        IN_USE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).map_err(|_| Error::Full { limit })?;
        Self::map(code, len).inspect_err(|_| {
            IN_USE.fetch_sub(len, Ordering::Relaxed);
        })
    }

    /// Maps `len` bytes, of which the code is the first part.
    fn map(code: &[u8], len: usize) -> Result<Self, Error> {
        let refused = || Error::Memory(std::io::Error::last_os_error().to_string());
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping affects no other memory.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(refused());
        }
        let start = NonNull::new(start).ok_or_else(refused)?;
        // SAFETY: the mapping is writable for at least `code.len()` bytes, and new, so it does not overlap the code.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), start.as_ptr().cast(), code.len()) };
        // SAFETY: the pages belong to this mapping, which nothing else uses.
        if unsafe { libc::mprotect(start.as_ptr(), len, libc::PROT_READ | libc::PROT_EXEC) } != 0 {
            let error = refused();
            // SAFETY: the mapping is new, and nothing else has its address.
            unsafe { libc::munmap(start.as_ptr(), len) };
            return Err(error);
        }
        Ok(Self { start, len })
    }

    /// Returns the addresses of the pages.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let start = self.start.as_ptr().addr();
        start..start + self.len
    }

    /// Calls the code from its start.
    ///
    /// # Safety
    /// The memory must hold code of `x86::assemble` for a verified function, on a machine with the instruction set that it
    /// uses. `bases` must contain the address of each array of the function, whose declared number of bytes must be readable,
    /// writable if the function stores to it, and used by nothing else except within `answer`. `answer` must accept `state`, and
    /// must not unwind.
    pub(crate) unsafe fn call(&self, bases: &[*mut u8], state: *mut c_void, answer: Answer) -> u32 {
        // SAFETY: the pages are executable and hold a function with these arguments (guaranteed by the caller).
        unsafe {
            let entry: Entry = std::mem::transmute(self.start.as_ptr());
            entry(bases.as_ptr(), state, answer)
        }
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: the value owns the mapping, and no code of it runs, because calls borrow the value.
        unsafe { libc::munmap(self.start.as_ptr(), self.len) };
        IN_USE.fetch_sub(self.len, Ordering::Relaxed);
    }
}

/// The state of calls: the function that answers, and the panic that ended it.
struct Calls<'a> {
    answer: &'a mut dyn FnMut(u32) -> u64,
    panic: Option<Box<dyn std::any::Any + Send>>,
}

/// Answers a call. After a panic, the remaining calls are not made, so that the code can end.
///
/// # Safety
/// `state` must be the address of a [`Calls`] that nothing else uses.
unsafe extern "sysv64" fn answer(state: *mut c_void, number: u32) -> u64 {
    // SAFETY: guaranteed by the caller.
    let calls = unsafe { &mut *state.cast::<Calls<'_>>() };
    if calls.panic.is_some() {
        return u64::MAX;
    }
    let f = &mut calls.answer;
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(number))) {
        Ok(value) => value,
        Err(panic) => {
            calls.panic = Some(panic);
            u64::MAX
        }
    }
}

/// Executes code on arrays at these addresses.
///
/// # Safety
/// See [`CodeMemory::call`].
pub(crate) unsafe fn call_at(
    memory: &CodeMemory,
    bases: &[*mut u8],
    call: &mut dyn FnMut(u32) -> u64,
) -> u32 {
    let mut calls = Calls { answer: call, panic: None };
    // SAFETY: `answer` does not unwind and receives the state that it expects; the rest is guaranteed by the caller.
    let result = unsafe { memory.call(bases, std::ptr::from_mut(&mut calls).cast(), answer) };
    if let Some(panic) = calls.panic {
        std::panic::resume_unwind(panic);
    }
    result
}

/// Executes code on arrays whose sizes are those that the function declares.
pub(crate) fn call_on_slices(
    memory: &CodeMemory,
    arrays: &mut [&mut [u8]],
    call: &mut dyn FnMut(u32) -> u64,
) -> u32 {
    let bases: Vec<*mut u8> = arrays.iter_mut().map(|a| a.as_mut_ptr()).collect();
    // SAFETY: the slices are exclusive and have the sizes that the function declares (checked by the caller, `Compiled::call`),
    // and `call` cannot access them. Only `Compiled` creates code memory, from verified functions on a supported processor.
    unsafe { call_at(memory, &bases, call) }
}

#[cfg(test)]
pub(crate) mod guarded {
    //! Arrays between pages without access.

    use std::ffi::c_void;

    const PAGE: usize = 4096;

    /// An array that ends where a page without access begins, or begins where one ends.
    pub(crate) struct Guarded {
        start: *mut c_void,
        pages: usize,
        offset: usize,
        len: usize,
    }

    impl Guarded {
        pub(crate) fn new(bytes: &[u8], at_end: bool) -> Self {
            let inner = bytes.len().next_multiple_of(PAGE);
            let pages = inner + 2 * PAGE;
            // SAFETY: a new anonymous mapping affects no other memory.
            let start = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                libc::mmap(std::ptr::null_mut(), pages, libc::PROT_NONE, flags, -1, 0)
            };
            assert_ne!(start, libc::MAP_FAILED);
            // SAFETY: the pages are in the middle of the mapping, which nothing else uses.
            let protected = unsafe {
                libc::mprotect(start.wrapping_byte_add(PAGE), inner, libc::PROT_READ | libc::PROT_WRITE)
            };
            assert_eq!(protected, 0);
            let offset = PAGE + if at_end { inner - bytes.len() } else { 0 };
            let mut array = Self { start, pages, offset, len: bytes.len() };
            array.bytes().copy_from_slice(bytes);
            array
        }

        pub(crate) fn bytes(&mut self) -> &mut [u8] {
            // SAFETY: the bytes are accessible and initialized (zero at first), and belong to this value.
            unsafe { std::slice::from_raw_parts_mut(self.start.byte_add(self.offset).cast(), self.len) }
        }
    }

    impl Drop for Guarded {
        fn drop(&mut self) {
            // SAFETY: the value owns the mapping.
            unsafe { libc::munmap(self.start, self.pages) };
        }
    }
}
