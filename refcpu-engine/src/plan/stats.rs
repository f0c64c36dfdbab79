//! Estimates the cost of a run of a plan from its graph.

use super::Plan;
use crate::graph::{Graph, Node, Shape};

/// The estimated cost of one run on one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// The number of arithmetic operations other than transcendental functions. A multiply-add counts as two.
    pub flops: f64,
    /// The number of evaluations of transcendental functions.
    pub transcendentals: f64,
    /// The number of bytes that the operations read and write, without fusion.
    pub bytes_accessed: f64,
    /// The size of scratch memory in bytes.
    pub arena_bytes: usize,
    /// The size of constants in bytes.
    pub constant_bytes: usize,
    /// A rough estimate of the duration on one thread, which determines where the program runs.
    pub nanoseconds: f64,
}

/// The approximate speed of one thread: elementwise operations, operations in products, and bytes moved per nanosecond;
/// nanoseconds per transcendental function and per step.
const ELEMENTWISE_PER_NS: f64 = 4.0;
const PRODUCTS_PER_NS: f64 = 40.0;
const BYTES_PER_NS: f64 = 16.0;
const TRANSCENDENTAL_NS: f64 = 0.3;
const INSTRUCTION_NS: f64 = 50.0;

impl Stats {
    /// Returns an equal part of the cost for each of several devices, each of which has all constants.
    #[must_use]
    pub fn divided(self, devices: usize) -> Self {
        let part = |value: f64| value / devices.max(1) as f64;
        Self {
            flops: part(self.flops),
            transcendentals: part(self.transcendentals),
            bytes_accessed: part(self.bytes_accessed),
            arena_bytes: self.arena_bytes.div_ceil(devices.max(1)),
            nanoseconds: part(self.nanoseconds),
            ..self
        }
    }
}

impl Plan {
    /// Estimates the cost of a run.
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
