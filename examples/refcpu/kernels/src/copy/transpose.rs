//! Two-dimensional transposes: the source is contiguous along one dimension, the destination along the other.

/// Rows and columns of the blocks that are moved at a time, so that both sides' cache lines are used whole.
const BLOCK: usize = 32;

/// Writes element `(i, j)` of `src` to `(j, i)` of `dst`: for all `j < rows` and `i < columns`,
/// `dst[j * dst_stride + i * size] = src[i * src_stride + j * size]` (in bytes).
///
/// # Safety
/// All those elements can be read and written, the two areas do not overlap, and `size` is 1, 2, 4, 8 or 16.
pub(super) unsafe fn transpose_block(
    size: usize,
    src: *const u8,
    src_stride: isize,
    dst: *mut u8,
    dst_stride: isize,
    rows: usize,
    columns: usize,
) {
    // SAFETY: the caller's contract.
    unsafe {
        match size {
            1 => blocked::<u8>(src, src_stride, dst, dst_stride, rows, columns),
            2 => blocked::<u16>(src, src_stride, dst, dst_stride, rows, columns),
            4 => blocked::<u32>(src, src_stride, dst, dst_stride, rows, columns),
            8 => blocked::<u64>(src, src_stride, dst, dst_stride, rows, columns),
            16 => blocked::<[u64; 2]>(src, src_stride, dst, dst_stride, rows, columns),
            _ => unreachable!("elements are 1, 2, 4, 8 or 16 bytes"),
        }
    }
}

/// The portable transpose: element by element within small blocks.
///
/// # Safety
/// As for [`transpose_block`], with `size` that of `T`.
unsafe fn blocked<T: Copy>(
    src: *const u8,
    src_stride: isize,
    dst: *mut u8,
    dst_stride: isize,
    rows: usize,
    columns: usize,
) {
    for j0 in (0..rows).step_by(BLOCK) {
        for i0 in (0..columns).step_by(BLOCK) {
            for j in j0..(j0 + BLOCK).min(rows) {
                let target = dst.wrapping_offset(j as isize * dst_stride).cast::<T>();
                for i in i0..(i0 + BLOCK).min(columns) {
                    let source = src.wrapping_offset(i as isize * src_stride).cast::<T>().wrapping_add(j);
                    // SAFETY: j < rows and i < columns.
                    unsafe { target.add(i).write_unaligned(source.read_unaligned()) }
                }
            }
        }
    }
}
