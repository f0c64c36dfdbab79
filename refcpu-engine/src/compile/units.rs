//! What a graph's nodes become: kernels with the arrays they read, and names for arrays that are there already.

use super::error::{CompileError, Result};
use super::fuse::{Fusion, fuse, fused_reduction};
use super::region::{reading_body, region_of, region_of_body};
use crate::graph::{Builder, Graph, Node, Op, Reducer, Shape, ValueId, is_elementwise};
use crate::plan::Kernel;
use refcpu_kernels::DType;
use refcpu_kernels::index::{Combiner, scatter_supports};
use refcpu_kernels::reduce::ReduceOp;
use refcpu_kernels::region::{Access, Region};
use refcpu_kernels::window::WindowSpec;

/// A node that the plan has something for.
pub(super) struct Unit {
    /// Its position in the graph.
    pub(super) node: usize,
    pub(super) kind: UnitKind,
    /// The arrays that it reads: for kernels in the order of their operands, else each once.
    pub(super) reads: Vec<ValueId>,
}

/// What is done about a node.
pub(super) enum UnitKind {
    /// Its results are its operands, or seen under other types of as many bytes.
    Alias,
    /// Its result is a part of its operand, from this byte on.
    Part {
        offset: usize,
    },
    Call(Kernel),
    While,
    Case,
    Collective,
    Host,
    Manual,
}

/// The units of a graph, and how many units read each value (being a result counts once per result).
///
/// # Errors
/// If kernels lack something.
pub(super) fn units(graph: &Graph, fused: bool) -> Result<(Vec<Unit>, Vec<usize>)> {
    let fusion = if fused { fuse(graph, &graph.uses()) } else { Fusion::none(graph) };
    let mut all = Vec::new();
    for (n, node) in graph.nodes().iter().enumerate() {
        let dropped = node.results == 1 && fusion.is_inlined(node.first_result);
        if dropped || matches!(node.op, Op::Constant(_)) {
            continue;
        }
        let (kind, reads) = unit(graph, &fusion, node).map_err(|mut e| {
            if e.location.is_empty() {
                e.location = node.location.brief().to_string();
            }
            if e.op.is_empty() {
                e.op = name(&node.op);
                let list = |ids: &mut dyn Iterator<Item = ValueId>| {
                    ids.map(|v| graph.shape(v).to_string()).collect::<Vec<_>>().join(", ")
                };
                e.types = format!(
                    "({}) -> {}",
                    list(&mut node.operands.iter().copied()),
                    list(&mut node.results())
                );
            }
            e
        })?;
        all.push(Unit { node: n, kind, reads });
    }
    let mut uses = vec![0usize; graph.num_values()];
    for unit in &all {
        for (i, v) in unit.reads.iter().enumerate() {
            if !unit.reads[..i].contains(v) {
                uses[v.index()] += 1;
            }
        }
    }
    for r in graph.results() {
        uses[r.index()] += 1;
    }
    Ok((all, uses))
}

/// The operation's name without its attributes.
pub(super) fn name(op: &Op) -> String {
    let text = format!("{op:?}");
    text.split(|c: char| !c.is_alphanumeric()).find(|s| !s.is_empty()).unwrap_or_default().to_string()
}

fn distinct(values: &[ValueId]) -> Vec<ValueId> {
    let mut seen = std::collections::HashSet::new();
    values.iter().copied().filter(|v| seen.insert(*v)).collect()
}

fn unit(graph: &Graph, fusion: &Fusion, node: &Node) -> Result<(UnitKind, Vec<ValueId>)> {
    let operands = &node.operands;
    let result = || graph.shape(node.first_result);
    let alias = |v: &[ValueId]| Ok((UnitKind::Alias, distinct(v)));
    let fused = || {
        let fused = region_of(graph, fusion, node.first_result)?;
        Ok((UnitKind::Call(Kernel::Region(Box::new(fused.region))), fused.inputs))
    };
    let inlined_operand = operands.first().is_some_and(|v| fusion.is_inlined(*v));
    match &node.op {
        Op::Barrier => alias(operands),
        Op::Reshape if !inlined_operand => alias(operands),
        Op::Bitcast if !inlined_operand && is_reinterpretation(graph.shape(operands[0]), result()) => {
            alias(operands)
        }
        Op::Slice { start, stride } if !inlined_operand => {
            match contiguous(graph.shape(operands[0]), result(), start, stride) {
                Some(offset) => Ok((UnitKind::Part { offset }, operands.clone())),
                None => kernel(graph, node),
            }
        }
        Op::Broadcast { .. } | Op::Transpose { .. } | Op::Reshape | Op::Slice { .. } | Op::Reverse { .. }
            if inlined_operand =>
        {
            fused()
        }
        Op::Iota { .. } if result().dtype != refcpu_kernels::DType::Pred => fused(),
        Op::Reduce { .. } if inlined_operand && fused_reduction(graph, node).is_some() => fused(),
        Op::While { .. } => Ok((UnitKind::While, distinct(operands))),
        Op::Case { .. } => Ok((UnitKind::Case, distinct(operands))),
        Op::Collective(_) => Ok((UnitKind::Collective, distinct(operands))),
        Op::HostSend { .. } | Op::HostReceive { .. } => Ok((UnitKind::Host, distinct(operands))),
        Op::Manual { .. } => Ok((UnitKind::Manual, distinct(operands))),
        op => {
            let shapes: Vec<&Shape> = operands.iter().map(|v| graph.shape(*v)).collect();
            if node.results == 1 && is_elementwise(op, &shapes, result()) {
                fused()
            } else {
                kernel(graph, node)
            }
        }
    }
}

/// True if the bytes of one are the bytes of the other. Sub-byte elements take a byte each, so their bits do not line up.
fn is_reinterpretation(from: &Shape, to: &Shape) -> bool {
    let whole = |s: &Shape| s.dtype.bits() == 8 * s.dtype.size();
    whole(from) && whole(to) && from.bytes() == to.bytes()
}

/// For a slice whose elements lie together in the operand: the first byte.
fn contiguous(from: &Shape, to: &Shape, start: &[usize], stride: &[usize]) -> Option<usize> {
    if stride.iter().zip(&*to.dims).any(|(s, n)| *s != 1 && *n > 1) || to.is_empty() {
        return None;
    }
    // All dimensions before the last one that is cut must be of size one.
    let cut = (0..to.rank()).rev().find(|d| from.dims[*d] != to.dims[*d])?;
    if to.dims[..cut].iter().any(|n| *n != 1) {
        return None;
    }
    let flat = start.iter().zip(&*from.dims).fold(0, |at, (s, n)| at * n + s);
    Some(flat * to.dtype.size())
}

/// The kernel of a node that is no region, with the node's operands.
pub(super) fn kernel(graph: &Graph, node: &Node) -> Result<(UnitKind, Vec<ValueId>)> {
    let shape = |i: usize| graph.shape(node.operands[i]);
    let result = node.results().next().map(|r| graph.shape(r));
    let kernel = match &node.op {
        Op::Broadcast { dims } => Kernel::Broadcast { dims: dims.clone() },
        Op::Transpose { permutation } => Kernel::Transpose { permutation: permutation.clone() },
        Op::Slice { start, stride } => Kernel::Slice { start: start.clone(), stride: stride.clone() },
        Op::Reverse { dims } => Kernel::Reverse { dims: dims.clone() },
        Op::Pad { low, high, interior } => {
            Kernel::Pad { low: low.clone(), high: high.clone(), interior: interior.clone() }
        }
        Op::Concatenate { dim } => Kernel::Concatenate { dim: *dim },
        Op::Bitcast => Kernel::Bitcast,
        Op::Reduce { dims, reducer: Reducer::Op(op) } => Kernel::Reduce { op: *op, dims: dims.clone() },
        Op::Reduce { dims, reducer: Reducer::Body(body) } => reduce_by(body, shape(0), dims)?,
        Op::ArgReduce { dim, op } => Kernel::ArgReduce { op: *op, dim: *dim },
        Op::ReduceWindow { window, reducer: Reducer::Op(op) } if node.operands.len() == 2 => {
            Kernel::ReduceWindow { op: *op, window: window.clone() }
        }
        Op::ReduceWindow { window, reducer: Reducer::Body(body) } => {
            reduce_window_by(body, shape(0), result.expect("results"), window)?
        }
        Op::SelectAndScatter { window, select, scatter } => {
            Kernel::SelectAndScatter { window: window.clone(), select: *select, scatter: *scatter }
        }
        Op::Dot(dims) => Kernel::Dot(dims.clone()),
        Op::Convolution(spec) => Kernel::Convolution(spec.clone()),
        Op::Gather(dims) => Kernel::Gather(dims.clone()),
        Op::Scatter { dims, combiner } => {
            let known = match combiner {
                None => Some(Combiner::Replace),
                Some(Reducer::Op(op)) => Some(match op {
                    ReduceOp::Add => Combiner::Add,
                    ReduceOp::Multiply => Combiner::Multiply,
                    ReduceOp::Minimum => Combiner::Minimum,
                    ReduceOp::Maximum => Combiner::Maximum,
                    ReduceOp::And => Combiner::And,
                    ReduceOp::Or => Combiner::Or,
                    ReduceOp::Xor => Combiner::Xor,
                }),
                Some(Reducer::Body(_)) => None,
            };
            match known.filter(|c| node.results == 1 && scatter_supports(*c, shape(0).dtype)) {
                Some(combiner) => Kernel::Scatter { dims: dims.clone(), combiner },
                None => {
                    Kernel::ScatterBy { dims: dims.clone(), combine: scatter_region(combiner, shape(0))? }
                }
            }
        }
        Op::DynamicSlice => Kernel::DynamicSlice,
        Op::DynamicUpdateSlice => Kernel::DynamicUpdateSlice,
        Op::Sort { dim, keys } => Kernel::Sort { dim: *dim, keys: keys.clone() },
        Op::SortBy { dim, comparator } => {
            let scalar = vec![true; comparator.parameters().len()];
            Kernel::SortBy { dim: *dim, less: Box::new(region_of_body(comparator, &[], &scalar)?) }
        }
        Op::TopK { largest } => Kernel::TopK { largest: *largest },
        Op::RngBits(algorithm) => Kernel::RngBits(*algorithm),
        Op::RngUniform => Kernel::RngUniform,
        Op::RngNormal => Kernel::RngNormal,
        Op::Fft { kind, lengths } => Kernel::Fft { kind: *kind, lengths: lengths.clone() },
        Op::Cholesky { lower } => Kernel::Cholesky { lower: *lower },
        Op::TriangularSolve(spec) => Kernel::TriangularSolve(*spec),
        Op::QrFactor => Kernel::QrFactor,
        Op::QrProduct => Kernel::QrProduct,
        Op::Linalg(op) => Kernel::Linalg(*op),
        Op::Map(body) => {
            let scalar = vec![false; body.parameters().len()];
            let dims = &result.expect("results").dims;
            Kernel::Region(Box::new(region_of_body(body, dims, &scalar)?))
        }
        Op::PartitionId => Kernel::PartitionId,
        Op::Foreign(call) => Kernel::Foreign(call.clone()),
        Op::ReplicaId => Kernel::ReplicaId,
        Op::Iota { .. } => return Err(CompileError::unimplemented("iota of truth values")),
        other => return Err(CompileError::internal(format!("no kernel for {other:?}"))),
    };
    Ok((UnitKind::Call(kernel), node.operands.clone()))
}

/// A reduction by a body: rows are combined in pairs until one is left.
fn reduce_by(body: &Graph, input: &Shape, dims: &[usize]) -> Result<Kernel> {
    let count = body.results().len();
    let rows: usize = dims.iter().map(|d| input.dims[*d]).product();
    let kept: usize = (0..input.rank()).filter(|d| !dims.contains(d)).map(|d| input.dims[d]).product();
    let mut halvings = Vec::new();
    let mut n = rows;
    while n > 1 {
        let space = [n / 2, kept];
        let row = kept as isize;
        let access = |offset| Access { offset, strides: vec![2 * row, 1] };
        let accesses: Vec<Access> =
            (0..count).map(|_| access(0)).chain((0..count).map(|_| access(kept))).collect();
        halvings.push(reading_body(body, &space, &accesses)?);
        n = n / 2 + n % 2;
    }
    let scalar: Vec<bool> = (0..2 * count).map(|i| i < count).collect();
    let last = region_of_body(body, &[kept], &scalar)?;
    Ok(Kernel::ReduceBy { dims: dims.to_vec(), halvings, last: Box::new(last) })
}

/// A windowed reduction by a body: one element of every window at a time.
fn reduce_window_by(body: &Graph, input: &Shape, result: &Shape, window: &WindowSpec) -> Result<Kernel> {
    let count = body.results().len();
    let padded = padded_dims(&input.dims, window);
    let mut strides = vec![0isize; padded.len()];
    let mut step = 1isize;
    for d in (0..padded.len()).rev() {
        strides[d] = step * window.strides[d] as isize;
        step = step.wrapping_mul(padded[d] as isize);
    }
    let mut accesses = vec![Access::linear(&result.dims); count];
    accesses.resize(2 * count, Access { offset: 0, strides });
    let combine = Box::new(reading_body(body, &result.dims, &accesses)?);
    Ok(Kernel::ReduceWindowBy { window: window.clone(), combine })
}

/// The sizes of an input after padding and base dilation.
pub(crate) fn padded_dims(dims: &[usize], window: &WindowSpec) -> Vec<usize> {
    (0..dims.len())
        .map(|d| {
            let spread = dims[d] as i64 + (dims[d].saturating_sub(1) * (window.base_dilations[d] - 1)) as i64;
            (spread + window.padding[d].0 + window.padding[d].1).max(0) as usize
        })
        .collect()
}

/// The region that combines single elements with single updates.
fn scatter_region(combiner: &Option<Reducer>, operand: &Shape) -> Result<Option<Box<Region>>> {
    match combiner {
        None => Ok(None),
        // A body may be that of several operands at once.
        Some(Reducer::Body(body)) => {
            let scalar = vec![true; body.parameters().len()];
            Ok(Some(Box::new(region_of_body(body, &[], &scalar)?)))
        }
        Some(reducer) => combining_region(reducer, operand.dtype, &[]).map(Some),
    }
}

/// The region that combines two arrays element by element.
pub(super) fn combining_region(reducer: &Reducer, dtype: DType, dims: &[usize]) -> Result<Box<Region>> {
    let made;
    let body: &Graph = match reducer {
        Reducer::Body(body) => body,
        Reducer::Op(op) => {
            let mut b = Builder::new();
            let x = b.parameter(Shape::scalar(dtype));
            let y = b.parameter(Shape::scalar(dtype));
            let r = b.tile(super::lower::tile_op(*op), &[x, y]);
            made = b.finish(vec![r]);
            &made
        }
    };
    Ok(Box::new(region_of_body(body, dims, &[false, false])?))
}
