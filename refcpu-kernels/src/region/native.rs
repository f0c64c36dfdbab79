//! The decision to compile a region to machine code.

use super::Region;
use super::lower::lower;
use super::node::Node;
use super::program::Program;
use super::row_tiles;
use crate::native::instruction_set;
use crate::tile;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The estimated time to compile an operation, in nanoseconds per hundredth of a nanosecond of its estimated time.
const NS_PER_COST: f64 = 1000.0;
/// The estimated time to compile a region without operations, in nanoseconds.
const NS_PER_REGION: f64 = 20_000.0;

/// The program of a region with machine code, once it has run for as long as compiling takes.
#[derive(Debug)]
pub(super) struct Native {
    /// The estimated time of all runs so far, in nanoseconds.
    spent: AtomicU64,
    /// The estimated time to compile the region, in nanoseconds.
    compile_ns: f64,
    program: OnceLock<Option<Program>>,
}

impl Native {
    /// Returns the state of a region with these nodes that has not run yet.
    pub(super) fn new(nodes: &[Node]) -> Self {
        let cost = |node: &Node| match *node {
            Node::Op { opcode, ty, .. } => {
                let types: Vec<_> = node.args().iter().map(|a| nodes[*a as usize].ty()).collect();
                f64::from(tile::cost(opcode, ty, &types))
            }
            _ => 0.0,
        };
        let compile_ns = NS_PER_REGION + NS_PER_COST * nodes.iter().map(cost).sum::<f64>();
        Self { spent: AtomicU64::new(0), compile_ns, program: OnceLock::new() }
    }

    /// Returns the program of a region that is about to run, if there is machine code for it.
    pub(super) fn program(&self, region: &Region) -> Option<&Program> {
        if let Some(program) = self.program.get() {
            return program.as_ref();
        }
        let ns = region.estimated_ns();
        let before = self.spent.fetch_add(ns as u64, Ordering::Relaxed);
        if before as f64 + ns < self.compile_ns {
            return None;
        }
        self.compiled(region)
    }

    /// Returns the program of a region with machine code, after compiling it if necessary; `None` if it has no chain.
    pub(super) fn compiled(&self, region: &Region) -> Option<&Program> {
        let compile = || {
            let set = instruction_set()?;
            let nodes = region.nodes.clone();
            let one = row_tiles::lower(&region.dims, &region.inputs, nodes.clone(), &region.outputs, set);
            one.or_else(|| {
                let program =
                    lower(&region.dims, region.trailing, &region.inputs, nodes, &region.outputs, Some(set));
                program.ok().filter(|p| !p.chains.is_empty())
            })
        };
        self.program.get_or_init(compile).as_ref()
    }
}
