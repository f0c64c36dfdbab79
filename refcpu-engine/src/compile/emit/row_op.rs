//! Operations that work on rows independently of each other, as operations on a block of rows.

use crate::graph::{Op, Reducer, ops};
use crate::plan::Call;
use crate::storage::View;

/// An operation on blocks of rows.
pub(super) struct RowOp {
    /// The operation, whose first dimension counts the rows of a block.
    pub(super) op: Op,
    /// The dimensions of a row of each operand; `None` for operands that all rows share.
    pub(super) reads: Vec<Option<Box<[usize]>>>,
    /// The dimensions of a row of each result.
    pub(super) writes: Vec<Box<[usize]>>,
}

/// Returns the operation of a call on blocks of rows, where `rows` is the number of points of the leading dimensions; `None` if
/// rows depend on each other, or no leading dimensions have this number of points.
pub(super) fn row_op(op: &Op, call: &Call, rows: usize) -> Option<RowOp> {
    let (x, y) = (call.reads.first()?, call.writes.first()?);
    let leading = (1..=x.dims.len()).find(|k| x.dims[..*k].iter().product::<usize>() == rows)?;
    if leading > independent(op, x, y) || y.dims.get(..leading) != Some(&x.dims[..leading]) {
        return None;
    }
    // The initial values of reductions, and the padding value, are the same for all rows.
    let is_shared = |view: &View| view.dims.is_empty();
    let row = |view: &View| view.dims[leading..].into();
    Some(RowOp {
        op: with_leading(op, leading - 1),
        reads: call.reads.iter().map(|view| (!is_shared(view)).then(|| row(view))).collect(),
        writes: call.writes.iter().map(row).collect(),
    })
}

/// Returns the number of leading dimensions along which an operation that reads `x` and writes `y` computes each point from the
/// same point of its operands.
fn independent(op: &Op, x: &View, y: &View) -> usize {
    let first =
        |is_kept: &dyn Fn(usize) -> bool| (0..x.dims.len()).find(|d| !is_kept(*d)).unwrap_or(x.dims.len());
    match op {
        Op::Reverse(ops::Reverse { dims }) => first(&|d| !dims.contains(&d)),
        Op::Concatenate(ops::Concatenate { dim, .. }) => *dim,
        Op::Slice(ops::Slice { start, stride }) => {
            first(&|d| start[d] == 0 && stride[d] == 1 && x.dims[d] == y.dims[d])
        }
        Op::Pad(ops::Pad { low, high, interior }) => {
            first(&|d| low[d] == 0 && high[d] == 0 && (interior[d] == 0 || x.dims[d] == 1))
        }
        Op::Transpose(ops::Transpose { permutation }) => first(&|d| permutation[d] == d),
        Op::Broadcast(ops::Broadcast { dims }) => first(&|d| dims[d] == d),
        Op::Reduce(ops::Reduce { dims, reducer: Reducer::Op(_) }) => first(&|d| !dims.contains(&d)),
        Op::ArgReduce(ops::ArgReduce { dim, .. }) => *dim,
        _ => 0,
    }
}

/// Returns an operation without its first `removed` dimensions.
fn with_leading(op: &Op, removed: usize) -> Op {
    let shifted = |dims: &[usize]| dims.iter().map(|d| d - removed).collect::<Vec<_>>();
    match op {
        Op::Reverse(ops::Reverse { dims }) => Op::Reverse(ops::Reverse { dims: shifted(dims) }),
        Op::Concatenate(ops::Concatenate { dim, parts }) => {
            Op::Concatenate(ops::Concatenate { dim: dim - removed, parts: parts.clone() })
        }
        Op::Slice(ops::Slice { start, stride }) => {
            Op::Slice(ops::Slice { start: start[removed..].to_vec(), stride: stride[removed..].to_vec() })
        }
        Op::Pad(ops::Pad { low, high, interior }) => Op::Pad(ops::Pad {
            low: low[removed..].to_vec(),
            high: high[removed..].to_vec(),
            interior: interior[removed..].to_vec(),
        }),
        Op::Transpose(ops::Transpose { permutation }) => {
            Op::Transpose(ops::Transpose { permutation: shifted(&permutation[removed..]) })
        }
        Op::Broadcast(ops::Broadcast { dims }) => {
            Op::Broadcast(ops::Broadcast { dims: shifted(&dims[removed..]) })
        }
        Op::Reduce(ops::Reduce { dims, reducer }) => {
            Op::Reduce(ops::Reduce { dims: shifted(dims), reducer: reducer.clone() })
        }
        Op::ArgReduce(ops::ArgReduce { dim, op }) => {
            Op::ArgReduce(ops::ArgReduce { dim: dim - removed, op: *op })
        }
        other => unreachable!("{} has no rows", other.name()),
    }
}
