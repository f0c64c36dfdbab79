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
pub(crate) struct GemmShape {
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
    shape: GemmShape,
    lhs: &dyn Left<U>,
    rhs: &dyn Right<U>,
    out: &Output<U>,
) {
    let GemmShape { batch, rows, cols, depth } = shape;
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
            unsafe { Product::new(shape, b).run(pool, lhs, rhs, out) };
        }
    }
}

/// Computes the products of some members of a batch on the calling thread, in one call of the inner kernel if
/// their operands have suitable strides.
///
/// # Safety
/// See [`multiply`].
unsafe fn members_inline<U: Compute>(
    shape: GemmShape,
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
        unsafe { Product::new(shape, b).run(&Pool::inline(), lhs, rhs, out) };
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

/// One product of a batch, and its division into blocks.
struct Product<U> {
    engine: Engine<U, U>,
    cut: Cut,
    batch: usize,
    rows: usize,
    cols: usize,
    depth: usize,
}

impl<U: Compute> Product<U> {
    fn new(shape: GemmShape, batch: usize) -> Self {
        let GemmShape { rows, cols, depth, .. } = shape;
        let engine = U::engine();
        Self { engine, cut: Cut::new(&engine, rows, cols, depth.max(1)), batch, rows, cols, depth }
    }

    /// Computes the product.
    ///
    /// # Safety
    /// See [`multiply`].
    unsafe fn run(&self, pool: &Pool, lhs: &dyn Left<U>, rhs: &dyn Right<U>, out: &Output<U>) {
        let lanes = self.engine.lanes;
        let in_place = self.in_place(rhs);
        // The whole depth is packed at once if the memory suffices for a few panels, so that C is complete
        // after one pass.
        let depth_at_once = match (in_place, out.store) {
            (Some(_), _) | (_, Some(_)) => self.depth.max(1),
            _ => {
                let limit = (PACKED_BYTES / (6 * lanes * size_of::<U>())).next_multiple_of(self.cut.depth);
                self.depth.clamp(1, limit)
            }
        };
        let room = (PACKED_BYTES / (depth_at_once * lanes * size_of::<U>())).max(1);
        let groups = self.cut.groups(self.cols.div_ceil(lanes));
        let mut rest = &groups[..];
        while let Some(first) = rest.first() {
            let fits = |g: &&Range<usize>| in_place.is_some() || g.end - first.start <= room;
            let (some, further) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            let vectors = first.start..some[some.len() - 1].end;
            // Without depth, there is one pass, which writes zeros.
            for from in (0..self.depth.max(1)).step_by(depth_at_once) {
                let depth = from..self.depth.min(from + depth_at_once);
                let right = match in_place {
                    Some((b, stride)) => Panelled {
                        ptr: SyncPtr::from_raw(b.cast_mut().cast()),
                        layout: Panels::Rows(stride),
                        depth,
                        vectors: vectors.clone(),
                        scratch: None,
                    },
                    // SAFETY: the range is within the operand.
                    None => unsafe { self.pack(pool, rhs, depth, vectors.clone()) },
                };
                // SAFETY: guaranteed by the caller.
                unsafe { self.pass(pool, lhs, &right, some, out) };
            }
            rest = further;
        }
    }

    /// Returns the right operand and its stride, if the inner kernel can read it, and if reading it in place
    /// costs less than packing it.
    fn in_place(&self, rhs: &dyn Right<U>) -> Option<(*const U, usize)> {
        let is_readable = self.engine.masked || self.cols.is_multiple_of(self.engine.lanes);
        rhs.direct(self.batch).filter(|_| {
            is_readable
                && (self.rows <= 2 * self.engine.rows
                    || self.cols.saturating_mul(self.depth) <= (1 << 20) / size_of::<U>())
        })
    }

    /// Packs columns of the right operand.
    ///
    /// # Safety
    /// The ranges must be within the operand.
    unsafe fn pack(
        &self,
        pool: &Pool,
        rhs: &dyn Right<U>,
        depth: Range<usize>,
        vectors: Range<usize>,
    ) -> Panelled {
        let (lanes, depth_block) = (self.engine.lanes, self.cut.depth);
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
            let cols = (vectors.start + first) * lanes..self.cols.min((vectors.start + end) * lanes);
            let to_panel = base.wrapping_add(first * lanes * (to - from));
            // SAFETY: the ranges are within the operand, and each chunk has its own part of the scratch
            // memory, which has room for all vectors and the whole depth. Dividing some of the panels'
            // vectors again gives the same panels.
            unsafe { rhs.pack(self.batch, from..to, cols, lanes, to_panel) };
        });
        Panelled { ptr, layout: Panels::Packed, depth, vectors, scratch: Some(scratch) }
    }

    /// Multiplies the depth of `right` for some groups of its columns.
    ///
    /// # Safety
    /// See [`multiply`].
    unsafe fn pass(
        &self,
        pool: &Pool,
        lhs: &dyn Left<U>,
        right: &Panelled,
        groups: &[Range<usize>],
        out: &Output<U>,
    ) {
        let row_blocks = self.rows.div_ceil(self.cut.rows);
        pool.run(row_blocks * groups.len(), &|chunk| {
            let first_row = chunk / groups.len() * self.cut.rows;
            let task = Task {
                product: self,
                rows: first_row..self.rows.min(first_row + self.cut.rows),
                vectors: groups[chunk % groups.len()].clone(),
            };
            // SAFETY: the caller guarantees `out`; chunks write different rows or columns of it.
            unsafe { task.run(lhs, right, out) };
        });
    }
}

/// The right operand as the inner kernel reads it: in place, or packed one block of depth at a time.
struct Panelled {
    ptr: SyncPtr,
    layout: Panels,
    /// The depth that is multiplied in one pass, which is the packed one.
    depth: Range<usize>,
    /// The vectors that are packed.
    vectors: Range<usize>,
    scratch: Option<Scratch>,
}

impl Panelled {
    /// Returns the address of the columns from vector `vector` on in a block of depth.
    fn at<U>(&self, vector: usize, lanes: usize, depth: Range<usize>) -> *const U {
        let offset = match self.layout {
            Panels::Rows(stride) => depth.start * stride + vector * lanes,
            Panels::Packed => {
                let width = self.vectors.len() * lanes;
                let block = (depth.start - self.depth.start) * width;
                block + (vector - self.vectors.start) * lanes * depth.len()
            }
        };
        self.ptr.get().cast::<U>().wrapping_add(offset)
    }
}

/// A chunk of a product.
struct Task<'a, U> {
    product: &'a Product<U>,
    rows: Range<usize>,
    vectors: Range<usize>,
}

impl<U: Compute> Task<'_, U> {
    /// # Safety
    /// See [`multiply`]; nothing else may access the rows and columns of this task in `out`.
    unsafe fn run(&self, lhs: &dyn Left<U>, right: &Panelled, out: &Output<U>) {
        debug_assert_eq!(right.scratch.is_some(), right.layout == Panels::Packed);
        let Product { engine, batch, cols: all_cols, .. } = *self.product;
        let (lanes, depth_block) = (engine.lanes, self.product.cut.depth);
        let col = self.vectors.start * lanes;
        let cols = all_cols.min(self.vectors.end * lanes) - col;
        let rows = self.rows.len();
        let at = out.batch.at(batch) + self.rows.start * out.row + col;
        let mut tile = out.store.map(|_| Scratch::new::<U>(rows * cols));
        let (c, c_row) = match &mut tile {
            Some(tile) => (tile.ptr(), cols),
            None => (out.ptr.get().cast::<U>().wrapping_add(at), out.row),
        };
        let depth = right.depth.clone();
        let direct = lhs.direct(batch).filter(|(_, _, a_col)| *a_col == 1 || depth.len() <= 8);
        let mut packed = match direct {
            Some(_) => None,
            None => Some(Scratch::new::<U>(rows * depth_block.min(depth.len()))),
        };
        for from in (depth.start..depth.end.max(depth.start + 1)).step_by(depth_block) {
            let to = depth.end.min(from + depth_block);
            let (a, a_row, a_col) = match (&mut packed, direct) {
                (Some(packed), _) => {
                    // SAFETY: the ranges are within the operand, and the scratch memory has room for a block
                    // of them.
                    let (row, col) = unsafe { lhs.pack(batch, self.rows.clone(), from..to, packed.ptr()) };
                    (packed.ptr::<U>().cast_const(), row, col)
                }
                (None, Some((a, row, col))) => (a.wrapping_add(self.rows.start * row + from * col), row, col),
                (None, None) => unreachable!("either packed or direct"),
            };
            let block = Block {
                a,
                a_row,
                a_col,
                b: right.at(self.vectors.start, lanes, from..to),
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
            unsafe { (engine.block)(&block) };
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
