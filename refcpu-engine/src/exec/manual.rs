//! Runs manual computations: a program on parts of arrays.

use super::process::Process;
use super::{Cx, Input, Result, run_program};
use crate::graph::ManualSpec;
use crate::plan::ManualStep;
use crate::storage::{Array, Frame};
use refcpu_kernels::copy;
use refcpu_kernels::index::dynamic_update_slice;

/// Splits the operands, runs the program on one lane for each position along the manual axes, and joins the results.
pub(super) fn run(step: &ManualStep, frame: &mut Frame, process: Process, cx: &Cx<'_>) -> Result<()> {
    let spec = &step.spec;
    let positions = positions(spec, process.partition);
    let allocator = &cx.runtime.allocator;
    let mut inputs = Vec::with_capacity(positions.len());
    for position in &positions {
        let mut arguments = Vec::with_capacity(step.reads.len());
        for ((view, shape), cuts) in step.reads.iter().zip(&step.program.parameters).zip(&spec.inputs) {
            let starts = starts(spec, cuts, position, &shape.dims);
            let mut part = Array::allocate(allocator, shape.dtype, shape.dims.clone())?;
            frame.access(std::slice::from_ref(view), &[], false, |r, _| {
                let stride = vec![1; starts.len()];
                copy::slice(&cx.runtime.pool, r[0], part.dst().expect("one holder"), &starts, &stride);
            });
            arguments.push(Input { array: part, donatable: true });
        }
        inputs.push(arguments);
    }
    let of_lane = |lane: usize| Process { partition: device(spec, &positions[lane]), ..process };
    // The collectives of the parts are between the lanes of this run.
    let results = run_program(&step.program, inputs, &of_lane, &Cx { peers: None, places: None, ..*cx })?;
    for (k, (view, cuts)) in step.writes.iter().zip(&spec.outputs).enumerate() {
        for (position, results) in positions.iter().zip(&results) {
            let part = &results[k];
            let starts: Vec<i64> =
                starts(spec, cuts, position, part.dims()).into_iter().map(|s| s as i64).collect();
            frame.access(std::slice::from_ref(view), std::slice::from_ref(view), true, |r, w| {
                let update = part.src().expect("results are dense");
                dynamic_update_slice(&cx.runtime.pool, r[0], update, &starts, w[0].reborrow());
            });
        }
    }
    Ok(())
}

/// Returns the coordinates in the mesh of every position along the manual axes. Along the other axes, the coordinates are those
/// of `within`, the device that runs the computation.
fn positions(spec: &ManualSpec, within: usize) -> Vec<Vec<usize>> {
    let outer = coordinates(spec, within);
    let count: usize = spec.axes.iter().map(|a| spec.mesh[*a]).product();
    (0..count)
        .map(|mut i| {
            let mut at = outer.clone();
            // The last axis of the mesh is the minor one.
            let mut axes = spec.axes.clone();
            axes.sort_unstable();
            for a in axes.into_iter().rev() {
                at[a] = i % spec.mesh[a];
                i /= spec.mesh[a];
            }
            at
        })
        .collect()
}

/// Returns the coordinates of a device in the mesh.
fn coordinates(spec: &ManualSpec, device: usize) -> Vec<usize> {
    let mut flat = spec.device_ids.iter().position(|d| *d == device).unwrap_or(device);
    let mut at: Vec<usize> = Vec::with_capacity(spec.mesh.len());
    for size in spec.mesh.iter().rev().map(|size| (*size).max(1)) {
        at.push(flat % size);
        flat /= size;
    }
    at.reverse();
    at
}

/// Returns the device at a position in the mesh.
fn device(spec: &ManualSpec, position: &[usize]) -> usize {
    let flat = position.iter().zip(&spec.mesh).fold(0, |flat, (i, n)| flat * n + i);
    spec.device_ids.get(flat).copied().unwrap_or(flat)
}

/// Returns the index in the whole array at which the part of a position begins.
fn starts(spec: &ManualSpec, cuts: &[Vec<usize>], position: &[usize], part: &[usize]) -> Vec<usize> {
    (0..part.len())
        .map(|d| {
            let axes = cuts.get(d).map_or(&[][..], Vec::as_slice);
            axes.iter().fold(0, |i, a| i * spec.mesh[*a] + position[*a]) * part[d]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_within_another_stays_where_that_one_is() {
        let spec = ManualSpec {
            mesh: vec![2, 3],
            axes: vec![1],
            inputs: vec![],
            outputs: vec![],
            device_ids: vec![5, 4, 3, 2, 1, 0],
        };
        assert_eq!(positions(&spec, 5), [[0, 0], [0, 1], [0, 2]]);
        assert_eq!(positions(&spec, 1), [[1, 0], [1, 1], [1, 2]]);
        for id in 0..6 {
            assert_eq!(device(&spec, &coordinates(&spec, id)), id);
        }
    }
}
