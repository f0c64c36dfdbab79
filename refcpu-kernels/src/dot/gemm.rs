//! The driver of matrix products. It divides them into blocks, packs operands that the inner kernel cannot
//! read in place, and distributes the blocks among the threads.

use super::engine::{Compute, Engine};
use super::kernel::{Block, Panels, panels};
use super::operand::{Index, Left, Right};
use crate::Pool;
use crate::few::Few;
use crate::number::Store;
use crate::scratch::Scratch;
use crate::view::SyncPtr;
use std::ops::Range;

/// The sizes of a batch of matrix products.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The number of products.
    pub batch: usize,
    /// The number of rows of the left operand and the result.
    pub rows: usize,
    /// The number of columns of the right operand and the result.
    pub cols: usize,
    /// The number of columns of the left operand and of rows of the right one.
    pub depth: usize,
}

/// The memory of the results.
pub(crate) struct Output<U> {
    /// The first element of the array.
    pub ptr: SyncPtr,
    /// The offsets of the members of the batch, in elements.
    pub batch: Index,
    /// The distance between rows, in elements. The elements of a row are adjacent.
    pub row: usize,
    /// The function that rounds and stores a row of results, if the elements of the array are not of type
    /// `U`.
    pub store: Option<Store<U>>,
}

/// The depth of a block. With a full panel of columns, it fills half of a second-level cache way for every
/// type.
const DEPTH: usize = 256;
/// The maximum number of rows of a block: few enough to balance the load, and enough to reuse a panel in the
/// first-level cache.
const ROWS: usize = 48;
/// The number of bytes of the right operand that are packed at a time.
const PACKED_BYTES: usize = 8 << 20;
/// The minimum number of multiply-adds of a chunk, which take some microseconds.
const CHUNK_WORK: usize = 1 << 18;
/// The number of multiply-adds below which the calling thread computes everything.
const INLINE_WORK: usize = 1 << 17;

/// Computes `out[b] = lhs[b] rhs[b]` for every `b`.
///
/// # Safety
/// `out` must describe memory that is valid for the results and that nothing else accesses.
pub(crate) unsafe fn multiply<U: Compute>(
    pool: &Pool,
    shape: Shape,
    lhs: &dyn Left<U>,
    rhs: &dyn Right<U>,
    out: &Output<U>,
) {
    let Shape { batch, rows, cols, depth } = shape;
    if batch == 0 || rows == 0 || cols == 0 {
        return;
    }
    let work = rows.saturating_mul(cols).saturating_mul(depth.max(1));
    if batch >= 16 || (batch > 1 && work < CHUNK_WORK * 4) {
        let group = (CHUNK_WORK / work.max(1)).clamp(1, batch.div_ceil(4));
        let group = if batch.saturating_mul(work) < INLINE_WORK { batch } else { group };
        pool.run(batch.div_ceil(group), &|chunk| {
            let members = chunk * group..batch.min(chunk * group + group);
            // SAFETY: the caller guarantees `out`; chunks write the results of different members.
            unsafe { members_inline(shape, lhs, rhs, out, members) };
        });
    } else {
        for b in 0..batch {
            // SAFETY: the caller guarantees `out`.
            unsafe { one(pool, shape, lhs, rhs, out, b) };
        }
    }
}

/// Computes the products of some members of a batch on the calling thread, in one call of the inner kernel if
/// their operands have suitable strides.
///
/// # Safety
/// See [`multiply`].
unsafe fn members_inline<U: Compute>(
    shape: Shape,
    lhs: &dyn Left<U>,
    rhs: &dyn Right<U>,
    out: &Output<U>,
    members: Range<usize>,
) {
    let engine = U::engine();
    let first = members.start;
    let direct = || {
        let (a, a_row, a_col) = lhs.direct(first)?;
        let (b, b_row) = rhs.direct(first)?;
        let small = shape.depth <= DEPTH && shape.rows <= ROWS && shape.depth > 0;
        if out.store.is_some() || !small || !(engine.masked || shape.cols.is_multiple_of(engine.lanes)) {
            return None;
        }
        let batch_strides = [lhs.batch_stride()?, rhs.batch_stride()?, out.batch.stride()?];
        Some(Block {
            a,
            a_row,
            a_col,
            b,
            b_layout: Panels::Rows(b_row),
            c: out.ptr.get().cast::<U>().wrapping_add(out.batch.at(first)),
            c_row: out.row,
            rows: shape.rows,
            cols: shape.cols,
            depth: shape.depth,
            accumulate: false,
            batch: members.len(),
            batch_strides,
        })
    };
    if let Some(block) = direct() {
        // SAFETY: the operands are readable in place, and the caller guarantees `out`. Each address follows
        // from the first one by the strides that were checked.
        unsafe { (engine.block)(&block) };
        return;
    }
    for b in members {
        // SAFETY: guaranteed by the caller.
        unsafe { one(&Pool::inline(), shape, lhs, rhs, out, b) };
    }
}

/// The division of a product into blocks.
struct Cut {
    /// The number of rows per block.
    rows: usize,
    /// The number of vectors of columns per block: a multiple of that of a full panel.
    vectors: usize,
    /// The depth per block.
    depth: usize,
}

impl Cut {
    fn new<U, O>(engine: &Engine<U, O>, rows: usize, cols: usize, depth: usize) -> Self {
        let work = rows.saturating_mul(cols).saturating_mul(depth);
        let vectors = cols.div_ceil(engine.lanes);
        let blocks = depth.div_ceil(DEPTH).max(1);
        // An additional block in depth costs a pass over C; slightly deeper blocks are cheaper.
        let depth = if depth <= DEPTH * 3 / 2 { depth } else { depth.div_ceil(blocks) };
        if work < INLINE_WORK {
            return Self { rows, vectors: vectors.next_multiple_of(3), depth };
        }
        // Sixteen chunks suffice to balance the load; smaller ones are only worthwhile for large products.
        let target = (work / 16).clamp(CHUNK_WORK, ROWS * 4096 * DEPTH);
        let per_row = work / rows;
        let block_rows =
            (target / per_row.max(1)).clamp(1, ROWS.min(rows)).next_multiple_of(engine.rows).min(ROWS);
        let per_vector = per_row / vectors * block_rows.min(rows);
        let block_vectors = (target / per_vector.max(1)).clamp(6, vectors.max(6)).next_multiple_of(3);
        Self { rows: block_rows, vectors: block_vectors, depth }
    }

    /// Returns the groups of columns, as ranges of vectors. No group after the first consists of a single
    /// vector, so that the panels of the groups are those of the whole.
    fn groups(&self, vectors: usize) -> Few<Range<usize>> {
        let mut groups: Few<Range<usize>> =
            (0..vectors).step_by(self.vectors).map(|v| v..vectors.min(v + self.vectors)).collect();
        if groups.len() > 1 && groups.last().is_some_and(|g| g.len() == 1) {
            groups.pop();
            groups.last_mut().expect("two groups").end = vectors;
        }
        groups
    }
}

/// Computes one product.
///
/// # Safety
/// See [`multiply`].
unsafe fn one<U: Compute>(
    pool: &Pool,
    shape: Shape,
    lhs: &dyn Left<U>,
    rhs: &dyn Right<U>,
    out: &Output<U>,
    batch: usize,
) {
    let Shape { rows, cols, depth, .. } = shape;
    let engine = U::engine();
    let cut = Cut::new(&engine, rows, cols, depth.max(1));
    let lanes = engine.lanes;
    let in_place = rhs.direct(batch).filter(|_| {
        let fits = engine.masked || cols.is_multiple_of(lanes);
        fits && (rows <= 2 * engine.rows || cols.saturating_mul(depth) <= (1 << 20) / size_of::<U>())
    });
    // The whole depth is packed at once if the memory suffices for a few panels, so that C is complete after
    // one pass.
    let depth_at_once = match (in_place, out.store) {
        (Some(_), _) | (_, Some(_)) => depth.max(1),
        _ => depth.clamp(1, (PACKED_BYTES / (6 * lanes * size_of::<U>())).next_multiple_of(cut.depth)),
    };
    let room = (PACKED_BYTES / (depth_at_once * lanes * size_of::<U>())).max(1);
    let vectors = cols.div_ceil(lanes);
    let groups = cut.groups(vectors);
    let mut next = 0;
    while next < groups.len() {
        let mut end = next + 1;
        while end < groups.len() && (in_place.is_some() || groups[end].end - groups[next].start <= room) {
            end += 1;
        }
        let some = &groups[next..end];
        let (first, last) = (some[0].start, some[some.len() - 1].end);
        let mut from = 0;
        loop {
            let to = depth.min(from + depth_at_once);
            let right = match in_place {
                Some((b, stride)) => Panelled {
                    ptr: SyncPtr::from_raw(b.cast_mut().cast()),
                    layout: Panels::Rows(stride),
                    scratch: None,
                },
                // SAFETY: the range is within the operand.
                None => unsafe { pack(pool, rhs, batch, from..to, cut.depth, first..last, lanes, cols) },
            };
            let row_blocks = rows.div_ceil(cut.rows);
            pool.run(row_blocks * some.len(), &|chunk| {
                let (r, g) = (chunk / some.len(), &some[chunk % some.len()]);
                let task = Task {
                    engine,
                    batch,
                    rows: r * cut.rows..rows.min(r * cut.rows + cut.rows),
                    depth: from..to,
                    depth_block: cut.depth,
                    vectors: g.clone(),
                    first_vector: first,
                    last_vector: last,
                    cols,
                };
                // SAFETY: the caller guarantees `out`; chunks write different rows or columns of it.
                unsafe { task.run(lhs, &right, out) };
            });
            from = to;
            if from >= depth {
                break;
            }
        }
        next = end;
    }
}

/// The right operand as the inner kernel reads it: in place, or packed one block of depth at a time.
struct Panelled {
    ptr: SyncPtr,
    layout: Panels,
    scratch: Option<Scratch>,
}

/// Packs columns of the right operand.
///
/// # Safety
/// The ranges must be within the operand.
#[allow(
    clippy::too_many_arguments,
    reason = "the operands of a leaf loop; a struct would be made at every call"
)]
unsafe fn pack<U: Compute>(
    pool: &Pool,
    rhs: &dyn Right<U>,
    batch: usize,
    depth: Range<usize>,
    depth_block: usize,
    vectors: Range<usize>,
    lanes: usize,
    cols: usize,
) -> Panelled {
    let width = vectors.len() * lanes;
    let mut scratch = Scratch::new::<U>(width * depth.len());
    let ptr = SyncPtr::from_raw(scratch.ptr());
    let all: Vec<(usize, usize)> = panels(vectors.len()).collect();
    let blocks = depth.len().div_ceil(depth_block);
    // The number of panels per chunk, for some microseconds of copying.
    let per_chunk = ((1 << 17) / (depth_block * lanes * 3)).max(1);
    let chunks = all.len().div_ceil(per_chunk);
    pool.run(blocks * chunks, &|chunk| {
        let (block, chunk) = (chunk / chunks, chunk % chunks);
        let from = depth.start + block * depth_block;
        let to = depth.end.min(from + depth_block);
        let base = ptr.get().cast::<U>().wrapping_add((from - depth.start) * width);
        let all = &all[chunk * per_chunk..all.len().min((chunk + 1) * per_chunk)];
        let (first, end) = (all[0].0, all[all.len() - 1].0 + all[all.len() - 1].1);
        let cut = vectors.start + first..vectors.start + end;
        let to_panel = base.wrapping_add(first * lanes * (to - from));
        // SAFETY: the ranges are within the operand, and each chunk has its own part of the scratch memory,
        // which has room for all vectors and the whole depth. Dividing some of the panels' vectors again
        // gives the same panels.
        unsafe { rhs.pack(batch, from..to, cut.start * lanes..cols.min(cut.end * lanes), lanes, to_panel) };
    });
    Panelled { ptr, layout: Panels::Packed, scratch: Some(scratch) }
}

/// A chunk of a product.
struct Task<U> {
    engine: Engine<U, U>,
    batch: usize,
    rows: Range<usize>,
    /// The depth that is packed.
    depth: Range<usize>,
    depth_block: usize,
    vectors: Range<usize>,
    /// The first vector that is packed.
    first_vector: usize,
    /// The end of the vectors that are packed.
    last_vector: usize,
    cols: usize,
}

impl<U: Compute> Task<U> {
    /// # Safety
    /// See [`multiply`]; nothing else may access the rows and columns of this task in `out`.
    unsafe fn run(&self, lhs: &dyn Left<U>, right: &Panelled, out: &Output<U>) {
        debug_assert_eq!(right.scratch.is_some(), right.layout == Panels::Packed);
        let lanes = self.engine.lanes;
        let col = self.vectors.start * lanes;
        let cols = self.cols.min(self.vectors.end * lanes) - col;
        let rows = self.rows.len();
        let at = out.batch.at(self.batch) + self.rows.start * out.row + col;
        let mut tile = out.store.map(|_| Scratch::new::<U>(rows * cols));
        let (c, c_row) = match &mut tile {
            Some(tile) => (tile.ptr(), cols),
            None => (out.ptr.get().cast::<U>().wrapping_add(at), out.row),
        };
        let direct = lhs.direct(self.batch).filter(|(_, _, a_col)| *a_col == 1 || self.depth.len() <= 8);
        let mut packed = match direct {
            Some(_) => None,
            None => Some(Scratch::new::<U>(rows * self.depth_block.min(self.depth.len()))),
        };
        let mut from = self.depth.start;
        loop {
            let to = self.depth.end.min(from + self.depth_block);
            let (a, a_row, a_col) = match (&mut packed, direct) {
                (Some(packed), _) => {
                    // SAFETY: the ranges are within the operand, and the scratch memory has room for a block
                    // of them.
                    let (row, col) =
                        unsafe { lhs.pack(self.batch, self.rows.clone(), from..to, packed.ptr()) };
                    (packed.ptr::<U>().cast_const(), row, col)
                }
                (None, Some((a, row, col))) => (a.wrapping_add(self.rows.start * row + from * col), row, col),
                (None, None) => unreachable!("either packed or direct"),
            };
            let b = match right.layout {
                Panels::Rows(stride) => right.ptr.get().cast::<U>().wrapping_add(from * stride + col),
                Panels::Packed => {
                    let width = (self.last_vector - self.first_vector) * lanes;
                    let block = (from - self.depth.start) * width;
                    let panel = (self.vectors.start - self.first_vector) * lanes * (to - from);
                    right.ptr.get().cast::<U>().wrapping_add(block + panel)
                }
            };
            let block = Block {
                a,
                a_row,
                a_col,
                b,
                b_layout: right.layout,
                c,
                c_row,
                rows,
                cols,
                depth: to - from,
                accumulate: from > 0,
                batch: 1,
                batch_strides: [0; 3],
            };
            // SAFETY: A is readable in place or was just packed. B is readable in place, or was packed by
            // `pack` with the same panels. C is exclusively accessible, as the caller guarantees, or scratch
            // memory.
            unsafe { (self.engine.block)(&block) };
            from = to;
            if from >= self.depth.end {
                break;
            }
        }
        if let (Some(tile), Some(store)) = (&mut tile, out.store) {
            for r in 0..rows {
                let to = out.ptr.get().wrapping_add((at + r * out.row) * store.size);
                // SAFETY: the row was computed above, and the caller guarantees its place in `out`.
                unsafe { (store.row)(tile.ptr::<U>().add(r * cols), to, cols) };
            }
        }
    }
}
