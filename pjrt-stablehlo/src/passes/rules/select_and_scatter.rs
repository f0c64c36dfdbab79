//! The rule for `select_and_scatter`: a reduction of windows to positions, and a scatter to these.

use crate::Error;
use crate::build::Builder;
use crate::ir::ops::{ReduceWindow, Scatter, SelectAndScatter};
use crate::ir::{
    ComparisonDirection, ElementType, Op, Operation, ScatterDimensionNumbers, TensorType, Type, ValueId,
};
use crate::passes::rewrite::{Rewriter, mismatch};

/// The position of padding, which is not an element.
const NOWHERE: i64 = -1;

/// Decomposes `select_and_scatter`.
///
/// Each window is reduced to the value that `select` selects and its position in the flattened operand. Padding has no
/// position and is never selected. The source is then scattered to the positions with the computation `scatter`.
/// Windows that consist of padding have no position to scatter to.
pub(super) fn select_and_scatter<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<ValueId, Error> {
    let Op::SelectAndScatter(o) = &op.kind else { return Err(mismatch(op)) };
    let [operand, source, initial] = r.operands(op)?;
    let (ty, source_ty) = (r.b.tensor(operand), r.b.tensor(source));
    let count: i64 = ty.dims().iter().product();
    let index = if count > i64::from(i32::MAX) { ElementType::I64 } else { ElementType::I32 };

    let positions = r.b.iota(index, &[count], 0);
    let positions = r.b.reshape(positions, ty.dims());
    let nowhere = r.b.integer(NOWHERE, TensorType::new(index, []));
    // The value of padding is never used.
    let padding_value = r.b.number_of_type(0.0, TensorType::new(ty.element_type(), []));
    let results = [ty.with_dims(source_ty.dims()), TensorType::new(index, source_ty.dims())];
    let windows = r.b.add_op(
        reduce_window(o, ty.rank()),
        &[operand, positions, padding_value, nowhere],
        results.into_iter().map(Type::from),
    );
    let chosen = r.b.body.op(windows).results.get(1).ok_or_else(|| mismatch(op))?;
    let value = TensorType::new(ty.element_type(), []);
    let position = TensorType::new(index, []);
    let arguments = [&value, &position, &value, &position].map(|ty| ty.clone().into());
    let outer = r.b.begin_region(windows, arguments);
    let [a, a_position, c, c_position] = *r.b.arguments() else { return Err(mismatch(op)) };
    let target = r.b.block;
    let prefer = move |b: &mut Builder, returned: Vec<ValueId>| {
        let nowhere = b.integer(NOWHERE, TensorType::new(index, []));
        let a_is_somewhere = b.compare(ComparisonDirection::Ne, a_position, nowhere);
        let c_is_nowhere = b.compare(ComparisonDirection::Eq, c_position, nowhere);
        let prefers_a = b.or(returned[0], c_is_nowhere);
        let takes_a = b.and(prefers_a, a_is_somewhere);
        let value = b.select(takes_a, a, c);
        let position = b.select(takes_a, a_position, c_position);
        b.return_values(&[value, position]);
    };
    r.b.set_block(outer);

    // The element type of the result may be wider than that of the operand.
    let element = r.result(op)?.element_type();
    let (initial, source) = (r.b.convert(initial, element), r.b.convert(source, element));
    let flat = r.b.broadcast(initial, &[], &[count]);
    let flat_ty = r.b.tensor(flat);
    let scattered = r.b.add_op(scatter(ty.rank()), &[flat, chosen, source], vec![flat_ty.into()]);
    let result = r.b.body.op(scattered).result();
    let result = r.b.reshape(result, ty.dims());
    // Blocks are copied after the rule returns, in reverse order of the requests.
    r.copy_region(op.regions[1], scattered);
    r.inline_region(op, 0, vec![a, c], target, Box::new(prefer))?;
    Ok(result)
}

/// Returns the reduction of the windows of `select_and_scatter`, whose operand has `rank` dimensions.
fn reduce_window(o: &SelectAndScatter, rank: usize) -> ReduceWindow {
    ReduceWindow {
        window_dimensions: o.window_dimensions.clone(),
        window_strides: o.window_strides.clone(),
        base_dilations: vec![1; rank].into(),
        window_dilations: vec![1; rank].into(),
        padding: o.padding.clone(),
    }
}

/// Returns a scatter of single elements to positions of a flat operand; the positions have `rank` dimensions.
fn scatter(rank: usize) -> Scatter {
    Scatter {
        scatter_dimension_numbers: ScatterDimensionNumbers {
            inserted_window_dims: [0].into(),
            scatter_dims_to_operand_dims: [0].into(),
            index_vector_dim: rank as i64,
            ..ScatterDimensionNumbers::default()
        },
        indices_are_sorted: false,
        unique_indices: false,
    }
}
