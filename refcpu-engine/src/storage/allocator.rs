//! A caching allocator. Page faults cost more than most kernels, so freed memory is kept for reuse.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The alignment of every block in bytes: that of a cache line and of the widest vector register.
pub(super) const ALIGN: usize = 64;

/// Blocks of at least this many bytes are mapped from the system directly, in huge pages.
const LARGE: usize = 1 << 20;

/// The size of a huge page, to which large blocks are aligned.
const HUGE_PAGE: usize = 2 << 20;

/// The maximum number of blocks in the cache for each small size class. Further ones are returned to the system.
const SMALL_KEPT: usize = 256;

/// The limits of an [`Allocator`].
#[derive(Clone, Debug)]
pub struct AllocatorOptions {
    /// The maximum number of bytes in use at once. An allocation that exceeds it fails.
    pub limit: usize,
    /// The maximum number of bytes of freed memory that are kept for reuse.
    pub cache_limit: usize,
}

impl Default for AllocatorOptions {
    /// Derives the limits from the memory that the process may use, which is the smaller of the machine's memory and the limit
    /// of its control group. `limit` leaves a sixteenth for everything other than arrays; `cache_limit` is a quarter.
    fn default() -> Self {
        let total = memory_of_process();
        Self { limit: total - total / 16, cache_limit: total / 4 }
    }
}

/// The error of an allocation that exceeds the limit or the memory of the system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: cannot allocate {requested} bytes; {in_use} of {limit} bytes are in use")]
pub struct OutOfMemory {
    /// The requested size in bytes.
    pub requested: usize,
    /// The number of bytes in use at the time of the request.
    pub in_use: usize,
    /// The limit of the allocator in bytes.
    pub limit: usize,
}

/// The statistics of an [`Allocator`]. Sizes are in bytes, and count whole blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The number of bytes in use.
    pub in_use: usize,
    /// The maximum number of bytes in use at once since the allocator was created.
    pub peak: usize,
    /// The number of bytes that are free and kept for reuse.
    pub cached: usize,
    /// The size of the largest block allocated so far.
    pub largest: usize,
    /// The number of allocations so far.
    pub allocations: u64,
    /// The maximum number of bytes in use.
    pub limit: usize,
}

/// An allocator that keeps freed blocks for reuse. Clones share one state.
#[derive(Clone)]
pub struct Allocator {
    shared: Arc<Shared>,
}

struct Shared {
    options: AllocatorOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Free blocks by size.
    free: BTreeMap<usize, Vec<Raw>>,
    statistics: Statistics,
}

/// The address of a free block.
struct Raw(NonNull<u8>);

// SAFETY: a `Raw` is the sole owner of plain memory, which is not bound to a thread.
unsafe impl Send for Raw {}

/// A block of memory, aligned to a cache line. All bytes are initialized to unspecified values. Dropping the block returns it
/// to its allocator.
pub struct Block {
    ptr: NonNull<u8>,
    /// The size of the underlying allocation, which is a size class; zero for a block without memory.
    size: usize,
    shared: Arc<Shared>,
}

// SAFETY: a block is the sole owner of plain memory. The methods that give access to the bytes borrow the block.
unsafe impl Send for Block {}
// SAFETY: a shared reference gives access only to the address and the size.
unsafe impl Sync for Block {}

impl Allocator {
    /// Creates an allocator with an empty cache.
    pub fn new(options: AllocatorOptions) -> Self {
        let mut state = State::default();
        state.statistics.limit = options.limit;
        Self { shared: Arc::new(Shared { options, state: Mutex::new(state) }) }
    }

    /// Allocates a block of at least `bytes` bytes with unspecified contents.
    ///
    /// # Errors
    /// Returns an error if the allocation would exceed the limit, or if the system has no more memory.
    pub fn allocate(&self, bytes: usize) -> Result<Block, OutOfMemory> {
        if bytes == 0 {
            return Ok(Block { ptr: nowhere(), size: 0, shared: Arc::clone(&self.shared) });
        }
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = self.shared.options.limit;
        let refused =
            |state: &State| OutOfMemory { requested: bytes, in_use: state.statistics.in_use, limit };
        let Some(size) = class_of(bytes) else { return Err(refused(&state)) };
        if size > limit.saturating_sub(state.statistics.in_use) {
            return Err(refused(&state));
        }
        let kept = state.free.get_mut(&size).and_then(Vec::pop);
        let raw = match kept {
            Some(raw) => {
                state.statistics.cached -= size;
                raw
            }
            None => {
                // Cached memory counts towards the limit when the limit would be exceeded.
                if state.statistics.in_use + state.statistics.cached + size > limit {
                    state.give_back_all();
                }
                match from_system(size) {
                    Some(raw) => raw,
                    None => {
                        state.give_back_all();
                        from_system(size).ok_or_else(|| refused(&state))?
                    }
                }
            }
        };
        let s = &mut state.statistics;
        s.in_use += size;
        s.peak = s.peak.max(s.in_use);
        s.largest = s.largest.max(size);
        s.allocations += 1;
        Ok(Block { ptr: raw.0, size, shared: Arc::clone(&self.shared) })
    }

    /// Returns the statistics.
    pub fn statistics(&self) -> Statistics {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).statistics
    }
}

impl State {
    fn give_back_all(&mut self) {
        for (size, blocks) in std::mem::take(&mut self.free) {
            for raw in blocks {
                to_system(raw, size);
            }
        }
        self.statistics.cached = 0;
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.give_back_all();
    }
}

impl Block {
    /// Returns the address of the first byte.
    pub(super) fn as_ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Returns the size in bytes, which is at least the requested size.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.size == 0 {
            return;
        }
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let size = self.size;
        state.statistics.in_use -= size;
        let raw = Raw(self.ptr);
        let room = state.statistics.cached + size <= self.shared.options.cache_limit;
        let list = state.free.entry(size).or_default();
        if room && (size >= LARGE || list.len() < SMALL_KEPT) {
            list.push(raw);
            state.statistics.cached += size;
        } else {
            to_system(raw, size);
        }
    }
}

/// Returns the size class of a request: four classes per power of two, and multiples of a huge page from [`LARGE`] on. Returns
/// `None` if the size is too large to address.
fn class_of(bytes: usize) -> Option<usize> {
    if bytes <= ALIGN {
        return Some(ALIGN);
    }
    if bytes > isize::MAX as usize / 2 {
        return None;
    }
    let power = usize::BITS - 1 - (bytes - 1).leading_zeros();
    let step = ((1usize << power) / 4).max(ALIGN);
    let size = bytes.next_multiple_of(step);
    Some(if size >= LARGE { size.next_multiple_of(HUGE_PAGE) } else { size })
}

/// Returns an address for arrays without bytes.
fn nowhere() -> NonNull<u8> {
    NonNull::without_provenance(const { std::num::NonZero::new(ALIGN).unwrap() })
}

/// Allocates zeroed memory of a size class from the system.
fn from_system(size: usize) -> Option<Raw> {
    if size < LARGE {
        let layout = Layout::from_size_align(size, ALIGN).ok()?;
        // SAFETY: the size of the layout is not zero, since `class_of` returns at least `ALIGN`.
        return NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).map(Raw);
    }
    let padded = size.checked_add(HUGE_PAGE)?;
    // SAFETY: a new private anonymous mapping at an address that the system chooses affects no existing memory.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            padded,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    let before = start.addr().next_multiple_of(HUGE_PAGE) - start.addr();
    let after = HUGE_PAGE - before;
    // SAFETY: `before <= HUGE_PAGE <= padded`, so both computed addresses lie inside the mapping or at its end. The unmapped
    // parts are whole pages, since the mapping and `HUGE_PAGE` are page-aligned, and no other code has their addresses.
    unsafe {
        let aligned = start.cast::<u8>().add(before);
        if before > 0 {
            libc::munmap(start, before);
        }
        if after > 0 {
            libc::munmap(aligned.add(size).cast(), after);
        }
        #[cfg(target_os = "linux")]
        libc::madvise(aligned.cast(), size, libc::MADV_HUGEPAGE);
        NonNull::new(aligned).map(Raw)
    }
}

/// Returns a block of this size to the system, from which [`from_system`] allocated it.
fn to_system(raw: Raw, size: usize) {
    if size < LARGE {
        let layout = Layout::from_size_align(size, ALIGN).expect("the block was allocated with this layout");
        // SAFETY: `from_system` allocated the block with this size, hence by `alloc_zeroed` with this layout, and `Raw` is its
        // sole owner.
        unsafe { std::alloc::dealloc(raw.0.as_ptr(), layout) }
    } else {
        // SAFETY: the block is all that `from_system` left mapped for this size, and `Raw` is its sole owner.
        unsafe { libc::munmap(raw.0.as_ptr().cast(), size) };
    }
}

/// Returns the number of bytes of memory that this process may use. The system is asked once.
fn memory_of_process() -> usize {
    static MEMORY: OnceLock<usize> = OnceLock::new();
    *MEMORY.get_or_init(ask_for_memory)
}

fn ask_for_memory() -> usize {
    // SAFETY: `sysconf` only reads its arguments.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let physical = usize::try_from(pages).unwrap_or(0).saturating_mul(usize::try_from(page).unwrap_or(0));
    let physical = if physical == 0 { 4 << 30 } else { physical };
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<usize>().ok())
        .fold(physical, usize::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Allocator {
        Allocator::new(AllocatorOptions { limit: 64 << 20, cache_limit: 32 << 20 })
    }

    #[test]
    fn a_freed_block_is_handed_out_again() {
        let a = small();
        for bytes in [1, 100, 5000, 3 << 20] {
            let first = a.allocate(bytes).unwrap();
            let address = first.as_ptr();
            drop(first);
            assert!(a.statistics().cached >= bytes);
            assert_eq!(a.allocate(bytes).unwrap().as_ptr(), address);
        }
        assert_eq!(a.statistics().in_use, 0);
    }

    #[test]
    fn large_blocks_start_on_a_huge_page() {
        let block = small().allocate(5 << 20).unwrap();
        assert_eq!(block.as_ptr().addr().get() % HUGE_PAGE, 0);
        assert!(block.size() >= 5 << 20);
    }

    #[test]
    fn passing_the_limit_is_an_error_and_kept_memory_makes_room() {
        let a = small();
        assert!(a.allocate(65 << 20).is_err());
        assert!(a.allocate(usize::MAX).is_err());
        drop(a.allocate(30 << 20).unwrap());
        let most = a.allocate(60 << 20).unwrap();
        let refusal = a.allocate(30 << 20).err().unwrap();
        assert_eq!(refusal.requested, 30 << 20);
        drop(most);
        assert!(a.allocate(30 << 20).is_ok());
    }

    #[test]
    fn classes_waste_at_most_a_quarter_of_small_blocks() {
        for bytes in (65..LARGE - LARGE / 8).step_by(997) {
            let size = class_of(bytes).unwrap();
            assert!(size >= bytes && size <= bytes + (bytes / 4).max(ALIGN), "{bytes} {size}");
        }
    }
}
