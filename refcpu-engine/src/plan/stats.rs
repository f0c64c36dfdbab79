//! What a run of a plan costs, estimated from its graph.

use super::Plan;
use crate::graph::{Graph, Node, Op, Shape};
use refcpu_kernels::tile::TileOp;

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

/// Iterations that a loop is taken to have: nobody knows before it ran.
const ASSUMED_TRIPS: f64 = 100.0;

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
    let elements = |shape: &Shape| shape.len() as f64;
    let result = node.results().next().map(|r| graph.shape(r));
    let out = result.map_or(0.0, elements);
    let operand = |i: usize| node.operands.get(i).map(|v| graph.shape(*v));
    let read = operand(0).map_or(0.0, elements);
    let mut flops = 0.0;
    let mut products = 0.0;
    let mut transcendentals = 0.0;
    match &node.op {
        Op::Constant(_) | Op::Reshape | Op::Barrier | Op::Broadcast { .. } | Op::Iota { .. } => return,
        Op::Tile(op) if is_transcendental(*op) => transcendentals = out,
        Op::Tile(_) | Op::Compare(..) | Op::Select | Op::Clamp | Op::Convert | Op::ReducePrecision { .. } => {
            flops = out
        }
        Op::Reduce { .. } | Op::ArgReduce { .. } => flops = read,
        Op::ReduceWindow { window, .. } | Op::SelectAndScatter { window, .. } => {
            flops = out.max(read) * window.size.iter().product::<usize>() as f64;
        }
        Op::Dot(dims) => {
            let depth = dims.lhs_contract.iter().map(|d| operand(0).map_or(1, |s| s.dims[*d]));
            products = 2.0 * out * depth.product::<usize>() as f64;
        }
        Op::Convolution(conv) => {
            let per_output =
                operand(1).map_or(0.0, |k| elements(k) / (k.dims[conv.kernel_output_feature].max(1) as f64));
            products = 2.0 * out * per_output;
        }
        Op::Scatter { .. } => {
            flops = node.operands.last().map_or(0.0, |updates| elements(graph.shape(*updates)))
        }
        Op::Sort { .. } | Op::SortBy { .. } | Op::TopK { .. } => flops = read * read.max(2.0).log2(),
        Op::Fft { .. } => flops = 5.0 * read * read.max(2.0).log2(),
        Op::Cholesky { .. } => flops = read * last_dim(operand(0)) / 3.0,
        Op::TriangularSolve { .. } => flops = operand(1).map_or(0.0, elements) * last_dim(operand(0)),
        // Factorisations and what else is cubic; iterations count as a few of them.
        Op::Linalg(_) => flops = 4.0 * read * last_dim(operand(0)),
        Op::QrFactor | Op::QrProduct => flops = 2.0 * read * last_dim(operand(0)),
        Op::While { condition, body, .. } => {
            add_graph(stats, condition, times * ASSUMED_TRIPS);
            add_graph(stats, body, times * ASSUMED_TRIPS);
            return;
        }
        Op::Case { branches } => {
            if let Some(branch) = branches.iter().max_by_key(|branch| branch.size()) {
                add_graph(stats, branch, times);
            }
            return;
        }
        Op::Map(body) => return add_graph(stats, body, times * out),
        Op::Manual { body, spec } => {
            let lanes: usize = spec.axes.iter().map(|axis| spec.mesh[*axis]).product();
            return add_graph(stats, body, times * lanes as f64);
        }
        _ => {}
    }
    let shapes = node.operands.iter().copied().chain(node.results()).map(|v| graph.shape(v));
    let bytes: f64 = shapes.map(|shape| shape.bytes() as f64).sum();
    stats.flops += times * (flops + products);
    stats.transcendentals += times * transcendentals;
    stats.bytes_accessed += times * bytes;
    stats.nanoseconds += times
        * (INSTRUCTION_NS
            + flops / ELEMENTWISE_PER_NS
            + products / PRODUCTS_PER_NS
            + bytes / BYTES_PER_NS
            + transcendentals * TRANSCENDENTAL_NS);
}

fn last_dim(shape: Option<&Shape>) -> f64 {
    shape.and_then(|s| s.dims.last()).map_or(0.0, |d| *d as f64)
}

/// The functions that XLA's cost analysis counts apart.
fn is_transcendental(op: TileOp) -> bool {
    use TileOp::*;
    matches!(
        op,
        Power
            | Atan2
            | Sqrt
            | Rsqrt
            | Cbrt
            | Exponential
            | ExponentialMinusOne
            | Log
            | LogPlusOne
            | Logistic
            | Sine
            | Cosine
            | Tan
            | Tanh
            | Asin
            | Acos
            | Atan
            | Sinh
            | Cosh
            | Asinh
            | Acosh
            | Atanh
            | Erf
            | Erfc
            | ErfInv
    )
}
