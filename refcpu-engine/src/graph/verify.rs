//! Whether a graph means something: operands in number and type as each operation wants them, results as they follow.

use super::{Body, CollectiveKind, Definition, Graph, Node, Op, Reducer, Shape, is_elementwise};
use refcpu_kernels::DType;
use refcpu_kernels::fft::FftKind;

/// Bodies may be nested this deep.
pub(crate) const MAX_DEPTH: usize = 256;

type Check<T = ()> = Result<T, String>;

/// Checks a graph and its bodies.
///
/// # Errors
/// What is wrong with the first wrong node.
pub fn verify(graph: &Graph) -> Check {
    verify_nested(graph, 0)
}

fn verify_nested(graph: &Graph, depth: usize) -> Check {
    if depth > MAX_DEPTH {
        return Err(format!("bodies are nested more than {MAX_DEPTH} deep"));
    }
    let mut defined = vec![false; graph.num_values()];
    for p in graph.parameters() {
        defined[p.index()] = true;
    }
    for (n, node) in graph.nodes().iter().enumerate() {
        let wrong = |message: String| format!("node {n}: {message}");
        if let Some(v) = node.operands.iter().find(|v| !defined.get(v.index()).is_some_and(|d| *d)) {
            return Err(wrong(format!("{v:?} is used before it is defined")));
        }
        verify_node(graph, node).map_err(wrong)?;
        for body in node.op.bodies() {
            verify_nested(body, depth + 1).map_err(wrong)?;
        }
        for (i, r) in node.results().enumerate() {
            let here = Definition::Result { node: n as u32, index: i as u32 };
            if graph.definition(r) != here {
                return Err(wrong(format!("{r:?} is not its result")));
            }
            defined[r.index()] = true;
        }
    }
    match graph.results().iter().find(|v| !defined.get(v.index()).is_some_and(|d| *d)) {
        Some(v) => Err(format!("the result {v:?} is not defined")),
        None => Ok(()),
    }
}

fn need(ok: bool, what: &str) -> Check {
    if ok { Ok(()) } else { Err(what.to_string()) }
}

/// Distinct dimensions of an array of this rank.
fn need_dims(dims: &[usize], rank: usize, what: &str) -> Check {
    let distinct = dims.iter().enumerate().all(|(i, d)| *d < rank && !dims[..i].contains(d));
    need(distinct, what)
}

fn is_index(s: &Shape) -> bool {
    s.rank() == 0 && !s.dtype.is_float() && !s.dtype.is_complex() && s.dtype != DType::Pred
}

fn is_token(s: &Shape) -> bool {
    s.dtype == DType::Pred && *s.dims == [0]
}

/// Checks one node of a graph, but not its bodies.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn verify_node(g: &Graph, node: &Node) -> Check {
    let x: Vec<&Shape> = node.operands.iter().map(|v| g.shape(*v)).collect();
    let y: Vec<&Shape> = node.results().map(|v| g.shape(v)).collect();
    let counts = |operands: usize, results: usize| {
        let what =
            format!("{} operands and {} results of {:?}", x.len(), y.len(), std::mem::discriminant(&node.op));
        need(x.len() == operands && y.len() == results, &what)
    };
    let same_type = |a: &Shape, b: &Shape| need(a.dtype == b.dtype, "element types differ");
    let same = |a: &Shape, b: &Shape| need(a == b, "types differ");
    match &node.op {
        Op::Constant(c) => {
            counts(0, 1)?;
            same(&c.shape, y[0])?;
            let expected = if c.splat { c.shape.dtype.size() } else { c.shape.bytes() };
            need(c.bytes.len() == expected, "a constant with too few or too many bytes")
        }
        Op::Iota { dim } => {
            counts(0, 1)?;
            need(*dim < y[0].rank(), "iota along a dimension that is not there")
        }
        Op::Tile(op) => {
            counts(op.arity(), 1)?;
            need(x.iter().all(|s| *s == x[0] && s.dims == y[0].dims), "operands of different types")
        }
        Op::Compare(..) => {
            counts(2, 1)?;
            same(x[0], x[1])?;
            same(&x[0].with_dtype(DType::Pred), y[0])
        }
        Op::Select => {
            counts(3, 1)?;
            same(&y[0].with_dtype(DType::Pred), x[0])?;
            same(x[1], y[0])?;
            same(x[2], y[0])
        }
        Op::Clamp => {
            counts(3, 1)?;
            x.iter().try_for_each(|s| same(s, y[0]))
        }
        Op::Convert | Op::ReducePrecision { .. } => {
            counts(1, 1)?;
            need(x[0].dims == y[0].dims, "dimensions differ")
        }
        Op::Bitcast => {
            counts(1, 1)?;
            if is_elementwise(&node.op, &x, y[0]) {
                return need(x[0].dims == y[0].dims, "dimensions differ");
            }
            let bits = |s: &Shape| s.len().checked_mul(s.dtype.bits());
            need(bits(x[0]) == bits(y[0]), "numbers of bits differ")
        }
        Op::Broadcast { dims } => {
            counts(1, 1)?;
            same_type(x[0], y[0])?;
            need_dims(dims, y[0].rank(), "broadcast to dimensions that are not there")?;
            need(dims.len() == x[0].rank(), "a broadcast of some dimensions only")?;
            need(
                dims.iter().zip(&*x[0].dims).all(|(d, n)| y[0].dims[*d] == *n),
                "a broadcast that changes sizes",
            )
        }
        Op::Reshape => {
            counts(1, 1)?;
            same_type(x[0], y[0])?;
            need(
                x[0].bytes() == y[0].bytes() && x[0].is_empty() == y[0].is_empty(),
                "a reshape that changes the number of elements",
            )
        }
        Op::Transpose { permutation } => {
            counts(1, 1)?;
            same_type(x[0], y[0])?;
            need_dims(permutation, x[0].rank(), "no permutation")?;
            need(
                permutation.len() == x[0].rank() && y[0].rank() == x[0].rank(),
                "no permutation of all dimensions",
            )?;
            need(
                permutation.iter().zip(&*y[0].dims).all(|(p, n)| x[0].dims[*p] == *n),
                "sizes do not fit the permutation",
            )
        }
        Op::Slice { start, stride } => {
            counts(1, 1)?;
            same_type(x[0], y[0])?;
            let rank = x[0].rank();
            need(start.len() == rank && stride.len() == rank && y[0].rank() == rank, "ranks differ")?;
            let inside = |d: usize| {
                let n = y[0].dims[d];
                let last =
                    n.checked_sub(1).map(|n| n.checked_mul(stride[d]).and_then(|o| o.checked_add(start[d])));
                stride[d] > 0
                    && start[d] <= x[0].dims[d]
                    && last.is_none_or(|l| l.is_some_and(|l| l < x[0].dims[d]))
            };
            need((0..rank).all(inside), "a slice that leaves the array")
        }
        Op::Reverse { dims } => {
            counts(1, 1)?;
            same(x[0], y[0])?;
            need_dims(dims, x[0].rank(), "dimensions that are not there")
        }
        Op::Pad { low, high, interior } => {
            counts(2, 1)?;
            same_type(x[0], y[0])?;
            need(x[1].rank() == 0 && x[1].dtype == y[0].dtype, "the padding is no element")?;
            let rank = x[0].rank();
            let ranks = [low.len(), high.len(), interior.len(), y[0].rank()];
            need(ranks.iter().all(|n| *n == rank), "ranks differ")?;
            let fits = |d: usize| {
                let n = x[0].dims[d] as i128;
                let size =
                    i128::from(low[d]) + n + (n - 1).max(0) * i128::from(interior[d]) + i128::from(high[d]);
                interior[d] >= 0 && size.max(0) == y[0].dims[d] as i128
            };
            need((0..rank).all(fits), "the result is not as large as the padding makes it")
        }
        Op::Concatenate { dim } => {
            need(!x.is_empty() && y.len() == 1, "nothing to concatenate")?;
            need(*dim < y[0].rank(), "no such dimension")?;
            let alike = |s: &&Shape| {
                s.dtype == y[0].dtype
                    && s.rank() == y[0].rank()
                    && (0..s.rank()).all(|d| d == *dim || s.dims[d] == y[0].dims[d])
            };
            need(x.iter().all(alike), "arrays that do not fit together")?;
            let total = x.iter().try_fold(0usize, |n, s| n.checked_add(s.dims[*dim]));
            need(total == Some(y[0].dims[*dim]), "the result is not as long as its parts")
        }
        Op::Reduce { dims, reducer } => {
            let n = y.len();
            need(n > 0 && x.len() == 2 * n, "as many initial values as inputs")?;
            need_dims(dims, x[0].rank(), "no such dimensions")?;
            let kept: Vec<usize> =
                (0..x[0].rank()).filter(|d| !dims.contains(d)).map(|d| x[0].dims[d]).collect();
            for i in 0..n {
                need(
                    x[i].dims == x[0].dims && *y[i].dims == *kept && x[i].dtype == y[i].dtype,
                    "sizes differ",
                )?;
                same(x[n + i], &Shape::scalar(y[i].dtype))?;
            }
            verify_reducer(reducer, &y)
        }
        Op::ArgReduce { dim, .. } => {
            counts(1, 2)?;
            need(*dim < x[0].rank() && x[0].dims[*dim] > 0 && !x[0].dtype.is_complex(), "no such dimension")?;
            let mut kept = x[0].dims.to_vec();
            kept.remove(*dim);
            need(*y[0].dims == *kept && *y[1].dims == *kept && x[0].dtype == y[0].dtype, "sizes differ")?;
            need(is_index(&Shape::scalar(y[1].dtype)), "indices are integers")
        }
        Op::ReduceWindow { window, reducer } => {
            let n = y.len();
            need(n > 0 && x.len() == 2 * n, "as many initial values as inputs")?;
            let expected = window.output_dims(&x[0].dims)?;
            for i in 0..n {
                need(
                    x[i].dims == x[0].dims && *y[i].dims == *expected && x[i].dtype == y[i].dtype,
                    "sizes differ",
                )?;
                same(x[n + i], &Shape::scalar(y[i].dtype))?;
            }
            verify_reducer(reducer, &y)
        }
        Op::SelectAndScatter { window, scatter, .. } => {
            counts(3, 1)?;
            same(x[0], y[0])?;
            same(x[2], &Shape::scalar(y[0].dtype))?;
            let expected = window.output_dims(&x[0].dims)?;
            need(x[1].dtype == y[0].dtype && *x[1].dims == *expected, "one source for each window")?;
            let plain = window.base_dilations.iter().chain(&window.window_dilations).all(|d| *d == 1);
            need(
                plain && scatter.supports(y[0].dtype) && !y[0].dtype.is_complex(),
                "not for this type or window",
            )
        }
        Op::Dot(dims) => {
            counts(2, 1)?;
            let expected = dims.output_dims(&x[0].dims, &x[1].dims)?;
            need(*y[0].dims == *expected, "the result has other dimensions")
        }
        Op::Convolution(spec) => {
            counts(2, 1)?;
            let expected = spec.output_dims(&x[0].dims, &x[1].dims)?;
            need(*y[0].dims == *expected, "the result has other dimensions")
        }
        Op::Gather(d) => {
            counts(2, 1)?;
            same_type(x[0], y[0])?;
            let rank = x[0].rank();
            need(
                d.slice_sizes.len() == rank && is_index(&Shape::scalar(x[1].dtype)),
                "slice sizes or indices",
            )?;
            need_dims(&d.collapsed_slice_dims, rank, "collapsed dimensions")?;
            need_dims(&d.operand_batching_dims, rank, "batching dimensions")?;
            need_dims(&d.start_index_map, rank, "start index map")?;
            need_dims(&d.offset_dims, y[0].rank(), "offset dimensions")?;
            need(d.slice_sizes.iter().zip(&*x[0].dims).all(|(s, n)| s <= n), "a slice larger than the array")
        }
        Op::Scatter { dims, combiner } => {
            let n = y.len();
            need(n > 0 && x.len() == 2 * n + 1, "as many updates as operands")?;
            for i in 0..n {
                same(x[i], y[i])?;
                need(x[i].dims == x[0].dims && x[n + 1 + i].dims == x[n + 1].dims, "sizes differ")?;
                need(x[n + 1 + i].dtype == y[i].dtype, "element types differ")?;
            }
            need_dims(&dims.update_window_dims, x[n + 1].rank(), "window dimensions")?;
            need_dims(&dims.inserted_window_dims, x[0].rank(), "inserted dimensions")?;
            need_dims(&dims.scatter_dims_to_operand_dims, x[0].rank(), "scattered dimensions")?;
            need(is_index(&Shape::scalar(x[n].dtype)), "indices are integers")?;
            combiner.as_ref().map_or(Ok(()), |r| verify_reducer(r, &y))
        }
        Op::DynamicSlice => {
            need(
                x.len() == 1 + x.first().map_or(0, |s| s.rank()) && y.len() == 1,
                "one start for each dimension",
            )?;
            same_type(x[0], y[0])?;
            need(x[1..].iter().all(|s| is_index(s)), "starts are integers")?;
            need(
                y[0].rank() == x[0].rank() && y[0].dims.iter().zip(&*x[0].dims).all(|(a, b)| a <= b),
                "a slice larger than the array",
            )
        }
        Op::DynamicUpdateSlice => {
            need(
                x.len() == 2 + x.first().map_or(0, |s| s.rank()) && y.len() == 1,
                "one start for each dimension",
            )?;
            same(x[0], y[0])?;
            same_type(x[1], y[0])?;
            need(x[2..].iter().all(|s| is_index(s)), "starts are integers")?;
            need(
                x[1].rank() == x[0].rank() && x[1].dims.iter().zip(&*x[0].dims).all(|(a, b)| a <= b),
                "an update larger than the array",
            )
        }
        Op::Sort { dim, keys } => {
            sorted(&x, &y, *dim)?;
            need(!keys.is_empty() && keys.iter().all(|k| k.operand < x.len()), "keys that are not there")
        }
        Op::SortBy { dim, comparator } => {
            sorted(&x, &y, *dim)?;
            let scalars: Vec<Shape> =
                x.iter().flat_map(|s| [Shape::scalar(s.dtype), Shape::scalar(s.dtype)]).collect();
            body(comparator, &scalars, &[Shape::scalar(DType::Pred)])
        }
        Op::TopK { .. } => {
            counts(1, 2)?;
            same_type(x[0], y[0])?;
            let (Some((n, outer)), Some((k, kept))) = (x[0].dims.split_last(), y[0].dims.split_last()) else {
                return Err("a scalar has no rows".to_string());
            };
            need(
                k <= n && outer == kept && y[1].dtype == DType::S32 && y[0].dims == y[1].dims,
                "sizes differ",
            )
        }
        Op::While { carried, condition, body: next } => {
            need(y.len() == *carried && x.len() >= *carried, "carried values")?;
            for (a, b) in x.iter().zip(&y) {
                same(a, b)?;
            }
            let inputs: Vec<Shape> = x.iter().map(|s| (*s).clone()).collect();
            body(condition, &inputs, &[Shape::scalar(DType::Pred)])?;
            body(next, &inputs, &inputs[..*carried])
        }
        Op::Case { branches } => {
            need(!branches.is_empty() && !x.is_empty(), "no branches")?;
            same(x[0], &Shape::scalar(DType::S32))?;
            let inputs: Vec<Shape> = x[1..].iter().map(|s| (*s).clone()).collect();
            let results: Vec<Shape> = y.iter().map(|s| (*s).clone()).collect();
            branches.iter().try_for_each(|b| body(b, &inputs, &results))
        }
        Op::RngBits(_) => {
            counts(1, 2)?;
            same(x[0], y[0])?;
            need(
                x[0].dtype == DType::U64 && (2..=3).contains(&x[0].len()) && x[0].rank() == 1,
                "a state of 2 or 3 words",
            )
        }
        Op::RngUniform | Op::RngNormal => {
            counts(2, 1)?;
            x.iter().try_for_each(|s| same(s, &Shape::scalar(y[0].dtype)))
        }
        Op::Fft { kind, lengths } => {
            counts(1, 1)?;
            let first = x[0].rank().checked_sub(lengths.len()).ok_or("more lengths than dimensions")?;
            need(
                x[0].rank() == y[0].rank() && x[0].dims[..first] == y[0].dims[..first],
                "batch dimensions differ",
            )?;
            let half = |s: &Shape| {
                let mut expected = lengths.clone();
                if let Some(last) = expected.last_mut() {
                    *last = *last / 2 + usize::from(*last > 0);
                }
                s.dims[first..] == expected[..]
            };
            let whole = |s: &Shape| s.dims[first..] == lengths[..];
            match kind {
                FftKind::Fft | FftKind::Ifft => need(whole(x[0]) && x[0] == y[0], "sizes differ"),
                FftKind::Rfft => need(whole(x[0]) && half(y[0]), "sizes differ"),
                FftKind::Irfft => need(half(x[0]) && whole(y[0]), "sizes differ"),
            }
        }
        Op::Cholesky { .. } => {
            counts(1, 1)?;
            same(x[0], y[0])?;
            need(square(x[0]), "no square matrices")
        }
        Op::TriangularSolve(spec) => {
            counts(2, 1)?;
            same(x[1], y[0])?;
            same_type(x[0], y[0])?;
            need(square(x[0]) && x[1].rank() == x[0].rank(), "no square matrices")?;
            let rank = x[0].rank();
            let side = x[1].dims[if spec.left_side { rank - 2 } else { rank - 1 }];
            need(
                x[0].dims[..rank - 2] == x[1].dims[..rank - 2] && side == x[0].dims[rank - 1],
                "sizes differ",
            )
        }
        Op::QrFactor => {
            counts(1, 2)?;
            same(x[0], y[0])?;
            let rank = x[0].rank();
            need(rank >= 2 && y[1].rank() == rank - 1 && y[1].dtype == x[0].dtype, "no matrices")?;
            let least = x[0].dims[rank - 2].min(x[0].dims[rank - 1]);
            need(
                y[1].dims[rank - 2] == least && y[1].dims[..rank - 2] == x[0].dims[..rank - 2],
                "sizes differ",
            )
        }
        Op::QrProduct => {
            counts(2, 1)?;
            same(x[0], y[0])?;
            let rank = x[0].rank();
            need(rank >= 2 && x[1].rank() == rank - 1 && x[1].dtype == x[0].dtype, "no matrices")?;
            let fits =
                x[0].dims[rank - 2] >= x[0].dims[rank - 1] && x[1].dims[rank - 2] <= x[0].dims[rank - 1];
            need(fits && x[1].dims[..rank - 2] == x[0].dims[..rank - 2], "sizes differ")
        }
        Op::Linalg(op) => {
            let operands: Vec<_> = x.iter().map(|s| (s.dtype, &*s.dims)).collect();
            let results = op.results(&operands)?;
            let found = y.iter().map(|s| (s.dtype, &*s.dims));
            need(results.iter().map(|(dtype, dims)| (*dtype, &dims[..])).eq(found), "types differ")
        }
        Op::Map(b) => {
            need(x.iter().all(|s| y.first().is_some_and(|r| s.dims == r.dims)), "sizes differ")?;
            let scalars =
                |shapes: &[&Shape]| shapes.iter().map(|s| Shape::scalar(s.dtype)).collect::<Vec<_>>();
            body(b, &scalars(&x), &scalars(&y))
        }
        Op::Collective(c) => {
            counts(1, 1)?;
            same_type(x[0], y[0])?;
            let rank = x[0].rank();
            need(y[0].rank() == rank, "ranks differ")?;
            match &c.kind {
                CollectiveKind::AllReduce(r) => {
                    same(x[0], y[0])?;
                    verify_reducer(r, &y)
                }
                CollectiveKind::ReduceScatter { reducer, dim } => {
                    need(*dim < rank, "no such dimension")?;
                    verify_reducer(reducer, &y)
                }
                CollectiveKind::AllGather { dim } => need(*dim < rank, "no such dimension"),
                CollectiveKind::AllToAll { split, concat, count } => {
                    need(*split < rank && *concat < rank && *count > 0, "no such dimension")?;
                    need(x[0].dims[*split].is_multiple_of(*count), "parts of different sizes")
                }
                CollectiveKind::Permute { .. } | CollectiveKind::Broadcast => same(x[0], y[0]),
            }
        }
        Op::HostSend { .. } => {
            counts(2, 1)?;
            need(is_token(x[1]) && is_token(y[0]), "no token")
        }
        Op::HostReceive { .. } => {
            counts(1, 2)?;
            need(is_token(x[0]) && is_token(y[1]), "no token")
        }
        Op::Foreign(call) => {
            counts(call.operand_dims.len(), call.result_dims.len())?;
            let size =
                |dims: &[i64]| dims.iter().try_fold(1i64, |n, d| n.checked_mul(*d).filter(|_| *d >= 0));
            let told = call.operand_dims.iter().chain(&call.result_dims);
            need(
                x.iter().chain(&y).zip(told).all(|(s, dims)| size(dims) == i64::try_from(s.len()).ok()),
                "a handler that is told other dimensions",
            )?;
            need(
                call.aliases.iter().all(|(i, k)| *i < x.len() && *k < y.len() && x[*i] == y[*k]),
                "a result of a handler that is not as the operand whose memory it has",
            )
        }
        Op::PartitionId | Op::ReplicaId => {
            counts(0, 1)?;
            same(y[0], &Shape::scalar(DType::U32))
        }
        Op::Manual { spec, body: b } => {
            need(
                spec.inputs.len() == x.len() && spec.outputs.len() == y.len(),
                "one sharding for each array",
            )?;
            need(
                b.parameters().len() == x.len() && b.results().len() == y.len(),
                "the body takes other arrays",
            )?;
            need_dims(&spec.axes, spec.mesh.len(), "no such axes")?;
            let lanes = spec.axes.iter().try_fold(1usize, |n, a| n.checked_mul(spec.mesh[*a]));
            need(lanes.is_some_and(|n| n <= 1 << 16), "too many devices")?;
            for (whole, (p, cut)) in x.iter().zip(b.parameters().iter().zip(&spec.inputs)) {
                is_part(spec, whole, b.shape(*p), cut)?;
            }
            for (whole, (r, cut)) in y.iter().zip(b.results().iter().zip(&spec.outputs)) {
                is_part(spec, whole, b.shape(*r), cut)?;
            }
            Ok(())
        }
        Op::Barrier => {
            need(x.len() == y.len(), "as many results as operands")?;
            x.iter().zip(&y).try_for_each(|(a, b)| same(a, b))
        }
    }
}

fn square(s: &Shape) -> bool {
    let rank = s.rank();
    rank >= 2 && s.dims[rank - 1] == s.dims[rank - 2]
}

fn sorted(x: &[&Shape], y: &[&Shape], dim: usize) -> Check {
    need(!x.is_empty() && x.len() == y.len() && dim < x[0].rank(), "nothing to sort")?;
    need(x.iter().zip(y).all(|(a, b)| a == b && a.dims == x[0].dims), "sizes differ")
}

/// Checks what a body takes and gives; what it does is checked by itself.
fn body(b: &Body, parameters: &[Shape], results: &[Shape]) -> Check {
    let takes = b.parameters().iter().map(|v| b.shape(*v)).eq(parameters);
    let gives = b.results().iter().map(|v| b.shape(*v)).eq(results);
    need(takes && gives, "a body that takes or gives other types")
}

fn verify_reducer(reducer: &Reducer, results: &[&Shape]) -> Check {
    let scalars: Vec<Shape> = results.iter().map(|s| Shape::scalar(s.dtype)).collect();
    match reducer {
        Reducer::Op(op) => need(results.len() == 1 && op.supports(results[0].dtype), "not for this type"),
        Reducer::Body(b) => {
            let parameters: Vec<Shape> = scalars.iter().chain(&scalars).cloned().collect();
            body(b, &parameters, &scalars)
        }
    }
}

/// Checks that a part is what cutting the whole gives.
fn is_part(spec: &super::ManualSpec, whole: &Shape, part: &Shape, cut: &[Vec<usize>]) -> Check {
    need(whole.dtype == part.dtype && whole.rank() == part.rank(), "parts of another type")?;
    let fits = |d: usize| {
        let axes = cut.get(d).map_or(&[][..], Vec::as_slice);
        let count = axes.iter().try_fold(1usize, |n, a| n.checked_mul(*spec.mesh.get(*a)?));
        count.and_then(|n| n.checked_mul(part.dims[d])) == Some(whole.dims[d])
    };
    need((0..whole.rank()).all(fits), "parts of other sizes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Builder;
    use refcpu_kernels::tile::TileOp;

    #[test]
    fn shapes_that_do_not_follow_are_found() {
        let mut b = Builder::new();
        let x = b.parameter(Shape::new(DType::F32, &[2, 3]));
        let y = b.tile(TileOp::Sine, &[x]);
        assert_eq!(verify(&b.finish(vec![y])), Ok(()));
        let wrong = [
            Op::Slice { start: vec![0, 2], stride: vec![1, 1] },
            Op::Transpose { permutation: vec![0, 0] },
            Op::Concatenate { dim: 2 },
            Op::Broadcast { dims: vec![0, 5] },
            Op::Select,
        ];
        for op in wrong {
            let mut b = Builder::new();
            let x = b.parameter(Shape::new(DType::F32, &[2, 3]));
            let y = b.node(op.clone(), vec![x], vec![Shape::new(DType::F32, &[2, 2])]);
            assert!(verify(&b.finish(y)).is_err(), "{op:?}");
        }
    }
}
