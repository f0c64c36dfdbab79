//! Products of 8-bit integers with the dot-product instruction of AVX-512 VNNI, which performs four
//! multiplications and additions per lane.
//!
//! The instruction multiplies unsigned by signed bytes. Therefore 128 is added to the elements of the left
//! operand, which adds 128 times the sum of a column to each result; this is subtracted again. All arithmetic
//! wraps in 32 bits, like the result.

use super::gemm::GemmShape;
use super::kernel::{Arith, Block, Panels, block, panels};
use super::operand::Index;
use crate::Pool;
use crate::isa::{self, Level};
use crate::scratch::Scratch;
use crate::view::SyncPtr;
use std::arch::x86_64::*;
use std::ops::Range;

/// The number of lanes of a vector.
const LANES: usize = 16;
/// The number of units of four elements in depth that are multiplied before the next ones are packed.
const DEPTH: usize = 1024;
/// The number of rows of a block.
const ROWS: usize = 48;
/// The number of multiplications below which packing is not worthwhile.
const WORTH_PACKING: usize = 1 << 15;

/// 16 lanes, each a sum of four products.
#[derive(Clone, Copy)]
struct Vnni;

// SAFETY: loads and stores are of whole vectors, or masked to the first `n` lanes.
unsafe impl Arith for Vnni {
    type Unit = u32;
    type Out = i32;
    type Units = __m512i;
    type Accs = __m512i;
    const LANES: usize = LANES;
    const ROWS: usize = 8;
    const MASKED: bool = true;

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: the caller guarantees the instruction set.
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn splat(p: *const u32) -> __m512i {
        // SAFETY: the caller guarantees the instruction set and for `p`.
        unsafe { _mm512_set1_epi32((*p).cast_signed()) }
    }
    #[inline(always)]
    unsafe fn load(p: *const u32) -> __m512i {
        // SAFETY: as above, for a whole vector.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const u32, n: usize) -> __m512i {
        // SAFETY: as above; masked lanes are not accessed.
        unsafe { _mm512_maskz_loadu_epi32(((1u32 << n) - 1) as __mmask16, p.cast()) }
    }
    #[inline(always)]
    unsafe fn mul_acc(acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller guarantees the instruction set.
        unsafe { _mm512_dpbusd_epi32(acc, a, b) }
    }
    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn read(p: *const i32, n: usize) -> __m512i {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::load_part(p.cast(), n) }
    }
    #[inline(always)]
    unsafe fn write(p: *mut i32, v: __m512i, n: usize) {
        // SAFETY: the caller guarantees `n` elements; masked lanes are not accessed.
        unsafe { _mm512_mask_storeu_epi32(p, ((1u32 << n) - 1) as __mmask16, v) }
    }
}

/// # Safety
/// See [`block`]; on a machine with AVX-512 VNNI.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni")]
unsafe fn vnni_block(b: &Block<u32, i32>) {
    // SAFETY: guaranteed by the caller, with the features enabled here.
    unsafe { block::<Vnni>(b) }
}

/// An operand: its first element, and the offsets of its members, of the free index and of the contracted
/// index.
pub(super) struct Matrix {
    pub(super) ptr: *const i8,
    pub(super) batch: Index,
    pub(super) outer: Index,
    pub(super) depth: Index,
}

// SAFETY: the array behind the pointer is only read, and the creator of a `Matrix` keeps it readable while it
// is used.
unsafe impl Sync for Matrix {}

impl Matrix {
    /// Returns the first element of a member of the batch.
    fn member(&self, member: usize) -> SyncPtr {
        SyncPtr::from_raw(self.ptr.wrapping_add(self.batch.at(member)).cast_mut().cast())
    }
}

/// Returns `true` if [`multiply`] supports products of this shape on this machine, and is worthwhile.
pub(super) fn available(shape: GemmShape) -> bool {
    isa::level() >= Level::Avx512
        && std::arch::is_x86_feature_detected!("avx512vnni")
        && shape.rows > 1
        && shape.cols > 1
        && shape.rows.saturating_mul(shape.cols).saturating_mul(shape.depth) >= WORTH_PACKING
}

/// Multiplies signed bytes; see [`super::gemm::multiply`].
///
/// # Safety
/// [`available`] must have returned `true`, the operands' elements must be readable, and nothing else may
/// access `out`, an array of `batch * rows * cols` elements.
pub(super) unsafe fn multiply(pool: &Pool, shape: GemmShape, lhs: &Matrix, rhs: &Matrix, out: SyncPtr) {
    let GemmShape { batch, rows, cols, depth } = shape;
    let units = depth.div_ceil(4);
    let vectors = cols.div_ceil(LANES);
    let block_units = units.min(DEPTH);
    let mut left = Scratch::new::<u32>(rows * block_units);
    let mut right = Scratch::new::<u32>(vectors * LANES * block_units);
    let mut sums = Scratch::new::<i32>(cols);
    let (left, right) = (SyncPtr::from_raw(left.ptr()), SyncPtr::from_raw(right.ptr()));
    let sums = SyncPtr::from_raw(sums.ptr());
    let cut: Vec<(usize, usize)> = panels(vectors).collect();
    for member in 0..batch {
        let (a, b) = (lhs.member(member), rhs.member(member));
        let c = SyncPtr::from_raw(out.get().cast::<i32>().wrapping_add(member * rows * cols).cast());
        for from in (0..units).step_by(DEPTH) {
            let count = DEPTH.min(units - from);
            let elements = from * 4..depth.min((from + count) * 4);
            pool.run(cut.len(), &|p| {
                let (first, width) = (cut[p].0 * LANES, cut[p].1 * LANES);
                let some = first..cols.min(first + width);
                // SAFETY: panels are consecutive in the scratch memory; each chunk has its own ones, and its
                // own sums.
                unsafe {
                    let to = right.get().cast::<u32>().add(first * count);
                    let sums = sums.get().cast::<i32>().add(first);
                    pack_right(b.get().cast(), rhs, some, elements.clone(), width, to, sums, from > 0);
                }
            });
            pool.run(rows.div_ceil(ROWS), &|chunk| {
                let some = chunk * ROWS..rows.min((chunk + 1) * ROWS);
                // SAFETY: each chunk packs and multiplies its own rows. B was packed for these columns and
                // this depth. The machine has the instructions (`available`).
                unsafe {
                    let packed = left.get().cast::<u32>().add(some.start * count);
                    pack_left(a.get().cast(), lhs, some.clone(), elements.clone(), packed);
                    let c = c.get().cast::<i32>().add(some.start * cols);
                    vnni_block(&Block {
                        a: packed,
                        a_row: count,
                        a_col: 1,
                        b: right.get().cast(),
                        b_layout: Panels::Packed,
                        c,
                        c_row: cols,
                        rows: some.len(),
                        cols,
                        depth: count,
                        accumulate: from > 0,
                        batch: 1,
                        batch_strides: [0; 3],
                    });
                    if from + count == units {
                        let c = std::slice::from_raw_parts_mut(c, some.len() * cols);
                        subtract_sums(c, std::slice::from_raw_parts(sums.get().cast::<i32>(), cols));
                    }
                }
            });
        }
    }
}

/// Subtracts 128 times the sums of the columns of the right operand from each row of results, because 128 was
/// added to the elements of the left operand.
fn subtract_sums(rows: &mut [i32], sums: &[i32]) {
    for row in rows.chunks_exact_mut(sums.len()) {
        for (c, s) in row.iter_mut().zip(sums) {
            *c = c.wrapping_sub(s.wrapping_mul(128));
        }
    }
}

/// Packs rows of the left operand in units of four, with 128 added. Missing elements of the last unit are
/// multiplied by zeros.
///
/// # Safety
/// The ranges must be within the operand, and `to` must be writable for one unit per row and four elements of
/// depth.
unsafe fn pack_left(a: *const i8, m: &Matrix, rows: Range<usize>, depth: Range<usize>, to: *mut u32) {
    let units = depth.len().div_ceil(4);
    for (i, row) in rows.enumerate() {
        let from = a.wrapping_add(m.outer.at(row));
        // SAFETY: guaranteed by the caller.
        let to = unsafe { std::slice::from_raw_parts_mut(to.add(i * units), units) };
        if m.depth.stride() == Some(1) {
            // SAFETY: elements of a row are adjacent.
            let bytes = unsafe {
                std::slice::from_raw_parts(from.wrapping_add(depth.start).cast::<u8>(), depth.len())
            };
            let whole = bytes.chunks_exact(4);
            let rest = whole.remainder();
            for (t, b) in to.iter_mut().zip(whole) {
                *t = u32::from_le_bytes([b[0], b[1], b[2], b[3]]) ^ 0x8080_8080;
            }
            if let (Some(last), false) = (to.last_mut(), rest.is_empty()) {
                let mut b = [0; 4];
                b[..rest.len()].copy_from_slice(rest);
                *last = u32::from_le_bytes(b) ^ 0x8080_8080;
            }
        } else {
            for (u, t) in to.iter_mut().enumerate() {
                let mut b = [0u8; 4];
                for (k, b) in depth.clone().skip(4 * u).zip(&mut b) {
                    // SAFETY: an element of the operand.
                    *b = unsafe { *from.wrapping_add(m.depth.at(k)) }.cast_unsigned();
                }
                *t = u32::from_le_bytes(b) ^ 0x8080_8080;
            }
        }
    }
}

/// Packs columns of the right operand in units of four, `width` units per row, and sums each column.
///
/// # Safety
/// The ranges must be within the operand. `to` must be writable for `width` units per four elements of depth,
/// and `sums` for one sum per column.
#[allow(
    clippy::too_many_arguments,
    reason = "the operands of a leaf loop; a struct would be made on every call"
)]
unsafe fn pack_right(
    b: *const i8,
    m: &Matrix,
    cols: Range<usize>,
    depth: Range<usize>,
    width: usize,
    to: *mut u32,
    sums: *mut i32,
    further: bool,
) {
    let n = cols.len();
    let units = depth.len().div_ceil(4);
    // SAFETY: guaranteed by the caller; scratch memory is initialized here before it is read.
    let (to, sums) = unsafe {
        to.write_bytes(0, width * units);
        if !further {
            sums.write_bytes(0, n);
        }
        (std::slice::from_raw_parts_mut(to, width * units), std::slice::from_raw_parts_mut(sums, n))
    };
    let zeros = [0i8; 3 * LANES];
    for (u, to) in to.chunks_exact_mut(width).enumerate() {
        let mut rows = [&zeros[..n]; 4];
        let mut gathered = [[0i8; 3 * LANES]; 4];
        for ((k, row), gathered) in depth.clone().skip(4 * u).zip(&mut rows).zip(&mut gathered) {
            let from = b.wrapping_add(m.depth.at(k));
            *row = if m.outer.stride() == Some(1) {
                // SAFETY: elements of a row are adjacent.
                unsafe { std::slice::from_raw_parts(from.wrapping_add(cols.start), n) }
            } else {
                for (g, c) in gathered.iter_mut().zip(cols.clone()) {
                    // SAFETY: an element of the operand.
                    *g = unsafe { *from.wrapping_add(m.outer.at(c)) };
                }
                &gathered[..n]
            };
        }
        let [r0, r1, r2, r3] = rows;
        for ((((t, s), (x, y)), z), w) in
            to.iter_mut().zip(sums.iter_mut()).zip(r0.iter().zip(r1)).zip(r2).zip(r3)
        {
            let byte = |v: &i8| u32::from(v.cast_unsigned());
            *t = byte(x) | byte(y) << 8 | byte(z) << 16 | byte(w) << 24;
            *s = s.wrapping_add(i32::from(*x) + i32::from(*y) + i32::from(*z) + i32::from(*w));
        }
    }
}
