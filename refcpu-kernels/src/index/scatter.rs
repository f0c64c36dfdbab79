//! StableHLO `scatter`: combines updates with windows of an array at positions in an index array.

use super::gather::BLOCK;
use super::indices::{IndexVectors, Odometer, merge};
use super::runs::prefetch;
use crate::copy::{check_same_type, copy, strides_of};
use crate::few::Few;
use crate::isa::{Isa, multiversion};
use crate::view::{Element, SyncPtr};
use crate::{DType, Dst, Pool, ReduceOp, Src};
use half::{bf16, f16};
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Range, Sub};

/// The number of elements of a chunk.
const ELEMENTS_PER_CHUNK: usize = 32 << 10;
/// The number of elements of a window that are combined at a time.
const LANES: usize = 16;
/// The size in bytes from which an operand is prefetched. Smaller ones stay in the second-level cache.
const FAR: usize = 512 << 10;
/// The maximum number of chunks that each examine all indices, for their own rows ...
const OWNERS: usize = 4;
/// ... if rows have at least this many elements.
const ROW_WORTH_SEARCHING: usize = 32;
/// The cost of finding the position of a row, and of combining an element, in nanoseconds.
const ROW_NS: f64 = 1.0;
const ELEMENT_NS: f64 = 0.1;

/// The function that combines an update with an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combiner {
    /// Returns the update; if an element has several, the last one remains.
    Replace,
    /// Applies the operation to the element and the update.
    Reduce(ReduceOp),
}

/// The dimension numbers of a scatter, named as in StableHLO.
#[derive(Clone, Copy, Debug)]
pub struct ScatterSpec<'a> {
    /// The dimensions of the updates that correspond to those of a window, ascending.
    pub update_window_dims: &'a [usize],
    /// The operand dimensions of window size 1 that the updates do not have.
    pub inserted_window_dims: &'a [usize],
    /// The operand dimensions whose index is that of a dimension of the indices.
    pub input_batching_dims: &'a [usize],
    /// The dimensions of the indices that correspond to `input_batching_dims`, in the same order.
    pub scatter_indices_batching_dims: &'a [usize],
    /// The operand dimension of each component of an index vector.
    pub scatter_dims_to_operand_dims: &'a [usize],
    /// The dimension of the indices that contains the index vectors, or the rank of the indices if each element is an index
    /// vector.
    pub index_vector_dim: usize,
    /// The caller's promise that index vectors are sorted. Results do not depend on it.
    pub indices_are_sorted: bool,
    /// The caller's promise that no two updates have the same position. Results do not depend on it, even if
    /// it is broken.
    pub unique_indices: bool,
}

/// Returns `true` if [`scatter`] supports this combiner for this type. [`scatter_with`] supports all others.
pub fn scatter_supports(combiner: Combiner, dtype: DType) -> bool {
    let Combiner::Reduce(op) = combiner else { return true };
    match op {
        ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => dtype.is_computed_directly() && op.supports(dtype),
        ReduceOp::Minimum | ReduceOp::Maximum if dtype.is_complex() => false,
        _ => dtype.is_computed_directly() || matches!(dtype, DType::F16 | DType::BF16),
    }
}

/// Writes `operand` to `out`, combined with `updates`. Windows that are not completely inside the operand are
/// skipped, as in XLA. Updates of the same element are combined in the order of the indices, so results are
/// reproducible.
///
/// `operand` may be the same array as `out`; then only the windows are written.
///
/// # Panics
/// Panics if the shapes do not match, or if the type is not supported ([`scatter_supports`]).
pub fn scatter(
    pool: &Pool,
    combiner: Combiner,
    operand: Src<'_>,
    indices: Src<'_>,
    updates: Src<'_>,
    mut out: Dst<'_>,
    spec: &ScatterSpec<'_>,
) {
    check_same_type("scatter", &operand, &out);
    check_same_type("scatter", &updates, &out);
    assert_eq!(operand.dims(), out.dims(), "scatter");
    assert!(scatter_supports(combiner, out.dtype()), "scatter: {combiner:?} of {:?}", out.dtype());
    if operand.as_ptr() != out.as_mut_ptr().cast_const() {
        copy(pool, operand, out.reborrow());
    }
    let plan = Updates::new(out.dims(), indices, updates.dims(), spec);
    let mut scatter = Scatter { pool, plan, updates, out };
    match combiner {
        Combiner::Replace => scatter.replace(),
        Combiner::Reduce(op) => scatter.reduce(op.for_storage(scatter.out.dtype())),
    }
}

/// A scatter of elements of one type.
struct Scatter<'a> {
    pool: &'a Pool,
    plan: Updates<'a>,
    updates: Src<'a>,
    out: Dst<'a>,
}

impl Scatter<'_> {
    fn reduce(&mut self, op: ReduceOp) {
        macro_rules! integer {
            ($t:ty) => {
                self.integer::<$t>(op, <$t>::wrapping_add, <$t>::wrapping_mul)
            };
        }
        macro_rules! float {
            ($t:ty) => {
                self.arithmetic::<$t>(
                    op,
                    |a, b| a + b,
                    |a, b| a * b,
                    |a, b| if a <= b || a.is_nan() { a } else { b },
                    |a, b| if a >= b || a.is_nan() { a } else { b },
                )
            };
        }
        match self.out.dtype() {
            DType::S8 => integer!(i8),
            DType::S16 => integer!(i16),
            DType::S32 => integer!(i32),
            DType::S64 => integer!(i64),
            DType::Pred | DType::U8 => integer!(u8),
            DType::U16 => integer!(u16),
            DType::U32 => integer!(u32),
            DType::U64 => integer!(u64),
            DType::F16 => float!(f16),
            DType::BF16 => float!(bf16),
            DType::F32 => float!(f32),
            DType::F64 => float!(f64),
            DType::C64 => self.complex::<f32>(op),
            DType::C128 => self.complex::<f64>(op),
            _ => unreachable!("scatter_supports rejects this combination"),
        }
    }

    fn combine<T: Element>(&mut self, f: impl Fn(T, T) -> T + Copy + Sync) {
        self.plan.combine_all::<T>(self.pool, &self.updates, &mut self.out, f);
    }

    fn replace(&mut self) {
        match self.out.dtype().size() {
            1 => self.combine::<u8>(|_, b| b),
            2 => self.combine::<u16>(|_, b| b),
            4 => self.combine::<u32>(|_, b| b),
            8 if self.out.dtype() == DType::C64 => self.combine::<[f32; 2]>(|_, b| b),
            8 => self.combine::<u64>(|_, b| b),
            _ => self.combine::<[f64; 2]>(|_, b| b),
        }
    }

    fn arithmetic<T: Element>(
        &mut self,
        op: ReduceOp,
        add: impl Fn(T, T) -> T + Copy + Sync,
        multiply: impl Fn(T, T) -> T + Copy + Sync,
        minimum: impl Fn(T, T) -> T + Copy + Sync,
        maximum: impl Fn(T, T) -> T + Copy + Sync,
    ) {
        match op {
            ReduceOp::Add => self.combine(add),
            ReduceOp::Multiply => self.combine(multiply),
            ReduceOp::Minimum => self.combine(minimum),
            ReduceOp::Maximum => self.combine(maximum),
            _ => unreachable!("scatter_supports rejects this combination"),
        }
    }

    fn integer<T>(
        &mut self,
        op: ReduceOp,
        add: impl Fn(T, T) -> T + Copy + Sync,
        multiply: impl Fn(T, T) -> T + Copy + Sync,
    ) where
        T: Element + Ord + BitAnd<Output = T> + BitOr<Output = T> + BitXor<Output = T>,
    {
        match op {
            ReduceOp::And => self.combine::<T>(|a, b| a & b),
            ReduceOp::Or => self.combine::<T>(|a, b| a | b),
            ReduceOp::Xor => self.combine::<T>(|a, b| a ^ b),
            _ => self.arithmetic(op, add, multiply, T::min, T::max),
        }
    }

    /// Combines complex numbers with parts of type `T`.
    fn complex<T>(&mut self, op: ReduceOp)
    where
        T: Copy + Add<Output = T> + Sub<Output = T> + Mul<Output = T>,
        [T; 2]: Element,
    {
        match op {
            ReduceOp::Add => self.combine::<[T; 2]>(|a, b| [a[0] + b[0], a[1] + b[1]]),
            ReduceOp::Multiply => {
                self.combine::<[T; 2]>(|a, b| [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]);
            }
            _ => unreachable!("scatter_supports rejects this combination"),
        }
    }
}

/// Calls `combine` with the element numbers (row-major, in the operand and in the updates) of every pair that
/// a scatter to an operand of `operand_dims` combines, in the order of the indices. This is for combiners
/// that [`scatter`] does not support, and for several operands at once.
///
/// # Panics
/// Panics if the shapes do not match.
pub fn scatter_with(
    operand_dims: &[usize],
    indices: Src<'_>,
    update_dims: &[usize],
    spec: &ScatterSpec<'_>,
    combine: &mut dyn FnMut(usize, usize),
) {
    Updates::new(operand_dims, indices, update_dims, spec).for_each(combine);
}

/// Combines `n` adjacent elements with as many updates.
///
/// # Safety
/// The elements must be readable, those at `to` also writable, and nothing else may access these.
#[inline(always)]
unsafe fn combine_row<T: Element>(to: *mut T, from: *const T, n: usize, combine: &impl Fn(T, T) -> T) {
    let mut i = 0;
    // SAFETY: for all calls: that many elements from `i` on are in the row.
    unsafe {
        while n - i >= LANES {
            combine_some::<T, LANES>(to.add(i), from.add(i), combine);
            i += LANES;
        }
        if n & 8 != 0 {
            combine_some::<T, 8>(to.add(i), from.add(i), combine);
            i += 8;
        }
        if n & 4 != 0 {
            combine_some::<T, 4>(to.add(i), from.add(i), combine);
            i += 4;
        }
        if n & 2 != 0 {
            combine_some::<T, 2>(to.add(i), from.add(i), combine);
            i += 2;
        }
        if n & 1 != 0 {
            combine_some::<T, 1>(to.add(i), from.add(i), combine);
        }
    }
}

/// Combines `N` adjacent elements with as many updates. All are read before any is written, so that the loop
/// is vectorized.
///
/// # Safety
/// See [`combine_row`].
#[inline(always)]
unsafe fn combine_some<T: Element, const N: usize>(to: *mut T, from: *const T, combine: &impl Fn(T, T) -> T) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let place = to.cast::<[T; N]>();
        let mut sum = place.read();
        let update = from.cast::<[T; N]>().read();
        for (s, u) in sum.iter_mut().zip(update) {
            *s = combine(*s, u);
        }
        place.write(sum);
    }
}

/// Combines elements with updates, one at a time and in order.
///
/// # Safety
/// The elements must be readable, those at `to` also writable, and nothing else may access these.
#[inline(always)]
unsafe fn combine_elements<T: Element>(
    to: *mut T,
    from: *const T,
    o: &[isize],
    u: &[isize],
    combine: &impl Fn(T, T) -> T,
) {
    for (o, u) in o.iter().zip(u) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let place = to.offset(*o);
            place.write(combine(place.read(), from.offset(*u).read()));
        }
    }
}

multiversion! {
    /// Combines rows of `n` elements that begin at these positions, one at a time and in order.
    ///
    /// # Safety
    /// See [`combine_elements`].
    unsafe fn combine_each_row<T: Element, F: Fn(T, T) -> T>(to: *mut T, from: *const T, o: &[isize], u: &[isize], n: usize, combine: &F) = combine_each_row_body
}

/// # Safety
/// See [`combine_each_row`].
#[inline(always)]
unsafe fn combine_each_row_body<I: Isa, T: Element, F: Fn(T, T) -> T>(
    to: *mut T,
    from: *const T,
    o: &[isize],
    u: &[isize],
    n: usize,
    combine: &F,
) {
    for (o, u) in o.iter().zip(u) {
        // SAFETY: guaranteed by the caller.
        unsafe { combine_row(to.offset(*o), from.offset(*u), n, combine) };
    }
}

/// A checked scatter: the positions and the shape of its windows.
struct Updates<'a> {
    vectors: IndexVectors<'a>,
    /// The number of elements of the operand.
    len: usize,
    /// The number of windows.
    count: usize,
    /// The sizes and steps (operand, updates) of the dimensions that enumerate windows, in elements.
    batch: Few<(usize, isize, isize)>,
    /// The largest start and the step for each component of an index vector.
    components: Few<(i64, isize)>,
    /// The merged sizes and steps (operand, updates) of the dimensions of a window.
    window: Few<(usize, isize, isize)>,
}

impl<'a> Updates<'a> {
    fn new(dims: &[usize], indices: Src<'a>, update_dims: &[usize], spec: &ScatterSpec<'_>) -> Self {
        let vectors = IndexVectors::new("scatter", indices, spec.index_vector_dim);
        let index_dims = indices.dims();
        let describe = || format!("scatter: {update_dims:?} at {index_dims:?} into {dims:?} by {spec:?}");
        let (to, from) = (strides_of(dims), strides_of(update_dims));
        let kept: Few<usize> = (0..dims.len())
            .filter(|d| !spec.inserted_window_dims.contains(d) && !spec.input_batching_dims.contains(d))
            .collect();
        let batch_dims: Few<usize> =
            (0..update_dims.len()).filter(|d| !spec.update_window_dims.contains(d)).collect();
        let index_batch_dims: Few<usize> =
            (0..index_dims.len()).filter(|d| *d != spec.index_vector_dim).collect();
        assert!(
            spec.scatter_dims_to_operand_dims.len() == vectors.vector_len()
                && spec.scatter_dims_to_operand_dims.iter().all(|d| *d < dims.len())
                && kept.len() == spec.update_window_dims.len()
                && spec.update_window_dims.iter().all(|d| *d < update_dims.len())
                && kept.iter().zip(spec.update_window_dims).all(|(k, u)| update_dims[*u] <= dims[*k])
                && batch_dims.len() + spec.update_window_dims.len() == update_dims.len()
                && batch_dims.len() == index_batch_dims.len()
                && batch_dims.iter().zip(&index_batch_dims).all(|(b, i)| update_dims[*b] == index_dims[*i])
                && spec.input_batching_dims.len() == spec.scatter_indices_batching_dims.len()
                && spec.input_batching_dims.iter().zip(spec.scatter_indices_batching_dims).all(|(o, i)| {
                    index_batch_dims.contains(i)
                        && dims.get(*o) == index_dims.get(*i)
                        && !spec.scatter_dims_to_operand_dims.contains(o)
                }),
            "{}",
            describe()
        );
        let mut extent = Few::from_elem(1usize, dims.len());
        for (k, u) in kept.iter().zip(spec.update_window_dims) {
            extent[*k] = update_dims[*u];
        }
        let batch = merge(batch_dims.iter().zip(&index_batch_dims).map(|(b, i)| {
            let along = spec.scatter_indices_batching_dims.iter().position(|d| d == i);
            (update_dims[*b], along.map_or(0, |p| to[spec.input_batching_dims[p]]), from[*b])
        }));
        let components = spec
            .scatter_dims_to_operand_dims
            .iter()
            .map(|d| (dims[*d] as i64 - extent[*d] as i64, to[*d]))
            .collect();
        let window =
            merge(kept.iter().zip(spec.update_window_dims).map(|(k, u)| (update_dims[*u], to[*k], from[*u])));
        // An inserted dimension without an index component has index 0, which an empty operand does not have.
        let reachable = !dims.contains(&0) && !update_dims.contains(&0);
        let count = if reachable { batch_dims.iter().map(|d| update_dims[*d]).product() } else { 0 };
        // Overflowing sizes belong to empty arrays.
        let len = dims.iter().fold(1usize, |n, d| n.wrapping_mul(*d));
        Self { vectors, len, count, batch, components, window }
    }

    /// Combines the updates of all windows whose first element is in `owned`.
    ///
    /// # Safety
    /// `to` and `from` must be arrays of the shapes that this scatter was checked for, and nothing else may
    /// access the elements of these windows.
    unsafe fn combine_owned<T: Element>(
        &self,
        to: *mut T,
        from: *const T,
        owned: Option<Range<isize>>,
        combine: impl Fn(T, T) -> T,
    ) {
        let ahead = |o: &[isize]| {
            if self.len * size_of::<T>() > FAR {
                o.iter().for_each(|o| prefetch(to.wrapping_offset(*o)));
            }
        };
        // Only windows inside the operand are returned, so all their elements are in it. Those of the updates
        // are indexed by dimensions of the updates.
        match self.window[..] {
            [] => self.for_each_block(None, &mut |o, u| {
                ahead(o);
                // SAFETY: the elements are in both arrays.
                unsafe { combine_elements(to, from, o, u, &combine) };
            }),
            [(n, 1, 1)] => self.for_each_block(owned, &mut |o, u| {
                ahead(o);
                // SAFETY: the rows are in both arrays.
                unsafe { combine_each_row(to, from, o, u, n, &combine) };
            }),
            [.., (n, 1, 1)] => {
                let rows = self.window_rows();
                self.for_each_block(None, &mut |o, u| {
                    for (o, u) in o.iter().zip(u) {
                        // SAFETY: the window is in both arrays.
                        unsafe {
                            self.combine_rows(to.offset(*o), from.offset(*u), 0..rows, n, &combine);
                        };
                    }
                });
            }
            _ => {
                let elements: usize = self.window.iter().map(|(n, ..)| n).product();
                let mut inside = Odometer::new(self.window.iter().copied(), 0);
                self.for_each_block(None, &mut |o, u| {
                    for (o, u) in o.iter().zip(u) {
                        for _ in 0..elements {
                            let (to_step, from_step) = inside.offsets;
                            // SAFETY: an element of the window, which is in both arrays.
                            unsafe {
                                combine_elements(to, from, &[o + to_step], &[u + from_step], &combine);
                            }
                            inside.advance();
                        }
                    }
                });
            }
        }
    }

    /// Returns the number of rows of a window.
    fn window_rows(&self) -> usize {
        self.window[..self.window.len() - 1].iter().map(|(n, ..)| n).product()
    }

    /// Combines some rows of `n` elements of a window, whose first elements are at `to` and `from`.
    ///
    /// # Safety
    /// The window must are in both arrays, and nothing else may access its rows.
    unsafe fn combine_rows<T: Element>(
        &self,
        to: *mut T,
        from: *const T,
        rows: Range<usize>,
        n: usize,
        combine: &impl Fn(T, T) -> T,
    ) {
        let outer = self.window[..self.window.len() - 1].iter().copied();
        let mut at = Odometer::new(outer, rows.start);
        for _ in rows {
            // SAFETY: guaranteed by the caller; offsets are those of the window's rows.
            unsafe { combine_row(to.offset(at.offsets.0), from.offset(at.offsets.1), n, combine) };
            at.advance();
        }
    }

    /// Combines all updates.
    fn combine_all<T: Element>(
        &self,
        pool: &Pool,
        updates: &Src<'_>,
        out: &mut Dst<'_>,
        combine: impl Fn(T, T) -> T + Copy + Sync,
    ) {
        debug_assert_eq!(self.len, out.as_mut_slice::<T>().len());
        let from = SyncPtr::from_raw(updates.as_slice::<T>().as_ptr().cast_mut().cast());
        let to = SyncPtr::new(out);
        // SAFETY: in all cases, the views have these shapes (checked by `new`) and this type, and their
        // elements have the size of `T`.
        let run = |owned: Option<Range<isize>>| unsafe {
            self.combine_owned::<T>(to.get().cast(), from.get().cast(), owned, combine)
        };
        if let (1, [.., (n, 1, 1)]) = (self.count, &self.window[..])
            && self.window.len() > 1
        {
            // The rows of a single window are disjoint.
            let rows = self.window_rows();
            let chunk = (ELEMENTS_PER_CHUNK / n).max(1);
            self.for_each_block(None, &mut |o, u| {
                for (o, u) in o.iter().zip(u) {
                    pool.run(rows.div_ceil(chunk), &|c| {
                        let rows = c * chunk..rows.min((c + 1) * chunk);
                        // SAFETY: as above; chunks have different rows.
                        unsafe {
                            let (to, from) =
                                (to.get().cast::<T>().offset(*o), from.get().cast::<T>().offset(*u));
                            self.combine_rows(to, from, rows, *n, &combine);
                        }
                    });
                }
            });
            return;
        }
        let cost = self.count.saturating_mul(self.window.first().map_or(1, |w| w.0));
        let parts = (cost / ELEMENTS_PER_CHUNK).clamp(1, OWNERS);
        if let Some(n) = self.rows().filter(|n| parts > 1 && *n >= ROW_WORTH_SEARCHING) {
            // Windows are rows of the operand. Each chunk examines all indices, and writes the rows that it
            // owns.
            let part = (self.len / n).div_ceil(parts) * n;
            let chunks = self.len.div_ceil(part);
            let ns = self.count as f64 * (ROW_NS + ELEMENT_NS * n as f64 / chunks as f64);
            pool.run_costed(chunks, ns, &|chunk| {
                run(Some((chunk * part) as isize..self.len.min((chunk + 1) * part) as isize));
            });
        } else {
            run(None);
        }
    }

    /// Returns the length of windows, if they are contiguous and any two of them are either equal or
    /// disjoint.
    fn rows(&self) -> Option<usize> {
        match self.window[..] {
            [(n, 1, 1)] => {
                let aligned = |step: isize| (step as usize).is_multiple_of(n);
                let all =
                    self.batch.iter().all(|b| aligned(b.1)) && self.components.iter().all(|c| aligned(c.1));
                all.then_some(n)
            }
            _ => None,
        }
    }

    /// Calls `work` with the numbers of the first elements of windows, in the operand and in the updates, one
    /// block at a time and in order. Windows that are out of bounds or that do not begin in `owned` are
    /// skipped.
    fn for_each_block(&self, owned: Option<Range<isize>>, work: &mut dyn FnMut(&[isize], &[isize])) {
        let mut odometer = Odometer::new(self.batch.iter().copied(), 0);
        let (mut to, mut from) = ([0isize; BLOCK], [0isize; BLOCK]);
        let mut inside = [true; BLOCK];
        for first in (0..self.count).step_by(BLOCK) {
            let n = BLOCK.min(self.count - first);
            odometer.fill(&mut to[..n], &mut from[..n]);
            let mut all = true;
            for (k, component) in self.components.iter().enumerate() {
                all &= self.vectors.add_checked(k, first, *component, &mut to[..n], &mut inside[..n]);
            }
            if all && owned.is_none() {
                work(&to[..n], &from[..n]);
                continue;
            }
            let mut kept = 0;
            for i in 0..n {
                (to[kept], from[kept]) = (to[i], from[i]);
                let mine = owned.as_ref().is_none_or(|o| o.contains(&to[i]));
                kept += usize::from(inside[i] & mine);
            }
            inside[..n].fill(true);
            work(&to[..kept], &from[..kept]);
        }
    }

    /// Calls `combine` for every pair of elements, in order.
    fn for_each(&self, combine: &mut dyn FnMut(usize, usize)) {
        let elements: usize = self.window.iter().map(|(n, ..)| n).product();
        let mut inside = Odometer::new(self.window.iter().copied(), 0);
        self.for_each_block(None, &mut |o, u| {
            for (o, u) in o.iter().zip(u) {
                for _ in 0..elements {
                    let (to, from) = inside.offsets;
                    combine((o + to) as usize, (u + from) as usize);
                    inside.advance();
                }
            }
        });
    }
}
