//! Regions that are a single chain, whose values need no memory: tiles of several rows, however short these are.

use super::chain::{self, Chain, Output, Source};
use super::loop_nest::LoopNest;
use super::lower::{MAX_ROUNDINGS, Rate};
use super::node::Node;
use super::program::{Load, LoadKind, Program, Slot, Step, Store};
use super::schedule::{fuse_multiply_adds, schedule};
use super::{Access, InputSpec, OutputSpec};
use crate::ComputeType;
use crate::tile::{self, Opcode};
use refcpu_codegen::InstructionSet;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of vectors of the shortest rows.
const MIN_VECTORS: usize = 2;

/// Returns the program of a region without reductions all of whose operations form a single chain; `None` for other regions.
pub(super) fn lower(
    dims: &[usize],
    inputs: &[InputSpec],
    mut nodes: Vec<Node>,
    outputs: &[OutputSpec],
    set: InstructionSet,
) -> Option<Program> {
    if dims.contains(&0) || outputs.iter().any(|output| output.reduce.is_some()) {
        return None;
    }
    fuse_multiply_adds(&mut nodes, outputs);
    let order = schedule(&nodes, outputs);
    let accesses: Vec<&Access> = order
        .iter()
        .filter_map(|id| match nodes[*id as usize] {
            Node::Input { index, .. } => Some(&inputs[index as usize].access),
            _ => None,
        })
        .collect();
    let loops = LoopNest::of_rows(dims, &accesses);
    let is_rounding = |id: &&u32| matches!(nodes[**id as usize], Node::Op { opcode: Opcode::Round(_), .. });
    let vector = set.vector() / 4;
    if !loops.outer.is_empty()
        && (loops.row_len < MIN_VECTORS * vector || !loops.row_len.is_multiple_of(vector))
        || order.iter().filter(is_rounding).count() > MAX_ROUNDINGS
    {
        return None;
    }
    let mut tiles = RowTiles { nodes: &nodes, inputs, program: Program::new(loops), sources: HashMap::new() };
    let rates = tiles.rates(&order, set)?;
    let ops = order.iter().copied().filter(|id| matches!(nodes[*id as usize], Node::Op { .. }));
    let (ids, single): (Vec<u32>, Vec<u32>) = ops.partition(|id| rates[*id as usize] == Rate::Element);
    tiles.finish(&single, &ids, outputs, set)
}

/// The state of [`lower`].
struct RowTiles<'a> {
    nodes: &'a [Node],
    inputs: &'a [InputSpec],
    program: Program,
    sources: HashMap<u32, Source>,
}

impl RowTiles<'_> {
    /// Returns the rate of each node, after adding the loads of inputs. There are none if a node cannot be part of the chain.
    fn rates(&mut self, order: &[u32], set: InstructionSet) -> Option<Vec<Rate>> {
        let mut rates = vec![Rate::Once; self.nodes.len()];
        for &id in order {
            let node = &self.nodes[id as usize];
            rates[id as usize] = match *node {
                Node::Op { .. } => {
                    chain::operation(self.nodes, node, set)?;
                    node.args().iter().map(|a| rates[*a as usize]).max()?
                }
                Node::Const { bits, .. } => {
                    self.sources.insert(id, Source::Constant(bits as u64));
                    Rate::Once
                }
                Node::Input { index, ty } => self.load(id, index, ty)?,
                Node::Iota { .. } => return None,
            };
        }
        Some(rates)
    }

    /// Adds the load of an input. There is none if its elements are not adjacent.
    fn load(&mut self, id: u32, index: u32, ty: ComputeType) -> Option<Rate> {
        let access = &self.inputs[index as usize].access;
        let loops = &self.program.loops;
        let (outer, inner) = loops.strides(access);
        let rate = Rate::of_strides(&outer, &inner);
        let kind = match rate {
            Rate::Element if inner == [1] => LoadKind::InPlace,
            Rate::Element if inner == [-1] && ty.size() >= 4 => LoadKind::Reversed,
            Rate::Element => return None,
            Rate::Row => LoadKind::PerRow,
            Rate::Once => LoadKind::Once,
        };
        chain::scalar(ty)?;
        let row = usize::try_from(outer.last().copied().unwrap_or(0)).ok()? * ty.size();
        let slot = u16::try_from(self.program.slots.len()).ok()?;
        let source = match kind {
            LoadKind::InPlace => Source::Tile { slot, row },
            LoadKind::Reversed => Source::Reversed { slot, row },
            LoadKind::PerRow => Source::Row { slot, row },
            _ => Source::Single(slot),
        };
        self.sources.insert(id, source);
        let (dims, size, offset) = (loops.inner.clone(), ty.size(), access.offset);
        self.program.slots.push(Slot::Memory(self.program.loads.len() as u32));
        self.program.loads.push(Load { input: index, size, offset, outer, dims, inner, kind, slot });
        Some(rate)
    }

    /// Returns the program with a chain of these operations.
    fn finish(
        mut self,
        single: &[u32],
        ids: &[u32],
        outputs: &[OutputSpec],
        set: InstructionSet,
    ) -> Option<Program> {
        let mut results = vec![];
        for (index, output) in (0..).zip(outputs) {
            if !ids.contains(&output.node) {
                return None;
            }
            let slot = u16::try_from(self.program.slots.len()).ok()?;
            let size = self.nodes[output.node as usize].ty().size();
            self.program.slots.push(Slot::Output(index));
            self.program.stores.push(Store { output: index, size, slot, late_loads: vec![], stand_in: 0 });
            results.push(Output { id: output.node, slot, row: self.program.loops.row_len * size });
        }
        let hundredths: u32 = ids.iter().map(|id| self.cost(*id)).sum();
        let sizes = self.program.loops.tile_sizes();
        let chain = Chain { nodes: self.nodes, single, ids, sources: self.sources, results };
        let code = chain.compile(&sizes, set).inspect_err(crate::native::report).ok()?;
        let mut program = self.program;
        program.chains.push(Arc::new(code));
        program.tile_code.push(Step::Chain { chain: 0 });
        let elements = program.loops.tile * program.loops.tile_rows;
        program.ns_per_tile = 7.0 + f64::from(hundredths) * 0.01 * elements as f64;
        Some(program)
    }

    /// Returns the cost of an operation in hundredths of a nanosecond.
    fn cost(&self, id: u32) -> u32 {
        let node = &self.nodes[id as usize];
        let Node::Op { opcode, ty, .. } = *node else { return 0 };
        let types: Vec<ComputeType> = node.args().iter().map(|a| self.nodes[*a as usize].ty()).collect();
        tile::cost(opcode, ty, &types).div_ceil(2)
    }
}
