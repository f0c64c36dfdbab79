//! Lowers nodes to instructions: the geometry of the loops, levels, registers.

use super::builder::Builder;
use super::node::{Code, Node};
use super::{InputSpec, OutputSpec, Region, RegionError};
use crate::ComputeType;
use crate::tile::reduce::Reducer;
use crate::tile::{self, Kernel, TileOp};
use std::collections::HashMap;

/// The number of elements that pass through all operations at a time.
const TILE: usize = 512;
/// The minimum length of rows for which kernels are called per row. If rows are shorter, tiles span several
/// rows.
const SHORT_ROW: usize = 64;

/// The minimum number of elements of a reduction for which rows are reduced one at a time. If there are
/// fewer, several rows are reduced together.
const SHORT_REDUCTION: usize = 64;

/// The loops: rows of `row_len` elements, each of which is divided into tiles.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    /// The sizes of the dimensions that count rows.
    pub(super) outer: Vec<usize>,
    /// The sizes of the dimensions within a row.
    pub(super) inner: Vec<usize>,
    pub(super) rows: usize,
    pub(super) row_len: usize,
    /// The number of elements of a full tile.
    pub(super) tile: usize,
    pub(super) tiles_per_row: usize,
    /// The capacity of a register tile in elements: a multiple of 64, so that all registers are aligned.
    pub(super) capacity: usize,
    /// The length of the runs if reductions are over short runs, of which a tile contains many; otherwise
    /// zero.
    pub(super) segment: usize,
}

impl Geometry {
    pub(super) fn tiles(&self) -> usize {
        self.rows * self.tiles_per_row
    }
}

/// The loading of an input to registers.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) input: u32,
    pub(super) size: usize,
    pub(super) offset: usize,
    /// The strides along the outer dimensions.
    pub(super) outer: Vec<isize>,
    /// The strides along the inner dimensions.
    pub(super) inner: Vec<isize>,
    pub(super) kind: LoadKind,
    /// The slot with the pointer to the elements.
    pub(super) slot: u16,
}

/// The way in which a load's elements are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadKind {
    /// One element for the whole iteration space, read in memory.
    Once,
    /// One element for each row, read in memory.
    PerRow,
    /// Consecutive elements, read in memory.
    InPlace,
    /// Elements that are copied to a register tile first.
    Gather,
}

/// The memory that a slot of the pointer table points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// A register tile. Its offset is this number of bytes per element of a tile.
    Tile(u32),
    /// A 16-byte cell for a value that does not vary within a row, or at all.
    Cell(u32),
    /// A constant.
    Const(u32),
    /// The memory of an input (index in `loads`).
    Memory(u32),
    /// The memory of an output, or of its stand-in.
    Output(u32),
}

/// A step of a tile.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Calls a kernel on slots.
    Kernel { kernel: Kernel, dst: u16, src: [u16; 3] },
    /// Copies load `load` to its register tile.
    Gather { load: u16 },
    /// Computes the coordinates along an inner dimension.
    Iota { dst: u16, dim: u16, ty: ComputeType },
    /// Computes the coordinate along an outer dimension.
    RowIota { dst: u16, dim: u16, ty: ComputeType },
    /// Repeats one element over a whole tile.
    Splat { dst: u16, src: u16, size: u8 },
    /// Copies a tile (for an output that is a plain copy).
    Copy { dst: u16, src: u16, size: u8 },
}

/// A reduction of a tile slot to one value per row.
#[derive(Clone, Debug)]
pub(super) struct Reduction {
    pub(super) reducer: Reducer,
    /// The size of a result in memory, in bytes.
    pub(super) size: usize,
    pub(super) src: u16,
    /// A register for results of short runs that must be encoded.
    pub(super) tile: u16,
    pub(super) output: u32,
    /// The kernel that converts the register value to the representation in memory.
    pub(super) encode: Option<Kernel>,
}

/// A store to an array with the shape of the region.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) output: u32,
    pub(super) size: usize,
    pub(super) slot: u16,
    /// The loads that must not have the address of this output, because they are read when or after it is
    /// written.
    pub(super) late_loads: Vec<u16>,
    /// The offset of the stand-in, in bytes per element of a tile.
    pub(super) stand_in: u32,
}

/// The executable form of a region.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) geometry: Geometry,
    pub(super) loads: Vec<Load>,
    pub(super) slots: Vec<Slot>,
    pub(super) constants: Vec<u128>,
    /// The code that runs once.
    pub(super) once_code: Vec<Step>,
    /// The code that runs at the start of each row.
    pub(super) row_code: Vec<Step>,
    /// The code that runs for each tile.
    pub(super) tile_code: Vec<Step>,
    pub(super) stores: Vec<Store>,
    pub(super) reductions: Vec<Reduction>,
    pub(super) cells: u32,
    /// The number of register bytes per element of a tile.
    pub(super) tile_bytes: u32,
    pub(super) ns_per_tile: f64,
}

/// The frequency with which a value changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rate {
    Once,
    Row,
    Element,
}

fn geometry(
    dims: &[usize],
    trailing: Option<usize>,
    inputs: &[InputSpec],
    iotas: &[usize],
) -> (Geometry, Vec<Vec<isize>>, Vec<Option<usize>>) {
    // Dimensions of size 1 are removed. Adjacent dimensions are merged if every input traverses them as one.
    let boundary = dims.len() - trailing.unwrap_or(0);
    let reduced: usize = dims[boundary..].iter().product();
    let segment = if trailing.is_some() && reduced <= SHORT_REDUCTION { reduced } else { 0 };
    let by_rows = trailing.is_some() && segment == 0;
    let mut sizes: Vec<usize> = vec![];
    let mut strides: Vec<Vec<isize>> = vec![vec![]; inputs.len()];
    let mut place = vec![None; dims.len()];
    let mut outer_count = 0;
    let mut last_dim: Option<usize> = None;
    for (d, &size) in dims.iter().enumerate() {
        if size == 1 {
            continue;
        }
        let merges = last_dim.is_some_and(|last| {
            (!by_rows || (last < boundary) == (d < boundary))
                && !iotas.contains(&last)
                && !iotas.contains(&d)
                && inputs
                    .iter()
                    .zip(&strides)
                    .all(|(i, s)| s.last().copied() == i.access.strides[d].checked_mul(size as isize))
        });
        if merges {
            if let Some(s) = sizes.last_mut() {
                *s *= size;
            }
        } else {
            sizes.push(size);
            strides.iter_mut().for_each(|s| s.push(0));
        }
        for (i, s) in inputs.iter().zip(&mut strides) {
            if let Some(s) = s.last_mut() {
                *s = i.access.strides[d];
            }
        }
        place[d] = Some(sizes.len() - 1);
        last_dim = Some(d);
        if d < boundary {
            outer_count = sizes.len();
        }
    }
    let split = if by_rows {
        outer_count
    } else if segment > 0 {
        0
    } else if sizes.len() > 1 && sizes[sizes.len() - 1] >= SHORT_ROW {
        sizes.len() - 1
    } else {
        0
    };
    let inner = sizes.split_off(split);
    let rows = sizes.iter().product();
    let row_len: usize = inner.iter().product();
    let tile = match TILE.checked_div(segment) {
        Some(segments) => (segments * segment).min(row_len),
        None => {
            // The tiles of a row have equal sizes, in whole cache lines.
            let tiles = row_len.div_ceil(TILE).max(1);
            row_len.div_ceil(tiles).next_multiple_of(64).min(TILE)
        }
    };
    let tile = tile.max(1);
    let geometry = Geometry {
        outer: sizes,
        inner,
        rows,
        row_len,
        tile,
        tiles_per_row: row_len.div_ceil(tile),
        capacity: tile.next_multiple_of(64),
        segment,
    };
    (geometry, strides, place)
}

/// Returns the live nodes in an order that keeps few values alive: depth first from the outputs.
fn schedule(nodes: &[Node], roots: &[u32]) -> Vec<u32> {
    let mut done = vec![false; nodes.len()];
    let mut order = vec![];
    let mut stack: Vec<(u32, bool)> = vec![];
    for root in roots {
        stack.push((*root, false));
        while let Some((id, expanded)) = stack.pop() {
            if done[id as usize] {
                continue;
            }
            if expanded {
                done[id as usize] = true;
                order.push(id);
            } else {
                stack.push((id, true));
                stack.extend(nodes[id as usize].args().iter().rev().map(|a| (*a, false)));
            }
        }
    }
    order
}

/// Merges a multiplication into the addition or subtraction that is its only user. Both operations still
/// round.
fn fuse(nodes: &mut [Node], outputs: &[OutputSpec]) {
    let mut uses = vec![0u32; nodes.len()];
    for o in outputs {
        uses[o.node as usize] += 1;
    }
    for root in schedule(nodes, &outputs.iter().map(|o| o.node).collect::<Vec<_>>()) {
        for a in nodes[root as usize].args() {
            uses[*a as usize] += 1;
        }
    }
    for id in 0..nodes.len() {
        let Node::Op { code: Code::Tile(op @ (TileOp::Add | TileOp::Subtract)), ty, args: [x, y, _], .. } =
            nodes[id]
        else {
            continue;
        };
        if ty != ComputeType::F32 && ty != ComputeType::F64 {
            continue;
        }
        let product = |of: u32| match nodes[of as usize] {
            Node::Op { code: Code::Tile(TileOp::Multiply), args: [a, b, _], .. }
                if uses[of as usize] == 1 =>
            {
                Some((a, b))
            }
            _ => None,
        };
        let (code, a, b, c) = match (op, product(x), product(y)) {
            (TileOp::Add, Some((a, b)), _) => (Code::MulAdd, a, b, y),
            (TileOp::Add, _, Some((a, b))) => (Code::MulAdd, a, b, x),
            (_, Some((a, b)), _) => (Code::MulSub, a, b, y),
            (_, _, Some((a, b))) => (Code::NegMulAdd, a, b, x),
            _ => continue,
        };
        nodes[id] = Node::Op { code, ty, args: [a, b, c], arity: 3 };
    }
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

struct Lowering {
    slots: Vec<Slot>,
    cells: u32,
    registers: Registers,
    splats: HashMap<u32, u16>,
    slot_of: Vec<Option<u16>>,
}

impl Lowering {
    fn slot(&mut self, slot: Slot) -> Result<u16, RegionError> {
        let n = u16::try_from(self.slots.len())
            .map_err(|_| RegionError("the region has too many values".into()))?;
        self.slots.push(slot);
        Ok(n)
    }

    fn cell(&mut self) -> Result<u16, RegionError> {
        self.cells += 1;
        self.slot(Slot::Cell(self.cells - 1))
    }

    fn tile(&mut self, size: usize) -> Result<u16, RegionError> {
        let at = self.registers.take(size);
        self.slot(Slot::Tile(at))
    }

    /// Takes a tile that is filled outside the tile loop.
    fn lasting_tile(&mut self, size: usize) -> Result<u16, RegionError> {
        let at = self.registers.take_for_good(size);
        self.slot(Slot::Tile(at))
    }

    fn of(&self, node: u32) -> Result<u16, RegionError> {
        self.slot_of[node as usize]
            .ok_or_else(|| RegionError("internal error: a value is used before it is computed".into()))
    }
}

pub(super) fn lower(builder: Builder) -> Result<Region, RegionError> {
    let Builder { dims, inputs, nodes, outputs, trailing, .. } = builder;
    if outputs.is_empty() {
        return Err(RegionError("the region has no outputs".into()));
    }
    if dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).is_none() {
        return Err(RegionError(format!("the size of the iteration space {dims:?} overflows")));
    }
    let (nodes, outputs) = compacted(nodes, outputs);
    let program = compile(&dims, trailing, &inputs, nodes.clone(), &outputs)?;
    let input_lens = inputs
        .iter()
        .map(|i| match i.access.bounds(&dims) {
            Some((_, high)) if !dims.contains(&0) => high + 1,
            _ => 0,
        })
        .collect();
    Ok(Region { dims, inputs, outputs, trailing, nodes, program, input_lens })
}

/// Returns the nodes that outputs need, renumbered so that operands precede their users.
fn compacted(nodes: Vec<Node>, mut outputs: Vec<OutputSpec>) -> (Vec<Node>, Vec<OutputSpec>) {
    let order = schedule(&nodes, &outputs.iter().map(|o| o.node).collect::<Vec<_>>());
    let mut number = vec![0u32; nodes.len()];
    let mut kept = Vec::with_capacity(order.len());
    for id in order {
        number[id as usize] = kept.len() as u32;
        let mut node = nodes[id as usize].clone();
        if let Node::Op { args, .. } = &mut node {
            args.iter_mut().for_each(|a| *a = number[*a as usize]);
        }
        kept.push(node);
    }
    outputs.iter_mut().for_each(|o| o.node = number[o.node as usize]);
    (kept, outputs)
}

fn compile(
    dims: &[usize],
    trailing: Option<usize>,
    inputs: &[InputSpec],
    mut nodes: Vec<Node>,
    outputs: &[OutputSpec],
) -> Result<Program, RegionError> {
    fuse(&mut nodes, outputs);
    let order = schedule(&nodes, &outputs.iter().map(|o| o.node).collect::<Vec<_>>());
    let used: Vec<usize> = order
        .iter()
        .filter_map(|id| match nodes[*id as usize] {
            Node::Input { index, .. } => Some(index as usize),
            _ => None,
        })
        .collect();
    let iotas: Vec<usize> = order
        .iter()
        .filter_map(|id| match nodes[*id as usize] {
            Node::Iota { dim, .. } => Some(dim as usize),
            _ => None,
        })
        .collect();
    let live_inputs: Vec<InputSpec> = used.iter().map(|i| inputs[*i].clone()).collect();
    let (geometry, strides, place) = geometry(dims, trailing, &live_inputs, &iotas);
    let split = geometry.outer.len();

    let mut low = Lowering {
        slots: vec![],
        cells: 0,
        registers: Registers::default(),
        splats: HashMap::new(),
        slot_of: vec![None; nodes.len()],
    };
    let mut loads: Vec<Load> = vec![];
    let mut rate = vec![Rate::Once; nodes.len()];
    let mut constants = vec![];
    let (mut once_code, mut row_code, mut tile_code) = (vec![], vec![], vec![]);
    let mut hundredths = 0u64;

    // The last use of each value in the tile code, as a position in `order`.
    let mut last_use = vec![0usize; nodes.len()];
    for (at, id) in order.iter().enumerate() {
        for a in nodes[*id as usize].args() {
            last_use[*a as usize] = at;
        }
    }
    for o in outputs {
        last_use[o.node as usize] = usize::MAX;
    }

    let mut stores: Vec<Store> = vec![];
    // The first output with the region's shape that each node is the value of.
    let mut direct: HashMap<u32, u32> = HashMap::new();
    for (k, o) in outputs.iter().enumerate().rev() {
        if o.reduce.is_none() {
            direct.insert(o.node, k as u32);
        }
    }
    // The position in tile_code of the write to each output, and of the last read of each load.
    let mut written_at: HashMap<u32, usize> = HashMap::new();
    let mut load_read_at: HashMap<u16, usize> = HashMap::new();

    for (at, &id) in order.iter().enumerate() {
        let node = nodes[id as usize].clone();
        let size = node.ty().size();
        match node {
            Node::Const { bits, .. } => {
                constants.push(bits);
                let slot = low.slot(Slot::Const(constants.len() as u32 - 1))?;
                low.slot_of[id as usize] = Some(slot);
            }
            Node::Input { index, .. } => {
                let which = used.iter().position(|u| *u == index as usize).unwrap_or(0);
                let (outer, inner) = strides[which].split_at(split);
                let dense = |strides: &[isize]| {
                    let mut step = 1isize;
                    strides.iter().zip(&geometry.inner).rev().all(|(s, d)| {
                        let ok = *s == step;
                        step *= *d as isize;
                        ok
                    })
                };
                let kind = if inner.iter().all(|s| *s == 0) {
                    if outer.iter().all(|s| *s == 0) { LoadKind::Once } else { LoadKind::PerRow }
                } else if dense(inner) {
                    LoadKind::InPlace
                } else {
                    LoadKind::Gather
                };
                let number = loads.len() as u16;
                let slot = match kind {
                    LoadKind::Gather => low.tile(size)?,
                    _ => low.slot(Slot::Memory(u32::from(number)))?,
                };
                if kind == LoadKind::Gather {
                    tile_code.push(Step::Gather { load: number });
                    hundredths += 60;
                }
                rate[id as usize] = match kind {
                    LoadKind::Once => Rate::Once,
                    LoadKind::PerRow => Rate::Row,
                    _ => Rate::Element,
                };
                loads.push(Load {
                    input: index,
                    size,
                    offset: inputs[index as usize].access.offset,
                    outer: outer.to_vec(),
                    inner: inner.to_vec(),
                    kind,
                    slot,
                });
                low.slot_of[id as usize] = Some(slot);
            }
            Node::Iota { dim, ty } => {
                let slot = match place[dim as usize] {
                    None => {
                        // A dimension of size 1 has the coordinate zero everywhere.
                        constants.push(0);
                        low.slot(Slot::Const(constants.len() as u32 - 1))?
                    }
                    Some(p) if p < split => {
                        rate[id as usize] = Rate::Row;
                        let dst = low.cell()?;
                        row_code.push(Step::RowIota { dst, dim: p as u16, ty });
                        dst
                    }
                    Some(p) => {
                        rate[id as usize] = Rate::Element;
                        let dst = low.tile(size)?;
                        tile_code.push(Step::Iota { dst, dim: (p - split) as u16, ty });
                        hundredths += 5;
                        dst
                    }
                };
                low.slot_of[id as usize] = Some(slot);
            }
            Node::Op { code, ty, args, arity } => {
                let mut args = args;
                let is_scalar = |a: u32| rate[a as usize] != Rate::Element;
                if matches!(code, Code::MulAdd | Code::MulSub | Code::NegMulAdd)
                    && is_scalar(args[0])
                    && !is_scalar(args[1])
                {
                    // There are only loops in which the second factor is a scalar.
                    args.swap(0, 1);
                }
                let args = &args[..usize::from(arity)];
                let types: Vec<ComputeType> = args.iter().map(|a| nodes[*a as usize].ty()).collect();
                let r = args.iter().map(|a| rate[*a as usize]).max().unwrap_or(Rate::Once);
                rate[id as usize] = r;
                if code == Code::Reinterpret {
                    // The value uses the same slot with another type. Neither may release it while the other
                    // has users.
                    let from = args[0];
                    let same_slot = low.of(from)?;
                    low.slot_of[id as usize] = Some(same_slot);
                    last_use[from as usize] = usize::MAX;
                    last_use[id as usize] = usize::MAX;
                    continue;
                }
                let mut mask = 0u8;
                for (k, a) in args.iter().enumerate() {
                    if r == Rate::Element && rate[*a as usize] != Rate::Element {
                        mask |= 1 << k;
                    }
                }
                let full = tile::kernel(code, ty, &types, tile::Shape::Full);
                let masked =
                    if mask != 0 { tile::kernel(code, ty, &types, tile::Shape::Scalars(mask)) } else { None };
                let mut src = [0u16; 3];
                for (k, a) in args.iter().enumerate() {
                    src[k] = low.of(*a)?;
                    if mask & (1 << k) != 0 && masked.is_none() {
                        src[k] = match low.splats.get(a) {
                            Some(s) => *s,
                            None => {
                                let size = nodes[*a as usize].ty().size();
                                let dst = low.lasting_tile(size)?;
                                let code = if rate[*a as usize] == Rate::Row {
                                    &mut row_code
                                } else {
                                    &mut once_code
                                };
                                code.push(Step::Splat { dst, src: src[k], size: size as u8 });
                                low.splats.insert(*a, dst);
                                dst
                            }
                        };
                    }
                }
                for k in args.len()..3 {
                    src[k] = src[0];
                }
                let Some(kernel) = masked.or(full) else {
                    return Err(RegionError(format!("{code:?} of {types:?} to {ty:?} is not implemented")));
                };
                let dst = match r {
                    Rate::Element => match direct.get(&id) {
                        Some(k) => {
                            let slot = low.slot(Slot::Output(*k))?;
                            written_at.insert(*k, tile_code.len());
                            stores.push(Store { output: *k, size, slot, late_loads: vec![], stand_in: 0 });
                            slot
                        }
                        None => low.tile(size)?,
                    },
                    _ => low.cell()?,
                };
                low.slot_of[id as usize] = Some(dst);
                let step = Step::Kernel { kernel, dst, src };
                match r {
                    Rate::Once => once_code.push(step),
                    Rate::Row => row_code.push(step),
                    Rate::Element => {
                        for s in src {
                            if let Slot::Memory(l) = low.slots[usize::from(s)] {
                                load_read_at.insert(l as u16, tile_code.len());
                            }
                        }
                        hundredths += u64::from(tile::cost(code, ty, &types));
                        tile_code.push(step);
                    }
                }
                // The registers whose values are no longer needed.
                let mut dead: Vec<u32> = args
                    .iter()
                    .copied()
                    .filter(|a| last_use[*a as usize] == at && rate[*a as usize] == Rate::Element)
                    .collect();
                dead.sort_unstable();
                dead.dedup();
                for a in dead {
                    if let Slot::Tile(place) = low.slots[usize::from(low.of(a)?)] {
                        low.registers.give(nodes[a as usize].ty().size(), place);
                    }
                }
            }
        }
    }

    let mut reductions = vec![];
    for (k, o) in outputs.iter().enumerate() {
        let ty = nodes[o.node as usize].ty();
        let src = low.of(o.node)?;
        let src_is_scalar = rate[o.node as usize] != Rate::Element;
        if let Some(op) = o.reduce {
            let raw = super::node::raw_type(o.dtype);
            let encode = if raw == ty {
                None
            } else {
                tile::kernel(Code::ToBits(o.dtype), raw, &[ty], tile::Shape::Full)
            };
            hundredths += 3;
            let Some(reducer) = tile::reduce::reducer(op, ty) else {
                return Err(RegionError(format!("the reduction {op:?} of {ty:?} is not implemented")));
            };
            // A value that does not vary is repeated over a tile, and reduced as often as it occurs.
            let src = if src_is_scalar {
                let dst = low.lasting_tile(ty.size())?;
                let code = if rate[o.node as usize] == Rate::Row { &mut row_code } else { &mut once_code };
                code.push(Step::Splat { dst, src, size: ty.size() as u8 });
                dst
            } else {
                src
            };
            let tile = if encode.is_some() { low.tile(ty.size())? } else { src };
            reductions.push(Reduction { tile, reducer, size: raw.size(), src, output: k as u32, encode });
            continue;
        }
        if stores.iter().any(|s| s.output == k as u32) {
            continue;
        }
        let slot = low.slot(Slot::Output(k as u32))?;
        let size = ty.size();
        if let Slot::Memory(l) = low.slots[usize::from(src)] {
            load_read_at.insert(l as u16, tile_code.len());
        }
        written_at.insert(k as u32, tile_code.len());
        tile_code.push(if src_is_scalar {
            Step::Splat { dst: slot, src, size: size as u8 }
        } else {
            Step::Copy { dst: slot, src, size: size as u8 }
        });
        hundredths += 3;
        stores.push(Store { output: k as u32, size, slot, late_loads: vec![], stand_in: 0 });
    }
    // Reductions read their operands at the end of a tile.
    for r in &reductions {
        if let Slot::Memory(l) = low.slots[usize::from(r.src)] {
            load_read_at.insert(l as u16, tile_code.len());
        }
    }
    for s in &mut stores {
        let at = written_at.get(&s.output).copied().unwrap_or(0);
        s.late_loads = load_read_at.iter().filter(|(_, read)| **read >= at).map(|(l, _)| *l).collect();
        // The stand-in has its own register, because it is live from the write to the end of the tile.
        s.stand_in = low.registers.take_for_good(s.size);
    }
    let ns_per_tile = 4.0 + hundredths as f64 * 0.01 * geometry.tile as f64 + 3.0 * tile_code.len() as f64;
    Ok(Program {
        geometry,
        loads,
        slots: low.slots,
        constants,
        once_code,
        row_code,
        tile_code,
        stores,
        reductions,
        cells: low.cells,
        tile_bytes: low.registers.end,
        ns_per_tile,
    })
}
