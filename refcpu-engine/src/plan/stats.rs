//! Estimates the cost of a run of a plan from its graph.

use super::{Call, Kernel, Plan, Program, Step};
use crate::graph::{Cost, Graph, Node, Op, Shape, ValueId, ops};
use refcpu_kernels::DType;
use refcpu_kernels::region::Direction;
use refcpu_kernels::tile::TileOp;

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
/// The approximate time of an operation of a loop that runs on the register machine, which has no steps, and the operations per
/// nanosecond in it. Most of its arrays are in registers.
const SMALL_INSTRUCTION_NS: f64 = 0.5;
const SMALL_PER_NS: f64 = 16.0;
/// The number of iterations that an estimated duration contains for a loop whose number is unknown before it runs.
const UNKNOWN_TRIPS: f64 = 1000.0;
/// The number of operations that take as long as a transcendental function.
const PER_TRANSCENDENTAL: f64 = 16.0;

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
        // A loop that did not become a small one is a list of steps with jumps.
        let has_jumps = self.program.steps.iter().any(|s| matches!(s, Step::Jump(_) | Step::Branch { .. }));
        let once = Weights { times: 1.0, runs: 1.0, is_small: false };
        add_graph(&mut stats, &self.graph, once, !has_jumps);
        if let Some(nanoseconds) = nanoseconds_of_steps(&self.program) {
            stats.nanoseconds = nanoseconds;
        }
        stats
    }
}

/// Estimates the duration of a program on one thread from its steps, of which fusion leaves fewer than the graph has operations.
/// Returns `None` if a step is not a region or the kernel of an operation, such as a loop.
fn nanoseconds_of_steps(program: &Program) -> Option<f64> {
    let of_step = |step: &Step| match step {
        Step::Run(call) => nanoseconds_of_call(call),
        Step::RowBlocks(step) => Some(step.ns * step.rows.count as f64 / step.rows.block as f64),
        _ => None,
    };
    program.steps.iter().map(|step| Some(INSTRUCTION_NS + of_step(step)?)).sum()
}

fn nanoseconds_of_call(call: &Call) -> Option<f64> {
    let views = || call.reads.iter().chain(&call.writes);
    let bytes = views().map(|view| view.byte_len() as f64).sum::<f64>() / BYTES_PER_NS;
    match &call.kernel {
        Kernel::Region(region) => Some(region.estimated_ns().max(bytes)),
        Kernel::Copy | Kernel::Fill => Some(bytes),
        Kernel::Op(op) => {
            let shapes: Vec<Shape> = views().map(|view| Shape::new(view.dtype, &view.dims)).collect();
            let (x, y) = shapes.split_at(call.reads.len());
            let (x, y): (Vec<&Shape>, Vec<&Shape>) = (x.iter().collect(), y.iter().collect());
            let cost = op.operation().cost(&x, &y).unwrap_or_default();
            Some(bytes.max(nanoseconds_of_cost(&cost)))
        }
        _ => None,
    }
}

/// Estimates the duration of arithmetic.
fn nanoseconds_of_cost(cost: &Cost) -> f64 {
    cost.flops / ELEMENTWISE_PER_NS
        + cost.products / PRODUCTS_PER_NS
        + cost.transcendentals * TRANSCENDENTAL_NS
}

/// The weights of the operations of a graph in the cost of a program.
#[derive(Clone, Copy)]
struct Weights {
    /// The number of times that cost analysis counts an operation.
    times: f64,
    /// The number of times that an operation runs, which is more precise.
    runs: f64,
    /// `true` for the operations of a loop that runs on the register machine.
    is_small: bool,
}

fn add_graph(stats: &mut Stats, graph: &Graph, weights: Weights, small_loops: bool) {
    for node in graph.nodes() {
        add_node(stats, graph, node, weights, small_loops);
    }
}

fn add_node(stats: &mut Stats, graph: &Graph, node: &Node, weights: Weights, small_loops: bool) {
    let x: Vec<&Shape> = node.operands.iter().map(|v| graph.shape(*v)).collect();
    let y: Vec<&Shape> = node.results().map(|v| graph.shape(v)).collect();
    let Weights { times, runs, is_small } = weights;
    let is_loop = matches!(node.op, Op::While(_));
    let known = known_trips(graph, node);
    for (often, body) in node.op.operation().runs(&y) {
        let inner = Weights {
            times: times * often,
            runs: runs * known.unwrap_or(if is_loop { UNKNOWN_TRIPS } else { often }),
            is_small: is_small || is_loop && small_loops,
        };
        add_graph(stats, body, inner, small_loops);
    }
    let Some(cost) = node.op.operation().cost(&x, &y) else { return };
    let bytes: f64 = x.iter().chain(&y).map(|shape| shape.bytes() as f64).sum();
    stats.flops += times * (cost.flops + cost.products);
    stats.transcendentals += times * cost.transcendentals;
    stats.bytes_accessed += times * bytes;
    stats.nanoseconds += runs
        * if is_small {
            let operations = cost.flops + cost.products + cost.transcendentals * PER_TRANSCENDENTAL;
            SMALL_INSTRUCTION_NS + operations / SMALL_PER_NS
        } else {
            INSTRUCTION_NS + nanoseconds_of_cost(&cost) + bytes / BYTES_PER_NS
        };
}

/// Returns the number of iterations of a loop with a counter that begins, ends and grows by constants.
fn known_trips(graph: &Graph, node: &Node) -> Option<f64> {
    let Op::While(ops::While { carried, condition, body }) = &node.op else { return None };
    let test = condition.node_of(condition.results()[0])?;
    let Op::Compare(ops::Compare(Direction::Lt, _)) = test.op else { return None };
    let counter =
        condition.parameters().iter().position(|p| *p == test.operands[0]).filter(|p| p < carried)?;
    // A constant that a body uses is part of the body, or an invariant operand.
    let of_body = |inner: &Graph, v: ValueId| {
        integer(inner, v).or_else(|| {
            let p = inner.parameters().iter().position(|p| *p == v).filter(|p| p >= carried)?;
            integer(graph, node.operands[p])
        })
    };
    let limit = of_body(condition, test.operands[1])?;
    let next = body.node_of(body.results()[counter]).filter(|n| n.op == Op::Tile(TileOp::Add))?;
    let step = match *next.operands {
        [a, b] if a == body.parameters()[counter] => of_body(body, b)?,
        [a, b] if b == body.parameters()[counter] => of_body(body, a)?,
        _ => return None,
    };
    let start = integer(graph, node.operands[counter])?;
    (step > 0.0).then(|| ((limit - start) / step).ceil().max(0.0))
}

/// Returns the value of a constant that is a single signed integer.
fn integer(graph: &Graph, v: ValueId) -> Option<f64> {
    let constant = graph.constant(v).filter(|c| c.shape.len() == 1)?;
    match (constant.shape.dtype, &*constant.bytes) {
        (DType::S32, bytes) => Some(f64::from(i32::from_le_bytes(bytes.try_into().ok()?))),
        (DType::S64, bytes) => Some(i64::from_le_bytes(bytes.try_into().ok()?) as f64),
        _ => None,
    }
}
