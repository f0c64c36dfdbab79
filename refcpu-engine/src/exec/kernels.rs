//! Calls the kernels of steps.

use super::lane::Lane;
use super::{Cx, Process, Result, RunError, foreign, generic};
use crate::graph::{Device, Op};
use crate::plan::{Call, Kernel};
use refcpu_kernels::{Dst, Src, copy, machine, region};
use std::sync::atomic::Ordering;

/// Runs the kernel of a step.
pub(super) fn call(c: &Call, lane: &mut Lane, cx: &Cx<'_>) -> Result<()> {
    let process = Process { replica: lane.replica, partition: lane.partition };
    let in_place = c.kernel.works_in_place();
    lane.frame.access(&c.reads, &c.writes, in_place, |r, w| kernel(&c.kernel, r, w, process, cx))
}

fn kernel(k: &Kernel, r: &[Src<'_>], w: &mut [Dst<'_>], process: Process, cx: &Cx<'_>) -> Result<()> {
    let pool = &cx.runtime.pool;
    match k {
        Kernel::Op(Op::Foreign(call)) => foreign::call(process, call, r, w, cx)?,
        Kernel::Op(op) => {
            let Process { replica, partition } = process;
            op.operation().run(&Device { pool, replica, partition, random: &cx.runtime.random }, r, w);
        }
        Kernel::Region(code) => region::run(pool, code, r, w),
        Kernel::Copy => {
            if r[0].as_ptr() != w[0].as_mut_ptr().cast_const() {
                copy::copy(pool, r[0], w[0].reborrow());
            }
        }
        Kernel::Fill => copy::fill(pool, r[0], w[0].reborrow()),
        Kernel::ReduceBy { dims, halvings, last } => generic::reduce_by(cx, r, w, dims, halvings, last)?,
        Kernel::ReduceWindowBy { window, combine } => generic::reduce_window_by(cx, r, w, window, combine)?,
        Kernel::ScatterBy { dims, combine } => {
            generic::scatter_by(cx, r, w, &dims.spec(), combine.as_deref());
        }
        Kernel::SortBy { dim, less } => generic::sort_by(cx, r, w, *dim, less),
        Kernel::Loop(small) => {
            let mut call =
                |what: usize, r: &[Src<'_>], w: &mut [Dst<'_>]| kernel(&small.calls[what], r, w, process, cx);
            let stop = || cx.cancel.is_some_and(|c| c.load(Ordering::Relaxed));
            if !machine::run(&small.code, r, w, &mut call, &stop)? {
                return Err(RunError::cancelled());
            }
        }
    }
    Ok(())
}
