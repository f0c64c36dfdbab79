//! Products of arrays.

use pjrt_stablehlo::ir::{DotDimensionNumbers, ElementType};

use crate::element_type::{float, from_float, from_integer, integer};
use crate::movement::transpose;

/// An operand of a product.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) elements: &'a [u64],
    pub(crate) dims: &'a [i64],
    pub(crate) ty: ElementType,
}

/// Computes a `dot_general` whose result has the given element type: one matrix product for each index of the
/// batching dimensions.
pub(crate) fn dot_general(
    lhs: Operand<'_>,
    rhs: Operand<'_>,
    numbers: &DotDimensionNumbers,
    result: ElementType,
) -> Vec<u64> {
    let (lhs_batching, lhs_contracting) =
        (&numbers.lhs_batching_dimensions, &numbers.lhs_contracting_dimensions);
    let batches = product(lhs.dims, lhs_batching);
    let depth = product(lhs.dims, lhs_contracting);
    let (x, x_rows) = matrices(lhs, lhs_batching, lhs_contracting);
    let (y, y_rows) = matrices(rhs, &numbers.rhs_batching_dimensions, &numbers.rhs_contracting_dimensions);
    let mut products = Vec::new();
    for batch in 0..batches {
        for i in 0..x_rows {
            let x = &x[(batch * x_rows + i) * depth..][..depth];
            for j in 0..y_rows {
                let y = &y[(batch * y_rows + j) * depth..][..depth];
                products.push(dot(x, lhs.ty, y, rhs.ty, result));
            }
        }
    }
    products
}

fn dot(x: &[u64], x_ty: ElementType, y: &[u64], y_ty: ElementType, result: ElementType) -> u64 {
    let pairs = x.iter().zip(y);
    if result.is_float() {
        return from_float(pairs.map(|(x, y)| float(*x) * float(*y)).sum());
    }
    let terms = pairs.map(|(x, y)| integer(x_ty, *x).wrapping_mul(integer(y_ty, *y)));
    from_integer(result, terms.fold(0, i128::wrapping_add))
}

/// Returns the elements of an operand in the order batch, row, depth, and the number of rows of each matrix.
fn matrices(operand: Operand<'_>, batching: &[i64], contracting: &[i64]) -> (Vec<u64>, usize) {
    let all = 0..operand.dims.len() as i64;
    let free: Vec<i64> = all.filter(|d| !batching.contains(d) && !contracting.contains(d)).collect();
    let order = [batching, &free, contracting].concat();
    (transpose(operand.elements, operand.dims, &order).0, product(operand.dims, &free))
}

fn product(dims: &[i64], which: &[i64]) -> usize {
    which.iter().map(|d| dims[*d as usize] as usize).product()
}
