//! The memory of one run of a program on one device, and the views of it that kernels receive.

use super::allocator::{ALIGN, Allocator, Block, OutOfMemory};
use super::array::Array;
use super::rows::{Part, Rows};
use super::view::View;
use refcpu_kernels::{Dst, Src};
use std::ptr::NonNull;
use std::sync::PoisonError;

/// The slots of a run. Each slot is a range of memory.
///
/// A slot is in the arena of the frame, or is an array: an argument or constant, which is read, or a result, which is written.
/// Slots in the arena may share memory at different times of the run.
#[derive(Default)]
pub struct Frame {
    slots: Vec<Slot>,
    /// The initial memory of the slots that are results.
    homes: Vec<(u32, NonNull<u8>)>,
    arena: Option<Block>,
    /// The arrays that slots refer to for reading. They are held so that their memory stays allocated.
    held: Vec<Array>,
    /// The arrays that slots refer to for writing. None of them has another holder.
    results: Vec<Option<Array>>,
    /// Buffers that keep their capacity between calls of `access`. They are empty between calls.
    views: (Vec<Src<'static>>, Vec<Dst<'static>>),
}

#[derive(Clone, Copy)]
struct Slot {
    ptr: NonNull<u8>,
    len: usize,
    writable: bool,
    /// `true` if `bind_alias` bound the slot, which then keeps its initial memory.
    alias: bool,
}

// SAFETY: the pointers in `slots` point into blocks and arrays that the frame holds, which are `Send`. `views` is empty.
unsafe impl Send for Frame {}

/// The arrays of which blocks use parts.
struct Parts(Vec<Slot>);

impl Parts {
    fn slots(&self) -> &[Slot] {
        &self.0
    }
}

// SAFETY: the pointers refer to memory that a frame holds, which may be used from any thread.
unsafe impl Sync for Parts {}

const UNBOUND: Slot = Slot { ptr: NonNull::dangling(), len: 0, writable: false, alias: false };

impl Frame {
    /// Begins a run with this number of unbound slots and this arena.
    pub fn begin(&mut self, slots: usize, arena: Block) {
        self.end();
        self.slots.resize(slots, UNBOUND);
        self.arena = Some(arena);
    }

    /// Ends a run. Drops all memory, but keeps the capacity of its lists.
    pub fn end(&mut self) {
        self.slots.clear();
        self.homes.clear();
        self.held.clear();
        self.results.clear();
        self.arena = None;
    }

    /// Binds a slot to a range of the arena.
    ///
    /// # Panics
    /// Panics if the range exceeds the arena, or is not aligned to a cache line.
    pub fn bind_arena(&mut self, slot: u32, offset: usize, len: usize) {
        let arena = self.arena.as_ref().expect("the run has begun");
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= arena.size()),
            "{len} bytes at offset {offset} exceed the arena"
        );
        assert!(offset.is_multiple_of(ALIGN), "the offset in the arena is not aligned to a cache line");
        // SAFETY: the assertion above checks that `offset` does not exceed the size of the arena's allocation.
        let ptr = unsafe { arena.as_ptr().add(offset) };
        self.slots[slot as usize] = Slot { ptr, len, writable: true, alias: false };
    }

    /// Binds a slot to a dense array for reading.
    ///
    /// # Panics
    /// Panics if the array is a window.
    pub fn bind_array(&mut self, slot: u32, array: &Array) {
        let bytes = array.bytes().expect("windows are made dense before they are bound");
        let slot = &mut self.slots[slot as usize];
        *slot = Slot { ptr: NonNull::from(bytes).cast(), len: bytes.len(), writable: false, alias: false };
        self.held.push(array.clone());
    }

    /// Binds a slot to an array for writing, which is the result with index `result`.
    ///
    /// # Panics
    /// Panics if the array has another holder, or if its memory has another owner.
    pub fn bind_result(&mut self, slot: u32, result: usize, mut array: Array) {
        let ptr = array.exclusive_ptr().expect("a result has one holder");
        self.slots[slot as usize] = Slot { ptr, len: array.byte_len(), writable: true, alias: false };
        self.homes.push((slot, ptr));
        if self.results.len() <= result {
            self.results.resize_with(result + 1, || None);
        }
        self.results[result] = Some(array);
    }

    /// Binds a slot to the memory of another slot, with the same access.
    pub fn bind_alias(&mut self, slot: u32, of: u32) {
        self.slots[slot as usize] = Slot { alias: true, ..self.slots[of as usize] };
    }

    /// Returns the array of a result. Its slot becomes unbound, and must not be used in views.
    pub fn take_result(&mut self, slot: u32, result: usize) -> Option<Array> {
        let array = self.results.get_mut(result)?.take()?;
        let start = self.slots[slot as usize].ptr;
        for s in &mut self.slots {
            if s.ptr == start {
                *s = UNBOUND;
            }
        }
        Some(array)
    }

    /// Exchanges the memory of two slots.
    ///
    /// # Panics
    /// Panics if the lengths of the slots differ, or if one of them is not writable.
    pub fn swap(&mut self, a: u32, b: u32) {
        let (x, y) = (self.slots[a as usize], self.slots[b as usize]);
        assert!(
            x.len == y.len && x.writable && y.writable,
            "swapped slots must be writable and of equal length, found {} and {} bytes",
            x.len,
            y.len
        );
        self.slots.swap(a as usize, b as usize);
    }

    /// Moves the contents of a result's slot to the memory of the result, if swaps have exchanged it.
    pub fn settle(&mut self, slot: u32) {
        let Some((_, home)) = self.homes.iter().copied().find(|(s, _)| *s == slot) else { return };
        let now = self.slots[slot as usize];
        if now.ptr == home {
            return;
        }
        let other =
            self.slots.iter().position(|s| s.ptr == home && !s.alias).expect("swaps only exchange memory");
        // SAFETY: both are writable memory of slots of this length, since `swap` checks that the lengths are equal. The frame
        // holds them and is borrowed mutably. `copy` allows any overlap.
        unsafe { std::ptr::copy(now.ptr.as_ptr(), home.as_ptr(), now.len) };
        self.slots.swap(slot as usize, other);
    }

    /// Calls `kernel` with views of the operands and results of one step.
    ///
    /// `in_place` states that the kernel allows a result at the address of an operand.
    ///
    /// # Panics
    /// Panics if a view exceeds its slot, if the slot of a result is read-only, or if a result overlaps another view in any
    /// other way.
    #[inline]
    pub fn access<R>(
        &mut self,
        reads: &[View],
        writes: &[View],
        in_place: bool,
        kernel: impl FnOnce(&[Src<'_>], &mut [Dst<'_>]) -> R,
    ) -> R {
        let (mut srcs, mut dsts) = std::mem::take(&mut self.views);
        for view in reads {
            let (ptr, _) = self.place(view);
            // SAFETY: `place` returns the address of `view.byte_len()` bytes inside a slot. The frame holds the memory of the
            // slot (in `arena`, `held` or `results`) and is borrowed for this call. The bytes are initialized: blocks always
            // are, and foreign memory is by its type. Nothing writes them during the call. In this frame only `dsts` below
            // writes, and its views are checked to be disjoint from this one, or to have the same address for a kernel that
            // works in place. Arenas and results have no other holder, and arrays with more than one holder are never written.
            // The dims outlive the call, and `srcs` is emptied before it returns, so that no code sees the lifetime 'static.
            srcs.push(unsafe { Src::from_raw(ptr, view.dtype, &*std::ptr::from_ref(&*view.dims)) });
        }
        for (i, view) in writes.iter().enumerate() {
            let (ptr, writable) = self.place(view);
            assert!(writable, "slot {} is read-only", view.slot);
            let start = ptr.addr().get();
            let end = start + view.byte_len();
            let apart = |other: &View| {
                let at = self.place(other).0.addr().get();
                at >= end || at + other.byte_len() <= start || view.byte_len() == 0 || other.byte_len() == 0
            };
            for read in reads {
                let same = in_place && self.place(read).0 == ptr;
                assert!(
                    same || apart(read),
                    "the result in slot {} overlaps the operand in slot {}",
                    view.slot,
                    read.slot
                );
            }
            assert!(
                writes[..i].iter().all(apart),
                "the result in slot {} overlaps another result",
                view.slot
            );
            // SAFETY: as above for address, lifetime and initialization. The bytes are writable: the slot is in the arena, of
            // which the frame is the sole owner, or is a result, whose only holder is the frame. No other view of this call
            // overlaps them, except those of the same address for a kernel that allows it, as checked above.
            dsts.push(unsafe { Dst::from_raw(ptr, view.dtype, &*std::ptr::from_ref(&*view.dims)) });
        }
        let result = kernel(&srcs, &mut dsts);
        srcs.clear();
        dsts.clear();
        self.views = (srcs, dsts);
        result
    }

    /// Calls `work` with each block of rows, and with a frame whose slots are the parts of the arrays that belong to the
    /// block. `run` calls its function once for each block, possibly on several threads.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory for the local arrays of a block.
    ///
    /// # Panics
    /// Panics if a part exceeds its array or its slot, if the slot of a written part is read-only, or if a written part overlaps
    /// another part other than itself.
    pub fn row_blocks(
        &mut self,
        rows: &Rows,
        allocator: &Allocator,
        run: impl FnOnce(usize, &(dyn Fn(usize) + Sync)),
        work: &(dyn Fn(&mut Frame, usize) + Sync),
    ) -> Result<(), OutOfMemory> {
        let slots: Vec<Slot> = rows.parts.iter().map(|p| self.part(rows, p)).collect();
        let parts = Parts(slots);
        let local: usize = rows.local.iter().map(|row| (row * rows.block).next_multiple_of(ALIGN)).sum();
        let failure = std::sync::Mutex::new(None);
        run(rows.blocks(), &|block| {
            let arena = match allocator.allocate(local) {
                Ok(arena) => arena,
                Err(e) => return *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(e),
            };
            let mut inner = Frame::default();
            inner.begin(rows.parts.len() + rows.local.len(), arena);
            let (first, count) = (block * rows.block, rows.rows_of(block));
            for (slot, (part, whole)) in rows.parts.iter().zip(parts.slots()).enumerate() {
                let start = first * part.row;
                let len = if part.is_contained { count * part.row } else { whole.len - start };
                // SAFETY: `part` checked that the rows are in the slot. Its memory belongs to this frame, which is borrowed
                // until all blocks have run, and the inner frame ends before. Only this block has access to these bytes, unless
                // they are not written: written parts have only the bytes of their rows, and overlap only parts with the same
                // rows.
                let ptr = unsafe { whole.ptr.add(start) };
                inner.slots[slot] = Slot { ptr, len, writable: part.is_written, alias: false };
            }
            let mut offset = 0;
            for (k, row) in rows.local.iter().enumerate() {
                inner.bind_arena((rows.parts.len() + k) as u32, offset, row * count);
                offset += (row * rows.block).next_multiple_of(ALIGN);
            }
            work(&mut inner, block);
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Returns the memory of an array of which blocks use parts, after checking that the parts of different blocks are apart if
    /// they are written.
    fn part(&self, rows: &Rows, part: &Part) -> Slot {
        let (ptr, writable) = self.place(&part.view);
        let len = part.view.byte_len();
        let count = if part.is_contained { rows.count } else { rows.count - 1 };
        assert!(count.checked_mul(part.row).is_some_and(|end| end <= len), "the rows exceed {:?}", part.view);
        if part.is_written {
            assert!(writable && part.is_contained, "slot {} is read-only", part.view.slot);
            let (start, end) = (ptr.addr().get(), ptr.addr().get() + len);
            for other in rows.parts.iter().filter(|other| !std::ptr::eq(*other, part)) {
                let at = self.place(&other.view).0.addr().get();
                let apart = at >= end || at + other.view.byte_len() <= start;
                let same_rows = at == start && other.is_contained && other.row == part.row;
                assert!(
                    apart || same_rows,
                    "the parts in slots {} and {} overlap",
                    part.view.slot,
                    other.view.slot
                );
            }
        }
        Slot { ptr, len, writable, alias: false }
    }

    /// Returns the bytes of an array for reading.
    ///
    /// # Panics
    /// Panics if the view exceeds its slot, or if the slot is not bound.
    pub fn bytes(&self, view: &View) -> &[u8] {
        let (ptr, _) = self.place(view);
        // SAFETY: `place` returns the address of this number of initialized bytes, which the frame holds. Writing them requires
        // a mutable borrow of the frame, which this borrow excludes.
        unsafe { std::slice::from_raw_parts(ptr.as_ptr(), view.byte_len()) }
    }

    /// Returns the bytes of an array for writing.
    ///
    /// # Panics
    /// Panics if the view exceeds its slot, or if the slot is not bound or read-only.
    pub fn bytes_mut(&mut self, view: &View) -> &mut [u8] {
        let (ptr, writable) = self.place(view);
        assert!(writable, "slot {} is read-only", view.slot);
        // SAFETY: as in `bytes`. The slot is writable, so the frame is the sole owner, and it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(ptr.as_ptr(), view.byte_len()) }
    }

    /// Returns the address of a view's first byte, and whether its slot is writable.
    #[inline]
    fn place(&self, view: &View) -> (NonNull<u8>, bool) {
        let slot = &self.slots[view.slot as usize];
        assert!(
            view.byte_len() <= slot.len && view.offset <= slot.len - view.byte_len(),
            "the view of {} bytes at offset {} exceeds slot {}, which has {} bytes",
            view.byte_len(),
            view.offset,
            view.slot,
            slot.len
        );
        // SAFETY: the assertion above checks that `offset` does not exceed the length of the slot, whose bytes are one
        // allocation.
        (unsafe { slot.ptr.add(view.offset) }, slot.writable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Allocator, AllocatorOptions};
    use refcpu_kernels::DType;

    fn view(slot: u32, offset: usize, len: usize) -> View {
        View::new(slot, offset, DType::U8, &[len])
    }

    fn frame() -> (Allocator, Frame) {
        let a = Allocator::new(AllocatorOptions::default());
        let mut f = Frame::default();
        f.begin(4, a.allocate(256).unwrap());
        f.bind_arena(0, 0, 64);
        f.bind_arena(1, 64, 64);
        (a, f)
    }

    #[test]
    fn what_is_written_is_read() {
        let (_, mut f) = frame();
        f.access(&[], &[view(0, 0, 3)], false, |_, w| w[0].bytes_mut().copy_from_slice(&[1, 2, 3]));
        f.access(&[view(0, 1, 2)], &[view(1, 0, 2)], false, |r, w| {
            w[0].bytes_mut().copy_from_slice(r[0].bytes())
        });
        assert_eq!(f.bytes(&view(1, 0, 2)), [2, 3]);
        f.swap(0, 1);
        assert_eq!(f.bytes(&view(0, 0, 2)), [2, 3]);
    }

    #[test]
    #[should_panic(expected = "overlaps")]
    fn a_result_may_not_overlap_an_operand() {
        let (_, mut f) = frame();
        f.access(&[view(0, 0, 3)], &[view(0, 1, 3)], true, |_, _| ());
    }

    #[test]
    fn a_kernel_in_place_gets_both_views_of_one_address() {
        let (_, mut f) = frame();
        f.access(&[view(0, 0, 3)], &[view(0, 0, 3)], true, |r, w| {
            assert_eq!(r[0].as_ptr(), w[0].as_mut_ptr().cast_const())
        });
    }

    #[test]
    #[should_panic(expected = "read-only")]
    fn an_argument_is_never_written() {
        let (a, mut f) = frame();
        f.bind_array(2, &Array::from_bytes(&a, DType::U8, &[3], &[1, 2, 3]).unwrap());
        f.access(&[], &[view(2, 0, 3)], false, |_, _| ());
    }

    #[test]
    #[should_panic(expected = "which has 64")]
    fn a_view_stays_in_its_slot() {
        let (_, f) = frame();
        f.bytes(&view(0, 60, 5));
    }

    #[test]
    #[should_panic(expected = "one holder")]
    fn a_shared_array_is_no_result() {
        let (a, mut f) = frame();
        let array = Array::from_bytes(&a, DType::U8, &[1], &[1]).unwrap();
        f.bind_result(2, 0, array.clone());
        drop(array);
    }
}
