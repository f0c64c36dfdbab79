//! Instructions to kernels.

use super::lane::Lane;
use super::{Cx, Process, Result, RunError, bitcast, foreign, generic};
use crate::graph::{GatherDims, ScatterDims};
use crate::plan::{Call, Kernel};
use refcpu_kernels::index::{GatherSpec, ScatterSpec};
use refcpu_kernels::{
    DType, Dst, Src, conv, copy, dot, fft, index, linalg, machine, reduce, region, rng, sort, window,
};
use std::sync::atomic::Ordering;

/// Runs one kernel.
pub(super) fn call(c: &Call, lane: &mut Lane, cx: &Cx<'_>) -> Result<()> {
    let (replica, partition) = (lane.replica, lane.partition);
    let in_place = c.kernel.works_in_place();
    lane.frame.access(&c.reads, &c.writes, in_place, |r, w| kernel(&c.kernel, r, w, (replica, partition), cx))
}

fn kernel(
    k: &Kernel,
    r: &[Src<'_>],
    w: &mut [Dst<'_>],
    (replica, partition): (usize, usize),
    cx: &Cx<'_>,
) -> Result<()> {
    let pool = &cx.runtime.pool;
    match k {
        Kernel::Region(code) => region::run(pool, code, r, w),
        Kernel::Copy => {
            if r[0].as_ptr() != w[0].as_mut_ptr().cast_const() {
                copy::copy(pool, r[0], w[0].reborrow());
            }
        }
        Kernel::Fill => copy::fill(pool, r[0], w[0].reborrow()),
        Kernel::Broadcast { dims } => copy::broadcast_in_dim(pool, r[0], w[0].reborrow(), dims),
        Kernel::Transpose { permutation } => copy::transpose(pool, r[0], w[0].reborrow(), permutation),
        Kernel::Slice { start, stride } => copy::slice(pool, r[0], w[0].reborrow(), start, stride),
        Kernel::Reverse { dims } => copy::reverse(pool, r[0], w[0].reborrow(), dims),
        Kernel::Pad { low, high, interior } => {
            copy::pad(pool, r[0], r[1], w[0].reborrow(), low, high, interior)
        }
        Kernel::Concatenate { dim } => copy::concatenate(pool, r, w[0].reborrow(), *dim),
        Kernel::Bitcast => bitcast::bitcast(r[0], w[0].reborrow()),
        Kernel::Reduce { op, dims } => reduce::reduce(pool, *op, r[0], r[1], w[0].reborrow(), dims),
        Kernel::ReduceBy { dims, halvings, last } => generic::reduce_by(cx, r, w, dims, halvings, last)?,
        Kernel::ArgReduce { op, dim } => {
            let (values, indices) = two(w);
            reduce::arg_reduce(pool, *op, r[0], values, indices, *dim);
        }
        Kernel::ReduceWindow { op, window: spec } => {
            window::reduce_window(pool, *op, r[0], r[1], w[0].reborrow(), spec);
        }
        Kernel::ReduceWindowBy { window, combine } => generic::reduce_window_by(cx, r, w, window, combine)?,
        Kernel::SelectAndScatter { window: spec, select, scatter } => {
            window::select_and_scatter(pool, *select, *scatter, r[0], r[1], r[2], w[0].reborrow(), spec);
        }
        Kernel::Dot(dims) => dot::dot_general(pool, r[0], r[1], w[0].reborrow(), dims),
        Kernel::Convolution(spec) => conv::convolution(pool, r[0], r[1], w[0].reborrow(), spec),
        Kernel::Gather(dims) => index::gather(pool, r[0], r[1], w[0].reborrow(), &gather_spec(dims)),
        Kernel::Scatter { dims, combiner } => {
            index::scatter(pool, *combiner, r[0], r[1], r[2], w[0].reborrow(), &scatter_spec(dims));
        }
        Kernel::ScatterBy { dims, combine } => {
            generic::scatter_by(cx, r, w, &scatter_spec(dims), combine.as_deref())
        }
        Kernel::DynamicSlice => {
            let mut starts = starts(&r[1..]);
            index::clamp_starts(&mut starts, r[0].dims(), w[0].dims());
            index::dynamic_slice(pool, r[0], &starts, w[0].reborrow());
        }
        Kernel::DynamicUpdateSlice => {
            let mut starts = starts(&r[2..]);
            index::clamp_starts(&mut starts, r[0].dims(), r[1].dims());
            index::dynamic_update_slice(pool, r[0], r[1], &starts, w[0].reborrow());
        }
        Kernel::Sort { dim, keys } => sort::sort(pool, keys, r, w, *dim),
        Kernel::SortBy { dim, less } => generic::sort_by(cx, r, w, *dim, less),
        Kernel::TopK { largest } => {
            let count = w[0].dims().last().copied().unwrap_or(0);
            let (values, indices) = two(w);
            sort::top_k(pool, r[0], values, indices, count, *largest);
        }
        Kernel::RngBits(algorithm) => generic::rng_bits(cx, r[0], w, *algorithm),
        Kernel::RngUniform => {
            let seed = cx.runtime.random.fetch_add(1, Ordering::Relaxed);
            rng::rng_uniform(pool, seed, r[0], r[1], w[0].reborrow());
        }
        Kernel::RngNormal => {
            let seed = cx.runtime.random.fetch_add(1, Ordering::Relaxed);
            rng::rng_normal(pool, seed, r[0], r[1], w[0].reborrow());
        }
        Kernel::Fft { kind, lengths } => fft::fft(pool, r[0], w[0].reborrow(), *kind, lengths),
        Kernel::Cholesky { lower } => linalg::cholesky(pool, r[0], w[0].reborrow(), *lower),
        Kernel::TriangularSolve(spec) => linalg::triangular_solve(pool, r[0], r[1], w[0].reborrow(), *spec),
        Kernel::QrFactor => {
            let (out, taus) = two(w);
            linalg::qr(pool, r[0], out, taus);
        }
        Kernel::QrProduct => linalg::householder_product(pool, r[0], r[1], w[0].reborrow()),
        Kernel::Linalg(op) => linalg::linalg(pool, *op, r, w),
        Kernel::Loop(small) => {
            let mut call = |what: usize, r: &[Src<'_>], w: &mut [Dst<'_>]| {
                kernel(&small.calls[what], r, w, (replica, partition), cx)
            };
            let stop = || cx.cancel.is_some_and(|c| c.load(Ordering::Relaxed));
            if !machine::run(&small.code, r, w, &mut call, &stop)? {
                return Err(RunError::cancelled());
            }
        }
        Kernel::Foreign(call) => foreign::call(Process { replica, partition }, call, r, w, cx)?,
        Kernel::PartitionId => w[0].bytes_mut().copy_from_slice(&(partition as u32).to_le_bytes()),
        Kernel::ReplicaId => w[0].bytes_mut().copy_from_slice(&(replica as u32).to_le_bytes()),
    }
    Ok(())
}

fn two<'a>(w: &'a mut [Dst<'_>]) -> (Dst<'a>, Dst<'a>) {
    let [a, b] = w else { panic!("two results, not {}", w.len()) };
    (a.reborrow(), b.reborrow())
}

/// Start indices of any integer type.
fn starts(scalars: &[Src<'_>]) -> Vec<i64> {
    scalars.iter().map(index_of).collect()
}

/// The value of a single integer; too large ones saturate.
fn index_of(s: &Src<'_>) -> i64 {
    let bytes = s.bytes();
    match s.dtype() {
        DType::S64 => i64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        DType::U64 => {
            i64::try_from(u64::from_le_bytes(bytes.try_into().expect("eight bytes"))).unwrap_or(i64::MAX)
        }
        DType::S32 => i64::from(i32::from_le_bytes(bytes.try_into().expect("four bytes"))),
        DType::U32 => i64::from(u32::from_le_bytes(bytes.try_into().expect("four bytes"))),
        DType::S16 => i64::from(i16::from_le_bytes(bytes.try_into().expect("two bytes"))),
        DType::U16 => i64::from(u16::from_le_bytes(bytes.try_into().expect("two bytes"))),
        DType::S8 | DType::S4 | DType::S2 => i64::from(bytes[0] as i8),
        _ => i64::from(bytes[0]),
    }
}

fn gather_spec(d: &GatherDims) -> GatherSpec<'_> {
    GatherSpec {
        offset_dims: &d.offset_dims,
        collapsed_slice_dims: &d.collapsed_slice_dims,
        operand_batching_dims: &d.operand_batching_dims,
        start_indices_batching_dims: &d.start_indices_batching_dims,
        start_index_map: &d.start_index_map,
        index_vector_dim: d.index_vector_dim,
        slice_sizes: &d.slice_sizes,
    }
}

fn scatter_spec(d: &ScatterDims) -> ScatterSpec<'_> {
    ScatterSpec {
        update_window_dims: &d.update_window_dims,
        inserted_window_dims: &d.inserted_window_dims,
        input_batching_dims: &d.input_batching_dims,
        scatter_indices_batching_dims: &d.scatter_indices_batching_dims,
        scatter_dims_to_operand_dims: &d.scatter_dims_to_operand_dims,
        index_vector_dim: d.index_vector_dim,
        indices_are_sorted: d.indices_are_sorted,
        unique_indices: d.unique_indices,
    }
}
