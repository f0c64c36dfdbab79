//! Selects instructions for the nodes of a graph: kernels with their operands, and aliases of existing arrays.

use crate::compile::api::{CompileError, Result};
use crate::compile::optimise::{Fusion, fuse, fused_reduction, reading_body, region_of, region_of_body};
use crate::graph::{Builder, Execution, Graph, Node, Op, Reducer, Shape, ValueId, ops};
use crate::plan::Kernel;
use refcpu_kernels::DType;
use refcpu_kernels::index::scatter_supports;
use refcpu_kernels::region::{Access, Region};
use refcpu_kernels::window::WindowSpec;

/// An instruction for a node.
pub(super) struct Instruction {
    /// The index of the node in the graph.
    pub(super) node: usize,
    pub(super) kind: InstructionKind,
    /// The arrays that the instruction reads: for kernels in the order of their operands, otherwise each array once.
    pub(super) reads: Vec<ValueId>,
}

/// The kind of an instruction.
pub(super) enum InstructionKind {
    /// The results are the operands, or reinterpretations of them with the same number of bytes.
    Alias,
    /// The result is a part of the operand that begins at this byte.
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

/// Returns the instructions of a graph, and for each value the number of instructions that read it, plus one for each result
/// that it is.
///
/// # Errors
/// Returns an error if the graph contains an operation that no kernel supports.
pub(super) fn select(graph: &Graph, fused: bool) -> Result<(Vec<Instruction>, Vec<usize>)> {
    let fusion = if fused { fuse(graph, &graph.uses()) } else { Fusion::none(graph) };
    let mut all = Vec::new();
    for (n, node) in graph.nodes().iter().enumerate() {
        let dropped = node.results == 1 && fusion.is_inlined(node.first_result);
        if dropped || matches!(node.op, Op::Constant(_)) {
            continue;
        }
        let (kind, reads) = instruction(graph, &fusion, node).map_err(|mut e| {
            if e.location.is_empty() {
                e.location = node.location.brief().to_string();
            }
            if e.op.is_empty() {
                e.op = node.op.name().to_string();
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
        all.push(Instruction { node: n, kind, reads });
    }
    let mut uses = vec![0usize; graph.num_values()];
    for instruction in &all {
        for (i, v) in instruction.reads.iter().enumerate() {
            if !instruction.reads[..i].contains(v) {
                uses[v.index()] += 1;
            }
        }
    }
    for r in graph.results() {
        uses[r.index()] += 1;
    }
    Ok((all, uses))
}

fn distinct(values: &[ValueId]) -> Vec<ValueId> {
    let mut seen = std::collections::HashSet::new();
    values.iter().copied().filter(|v| seen.insert(*v)).collect()
}

fn instruction(graph: &Graph, fusion: &Fusion, node: &Node) -> Result<(InstructionKind, Vec<ValueId>)> {
    let operands = &node.operands;
    let result = || graph.shape(node.first_result);
    let alias = |v: &[ValueId]| Ok((InstructionKind::Alias, distinct(v)));
    let fused = || {
        let fused = region_of(graph, fusion, node.first_result)?;
        Ok((InstructionKind::Call(Kernel::Region(Box::new(fused.region))), fused.inputs))
    };
    let inlined_operand = operands.first().is_some_and(|v| fusion.is_inlined(*v));
    match &node.op {
        Op::Barrier => alias(operands),
        Op::Reshape if !inlined_operand => alias(operands),
        Op::Bitcast if !inlined_operand && is_reinterpretation(graph.shape(operands[0]), result()) => {
            alias(operands)
        }
        Op::Slice(ops::Slice { start, stride }) if !inlined_operand => {
            match contiguous(graph.shape(operands[0]), result(), start, stride) {
                Some(offset) => Ok((InstructionKind::Part { offset }, operands.clone())),
                None => kernel(graph, node),
            }
        }
        Op::Broadcast(_) | Op::Transpose(_) | Op::Reshape | Op::Slice(_) | Op::Reverse(_)
            if inlined_operand =>
        {
            fused()
        }
        Op::Iota(_) if result().dtype != refcpu_kernels::DType::Pred => fused(),
        Op::Reduce(_) if inlined_operand && fused_reduction(graph, node).is_some() => fused(),
        Op::While(_) => Ok((InstructionKind::While, distinct(operands))),
        Op::Case(_) => Ok((InstructionKind::Case, distinct(operands))),
        Op::Collective(_) => Ok((InstructionKind::Collective, distinct(operands))),
        Op::HostSend(_) | Op::HostReceive(_) => Ok((InstructionKind::Host, distinct(operands))),
        Op::Manual(_) => Ok((InstructionKind::Manual, distinct(operands))),
        op => {
            let shapes: Vec<&Shape> = operands.iter().map(|v| graph.shape(*v)).collect();
            if node.results == 1 && op.is_elementwise(&shapes, result()) {
                fused()
            } else {
                kernel(graph, node)
            }
        }
    }
}

/// Returns whether one type reinterprets the bytes of the other. Elements of less than a byte occupy one byte each, so that
/// their bits are not contiguous.
fn is_reinterpretation(from: &Shape, to: &Shape) -> bool {
    let whole = |s: &Shape| s.dtype.bits() == 8 * s.dtype.size();
    whole(from) && whole(to) && from.bytes() == to.bytes()
}

/// Returns the first byte of a slice whose elements are contiguous in the operand; `None` for other slices.
fn contiguous(from: &Shape, to: &Shape, start: &[usize], stride: &[usize]) -> Option<usize> {
    if stride.iter().zip(&*to.dims).any(|(s, n)| *s != 1 && *n > 1) || to.is_empty() {
        return None;
    }
    // All dimensions before the last one that the slice reduces must have size one.
    let cut = (0..to.rank()).rev().find(|d| from.dims[*d] != to.dims[*d])?;
    if to.dims[..cut].iter().any(|n| *n != 1) {
        return None;
    }
    let flat = start.iter().zip(&*from.dims).fold(0, |at, (s, n)| at * n + s);
    Some(flat * to.dtype.size())
}

/// Returns the kernel of a node that is not part of a region, with the operands of the node.
pub(super) fn kernel(graph: &Graph, node: &Node) -> Result<(InstructionKind, Vec<ValueId>)> {
    let shape = |i: usize| graph.shape(node.operands[i]);
    let result = || graph.shape(node.first_result);
    let kernel = match &node.op {
        Op::Reduce(ops::Reduce { dims, reducer: Reducer::Body(body) }) => reduce_by(body, shape(0), dims)?,
        Op::ReduceWindow(ops::ReduceWindow { window, reducer: Reducer::Body(body) }) => {
            reduce_window_by(body, shape(0), result(), window)?
        }
        Op::Scatter(scatter) if !has_kernel(scatter, node.results, shape(0).dtype) => {
            let combine = scatter_region(&scatter.combiner, shape(0))?;
            Kernel::ScatterBy { dims: scatter.dims.clone(), combine }
        }
        Op::SortBy(ops::SortBy { dim, comparator }) => {
            let scalar = vec![true; comparator.parameters().len()];
            Kernel::SortBy { dim: *dim, less: Box::new(region_of_body(comparator, &[], &scalar)?) }
        }
        Op::Map(body) => {
            let scalar = vec![false; body.parameters().len()];
            Kernel::Region(Box::new(region_of_body(body, &result().dims, &scalar)?))
        }
        Op::Iota(_) => {
            return Err(CompileError::unimplemented("an iota of element type i1 is not supported"));
        }
        op if has_own_kernel(graph, node) => Kernel::Op(op.clone()),
        op => return Err(CompileError::internal(format!("there is no kernel for {op:?}"))),
    };
    Ok((InstructionKind::Call(kernel), node.operands.clone()))
}

fn has_own_kernel(graph: &Graph, node: &Node) -> bool {
    let x: Vec<&Shape> = node.operands.iter().map(|v| graph.shape(*v)).collect();
    let y: Vec<&Shape> = node.results().map(|v| graph.shape(v)).collect();
    node.op.operation().execution(&x, &y) == Execution::Kernel
}

/// Returns whether a kernel implements this scatter for this element type.
fn has_kernel(scatter: &ops::Scatter, results: u32, dtype: DType) -> bool {
    results == 1 && scatter.combiner().is_some_and(|c| scatter_supports(c, dtype))
}

/// Returns the kernel of a reduction by a body, which combines rows in pairs until one is left.
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

/// Returns the kernel of a reduction over windows by a body, which processes one element of every window at a time.
fn reduce_window_by(body: &Graph, input: &Shape, result: &Shape, window: &WindowSpec) -> Result<Kernel> {
    let count = body.results().len();
    let padded = window.padded_dims(&input.dims);
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

/// Returns the region that combines one element with one update.
fn scatter_region(combiner: &Option<Reducer>, operand: &Shape) -> Result<Option<Box<Region>>> {
    match combiner {
        None => Ok(None),
        // The body may combine several operands at once.
        Some(Reducer::Body(body)) => {
            let scalar = vec![true; body.parameters().len()];
            Ok(Some(Box::new(region_of_body(body, &[], &scalar)?)))
        }
        Some(reducer) => combining_region(reducer, operand.dtype, &[]).map(Some),
    }
}

/// Returns the region that combines two arrays elementwise.
pub(super) fn combining_region(reducer: &Reducer, dtype: DType, dims: &[usize]) -> Result<Box<Region>> {
    let made;
    let body: &Graph = match reducer {
        Reducer::Body(body) => body,
        Reducer::Op(op) => {
            let mut b = Builder::new();
            let x = b.parameter(Shape::scalar(dtype));
            let y = b.parameter(Shape::scalar(dtype));
            let r = b.tile(ops::tile_op(*op), &[x, y]);
            made = b.finish(vec![r]);
            &made
        }
    };
    Ok(Box::new(region_of_body(body, dims, &[false, false])?))
}
