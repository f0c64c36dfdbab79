//! The index of the minimum or maximum of each row or column.

use super::ArgReduceOp;
use super::kernel::rows;
use crate::copy::transpose::transpose_block;
use crate::isa::{Isa, multiversion};
use crate::number::{Accumulator, Greatest, Least, Load, Monoid, Target};
use crate::view::SyncPtr;
use crate::{DType, Dst, Pool, Src};
use half::{bf16, f16};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The number of elements of a chunk, which take some microseconds to read.
const CHUNK: usize = 1 << 16;
/// The number of columns that are searched at once.
const TILE: usize = 256;
/// The number of elements up to which rows are searched together.
const SHORT: usize = 64;
/// The number of bytes of the rows that are searched together.
const BLOCK_BYTES: usize = 16 << 10;
/// The number of rows that are counted in 32-bit indices at a time.
const ROWS: usize = 1 << 31;

/// A minimum or maximum, with its comparison.
trait Extreme<A: Accumulator>: Monoid<A> {
    /// Returns `true` if `b` is strictly better than `a`. NaN is better than any number.
    fn is_better(b: A, a: A) -> bool;
}
impl<A: Accumulator + PartialOrd> Extreme<A> for Greatest {
    #[inline(always)]
    fn is_better(b: A, a: A) -> bool {
        (b > a) | (is_nan(b) & !is_nan(a))
    }
}
impl<A: Accumulator + PartialOrd> Extreme<A> for Least {
    #[inline(always)]
    fn is_better(b: A, a: A) -> bool {
        (b < a) | (is_nan(b) & !is_nan(a))
    }
}

#[inline(always)]
#[allow(clippy::eq_op, reason = "a NaN is what differs from itself")]
fn is_nan<A: Accumulator>(a: A) -> bool {
    a != a
}

/// Runs `arg_reduce` on shapes that were checked; `dim` is not empty.
pub(super) fn run(
    pool: &Pool,
    op: ArgReduceOp,
    input: Src<'_>,
    values: Dst<'_>,
    indices: Dst<'_>,
    dim: usize,
) {
    let src = input.as_ptr();
    let mut task = Task {
        outer: input.dims()[..dim].iter().product(),
        n: input.dims()[dim],
        inner: input.dims()[dim + 1..].iter().product(),
        input,
        values,
        indices,
    };
    macro_rules! find {
        ($A:ty, $T:ty, $src:expr) => {
            // SAFETY: the elements of the input have type `T`, or were converted to it as a whole.
            unsafe {
                match op {
                    ArgReduceOp::Minimum => task.find::<$A, $T, Least>(pool, $src.cast::<$T>()),
                    ArgReduceOp::Maximum => task.find::<$A, $T, Greatest>(pool, $src.cast::<$T>()),
                }
            }
        };
    }
    match input.dtype() {
        DType::S8 => find!(i8, i8, src),
        DType::U8 | DType::Pred => find!(u8, u8, src),
        DType::S16 => find!(i16, i16, src),
        DType::U16 => find!(u16, u16, src),
        DType::S32 => find!(i32, i32, src),
        DType::U32 => find!(u32, u32, src),
        DType::S64 => find!(i64, i64, src),
        DType::U64 => find!(u64, u64, src),
        DType::F16 => find!(f32, f16, src),
        DType::BF16 => find!(f32, bf16, src),
        DType::F32 => find!(f32, f32, src),
        DType::F64 => find!(f64, f64, src),
        small if small.is_float() => find!(f32, f32, f32::array_of(input).ptr::<u8>().cast_const()),
        _ => find!(i32, i32, i32::array_of(input).ptr::<u8>().cast_const()),
    }
}

/// A search along the middle one of three dimensions.
struct Task<'a> {
    outer: usize,
    n: usize,
    inner: usize,
    input: Src<'a>,
    values: Dst<'a>,
    indices: Dst<'a>,
}

/// The destination of results. The element that was found is copied from the input.
struct Found {
    input: SyncPtr,
    values: SyncPtr,
    size: usize,
    indices: SyncPtr,
    index_size: usize,
}

impl Found {
    /// Stores result `at`: element `element` of the input, which has index `index` along the dimension.
    ///
    /// # Safety
    /// Both must be in range, and nothing else may access the result.
    #[inline(always)]
    unsafe fn store(&self, at: usize, element: usize, index: usize) {
        let bytes = (index as u64).to_le_bytes();
        // SAFETY: guaranteed by the caller; elements have `size` bytes, and indices have `index_size` (at
        // most 8) bytes.
        unsafe {
            let from = self.input.get().add(element * self.size);
            copy_element(from, self.values.get().add(at * self.size), self.size);
            copy_element(bytes.as_ptr(), self.indices.get().add(at * self.index_size), self.index_size);
        }
    }
}

/// Copies one element of `size` bytes.
///
/// # Safety
/// `from` must be readable and `to` writable for `size` bytes.
#[inline(always)]
unsafe fn copy_element(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match size {
            1 => to.write(from.read()),
            2 => to.cast::<[u8; 2]>().write(from.cast::<[u8; 2]>().read()),
            4 => to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()),
            8 => to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
            _ => std::ptr::copy_nonoverlapping(from, to, size),
        }
    }
}

impl Task<'_> {
    /// # Safety
    /// `src` must hold the elements of the input, as type `T`.
    unsafe fn find<A: Accumulator, T: Load<A>, E: Extreme<A>>(&mut self, pool: &Pool, src: *const T) {
        let (outer, n, inner) = (self.outer, self.n, self.inner);
        let src = SyncPtr::from_raw(src.cast_mut().cast());
        let found = Found {
            input: SyncPtr::from_raw(self.input.as_ptr().cast_mut()),
            values: SyncPtr::new(&mut self.values),
            size: self.input.dtype().size(),
            indices: SyncPtr::new(&mut self.indices),
            index_size: self.indices.dtype().size(),
        };
        let inline = Pool::inline();
        let pool = if outer * n * inner < CHUNK / 4 { &inline } else { pool };
        if inner == 1 {
            let per_chunk = (CHUNK / n).max(1);
            pool.run(outer.div_ceil(per_chunk), &|chunk| {
                let rows = chunk * per_chunk..outer.min((chunk + 1) * per_chunk);
                if n <= SHORT {
                    // SAFETY: the rows are in the input, and their results belong to this chunk.
                    return unsafe { search_short_rows::<A, T, E>(src.get().cast(), n, rows, &found) };
                }
                for row in rows {
                    // SAFETY: the row is in the input, and result `row` belongs to this chunk.
                    unsafe { search_row::<A, T, E>(src.get().cast(), n, row, &found) };
                }
            });
            return;
        }
        let tiles = inner.div_ceil(TILE);
        let per_chunk = (CHUNK / (n * inner.min(TILE))).max(1);
        pool.run((outer * tiles).div_ceil(per_chunk), &|chunk| {
            for i in chunk * per_chunk..(outer * tiles).min((chunk + 1) * per_chunk) {
                let (o, first) = (i / tiles, i % tiles * TILE);
                let columns = first..inner.min(first + TILE);
                // SAFETY: the columns of the tile are in the input, and their results belong to this chunk.
                unsafe { search_columns::<A, T, E>(src.get().cast(), (n, inner), o, columns, &found) };
            }
        });
    }
}

/// Searches row `row` of rows of `n` adjacent elements.
///
/// # Safety
/// The rows must be readable, and nothing else may access the row's result.
#[inline(always)]
unsafe fn search_row<A: Accumulator, T: Load<A>, E: Extreme<A>>(
    src: *const T,
    n: usize,
    row: usize,
    found: &Found,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let elements = src.add(row * n);
        let mut best = E::IDENTITY;
        rows::<A, T, E>(elements, n, 1, n, &mut best);
        let index = first_equal::<A, T>(elements, n, best);
        found.store(row, row * n + index, index);
    }
}

/// Searches rows of at most [`SHORT`] adjacent elements: as the columns of transposed blocks.
///
/// # Safety
/// The rows must be readable, and nothing else may access their results.
#[inline(always)]
unsafe fn search_short_rows<A: Accumulator, T: Load<A>, E: Extreme<A>>(
    src: *const T,
    n: usize,
    rows: Range<usize>,
    found: &Found,
) {
    let mut block = MaybeUninit::<[u128; BLOCK_BYTES / 16]>::uninit();
    let block = block.as_mut_ptr().cast::<T>();
    let size = size_of::<T>();
    let height = (BLOCK_BYTES / (n * size)).min(TILE);
    for first in rows.clone().step_by(height) {
        let count = height.min(rows.end - first);
        let (mut best, mut at) = ([E::IDENTITY; TILE], [0u32; TILE]);
        // SAFETY: the caller guarantees the rows; the block has room for `n` columns of `count` elements.
        unsafe {
            let (from, to) = (src.add(first * n).cast(), block.cast());
            transpose_block(size, from, (n * size) as isize, to, (count * size) as isize, n, count);
            for (b, j) in best.iter_mut().zip(0..count) {
                *b = (*block.add(j)).load();
            }
            column_extremes::<A, T, E>(block, count, n, count, &mut best, &mut at);
            for (j, index) in at[..count].iter().enumerate() {
                let (row, index) = (first + j, *index as usize);
                found.store(row, row * n + index, index);
            }
        }
    }
}

/// Searches at most [`TILE`] columns of matrix `number` of matrices of `n` rows of `inner` elements.
///
/// # Safety
/// The matrices must be readable, and nothing else may access the results of the columns.
#[inline(always)]
unsafe fn search_columns<A: Accumulator, T: Load<A>, E: Extreme<A>>(
    src: *const T,
    (n, inner): (usize, usize),
    number: usize,
    columns: Range<usize>,
    found: &Found,
) {
    let start = number * n * inner + columns.start;
    let (mut best, mut at) = ([E::IDENTITY; TILE], [0usize; TILE]);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let p = src.add(start);
        for (b, j) in best.iter_mut().zip(0..columns.len()) {
            *b = (*p.add(j)).load();
        }
        for from in (0..n).step_by(ROWS) {
            let mut here = [u32::MAX; TILE];
            let (p, count) = (p.add(from * inner), ROWS.min(n - from));
            column_extremes::<A, T, E>(p, inner, count, columns.len(), &mut best, &mut here);
            for (at, here) in at.iter_mut().zip(here).filter(|(_, here)| *here != u32::MAX) {
                *at = from + here as usize;
            }
        }
        for (j, index) in at[..columns.len()].iter().enumerate() {
            found.store(number * inner + columns.start + j, start + index * inner + j, *index);
        }
    }
}

multiversion! {
    /// Returns the index of the first of `n` elements that equals `value`, or is NaN if `value` is; `n - 1`
    /// if there is none.
    ///
    /// # Safety
    /// `n` elements at `row` must be readable.
    unsafe fn first_equal<A: Accumulator, T: Load<A>>(row: *const T, n: usize, value: A) -> usize = first_equal_body
}

/// # Safety
/// See [`first_equal`].
#[inline(always)]
unsafe fn first_equal_body<I: Isa, A: Accumulator, T: Load<A>>(row: *const T, n: usize, value: A) -> usize {
    const BLOCK: usize = 64;
    let nan = is_nan(value);
    let is_it = |x: A| (x == value) | (nan & is_nan(x));
    let mut i = 0;
    // SAFETY: indices stay below `n`.
    unsafe {
        while i + BLOCK <= n {
            let mut any = false;
            for j in 0..BLOCK {
                any |= is_it((*row.add(i + j)).load());
            }
            if any {
                break;
            }
            i += BLOCK;
        }
        while i + 1 < n && !is_it((*row.add(i)).load()) {
            i += 1;
        }
    }
    i
}

multiversion! {
    /// Searches `width` columns of `count` rows, `stride` apart. An element that is better than `best`
    /// replaces it, and its row is stored in `at`.
    ///
    /// # Safety
    /// The rows must be readable; `width` is at most [`TILE`].
    unsafe fn column_extremes<A: Accumulator, T: Load<A>, E: Extreme<A>>(src: *const T, stride: usize, count: usize, width: usize, best: &mut [A; TILE], at: &mut [u32; TILE]) = column_extremes_body
}

/// # Safety
/// See [`column_extremes`].
#[inline(always)]
unsafe fn column_extremes_body<I: Isa, A: Accumulator, T: Load<A>, E: Extreme<A>>(
    src: *const T,
    stride: usize,
    count: usize,
    width: usize,
    best: &mut [A; TILE],
    at: &mut [u32; TILE],
) {
    for i in 0..count {
        let row = src.wrapping_add(i * stride);
        for (j, (best, at)) in best.iter_mut().zip(at.iter_mut()).enumerate().take(width) {
            // SAFETY: the caller guarantees `width` elements of each row.
            let x: A = unsafe { *row.add(j) }.load();
            let better = E::is_better(x, *best);
            *best = if better { x } else { *best };
            *at = if better { i as u32 } else { *at };
        }
    }
}
