//! Memory of the host.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::{Error, Result};

/// The initial value of the bytes that a plugin writes.
pub const UNWRITTEN: u8 = 0xEE;

/// The value of the bytes of memory that the host passed to a transfer, and then [overwrote](HostMemory::overwrite).
pub const OVERWRITTEN: u8 = 0xC7;

/// Memory that [`HostMemory::recycle`] returned, by its size, and by whether plugins write to it: addresses that are multiples
/// of 64. A plugin that still reads the memory of an upload must not meet the initial bytes of a readback there.
static RECYCLED: Mutex<BTreeMap<(usize, bool), Vec<usize>>> = Mutex::new(BTreeMap::new());

/// The size from which the memory of a readback is used again.
const LARGE: usize = 1 << 20;

/// The number of bytes before and after each memory that a plugin must not change.
const GUARD: usize = 64;

/// The value of these bytes.
const GUARDED: u8 = 0xB9;

/// Host memory. It is never freed, because a plugin may read it for any length of time.
#[derive(Debug)]
pub struct HostMemory {
    pub(super) start: *mut u8,
    pub(super) len: usize,
    /// `true` if a plugin writes to the memory.
    pub(super) is_destination: bool,
}

// SAFETY: this is plain memory that is never freed, and is read and written only through pointers.
unsafe impl Send for HostMemory {}
// SAFETY: as above. A reader that runs concurrently with a writer sees bytes, as the plugin's readers do.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Allocates memory with these bytes, `skew` bytes after an address that is a multiple of 64.
    #[must_use]
    pub fn new(bytes: &[u8], skew: usize) -> Self {
        let memory = Self::allocate(bytes.len(), skew, false);
        memory.write(bytes);
        memory
    }

    /// Allocates memory that a plugin writes to. Its bytes are initialized to [`UNWRITTEN`].
    #[must_use]
    pub fn destination(len: usize, skew: usize) -> Self {
        let memory = Self::allocate(len, skew, true);
        memory.fill(UNWRITTEN);
        memory
    }

    /// Allocates memory between two guards, whose bytes a plugin must not change.
    fn allocate(len: usize, skew: usize, is_destination: bool) -> Self {
        const ALIGN: usize = 64;
        let recycled = if skew == 0 { recycled((len, is_destination)) } else { None };
        let start = recycled.map(ptr::with_exposed_provenance_mut::<u8>).unwrap_or_else(|| {
            let block: &'static mut [u8] = Vec::leak(vec![0; len + 2 * ALIGN + 2 * GUARD]);
            let block = block.as_mut_ptr();
            block.wrapping_add(GUARD + block.wrapping_add(GUARD).align_offset(ALIGN) + skew % ALIGN)
        });
        // SAFETY: the block has room for both guards and the bytes, after an offset of less than twice the
        // alignment. Recycled memory was allocated here, too.
        unsafe {
            start.sub(GUARD).write_bytes(GUARDED, GUARD);
            start.add(len).write_bytes(GUARDED, GUARD);
        }
        Self { start, len, is_destination }
    }

    /// Returns the contents that a function of the plugin wrote.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the bytes before or after the memory changed.
    pub fn written(&self, function: &'static str) -> Result<Vec<u8>> {
        self.with_written(function, <[u8]>::to_vec)
    }

    /// Passes the contents that a function of the plugin wrote to `look`, and returns its result. This is faster than a copy.
    ///
    /// # Errors
    ///
    /// The same as of [`written`](Self::written).
    pub(super) fn with_written<T>(&self, function: &'static str, look: impl FnOnce(&[u8]) -> T) -> Result<T> {
        // SAFETY: the guards lie in the block of this memory, which is never freed.
        let (before, after) = unsafe {
            (
                std::slice::from_raw_parts(self.start.sub(GUARD), GUARD),
                std::slice::from_raw_parts(self.start.add(self.len), GUARD),
            )
        };
        let len = self.len;
        if let Some(at) = after.iter().position(|byte| *byte != GUARDED) {
            let message =
                format!("it wrote past the end of the host's {len} bytes: byte {} changed", len + at);
            return Err(Error::broken(function, message));
        }
        if let Some(at) = before.iter().rposition(|byte| *byte != GUARDED) {
            let message = format!("it wrote {} bytes before the start of the host's memory", GUARD - at);
            return Err(Error::broken(function, message));
        }
        if self.is_written_later() {
            let message =
                "it reported that it was complete before it had written all bytes: some changed later";
            return Err(Error::broken(function, message));
        }
        // SAFETY: this object owns the memory, which is never freed.
        Ok(look(unsafe { std::slice::from_raw_parts(self.start, self.len) }))
    }

    /// Returns `true` if bytes that are [`UNWRITTEN`] change within a short time. Looks at some places only.
    fn is_written_later(&self) -> bool {
        const PLACES: usize = 8;
        const PATIENCE: Duration = Duration::from_millis(60);
        /// The number of times that the bytes may stay as they are before nothing is waited for any more.
        const MOST_IN_VAIN: usize = 5;
        static IN_VAIN: AtomicUsize = AtomicUsize::new(0);
        let width = self.len.min(size_of::<u64>());
        let last = self.len - width;
        let is_unwritten = |at: usize| {
            // SAFETY: the bytes lie in the memory, which is never freed.
            (at..at + width).all(|at| unsafe { self.start.add(at).read_volatile() } == UNWRITTEN)
        };
        let places = (0..=PLACES).map(|place| last / PLACES * place).chain([last]);
        let Some(at) = places.into_iter().find(|at| width > 0 && is_unwritten(*at)) else { return false };
        if IN_VAIN.load(Ordering::Relaxed) >= MOST_IN_VAIN {
            return false;
        }
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if !is_unwritten(at) {
                return true;
            }
            std::thread::sleep(PATIENCE / 30);
        }
        IN_VAIN.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Does the same as [`with_written`](Self::with_written), and recycles the memory if it is large. Small memory is never used
    /// again, because a plugin whose event is complete too early writes to it later.
    ///
    /// # Errors
    ///
    /// The same as of [`written`](Self::written).
    pub(super) fn into_written<T>(self, function: &'static str, look: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let seen = self.with_written(function, look)?;
        if self.len >= LARGE {
            self.recycle();
        }
        Ok(seen)
    }

    /// Makes the memory available for later arrays of the same size. It is not freed: a plugin that reads the memory of an upload
    /// later finds [`OVERWRITTEN`] bytes, or those of another array.
    pub fn recycle(self) {
        const ALIGN: usize = 64;
        if !self.is_destination {
            self.overwrite();
        }
        if self.start.addr().is_multiple_of(ALIGN) {
            let mut recycled = RECYCLED.lock().unwrap_or_else(PoisonError::into_inner);
            recycled.entry((self.len, self.is_destination)).or_default().push(self.exposed());
        }
    }

    /// Overwrites the memory with these bytes.
    ///
    /// # Panics
    ///
    /// Panics if the number of bytes differs from the size of the memory.
    pub fn write(&self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.len, "the bytes have the size of the memory");
        // SAFETY: this object owns the memory, which is never freed.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start, self.len) };
    }

    /// Sets all bytes to this value.
    pub fn fill(&self, byte: u8) {
        // SAFETY: this object owns the memory, which is never freed.
        unsafe { self.start.write_bytes(byte, self.len) };
    }

    /// Sets all bytes to [`OVERWRITTEN`], as a host does that uses its memory for something else.
    pub fn overwrite(&self) {
        self.fill(OVERWRITTEN);
    }

    /// Returns the contents.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: this object owns the memory, which is never freed.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }.to_vec()
    }

    /// Returns the address, for a plugin that writes to the memory.
    pub(super) fn exposed(&self) -> usize {
        self.start.expose_provenance()
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> usize {
        self.start.addr()
    }
}

/// Takes recycled memory of this size and use, and returns its address.
fn recycled(size_and_use: (usize, bool)) -> Option<usize> {
    RECYCLED.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&size_and_use)?.pop()
}

/// The calls of a view's callback.
#[derive(Debug)]
pub(super) struct Deletions {
    /// The address of the view's memory.
    start: usize,
    calls: AtomicUsize,
    /// The calls in which the two arguments were swapped.
    swapped: AtomicUsize,
    /// The calls with the address of other memory.
    of_other_memory: AtomicUsize,
}

/// The addresses of all [`Deletions`], which are never freed.
static DELETIONS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

impl Deletions {
    fn new(start: usize) -> &'static Self {
        let zero = || AtomicUsize::new(0);
        let new: &'static Self =
            Box::leak(Box::new(Self { start, calls: zero(), swapped: zero(), of_other_memory: zero() }));
        DELETIONS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(ptr::from_ref(new).expose_provenance());
        new
    }

    /// Returns the object at this address, or `None` if there is none.
    fn at(address: usize) -> Option<&'static Self> {
        let known = DELETIONS.lock().unwrap_or_else(PoisonError::into_inner).contains(&address);
        // SAFETY: only the addresses of objects that are never freed are in the set.
        known.then(|| unsafe { &*ptr::with_exposed_provenance::<Self>(address) })
    }
}

/// Memory for views.
#[derive(Debug)]
pub struct ViewMemory {
    /// `None` is a null pointer.
    memory: Option<HostMemory>,
    pub(super) deleted: &'static Deletions,
}

impl ViewMemory {
    /// Allocates memory with these bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self::skewed(bytes, 0)
    }

    /// Allocates memory with these bytes, `skew` bytes after an address that is a multiple of 64.
    #[must_use]
    pub fn skewed(bytes: &[u8], skew: usize) -> Self {
        let memory = HostMemory::new(bytes, skew);
        let deleted = Deletions::new(memory.address());
        Self { memory: Some(memory), deleted }
    }

    /// Returns no memory, which is a null pointer.
    #[must_use]
    pub fn null() -> Self {
        Self { memory: None, deleted: Deletions::new(0) }
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.memory.as_ref().map_or(ptr::null_mut(), |memory| memory.start)
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> usize {
        self.start().addr()
    }

    /// Overwrites the memory with these bytes.
    ///
    /// # Panics
    ///
    /// Panics if the number of bytes differs from the size of the memory.
    pub fn write(&self, bytes: &[u8]) {
        match &self.memory {
            Some(memory) => memory.write(bytes),
            None => assert!(bytes.is_empty(), "there is no memory"),
        }
    }

    /// Returns the number of times that the plugin released the memory.
    #[must_use]
    pub fn deleted(&self) -> usize {
        self.deleted.calls.load(Ordering::SeqCst)
    }

    /// Describes a call of the view's callback with wrong arguments, if there was one.
    #[must_use]
    pub fn wrong_arguments(&self) -> Option<&'static str> {
        let Deletions { swapped, of_other_memory, .. } = self.deleted;
        if swapped.load(Ordering::SeqCst) > 0 {
            return Some(
                "the two arguments are swapped: the first one is the address of the memory, and the second one is `user_arg`",
            );
        }
        (of_other_memory.load(Ordering::SeqCst) > 0)
            .then_some("the first argument is not the address of the view's memory, `device_buffer_ptr`")
    }

    /// Returns the contents.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.memory.as_ref().map(HostMemory::bytes).unwrap_or_default()
    }
}

/// The callback of a view.
///
/// # Safety
///
/// The plugin calls this function with the argument of `view`.
pub(super) unsafe extern "C" fn view_deleted(memory: *mut c_void, user_arg: *mut c_void) {
    let count = |of: &AtomicUsize| {
        of.fetch_add(1, Ordering::SeqCst);
    };
    match (Deletions::at(user_arg.addr()), Deletions::at(memory.addr())) {
        (Some(view), _) => {
            if memory.addr() != view.start {
                count(&view.of_other_memory);
            }
            count(&view.calls);
        }
        (None, Some(view)) => {
            count(&view.swapped);
            count(&view.calls);
        }
        (None, None) => {}
    }
}
