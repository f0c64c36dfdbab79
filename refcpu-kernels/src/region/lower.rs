//! Lowers nodes to a program: assigns slots and registers to values, and selects kernels.

use super::chain::{self, Chain, Source};
use super::loop_nest::{LoopIndex, LoopNest};
use super::node::Node;
use super::program::{Load, LoadKind, Program, Reduction, Slot, Step, Store};
use super::schedule::{fuse_multiply_adds, schedule};
use super::{InputSpec, OutputSpec, RegionError};
use crate::tile::reduce::reducer;
use crate::tile::{self, Kernel, Opcode};
use crate::{ComputeType, ReduceOp};
use refcpu_codegen::InstructionSet;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The largest number of roundings to narrow floats in a region for which they are part of chains. Chains of many roundings, each
/// of which waits for the one before, take longer than loops over tiles.
pub(super) const MAX_ROUNDINGS: usize = 4;

/// Returns the program that computes the outputs from the inputs over the iteration space `dims`. Reductions
/// are over the `trailing` innermost dimensions. With an instruction set, operations are combined to chains of machine code where
/// it has them.
///
/// # Errors
/// Returns an error if there are too many values, or no kernel for an operation, or if a chain cannot be compiled.
pub(super) fn lower(
    dims: &[usize],
    trailing: Option<usize>,
    inputs: &[InputSpec],
    mut nodes: Vec<Node>,
    outputs: &[OutputSpec],
    set: Option<InstructionSet>,
) -> Result<Program, RegionError> {
    fuse_multiply_adds(&mut nodes, outputs);
    let order = schedule(&nodes, outputs);
    let (mut accesses, mut iotas) = (vec![], vec![]);
    for id in &order {
        match nodes[*id as usize] {
            Node::Input { index, .. } => accesses.push(&inputs[index as usize].access),
            Node::Iota { dim, .. } => iotas.push(dim as usize),
            _ => {}
        }
    }
    let loops = LoopNest::new(dims, trailing, &accesses, &iotas);
    let mut lowering = Lowering::new(loops, inputs, &nodes, outputs);
    let groups = match set {
        Some(set) => lowering.groups(&order, set),
        None => order.iter().map(|id| vec![*id]).collect(),
    };
    let last_use = last_uses(&nodes, &groups, outputs);
    for (at, group) in groups.iter().enumerate() {
        match (&group[..], set) {
            ([id], _) => lowering.node(*id)?,
            (ids, Some(set)) => lowering.chain(ids, set, |id| last_use[id as usize] > at)?,
            (_, None) => unreachable!("without machine code, groups have one node"),
        }
        let args = group.iter().flat_map(|id| nodes[*id as usize].args());
        lowering.release(args.copied().filter(|a| !group.contains(a) && last_use[*a as usize] == at));
    }
    for (index, output) in outputs.iter().enumerate() {
        match output.reduce {
            Some(op) => lowering.reduction(index as u32, output, op)?,
            None => lowering.output(index as u32, output)?,
        }
    }
    Ok(lowering.finish())
}

/// Returns the last group of `groups` that uses each node, or `usize::MAX` if its register cannot be reused.
fn last_uses(nodes: &[Node], groups: &[Vec<u32>], outputs: &[OutputSpec]) -> Vec<usize> {
    let mut last_use = vec![0; nodes.len()];
    for (at, group) in groups.iter().enumerate() {
        for a in group.iter().flat_map(|id| nodes[*id as usize].args()) {
            last_use[*a as usize] = at;
        }
    }
    for id in groups.iter().filter(|g| g.len() == 1).map(|g| g[0]) {
        // Both values have the same register, which neither may release while the other has users.
        if let Node::Op { opcode: Opcode::Reinterpret, args: [from, ..], .. } = nodes[id as usize] {
            last_use[from as usize] = usize::MAX;
            last_use[id as usize] = usize::MAX;
        }
    }
    for o in outputs {
        last_use[o.node as usize] = usize::MAX;
    }
    last_use
}

/// The frequency with which a value changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rate {
    Once,
    Row,
    Element,
}

impl Rate {
    /// Returns the rate of an input with these strides along the outer and the inner loops.
    pub(super) fn of_strides(outer: &[isize], inner: &[isize]) -> Self {
        let moves = |strides: &[isize]| strides.iter().any(|s| *s != 0);
        match (moves(inner), moves(outer)) {
            (true, _) => Self::Element,
            (false, true) => Self::Row,
            (false, false) => Self::Once,
        }
    }
}

/// A lowered value.
#[derive(Clone, Copy)]
struct Value {
    slot: u16,
    rate: Rate,
}

/// The register tiles by size class, which are assigned first fit.
#[derive(Default)]
struct Registers {
    free: HashMap<usize, Vec<u32>>,
    end: u32,
}

impl Registers {
    fn take(&mut self, size: usize) -> u32 {
        if let Some(at) = self.free.get_mut(&size).and_then(Vec::pop) {
            return at;
        }
        self.take_for_good(size)
    }

    /// Takes a register tile that is never reused, for values that are computed once and read by every tile.
    fn take_for_good(&mut self, size: usize) -> u32 {
        let at = self.end.next_multiple_of(size as u32);
        self.end = at + size as u32;
        at
    }

    fn give(&mut self, size: usize, at: u32) {
        self.free.entry(size).or_default().push(at);
    }
}

/// The state of [`lower`].
struct Lowering<'a> {
    inputs: &'a [InputSpec],
    nodes: &'a [Node],
    /// The program so far.
    program: Program,
    registers: Registers,
    /// The values of the nodes that were lowered.
    values: Vec<Option<Value>>,
    /// The tiles that repeat the value of a node.
    splats: HashMap<u32, u16>,
    /// The first output with the region's shape that each node is the value of.
    direct: HashMap<u32, u32>,
    /// The position in the tile code of the write of each store.
    written_at: Vec<usize>,
    /// The position in the tile code of the last read of each load in memory.
    read_at: BTreeMap<u16, usize>,
    /// The cost of one element, in hundredths of a nanosecond.
    hundredths: u64,
}

impl<'a> Lowering<'a> {
    fn new(loops: LoopNest, inputs: &'a [InputSpec], nodes: &'a [Node], outputs: &[OutputSpec]) -> Self {
        let mut direct = HashMap::new();
        for (index, o) in outputs.iter().enumerate().rev() {
            if o.reduce.is_none() {
                direct.insert(o.node, index as u32);
            }
        }
        Self {
            inputs,
            nodes,
            program: Program::new(loops),
            registers: Registers::default(),
            values: vec![None; nodes.len()],
            splats: HashMap::new(),
            direct,
            written_at: vec![],
            read_at: BTreeMap::new(),
            hundredths: 0,
        }
    }

    /// Divides the nodes into groups in an order in which they can be computed: chains, and all other nodes alone.
    ///
    /// The level of a node is the number of changes between chains and other nodes on a path to it, so that all operations of a
    /// level can be computed together.
    fn groups(&self, order: &[u32], set: InstructionSet) -> Vec<Vec<u32>> {
        let mut rates = vec![Rate::Once; self.nodes.len()];
        let mut levels = vec![0usize; self.nodes.len()];
        let mut groups: Vec<Vec<Vec<u32>>> = vec![];
        let is_rounding = |node: &Node| matches!(node, Node::Op { opcode: Opcode::Round(_), .. });
        let rounds =
            order.iter().filter(|id| is_rounding(&self.nodes[**id as usize])).count() <= MAX_ROUNDINGS;
        for &id in order {
            let node = &self.nodes[id as usize];
            let args = node.args().iter().map(|a| *a as usize);
            let rate = match node {
                Node::Op { .. } => args.clone().map(|a| rates[a]).max().unwrap_or(Rate::Once),
                Node::Const { .. } => Rate::Once,
                Node::Input { index, .. } => {
                    let (outer, inner) = self.program.loops.strides(&self.inputs[*index as usize].access);
                    Rate::of_strides(&outer, &inner)
                }
                Node::Iota { dim, .. } => match self.program.loops.loop_over(*dim as usize) {
                    None => Rate::Once,
                    Some(LoopIndex::Outer(_)) => Rate::Row,
                    Some(LoopIndex::Inner(_)) => Rate::Element,
                },
            };
            let in_chain = rate == Rate::Element
                && (rounds || !is_rounding(node))
                && chain::operation(self.nodes, node, set).is_some();
            let below = args.map(|a| levels[a]).max().unwrap_or(0);
            let level = if in_chain == (below % 2 == 1) { below } else { below + 1 };
            (rates[id as usize], levels[id as usize]) = (rate, level);
            groups.resize_with(groups.len().max(level + 1), Vec::new);
            match groups[level].last_mut() {
                Some(chain) if in_chain => chain.push(id),
                _ => groups[level].push(vec![id]),
            }
        }
        groups.into_iter().flatten().collect()
    }

    /// Adds the chain of these operations. `is_used` returns `true` for those whose values are used outside of it.
    fn chain(
        &mut self,
        ids: &[u32],
        set: InstructionSet,
        is_used: impl Fn(u32) -> bool,
    ) -> Result<(), RegionError> {
        let own: HashSet<u32> = ids.iter().copied().collect();
        let mut sources = HashMap::new();
        for a in ids.iter().flat_map(|id| self.nodes[*id as usize].args()).filter(|a| !own.contains(a)) {
            let source = match self.nodes[*a as usize] {
                Node::Const { bits, .. } => Source::Constant(bits as u64),
                _ if self.value(*a).rate != Rate::Element => Source::Single(self.value(*a).slot),
                _ => {
                    self.reads(self.value(*a).slot);
                    Source::Tile { slot: self.value(*a).slot, row: 0 }
                }
            };
            sources.insert(*a, source);
        }
        let chain = self.program.chains.len() as u16;
        self.program.tile_code.push(Step::Chain { chain });
        let mut results = vec![];
        for id in ids.iter().copied().filter(|id| is_used(*id)) {
            let size = self.nodes[id as usize].ty().size();
            // A chain reads each element before it writes it, so that the next step is the first to come after the store.
            let slot = match self.direct.get(&id) {
                Some(output) => self.store(*output, size)?,
                None => self.tile(size)?,
            };
            self.values[id as usize] = Some(Value { slot, rate: Rate::Element });
            results.push(chain::Output { id, slot, row: 0 });
        }
        for id in ids {
            let node = &self.nodes[*id as usize];
            let Node::Op { opcode, ty, .. } = *node else { continue };
            let types: Vec<ComputeType> = node.args().iter().map(|a| self.nodes[*a as usize].ty()).collect();
            self.hundredths += u64::from(tile::cost(opcode, ty, &types).div_ceil(2));
        }
        let parts = Chain { nodes: self.nodes, single: &[], ids, sources, results };
        let code = parts.compile(&self.program.loops.tile_sizes(), set).map_err(|e| {
            crate::native::report(&e);
            RegionError(e.to_string())
        })?;
        self.program.chains.push(Arc::new(code));
        Ok(())
    }

    fn slot(&mut self, slot: Slot) -> Result<u16, RegionError> {
        let n = u16::try_from(self.program.slots.len())
            .map_err(|_| RegionError("the region has too many values".into()))?;
        self.program.slots.push(slot);
        Ok(n)
    }

    fn cell(&mut self) -> Result<u16, RegionError> {
        self.program.cells += 1;
        self.slot(Slot::Cell(self.program.cells - 1))
    }

    fn constant(&mut self, bits: u128) -> Result<u16, RegionError> {
        self.program.constants.push(bits);
        self.slot(Slot::Const(self.program.constants.len() as u32 - 1))
    }

    fn tile(&mut self, size: usize) -> Result<u16, RegionError> {
        let at = self.registers.take(size);
        self.slot(Slot::Tile(at))
    }

    /// Adds a store of an output, which the next step of the tile code writes, and returns its slot.
    fn store(&mut self, output: u32, size: usize) -> Result<u16, RegionError> {
        let slot = self.slot(Slot::Output(output))?;
        self.written_at.push(self.program.tile_code.len());
        self.program.stores.push(Store { output, size, slot, late_loads: vec![], stand_in: 0 });
        Ok(slot)
    }

    /// Records that the next step of the tile code reads a slot.
    fn reads(&mut self, slot: u16) {
        if let Slot::Memory(load) = self.program.slots[usize::from(slot)] {
            self.read_at.insert(load as u16, self.program.tile_code.len());
        }
    }

    /// Returns the code that computes values of this rate.
    fn code(&mut self, rate: Rate) -> &mut Vec<Step> {
        match rate {
            Rate::Once => &mut self.program.once_code,
            Rate::Row => &mut self.program.row_code,
            Rate::Element => &mut self.program.tile_code,
        }
    }

    fn value(&self, node: u32) -> Value {
        self.values[node as usize].expect("operands precede their users")
    }

    /// Returns a tile that repeats a value that does not vary within a row.
    fn splat(&mut self, node: u32) -> Result<u16, RegionError> {
        if let Some(slot) = self.splats.get(&node) {
            return Ok(*slot);
        }
        let Value { slot: src, rate } = self.value(node);
        let size = self.nodes[node as usize].ty().size();
        let at = self.registers.take_for_good(size);
        let dst = self.slot(Slot::Tile(at))?;
        self.code(rate).push(Step::Splat { dst, src, size: size as u8 });
        self.splats.insert(node, dst);
        Ok(dst)
    }

    /// Lowers a node whose operands were lowered.
    fn node(&mut self, id: u32) -> Result<(), RegionError> {
        let node = &self.nodes[id as usize];
        let value = match *node {
            Node::Const { bits, .. } => Value { slot: self.constant(bits)?, rate: Rate::Once },
            Node::Input { index, ty } => self.input(index, ty.size())?,
            Node::Iota { dim, ty } => self.iota(dim as usize, ty)?,
            Node::Op { opcode: Opcode::Reinterpret, args: [from, ..], .. } => self.value(from),
            Node::Op { opcode, ty, .. } => self.op(id, opcode, ty, node.args())?,
        };
        self.values[id as usize] = Some(value);
        Ok(())
    }

    /// Adds the load of an input.
    fn input(&mut self, index: u32, size: usize) -> Result<Value, RegionError> {
        let access = &self.inputs[index as usize].access;
        let (outer, inner) = self.program.loops.strides(access);
        let (dims, inner) = merged(&self.program.loops.inner, &inner);
        let rate = Rate::of_strides(&outer, &inner);
        let kind = match rate {
            Rate::Element if inner == [1] => LoadKind::InPlace,
            Rate::Element => LoadKind::Gather,
            Rate::Row => LoadKind::PerRow,
            Rate::Once => LoadKind::Once,
        };
        let load = self.program.loads.len() as u16;
        let slot = if kind == LoadKind::Gather {
            self.hundredths += 60;
            self.program.tile_code.push(Step::Gather { load });
            self.tile(size)?
        } else {
            self.slot(Slot::Memory(u32::from(load)))?
        };
        let load = Load { input: index, size, offset: access.offset, outer, dims, inner, kind, slot };
        self.program.loads.push(load);
        Ok(Value { slot, rate })
    }

    /// Adds the computation of the coordinates along a dimension.
    fn iota(&mut self, dim: usize, ty: ComputeType) -> Result<Value, RegionError> {
        Ok(match self.program.loops.loop_over(dim) {
            // A dimension of size 1 has the coordinate zero everywhere.
            None => Value { slot: self.constant(0)?, rate: Rate::Once },
            Some(LoopIndex::Outer(index)) => {
                let dst = self.cell()?;
                self.program.row_code.push(Step::RowIota { dst, dim: index as u16, ty });
                Value { slot: dst, rate: Rate::Row }
            }
            Some(LoopIndex::Inner(index)) => {
                let dst = self.tile(ty.size())?;
                self.program.tile_code.push(Step::Iota { dst, dim: index as u16, ty });
                self.hundredths += 5;
                Value { slot: dst, rate: Rate::Element }
            }
        })
    }

    /// Adds the kernel of an operation.
    fn op(&mut self, id: u32, opcode: Opcode, ty: ComputeType, args: &[u32]) -> Result<Value, RegionError> {
        let rates: Vec<Rate> = args.iter().map(|a| self.value(*a).rate).collect();
        let rate = rates.iter().copied().max().unwrap_or(Rate::Once);
        let mut args = args.to_vec();
        if matches!(opcode, Opcode::MulAdd | Opcode::MulSub | Opcode::NegMulAdd)
            && rates[0] != Rate::Element
            && rates[1] == Rate::Element
        {
            // There are only loops in which the second factor is a scalar.
            args.swap(0, 1);
        }
        let types: Vec<ComputeType> = args.iter().map(|a| self.nodes[*a as usize].ty()).collect();
        let (kernel, src) = self.kernel(opcode, ty, &args, &types, rate)?;
        let slot = match (rate, self.direct.get(&id)) {
            (Rate::Element, Some(output)) => self.store(*output, ty.size())?,
            (Rate::Element, None) => self.tile(ty.size())?,
            _ => self.cell()?,
        };
        if rate == Rate::Element {
            src.into_iter().for_each(|s| self.reads(s));
            self.hundredths += u64::from(tile::cost(opcode, ty, &types));
        }
        self.code(rate).push(Step::Kernel { kernel, dst: slot, src });
        Ok(Value { slot, rate })
    }

    /// Returns the kernel of an operation that is computed at `rate`, and the slots of its operands. Operands
    /// that vary less often are read as scalars, or repeated over a tile if there is no such kernel.
    fn kernel(
        &mut self,
        opcode: Opcode,
        ty: ComputeType,
        args: &[u32],
        types: &[ComputeType],
        rate: Rate,
    ) -> Result<(Kernel, [u16; 3]), RegionError> {
        let is_scalar = |low: &Self, a: u32| rate == Rate::Element && low.value(a).rate != rate;
        let scalars = args.iter().enumerate().filter(|(_, a)| is_scalar(self, **a));
        let mask = scalars.fold(0u8, |mask, (k, _)| mask | 1 << k);
        let masked = tile::kernel_with_scalars(opcode, ty, types, mask);
        let Some(kernel) = masked.or_else(|| tile::kernel(opcode, ty, types)) else {
            return Err(RegionError(format!("{opcode:?} of {types:?} to {ty:?} is not implemented")));
        };
        let mut src = [0u16; 3];
        for (s, a) in src.iter_mut().zip(args) {
            *s = if masked.is_none() && is_scalar(self, *a) { self.splat(*a)? } else { self.value(*a).slot };
        }
        let first = src[0];
        src[args.len()..].fill(first);
        Ok((kernel, src))
    }

    /// Releases the registers of values that are not used again.
    fn release(&mut self, dead: impl Iterator<Item = u32>) {
        let mut dead: Vec<u32> = dead.collect();
        dead.sort_unstable();
        dead.dedup();
        for a in dead {
            if let Slot::Tile(at) = self.program.slots[usize::from(self.value(a).slot)] {
                self.registers.give(self.nodes[a as usize].ty().size(), at);
            }
        }
    }

    /// Adds the reduction of a value to output `index`.
    fn reduction(&mut self, index: u32, output: &OutputSpec, op: ReduceOp) -> Result<(), RegionError> {
        let ty = self.nodes[output.node as usize].ty();
        let raw = output.dtype.raw_type();
        let encode = if raw == ty { None } else { tile::kernel(Opcode::ToBits(output.dtype), raw, &[ty]) };
        self.hundredths += 3;
        let Some(reducer) = reducer(op, ty) else {
            return Err(RegionError(format!("the reduction {op:?} of {ty:?} is not implemented")));
        };
        // A value that does not vary is repeated over a tile, and reduced as often as it occurs.
        let value = self.value(output.node);
        let src = if value.rate == Rate::Element { value.slot } else { self.splat(output.node)? };
        let tile = if encode.is_some() { self.tile(ty.size())? } else { src };
        self.program.reductions.push(Reduction {
            reducer,
            size: raw.size(),
            src,
            tile,
            output: index,
            encode,
        });
        Ok(())
    }

    /// Adds a copy of a value to output `index`, unless a kernel writes the output.
    fn output(&mut self, index: u32, output: &OutputSpec) -> Result<(), RegionError> {
        if self.program.stores.iter().any(|s| s.output == index) {
            return Ok(());
        }
        let Value { slot: src, rate } = self.value(output.node);
        let size = self.nodes[output.node as usize].ty().size();
        self.reads(src);
        let dst = self.store(index, size)?;
        self.program.tile_code.push(if rate == Rate::Element {
            Step::Copy { dst, src, size: size as u8 }
        } else {
            Step::Splat { dst, src, size: size as u8 }
        });
        self.hundredths += 3;
        Ok(())
    }

    fn finish(mut self) -> Program {
        // Reductions read their operands at the end of a tile.
        for i in 0..self.program.reductions.len() {
            self.reads(self.program.reductions[i].src);
        }
        let p = &mut self.program;
        for (store, written_at) in p.stores.iter_mut().zip(self.written_at) {
            let late = self.read_at.iter().filter(|(_, read_at)| **read_at >= written_at);
            store.late_loads = late.map(|(load, _)| *load).collect();
            // The stand-in has its own register, because it is live from the write to the end of the tile.
            store.stand_in = self.registers.take_for_good(store.size);
        }
        p.tile_bytes = self.registers.end;
        p.ns_per_tile =
            4.0 + self.hundredths as f64 * 0.01 * p.loops.tile as f64 + 3.0 * p.tile_code.len() as f64;
        self.program
    }
}

/// Merges adjacent dimensions that an access traverses as one. Returns their sizes and strides.
fn merged(dims: &[usize], strides: &[isize]) -> (Vec<usize>, Vec<isize>) {
    let (mut sizes, mut steps): (Vec<usize>, Vec<isize>) = (vec![], vec![]);
    for (&size, &step) in dims.iter().zip(strides) {
        match (sizes.last_mut(), steps.last_mut()) {
            (Some(outer), Some(stride)) if step.checked_mul(size as isize) == Some(*stride) => {
                (*outer, *stride) = (*outer * size, step);
            }
            _ => {
                sizes.push(size);
                steps.push(step);
            }
        }
    }
    (sizes, steps)
}
