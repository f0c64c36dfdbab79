//! Rules for deprecated operations, and for operations that wrap others.

use crate::Error;
use crate::ir::ops::{AfterAll, AllReduce, Case, DotGeneral, Gather, If};
use crate::ir::{
    ComparisonDirection, DotDimensionNumbers, ElementType, GatherDimensionNumbers, Op, OpCode, Operation,
    TensorType, ValueId,
};
use crate::passes::rewrite::{Rewriter, mismatch};

/// Decomposes `broadcast`, which adds leading dimensions.
pub(super) fn broadcast(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Broadcast(broadcast) = &op.kind else { return Err(mismatch(op)) };
    let ([x], result) = (r.operands(op)?, r.result(op)?);
    let added = broadcast.broadcast_sizes.len() as i64;
    let rank = r.b.tensor(x).rank() as i64;
    let dimensions: Vec<i64> = (added..added + rank).collect();
    Ok(r.b.broadcast(x, &dimensions, result.dims()))
}

/// Decomposes `create_token`.
pub(super) fn create_token(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let id = r.b.add_op(AfterAll {}, &[], r.result_types(op));
    Ok(r.b.body.op(id).result())
}

/// Decomposes `cross-replica-sum`.
pub(super) fn cross_replica_sum(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::CrossReplicaSum(sum) = &op.kind else { return Err(mismatch(op)) };
    let (operands, result) = (r.tensors(op)?, r.any_result(op)?);
    let kind = Op::AllReduce(Box::new(AllReduce {
        replica_groups: sum.replica_groups.clone(),
        channel_handle: None,
        use_global_device_ids: false,
    }));
    let scalar = TensorType::new(result.element_type(), []);
    let id = r.b.add_op(kind, &operands, vec![result.into()]);
    r.b.combiner(id, OpCode::Add, scalar);
    Ok(r.b.body.op(id).result())
}

/// Decomposes `dot`, which contracts the last dimension of the left operand with the first of the right operand.
pub(super) fn dot(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Dot(dot) = &op.kind else { return Err(mismatch(op)) };
    let (operands, result) = (r.tensors(op)?, r.any_result(op)?);
    let lhs = operands.first().map_or(0, |&lhs| r.b.tensor(lhs).rank() as i64);
    let numbers = DotDimensionNumbers {
        lhs_contracting_dimensions: [lhs - 1].into(),
        rhs_contracting_dimensions: [0].into(),
        ..DotDimensionNumbers::default()
    };
    let kind = Op::DotGeneral(Box::new(DotGeneral {
        dot_dimension_numbers: numbers,
        precision_config: dot.precision_config.clone(),
        algorithm: None,
    }));
    Ok(r.b.op_of_type(kind, &operands, result))
}

/// Decomposes `torch_index_select`, which selects slices along one dimension by index.
pub(super) fn torch_index_select(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::TorchIndexSelect(select) = &op.kind else { return Err(mismatch(op)) };
    let ([operand, index], result) = (r.operands(op)?, r.result(op)?);
    let (dims, indices) = (r.b.dims(operand), r.b.tensor(index).rank() as i64);
    let (rank, dim, batch) = (dims.len() as i64, select.dim, select.batch_dims);
    if !(0..rank).contains(&dim) || !(0..=dim.min(indices)).contains(&batch) {
        return Err(mismatch(op));
    }
    if dims[dim as usize] == 0 {
        // An empty dimension has no slices to select.
        return Ok(r.b.zeros(result));
    }
    let free = indices - batch;
    let mut slice_sizes = dims;
    slice_sizes[dim as usize] = 1;
    slice_sizes[..batch as usize].iter_mut().for_each(|size| *size = 1.min(*size));
    let batching: Box<[i64]> = (0..batch).collect();
    let dimension_numbers = GatherDimensionNumbers {
        offset_dims: (batch..dim).chain(dim + free..rank + free - 1).collect(),
        collapsed_slice_dims: [dim].into(),
        operand_batching_dims: batching.clone(),
        start_indices_batching_dims: batching,
        start_index_map: [dim].into(),
        index_vector_dim: indices,
    };
    let kind = Op::Gather(Box::new(Gather {
        dimension_numbers,
        slice_sizes: slice_sizes.into(),
        indices_are_sorted: false,
    }));
    Ok(r.b.op_of_type(kind, &[operand, index], result))
}

/// Decomposes `map`.
pub(super) fn map<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let operands = r.tensors(op)?;
    r.result(op)?;
    r.apply_region(op, 0, &operands)
}

/// Replaces an operation by its operands.
pub(super) fn operands(r: &mut Rewriter<'_>, op: &Operation) -> Result<Vec<ValueId>, Error> {
    Ok(r.flat(&op.operands))
}

/// Removes an operation without results.
pub(super) fn nothing(_: &mut Rewriter<'_>, _: &Operation) -> Result<Vec<ValueId>, Error> {
    Ok(vec![])
}

/// Decomposes `if` to `case`, whose first branch is the true one.
pub(super) fn if_<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let [predicate] = r.operands(op)?;
    let ty = TensorType::new(ElementType::I32, []);
    let (first, second) = (r.b.integer(0, ty.clone()), r.b.integer(1, ty));
    let index = r.b.select(predicate, first, second);
    let results = r.result_types(op);
    let id = r.b.add_op(Case {}, &[index], results);
    for &region in &op.regions {
        r.copy_region(region, id);
    }
    Ok(r.b.body.op(id).results.collect())
}

/// Decomposes `case` to nested `if`s. The last branch also handles all indices out of range.
pub(super) fn case<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let [index] = r.operands(op)?;
    let types = r.result_types(op);
    let Some((&last, rest)) = op.regions.split_last() else { return Err(mismatch(op)) };
    if rest.is_empty() {
        // A single branch runs for every index.
        let always = r.b.number_of_type(1.0, TensorType::new(ElementType::I1, []));
        let id = r.b.add_op(Op::If(If {}), &[always], types);
        r.copy_region(last, id);
        r.copy_region(last, id);
        return Ok(r.b.body.op(id).results.collect());
    }
    let mut open = Vec::new();
    let mut results: Vec<Vec<ValueId>> = Vec::new();
    for (number, &branch) in rest.iter().enumerate() {
        let chosen = r.b.compare_with(ComparisonDirection::Eq, index, number as f64);
        let id = r.b.add_op(Op::If(If {}), &[chosen], types.clone());
        results.push(r.b.body.op(id).results.collect());
        r.copy_region(branch, id);
        if number + 1 == rest.len() {
            r.copy_region(last, id);
        } else {
            open.push(r.b.begin_region(id, []));
        }
    }
    for (region, inner) in open.into_iter().rev().zip(results[1..].iter().rev()) {
        r.b.end_region(region, inner);
    }
    Ok(results.swap_remove(0))
}
