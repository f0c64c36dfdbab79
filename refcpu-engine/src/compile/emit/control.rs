//! Emits loops, branches, collectives, communication with the host and manual computations.

use super::emit_nested;
use super::emitter::{Address, Context, Emitter, Ends};
use super::select::combining_region;
use super::small_loop::{Compiled, small_loop};
use crate::compile::api::{CompileError, Result};
use crate::compile::optimise::STORED_SPLAT;
use crate::graph::{Graph, Node, Op, ValueId, ops};
use crate::plan::{CollectiveStep, Donation, Home, Kernel, ManualStep, REDUCTION_BLOCK, Step};
use crate::storage::View;
use refcpu_kernels::DType;

/// Carried values of more bytes than this exchange their buffers with the next values instead of being copied.
const SWAPPED: usize = 4096;

/// The maximum nesting depth of manual computations.
const MAX_MANUAL: usize = 16;

impl Emitter {
    pub(super) fn while_loop(&mut self, cx: &mut Context<'_>, n: usize, reads: &[ValueId]) -> Result<()> {
        let graph = cx.graph;
        let node = &graph.nodes()[n];
        let mut homes: Vec<u32> = Vec::new();
        for j in 0..node.results().len() {
            let home = self.carried_home(cx, node, j, &homes)?;
            homes.push(home);
        }
        match small_loop(graph, node) {
            Some(compiled) => self.small_loop(cx, n, &homes, compiled)?,
            None => self.loop_steps(cx, n, &homes)?,
        }
        for (j, r) in node.results().enumerate() {
            self.buffers[homes[j] as usize].pending = 0;
            self.settle(cx, r, Address { buffer: homes[j], offset: 0 });
        }
        // The loop's own reads end here. An initial value that gave up its buffer ended with the loop.
        for v in reads {
            // A constant without an address was written directly to its buffer.
            match cx.places[v.index()] {
                Some(place) if !homes.contains(&place.buffer) => self.consume(place),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns a buffer that holds the initial value of carried value `j` of a loop: the buffer of the initial value if nothing
    /// else uses it, otherwise a copy, if possible in the buffer of the loop's result. The carried values before it are in
    /// `others`.
    fn carried_home(&mut self, cx: &mut Context<'_>, node: &Node, j: usize, others: &[u32]) -> Result<u32> {
        let (graph, init, result) = (cx.graph, node.operands[j], node.result(j));
        let bytes = graph.shape(result).bytes();
        let once = node.operands.iter().filter(|v| **v == init).count() == 1;
        let filled = graph
            .constant(init)
            .filter(|c| c.splat && bytes > STORED_SPLAT && cx.places[init.index()].is_none());
        let hint = cx.hints[result.index()]
            .filter(|b| self.buffers[*b as usize].bytes == bytes && !others.contains(b));
        let here = if filled.is_some() { None } else { Some(self.place_of(cx, init)?) };
        if let Some(place) = here {
            let b = &self.buffers[place.buffer as usize];
            let ours = !matches!(b.home, Some(Home::Parameter(_) | Home::Constant(_)));
            let whole = b.bytes == bytes && place.offset == 0;
            if once && ours && whole && b.pending == 1 && !others.contains(&place.buffer) {
                return Ok(place.buffer);
            }
        }
        // Copying a donated parameter to the result that uses its memory costs nothing.
        let home = match hint.filter(|b| self.claim(*b, &[here], &|_| once)) {
            Some(b) => b,
            None => self.buffer(bytes, None),
        };
        match (filled, here) {
            (Some(constant), _) => self.fill(constant, home),
            (None, Some(place)) => self.copy(place, home, bytes),
            (None, None) => unreachable!("an initial value is a splat or has an address"),
        }
        // Reserves the buffer until the loop begins.
        self.buffers[home as usize].pending += 1;
        Ok(home)
    }

    /// Emits a loop as one step.
    fn small_loop(
        &mut self,
        cx: &mut Context<'_>,
        n: usize,
        homes: &[u32],
        compiled: Compiled,
    ) -> Result<()> {
        let graph = cx.graph;
        let node = &graph.nodes()[n];
        let reads =
            compiled.captured.iter().map(|k| self.view(cx, node.operands[*k])).collect::<Result<Vec<_>>>()?;
        let writes = homes
            .iter()
            .zip(node.results())
            .map(|(b, r)| View::new(*b, 0, graph.shape(r).dtype, &graph.shape(r).dims))
            .collect();
        self.call(Kernel::Loop(Box::new(compiled.code)), reads, writes);
        Ok(())
    }

    /// Emits a loop as its condition, its body and a jump back.
    fn loop_steps(&mut self, cx: &mut Context<'_>, n: usize, homes: &[u32]) -> Result<()> {
        let graph = cx.graph;
        let node = &graph.nodes()[n];
        let Op::While(ops::While { carried, condition, body }) = &node.op else {
            unreachable!("the node is a loop")
        };
        let carried = *carried;
        let captured: Vec<ValueId> = node.operands[carried..].to_vec();
        let mut arguments: Vec<Address> = homes.iter().map(|b| Address { buffer: *b, offset: 0 }).collect();
        for v in &captured {
            arguments.push(self.place_of(cx, *v)?);
        }
        // The values in `homes` belong to the loop from here on. The captured values have pending uses until its end.
        for b in homes {
            self.buffers[*b as usize].pending = 1;
        }
        let top = self.steps.len();
        let predicate = self.graph(condition, &arguments, &[None])?[0];
        self.consume(predicate);
        let exit = self.step(Step::JumpIfNot {
            predicate: View::new(predicate.buffer, predicate.offset, DType::Pred, &[]),
            to: 0,
        });
        for b in homes {
            self.buffers[*b as usize].pending = 0;
        }
        let first_inner = self.buffers.len() as u32;
        let wanted: Vec<Option<u32>> = homes.iter().map(|b| Some(*b)).collect();
        let ends = self.graph(body, &arguments, &wanted)?;
        let swapped = self.carry_over(node, graph, &ends, homes, first_inner);
        self.step(Step::Jump(top));
        let end = self.steps.len();
        let Step::JumpIfNot { to, .. } = &mut self.steps[exit] else {
            unreachable!("the step at `exit` is the jump out of the loop")
        };
        *to = end;
        self.loops.push((top, end));
        for (a, _) in &swapped {
            if self.buffers[*a as usize].home.is_some() {
                self.step(Step::Settle(*a));
            }
        }
        Ok(())
    }

    /// Moves the results of a loop's body, at `ends`, to the buffers of the carried values, `homes`. Values are copied, or large
    /// buffers of the body, which start at `first_inner`, are swapped. Returns the swapped pairs.
    fn carry_over(
        &mut self,
        node: &Node,
        graph: &Graph,
        ends: &[Address],
        homes: &[u32],
        first_inner: u32,
    ) -> Vec<(u32, u32)> {
        let mut moves = Vec::new();
        let mut swapped = Vec::new();
        for (j, from) in ends.iter().enumerate() {
            let (to, bytes) = (homes[j], graph.shape(node.result(j)).bytes());
            if *from == (Address { buffer: to, offset: 0 }) {
                continue;
            }
            let source = &self.buffers[from.buffer as usize];
            let own = from.buffer >= first_inner && source.home.is_none() && source.pending == 1;
            // No other result may be in the buffer of the old value.
            let free = ends.iter().all(|e| e.buffer != to);
            if own && free && from.offset == 0 && source.bytes == bytes && bytes > SWAPPED {
                swapped.push((to, from.buffer));
            } else {
                moves.push(Ends { from: *from, to, bytes });
            }
        }
        self.move_all(&moves);
        for (a, b) in &swapped {
            self.step(Step::Swap(*a, *b));
            self.pairs.push((*a, *b));
        }
        for place in ends {
            self.consume(*place);
        }
        swapped
    }

    pub(super) fn case(&mut self, cx: &mut Context<'_>, n: usize, reads: &[ValueId]) -> Result<()> {
        let graph = cx.graph;
        let node = &graph.nodes()[n];
        let Op::Case(ops::Case { branches }) = &node.op else { unreachable!("the node is a branch") };
        let index = self.view(cx, node.operands[0])?;
        let arguments =
            node.operands[1..].iter().map(|v| self.place_of(cx, *v)).collect::<Result<Vec<_>>>()?;
        // Branches may overwrite the values that are last used here.
        for v in reads {
            let place = self.place_of(cx, *v)?;
            self.consume(place);
        }
        let homes = self.branch_homes(cx, node, &arguments);
        let fork = self.step(Step::Branch { index, to: Vec::new() });
        let mut starts = Vec::new();
        let mut exits = Vec::new();
        for branch in branches {
            starts.push(self.steps.len());
            let wanted: Vec<Option<u32>> = homes.iter().map(|b| Some(*b)).collect();
            let ends = self.graph(branch, &arguments, &wanted)?;
            let moves: Vec<Ends> = ends
                .iter()
                .zip(&homes)
                .zip(node.results())
                .map(|((from, to), r)| Ends { from: *from, to: *to, bytes: graph.shape(r).bytes() })
                .collect();
            self.move_all(&moves);
            for place in &ends {
                self.consume(*place);
            }
            exits.push(self.step(Step::Jump(0)));
        }
        let end = self.steps.len();
        for exit in exits {
            self.steps[exit] = Step::Jump(end);
        }
        let Step::Branch { to, .. } = &mut self.steps[fork] else {
            unreachable!("the step at `fork` is the branch")
        };
        *to = starts;
        for (r, b) in node.results().zip(homes) {
            self.settle(cx, r, Address { buffer: b, offset: 0 });
        }
        Ok(())
    }

    /// Returns the buffers that branches write their results to: those where the results are wanted, if they are free.
    fn branch_homes(&mut self, cx: &Context<'_>, node: &Node, arguments: &[Address]) -> Vec<u32> {
        let mut homes: Vec<u32> = Vec::new();
        for r in node.results() {
            let bytes = cx.graph.shape(r).bytes();
            let hint = cx.hints[r.index()]
                .filter(|b| self.buffers[*b as usize].bytes == bytes && !homes.contains(b))
                .filter(|b| self.claim_for_branches(*b, arguments));
            homes.push(hint.unwrap_or_else(|| self.buffer(bytes, None)));
        }
        homes
    }

    /// Claims a buffer for the results of branches. The branches may read the arguments, so the buffer and the memory of its
    /// donor must be free.
    fn claim_for_branches(&mut self, buffer: u32, arguments: &[Address]) -> bool {
        let reads: Vec<Option<Address>> = arguments.iter().map(|p| Some(*p)).collect();
        if arguments.iter().any(|p| p.buffer == buffer) {
            return self.buffers[buffer as usize].pending == 0;
        }
        self.claim(buffer, &reads, &|_| false)
    }

    pub(super) fn collective(&mut self, cx: &mut Context<'_>, n: usize) -> Result<()> {
        let graph = cx.graph;
        let node = &graph.nodes()[n];
        let Op::Collective(collective) = &node.op else { unreachable!("the node is a collective") };
        let read = self.view(cx, node.operands[0])?;
        let shape = graph.shape(node.first_result);
        let hint = cx.hints[node.first_result.index()].filter(|b| self.claim(*b, &[], &|_| false));
        let buffer = hint.unwrap_or_else(|| self.buffer(shape.bytes(), None));
        let write = View::new(buffer, 0, shape.dtype, &shape.dims);
        let place = Address { buffer: read.slot, offset: read.offset };
        let combine = |dims: &[usize]| {
            collective.reducer().map(|reducer| combining_region(reducer, read.dtype, dims)).transpose()
        };
        let (combine, combine_block) = (combine(&read.dims)?, combine(&[REDUCTION_BLOCK])?);
        let step = CollectiveStep { collective: (**collective).clone(), combine, combine_block, read, write };
        self.step(Step::Collective(Box::new(step)));
        self.consume(place);
        self.settle(cx, node.first_result, Address { buffer, offset: 0 });
        Ok(())
    }

    pub(super) fn host_transfer(&mut self, cx: &mut Context<'_>, n: usize, reads: &[ValueId]) -> Result<()> {
        let graph = cx.graph;
        let node = &graph.nodes()[n];
        let (token_in, token_out) = match &node.op {
            Op::HostSend(ops::HostSend { channel }) => {
                let read = self.view(cx, node.operands[0])?;
                self.step(Step::Send { channel: *channel, read });
                (node.operands[1], node.result(0))
            }
            Op::HostReceive(ops::HostReceive { channel }) => {
                let value = node.result(0);
                let shape = graph.shape(value);
                let hint = cx.hints[value.index()].filter(|b| self.claim(*b, &[], &|_| false));
                let buffer = hint.unwrap_or_else(|| self.buffer(shape.bytes(), None));
                let write = View::new(buffer, 0, shape.dtype, &shape.dims);
                self.step(Step::Receive { channel: *channel, write });
                self.settle(cx, value, Address { buffer, offset: 0 });
                (node.operands[0], node.result(1))
            }
            _ => unreachable!("the node communicates with the host"),
        };
        // A token has no elements, so it can have any address.
        let token = self.place_of(cx, token_in)?;
        self.settle(cx, token_out, token);
        for v in reads {
            let place = self.place_of(cx, *v)?;
            self.consume(place);
        }
        Ok(())
    }

    pub(super) fn manual(&mut self, cx: &mut Context<'_>, n: usize, reads: &[ValueId]) -> Result<()> {
        let graph = cx.graph;
        let node = &graph.nodes()[n];
        let Op::Manual(ops::Manual { spec, body }) = &node.op else {
            unreachable!("the node is a manual computation")
        };
        if self.depth >= MAX_MANUAL {
            return Err(CompileError::unimplemented(format!(
                "manual computations are nested more than {MAX_MANUAL} levels deep"
            )));
        }
        let donations = vec![Donation::None; body.parameters().len()];
        let program = emit_nested(body, &donations, self.fuse, self.depth + 1)?;
        let views = node.operands.iter().map(|v| self.view(cx, *v)).collect::<Result<Vec<_>>>()?;
        let mut writes = Vec::new();
        for r in node.results() {
            let shape = graph.shape(r);
            let buffer = self.buffer(shape.bytes(), None);
            writes.push(View::new(buffer, 0, shape.dtype, &shape.dims));
        }
        let step = ManualStep { spec: (**spec).clone(), program, reads: views, writes: writes.clone() };
        self.step(Step::Manual(Box::new(step)));
        for v in reads {
            let place = self.place_of(cx, *v)?;
            self.consume(place);
        }
        for (r, w) in node.results().zip(&writes) {
            self.settle(cx, r, Address { buffer: w.slot, offset: 0 });
        }
        Ok(())
    }
}
