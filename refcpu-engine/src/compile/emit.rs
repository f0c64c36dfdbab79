//! From a graph to steps over buffers. Buffers get their places in the arena afterwards.
//!
//! Buffers are shared on the way: a value takes the buffer of an operand that dies with it where the kernel works in
//! place, loops update their carried values in place, and results are computed where they are wanted.

use super::assign::assign;
use super::control::Ends;
use super::error::{CompileError, Result};
use super::fuse::STORED_SPLAT;
use super::units::{Unit, UnitKind, units};
use crate::graph::{Constant, Graph, ValueId};
use crate::plan::{Call, Donation, Home, Kernel, Program, ResultSource, Step};
use crate::storage::View;
use pjrt_stablehlo::ir::Location;
use std::collections::HashMap;

/// A piece of memory while its place is not known yet.
pub(super) struct Buffer {
    pub(super) bytes: usize,
    /// None: somewhere in the arena.
    pub(super) home: Option<Home>,
    /// Uses to come of the values that lie here now.
    pub(super) pending: usize,
}

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) buffer: u32,
    pub(super) offset: usize,
}

/// Emits steps. Views name buffers instead of slots until the end.
pub(super) struct Emitter {
    pub(super) buffers: Vec<Buffer>,
    pub(super) steps: Vec<Step>,
    pub(super) locations: Vec<Location>,
    pub(super) location: Location,
    /// Steps of each loop, as (first, one past the last).
    pub(super) loops: Vec<(usize, usize)>,
    /// Buffers whose memory is exchanged at times.
    pub(super) pairs: Vec<(u32, u32)>,
    constants: Vec<Constant>,
    constant_buffers: HashMap<Constant, u32>,
    /// For each result, the parameter whose memory it may take; withdrawn if that turns out not to work.
    donors: Vec<Option<u32>>,
    parameter_buffers: Vec<u32>,
    /// Whether operations may be computed where their results are used.
    pub(super) fuse: bool,
    pub(super) depth: usize,
}

/// A graph while it is emitted.
pub(super) struct Context<'g> {
    pub(super) graph: &'g Graph,
    pub(super) places: Vec<Option<Place>>,
    /// The buffer that each value should lie in, if possible.
    pub(super) hints: Vec<Option<u32>>,
    /// Uses of each value by units, being a result counted once per result.
    pub(super) uses: Vec<usize>,
}

/// Emits the program of a graph.
///
/// # Errors
/// If kernels lack something that the graph needs.
pub(super) fn emit(graph: &Graph, donations: &[Donation], fuse: bool) -> Result<Program> {
    emit_nested(graph, donations, fuse, 0)
}

pub(super) fn emit_nested(
    graph: &Graph,
    donations: &[Donation],
    fuse: bool,
    depth: usize,
) -> Result<Program> {
    let mut e = Emitter {
        buffers: Vec::new(),
        steps: Vec::new(),
        locations: Vec::new(),
        location: Location::default(),
        loops: Vec::new(),
        pairs: Vec::new(),
        constants: Vec::new(),
        constant_buffers: HashMap::new(),
        donors: donors(graph, donations),
        parameter_buffers: Vec::new(),
        fuse,
        depth,
    };
    let mut arguments = Vec::new();
    for (i, p) in graph.parameters().iter().enumerate() {
        let buffer = e.buffer(graph.shape(*p).bytes(), Some(Home::Parameter(i as u32)));
        e.parameter_buffers.push(buffer);
        arguments.push(Place { buffer, offset: 0 });
    }
    // Each distinct value that is a result gets a buffer of its own; the place of others is decided at the end.
    let mut result_buffers: Vec<Option<u32>> = Vec::new();
    for (k, r) in graph.results().iter().enumerate() {
        let new = graph.node_of(*r).is_some() && !graph.results()[..k].contains(r) && !is_stored(graph, *r);
        result_buffers.push(new.then(|| e.buffer(graph.shape(*r).bytes(), Some(Home::Result(k as u32)))));
    }
    let places = e.graph(graph, &arguments, &result_buffers)?;
    debug_assert!(e.is_balanced(&places), "other uses of a buffer were announced than came");
    let mut results = Vec::new();
    for (k, (r, place)) in graph.results().iter().zip(&places).enumerate() {
        let bytes = graph.shape(*r).bytes();
        let home = e.buffers[place.buffer as usize].home;
        let whole = place.offset == 0 && e.buffers[place.buffer as usize].bytes == bytes;
        let source = match (home, result_buffers[k]) {
            (Some(Home::Parameter(i)), _) if whole => ResultSource::Parameter(i),
            (Some(Home::Constant(i)), _) if whole => ResultSource::Constant(i),
            (_, None) if graph.results()[..k].contains(r) => {
                let first = graph.results().iter().position(|v| v == r).expect("it is there");
                ResultSource::Same(first as u32)
            }
            (_, Some(buffer)) => {
                if place.buffer != buffer {
                    // The memory of a donor may be what is copied from.
                    e.donors[k] = None;
                    e.copy(*place, buffer, bytes);
                }
                ResultSource::Computed { slot: buffer }
            }
            (_, None) => return Err(CompileError::internal("a result without a place")),
        };
        results.push(source);
    }
    let donors = e.donors.iter().map(|d| d.map(|d| d as usize)).collect();
    let (slots, arena) = assign(&e);
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

/// For each result, the parameter whose memory it may take.
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

/// True if the value is a constant that is kept as an array.
fn is_stored(graph: &Graph, v: ValueId) -> bool {
    graph.constant(v).is_some_and(|c| !c.splat || c.shape.bytes() <= STORED_SPLAT)
}

impl Emitter {
    pub(super) fn buffer(&mut self, bytes: usize, home: Option<Home>) -> u32 {
        self.buffers.push(Buffer { bytes, home, pending: 0 });
        (self.buffers.len() - 1) as u32
    }

    pub(super) fn step(&mut self, step: Step) -> usize {
        self.steps.push(step);
        self.locations.push(self.location.clone());
        self.steps.len() - 1
    }

    pub(super) fn call(&mut self, kernel: Kernel, reads: Vec<View>, writes: Vec<View>) {
        self.step(Step::Run(Box::new(Call { kernel, reads, writes })));
    }

    /// Copies so many bytes to the start of a buffer.
    pub(super) fn copy(&mut self, from: Place, to: u32, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let view = |slot, offset| View::new(slot, offset, refcpu_kernels::DType::U8, &[bytes]);
        self.call(Kernel::Copy, vec![view(from.buffer, from.offset)], vec![view(to, 0)]);
    }

    /// Emits a graph whose parameters lie at `arguments`; tries to have its results in `wanted` buffers. Gives where
    /// they are. Each result still counts as one pending use of its buffer.
    pub(super) fn graph(
        &mut self,
        graph: &Graph,
        arguments: &[Place],
        wanted: &[Option<u32>],
    ) -> Result<Vec<Place>> {
        let (units, uses) = units(graph, self.fuse)?;
        let mut cx = Context {
            graph,
            places: vec![None; graph.num_values()],
            hints: vec![None; graph.num_values()],
            uses,
        };
        for (p, place) in graph.parameters().iter().zip(arguments) {
            cx.places[p.index()] = Some(*place);
            self.buffers[place.buffer as usize].pending += cx.uses[p.index()];
        }
        for (r, buffer) in graph.results().iter().zip(wanted) {
            let fits = buffer.is_some_and(|b| self.buffers[b as usize].bytes == graph.shape(*r).bytes());
            if fits && graph.node_of(*r).is_some() && cx.hints[r.index()].is_none() {
                cx.hints[r.index()] = *buffer;
            }
        }
        self.spread_hints(&mut cx, &units);
        for unit in units {
            self.unit(&mut cx, unit)?;
        }
        graph.results().iter().map(|r| self.place_of(&mut cx, *r)).collect()
    }

    /// Passes hints on to operands whose buffer the wanting value could take over.
    fn spread_hints(&self, cx: &mut Context<'_>, units: &[Unit]) {
        for unit in units.iter().rev() {
            let node = &cx.graph.nodes()[unit.node];
            for (k, r) in node.results().enumerate() {
                let Some(hint) = cx.hints[r.index()] else { continue };
                let bytes = cx.graph.shape(r).bytes();
                let heir = |v: &ValueId| {
                    cx.uses[v.index()] == 1
                        && cx.hints[v.index()].is_none()
                        && cx.graph.node_of(*v).is_some()
                        && cx.graph.shape(*v).bytes() == bytes
                };
                let operand = match &unit.kind {
                    UnitKind::Alias => Some(node.operands[k]),
                    UnitKind::Call(kernel) => unit
                        .reads
                        .iter()
                        .enumerate()
                        .find(|(i, v)| kernel.may_alias(*i, k) && heir(v))
                        .map(|(_, v)| *v),
                    UnitKind::While => Some(node.operands[k]),
                    _ => None,
                };
                if let Some(v) = operand.filter(heir) {
                    cx.hints[v.index()] = Some(hint);
                }
            }
        }
    }

    /// Where a value lies; puts constants somewhere when they are first asked for.
    pub(super) fn place_of(&mut self, cx: &mut Context<'_>, v: ValueId) -> Result<Place> {
        if let Some(place) = cx.places[v.index()] {
            return Ok(place);
        }
        let Some(constant) = cx.graph.constant(v) else {
            return Err(CompileError::internal("a value is used before it is computed"));
        };
        let bytes = constant.shape.bytes();
        let buffer = if constant.splat && bytes > STORED_SPLAT {
            let wanted = cx.hints[v.index()].filter(|b| self.claim(*b, &[], &|_| false));
            let buffer = wanted.unwrap_or_else(|| self.buffer(bytes, None));
            self.fill(constant, buffer);
            buffer
        } else {
            self.constant(constant)
        };
        self.buffers[buffer as usize].pending += cx.uses[v.index()];
        let place = Place { buffer, offset: 0 };
        cx.places[v.index()] = Some(place);
        Ok(place)
    }

    /// The buffer of a constant that is kept as an array.
    pub(super) fn constant(&mut self, constant: &Constant) -> u32 {
        if let Some(buffer) = self.constant_buffers.get(constant) {
            return *buffer;
        }
        let buffer = self.buffer(constant.shape.bytes(), Some(Home::Constant(self.constants.len() as u32)));
        self.constants.push(constant.clone());
        self.constant_buffers.insert(constant.clone(), buffer);
        buffer
    }

    /// Fills a buffer with a splat constant.
    pub(super) fn fill(&mut self, constant: &Constant, buffer: u32) {
        let element = self.constant(&constant.with_dims(&[]));
        let dtype = constant.shape.dtype;
        let read = View::new(element, 0, dtype, &[]);
        self.call(Kernel::Fill, vec![read], vec![View::new(buffer, 0, dtype, &constant.shape.dims)]);
    }

    pub(super) fn view(&mut self, cx: &mut Context<'_>, v: ValueId) -> Result<View> {
        let place = self.place_of(cx, v)?;
        let shape = cx.graph.shape(v);
        Ok(View::new(place.buffer, place.offset, shape.dtype, &shape.dims))
    }

    /// True if a unit that reads `reads` may write to a buffer: all that lies there is read for the last time, by this
    /// unit, in a way that allows it (`in_place`, by position among the reads).
    pub(super) fn is_free(
        &self,
        buffer: u32,
        reads: &[Option<Place>],
        in_place: &dyn Fn(usize) -> bool,
    ) -> bool {
        let b = &self.buffers[buffer as usize];
        let mut here = 0;
        for (i, place) in reads.iter().enumerate() {
            if place.is_some_and(|p| p.buffer == buffer) {
                if !in_place(i) || place.is_some_and(|p| p.offset != 0) {
                    return false;
                }
                here += 1;
            }
        }
        b.pending == here
    }

    /// Like [`Self::is_free`], and withdraws a donation that stands in the way: the memory of a result may be that of a
    /// parameter, which then must be free too.
    pub(super) fn claim(
        &mut self,
        buffer: u32,
        reads: &[Option<Place>],
        in_place: &dyn Fn(usize) -> bool,
    ) -> bool {
        match self.buffers[buffer as usize].home {
            Some(Home::Parameter(_) | Home::Constant(_)) => return false,
            Some(Home::Result(_)) | None => {}
            Some(Home::Arena(_)) => {}
        }
        if !self.is_free(buffer, reads, in_place) {
            return false;
        }
        if let Some(Home::Result(k)) = self.buffers[buffer as usize].home
            && let Some(p) = self.donors[k as usize]
            && !self.is_free(self.parameter_buffers[p as usize], reads, in_place)
        {
            self.donors[k as usize] = None;
        }
        true
    }

    /// One fewer use of a value to come.
    pub(super) fn consume(&mut self, place: Place) {
        let b = &mut self.buffers[place.buffer as usize];
        debug_assert!(b.pending > 0, "buffer {} is used more often than announced", place.buffer);
        b.pending = b.pending.saturating_sub(1);
    }

    /// True if, with the results read, no use of any buffer is still to come: one too few, and memory was given away early.
    /// Nobody writes to constants, whose uses by a loop that only starts with them may be announced and not come.
    fn is_balanced(&self, results: &[Place]) -> bool {
        let mut pending: Vec<usize> = self.buffers.iter().map(|buffer| buffer.pending).collect();
        for place in results {
            let left = &mut pending[place.buffer as usize];
            *left = left.wrapping_sub(1);
        }
        let is_constant = |buffer: &Buffer| matches!(buffer.home, Some(Home::Constant(_)));
        self.buffers.iter().zip(pending).all(|(buffer, left)| left == 0 || is_constant(buffer))
    }

    /// Puts a computed value at its place.
    pub(super) fn settle(&mut self, cx: &mut Context<'_>, v: ValueId, place: Place) {
        self.buffers[place.buffer as usize].pending += cx.uses[v.index()];
        cx.places[v.index()] = Some(place);
    }

    fn unit(&mut self, cx: &mut Context<'_>, unit: Unit) -> Result<()> {
        let graph = cx.graph;
        let node = &graph.nodes()[unit.node];
        self.location = node.location.clone();
        let located = |mut e: CompileError| {
            if e.location.is_empty() {
                e.location = node.location.brief().to_string();
            }
            e
        };
        match unit.kind {
            UnitKind::Alias => {
                for (r, v) in node.results().zip(&node.operands) {
                    let place = self.place_of(cx, *v)?;
                    self.settle(cx, r, place);
                }
                for v in &unit.reads {
                    let place = self.place_of(cx, *v)?;
                    self.consume(place);
                }
                Ok(())
            }
            UnitKind::Part { offset } => {
                let place = self.place_of(cx, node.operands[0])?;
                self.settle(cx, node.first_result, Place { offset: place.offset + offset, ..place });
                self.consume(place);
                Ok(())
            }
            UnitKind::Call(kernel) => self.kernel_unit(cx, unit.node, kernel, &unit.reads),
            UnitKind::While => self.while_unit(cx, unit.node, &unit.reads).map_err(located),
            UnitKind::Case => self.case_unit(cx, unit.node, &unit.reads).map_err(located),
            UnitKind::Collective => self.collective_unit(cx, unit.node),
            UnitKind::Host => self.host_unit(cx, unit.node, &unit.reads),
            UnitKind::Manual => self.manual_unit(cx, unit.node, &unit.reads).map_err(located),
        }
    }

    fn kernel_unit(
        &mut self,
        cx: &mut Context<'_>,
        n: usize,
        kernel: Kernel,
        reads: &[ValueId],
    ) -> Result<()> {
        let graph = cx.graph;
        let node = &graph.nodes()[n];
        let views = reads.iter().map(|v| self.view(cx, *v)).collect::<Result<Vec<_>>>()?;
        // A value that is read several times counts once.
        let places: Vec<Option<Place>> = (0..reads.len())
            .map(|i| {
                (!reads[..i].contains(&reads[i]))
                    .then(|| Place { buffer: views[i].slot, offset: views[i].offset })
            })
            .collect();
        let mut writes = Vec::new();
        let mut taken: Vec<u32> = Vec::new();
        for (k, r) in node.results().enumerate() {
            let shape = graph.shape(r);
            // All reads of the same value must allow it.
            let in_place =
                |i: usize| (0..reads.len()).all(|j| reads[j] != reads[i] || kernel.may_alias(j, k));
            let mut candidates: Vec<u32> = cx.hints[r.index()].into_iter().collect();
            candidates.extend((0..reads.len()).filter(|i| in_place(*i)).map(|i| views[i].slot));
            let fits = |e: &mut Self, b: u32| {
                e.buffers[b as usize].bytes == shape.bytes()
                    && !taken.contains(&b)
                    && e.claim(b, &places, &in_place)
            };
            let found = candidates.into_iter().find(|b| fits(self, *b));
            let buffer = found.unwrap_or_else(|| self.buffer(shape.bytes(), None));
            taken.push(buffer);
            writes.push(View::new(buffer, 0, shape.dtype, &shape.dims));
        }
        let needed = node.op.has_effect() || writes.iter().any(|w| w.byte_len() > 0);
        if needed {
            self.call(kernel, views, writes.clone());
        }
        for place in places.into_iter().flatten() {
            self.consume(place);
        }
        for (r, w) in node.results().zip(&writes) {
            self.settle(cx, r, Place { buffer: w.slot, offset: 0 });
        }
        Ok(())
    }

    /// Moves values to the buffers where they are wanted, all at once.
    pub(super) fn move_all(&mut self, ends: &[Ends]) {
        let mut moves: Vec<Ends> =
            ends.iter().filter(|m| m.from != Place { buffer: m.to, offset: 0 }).cloned().collect();
        let targets: Vec<u32> = moves.iter().map(|m| m.to).collect();
        for m in &mut moves {
            if targets.contains(&m.from.buffer) {
                let saved = self.buffer(m.bytes, None);
                self.copy(m.from, saved, m.bytes);
                m.from = Place { buffer: saved, offset: 0 };
            }
        }
        for m in &moves {
            self.copy(m.from, m.to, m.bytes);
        }
    }
}
