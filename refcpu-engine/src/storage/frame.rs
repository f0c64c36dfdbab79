//! The memory of one run of one program on one device, and the views that kernels get of it.

use super::allocator::{ALIGN, Block};
use super::array::{Array, byte_len};
use refcpu_kernels::{DType, Dst, Src};
use std::ptr::NonNull;

/// An array inside a slot: how an instruction names an operand or a result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// Index of the slot.
    pub slot: u32,
    /// First byte within the slot.
    pub offset: usize,
    /// Element type.
    pub dtype: DType,
    /// Sizes of the dimensions, outermost first.
    pub dims: Box<[usize]>,
    bytes: usize,
}

impl View {
    /// A view of the array of this type and shape at `offset` bytes into a slot.
    ///
    /// # Panics
    /// If the array is too large to be addressed; shapes are checked before plans are made.
    pub fn new(slot: u32, offset: usize, dtype: DType, dims: &[usize]) -> Self {
        let bytes = byte_len(dtype, dims).expect("a shape that was checked");
        Self { slot, offset, dtype, dims: dims.into(), bytes }
    }

    /// Bytes of the array.
    pub fn byte_len(&self) -> usize {
        self.bytes
    }
}

/// The slots of a run: each is a piece of memory, to read or to write.
///
/// A slot lies in the frame's arena (several may share memory, at different times of the run), or is an array:
/// an argument or constant (to read), or a result (to write).
#[derive(Default)]
pub struct Frame {
    slots: Vec<Slot>,
    /// The memory that slots had at the start, for those that are results.
    homes: Vec<(u32, NonNull<u8>)>,
    arena: Option<Block>,
    /// Arrays that slots point into, to read. Kept so that their memory stays.
    held: Vec<Array>,
    /// Arrays that slots point into, to write: each has no other holder.
    results: Vec<Option<Array>>,
    /// Kept between calls of `access` for their capacity; empty between calls.
    views: (Vec<Src<'static>>, Vec<Dst<'static>>),
}

#[derive(Clone, Copy)]
struct Slot {
    ptr: NonNull<u8>,
    len: usize,
    writable: bool,
    /// True if it was made by `bind_alias`: it keeps the memory that it began with.
    alias: bool,
}

// SAFETY: the pointers in `slots` point into blocks and arrays that the frame holds, which are Send; `views` is empty.
unsafe impl Send for Frame {}

const UNBOUND: Slot = Slot { ptr: NonNull::dangling(), len: 0, writable: false, alias: false };

impl Frame {
    /// Starts a run with so many slots, none of them bound, and this arena.
    pub fn begin(&mut self, slots: usize, arena: Block) {
        self.end();
        self.slots.resize(slots, UNBOUND);
        self.arena = Some(arena);
    }

    /// Ends a run: lets go of everything. What is kept is capacity.
    pub fn end(&mut self) {
        self.slots.clear();
        self.homes.clear();
        self.held.clear();
        self.results.clear();
        self.arena = None;
    }

    /// Puts a slot into the arena.
    ///
    /// # Panics
    /// If the place is outside of the arena, or not aligned to a cache line.
    pub fn bind_arena(&mut self, slot: u32, offset: usize, len: usize) {
        let arena = self.arena.as_ref().expect("the run has begun");
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= arena.size()),
            "{offset} + {len} in the arena"
        );
        assert!(offset.is_multiple_of(ALIGN), "unaligned place in the arena");
        // SAFETY: offset <= size of the arena's allocation (checked).
        let ptr = unsafe { arena.as_ptr().add(offset) };
        self.slots[slot as usize] = Slot { ptr, len, writable: true, alias: false };
    }

    /// Makes a slot a dense array to read.
    ///
    /// # Panics
    /// If the array is a window.
    pub fn bind_array(&mut self, slot: u32, array: &Array) {
        let bytes = array.bytes().expect("windows are made dense before they are bound");
        let slot = &mut self.slots[slot as usize];
        *slot = Slot { ptr: NonNull::from(bytes).cast(), len: bytes.len(), writable: false, alias: false };
        self.held.push(array.clone());
    }

    /// Makes a slot an array to write: result number `result`.
    ///
    /// # Panics
    /// If the array has another holder, or its memory is not ours.
    pub fn bind_result(&mut self, slot: u32, result: usize, mut array: Array) {
        let ptr = array.exclusive_ptr().expect("a result has one holder");
        self.slots[slot as usize] = Slot { ptr, len: array.byte_len(), writable: true, alias: false };
        self.homes.push((slot, ptr));
        if self.results.len() <= result {
            self.results.resize_with(result + 1, || None);
        }
        self.results[result] = Some(array);
    }

    /// Makes a slot the same memory as another, to read and write alike.
    pub fn bind_alias(&mut self, slot: u32, of: u32) {
        self.slots[slot as usize] = Slot { alias: true, ..self.slots[of as usize] };
    }

    /// Takes result number `result` out; its slot becomes unbound memory that views of it must not be made of again.
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
    /// If they are not equally long, or one is not writable.
    pub fn swap(&mut self, a: u32, b: u32) {
        let (x, y) = (self.slots[a as usize], self.slots[b as usize]);
        assert!(x.len == y.len && x.writable && y.writable, "swap of {} and {} bytes", x.len, y.len);
        self.slots.swap(a as usize, b as usize);
    }

    /// Brings the contents of a result's slot back to the result's memory, if swaps have put them elsewhere.
    pub fn settle(&mut self, slot: u32) {
        let Some((_, home)) = self.homes.iter().copied().find(|(s, _)| *s == slot) else { return };
        let now = self.slots[slot as usize];
        if now.ptr == home {
            return;
        }
        let other =
            self.slots.iter().position(|s| s.ptr == home && !s.alias).expect("swaps only exchange memory");
        // SAFETY: both are the memory of slots of this length (swap checks that they are equally long), writable, held
        // by the frame, which is borrowed mutably; `copy` allows any overlap.
        unsafe { std::ptr::copy(now.ptr.as_ptr(), home.as_ptr(), now.len) };
        self.slots.swap(slot as usize, other);
    }

    /// Calls `kernel` with views of the operands and the results of one instruction.
    ///
    /// `in_place` says that the kernel is one that allows a result to have the same address as an operand.
    ///
    /// # Panics
    /// If a view leaves its slot, a result's slot is read-only, or a result overlaps another view in any other way.
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
            // SAFETY: `place` gives the address of view.bytes bytes inside a slot. The slot's memory is held by the
            // frame (arena, held or results), which is borrowed for this call, and is initialised (blocks always are,
            // foreign memory is by its type). Nothing writes it during the call: in this frame only `dsts` below,
            // which are checked to be apart or equal in address for a kernel that works in place; arenas and results
            // have no other holder; and of other arrays nobody writes those with more than one. The dims outlive
            // the call, and `srcs` is emptied before it returns, so 'static is never seen.
            srcs.push(unsafe { Src::from_raw(ptr, view.dtype, &*std::ptr::from_ref(&*view.dims)) });
        }
        for (i, view) in writes.iter().enumerate() {
            let (ptr, writable) = self.place(view);
            assert!(writable, "slot {} is read-only", view.slot);
            let start = ptr.addr().get();
            let end = start + view.bytes;
            let apart = |other: &View| {
                let at = self.place(other).0.addr().get();
                at >= end || at + other.bytes <= start || view.bytes == 0 || other.bytes == 0
            };
            for read in reads {
                let same = in_place && self.place(read).0 == ptr;
                assert!(
                    same || apart(read),
                    "result in slot {} overlaps the operand in slot {}",
                    view.slot,
                    read.slot
                );
            }
            assert!(writes[..i].iter().all(apart), "result in slot {} overlaps another result", view.slot);
            // SAFETY: as above for address, lifetime and contents. The bytes are writable (a slot in the arena, of
            // which the frame is the sole owner, or a result, which has one holder: the frame), and no other view of
            // this call overlaps them, except those of the same address for a kernel that allows it (checked above).
            dsts.push(unsafe { Dst::from_raw(ptr, view.dtype, &*std::ptr::from_ref(&*view.dims)) });
        }
        let result = kernel(&srcs, &mut dsts);
        srcs.clear();
        dsts.clear();
        self.views = (srcs, dsts);
        result
    }

    /// The bytes of an array, to read.
    pub fn bytes(&self, view: &View) -> &[u8] {
        let (ptr, _) = self.place(view);
        // SAFETY: `place` gives the address of that many initialised bytes, held by the frame; writing them takes a
        // mutable borrow of the frame, which this borrow excludes.
        unsafe { std::slice::from_raw_parts(ptr.as_ptr(), view.bytes) }
    }

    /// The bytes of an array, to write.
    ///
    /// # Panics
    /// If the slot is read-only.
    pub fn bytes_mut(&mut self, view: &View) -> &mut [u8] {
        let (ptr, writable) = self.place(view);
        assert!(writable, "slot {} is read-only", view.slot);
        // SAFETY: as in `bytes`; the slot is writable, so the frame is the sole owner, and it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(ptr.as_ptr(), view.bytes) }
    }

    /// The address of a view's first byte, and whether it may be written.
    #[inline]
    fn place(&self, view: &View) -> (NonNull<u8>, bool) {
        let slot = &self.slots[view.slot as usize];
        assert!(
            view.bytes <= slot.len && view.offset <= slot.len - view.bytes,
            "{} bytes at {} of slot {}, which has {}",
            view.bytes,
            view.offset,
            view.slot,
            slot.len
        );
        // SAFETY: offset <= length of the slot (checked), whose bytes are one allocation.
        (unsafe { slot.ptr.add(view.offset) }, slot.writable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Allocator, AllocatorOptions};

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
