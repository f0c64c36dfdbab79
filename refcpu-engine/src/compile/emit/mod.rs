//! Emits the steps of a graph over buffers, and assigns the buffers to offsets in the arena.
//!
//! Buffers are shared during emission: a value takes over the buffer of an operand that is last used there if the kernel works
//! in place, loops update their carried values in place, and results are computed in their final buffers.

mod assign;
mod control;
mod emitter;
mod formula;
mod in_place;
mod row_blocks;
mod row_op;
mod select;
mod small_loop;
mod windows;

use super::api::{CompileError, Result};
use super::optimise::STORED_SPLAT;
use crate::graph::{Graph, ValueId};
use crate::plan::{Donation, Home, Program, ResultSource};
use assign::assign;
use emitter::{Address, Emitter};

/// Emits the program of a graph.
///
/// # Errors
/// Returns an error if the graph contains an operation that no kernel supports.
pub(super) fn emit(graph: &Graph, donations: &[Donation], fuse: bool) -> Result<Program> {
    emit_nested(graph, donations, fuse, 0)
}

fn emit_nested(graph: &Graph, donations: &[Donation], fuse: bool, depth: usize) -> Result<Program> {
    let mut e = Emitter { donors: donors(graph, donations), fuse, depth, ..Emitter::default() };
    let mut arguments = Vec::new();
    for (i, p) in graph.parameters().iter().enumerate() {
        let buffer = e.buffer(graph.shape(*p).bytes(), Some(Home::Parameter(i as u32)));
        e.parameter_buffers.push(buffer);
        arguments.push(Address { buffer, offset: 0 });
    }
    // Each distinct value that is a result has its own buffer. The source of the other results is determined at the end.
    let mut result_buffers: Vec<Option<u32>> = Vec::new();
    for (k, r) in graph.results().iter().enumerate() {
        let new = graph.node_of(*r).is_some() && !graph.results()[..k].contains(r) && !is_stored(graph, *r);
        result_buffers.push(new.then(|| e.buffer(graph.shape(*r).bytes(), Some(Home::Result(k as u32)))));
    }
    let places = e.graph(graph, &arguments, &result_buffers)?;
    debug_assert!(e.is_balanced(&places), "the counted uses of a buffer differ from the actual ones");
    let results = result_sources(&mut e, graph, &places, &result_buffers)?;
    if fuse {
        row_blocks::row_blocks(&mut e);
    }
    let donors = e.donors.iter().map(|d| d.map(|d| d as usize)).collect();
    let (slots, arena) = assign(&e.steps, &e.buffers, &e.loops, &e.pairs);
    let program = Program {
        slots,
        steps: e.steps,
        locations: e.locations,
        arena,
        constants: e.constants,
        parameters: graph.parameters().iter().map(|p| graph.shape(*p).clone()).collect(),
        results,
        result_shapes: graph.results().iter().map(|r| graph.shape(*r).clone()).collect(),
        donors,
        ..Program::default()
    };
    debug_assert_eq!(program.check(), Ok(()), "{program}");
    Ok(program)
}

/// Returns the sources of the results, whose values are at `places`. A result with its own buffer is copied to it unless it
/// is already there.
fn result_sources(
    e: &mut Emitter,
    graph: &Graph,
    places: &[Address],
    buffers: &[Option<u32>],
) -> Result<Vec<ResultSource>> {
    let mut results = Vec::with_capacity(places.len());
    for (k, (r, place)) in graph.results().iter().zip(places).enumerate() {
        let bytes = graph.shape(*r).bytes();
        let home = e.buffers[place.buffer as usize].home;
        let whole = place.offset == 0 && e.buffers[place.buffer as usize].bytes == bytes;
        let first = graph.results()[..k].iter().position(|earlier| earlier == r);
        results.push(match (home, buffers[k], first) {
            (Some(Home::Parameter(i)), ..) if whole => ResultSource::Parameter(i),
            (Some(Home::Constant(i)), ..) if whole => ResultSource::Constant(i),
            (_, None, Some(first)) => ResultSource::Same(first as u32),
            (_, Some(buffer), _) => {
                if place.buffer != buffer {
                    // The copy may read the memory of the donor.
                    e.donors[k] = None;
                    e.copy(*place, buffer, bytes);
                }
                ResultSource::Computed { slot: buffer }
            }
            (_, None, None) => return Err(CompileError::internal("a result has no address")),
        });
    }
    Ok(results)
}

/// Returns, for each result, the parameter whose memory it may use.
fn donors(graph: &Graph, donations: &[Donation]) -> Vec<Option<u32>> {
    let mut donors = vec![None; graph.results().len()];
    let bytes = |v: ValueId| graph.shape(v).bytes();
    for (p, d) in donations.iter().enumerate() {
        if let Donation::Result(k) = d
            && graph.results().get(*k).is_some_and(|r| bytes(*r) == bytes(graph.parameters()[p]))
        {
            donors[*k] = Some(p as u32);
        }
    }
    for (p, d) in donations.iter().enumerate() {
        if *d == Donation::Any {
            let free = |k: &usize| {
                donors[*k].is_none() && graph.shape(graph.results()[*k]) == graph.shape(graph.parameters()[p])
            };
            if let Some(k) = (0..donors.len()).find(free) {
                donors[k] = Some(p as u32);
            }
        }
    }
    donors
}

/// Returns whether the value is a constant that is stored as an array.
fn is_stored(graph: &Graph, v: ValueId) -> bool {
    graph.constant(v).is_some_and(|c| !c.splat || c.shape.bytes() <= STORED_SPLAT)
}
