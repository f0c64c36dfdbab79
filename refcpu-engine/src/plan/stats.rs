//! What a run of a plan costs, estimated from its graph.

use super::Plan;
use crate::graph::{Graph, Node, Shape};

/// The estimated costs of one run on one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Arithmetic operations, a multiplication and an addition counted each; transcendental functions not among them.
    pub flops: f64,
    /// Evaluations of transcendental functions.
    pub transcendentals: f64,
    /// Bytes that operations read and write, as if each did it alone.
    pub bytes_accessed: f64,
    /// Bytes of scratch memory.
    pub arena_bytes: usize,
    /// Bytes of constants.
    pub constant_bytes: usize,
    /// A guess of how long a run takes on one thread, to decide where to run it; not a measurement.
    pub nanoseconds: f64,
}

/// One thread's speed, as orders of magnitude: elementwise operations, products, and bytes moved, per nanosecond;
/// nanoseconds of a transcendental function and of an instruction.
const ELEMENTWISE_PER_NS: f64 = 4.0;
const PRODUCTS_PER_NS: f64 = 40.0;
const BYTES_PER_NS: f64 = 16.0;
const TRANSCENDENTAL_NS: f64 = 0.3;
const INSTRUCTION_NS: f64 = 50.0;

impl Plan {
    /// What a run costs.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats {
            arena_bytes: self.program.arena,
            constant_bytes: self.program.constants.iter().map(|c| c.bytes.len()).sum(),
            ..Stats::default()
        };
        add_graph(&mut stats, &self.graph, 1.0);
        stats
    }
}

fn add_graph(stats: &mut Stats, graph: &Graph, times: f64) {
    for node in graph.nodes() {
        add_node(stats, graph, node, times);
    }
}

fn add_node(stats: &mut Stats, graph: &Graph, node: &Node, times: f64) {
    let x: Vec<&Shape> = node.operands.iter().map(|v| graph.shape(*v)).collect();
    let y: Vec<&Shape> = node.results().map(|v| graph.shape(v)).collect();
    for (often, body) in node.op.operation().runs(&y) {
        add_graph(stats, body, times * often);
    }
    let Some(cost) = node.op.operation().cost(&x, &y) else { return };
    let bytes: f64 = x.iter().chain(&y).map(|shape| shape.bytes() as f64).sum();
    stats.flops += times * (cost.flops + cost.products);
    stats.transcendentals += times * cost.transcendentals;
    stats.bytes_accessed += times * bytes;
    stats.nanoseconds += times
        * (INSTRUCTION_NS
            + cost.flops / ELEMENTWISE_PER_NS
            + cost.products / PRODUCTS_PER_NS
            + bytes / BYTES_PER_NS
            + cost.transcendentals * TRANSCENDENTAL_NS);
}
