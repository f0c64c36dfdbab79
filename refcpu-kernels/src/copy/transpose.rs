//! Two-dimensional transposes: the source is contiguous along one dimension, the destination along the other.
//!
//! Blocks are transposed to a buffer and written from there in whole rows, so that each cache line of the
//! source is read once and each cache line of the destination is written once, even if lines a stride apart
//! belong to few cache sets. Within a block, tiles are transposed in registers if the machine has the
//! instructions.

/// The size of the buffer in bytes.
const BUFFER: usize = 16 << 10;

/// Writes element `(i, j)` of `src` to `(j, i)` of `dst`: for all `j < rows` and `i < columns`,
/// `dst[j * dst_stride + i * size] = src[i * src_stride + j * size]` (in bytes).
///
/// # Safety
/// All these elements must be readable and writable, the two areas must not overlap, and `size` must be 1, 2,
/// 4, 8 or 16.
pub(crate) unsafe fn transpose_block(
    size: usize,
    src: *const u8,
    src_stride: isize,
    dst: *mut u8,
    dst_stride: isize,
    rows: usize,
    columns: usize,
) {
    let area = Area { src, src_stride, dst, dst_stride, rows, columns };
    // SAFETY: guaranteed by the caller, with the size of the type; tiles are selected by the machine's
    // instruction set.
    unsafe {
        match size {
            1 => blocked::<u8, 16>(area, Some(x86::tile_1)),
            2 => blocked::<u16, 8>(area, Some(x86::tile_2)),
            4 if x86::has_avx2() => blocked::<u32, 8>(area, Some(x86::tile_4)),
            4 => blocked::<u32, 8>(area, None),
            8 if x86::has_avx2() => blocked::<u64, 4>(area, Some(x86::tile_8)),
            8 => blocked::<u64, 4>(area, None),
            16 => blocked::<[u64; 2], 4>(area, None),
            _ => unreachable!("elements are 1, 2, 4, 8 or 16 bytes"),
        }
    }
}

/// The arguments of [`transpose_block`].
#[derive(Clone, Copy)]
struct Area {
    src: *const u8,
    src_stride: isize,
    dst: *mut u8,
    dst_stride: isize,
    rows: usize,
    columns: usize,
}

/// Transposes a square tile, whose size is that of the type and the constant. The arguments are the source,
/// its stride between rows in bytes, the destination and its stride.
type Tile = unsafe fn(*const u8, isize, *mut u8, usize);

/// Transposes an area in blocks, and whole tiles of `N` by `N` in the blocks.
///
/// # Safety
/// See [`transpose_block`]; `tile` is for `T` and `N` and may run on this machine.
unsafe fn blocked<T: Copy, const N: usize>(area: Area, tile: Option<Tile>) {
    let Area { src, src_stride, dst, dst_stride, rows, columns } = area;
    let size = size_of::<T>();
    // The number of columns of a block is that of four cache lines of the destination; the number of rows
    // follows from the size of the buffer.
    let wide = (256 / size).max(N);
    let high = BUFFER / (wide * size);
    let mut buffer = std::mem::MaybeUninit::<[u128; BUFFER / 16]>::uninit();
    let buffer = buffer.as_mut_ptr().cast::<u8>();
    for j0 in (0..rows).step_by(high) {
        let block_rows = high.min(rows - j0);
        for i0 in (0..columns).step_by(wide) {
            let block_columns = wide.min(columns - i0);
            let from = src.wrapping_offset(i0 as isize * src_stride).wrapping_add(j0 * size);
            let (full_rows, full_columns) = match tile {
                Some(_) => (block_rows - block_rows % N, block_columns - block_columns % N),
                None => (0, 0),
            };
            // SAFETY: indices are below `block_rows` and `block_columns`, so that sources are in the area,
            // positions in the buffer are below `high * wide` elements, and destinations are in the area.
            // Everything that is copied out was written before.
            unsafe {
                if let Some(tile) = tile {
                    for i in (0..full_columns).step_by(N) {
                        for j in (0..full_rows).step_by(N) {
                            let source = from.wrapping_offset(i as isize * src_stride).add(j * size);
                            tile(source, src_stride, buffer.add((j * wide + i) * size), wide * size);
                        }
                    }
                }
                for i in 0..block_columns {
                    let line = from.wrapping_offset(i as isize * src_stride).cast::<T>();
                    let first = if i < full_columns { full_rows } else { 0 };
                    for j in first..block_rows {
                        buffer.cast::<T>().add(j * wide + i).write(line.add(j).read_unaligned());
                    }
                }
                for j in 0..block_rows {
                    let target = dst.wrapping_offset((j0 + j) as isize * dst_stride).add(i0 * size);
                    target.copy_from_nonoverlapping(buffer.add(j * wide * size), block_columns * size);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Tiles in registers. Each stage interleaves registers that are half, a quarter, ... of the tile apart.

    use crate::isa::{Level, level};
    use std::arch::x86_64::*;

    pub(super) fn has_avx2() -> bool {
        level() >= Level::Avx2
    }

    /// Transposes 16 by 16 elements of 1 byte.
    ///
    /// # Safety
    /// 16 rows of 16 bytes must be readable and writable at the given strides.
    pub(super) unsafe fn tile_1(src: *const u8, src_stride: isize, dst: *mut u8, dst_stride: usize) {
        // SAFETY: SSE2 is part of x86-64; the caller's contract for the memory.
        unsafe {
            let mut r: [__m128i; 16] =
                std::array::from_fn(|i| _mm_loadu_si128(src.wrapping_offset(i as isize * src_stride).cast()));
            for _ in 0..4 {
                r = std::array::from_fn(|i| {
                    let (a, b) = (r[i / 2], r[i / 2 + 8]);
                    if i % 2 == 0 { _mm_unpacklo_epi8(a, b) } else { _mm_unpackhi_epi8(a, b) }
                });
            }
            for (i, v) in r.into_iter().enumerate() {
                _mm_storeu_si128(dst.add(i * dst_stride).cast(), v);
            }
        }
    }

    /// Transposes 8 by 8 elements of 2 bytes.
    ///
    /// # Safety
    /// 8 rows of 16 bytes must be readable and writable at the given strides.
    pub(super) unsafe fn tile_2(src: *const u8, src_stride: isize, dst: *mut u8, dst_stride: usize) {
        // SAFETY: SSE2 is part of x86-64; the caller's contract for the memory.
        unsafe {
            let mut r: [__m128i; 8] =
                std::array::from_fn(|i| _mm_loadu_si128(src.wrapping_offset(i as isize * src_stride).cast()));
            for _ in 0..3 {
                r = std::array::from_fn(|i| {
                    let (a, b) = (r[i / 2], r[i / 2 + 4]);
                    if i % 2 == 0 { _mm_unpacklo_epi16(a, b) } else { _mm_unpackhi_epi16(a, b) }
                });
            }
            for (i, v) in r.into_iter().enumerate() {
                _mm_storeu_si128(dst.add(i * dst_stride).cast(), v);
            }
        }
    }

    /// Transposes 8 by 8 elements of 4 bytes.
    ///
    /// # Safety
    /// 8 rows of 32 bytes must be readable and writable at the given strides, and the machine must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn tile_4(src: *const u8, src_stride: isize, dst: *mut u8, dst_stride: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            // Rows i and i + 4 are combined, for the left and the right half of the columns, so that the
            // remaining moves are within halves of registers. This is a macro, because closures are not
            // inlined across target features.
            macro_rules! load {
                ($i:expr, $half:expr) => {{
                    let row =
                        |i: isize| src.wrapping_offset(i * src_stride).cast::<f32>().wrapping_add(4 * $half);
                    let (upper, lower) = (row($i), row($i + 4));
                    _mm256_insertf128_ps::<1>(
                        _mm256_castps128_ps256(_mm_loadu_ps(upper)),
                        _mm_loadu_ps(lower),
                    )
                }};
            }
            for half in 0..2 {
                let (a, b, c, d) = (load!(0, half), load!(1, half), load!(2, half), load!(3, half));
                let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
                let (ef, gh) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
                let to = dst.add(4 * half * dst_stride);
                _mm256_storeu_ps(to.cast(), _mm256_shuffle_ps::<0x44>(ab, cd));
                _mm256_storeu_ps(to.add(dst_stride).cast(), _mm256_shuffle_ps::<0xee>(ab, cd));
                _mm256_storeu_ps(to.add(2 * dst_stride).cast(), _mm256_shuffle_ps::<0x44>(ef, gh));
                _mm256_storeu_ps(to.add(3 * dst_stride).cast(), _mm256_shuffle_ps::<0xee>(ef, gh));
            }
        }
    }

    /// Transposes 4 by 4 elements of 8 bytes.
    ///
    /// # Safety
    /// 4 rows of 32 bytes must be readable and writable at the given strides, and the machine must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn tile_8(src: *const u8, src_stride: isize, dst: *mut u8, dst_stride: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            macro_rules! load {
                ($i:expr, $half:expr) => {{
                    let row =
                        |i: isize| src.wrapping_offset(i * src_stride).cast::<f64>().wrapping_add(2 * $half);
                    let (upper, lower) = (row($i), row($i + 2));
                    _mm256_insertf128_pd::<1>(
                        _mm256_castpd128_pd256(_mm_loadu_pd(upper)),
                        _mm_loadu_pd(lower),
                    )
                }};
            }
            for half in 0..2 {
                let (a, b) = (load!(0, half), load!(1, half));
                _mm256_storeu_pd(dst.add(2 * half * dst_stride).cast(), _mm256_unpacklo_pd(a, b));
                _mm256_storeu_pd(dst.add((2 * half + 1) * dst_stride).cast(), _mm256_unpackhi_pd(a, b));
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    //! Replacements that copy element by element.

    pub(super) fn has_avx2() -> bool {
        false
    }

    macro_rules! tiles {
        ($($name:ident $t:ty, $n:literal;)*) => {$(
            /// Transposes a square tile.
            ///
            /// # Safety
            /// The tile's rows must be readable and writable at the given strides.
            pub(super) unsafe fn $name(src: *const u8, src_stride: isize, dst: *mut u8, dst_stride: usize) {
                for i in 0..$n {
                    for j in 0..$n {
                        let from = src.wrapping_offset(i as isize * src_stride).cast::<$t>();
                        let to = dst.wrapping_add(j * dst_stride).cast::<$t>();
                        // SAFETY: guaranteed by the caller.
                        unsafe { to.add(i).write_unaligned(from.add(j).read_unaligned()) };
                    }
                }
            }
        )*};
    }
    tiles!(tile_1 u8, 16; tile_2 u16, 8; tile_4 u32, 8; tile_8 u64, 4;);
}
