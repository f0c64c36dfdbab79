//! The kernel calls of small loops that machine code can replace.

use crate::graph::{Constant, Op, Reducer, Shape, ops};
use refcpu_kernels::dot::DotDims;
use refcpu_kernels::machine::{Formula, Matrices};
use refcpu_kernels::reduce::ArgReduceOp;
use refcpu_kernels::{DType, ReduceOp};

/// Returns the formula of an operation's results, if there is one. `constants` are the operands that are constants.
pub(super) fn formula(
    op: &Op,
    operands: &[&Shape],
    constants: &[Option<&Constant>],
    results: &[&Shape],
) -> Option<Formula> {
    let result = *results.first()?;
    if !matches!(result.dtype, DType::F32 | DType::F64 | DType::S32 | DType::S64 | DType::Pred)
        || operands.iter().any(|s| s.dtype != result.dtype)
    {
        return None;
    }
    match (op, operands) {
        (Op::Reduce(reduce), [input, _]) => reduction(reduce, input),
        (Op::ReduceWindow(ops::ReduceWindow { window, reducer: Reducer::Op(op) }), [input, _])
            if input.dtype != DType::Pred =>
        {
            let changes_nothing = constants.get(1).copied().flatten().is_some_and(|c| is_neutral(*op, c));
            let extreme = matches!(op, ReduceOp::Minimum | ReduceOp::Maximum);
            Formula::of_windows(*op, &input.dims, window).filter(|_| changes_nothing || extreme)
        }
        (Op::ArgReduce(ops::ArgReduce { dim, op }), [input]) => {
            let inner: usize = input.dims[dim + 1..].iter().product();
            let maximum = *op == ArgReduceOp::Maximum;
            (inner == 1).then_some(Formula::Extremes { maximum, n: input.dims[*dim] })
        }
        (Op::Dot(dims), [lhs, rhs]) if result.dtype.is_float() => {
            with_vector(dims, lhs, rhs).or_else(|| matrices(dims, lhs, rhs))
        }
        _ => None,
    }
}

/// Returns whether a constant that is combined with a value repeatedly is the same as one that is combined with it once.
fn is_neutral(op: ReduceOp, constant: &Constant) -> bool {
    match op {
        ReduceOp::Add | ReduceOp::Xor => constant.bytes.iter().all(|b| *b == 0),
        ReduceOp::Multiply => {
            let one: &[u8] = match constant.shape.dtype {
                DType::F32 => &1f32.to_le_bytes(),
                DType::F64 => &1f64.to_le_bytes(),
                DType::S64 => &1i64.to_le_bytes(),
                _ => &1i32.to_le_bytes(),
            };
            *constant.bytes == *one
        }
        _ => true,
    }
}

/// Returns the formula of a reduction of adjacent dimensions.
fn reduction(reduce: &ops::Reduce, input: &Shape) -> Option<Formula> {
    let Reducer::Op(op) = reduce.reducer else { return None };
    if input.dtype == DType::Pred && !matches!(op, ReduceOp::And | ReduceOp::Or | ReduceOp::Xor) {
        return None;
    }
    // Dimensions of size one do not matter.
    let reduced: Vec<usize> = reduce.dims.iter().copied().filter(|d| input.dims[*d] != 1).collect();
    let rows: usize = reduced.iter().map(|d| input.dims[*d]).product();
    let Some((first, last)) = reduced.iter().min().zip(reduced.iter().max()) else {
        return Some(Formula::Rows(op, 1));
    };
    let adjacent = (*first..=*last).all(|d| input.dims[d] == 1 || reduced.contains(&d));
    let inner: usize = input.dims[last + 1..].iter().product();
    match inner {
        _ if !adjacent || rows == 0 => None,
        1 => Some(Formula::Rows(op, rows)),
        inner => Some(Formula::Columns { op, rows, inner }),
    }
}

/// Returns the formula of a product with a vector.
fn with_vector(dims: &DotDims, lhs: &Shape, rhs: &Shape) -> Option<Formula> {
    let contracted = (dims.lhs_contract.first().copied(), dims.rhs_contract.first().copied());
    let plain = dims.lhs_contract.len() <= 1 && dims.lhs_batch.is_empty();
    // Each operand has at most one dimension that is not contracted.
    let narrow = |s: &Shape| s.rank() <= 1 + dims.lhs_contract.len();
    if !plain || !narrow(lhs) || !narrow(rhs) {
        return None;
    }
    let (left, right) = (Side::new(lhs, contracted.0), Side::new(rhs, contracted.1));
    // A single row makes the right operand the matrix, otherwise a single column makes it the left one.
    let (matrix, side) = match (left.count, right.count) {
        (1, _) => (1, right),
        (_, 1) => (0, left),
        _ => return None,
    };
    let adjacent = side.along == 1;
    let stride = if adjacent { side.across } else { side.along };
    let depth = contracted.0.map_or(1, |d| lhs.dims[d]);
    (adjacent || side.across == 1).then_some(Formula::MatrixVector { matrix, depth, stride, adjacent })
}

/// Returns the formula of a batch of products of matrices that have more than one row and column.
fn matrices(dims: &DotDims, lhs: &Shape, rhs: &Shape) -> Option<Formula> {
    let free = |s: &Shape, batch: &[usize], contract: &[usize]| {
        uniform(s, &(0..s.rank()).filter(|d| !batch.contains(d) && !contract.contains(d)).collect::<Vec<_>>())
    };
    let (batch, left_batch) = uniform(lhs, &dims.lhs_batch)?;
    let (_, right_batch) = uniform(rhs, &dims.rhs_batch)?;
    let (rows, left_row) = free(lhs, &dims.lhs_batch, &dims.lhs_contract)?;
    let (cols, right_column) = free(rhs, &dims.rhs_batch, &dims.rhs_contract)?;
    // The kernel chooses the order of several contracted dimensions.
    let one = |list: &[usize]| list.len() == 1;
    let (depth, left_column) = uniform(lhs, &dims.lhs_contract).filter(|_| one(&dims.lhs_contract))?;
    let (_, right_row) = uniform(rhs, &dims.rhs_contract)?;
    (rows > 1 && cols > 1 && depth > 0).then_some(Formula::Matrices(Matrices {
        batch,
        rows,
        cols,
        depth,
        lhs: [left_batch, left_row, left_column],
        rhs: [right_batch, right_row, right_column],
    }))
}

/// Returns the number of elements of some dimensions, and the distance between two of them; `None` if there is no such distance.
fn uniform(shape: &Shape, dims: &[usize]) -> Option<(usize, usize)> {
    let mut whole: Option<(usize, usize)> = None;
    for d in dims.iter().rev().filter(|d| shape.dims[**d] != 1) {
        let (size, stride) = (shape.dims[*d], shape.dims[d + 1..].iter().product::<usize>());
        whole = Some(match whole {
            None => (size, stride),
            Some((n, inner)) if stride == n * inner => (n * size, inner),
            Some(_) => return None,
        });
    }
    Some(whole.unwrap_or((1, 1)))
}

/// An operand of a product: the number of its rows or columns, and the distances of elements within and between them. A dimension
/// of size one has the distance one.
struct Side {
    count: usize,
    along: usize,
    across: usize,
}

impl Side {
    fn new(shape: &Shape, contracted: Option<usize>) -> Self {
        let stride = |d: usize| if shape.dims[d] == 1 { 1 } else { shape.dims[d + 1..].iter().product() };
        let free = (0..shape.rank()).find(|d| Some(*d) != contracted);
        Self {
            count: free.map_or(1, |d| shape.dims[d]),
            along: contracted.map_or(1, stride),
            across: free.map_or(1, stride),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::ops::{ArgReduce, Reduce, ReduceWindow};
    use refcpu_kernels::window::WindowSpec;

    fn of(op: &Op, dims: [&[usize]; 2], result: &[usize]) -> Option<Formula> {
        let [a, b] = dims.map(|d| Shape::new(DType::F32, d));
        formula(op, &[&a, &b], &[None, None], &[&Shape::new(DType::F32, result)])
    }

    #[test]
    fn reductions_of_adjacent_dimensions_have_a_formula() {
        let reduce =
            |dims: &[usize]| Op::Reduce(Reduce { dims: dims.to_vec(), reducer: Reducer::Op(ReduceOp::Add) });
        let rows = |n| Some(Formula::Rows(ReduceOp::Add, n));
        assert_eq!(of(&reduce(&[0]), [&[5], &[]], &[]), rows(5));
        assert_eq!(of(&reduce(&[1]), [&[2, 5], &[]], &[2]), rows(5));
        assert_eq!(of(&reduce(&[0, 1]), [&[2, 5], &[]], &[]), rows(10));
        assert_eq!(of(&reduce(&[0]), [&[5, 1], &[]], &[1]), rows(5));
        let columns = |rows, inner| Some(Formula::Columns { op: ReduceOp::Add, rows, inner });
        assert_eq!(of(&reduce(&[0]), [&[2, 5], &[]], &[5]), columns(2, 5));
        assert_eq!(of(&reduce(&[1]), [&[3, 2, 5], &[]], &[3, 5]), columns(2, 5));
        assert_eq!(of(&reduce(&[1]), [&[3, 1], &[]], &[3]), rows(1));
        assert_eq!(of(&reduce(&[0, 2]), [&[2, 3, 4], &[]], &[3]), None);
    }

    #[test]
    fn products_with_vectors_have_the_matrix_of_the_kernel() {
        let dot = |l: &[usize], r: &[usize]| {
            Op::Dot(DotDims { lhs_contract: l.to_vec(), rhs_contract: r.to_vec(), ..DotDims::default() })
        };
        let product =
            |matrix, depth, stride, adjacent| Some(Formula::MatrixVector { matrix, depth, stride, adjacent });
        assert_eq!(of(&dot(&[1], &[0]), [&[2, 3], &[3]], &[2]), product(0, 3, 3, true));
        assert_eq!(of(&dot(&[0], &[0]), [&[2, 3], &[2]], &[3]), product(0, 2, 3, false));
        assert_eq!(of(&dot(&[0], &[0]), [&[2], &[2, 3]], &[3]), product(1, 2, 3, false));
        assert_eq!(of(&dot(&[0], &[1]), [&[3], &[2, 3]], &[2]), product(1, 3, 3, true));
        assert_eq!(of(&dot(&[0], &[0]), [&[3], &[3]], &[]), product(1, 3, 1, true));
        assert_eq!(of(&dot(&[], &[]), [&[], &[4]], &[4]), product(1, 1, 1, true));
        let matrices = Matrices { batch: 1, rows: 2, cols: 4, depth: 3, lhs: [1, 3, 1], rhs: [1, 4, 1] };
        assert_eq!(of(&dot(&[1], &[0]), [&[2, 3], &[3, 4]], &[2, 4]), Some(Formula::Matrices(matrices)));
        let transposed = Matrices { lhs: [1, 1, 2], rhs: [1, 1, 3], ..matrices };
        assert_eq!(of(&dot(&[0], &[1]), [&[3, 2], &[4, 3]], &[2, 4]), Some(Formula::Matrices(transposed)));
        assert_eq!(of(&dot(&[], &[]), [&[2, 3], &[4]], &[2, 3, 4]), None);
    }

    #[test]
    fn batches_of_products_have_a_formula_if_their_dimensions_have_single_strides() {
        let mut dims =
            DotDims { lhs_batch: vec![0], rhs_batch: vec![0], lhs_contract: vec![2], rhs_contract: vec![1] };
        let matrices = Matrices { batch: 5, rows: 2, cols: 4, depth: 3, lhs: [6, 3, 1], rhs: [12, 4, 1] };
        let op = |dims: &DotDims| Op::Dot(dims.clone());
        let of_op = |op: &Op| of(op, [&[5, 2, 3], &[5, 3, 4]], &[5, 2, 4]);
        assert_eq!(of_op(&op(&dims)), Some(Formula::Matrices(matrices)));
        dims.lhs_batch = vec![1];
        assert_eq!(of(&op(&dims), [&[2, 5, 3], &[5, 3, 4]], &[5, 2, 4]), {
            Some(Formula::Matrices(Matrices { lhs: [3, 15, 1], ..matrices }))
        });
        let rows_apart = [&[2, 5, 2, 3][..], &[5, 3, 4]];
        dims.lhs_contract = vec![3];
        assert_eq!(of(&op(&dims), rows_apart, &[5, 2, 2, 4]), None);
    }

    #[test]
    fn cumulative_operations_and_extremes_have_a_formula() {
        let a = Shape::new(DType::F32, &[2, 5]);
        let (init, index) = (Shape::scalar(DType::F32), Shape::new(DType::S32, &[2]));
        let mut window = WindowSpec::new(vec![1, 5]);
        window.padding[1] = (4, 0);
        let cumulative = |op, value: f32| {
            let op = Op::ReduceWindow(ReduceWindow { window: window.clone(), reducer: Reducer::Op(op) });
            let constant = Constant::splat(init.clone(), value.to_le_bytes().to_vec());
            formula(&op, &[&a, &init], &[None, Some(&constant)], &[&a])
        };
        let expected = |op| Some(Formula::Cumulative { op, n: 5, inner: 1, reverse: false });
        assert_eq!(cumulative(ReduceOp::Add, 0.0), expected(ReduceOp::Add));
        assert_eq!(cumulative(ReduceOp::Multiply, 1.0), expected(ReduceOp::Multiply));
        assert_eq!(cumulative(ReduceOp::Maximum, 3.0), expected(ReduceOp::Maximum));
        assert_eq!(cumulative(ReduceOp::Add, 1.0), None);
        let extreme = |dim| Op::ArgReduce(ArgReduce { dim, op: ArgReduceOp::Maximum });
        let values = Shape::new(DType::F32, &[2]);
        let found = formula(&extreme(1), &[&a], &[None], &[&values, &index]);
        assert_eq!(found, Some(Formula::Extremes { maximum: true, n: 5 }));
        assert_eq!(formula(&extreme(0), &[&a], &[None], &[&values, &index]), None);
    }
}
