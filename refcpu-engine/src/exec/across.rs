//! Collectives of programs whose lanes run on several nodes.
//!
//! The nodes exchange operands, or the parts of them that other nodes need, and each node computes the results of its own lanes.
//! A reduction combines the operands in the order of the group, wherever they are, so the results are those of one process, bit
//! by bit. In an all-reduce of a large array, each node reduces one part of the array, and sends it to the others.

use super::collective::{combined, joined, part, part_dims, read, reduced, write};
use super::groups::processes;
use super::lane::{Lane, Stop};
use super::nodes::{Bytes, Places, Transfer};
use super::{Cx, Result, RunError, RunErrorKind};
use crate::graph::{CollectiveKind, Groups};
use crate::plan::{CollectiveStep, Program, Step};
use crate::storage::Array;
use crate::trace;
use std::ops::Range;

/// The size in bytes from which on an all-reduce is divided among the nodes.
const LARGE: usize = 64 << 10;

/// The size in bytes of the pieces of an array that follow one another.
const PIPELINED: usize = 16 << 20;

/// Runs the lanes of this node to the end.
pub(super) fn drive(program: &Program, lanes: &mut [Lane], places: &Places<'_>, cx: &Cx<'_>) -> Result<()> {
    loop {
        let mut waiting = Vec::new();
        for (i, lane) in lanes.iter_mut().enumerate() {
            if lane.advance(program, cx)? == Stop::Collective {
                waiting.push(i);
            }
        }
        let Some(&first) = waiting.first() else { return Ok(()) };
        let at = lanes[first].pc;
        // Lanes that wait in different collectives could wait for nodes that wait for the lanes of this one.
        if waiting.len() < lanes.len() || waiting.iter().any(|i| lanes[*i].pc != at) {
            return Err(RunError::new(
                RunErrorKind::Unimplemented,
                format!(
                    "the devices of this process reach different collectives, one of them at {}: this is supported only if all \
                     devices belong to one process",
                    program.locations[at].brief()
                ),
            ));
        }
        let Some(Step::Collective(step)) = program.steps.get(at) else { return Ok(()) };
        let span = trace::step(program, at);
        Meeting { step, at: at as u64, places, cx }.run(lanes)?;
        drop(span);
        lanes.iter_mut().for_each(|lane| lane.pc += 1);
    }
}

/// A collective that the lanes of this node have reached.
struct Meeting<'a> {
    step: &'a CollectiveStep,
    at: u64,
    places: &'a Places<'a>,
    cx: &'a Cx<'a>,
}

/// Arrays by lane of the plan.
type ByLane<T> = Vec<Option<T>>;

impl Meeting<'_> {
    fn run(&self, lanes: &mut [Lane]) -> Result<()> {
        let count = self.places.processes.len();
        let mut operands: ByLane<Array> = vec![None; count];
        for (lane, place) in lanes.iter().zip(&self.places.own) {
            operands[*place] = Some(read(self.step, lane, self.cx)?);
        }
        let bytes = self.step.read.byte_len();
        let results = match &self.step.collective.kind {
            CollectiveKind::Permute { pairs } => self.permuted(pairs, &operands)?,
            CollectiveKind::AllReduce(_) if bytes >= LARGE => self.all_reduced(&operands)?,
            CollectiveKind::AllReduce(_) | CollectiveKind::AllGather { .. } | CollectiveKind::Broadcast => {
                self.of_whole_operands(operands)?
            }
            CollectiveKind::AllToAll { .. } | CollectiveKind::ReduceScatter { .. } => {
                self.of_parts(&operands)?
            }
        };
        for (lane, place) in lanes.iter_mut().zip(&self.places.own) {
            write(self.step, lane, results[*place].as_ref());
        }
        Ok(())
    }

    fn is_own(&self, lane: usize) -> bool {
        self.node(lane) == self.places.nodes.own
    }

    fn node(&self, lane: usize) -> usize {
        self.places.nodes.of_lane[lane]
    }

    /// Returns the groups that have lanes of this node, as lanes of the plan.
    fn groups(&self) -> Result<Vec<Vec<usize>>> {
        let mut found = Vec::new();
        for (list, group) in processes(&self.step.collective.groups, &self.places.processes) {
            let lane = |process| self.places.processes.iter().position(|known| known == process);
            let lanes: Option<Vec<usize>> = group.iter().map(lane).collect();
            let lanes = lanes.ok_or_else(|| {
                RunError::invalid(format!(
                    "the group {list:?} of {} contains a process that the program does not have",
                    self.step.collective.kind.name()
                ))
            })?;
            if lanes.iter().any(|lane| self.is_own(*lane)) {
                found.push(lanes);
            }
        }
        Ok(found)
    }

    /// Returns the nodes of a group, in ascending order.
    fn nodes(&self, group: &[usize]) -> Vec<usize> {
        let mut nodes: Vec<usize> = group.iter().map(|lane| self.node(*lane)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Returns the tag of an array that one lane sends to another lane, or to all lanes of a node. `phase` distinguishes the
    /// arrays that are sent between the same two in one collective.
    fn tag(&self, phase: u64, from: usize, to: usize) -> u64 {
        [phase, from as u64, to as u64].into_iter().fold(self.at, |tag, part| mix(tag ^ part))
    }

    fn transfer(&self, mut transfers: Vec<Transfer<'_>>) -> Result<()> {
        self.places.nodes.transport.transfer(&mut transfers)
    }

    fn send<'a>(&self, tag: u64, node: usize, array: &'a Array) -> Transfer<'a> {
        Transfer { node, tag, bytes: Bytes::Send(array.bytes().expect("dense")) }
    }

    fn allocate(&self, dims: &[usize]) -> Result<Array> {
        Ok(Array::allocate(&self.cx.runtime.allocator, self.step.read.dtype, dims.into())?)
    }

    /// Executes a collective whose results need whole operands. Each lane sends its operand to each node of its group.
    fn of_whole_operands(&self, operands: ByLane<Array>) -> Result<ByLane<Array>> {
        let kind = &self.step.collective.kind;
        let mut transfers = Vec::new();
        let mut received: ByLane<Array> = vec![None; operands.len()];
        let groups = self.groups()?;
        // All members of a group need the operands of these ones.
        let sources = |group: &[usize]| match kind {
            CollectiveKind::Broadcast => group[..1].to_vec(),
            _ => group.to_vec(),
        };
        for group in &groups {
            for lane in sources(group) {
                if !self.is_own(lane) {
                    received[lane] = Some(self.allocate(&self.step.read.dims)?);
                    continue;
                }
                let Some(operand) = &operands[lane] else { continue };
                for node in self.nodes(group).into_iter().filter(|node| *node != self.places.nodes.own) {
                    transfers.push(self.send(self.tag(0, lane, node), node, operand));
                }
            }
        }
        for (lane, array) in received.iter_mut().enumerate() {
            let Some(array) = array else { continue };
            let bytes = Bytes::Receive(array.bytes_mut().expect("a new array has one holder"));
            let tag = self.tag(0, lane, self.places.nodes.own);
            transfers.push(Transfer { node: self.node(lane), tag, bytes });
        }
        self.transfer(transfers)?;
        let of_lane = |lane: usize| operands[lane].as_ref().or(received[lane].as_ref());
        let mut results: ByLane<Array> = vec![None; operands.len()];
        for group in &groups {
            let members: Vec<&Array> = sources(group).into_iter().filter_map(of_lane).collect();
            let result = combined(self.step, kind, &members, 0, self.cx)?;
            for lane in group {
                results[*lane] = Some(result.clone());
            }
        }
        Ok(results)
    }

    /// Executes a collective in which each lane needs a part of each operand.
    fn of_parts(&self, operands: &[Option<Array>]) -> Result<ByLane<Array>> {
        let groups = self.groups()?;
        let dims = part_dims(self.step);
        // For each pair of lanes, the part that the first one passes to the second one.
        let mut outgoing = Vec::new();
        let mut incoming = Vec::new();
        for group in &groups {
            for &from in group {
                for (position, &to) in group.iter().enumerate() {
                    match (&operands[from], self.is_own(to)) {
                        (Some(operand), is_own) => {
                            let part = part(self.step, operand, position, self.cx)?;
                            if is_own { &mut incoming } else { &mut outgoing }.push((from, to, part));
                        }
                        (None, true) => incoming.push((from, to, self.allocate(&dims)?)),
                        (None, false) => {}
                    }
                }
            }
        }
        let mut transfers = Vec::new();
        for (from, to, part) in &outgoing {
            transfers.push(self.send(self.tag(0, *from, *to), self.node(*to), part));
        }
        for (from, to, part) in incoming.iter_mut().filter(|(from, ..)| !self.is_own(*from)) {
            let bytes = Bytes::Receive(part.bytes_mut().expect("a new array has one holder"));
            transfers.push(Transfer { node: self.node(*from), tag: self.tag(0, *from, *to), bytes });
        }
        self.transfer(transfers)?;
        let mut results: ByLane<Array> = vec![None; operands.len()];
        for &lane in &self.places.own {
            // They are in the order of the group.
            let parts: Vec<&Array> =
                incoming.iter().filter(|(_, to, _)| *to == lane).map(|(.., part)| part).collect();
            if !parts.is_empty() {
                results[lane] = Some(joined(self.step, &parts, self.cx)?);
            }
        }
        Ok(results)
    }

    /// Executes an all-reduce. Each node of a group reduces one part of the array, and sends it to the other nodes. The pieces of the
    /// parts follow one another: while one is reduced, the operands of the next one and the sums of the previous one are on the way.
    fn all_reduced(&self, operands: &[Option<Array>]) -> Result<ByLane<Array>> {
        let groups = self.groups()?;
        let mut all = Vec::with_capacity(groups.len());
        for group in &groups {
            all.push(Divided::new(self, group, operands)?);
        }
        let pieces = self.step.read.byte_len().div_ceil(PIPELINED);
        for step in 0..pieces + 2 {
            let arriving = if step < pieces {
                all.iter().map(|divided| divided.room(self, step, pieces)).collect::<Result<Vec<_>>>()?
            } else {
                Vec::new()
            };
            let arriving = self.advance(&mut all, arriving, (step, pieces))?;
            for (i, divided) in all.iter_mut().enumerate() {
                divided.members = arriving.get(i).cloned().unwrap_or_default();
            }
        }
        let mut results: ByLane<Array> = vec![None; operands.len()];
        for (group, divided) in groups.iter().zip(all) {
            for lane in group {
                results[*lane] = Some(divided.result.clone());
            }
        }
        Ok(results)
    }

    /// Does the steps of three pieces at the same time: receives the operands of one into `arriving`, reduces one, and exchanges the
    /// sums of one. Returns the operands.
    fn advance(
        &self,
        all: &mut [Divided<'_>],
        mut arriving: Vec<Vec<Array>>,
        (step, pieces): (usize, usize),
    ) -> Result<Vec<Vec<Array>>> {
        let mut sums = Vec::with_capacity(all.len());
        {
            let mut transfers = Vec::new();
            let mut reductions = Vec::with_capacity(all.len());
            for (divided, arriving) in all.iter_mut().zip(&mut arriving) {
                divided.exchange_operands(self, (step, pieces), arriving, &mut transfers);
            }
            for divided in all.iter_mut() {
                let Divided { parts, group, members, sum, result, .. } = divided;
                reductions.push(&*members);
                if let (Some(sum), Some(piece)) = (sum, step.checked_sub(2)) {
                    parts.exchange_sums(self, group[0], (piece, pieces), sum, result, &mut transfers);
                }
            }
            let transport = self.places.nodes.transport;
            let mut reduce = || {
                for members in reductions.iter().filter(|members| !members.is_empty()) {
                    sums.push(reduced(self.step, &members.iter().collect::<Vec<_>>(), self.cx)?);
                }
                Ok(())
            };
            if transfers.is_empty() && step > 0 {
                reduce()?;
            } else if reductions.iter().all(|members| members.is_empty()) {
                transport.transfer(&mut transfers)?;
            } else {
                std::thread::scope(|threads| {
                    let transfer = threads.spawn(|| transport.transfer(&mut transfers));
                    let reduced = reduce();
                    let ended = transfer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                    ended.and(reduced)
                })?;
            }
        }
        let mut sums = sums.into_iter();
        for divided in all {
            divided.sum = sums.next();
        }
        Ok(arriving)
    }

    /// Passes each operand to the target of its lane. A lane that is no target has no result.
    fn permuted(&self, pairs: &[(usize, usize)], operands: &[Option<Array>]) -> Result<ByLane<Array>> {
        let cross_partition = matches!(self.step.collective.groups, Groups::CrossPartition(_));
        let lanes = |process: usize| {
            let of_lane = |lane: &usize| {
                let known = self.places.processes[*lane];
                process == if cross_partition { known.partition } else { known.replica }
            };
            (0..operands.len()).filter(of_lane).collect::<Vec<_>>()
        };
        // Each pair applies at every position along the other kind of process.
        let pairs = pairs.iter().flat_map(|(from, to)| lanes(*from).into_iter().zip(lanes(*to)));
        let mut results: ByLane<Array> = vec![None; operands.len()];
        let mut transfers = Vec::new();
        let mut received = Vec::new();
        for (from, to) in pairs {
            match (&operands[from], self.is_own(to)) {
                (Some(operand), true) => results[to] = Some(operand.clone()),
                (Some(operand), false) => {
                    transfers.push(self.send(self.tag(0, from, to), self.node(to), operand));
                }
                (None, true) => received.push((from, to, self.allocate(&self.step.read.dims)?)),
                (None, false) => {}
            }
        }
        for (from, to, array) in &mut received {
            let bytes = Bytes::Receive(array.bytes_mut().expect("a new array has one holder"));
            transfers.push(Transfer { node: self.node(*from), tag: self.tag(0, *from, *to), bytes });
        }
        self.transfer(transfers)?;
        for (_, to, array) in received {
            results[to] = Some(array);
        }
        Ok(results)
    }
}

/// The state of an all-reduce in a group.
struct Divided<'a> {
    parts: Parts,
    group: &'a [usize],
    operands: &'a [Option<Array>],
    /// The operands of all members of which a piece has arrived, and is not reduced yet.
    members: Vec<Array>,
    /// The sum of a piece that has been reduced, and is not exchanged yet.
    sum: Option<Array>,
    result: Array,
}

impl<'a> Divided<'a> {
    fn new(meeting: &Meeting<'_>, group: &'a [usize], operands: &'a [Option<Array>]) -> Result<Self> {
        let nodes = meeting.nodes(group);
        let own = nodes.iter().position(|node| *node == meeting.places.nodes.own).unwrap_or_default();
        let len = meeting.step.read.dims.iter().product();
        let result = meeting.allocate(&meeting.step.write.dims)?;
        Ok(Self { parts: Parts { nodes, own, len }, group, operands, members: Vec::new(), sum: None, result })
    }

    /// Returns memory for a piece of this node's part of all operands. Those of this node are there.
    fn room(&self, meeting: &Meeting<'_>, piece: usize, pieces: usize) -> Result<Vec<Array>> {
        let range = self.parts.piece(self.parts.own, piece, pieces);
        let size = meeting.step.read.dtype.size();
        let member = |lane: &usize| match &self.operands[*lane] {
            Some(operand) => {
                let bytes = &operand.bytes().expect("dense")[range.start * size..range.end * size];
                let allocator = &meeting.cx.runtime.allocator;
                Ok(Array::from_bytes(allocator, operand.dtype(), &[range.len()], bytes)?)
            }
            None => meeting.allocate(&[range.len()]),
        };
        self.group.iter().map(member).collect()
    }

    /// Sends to each other node a piece of its part of the operands of this one, and receives the operands of the others.
    fn exchange_operands<'b>(
        &self,
        meeting: &Meeting<'_>,
        (piece, pieces): (usize, usize),
        arriving: &'b mut [Array],
        transfers: &mut Vec<Transfer<'b>>,
    ) where
        'a: 'b,
    {
        let size = meeting.step.read.dtype.size();
        let tag = |lane: usize, node: usize| mix(meeting.tag(1, lane, node) ^ piece as u64);
        let parts = &self.parts;
        for (position, node) in parts.nodes.iter().enumerate().filter(|(position, _)| *position != parts.own)
        {
            let range = parts.piece(position, piece, pieces);
            for lane in self.group {
                let Some(operand) = &self.operands[*lane] else { continue };
                let bytes = &operand.bytes().expect("dense")[range.start * size..range.end * size];
                transfers.push(Transfer { node: *node, tag: tag(*lane, *node), bytes: Bytes::Send(bytes) });
            }
        }
        for (lane, array) in self.group.iter().zip(arriving).filter(|(lane, _)| !meeting.is_own(**lane)) {
            let bytes = Bytes::Receive(array.bytes_mut().expect("a new array has one holder"));
            let tag = tag(*lane, meeting.places.nodes.own);
            transfers.push(Transfer { node: meeting.node(*lane), tag, bytes });
        }
    }
}

/// The division of an all-reduce among the nodes of a group.
struct Parts {
    nodes: Vec<usize>,
    /// The position of this node among them.
    own: usize,
    /// The number of elements of the array.
    len: usize,
}

impl Parts {
    /// Returns the elements of a piece of the part that the node at a position reduces.
    fn piece(&self, position: usize, piece: usize, pieces: usize) -> Range<usize> {
        let begin = |position: usize| self.len * position / self.nodes.len();
        let (start, len) = (begin(position), begin(position + 1) - begin(position));
        start + len * piece / pieces..start + len * (piece + 1) / pieces
    }

    /// Sends the sum of a piece of this node's part to all others, and receives theirs into the result. `first` is the first lane of
    /// the group.
    fn exchange_sums<'a>(
        &self,
        meeting: &Meeting<'_>,
        first: usize,
        (piece, pieces): (usize, usize),
        sum: &'a Array,
        result: &'a mut Array,
        transfers: &mut Vec<Transfer<'a>>,
    ) {
        let size = meeting.step.read.dtype.size();
        let sum = sum.bytes().expect("dense");
        let mut rest = result.bytes_mut().expect("a new array has one holder");
        let mut end = 0;
        for (position, node) in self.nodes.iter().enumerate() {
            let range = self.piece(position, piece, pieces);
            let part;
            (_, rest) = rest.split_at_mut((range.start - end) * size);
            (part, rest) = rest.split_at_mut(range.len() * size);
            end = range.end;
            if position == self.own {
                part.copy_from_slice(sum);
                continue;
            }
            // Two nodes can have several groups in common; the first lane distinguishes them.
            let tag = |from: usize, to: usize| mix(meeting.tag(2 + first as u64, from, to) ^ piece as u64);
            let own = self.nodes[self.own];
            transfers.push(Transfer { node: *node, tag: tag(own, *node), bytes: Bytes::Send(sum) });
            transfers.push(Transfer { node: *node, tag: tag(*node, own), bytes: Bytes::Receive(part) });
        }
    }
}

/// Mixes the bits of a number (the finalizer of SplitMix64).
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
