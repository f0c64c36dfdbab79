//! The engine of all copies: a nest of loops with a stride on each side, which is simplified and then
//! executed by the fastest of a few inner kernels.

use super::transpose::transpose_block;
use crate::Pool;
use crate::few::Few;
use crate::view::SyncPtr;

/// The minimum size in bytes of a copy that is divided into chunks.
const BYTES_PER_CHUNK: usize = 128 << 10;
/// The approximate maximum number of chunks of a copy.
const MAX_CHUNKS: usize = 128;

/// A loop of a nest: the number of iterations, and the stride of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// The number of iterations.
    pub(crate) count: usize,
    /// The stride of the source, in elements. Zero repeats an element, and negative strides reverse.
    pub(crate) src: isize,
    /// The stride of the destination, in elements. It is positive if `count` is greater than 1.
    pub(crate) dst: isize,
}

/// Nested loops around the copy of one element, in any order. Iterations write different elements.
#[derive(Default)]
pub(crate) struct Nest {
    loops: Few<Loop>,
    empty: bool,
}

impl Nest {
    /// Creates a nest that copies one element.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a loop around or inside the others.
    pub(crate) fn push(&mut self, l: Loop) {
        match l.count {
            0 => self.empty = true,
            1 => {}
            _ => self.loops.push(l),
        }
    }

    /// Sorts the loops by the destination's stride, merges contiguous ones, converts strides to bytes and
    /// short runs to elements, and selects the inner kernel.
    pub(crate) fn prepare(mut self, size: usize) -> Prepared {
        self.loops.sort_by_key(|l| std::cmp::Reverse(l.dst.unsigned_abs()));
        self.loops.dedup_by(|inner, outer| {
            let n = inner.count as isize;
            let continues = outer.src == inner.src.wrapping_mul(n) && outer.dst == inner.dst.wrapping_mul(n);
            if continues {
                *outer = Loop { count: outer.count.saturating_mul(inner.count), ..*inner };
            }
            continues
        });
        let mut size = size;
        let one = size as isize;
        for l in &mut self.loops {
            l.src = l.src.wrapping_mul(one);
            l.dst = l.dst.wrapping_mul(one);
        }
        if let Some(Loop { count, src, dst }) = self.loops.last().copied()
            && src == one
            && dst == one
            && count <= 16
            && matches!(count * size, 2 | 4 | 8 | 16)
        {
            self.loops.pop();
            size *= count;
        }
        let inner = choose_inner(&mut self.loops, size);
        Prepared { loops: self.loops, inner, size, empty: self.empty }
    }
}

/// The kind of the innermost loops.
#[derive(Clone, Copy)]
enum Inner {
    /// Both sides are contiguous.
    Run,
    /// The destination is contiguous, and the source has stride zero.
    Fill,
    /// The destination is contiguous in the last loop, and the source in the one before it.
    Transpose,
    /// None of the above.
    Strided,
}

/// Runs the nest from `src` to `dst`, in parallel if it is large.
///
/// # Safety
/// For every combination of iterations, `src` and `dst` offset by the strides (in elements of `size` bytes)
/// must point to readable and writable elements. The written elements must be pairwise different, and none of
/// them may be read.
pub(crate) unsafe fn copy_nest(pool: &Pool, size: usize, src: *const u8, dst: SyncPtr, nest: Nest) {
    // SAFETY: guaranteed by the caller.
    unsafe { nest.prepare(size).run(pool, src, dst) }
}

/// A nest that can be run, once or for several addresses.
pub(crate) struct Prepared {
    /// The loops, outermost first, with strides in bytes.
    loops: Few<Loop>,
    inner: Inner,
    size: usize,
    empty: bool,
}

impl Prepared {
    /// Returns the total number of bytes that are copied.
    pub(crate) fn bytes(&self) -> usize {
        if self.empty { 0 } else { self.loops.iter().map(|l| l.count).product::<usize>() * self.size }
    }

    /// Returns the loops around runs that are contiguous on both sides, outermost first and with strides in
    /// bytes, and the size of a run in bytes.
    pub(crate) fn runs(&self) -> (&[Loop], usize) {
        match (self.inner, &self.loops[..]) {
            (Inner::Run, [outer @ .., last]) => (outer, last.count * self.size),
            (_, all) => (all, self.size),
        }
    }

    /// Runs the nest on the calling thread.
    ///
    /// # Safety
    /// See [`copy_nest`].
    #[inline]
    pub(crate) unsafe fn run_inline(&self, src: *const u8, dst: *mut u8) {
        if !self.empty {
            // SAFETY: guaranteed by the caller.
            unsafe { run_loops(&self.loops, self.inner, self.size, src, dst) }
        }
    }

    /// Runs the nest, in chunks if it is large.
    ///
    /// # Safety
    /// See [`copy_nest`].
    pub(crate) unsafe fn run(&self, pool: &Pool, src: *const u8, dst: SyncPtr) {
        let Self { loops, inner, size, .. } = self;
        let wanted = (self.bytes() / BYTES_PER_CHUNK).min(MAX_CHUNKS);
        if wanted < 2 {
            // SAFETY: guaranteed by the caller.
            unsafe { self.run_inline(src, dst.get()) };
            return;
        }
        // The outermost loops up to `split` are fully divided, and the loop `split` is divided into `parts`.
        let (mut split, mut outer) = (0, 1usize);
        while split + 1 < loops.len() && outer * loops[split].count < wanted {
            outer *= loops[split].count;
            split += 1;
        }
        let count = loops[split].count;
        let mut part = count.div_ceil(wanted.div_ceil(outer));
        if split + 2 >= loops.len() {
            // Chunks contain whole blocks of the inner kernels.
            part = part.next_multiple_of(64);
        }
        let parts = count.div_ceil(part);
        let src = SyncPtr::from_raw(src.cast_mut());
        pool.run(outer * parts, &|chunk| {
            let (mut rest, from) = (chunk / parts, chunk % parts * part);
            let mut local: Vec<Loop> = loops[split..].to_vec();
            local[0].count = part.min(count - from);
            let mut source = src.get().cast_const().wrapping_offset(loops[split].src * from as isize);
            let mut target = dst.get().wrapping_offset(loops[split].dst * from as isize);
            for l in loops[..split].iter().rev() {
                let i = (rest % l.count) as isize;
                rest /= l.count;
                source = source.wrapping_offset(l.src * i);
                target = target.wrapping_offset(l.dst * i);
            }
            // SAFETY: these are a subset of the caller's iterations. The subsets of different chunks are
            // disjoint, so no two chunks write the same element.
            unsafe { run_loops(&local, *inner, *size, source, target) };
        });
    }
}

/// Selects the kernel for the innermost loops. For a transpose, moves the loop in which the source is
/// contiguous to the last position but one.
fn choose_inner(loops: &mut [Loop], size: usize) -> Inner {
    let one = size as isize;
    match loops.last() {
        None => Inner::Run,
        Some(l) if l.dst == one && l.src == one => Inner::Run,
        Some(l) if l.dst == one && l.src == 0 => Inner::Fill,
        Some(l) if l.dst == one => {
            let n = loops.len();
            match loops[..n - 1].iter().rposition(|l| l.src == one) {
                Some(j) => {
                    loops[j..n - 1].rotate_left(1);
                    Inner::Transpose
                }
                None => Inner::Strided,
            }
        }
        Some(_) => Inner::Strided,
    }
}

/// Runs loops with strides in bytes, outermost first.
///
/// # Safety
/// See [`copy_nest`]; with strides in bytes.
unsafe fn run_loops(loops: &[Loop], inner: Inner, size: usize, src: *const u8, dst: *mut u8) {
    const ONCE: Loop = Loop { count: 1, src: 0, dst: 0 };
    match loops {
        // SAFETY: one element.
        [] => unsafe { std::ptr::copy_nonoverlapping(src, dst, size) },
        // SAFETY: guaranteed by the caller.
        [last] => unsafe { run_inner(ONCE, *last, inner, size, src, dst) },
        // SAFETY: guaranteed by the caller.
        [outer, last] => unsafe { run_inner(*outer, *last, inner, size, src, dst) },
        [first, rest @ ..] => {
            for i in 0..first.count as isize {
                let source = src.wrapping_offset(first.src * i);
                let target = dst.wrapping_offset(first.dst * i);
                // SAFETY: these are the iterations that the caller guarantees, with this one's index fixed.
                unsafe { run_loops(rest, inner, size, source, target) };
            }
        }
    }
}

/// Runs the two innermost loops.
///
/// # Safety
/// See [`run_loops`]; `inner` describes the loops.
unsafe fn run_inner(outer: Loop, last: Loop, inner: Inner, size: usize, src: *const u8, dst: *mut u8) {
    if let Inner::Transpose = inner {
        // SAFETY: guaranteed by the caller; `outer.src` and `last.dst` are the element's size by
        // `choose_inner`.
        unsafe { transpose_block(size, src, last.src, dst, outer.dst, outer.count, last.count) };
        return;
    }
    for i in 0..outer.count as isize {
        let source = src.wrapping_offset(outer.src * i);
        let target = dst.wrapping_offset(outer.dst * i);
        // SAFETY: a run has `count` elements on both sides, and source and destination do not overlap. The
        // rest is guaranteed by the caller for each of the element types, which are chosen by size.
        unsafe {
            match (inner, size) {
                (Inner::Run, _) => std::ptr::copy_nonoverlapping(source, target, last.count * size),
                (Inner::Fill, 1) => std::ptr::write_bytes(target, *source, last.count),
                (Inner::Fill, 2) => fill_run::<u16>(source, target, last.count),
                (Inner::Fill, 4) => fill_run::<u32>(source, target, last.count),
                (Inner::Fill, 8) => fill_run::<u64>(source, target, last.count),
                (Inner::Fill, 16) => fill_run::<[u64; 2]>(source, target, last.count),
                (_, 1) => strided_run::<u8>(source, target, last),
                (_, 2) => strided_run::<u16>(source, target, last),
                (_, 4) => strided_run::<u32>(source, target, last),
                (_, 8) => strided_run::<u64>(source, target, last),
                (_, 16) => strided_run::<[u64; 2]>(source, target, last),
                _ => unreachable!("elements are 1, 2, 4, 8 or 16 bytes"),
            }
        }
    }
}

/// Repeats one element.
///
/// # Safety
/// `src` must be readable as a `T`, and `count` of them must be writable at `dst`. Alignment is not required.
unsafe fn fill_run<T: Copy>(src: *const u8, dst: *mut u8, count: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let value = src.cast::<T>().read_unaligned();
        for k in 0..count {
            dst.cast::<T>().add(k).write_unaligned(value);
        }
    }
}

/// Copies elements at constant strides.
///
/// # Safety
/// `l.count` elements must be readable at `src`, `l.src` bytes apart, and writable at `dst`, `l.dst` bytes
/// apart. Alignment is not required.
unsafe fn strided_run<T: Copy>(src: *const u8, dst: *mut u8, l: Loop) {
    let one = size_of::<T>() as isize;
    // SAFETY: guaranteed by the caller; the first two cases are the general one with a constant stride.
    unsafe {
        if l.dst == one && l.src == -one {
            for k in 0..l.count as isize {
                let value = src.cast::<T>().wrapping_offset(-k).read_unaligned();
                dst.cast::<T>().offset(k).write_unaligned(value);
            }
        } else if l.dst == one {
            for k in 0..l.count as isize {
                let value = src.wrapping_offset(k * l.src).cast::<T>().read_unaligned();
                dst.cast::<T>().offset(k).write_unaligned(value);
            }
        } else {
            for k in 0..l.count as isize {
                let value = src.wrapping_offset(k * l.src).cast::<T>().read_unaligned();
                dst.wrapping_offset(k * l.dst).cast::<T>().write_unaligned(value);
            }
        }
    }
}
