//! The interpreter of regions.

use super::Region;
use super::gather::{gather, iota, splat};
use super::program::{Load, LoadKind, Program, Slot, Step, Store};
use crate::{Dst, Pool, Src};
use std::cell::Cell;
use std::ops::Range;

/// The work of a chunk: enough to be worth sharing with another thread, and little enough to balance the
/// load.
const CHUNK_NS: f64 = 8000.0;
/// The maximum work for which there is only one chunk.
const SMALL_NS: f64 = 3000.0;
/// The maximum number of chunks of a run.
const MAX_CHUNKS: usize = 256;

/// A cache line of scratch memory.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    /// The register tiles of this thread, which are kept between runs and taken out while they are in use.
    static SCRATCH: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// The largest size of scratch memory that a thread keeps between runs.
const KEPT_SCRATCH: usize = 1 << 20;

/// Calls `work` with at least `bytes` of initialized scratch memory, aligned to a cache line.
fn with_scratch<R>(bytes: usize, work: impl FnOnce(*mut u8) -> R) -> R {
    let mut lines = SCRATCH.take();
    let needed = bytes.div_ceil(64);
    if lines.len() < needed {
        lines.resize(needed, Line([0; 64]));
    }
    let result = work(lines.as_mut_ptr().cast());
    if lines.len() * 64 <= KEPT_SCRATCH {
        SCRATCH.set(lines);
    }
    result
}

/// A run: the region and the addresses of its arrays.
struct Frame<'a> {
    program: &'a Program,
    inputs: &'a [Src<'a>],
    outputs: &'a [*mut u8],
    /// For each store, `true` if the tile is first written to a stand-in, because an input that is read later
    /// has the same address.
    bounced: &'a [bool],
}

// SAFETY: the pointers of the outputs are only used to write disjoint tiles: each tile and the results of
// each row belong to one chunk, and `run` holds the `Dst`s during this time.
unsafe impl Sync for Frame<'_> {}

/// The tile that is computed: the elements `start..start + len` of `rows` rows.
#[derive(Clone, Copy)]
struct Tile {
    row: usize,
    rows: usize,
    start: usize,
    len: usize,
}

impl Tile {
    fn end(self) -> usize {
        self.start + self.len
    }
}

/// The parts of the scratch memory of a thread.
struct RegisterFile {
    /// The address of each slot.
    table: *mut *mut u8,
    /// The values that do not vary within a row, and after them the running results of reductions.
    cells: *mut u8,
    /// The register tiles.
    tiles: *mut u8,
}

/// The number of outputs whose pointers fit into the list on the stack.
const FEW: usize = 16;

/// Executes `region` on arrays.
///
/// Inputs and outputs are in the order of the region. Their element types and numbers of elements must match,
/// but their dimensions are ignored. An input array can be one of the outputs (exactly the same address) if
/// [`Region::may_alias`] returns `true`.
///
/// Results do not depend on the number of threads.
///
/// # Panics
/// Panics if the number, types or sizes of the arrays are not those of the region.
pub fn run(pool: &Pool, region: &Region, inputs: &[Src<'_>], outputs: &mut [Dst<'_>]) {
    check(region, inputs, outputs);
    let mut pointers = [std::ptr::null_mut(); FEW];
    let mut bounced = [false; FEW];
    let count = outputs.len();
    if count <= FEW {
        for (p, o) in pointers.iter_mut().zip(outputs.iter_mut()) {
            *p = o.as_mut_ptr();
        }
        run_at(pool, region, inputs, &pointers[..count], &mut bounced[..count]);
    } else {
        let pointers: Vec<*mut u8> = outputs.iter_mut().map(Dst::as_mut_ptr).collect();
        run_at(pool, region, inputs, &pointers, &mut vec![false; count]);
    }
}

/// Does the same as [`run`], on the calling thread, for small regions in inner loops, such as comparators and update bodies.
///
/// # Panics
/// Panics in the same cases as [`run`].
pub fn run_scalar(region: &Region, inputs: &[Src<'_>], outputs: &mut [Dst<'_>]) {
    run(&Pool::inline(), region, inputs, outputs);
}

fn check(region: &Region, inputs: &[Src<'_>], outputs: &[Dst<'_>]) {
    assert!(
        inputs.len() == region.inputs.len() && outputs.len() == region.outputs.len(),
        "the region has {} inputs and {} outputs, but got {} and {}",
        region.inputs.len(),
        region.outputs.len(),
        inputs.len(),
        outputs.len()
    );
    for (i, (s, (spec, len))) in inputs.iter().zip(region.inputs.iter().zip(&region.input_lens)).enumerate() {
        assert!(
            s.dtype() == spec.dtype && s.len() >= *len,
            "region input {i} must have at least {len} elements of {:?}, but is {:?}{:?}",
            spec.dtype,
            s.dtype(),
            s.dims()
        );
    }
    for (i, (d, spec)) in outputs.iter().zip(&region.outputs).enumerate() {
        let dims = region.output_dims(i);
        assert!(
            d.dtype() == spec.dtype && d.len() == dims.iter().product::<usize>(),
            "region output {i} is {:?}{dims:?}, got {:?}{:?}",
            spec.dtype,
            d.dtype(),
            d.dims()
        );
    }
}

fn run_at(pool: &Pool, region: &Region, inputs: &[Src<'_>], outputs: &[*mut u8], bounced: &mut [bool]) {
    let program = region.program();
    let g = &program.loops;
    for (store, b) in program.stores.iter().zip(bounced.iter_mut()) {
        let at = outputs[store.output as usize].cast_const();
        for load in &store.late_loads {
            let input = program.loads[usize::from(*load)].input as usize;
            *b |= inputs[input].as_ptr() == at;
        }
    }
    for (i, s) in inputs.iter().enumerate() {
        for (k, o) in outputs.iter().enumerate() {
            if s.as_ptr() == o.cast_const() && !s.is_empty() {
                assert!(
                    region.may_alias(i, k) || !is_loaded(program, i),
                    "input {i} of the region has the address of output {k}, but is read in a different order"
                );
            }
        }
    }
    let frame = Frame { program, inputs, outputs, bounced };
    let total_ns = program.estimated_ns();
    if !program.reductions.is_empty() && g.segment == 0 {
        return frame.reduce_rows(pool, total_ns);
    }
    let tiles = g.tiles();
    if total_ns < SMALL_NS {
        if tiles > 0 {
            frame.tiles(0..tiles, None);
        }
        return;
    }
    let chunks = ((total_ns / CHUNK_NS) as usize).clamp(1, MAX_CHUNKS).min(tiles);
    let per_chunk = tiles.div_ceil(chunks);
    pool.run_costed(tiles.div_ceil(per_chunk), per_chunk as f64 * program.ns_per_tile, &|c| {
        let start = c * per_chunk;
        frame.tiles(start..tiles.min(start + per_chunk), None);
    });
}

fn is_loaded(program: &Program, input: usize) -> bool {
    program.loads.iter().any(|l| l.input as usize == input)
}

/// Returns the number of bytes of scratch memory before the register tiles: the pointer table, the cells and
/// the running results of reductions.
fn head(program: &Program) -> usize {
    let cells = program.cells as usize + program.reductions.len();
    (program.slots.len() * 8).next_multiple_of(64) + (cells * 16).next_multiple_of(64)
}

impl Frame<'_> {
    /// Executes a range of tiles. Without `partial`, reductions are over whole rows, whose results are
    /// written. With `partial`, they are over a part of a row, and update the running results in it.
    fn tiles(&self, range: Range<usize>, partial: Option<&mut [u128]>) {
        let p = self.program;
        let bytes = head(p) + p.tile_bytes as usize * p.loops.capacity;
        with_scratch(bytes, |scratch| {
            // SAFETY: `scratch` has the size of `head` and the register tiles, and nothing else uses it.
            unsafe { self.tiles_in(scratch, range, partial) }
        });
    }

    /// # Safety
    /// `scratch` must be aligned to 64, and writable for the size of [`head`] and the register tiles.
    unsafe fn tiles_in(&self, scratch: *mut u8, range: Range<usize>, partial: Option<&mut [u128]>) {
        let p = self.program;
        let g = &p.loops;
        // SAFETY: guaranteed by the caller.
        let registers = unsafe { self.registers(scratch) };
        let table = registers.table;
        // SAFETY: once-code reads constants and single elements of inputs (which `check` found to exist), and
        // writes cells and splat tiles.
        unsafe { self.steps(&p.once_code, table, Tile { row: 0, rows: 1, start: 0, len: 1 }) };

        let whole_rows = partial.is_none();
        let running: &mut [u128] = match partial {
            Some(running) => running,
            // SAFETY: after the cells there is room for one running result per reduction, aligned to 16.
            None => unsafe {
                let at = registers.cells.add(p.cells as usize * 16).cast::<u128>();
                std::slice::from_raw_parts_mut(at, p.reductions.len())
            },
        };
        let mut last_row = usize::MAX;
        for t in range {
            let band = if g.rows == 1 { 0 } else { t / g.tiles_per_row };
            let start = (t - band * g.tiles_per_row) * g.tile;
            let row = band * g.tile_rows;
            let rows = g.tile_rows.min(g.rows - row);
            let tile = Tile { row, rows, start, len: g.tile.min(g.row_len - start) };
            let row_changed = row != last_row;
            last_row = row;
            // SAFETY: after `point_at`, all pointers refer to this tile: inputs and outputs have `len` more
            // elements, and register tiles have room for `g.tile >= len`. The destination of a kernel differs
            // from its sources, because registers are released after the step that reads them last, and
            // aliased outputs use a stand-in.
            unsafe {
                self.point_at(tile, table, row_changed);
                if row_changed {
                    self.steps(&p.row_code, table, Tile { row, rows: 1, start: 0, len: 1 });
                }
                self.steps(&p.tile_code, table, tile);
                if g.segment > 0 {
                    self.segments(table, tile);
                } else {
                    for (reduction, running) in p.reductions.iter().zip(running.iter_mut()) {
                        if row_changed && whole_rows {
                            *running = reduction.reducer.identity();
                        }
                        reduction.reducer.accumulate(
                            running,
                            *table.add(usize::from(reduction.src)),
                            tile.len,
                        );
                    }
                }
                self.copy_stand_ins(tile, registers.tiles);
            }
            if whole_rows && g.segment == 0 && !running.is_empty() && tile.end() == g.row_len {
                self.finish_row(row, running);
            }
        }
    }

    /// Divides scratch memory into registers, and writes the address of every slot that does not depend on
    /// the tile to the table.
    ///
    /// # Safety
    /// See [`Self::tiles_in`].
    unsafe fn registers(&self, scratch: *mut u8) -> RegisterFile {
        let p = self.program;
        let table = scratch.cast::<*mut u8>();
        // SAFETY: the addresses are within the head and the register area of the scratch memory.
        let (cells, tiles) =
            unsafe { (scratch.add((p.slots.len() * 8).next_multiple_of(64)), scratch.add(head(p))) };
        for (i, slot) in p.slots.iter().enumerate() {
            // SAFETY: the table has one entry per slot. By construction, offsets lie within the cells and the
            // register tiles, and constants are only read.
            unsafe {
                *table.add(i) = match *slot {
                    Slot::Tile(at) => tiles.add(at as usize * p.loops.capacity),
                    Slot::Cell(c) => cells.add(c as usize * 16),
                    Slot::Const(c) => std::ptr::from_ref(&p.constants[c as usize]).cast_mut().cast(),
                    Slot::Memory(l) => {
                        let load = &p.loads[l as usize];
                        self.inputs[load.input as usize].as_ptr().add(load.offset * load.size).cast_mut()
                    }
                    Slot::Output(k) => self.outputs[k as usize],
                };
            }
        }
        for store in self.stores(true) {
            // SAFETY: the stand-in is a register tile.
            unsafe {
                *table.add(usize::from(store.slot)) = tiles.add(store.stand_in as usize * p.loops.capacity)
            };
        }
        RegisterFile { table, cells, tiles }
    }

    /// Returns the stores that are first written to a stand-in, or the other ones.
    #[inline(always)]
    fn stores(&self, bounced: bool) -> impl Iterator<Item = &Store> {
        self.program.stores.iter().zip(self.bounced).filter(move |(_, b)| **b == bounced).map(|(s, _)| s)
    }

    /// Writes the addresses of the inputs and outputs of a tile to the table.
    ///
    /// # Safety
    /// `table` must have an entry for each slot.
    #[inline(always)]
    unsafe fn point_at(&self, tile: Tile, table: *mut *mut u8, row_changed: bool) {
        for load in &self.program.loads {
            let along = match load.kind {
                LoadKind::InPlace => tile.start as isize,
                LoadKind::Reversed => 1 - tile.end() as isize,
                LoadKind::PerRow if row_changed => 0,
                _ => continue,
            };
            // SAFETY: the access stays within the array for every point of the space (`Access::bounds`, `check`).
            unsafe {
                *table.add(usize::from(load.slot)) =
                    self.row_base(load, tile.row).offset(along * load.size as isize).cast_mut()
            };
        }
        for store in self.stores(false) {
            // SAFETY: the caller guarantees the entry.
            unsafe { *table.add(usize::from(store.slot)) = self.output_at(store, tile) };
        }
    }

    /// Copies a tile from the stand-ins to the outputs.
    ///
    /// # Safety
    /// `tiles` must be the register tiles.
    #[inline(always)]
    unsafe fn copy_stand_ins(&self, tile: Tile, tiles: *const u8) {
        for store in self.stores(true) {
            // SAFETY: the stand-in is a register tile, and the output has `tile.len` more elements.
            unsafe {
                let from = tiles.add(store.stand_in as usize * self.program.loops.capacity);
                std::ptr::copy_nonoverlapping(from, self.output_at(store, tile), tile.len * store.size);
            }
        }
    }

    /// Returns the address of the first element of a tile of an output.
    #[inline(always)]
    fn output_at(&self, store: &Store, tile: Tile) -> *mut u8 {
        let element = tile.row * self.program.loops.row_len + tile.start;
        // SAFETY: the element is one of the output, whose size `check` compared.
        unsafe { self.outputs[store.output as usize].add(element * store.size) }
    }

    /// Reduces the whole number of runs in a tile, and writes their results.
    ///
    /// # Safety
    /// The slots of the reductions must hold the tile.
    unsafe fn segments(&self, table: *const *mut u8, tile: Tile) {
        let length = self.program.loops.segment;
        let (first, count) = (tile.start / length, tile.len / length);
        for r in &self.program.reductions {
            // SAFETY: guaranteed by the caller. The results `first..first + count` are elements of the output
            // that only this tile writes; the register tile has room for them.
            unsafe {
                let out = self.outputs[r.output as usize].add(first * r.size);
                let src = *table.add(usize::from(r.src));
                match r.encode {
                    None => r.reducer.segments(out, src, count, length),
                    Some(encode) => {
                        let tile = *table.add(usize::from(r.tile));
                        r.reducer.segments(tile, src, count, length);
                        encode.call(out, [tile; 3], count);
                    }
                }
            }
        }
    }

    /// Returns the address of the first element of row `row` of a load.
    fn row_base(&self, load: &Load, row: usize) -> *const u8 {
        let mut offset = load.offset as isize;
        let mut rest = row;
        for (d, s) in self.program.loops.outer.iter().zip(&load.outer).rev() {
            offset += (rest % d) as isize * s;
            rest /= d;
        }
        self.inputs[load.input as usize].as_ptr().wrapping_offset(offset * load.size as isize)
    }

    /// # Safety
    /// Every slot that the steps name must point to the data that they read or write; see [`Self::tiles_in`].
    #[inline(always)]
    unsafe fn steps(&self, steps: &[Step], table: *const *mut u8, tile: Tile) {
        let g = &self.program.loops;
        let Tile { row, rows, start, len: n } = tile;
        for step in steps {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let at = |slot: u16| *table.add(usize::from(slot));
                match *step {
                    Step::Kernel { kernel, dst, src } => {
                        kernel.call(at(dst), [at(src[0]), at(src[1]), at(src[2])], n)
                    }
                    Step::Chain { chain } => self.program.chains[usize::from(chain)].run(table, rows, n),
                    Step::Gather { load } => {
                        let load = &self.program.loads[usize::from(load)];
                        let base = self.row_base(load, row);
                        gather(at(load.slot), base, load.size, &load.dims, &load.inner, start, n);
                    }
                    Step::Iota { dst, dim, ty } => iota(at(dst), ty, &g.inner, usize::from(dim), start, n),
                    Step::RowIota { dst, dim, ty } => iota(at(dst), ty, &g.outer, usize::from(dim), row, 1),
                    Step::Splat { dst, src, size } => {
                        // In once-code and row-code (n = 1), the whole register is filled, for tiles of any
                        // length.
                        let whole = matches!(self.program.slots[usize::from(dst)], Slot::Tile(_));
                        splat(at(dst), at(src), usize::from(size), if whole { g.capacity } else { n });
                    }
                    Step::Copy { dst, src, size } => {
                        std::ptr::copy_nonoverlapping(at(src), at(dst), n * usize::from(size))
                    }
                }
            }
        }
    }

    /// Runs a region with reductions over whole rows, or over segments of rows if a few long rows would leave
    /// threads idle.
    fn reduce_rows(&self, pool: &Pool, total_ns: f64) {
        let p = self.program;
        let g = &p.loops;
        let count = p.reductions.len();
        let fresh = || p.reductions.iter().map(|r| r.reducer.identity());
        if g.tiles_per_row == 0 || g.rows == 0 {
            let empty: Vec<u128> = fresh().collect();
            (0..g.rows).for_each(|row| self.finish_row(row, &empty));
            return;
        }
        if total_ns < SMALL_NS {
            return self.tiles(0..g.tiles(), None);
        }
        let tiles_per_chunk =
            ((CHUNK_NS / p.ns_per_tile) as usize).max(1).max(g.tiles().div_ceil(MAX_CHUNKS));
        if g.rows >= 64 || g.tiles_per_row <= tiles_per_chunk {
            let rows_per_chunk = (tiles_per_chunk / g.tiles_per_row).max(1);
            let ns = (rows_per_chunk * g.tiles_per_row) as f64 * p.ns_per_tile;
            pool.run_costed(g.rows.div_ceil(rows_per_chunk), ns, &|c| {
                let rows = c * rows_per_chunk..g.rows.min((c + 1) * rows_per_chunk);
                self.tiles(rows.start * g.tiles_per_row..rows.end * g.tiles_per_row, None);
            });
            return;
        }
        let segments = g.tiles_per_row.div_ceil(tiles_per_chunk);
        let per_segment = g.tiles_per_row.div_ceil(segments);
        let mut partial: Vec<u128> = (0..g.rows * segments).flat_map(|_| fresh()).collect();
        let base = Partials(partial.as_mut_ptr());
        pool.run_costed(g.rows * segments, per_segment as f64 * p.ns_per_tile, &|c| {
            // SAFETY: only chunk `c` accesses the `count` results at `c * count`, which are within `partial`.
            let mine = unsafe { std::slice::from_raw_parts_mut(base.at(c * count), count) };
            let (row, segment) = (c / segments, c % segments);
            let first = row * g.tiles_per_row;
            let start = (segment * per_segment).min(g.tiles_per_row);
            let end = (start + per_segment).min(g.tiles_per_row);
            self.tiles(first + start..first + end, Some(mine));
        });
        for row in 0..g.rows {
            let of_row = &mut partial[row * segments * count..(row + 1) * segments * count];
            // The results are combined pairwise, in an order that depends only on the sizes.
            let mut width = 1;
            while width < segments {
                for left in (0..segments - width).step_by(2 * width) {
                    for (k, r) in p.reductions.iter().enumerate() {
                        let further = of_row[(left + width) * count + k];
                        r.reducer.merge(&mut of_row[left * count + k], further);
                    }
                }
                width *= 2;
            }
            self.finish_row(row, &of_row[..count]);
        }
    }

    /// Writes the results of a row.
    fn finish_row(&self, row: usize, running: &[u128]) {
        for (r, running) in self.program.reductions.iter().zip(running) {
            let value = r.reducer.value(*running);
            let bytes = r.encode.map_or(value, |e| e.on_scalars(&[value])).to_le_bytes();
            // SAFETY: row `row` is one of the output's elements (`check` compared their number), and is
            // written once.
            unsafe {
                let to = self.outputs[r.output as usize].add(row * r.size);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, r.size);
            }
        }
    }
}

/// The running results of all segments, which chunks access in parallel.
#[derive(Clone, Copy)]
struct Partials(*mut u128);

// SAFETY: every chunk accesses only its own results.
unsafe impl Send for Partials {}
// SAFETY: as above.
unsafe impl Sync for Partials {}

impl Partials {
    fn at(self, index: usize) -> *mut u128 {
        self.0.wrapping_add(index)
    }
}
