//! Emits steps over buffers, which have no offsets in the arena yet.

use super::select::{Instruction, InstructionKind, select};
use crate::compile::api::{CompileError, Result};
use crate::compile::optimise::STORED_SPLAT;
use crate::graph::{Constant, Graph, ValueId};
use crate::plan::{Call, Home, Kernel, Step};
use crate::storage::View;
use pjrt_stablehlo::ir::Location;
use std::collections::HashMap;

/// A range of memory that has no offset in the arena yet.
pub(super) struct Buffer {
    pub(super) bytes: usize,
    /// The memory of a parameter, constant or result; `None` for the arena.
    pub(super) home: Option<Home>,
    /// The number of future uses of the values in this buffer.
    pub(super) pending: usize,
}

/// The address of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) buffer: u32,
    pub(super) offset: usize,
}

/// The address of a value, and the buffer that it must be moved to.
#[derive(Clone)]
pub(super) struct Ends {
    pub(super) from: Address,
    pub(super) to: u32,
    pub(super) bytes: usize,
}

/// The state of emitting steps. Until the end, views refer to buffers instead of slots.
#[derive(Default)]
pub(super) struct Emitter {
    pub(super) buffers: Vec<Buffer>,
    pub(super) steps: Vec<Step>,
    pub(super) locations: Vec<Location>,
    pub(super) location: Location,
    /// The steps of each loop, as pairs of the first step and the step after the last.
    pub(super) loops: Vec<(usize, usize)>,
    /// Pairs of buffers that exchange their memory.
    pub(super) pairs: Vec<(u32, u32)>,
    pub(super) constants: Vec<Constant>,
    pub(super) constant_buffers: HashMap<Constant, u32>,
    /// For each result, the parameter whose memory it may use. A donation is withdrawn if that is impossible.
    pub(super) donors: Vec<Option<u32>>,
    pub(super) parameter_buffers: Vec<u32>,
    /// `true` if fusion is enabled.
    pub(super) fuse: bool,
    pub(super) depth: usize,
}

/// The state of emitting one graph.
pub(super) struct Context<'g> {
    pub(super) graph: &'g Graph,
    pub(super) places: Vec<Option<Address>>,
    /// For each value, the buffer that it should be in if possible.
    pub(super) hints: Vec<Option<u32>>,
    /// For each value, the number of instructions that use it, plus one for each result that it is.
    pub(super) uses: Vec<usize>,
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

    /// Copies this number of bytes to the start of a buffer.
    pub(super) fn copy(&mut self, from: Address, to: u32, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let view = |slot, offset| View::new(slot, offset, refcpu_kernels::DType::U8, &[bytes]);
        self.call(Kernel::Copy, vec![view(from.buffer, from.offset)], vec![view(to, 0)]);
    }

    /// Emits a graph whose parameters are at `arguments`. Places its results in the `wanted` buffers where possible, and
    /// returns their addresses. Each result counts as one pending use of its buffer.
    pub(super) fn graph(
        &mut self,
        graph: &Graph,
        arguments: &[Address],
        wanted: &[Option<u32>],
    ) -> Result<Vec<Address>> {
        let (instructions, uses) = select(graph, self.fuse)?;
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
        self.spread_hints(&mut cx, &instructions);
        for instruction in instructions {
            self.instruction(&mut cx, instruction)?;
        }
        graph.results().iter().map(|r| self.place_of(&mut cx, *r)).collect()
    }

    /// Propagates hints to operands whose buffers a hinted result could take over.
    fn spread_hints(&self, cx: &mut Context<'_>, instructions: &[Instruction]) {
        for instruction in instructions.iter().rev() {
            let node = &cx.graph.nodes()[instruction.node];
            for (k, r) in node.results().enumerate() {
                let Some(hint) = cx.hints[r.index()] else { continue };
                let bytes = cx.graph.shape(r).bytes();
                let heir = |v: &ValueId| {
                    cx.uses[v.index()] == 1
                        && cx.hints[v.index()].is_none()
                        && cx.graph.node_of(*v).is_some()
                        && cx.graph.shape(*v).bytes() == bytes
                };
                // All reads of the value must allow that the result has its memory.
                let in_place = |kernel: &Kernel, v: &ValueId| {
                    let mut reads = instruction.reads.iter().enumerate().filter(|(_, read)| *read == v);
                    reads.all(|(i, _)| kernel.may_alias(i, k))
                };
                let operand = match &instruction.kind {
                    InstructionKind::Alias => Some(node.operands[k]),
                    InstructionKind::Call(kernel) => {
                        instruction.reads.iter().find(|v| in_place(kernel, v) && heir(v)).copied()
                    }
                    InstructionKind::While => Some(node.operands[k]),
                    _ => None,
                };
                if let Some(v) = operand.filter(heir) {
                    cx.hints[v.index()] = Some(hint);
                }
            }
        }
    }

    /// Returns the address of a value. Stores a constant on its first use.
    pub(super) fn place_of(&mut self, cx: &mut Context<'_>, v: ValueId) -> Result<Address> {
        if let Some(place) = cx.places[v.index()] {
            return Ok(place);
        }
        let Some(constant) = cx.graph.constant(v) else {
            return Err(CompileError::internal("a value is used before its definition"));
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
        let place = Address { buffer, offset: 0 };
        cx.places[v.index()] = Some(place);
        Ok(place)
    }

    /// Returns the buffer of a constant that is stored as an array.
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

    /// Returns whether an instruction that reads `reads` may write to a buffer. All pending uses of the buffer must be reads of
    /// this instruction, and `in_place` must allow each of them by its index.
    pub(super) fn is_free(
        &self,
        buffer: u32,
        reads: &[Option<Address>],
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

    /// Does the same, and withdraws a donation that conflicts: the memory of a result may be that of a parameter, which must
    /// then also be free.
    pub(super) fn claim(
        &mut self,
        buffer: u32,
        reads: &[Option<Address>],
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

    /// Records one use of a value, which decrements its pending uses.
    pub(super) fn consume(&mut self, place: Address) {
        let b = &mut self.buffers[place.buffer as usize];
        debug_assert!(b.pending > 0, "buffer {} has more uses than were counted", place.buffer);
        b.pending = b.pending.saturating_sub(1);
    }

    /// Returns whether no uses are pending after the results were read. Too few counted uses would mean that memory was reused
    /// too early. Constants are excluded: they are never written, and a loop that only starts with one counts uses that do not
    /// occur.
    pub(super) fn is_balanced(&self, results: &[Address]) -> bool {
        let mut pending: Vec<usize> = self.buffers.iter().map(|buffer| buffer.pending).collect();
        for place in results {
            let left = &mut pending[place.buffer as usize];
            *left = left.wrapping_sub(1);
        }
        let is_constant = |buffer: &Buffer| matches!(buffer.home, Some(Home::Constant(_)));
        self.buffers.iter().zip(pending).all(|(buffer, left)| left == 0 || is_constant(buffer))
    }

    /// Records the address of a computed value.
    pub(super) fn settle(&mut self, cx: &mut Context<'_>, v: ValueId, place: Address) {
        self.buffers[place.buffer as usize].pending += cx.uses[v.index()];
        cx.places[v.index()] = Some(place);
    }

    fn instruction(&mut self, cx: &mut Context<'_>, instruction: Instruction) -> Result<()> {
        let graph = cx.graph;
        let node = &graph.nodes()[instruction.node];
        self.location = node.location.clone();
        let located = |mut e: CompileError| {
            if e.location.is_empty() {
                e.location = node.location.brief().to_string();
            }
            e
        };
        match instruction.kind {
            InstructionKind::Alias => {
                for (r, v) in node.results().zip(&node.operands) {
                    let place = self.place_of(cx, *v)?;
                    self.settle(cx, r, place);
                }
                for v in &instruction.reads {
                    let place = self.place_of(cx, *v)?;
                    self.consume(place);
                }
                Ok(())
            }
            InstructionKind::Part { offset } => {
                let place = self.place_of(cx, node.operands[0])?;
                self.settle(cx, node.first_result, Address { offset: place.offset + offset, ..place });
                self.consume(place);
                Ok(())
            }
            InstructionKind::Call(kernel) => self.kernel(cx, instruction.node, kernel, &instruction.reads),
            InstructionKind::While => {
                self.while_loop(cx, instruction.node, &instruction.reads).map_err(located)
            }
            InstructionKind::Case => self.case(cx, instruction.node, &instruction.reads).map_err(located),
            InstructionKind::Collective => self.collective(cx, instruction.node),
            InstructionKind::Host => self.host_transfer(cx, instruction.node, &instruction.reads),
            InstructionKind::Manual => self.manual(cx, instruction.node, &instruction.reads).map_err(located),
        }
    }

    fn kernel(&mut self, cx: &mut Context<'_>, n: usize, kernel: Kernel, reads: &[ValueId]) -> Result<()> {
        let graph = cx.graph;
        let node = &graph.nodes()[n];
        let views = reads.iter().map(|v| self.view(cx, *v)).collect::<Result<Vec<_>>>()?;
        // Several reads of one value count as one use.
        let places: Vec<Option<Address>> = (0..reads.len())
            .map(|i| {
                (!reads[..i].contains(&reads[i]))
                    .then(|| Address { buffer: views[i].slot, offset: views[i].offset })
            })
            .collect();
        let mut writes = Vec::new();
        let mut taken: Vec<u32> = Vec::new();
        for (k, r) in node.results().enumerate() {
            let shape = graph.shape(r);
            // All reads of the value must allow it.
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
            self.settle(cx, r, Address { buffer: w.slot, offset: 0 });
        }
        Ok(())
    }

    /// Moves values to their buffers as if all were moved at the same time.
    pub(super) fn move_all(&mut self, ends: &[Ends]) {
        let mut moves: Vec<Ends> =
            ends.iter().filter(|m| m.from != Address { buffer: m.to, offset: 0 }).cloned().collect();
        let targets: Vec<u32> = moves.iter().map(|m| m.to).collect();
        for m in &mut moves {
            if targets.contains(&m.from.buffer) {
                let saved = self.buffer(m.bytes, None);
                self.copy(m.from, saved, m.bytes);
                m.from = Address { buffer: saved, offset: 0 };
            }
        }
        for m in &moves {
            self.copy(m.from, m.to, m.bytes);
        }
    }
}
