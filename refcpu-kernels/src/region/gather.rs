//! Gathering of elements that are not contiguous, and computation of coordinates.

use crate::ComputeType;
use crate::isa::{Isa, multiversion};

/// The numbers of bytes that are written at once for short runs of one element.
const SPLATS: [usize; 2] = [32, 64];

/// Copies `n` elements of `size` bytes to a tile: the elements `start..start + n` in row-major order of
/// `dims`. Element 0 is at `base`, and `strides` are in elements.
///
/// # Safety
/// Each of these elements must be readable, and `dst` must be writable for `n` elements; both must be aligned
/// for the element. The areas must not overlap.
pub(super) unsafe fn gather(
    dst: *mut u8,
    base: *const u8,
    size: usize,
    dims: &[usize],
    strides: &[isize],
    start: usize,
    n: usize,
) {
    match size {
        // SAFETY: guaranteed by the caller.
        1 => unsafe { gather_as::<u8>(dst, base, dims, strides, start, n) },
        // SAFETY: guaranteed by the caller.
        2 => unsafe { gather_as::<u16>(dst, base, dims, strides, start, n) },
        // SAFETY: guaranteed by the caller.
        4 => unsafe { gather_as::<u32>(dst, base, dims, strides, start, n) },
        // SAFETY: guaranteed by the caller; complex numbers only need the alignment of a part, so they are
        // pairs of u32.
        8 => unsafe { gather_as::<[u32; 2]>(dst, base, dims, strides, start, n) },
        // SAFETY: as above.
        _ => unsafe { gather_as::<[u64; 2]>(dst, base, dims, strides, start, n) },
    }
}

multiversion! {
    /// # Safety
    /// See [`gather`].
    unsafe fn gather_as<T: Copy>(
        dst: *mut u8,
        base: *const u8,
        dims: &[usize],
        strides: &[isize],
        start: usize,
        n: usize,
    ) = gather_body
}

/// # Safety
/// See [`gather`].
#[inline(always)]
unsafe fn gather_body<I: Isa, T: Copy>(
    dst: *mut u8,
    base: *const u8,
    dims: &[usize],
    strides: &[isize],
    start: usize,
    n: usize,
) {
    let mut dst = dst.cast::<T>();
    let base = base.cast::<T>();
    let (Some(&period), Some(&step)) = (dims.last(), strides.last()) else {
        // SAFETY: an array without dimensions has one element.
        unsafe { dst.write(base.read()) };
        return;
    };
    // Dimensions with stride 0 before the last one repeat its run.
    let repeated = strides[..strides.len() - 1].iter().rev().take_while(|s| **s == 0).count();
    let outer = dims.len() - 1 - repeated;
    let block = period * dims[outer..dims.len() - 1].iter().product::<usize>();
    let mut rows = Rows::new(&dims[..outer], &strides[..outer], start / block);
    let mut phase = start % block;
    let mut left = n;
    while left > 0 {
        let count = left.min(block - phase);
        // SAFETY: the elements of the run are among those that the caller guarantees.
        unsafe {
            let run = base.offset(rows.offset);
            if block == period {
                copy_run(dst, run.offset(phase as isize * step), step, count, left);
            } else {
                repeat_run(dst, (run, step), period, phase, count);
            }
            dst = dst.add(count);
        }
        left -= count;
        phase = 0;
        rows.advance();
    }
}

/// Copies `n` elements of repetitions of a run, beginning with element `start` of the repetitions. The run has `period`
/// elements, which are a number of elements apart.
///
/// # Safety
/// The run must be readable, and `dst` writable for `n` elements.
#[inline(always)]
unsafe fn repeat_run<T: Copy>(
    dst: *mut T,
    (run, step): (*const T, isize),
    period: usize,
    start: usize,
    n: usize,
) {
    let phase = start % period;
    let first = n.min(period - phase);
    let rest = (n - first).min(phase);
    let mut done = first + rest;
    // SAFETY: these are elements of the run; `done <= n`, and the source of the copy ends before its
    // destination.
    unsafe {
        copy_run(dst, run.offset(phase as isize * step), step, first, first);
        copy_run(dst.add(first), run, step, rest, rest);
        // The period was written once, and is copied with doubled length.
        while done < n {
            let more = done.min(n - done);
            std::ptr::copy_nonoverlapping(dst, dst.add(done), more);
            done += more;
        }
    }
}

/// Copies `run` elements that are `step` apart.
///
/// # Safety
/// The elements must be readable, and `dst` writable for `left >= run` elements.
#[inline(always)]
unsafe fn copy_run<T: Copy>(dst: *mut T, from: *const T, step: isize, run: usize, left: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if step == 1 && run >= 16 {
            std::ptr::copy_nonoverlapping(from, dst, run);
        } else if step == 0 && run * size_of::<T>() <= SPLATS[0] && left * size_of::<T>() >= SPLATS[0] {
            // A fixed number of bytes is written; later runs overwrite the excess.
            splat_fixed::<T, { SPLATS[0] }>(dst, *from);
        } else if step == 0 && run * size_of::<T>() <= SPLATS[1] && left * size_of::<T>() >= SPLATS[1] {
            splat_fixed::<T, { SPLATS[1] }>(dst, *from);
        } else if step == 0 {
            std::slice::from_raw_parts_mut(dst, run).fill(*from);
        } else if step == -1 {
            // A loop with a known step becomes vector instructions.
            for i in 0..run {
                *dst.add(i) = *from.offset(-(i as isize));
            }
        } else {
            for i in 0..run {
                *dst.add(i) = *from.offset(i as isize * step);
            }
        }
    }
}

/// Writes `BYTES` bytes of copies of an element.
///
/// # Safety
/// `dst` must be writable for `BYTES` bytes.
#[inline(always)]
unsafe fn splat_fixed<T: Copy, const BYTES: usize>(dst: *mut T, value: T) {
    for i in 0..BYTES / size_of::<T>() {
        // SAFETY: guaranteed by the caller.
        unsafe { *dst.add(i) = value };
    }
}

/// The number of dimensions whose coordinates are stored. If there are more, they are computed by division.
const KNOWN: usize = 6;

/// A walk over the rows of an array in row-major order.
struct Rows<'a> {
    /// The sizes and strides of the dimensions that count rows.
    dims: &'a [usize],
    strides: &'a [isize],
    coordinates: [usize; KNOWN],
    /// The number of the row.
    row: usize,
    /// The offset of the row, in elements.
    offset: isize,
}

impl<'a> Rows<'a> {
    #[inline(always)]
    fn new(dims: &'a [usize], strides: &'a [isize], row: usize) -> Self {
        let mut rows = Self { dims, strides, coordinates: [0; KNOWN], row, offset: 0 };
        rows.locate();
        rows
    }

    /// Computes the coordinates and the offset of the row.
    #[inline(always)]
    fn locate(&mut self) {
        let mut rest = self.row;
        self.offset = 0;
        for d in (0..self.dims.len()).rev() {
            let c = rest % self.dims[d];
            rest /= self.dims[d];
            self.offset += c as isize * self.strides[d];
            if d < KNOWN {
                self.coordinates[d] = c;
            }
        }
    }

    /// Moves to the next row.
    #[inline(always)]
    fn advance(&mut self) {
        self.row += 1;
        if self.dims.len() > KNOWN {
            return self.locate();
        }
        for d in (0..self.dims.len()).rev() {
            self.offset += self.strides[d];
            self.coordinates[d] += 1;
            if self.coordinates[d] < self.dims[d] {
                break;
            }
            self.offset -= self.coordinates[d] as isize * self.strides[d];
            self.coordinates[d] = 0;
        }
    }
}

/// Repeats the element at `src` `n` times.
///
/// # Safety
/// `src` must be readable for one element of `size` bytes, `dst` writable for `n`, both aligned for the
/// element.
pub(crate) unsafe fn splat(dst: *mut u8, src: *const u8, size: usize, n: usize) {
    /// # Safety
    /// See `splat`.
    unsafe fn fill<T: Copy>(dst: *mut u8, src: *const u8, n: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { std::slice::from_raw_parts_mut(dst.cast::<T>(), n).fill(src.cast::<T>().read()) }
    }
    // SAFETY: guaranteed by the caller; the type has this size and no stricter alignment.
    unsafe {
        match size {
            1 => fill::<u8>(dst, src, n),
            2 => fill::<u16>(dst, src, n),
            4 => fill::<u32>(dst, src, n),
            8 => fill::<[u32; 2]>(dst, src, n),
            _ => fill::<[u64; 2]>(dst, src, n),
        }
    }
}

multiversion! {
    /// Writes the coordinates along dimension `dim` of the elements `start..start + n` of an array of shape
    /// `dims`.
    ///
    /// # Safety
    /// `dst` must be writable for `n` elements of type `ty`.
    pub(super) unsafe fn iota(dst: *mut u8, ty: ComputeType, dims: &[usize], dim: usize, start: usize, n: usize) = iota_body
}

/// # Safety
/// See [`iota`].
#[inline(always)]
unsafe fn iota_body<I: Isa>(
    dst: *mut u8,
    ty: ComputeType,
    dims: &[usize],
    dim: usize,
    start: usize,
    n: usize,
) {
    let repeat: usize = dims[dim + 1..].iter().product();
    macro_rules! fill_run {
        ($run:expr, $first:expr, $t:ty) => {
            // Conversions of 32-bit integers are vector instructions everywhere.
            match i32::try_from($first + $run.len()) {
                Ok(_) => {
                    let first = $first as i32;
                    for (o, i) in $run.iter_mut().zip(0i32..) {
                        *o = (first + i) as $t;
                    }
                }
                Err(_) => {
                    for (i, o) in $run.iter_mut().enumerate() {
                        *o = ($first + i) as $t;
                    }
                }
            }
        };
    }
    macro_rules! fill {
        ($t:ty) => {{
            // SAFETY: guaranteed by the caller: `n` elements of `ty`, which is `$t`.
            let out = unsafe { std::slice::from_raw_parts_mut(dst.cast::<$t>(), n) };
            // Runs of equal coordinates, or of consecutive ones.
            let (mut value, mut phase) = (start / repeat % dims[dim], start % repeat);
            let mut rest = out;
            while !rest.is_empty() {
                let length = if repeat == 1 { dims[dim] - value } else { repeat - phase };
                let (run, next) = rest.split_at_mut(length.min(rest.len()));
                if repeat == 1 {
                    fill_run!(run, value, $t);
                    value = 0;
                } else {
                    run.fill(value as $t);
                    value = if value + 1 == dims[dim] { 0 } else { value + 1 };
                }
                (rest, phase) = (next, 0);
            }
        }};
    }
    match ty {
        ComputeType::Pred | ComputeType::S8 | ComputeType::U8 => fill!(u8),
        ComputeType::S16 | ComputeType::U16 => fill!(u16),
        ComputeType::S32 | ComputeType::U32 => fill!(u32),
        ComputeType::S64 | ComputeType::U64 => fill!(u64),
        ComputeType::F32 => fill!(f32),
        // Complex coordinates are converted from real ones.
        ComputeType::F64 | ComputeType::C64 | ComputeType::C128 => fill!(f64),
    }
}
