//! Kernels for operations whose body is an arbitrary region, and for those that need scratch memory.

use super::{Cx, Result};
use crate::storage::Array;
use refcpu_kernels::index::{ScatterSpec, scatter_with};
use refcpu_kernels::region::{Region, run, run_scalar};
use refcpu_kernels::window::WindowSpec;
use refcpu_kernels::{DType, Dst, Src, copy, sort};
use std::sync::Arc;

/// Allocates scratch memory.
fn scratch(cx: &Cx<'_>, dtype: DType, dims: &[usize]) -> Result<Array> {
    Ok(Array::allocate(&cx.runtime.allocator, dtype, dims.into())?)
}

/// Returns a scratch array as the destination of a kernel.
fn dst(array: &mut Array) -> Dst<'_> {
    array.dst().expect("scratch memory has one holder")
}

fn src(array: &Array) -> Src<'_> {
    array.src().expect("scratch memory is dense")
}

/// Reduces rows in pairs. See [`crate::plan::Kernel::ReduceBy`].
pub(super) fn reduce_by(
    cx: &Cx<'_>,
    r: &[Src<'_>],
    w: &mut [Dst<'_>],
    dims: &[usize],
    halvings: &[Region],
    last: &Region,
) -> Result<()> {
    let pool = &cx.runtime.pool;
    let count = w.len();
    let input = r[0].dims();
    let kept: Vec<usize> = (0..input.len()).filter(|d| !dims.contains(d)).collect();
    let mut sorted = dims.to_vec();
    sorted.sort_unstable();
    let permutation: Vec<usize> = sorted.iter().chain(&kept).copied().collect();
    let transposed: Vec<usize> = permutation.iter().map(|d| input[*d]).collect();
    let mut rows: usize = dims.iter().map(|d| input[*d]).product();
    let width: usize = kept.iter().map(|d| input[*d]).product();
    if rows == 0 {
        for (init, out) in r[count..].iter().zip(w) {
            copy::fill(pool, *init, out.reborrow());
        }
        return Ok(());
    }
    let mut arrays = Vec::with_capacity(count);
    for s in &r[..count] {
        let mut a = scratch(cx, s.dtype(), &transposed)?;
        copy::transpose(pool, *s, dst(&mut a), &permutation);
        arrays.push(a.into_reinterpreted(s.dtype(), Arc::new([rows, width])));
    }
    for halving in halvings {
        let (half, odd) = (rows / 2, rows % 2);
        let mut next = Vec::with_capacity(count);
        for a in &arrays {
            next.push(scratch(cx, a.dtype(), &[half + odd, width])?);
        }
        let srcs: Vec<Src<'_>> = arrays.iter().chain(&arrays).map(src).collect();
        let dims = [half, width];
        let mut dsts: Vec<Dst<'_>> = next
            .iter_mut()
            .map(|a| {
                let dtype = a.dtype();
                let bytes = half * width * dtype.size();
                Dst::new(&mut a.bytes_mut().expect("one holder")[..bytes], dtype, &dims)
            })
            .collect();
        run(pool, halving, &srcs, &mut dsts);
        drop(dsts);
        if odd == 1 {
            for (from, to) in arrays.iter().zip(&mut next) {
                let row = width * from.dtype().size();
                let from = from.bytes().expect("dense");
                let to = to.bytes_mut().expect("one holder");
                let end = to.len();
                to[end - row..].copy_from_slice(&from[from.len() - row..]);
            }
        }
        rows = half + odd;
        arrays = next;
    }
    let srcs: Vec<Src<'_>> = r[count..].iter().copied().chain(arrays.iter().map(src)).collect();
    run(pool, last, &srcs, w);
    Ok(())
}

/// Combines the elements of every window one by one. See [`crate::plan::Kernel::ReduceWindowBy`].
pub(super) fn reduce_window_by(
    cx: &Cx<'_>,
    r: &[Src<'_>],
    w: &mut [Dst<'_>],
    window: &WindowSpec,
    combine: &Region,
) -> Result<()> {
    let pool = &cx.runtime.pool;
    let count = w.len();
    let dims = r[0].dims();
    let padded = window.padded_dims(dims);
    let low: Vec<i64> = window.padding.iter().map(|p| p.0).collect();
    let high: Vec<i64> = window.padding.iter().map(|p| p.1).collect();
    let interior: Vec<i64> = window.base_dilations.iter().map(|d| *d as i64 - 1).collect();
    let mut inputs = Vec::with_capacity(count);
    for (s, init) in r[..count].iter().zip(&r[count..]) {
        let mut a = scratch(cx, s.dtype(), &padded)?;
        copy::pad(pool, *s, *init, dst(&mut a), &low, &high, &interior);
        inputs.push(a);
    }
    let out_dims = w[0].dims().to_vec();
    let mut results = Vec::with_capacity(count);
    for (init, out) in r[count..].iter().zip(&*w) {
        let mut a = scratch(cx, out.dtype(), &out_dims)?;
        copy::fill(pool, *init, dst(&mut a));
        results.push(a);
    }
    if out_dims.contains(&0) {
        return Ok(());
    }
    let mut at = vec![0usize; dims.len()];
    loop {
        let element = at
            .iter()
            .zip(&window.window_dilations)
            .zip(&padded)
            .fold(0, |flat, ((k, dilation), n)| flat * n + k * dilation);
        let mut next = Vec::with_capacity(count);
        for a in &results {
            next.push(scratch(cx, a.dtype(), &out_dims)?);
        }
        let lens: Vec<[usize; 1]> =
            inputs.iter().map(|a| [a.dims().iter().product::<usize>() - element]).collect();
        let shifted = inputs.iter().zip(&lens).map(|(a, len)| {
            let bytes = a.bytes().expect("dense");
            Src::new(&bytes[element * a.dtype().size()..], a.dtype(), len)
        });
        let srcs: Vec<Src<'_>> = results.iter().map(src).chain(shifted).collect();
        let mut dsts: Vec<Dst<'_>> = next.iter_mut().map(dst).collect();
        run(pool, combine, &srcs, &mut dsts);
        drop(dsts);
        results = next;
        let Some(d) = (0..at.len()).rev().find(|d| at[*d] + 1 < window.size[*d]) else { break };
        at[d] += 1;
        at[d + 1..].fill(0);
    }
    for (a, out) in results.iter().zip(w) {
        copy::copy(pool, src(a), out.reborrow());
    }
    Ok(())
}

/// Aligned memory for one scalar of any type.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Cell([u8; 16]);

impl Cell {
    fn of(bytes: &[u8]) -> Self {
        let mut cell = Self([0; 16]);
        cell.0[..bytes.len()].copy_from_slice(bytes);
        cell
    }

    fn src(&self, dtype: DType) -> Src<'_> {
        Src::new(&self.0[..dtype.size()], dtype, &[])
    }
}

/// Sorts by a region that compares scalars.
pub(super) fn sort_by(cx: &Cx<'_>, r: &[Src<'_>], w: &mut [Dst<'_>], dim: usize, less: &Region) {
    let mut compare = |a: usize, b: usize| {
        let cells: Vec<(Cell, DType)> = r
            .iter()
            .flat_map(|s| {
                let size = s.dtype().size();
                let at = |i: usize| (Cell::of(&s.bytes()[i * size..(i + 1) * size]), s.dtype());
                [at(a), at(b)]
            })
            .collect();
        let srcs: Vec<Src<'_>> = cells.iter().map(|(c, d)| c.src(*d)).collect();
        let mut out = [0u8];
        run_scalar(less, &srcs, &mut [Dst::new(&mut out, DType::Pred, &[])]);
        out[0] != 0
    };
    sort::sort_by(&cx.runtime.pool, r, w, dim, &mut compare);
}

/// Scatters updates by a region that combines scalars, or by replacement.
pub(super) fn scatter_by(
    cx: &Cx<'_>,
    r: &[Src<'_>],
    w: &mut [Dst<'_>],
    spec: &ScatterSpec<'_>,
    combine: Option<&Region>,
) {
    let count = w.len();
    for (s, out) in r.iter().zip(w.iter_mut()) {
        if s.as_ptr() != out.as_mut_ptr().cast_const() {
            copy::copy(&cx.runtime.pool, *s, out.reborrow());
        }
    }
    let updates = &r[count + 1..];
    let operand_dims = w[0].dims().to_vec();
    scatter_with(&operand_dims, r[count], updates[0].dims(), spec, &mut |to, from| {
        let element = |s: &Src<'_>| {
            let size = s.dtype().size();
            Cell::of(&s.bytes()[from * size..(from + 1) * size])
        };
        let new: Vec<Cell> = updates.iter().map(element).collect();
        let combined = match combine {
            None => new,
            Some(region) => {
                let old: Vec<Cell> = w
                    .iter_mut()
                    .map(|d| {
                        let size = d.dtype().size();
                        Cell::of(&d.bytes_mut()[to * size..(to + 1) * size])
                    })
                    .collect();
                let dtypes: Vec<DType> = w.iter().map(Dst::dtype).collect();
                let srcs: Vec<Src<'_>> =
                    old.iter().chain(&new).zip(dtypes.iter().cycle()).map(|(c, d)| c.src(*d)).collect();
                let mut out = vec![Cell([0; 16]); count];
                let mut dsts: Vec<Dst<'_>> = out
                    .iter_mut()
                    .zip(&dtypes)
                    .map(|(c, d)| Dst::new(&mut c.0[..d.size()], *d, &[]))
                    .collect();
                run_scalar(region, &srcs, &mut dsts);
                drop(dsts);
                out
            }
        };
        for (d, c) in w.iter_mut().zip(combined) {
            let size = d.dtype().size();
            d.bytes_mut()[to * size..(to + 1) * size].copy_from_slice(&c.0[..size]);
        }
    });
}
