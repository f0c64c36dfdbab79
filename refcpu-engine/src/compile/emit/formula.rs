//! The kernel calls of small loops that machine code can replace.

use crate::graph::{Op, Reducer, Shape};
use refcpu_kernels::DType;
use refcpu_kernels::machine::Formula;

/// Returns the formula of an operation's results, if there is one.
pub(super) fn formula(op: &Op, operands: &[&Shape], result: &Shape) -> Option<Formula> {
    let same = operands.iter().all(|s| s.dtype == result.dtype);
    let supported = matches!(result.dtype, DType::F32 | DType::F64 | DType::S32 | DType::S64);
    match op {
        Op::Reduce(reduce) if same && supported && operands.len() == 2 => {
            let Reducer::Op(op) = reduce.reducer else { return None };
            let [input, _] = operands else { return None };
            // Dimensions of size one do not matter.
            let sizes = |d: &usize| input.dims[*d] != 1;
            let last_kept = (0..input.rank()).filter(sizes).rfind(|d| !reduce.dims.contains(d));
            let first_reduced = reduce.dims.iter().copied().filter(sizes).min();
            let trailing = last_kept.is_none_or(|kept| first_reduced.is_none_or(|first| kept < first));
            let n: usize = reduce.dims.iter().map(|d| input.dims[*d]).product();
            (trailing && n > 0).then_some(Formula::Rows(op, n))
        }
        Op::Dot(dims) if same && matches!(result.dtype, DType::F32 | DType::F64) => {
            let [lhs, rhs] = operands else { return None };
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
            (adjacent || side.across == 1).then_some(Formula::MatrixVector {
                matrix,
                depth,
                stride,
                adjacent,
            })
        }
        _ => None,
    }
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
    use crate::graph::ops::Reduce;
    use refcpu_kernels::ReduceOp;
    use refcpu_kernels::dot::DotDims;

    fn of(op: &Op, dims: [&[usize]; 2], result: &[usize]) -> Option<Formula> {
        let [a, b] = dims.map(|d| Shape::new(DType::F32, d));
        formula(op, &[&a, &b], &Shape::new(DType::F32, result))
    }

    #[test]
    fn only_reductions_of_whole_rows_have_a_formula() {
        let reduce =
            |dims: &[usize]| Op::Reduce(Reduce { dims: dims.to_vec(), reducer: Reducer::Op(ReduceOp::Add) });
        let rows = |n| Some(Formula::Rows(ReduceOp::Add, n));
        assert_eq!(of(&reduce(&[0]), [&[5], &[]], &[]), rows(5));
        assert_eq!(of(&reduce(&[1]), [&[2, 5], &[]], &[2]), rows(5));
        assert_eq!(of(&reduce(&[0, 1]), [&[2, 5], &[]], &[]), rows(10));
        assert_eq!(of(&reduce(&[0]), [&[5, 1], &[]], &[1]), rows(5));
        assert_eq!(of(&reduce(&[0]), [&[2, 5], &[]], &[5]), None);
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
        assert_eq!(of(&dot(&[1], &[0]), [&[2, 3], &[3, 2]], &[2, 2]), None);
    }
}
