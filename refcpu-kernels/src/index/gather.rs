//! StableHLO `gather`: copies windows of an array from positions in an index array.

use super::indices::{IndexVectors, Odometer};
use super::runs::copy_runs;
use crate::copy::{Loop, Nest, Prepared, check_same_type, strides_of};
use crate::few::Few;
use crate::view::SyncPtr;
use crate::{Dst, Pool, Src};

/// The number of index vectors that are converted to offsets at a time.
pub(super) const BLOCK: usize = 256;
/// The cost of a chunk, in bytes that could be copied.
const COST_PER_CHUNK: usize = 64 << 10;
/// The cost of finding the position of a window, in bytes that could be copied.
const COST_PER_WINDOW: usize = 32;
/// The maximum number of chunks of a gather.
const MAX_CHUNKS: usize = 64;
/// The maximum size in bytes of runs for which windows are copied run by run (the first run of all windows,
/// then the second, and so on) ...
const SHORT_RUN: usize = 128;
/// ... if at least this many windows are copied at a time.
const MANY_WINDOWS: usize = 8;

/// The dimension numbers of a gather, named as in StableHLO.
#[derive(Clone, Copy, Debug)]
pub struct GatherSpec<'a> {
    /// The dimensions of the result that correspond to those of a window, ascending.
    pub offset_dims: &'a [usize],
    /// The operand dimensions of window size 1 that the result does not have.
    pub collapsed_slice_dims: &'a [usize],
    /// The operand dimensions whose index is that of a dimension of `start_indices`.
    pub operand_batching_dims: &'a [usize],
    /// The dimensions of `start_indices` that correspond to `operand_batching_dims`, in the same order.
    pub start_indices_batching_dims: &'a [usize],
    /// The operand dimension of each component of an index vector.
    pub start_index_map: &'a [usize],
    /// The dimension of `start_indices` that contains the index vectors, or the rank of `start_indices` if each element is
    /// an index vector.
    pub index_vector_dim: usize,
    /// The window's size in each operand dimension.
    pub slice_sizes: &'a [usize],
}

/// Copies the window at each index vector to its position in `out`. Starts are clamped so that windows lie inside the
/// operand, as StableHLO specifies.
///
/// # Panics
/// Panics if the shapes or types do not match.
pub fn gather(
    pool: &Pool,
    operand: Src<'_>,
    start_indices: Src<'_>,
    mut out: Dst<'_>,
    spec: &GatherSpec<'_>,
) {
    check_same_type("gather", &operand, &out);
    let vectors = IndexVectors::new("gather", start_indices, spec.index_vector_dim);
    let plan = check(&operand, &start_indices, &out, spec, &vectors);
    let Some(windows) = plan.filter(|_| !out.is_empty()) else { return };
    let (count, window) = (windows.count, &windows.window);
    let out = SyncPtr::new(&mut out);
    if count < 16 && window.bytes() > 256 << 10 {
        windows.for_each_block(&vectors, spec, 0..count, &mut |from, to| {
            for (from, to) in from.iter().zip(to) {
                let (source, target) =
                    (operand.as_ptr().wrapping_offset(*from), out.get().wrapping_offset(*to));
                // SAFETY: `check` ensured that windows at clamped starts are in the operand, and that
                // positions in `out` are distinct.
                unsafe { window.run(pool, source, SyncPtr::from_raw(target)) }
            }
        });
        return;
    }
    let cost = (window.bytes() + COST_PER_WINDOW).saturating_mul(count);
    let part = count.div_ceil((cost / COST_PER_CHUNK).clamp(1, MAX_CHUNKS));
    let source = SyncPtr::from_raw(operand.as_ptr().cast_mut());
    pool.run(count.div_ceil(part), &|chunk| {
        let range = chunk * part..count.min((chunk + 1) * part);
        windows.for_each_block(&vectors, spec, range, &mut |from, to| {
            // SAFETY: as above; chunks have different index vectors and so write different parts of `out`.
            unsafe { copy_windows(window, source.get(), from, out.get(), to) }
        });
    });
}

/// A checked gather: the positions and the shape of its windows.
struct Windows {
    /// The number of windows.
    count: usize,
    /// The sizes and steps (operand, result; in bytes) of the dimensions that enumerate windows.
    batch: Few<(usize, isize, isize)>,
    /// The largest start and the step in bytes for each component of an index vector.
    components: Few<(i64, isize)>,
    /// A single window.
    window: Prepared,
}

fn check(
    operand: &Src<'_>,
    start_indices: &Src<'_>,
    out: &Dst<'_>,
    spec: &GatherSpec<'_>,
    vectors: &IndexVectors<'_>,
) -> Option<Windows> {
    let (dims, index_dims, out_dims) = (operand.dims(), start_indices.dims(), out.dims());
    let describe = || format!("gather: {dims:?} at {index_dims:?} to {out_dims:?} by {spec:?}");
    let size = operand.dtype().size();
    let (from, to) = (strides_of(dims), strides_of(out_dims));
    let roles = Roles::new(dims.len(), index_dims.len(), out_dims.len(), spec);
    let Roles { kept, batch_dims, index_batch_dims } = &roles;
    assert!(
        spec.start_index_map.len() == vectors.vector_len()
            && roles.fit_sizes(dims, index_dims, out_dims, spec),
        "{}",
        describe()
    );
    if out.is_empty() {
        return None;
    }
    assert!(roles.fit_batch(dims, index_dims, spec), "{}", describe());
    let bytes = |stride: isize| stride.wrapping_mul(size as isize);
    let batch = batch_dims
        .iter()
        .zip(index_batch_dims)
        .map(|(b, i)| {
            let along = spec.start_indices_batching_dims.iter().position(|d| d == i);
            let source = along.map_or(0, |p| from[spec.operand_batching_dims[p]]);
            (out_dims[*b], bytes(source), bytes(to[*b]))
        })
        .collect();
    let components = spec
        .start_index_map
        .iter()
        .map(|d| ((dims[*d] - spec.slice_sizes[*d]) as i64, bytes(from[*d])))
        .collect();
    let mut nest = Nest::new();
    for (k, o) in kept.iter().zip(spec.offset_dims) {
        nest.push(Loop { count: out_dims[*o], src: from[*k], dst: to[*o] });
    }
    let count = batch_dims.iter().map(|d| out_dims[*d]).product();
    Some(Windows { count, batch, components, window: nest.prepare(size) })
}

/// The dimensions of the arrays of a gather by their roles.
struct Roles {
    /// The operand's dimensions that windows keep.
    kept: Few<usize>,
    /// The result's dimensions that enumerate windows.
    batch_dims: Few<usize>,
    /// The dimensions of the indices that enumerate windows.
    index_batch_dims: Few<usize>,
}

impl Roles {
    fn new(rank: usize, index_rank: usize, out_rank: usize, spec: &GatherSpec<'_>) -> Self {
        let is_kept =
            |d: &usize| !spec.collapsed_slice_dims.contains(d) && !spec.operand_batching_dims.contains(d);
        Self {
            kept: (0..rank).filter(is_kept).collect(),
            batch_dims: (0..out_rank).filter(|d| !spec.offset_dims.contains(d)).collect(),
            index_batch_dims: (0..index_rank).filter(|d| *d != spec.index_vector_dim).collect(),
        }
    }

    /// Returns `true` if the dimension numbers are in range and corresponding sizes are equal.
    fn fit_sizes(
        &self,
        dims: &[usize],
        index_dims: &[usize],
        out_dims: &[usize],
        spec: &GatherSpec<'_>,
    ) -> bool {
        let Self { kept, batch_dims, index_batch_dims } = self;
        spec.slice_sizes.len() == dims.len()
            && spec.slice_sizes.iter().zip(dims).all(|(s, d)| s <= d)
            && spec.start_index_map.iter().all(|d| *d < dims.len())
            && kept.len() == spec.offset_dims.len()
            && spec.offset_dims.iter().all(|d| *d < out_dims.len())
            && kept.iter().zip(spec.offset_dims).all(|(k, o)| spec.slice_sizes[*k] == out_dims[*o])
            && batch_dims.len() == index_batch_dims.len()
            && batch_dims.iter().zip(index_batch_dims).all(|(b, i)| out_dims[*b] == index_dims[*i])
            && batch_dims.len() + spec.offset_dims.len() == out_dims.len()
            && spec.operand_batching_dims.len() == spec.start_indices_batching_dims.len()
    }

    /// Returns `true` if windows have size 1 along the dimensions that they do not keep, and the batching
    /// dimensions of operand and indices correspond.
    fn fit_batch(&self, dims: &[usize], index_dims: &[usize], spec: &GatherSpec<'_>) -> bool {
        (0..dims.len()).all(|d| self.kept.contains(&d) || spec.slice_sizes[d] == 1)
            && spec.operand_batching_dims.iter().zip(spec.start_indices_batching_dims).all(|(o, i)| {
                self.index_batch_dims.contains(i)
                    && dims.get(*o) == index_dims.get(*i)
                    && !spec.start_index_map.contains(o)
            })
    }
}

impl Windows {
    /// Calls `work` with the byte offsets of windows in the operand and in the result, one block at a time.
    fn for_each_block(
        &self,
        vectors: &IndexVectors<'_>,
        spec: &GatherSpec<'_>,
        range: std::ops::Range<usize>,
        work: &mut dyn FnMut(&[isize], &[isize]),
    ) {
        let mut odometer = Odometer::new(self.batch.iter().copied(), range.start);
        let (mut from, mut to) = ([0isize; BLOCK], [0isize; BLOCK]);
        let mut first = range.start;
        while first < range.end {
            let n = BLOCK.min(range.end - first);
            odometer.fill(&mut from[..n], &mut to[..n]);
            for k in 0..spec.start_index_map.len() {
                vectors.add_clamped(k, first, self.components[k], &mut from[..n]);
            }
            work(&from[..n], &to[..n]);
            first += n;
        }
    }
}

/// Copies a window from each offset in `from` to the corresponding offset in `to`.
///
/// # Safety
/// All the windows must are in their arrays, those in `out` must be pairwise different, and the arrays must
/// not overlap.
unsafe fn copy_windows(window: &Prepared, operand: *const u8, from: &[isize], out: *mut u8, to: &[isize]) {
    let (loops, bytes) = window.runs();
    if loops.is_empty() {
        // SAFETY: guaranteed by the caller: a window is a single run.
        unsafe { copy_runs(bytes, operand, from, out, to) };
    } else if from.len() >= MANY_WINDOWS && bytes <= SHORT_RUN {
        let mut inside = Odometer::new(loops.iter().map(|l| (l.count, l.src, l.dst)), 0);
        for _ in 0..window.bytes() / bytes {
            let (source, target) = inside.offsets;
            // SAFETY: guaranteed by the caller: the loops reach the runs of each window.
            unsafe {
                copy_runs(bytes, operand.wrapping_offset(source), from, out.wrapping_offset(target), to);
            }
            inside.advance();
        }
    } else {
        for (f, t) in from.iter().zip(to) {
            // SAFETY: guaranteed by the caller.
            unsafe { window.run_inline(operand.wrapping_offset(*f), out.wrapping_offset(*t)) }
        }
    }
}
