//! Gathering of elements that are not contiguous, and computation of coordinates.

use crate::ComputeType;

/// The number of bytes that are written at once for short runs of one element.
const SPLAT: usize = 32;

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

/// # Safety
/// See [`gather`].
unsafe fn gather_as<T: Copy>(
    dst: *mut u8,
    base: *const u8,
    dims: &[usize],
    strides: &[isize],
    start: usize,
    n: usize,
) {
    let mut dst = dst.cast::<T>();
    let base = base.cast::<T>();
    let (Some(&last), Some(&step)) = (dims.last(), strides.last()) else {
        // SAFETY: an array without dimensions has one element.
        unsafe { dst.write(base.read()) };
        return;
    };
    if step == 1 && strides[..strides.len() - 1].iter().all(|s| *s == 0) {
        // SAFETY: guaranteed by the caller.
        unsafe { repeat_run(dst, base, last, start, n) };
        return;
    }
    let mut rows = Rows::new(&dims[..dims.len() - 1], &strides[..dims.len() - 1], start / last);
    let mut column = start % last;
    let mut left = n;
    while left > 0 {
        let run = left.min(last - column);
        // SAFETY: the elements of the run are among those that the caller guarantees.
        unsafe {
            copy_run(dst, base.offset(rows.offset + column as isize * step), step, run, left);
            dst = dst.add(run);
        }
        left -= run;
        column = 0;
        rows.advance();
    }
}

/// Copies `n` elements of a run of `period` elements that is repeated, beginning with element `start` of the
/// repetitions.
///
/// # Safety
/// The run must be readable, and `dst` writable for `n` elements.
#[inline(always)]
unsafe fn repeat_run<T: Copy>(dst: *mut T, run: *const T, period: usize, start: usize, n: usize) {
    let phase = start % period;
    let first = n.min(period - phase);
    let rest = (n - first).min(phase);
    let mut done = first + rest;
    // SAFETY: these are elements of the run; `done <= n`, and the source of the copy ends before its
    // destination.
    unsafe {
        std::ptr::copy_nonoverlapping(run.add(phase), dst, first);
        std::ptr::copy_nonoverlapping(run, dst.add(first), rest);
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
        } else if step == 0 && run * size_of::<T>() <= SPLAT && left * size_of::<T>() >= SPLAT {
            // A fixed number of bytes is written; later runs overwrite the excess.
            let value = *from;
            for i in 0..SPLAT / size_of::<T>() {
                *dst.add(i) = value;
            }
        } else if step == 0 {
            std::slice::from_raw_parts_mut(dst, run).fill(*from);
        } else {
            for i in 0..run {
                *dst.add(i) = *from.offset(i as isize * step);
            }
        }
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

/// Writes the coordinates along dimension `dim` of the elements `start..start + n` of an array of shape
/// `dims`.
///
/// # Safety
/// `dst` must be writable for `n` elements of type `ty`.
pub(super) unsafe fn iota(dst: *mut u8, ty: ComputeType, dims: &[usize], dim: usize, start: usize, n: usize) {
    let repeat: usize = dims[dim + 1..].iter().product();
    macro_rules! fill {
        ($t:ty) => {{
            // SAFETY: guaranteed by the caller: `n` elements of `ty`, which is `$t`.
            let out = unsafe { std::slice::from_raw_parts_mut(dst.cast::<$t>(), n) };
            if dim == 0 && repeat == 1 {
                for (i, o) in out.iter_mut().enumerate() {
                    *o = (start + i) as $t;
                }
            } else {
                let mut value = start / repeat % dims[dim];
                let mut until = repeat - start % repeat;
                for o in out {
                    *o = value as $t;
                    until -= 1;
                    if until == 0 {
                        until = repeat;
                        value = if value + 1 == dims[dim] { 0 } else { value + 1 };
                    }
                }
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
