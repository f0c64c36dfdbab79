//! Products of matrices with a dimension that is divided into groups of given sizes.

use crate::build::Builder;
use crate::ir::ops::DotGeneral;
use crate::ir::{
    ComparisonDirection, DotDimensionNumbers, ElementType, OpCode, PrecisionConfig,
    RaggedDotDimensionNumbers, TensorType, ValueId,
};

/// `chlo.ragged_dot`. The computation depends on the role of the left operand's ragged dimension:
///
/// * Not contracted: each group of rows is multiplied with its own slice of the right operand. All rows are multiplied
///   with all slices, and the products of rows with the slices of their groups are kept.
/// * Contracted: the result has one product for each group. The operands are masked for each group.
/// * Batching: the groups do not affect the result.
///
/// # Errors
/// Returns a message if the dimensions do not fit the operands.
pub(crate) fn ragged_dot(
    b: &mut Builder,
    [lhs, rhs, sizes]: [ValueId; 3],
    dimensions: &RaggedDotDimensionNumbers,
    precision_config: &PrecisionConfig,
    result: &TensorType,
) -> Result<ValueId, String> {
    let (lhs_ty, sizes_ty) = (b.tensor(lhs), b.tensor(sizes));
    let numbers = &dimensions.dot;
    let product = |b: &mut Builder, lhs, rhs, numbers: DotDimensionNumbers, ty: TensorType| {
        let precision_config = precision_config.clone();
        b.op_of_type(
            DotGeneral { dot_dimension_numbers: numbers, precision_config, algorithm: None },
            &[lhs, rhs],
            ty,
        )
    };
    if numbers.lhs_batching_dimensions.contains(&dimensions.ragged) {
        return Ok(product(b, lhs, rhs, numbers.clone(), result.clone()));
    }
    if sizes_ty.rank() != 1 {
        return Err(format!("operand 2: expected a vector of group sizes, found {sizes_ty}"));
    }
    let rows = usize::try_from(dimensions.ragged).ok().and_then(|ragged| lhs_ty.dims().get(ragged));
    let rows = *rows.ok_or_else(|| format!("operand 0: {lhs_ty} has no dimension {}", dimensions.ragged))?;
    let mask = membership(b, sizes, sizes_ty.dims()[0], rows);
    match dimensions.group {
        Some(group) => {
            let rows = RaggedRows::of(&lhs_ty, &b.tensor(rhs), dimensions, group)?;
            let products = product(b, lhs, rhs, numbers.clone(), result.with_dims(rows.dims.clone()));
            rows.keep(b, products, mask)
        }
        None => {
            let ([lhs, rhs], numbers) = masked(b, [lhs, rhs], dimensions, mask)?;
            Ok(product(b, lhs, rhs, numbers, result.clone()))
        }
    }
}

/// Returns the membership of rows in groups: an `i1` tensor with dimensions for the groups and the rows.
fn membership(b: &mut Builder, sizes: ValueId, groups: i64, rows: i64) -> ValueId {
    let wide = b.convert(sizes, ElementType::I64);
    // The end of each group is the sum of the sizes up to it.
    let square = [groups, groups];
    let (row, column) = (b.iota(ElementType::I64, &square, 0), b.iota(ElementType::I64, &square, 1));
    let is_before = b.compare(ComparisonDirection::Le, column, row);
    let all = b.broadcast(wide, &[1], &square);
    let zero = b.number(0.0, all);
    let counted = b.select(is_before, all, zero);
    let ends = b.reduce(counted, &[1], OpCode::Add, 0.0);
    let starts = b.subtract(ends, wide);
    let dims = [groups, rows];
    let (starts, ends) = (b.broadcast(starts, &[0], &dims), b.broadcast(ends, &[0], &dims));
    let position = b.iota(ElementType::I64, &dims, 1);
    let is_after = b.compare(ComparisonDirection::Ge, position, starts);
    let is_before = b.compare(ComparisonDirection::Lt, position, ends);
    b.and(is_after, is_before)
}

/// Returns the dimensions below `rank` that are in neither list.
fn free(rank: usize, lists: [&[i64]; 2]) -> Vec<i64> {
    (0..rank as i64).filter(|dimension| !lists.iter().any(|list| list.contains(dimension))).collect()
}

/// The products of all rows with the slices of all groups. Their dimensions are batches, rows, and columns, which
/// include the groups.
struct RaggedRows {
    dims: Vec<i64>,
    row: usize,
    group: usize,
}

impl RaggedRows {
    fn of(
        lhs: &TensorType,
        rhs: &TensorType,
        dimensions: &RaggedDotDimensionNumbers,
        group: i64,
    ) -> Result<Self, String> {
        let numbers = &dimensions.dot;
        let lhs_free =
            free(lhs.rank(), [&numbers.lhs_batching_dimensions, &numbers.lhs_contracting_dimensions]);
        let rhs_free =
            free(rhs.rank(), [&numbers.rhs_batching_dimensions, &numbers.rhs_contracting_dimensions]);
        let batch = numbers.lhs_batching_dimensions.len();
        let place = |free: &[i64], dimension: i64| {
            let place = free.iter().position(|&free| free == dimension);
            place.ok_or_else(|| format!("dimension {dimension} is contracted or out of range"))
        };
        let row = place(&lhs_free, dimensions.ragged)? + batch;
        let group = place(&rhs_free, group)? + batch + lhs_free.len();
        let of_lhs = numbers.lhs_batching_dimensions.iter().chain(&lhs_free).map(|&d| lhs.dims()[d as usize]);
        let dims = of_lhs.chain(rhs_free.iter().map(|&d| rhs.dims()[d as usize])).collect();
        Ok(RaggedRows { dims, row, group })
    }

    /// Returns the products of rows with the slices of their groups.
    fn keep(&self, b: &mut Builder, products: ValueId, mask: ValueId) -> Result<ValueId, String> {
        let (groups, slices) = (b.dims(mask)[0], self.dims[self.group]);
        if groups != slices {
            return Err(format!(
                "expected {slices} groups, one for each slice of the right operand, found {groups}"
            ));
        }
        // `broadcast_in_dim` accepts dimensions in any order.
        let mask = b.broadcast(mask, &[self.group as i64, self.row as i64], &self.dims);
        let zero = b.number(0.0, products);
        let kept = b.select(mask, products, zero);
        Ok(b.reduce(kept, &[self.group as i64], OpCode::Add, 0.0))
    }
}

/// Returns a copy of each operand for each group, in which the elements of other groups are zero, and the dimension
/// numbers of their product.
fn masked(
    b: &mut Builder,
    [lhs, rhs]: [ValueId; 2],
    dimensions: &RaggedDotDimensionNumbers,
    mask: ValueId,
) -> Result<([ValueId; 2], DotDimensionNumbers), String> {
    let numbers = &dimensions.dot;
    let place = numbers.lhs_contracting_dimensions.iter().position(|&d| d == dimensions.ragged);
    let rhs_ragged = place.and_then(|place| numbers.rhs_contracting_dimensions.get(place).copied());
    let rhs_ragged =
        rhs_ragged.ok_or_else(|| format!("dimension {} is not contracted", dimensions.ragged))?;
    let mut masked = |x: ValueId, ragged: i64| {
        let (groups, own) = (b.dims(mask)[0], b.dims(x));
        let dims = [&[groups][..], &own].concat();
        let places: Vec<i64> = (1..=own.len() as i64).collect();
        let repeated = b.broadcast(x, &places, &dims);
        let mask = b.broadcast(mask, &[0, ragged + 1], &dims);
        let zero = b.number(0.0, repeated);
        b.select(mask, repeated, zero)
    };
    let operands = [masked(lhs, dimensions.ragged), masked(rhs, rhs_ragged)];
    let moved = |list: &[i64]| list.iter().map(|dimension| dimension + 1).collect::<Vec<_>>();
    let grouped = |list: &[i64]| [vec![0], moved(list)].concat();
    let numbers = DotDimensionNumbers {
        lhs_batching_dimensions: grouped(&numbers.lhs_batching_dimensions).into(),
        rhs_batching_dimensions: grouped(&numbers.rhs_batching_dimensions).into(),
        lhs_contracting_dimensions: moved(&numbers.lhs_contracting_dimensions).into(),
        rhs_contracting_dimensions: moved(&numbers.rhs_contracting_dimensions).into(),
    };
    Ok((operands, numbers))
}
