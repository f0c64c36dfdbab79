//! Runs kernels on blocks of rows.

use super::process::Process;
use super::{Cx, Result};
use crate::graph::Device;
use crate::plan::{Kernel, RowBlocks};
use crate::storage::Frame;
use refcpu_kernels::{Dst, Pool, Src, region};

/// Runs a step on the blocks of its rows, which the threads of the pool share.
pub(super) fn run(step: &RowBlocks, frame: &mut Frame, process: Process, cx: &Cx<'_>) -> Result<()> {
    let Process { replica, partition } = process;
    let (pool, random) = (&Pool::inline(), &cx.runtime.random);
    let device = Device { pool, replica, partition, random };
    let work = |inner: &mut Frame, block: usize| {
        for call in step.calls(block) {
            let in_place = call.kernel.works_in_place();
            inner.access(&call.reads, &call.writes, in_place, |r, w| kernel(&call.kernel, &device, r, w));
        }
    };
    let run_all =
        |count: usize, each: &(dyn Fn(usize) + Sync)| cx.runtime.pool.run_costed(count, step.ns, each);
    Ok(frame.row_blocks(&step.rows, &cx.runtime.allocator, run_all, &work)?)
}

fn kernel(k: &Kernel, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
    match k {
        Kernel::Region(code) => region::run(device.pool, code, r, w),
        Kernel::Op(op) => op.operation().run(device, r, w),
        other => unreachable!("{other:?} does not work on rows"),
    }
}
