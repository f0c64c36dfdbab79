//! A caching allocator: page faults cost more than most kernels, so memory is kept and handed out again.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Alignment of every block, in bytes: a cache line, and the widest vector register.
pub(super) const ALIGN: usize = 64;

/// Blocks of at least this size are mapped from the system directly, in huge pages.
const LARGE: usize = 1 << 20;

/// The huge page size that large blocks are aligned to.
const HUGE_PAGE: usize = 2 << 20;

/// Blocks kept per small size class; more are given back to the system.
const SMALL_KEPT: usize = 256;

/// How much memory an [`Allocator`] may use and keep.
#[derive(Clone, Debug)]
pub struct AllocatorOptions {
    /// Bytes that may be in use at once; an allocation beyond it fails.
    pub limit: usize,
    /// Bytes of freed memory that may be kept for re-use.
    pub cache_limit: usize,
}

impl Default for AllocatorOptions {
    /// What this process may use: the smaller of the machine's memory and its control group's limit, less a
    /// sixteenth for everything that is not arrays. A quarter of it may be kept.
    fn default() -> Self {
        let total = memory_of_process();
        Self { limit: total - total / 16, cache_limit: total / 4 }
    }
}

/// An allocation that did not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: {requested} bytes were asked for, {in_use} of {limit} bytes are in use")]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub requested: usize,
    /// Bytes in use at that time.
    pub in_use: usize,
    /// The allocator's limit in bytes.
    pub limit: usize,
}

/// What an [`Allocator`] has handed out and keeps, in bytes. Sizes are those of whole blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes in use now.
    pub in_use: usize,
    /// The most bytes that were ever in use at once.
    pub peak: usize,
    /// Bytes that are free and kept for re-use.
    pub cached: usize,
    /// The largest single allocation ever made.
    pub largest: usize,
    /// How many allocations were made.
    pub allocations: u64,
    /// The limit.
    pub limit: usize,
}

/// Hands out memory in blocks and keeps what comes back. Clones share one state.
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
    /// Free blocks by their size.
    free: BTreeMap<usize, Vec<Raw>>,
    statistics: Statistics,
}

/// The address of a block that nobody uses.
struct Raw(NonNull<u8>);

// SAFETY: a `Raw` is the sole owner of plain memory; nothing about the memory is tied to a thread.
unsafe impl Send for Raw {}

/// A piece of memory, aligned to a cache line, of which every byte is initialised (to something). Gives itself back
/// when dropped.
pub struct Block {
    ptr: NonNull<u8>,
    /// Size of the underlying allocation; a size class. Zero for a block that has no memory.
    size: usize,
    shared: Arc<Shared>,
}

// SAFETY: a block is the sole owner of plain memory; its methods that give access to the bytes borrow it.
unsafe impl Send for Block {}
// SAFETY: through a shared reference only the address and the size can be had.
unsafe impl Sync for Block {}

impl Allocator {
    /// An allocator with nothing kept yet.
    pub fn new(options: AllocatorOptions) -> Self {
        let mut state = State::default();
        state.statistics.limit = options.limit;
        Self { shared: Arc::new(Shared { options, state: Mutex::new(state) }) }
    }

    /// A block of at least `bytes` bytes. What it holds is unspecified.
    ///
    /// # Errors
    /// If the limit would be passed or the system has no more.
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
                // What is kept counts against the limit too, once it would be passed.
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

    /// What is in use and kept.
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
    /// The first byte.
    pub(super) fn as_ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Bytes in the block: at least what was asked for.
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

/// The size of block that a request is served with: four steps per power of two, and whole huge pages from
/// [`LARGE`] on. None if that passes the address space.
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

/// An address for arrays without bytes.
fn nowhere() -> NonNull<u8> {
    NonNull::without_provenance(const { std::num::NonZero::new(ALIGN).unwrap() })
}

/// Fresh memory of a size that [`class_of`] gave, all bytes zero.
fn from_system(size: usize) -> Option<Raw> {
    if size < LARGE {
        let layout = Layout::from_size_align(size, ALIGN).ok()?;
        // SAFETY: the layout's size is not zero (class_of gives at least ALIGN).
        return NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).map(Raw);
    }
    let padded = size.checked_add(HUGE_PAGE)?;
    // SAFETY: a new private anonymous mapping at an address of the system's choice touches no existing memory.
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
    // SAFETY: `before <= HUGE_PAGE <= padded`: both computed addresses lie inside the mapping or at its end, the
    // unmapped parts are whole pages (the mapping and HUGE_PAGE are page-aligned), and nobody has seen them.
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

/// Gives a block back that [`from_system`] made with the same size.
fn to_system(raw: Raw, size: usize) {
    if size < LARGE {
        let layout = Layout::from_size_align(size, ALIGN).expect("the layout that the block was made with");
        // SAFETY: the block was made by from_system with this size, hence by alloc_zeroed with this layout, and `Raw`
        // is its sole owner.
        unsafe { std::alloc::dealloc(raw.0.as_ptr(), layout) }
    } else {
        // SAFETY: the block is the whole of what from_system left mapped for this size, and `Raw` is its sole owner.
        unsafe { libc::munmap(raw.0.as_ptr().cast(), size) };
    }
}

/// Bytes of memory that this process may use.
fn memory_of_process() -> usize {
    // SAFETY: sysconf only reads its arguments.
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
