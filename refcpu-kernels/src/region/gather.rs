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
    let outer = &strides[..strides.len() - 1];
    if step == 1 && outer.iter().all(|s| *s == 0) {
        // The same run is repeated: it is written once, and then copied repeatedly with doubled length.
        let phase = start % last;
        let first = n.min(last - phase);
        let rest = (n - first).min(phase);
        let mut done = first + rest;
        // SAFETY: these are elements of the run; `done <= n`, and the source of the copy ends before its
        // destination.
        unsafe {
            std::ptr::copy_nonoverlapping(base.add(phase), dst, first);
            std::ptr::copy_nonoverlapping(base, dst.add(first), rest);
            while done < n {
                let more = done.min(n - done);
                std::ptr::copy_nonoverlapping(dst, dst.add(done), more);
                done += more;
            }
        }
        return;
    }
    // The coordinates of the current run. Coordinates of further dimensions are computed by division.
    const KNOWN: usize = 6;
    let rank = dims.len();
    let mut coordinates = [0usize; KNOWN];
    let mut rest = start / last;
    let mut column = start % last;
    let mut offset = 0isize;
    for d in (0..rank - 1).rev() {
        let c = rest % dims[d];
        rest /= dims[d];
        offset += c as isize * strides[d];
        if d < KNOWN {
            coordinates[d] = c;
        }
    }
    let mut left = n;
    let mut at = start;
    while left > 0 {
        let run = left.min(last - column);
        // SAFETY: the elements of the run are among those that the caller guarantees.
        unsafe {
            let from = base.offset(offset + column as isize * step);
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
            dst = dst.add(run);
        }
        left -= run;
        at += run;
        column = 0;
        if rank <= KNOWN + 1 {
            for d in (0..rank - 1).rev() {
                offset += strides[d];
                coordinates[d] += 1;
                if coordinates[d] < dims[d] {
                    break;
                }
                offset -= coordinates[d] as isize * strides[d];
                coordinates[d] = 0;
            }
        } else {
            let mut rest = at / last;
            offset = 0;
            for d in (0..rank - 1).rev() {
                offset += (rest % dims[d]) as isize * strides[d];
                rest /= dims[d];
            }
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
