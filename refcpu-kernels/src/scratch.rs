//! Temporary memory for kernels, kept by each thread for the next call.

use std::cell::RefCell;
use std::mem::MaybeUninit;

/// The maximum size of a block that a thread keeps. Larger blocks are returned to the allocator.
const KEPT_BYTES: usize = 16 << 20;
/// The maximum number of blocks that a thread keeps.
const KEPT_BLOCKS: usize = 8;

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(
    #[allow(dead_code, reason = "the memory is only accessed through its address")] [MaybeUninit<u8>; 64],
);

thread_local! {
    static FREE: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// A block of uninitialized memory, aligned to a cache line. When it is dropped, its thread keeps it for
/// later calls.
pub(crate) struct Scratch {
    lines: Vec<Line>,
}

impl Scratch {
    /// Allocates memory for `count` values of type `T`, whose alignment must not exceed a cache line.
    ///
    /// # Panics
    /// Panics if the memory cannot be allocated.
    pub(crate) fn new<T>(count: usize) -> Self {
        const { assert!(align_of::<T>() <= 64) };
        let bytes = count.checked_mul(size_of::<T>()).expect("scratch size overflows");
        let need = bytes.div_ceil(64);
        let kept = FREE.with_borrow_mut(|free| {
            let best = (0..free.len())
                .filter(|i| free[*i].capacity() >= need)
                .min_by_key(|i| free[*i].capacity())?;
            Some(free.swap_remove(best))
        });
        let lines = kept.unwrap_or_else(|| {
            let mut lines = Vec::new();
            // The size is rounded up, so that blocks of similar sizes are interchangeable.
            let room = if need * 64 > KEPT_BYTES { need } else { need.next_power_of_two() };
            lines
                .try_reserve_exact(room)
                .unwrap_or_else(|_| panic!("cannot allocate {bytes} bytes of scratch memory"));
            lines
        });
        Self { lines }
    }

    /// Returns the start of the block.
    pub(crate) fn ptr<T>(&mut self) -> *mut T {
        self.lines.as_mut_ptr().cast()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if lines.capacity() * 64 > KEPT_BYTES {
            return;
        }
        // A thread that is ending no longer has a list; the block is then freed.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < KEPT_BLOCKS {
                free.push(lines);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_block_is_used_again() {
        let mut first = Scratch::new::<f32>(1000);
        let at = first.ptr::<f32>();
        drop(first);
        assert_eq!(Scratch::new::<f32>(900).ptr::<f32>(), at);
    }
}
