//! Builds the regions of fused values.

use super::fuse::{Fusion, fused_reduction_parts};
use crate::compile::api::{CompileError, Result};
use crate::graph::{Body, Graph, Op, ValueId, ops};
use refcpu_kernels::DType;
use refcpu_kernels::region::{Access, Builder, Direction, Order, Region, RegionError, Val};
use refcpu_kernels::tile::TileOp;
use std::collections::HashMap;

/// A region, and the arrays that it reads in the order of its inputs.
pub(crate) struct Fused {
    pub(crate) region: Region,
    pub(crate) inputs: Vec<ValueId>,
}

/// The index along one dimension of an array for a point of the iteration space: `offset + step * coordinate`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Index {
    /// The dimension of the iteration space; `None` if the index is constant.
    coordinate: Option<usize>,
    step: isize,
    offset: isize,
}

impl Index {
    fn of(coordinate: usize, size: usize) -> Self {
        if size == 1 { Self::fixed(0) } else { Self { coordinate: Some(coordinate), step: 1, offset: 0 } }
    }

    fn fixed(offset: isize) -> Self {
        Self { coordinate: None, step: 0, offset }
    }
}

/// Returns the region that computes a value and everything inlined into it.
///
/// # Errors
/// Returns an error if the kernels do not support one of the operations for its types.
pub(crate) fn region_of(graph: &Graph, fusion: &Fusion, value: ValueId) -> Result<Fused> {
    let node = graph.node_of(value).expect("parameters are never inlined");
    let reduction = fused_reduction_parts(graph, node);
    let dims = match reduction {
        Some((_, _, input)) => &graph.shape(input).dims,
        None => &graph.shape(value).dims,
    };
    let mut r = Emission { graph, fusion, b: Builder::new(dims), inputs: Vec::new(), known: HashMap::new() };
    let map: Vec<Index> = dims.iter().enumerate().map(|(d, size)| Index::of(d, *size)).collect();
    let finished = match reduction {
        Some((op, trailing, input)) => {
            r.operand(input, map).and_then(|v| r.b.reduce_output(v, op, trailing).map_err(failed))
        }
        None => r.computed(value, map).and_then(|v| r.b.output(v).map_err(failed)),
    };
    finished?;
    let region = r.b.finish().map_err(failed)?;
    Ok(Fused { region, inputs: r.inputs })
}

/// Returns the region that applies a graph over scalars to arrays of one shape. The parameters of the graph are the inputs.
/// Each has the shape of the region, or is a scalar if `scalar` is true for it.
///
/// # Errors
/// Returns an error if the graph contains anything but elementwise operations and branches, or one that the kernels do not
/// support.
pub(crate) fn region_of_body(body: &Graph, dims: &[usize], scalar: &[bool]) -> Result<Region> {
    let access = |s: &bool| if *s { Access::scalar(dims.len()) } else { Access::linear(dims) };
    reading_body(body, dims, &scalar.iter().map(access).collect::<Vec<_>>())
}

/// Does the same, with a separate access pattern for each parameter.
///
/// # Errors
/// Returns the same errors as [`region_of_body`].
pub(crate) fn reading_body(body: &Graph, dims: &[usize], accesses: &[Access]) -> Result<Region> {
    let mut b = Builder::new(dims);
    let inputs = body.parameters().iter().zip(accesses);
    let inputs = inputs.map(|(p, access)| b.input(body.shape(*p).dtype, access.clone()).map_err(failed));
    let arguments = inputs.collect::<Result<Vec<_>>>()?;
    for result in applied(&mut b, body, &arguments)? {
        b.output(result).map_err(failed)?;
    }
    b.finish().map_err(failed)
}

/// Returns whether kernels can apply a graph over scalars to the elements of arrays. Other graphs run for one element at a
/// time; see `expand`.
pub(super) fn is_applicable(body: &Graph) -> bool {
    region_of_body(body, &[], &vec![true; body.parameters().len()]).is_ok()
}

/// Adds a graph over scalars to a region. Returns its results.
fn applied(b: &mut Builder, body: &Graph, arguments: &[Val]) -> Result<Vec<Val>> {
    let mut values: Vec<Option<Val>> = vec![None; body.num_values()];
    for (p, argument) in body.parameters().iter().zip(arguments) {
        values[p.index()] = Some(*argument);
    }
    for node in body.nodes() {
        let args: Vec<Val> = node
            .operands
            .iter()
            .map(|v| values[v.index()].expect("operands are defined before their users"))
            .collect();
        if let Op::Case(ops::Case { branches }) = &node.op {
            let chosen = chosen(b, branches, args[0], &args[1..])?;
            for (r, value) in node.results().zip(chosen) {
                values[r.index()] = Some(value);
            }
            continue;
        }
        let shape = body.shape(node.first_result);
        let operands: Vec<_> = node.operands.iter().map(|v| body.shape(*v)).collect();
        let value = match &node.op {
            Op::Constant(c) if c.shape.len() == 1 => b.constant_bytes(c.shape.dtype, &c.bytes),
            Op::Reshape | Op::Broadcast(_) if shape.len() == 1 => Ok(args[0]),
            op if shape.len() == 1 && op.is_elementwise(&operands, shape) => op.emit(b, &args, shape.dtype),
            other => {
                return Err(CompileError::unimplemented(format!(
                    "only elementwise operations and branches are supported in this region, not {}",
                    other.name()
                )));
            }
        };
        values[node.first_result.index()] = Some(value.map_err(failed)?);
    }
    Ok(body.results().iter().map(|r| values[r.index()].expect("results are defined")).collect())
}

/// Returns the results of the branch with this index, or of the last branch if the index is out of range. All branches are
/// computed, which costs time but has no other effect.
fn chosen(b: &mut Builder, branches: &[Body], index: Val, arguments: &[Val]) -> Result<Vec<Val>> {
    let mut results = Vec::new();
    for (k, branch) in branches.iter().enumerate().rev() {
        let others = std::mem::replace(&mut results, applied(b, branch, arguments)?);
        if others.is_empty() {
            continue;
        }
        let number = b.constant_bytes(DType::S32, &(k as i32).to_le_bytes()).map_err(failed)?;
        let here = b.compare(Direction::Eq, Order::Partial, index, number).map_err(failed)?;
        for (result, other) in results.iter_mut().zip(others) {
            *result = b.select(here, *result, other).map_err(failed)?;
        }
    }
    Ok(results)
}

fn failed(e: RegionError) -> CompileError {
    CompileError::unimplemented(e.to_string())
}

/// Returns the indices at which the operand of a movement is read if its result is read at the indices of `map`; `None` for other
/// operations.
fn moved(op: &Op, from: &[usize], to: &[usize], map: &[Index]) -> Option<Vec<Index>> {
    Some(match op {
        Op::Broadcast(ops::Broadcast { dims }) => {
            let index = |(size, d): (&usize, &usize)| if *size == 1 { Index::fixed(0) } else { map[*d] };
            from.iter().zip(dims).map(index).collect()
        }
        Op::Transpose(ops::Transpose { permutation }) => {
            let mut inner = map.to_vec();
            for (i, p) in permutation.iter().enumerate() {
                inner[*p] = map[i];
            }
            inner
        }
        Op::Slice(ops::Slice { start, stride }) => {
            let index = |(i, (start, stride)): (&Index, (&usize, &usize))| {
                let (start, stride) = (*start as isize, *stride as isize);
                Index { step: i.step * stride, offset: start + i.offset * stride, ..*i }
            };
            map.iter().zip(start.iter().zip(stride)).map(index).collect()
        }
        Op::Reverse(ops::Reverse { dims }) => {
            let index = |(d, i): (usize, &Index)| {
                let last = to[d] as isize - 1;
                if dims.contains(&d) { Index { step: -i.step, offset: last - i.offset, ..*i } } else { *i }
            };
            map.iter().enumerate().map(index).collect()
        }
        _ => return None,
    })
}

struct Emission<'a> {
    graph: &'a Graph,
    fusion: &'a Fusion,
    b: Builder,
    inputs: Vec<ValueId>,
    known: HashMap<(ValueId, Vec<Index>), Val>,
}

impl Emission<'_> {
    /// Returns a value at the indices in `map`, as an input of the region or computed in it.
    fn operand(&mut self, v: ValueId, map: Vec<Index>) -> Result<Val> {
        if let Some(val) = self.known.get(&(v, map.clone())) {
            return Ok(*val);
        }
        let val = if self.fusion.is_inlined(v) || self.graph.constant(v).is_some_and(|c| c.splat) {
            self.computed(v, map.clone())?
        } else {
            self.input(v, &self.graph.shape(v).dims, &map)?
        };
        self.known.insert((v, map), val);
        Ok(val)
    }

    /// Adds an input that reads an array with these dimensions at the indices in `map`.
    fn input(&mut self, v: ValueId, dims: &[usize], map: &[Index]) -> Result<Val> {
        let mut access = Access::scalar(self.b.dims().len());
        let mut offset = 0isize;
        let mut stride = 1isize;
        for (size, index) in dims.iter().zip(map).rev() {
            offset += index.offset * stride;
            if let Some(c) = index.coordinate {
                access.strides[c] += index.step * stride;
            }
            stride = stride.wrapping_mul(*size as isize);
        }
        access.offset = usize::try_from(offset).unwrap_or(0);
        self.inputs.push(v);
        self.b.input(self.graph.shape(v).dtype, access).map_err(failed)
    }

    /// Computes a value at the indices in `map`.
    fn computed(&mut self, v: ValueId, map: Vec<Index>) -> Result<Val> {
        let node = self.graph.node_of(v).expect("parameters are never inlined");
        let shape = self.graph.shape(v);
        let first = node.operands.first().copied();
        match &node.op {
            Op::Constant(c) => self.b.constant_bytes(c.shape.dtype, &c.bytes).map_err(failed),
            Op::Iota(ops::Iota { dim }) => self.iota(shape.dtype, map[*dim]),
            Op::Reshape => self.reshaped(first.expect("one operand"), &shape.dims, &map),
            op => {
                if let Some(x) = first
                    && let Some(inner) = moved(op, &self.graph.shape(x).dims, &shape.dims, &map)
                {
                    return self.operand(x, inner);
                }
                let mut args = Vec::with_capacity(node.operands.len());
                for x in &node.operands {
                    args.push(self.operand(*x, map.clone())?);
                }
                let located = |e: RegionError| {
                    let mut e = failed(e);
                    e.location = node.location.brief().to_string();
                    e
                };
                op.emit(&mut self.b, &args, shape.dtype).map_err(located)
            }
        }
    }

    /// Reads a reshaped value at the indices of `map`.
    fn reshaped(&mut self, x: ValueId, dims: &[usize], map: &[Index]) -> Result<Val> {
        if !self.fusion.is_inlined(x) {
            // The operand is stored as an array, whose elements have the same order in the reshaped dimensions.
            return self.input(x, dims, map);
        }
        let mut real = map.iter().zip(dims).filter(|(_, size)| **size != 1).map(|(i, _)| *i);
        let of_operand = self.graph.shape(x).dims.iter();
        let inner = of_operand
            .map(|size| if *size == 1 { Index::fixed(0) } else { real.next().unwrap_or(Index::fixed(0)) });
        let inner = inner.collect();
        self.operand(x, inner)
    }

    fn iota(&mut self, dtype: DType, index: Index) -> Result<Val> {
        let Some(c) = index.coordinate else {
            let v = self.b.constant(DType::S64, u128::from(index.offset as u64)).map_err(failed)?;
            return self.b.convert(v, dtype).map_err(failed);
        };
        if (index.step, index.offset) == (1, 0) {
            return self.b.iota(dtype, c).map_err(failed);
        }
        let step = self.b.constant(DType::S64, u128::from(index.step as u64)).map_err(failed)?;
        let offset = self.b.constant(DType::S64, u128::from(index.offset as u64)).map_err(failed)?;
        let v = self.b.iota(DType::S64, c).map_err(failed)?;
        let v = self.b.op(TileOp::Multiply, &[v, step]).map_err(failed)?;
        let v = self.b.op(TileOp::Add, &[v, offset]).map_err(failed)?;
        self.b.convert(v, dtype).map_err(failed)
    }
}
