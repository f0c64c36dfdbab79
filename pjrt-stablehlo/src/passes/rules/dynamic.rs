//! Rules for operations with operands in place of attributes, where these operands are constants.

use crate::Error;
use crate::infer::shapes_agree;
use crate::ir::ops::{Convolution, DynamicSlice, Gather, Iota, Pad, Slice};
use crate::ir::{Body, ElementType, Op, OpCode, Operation, TensorType, Trait, ValueId};
use crate::passes::rewrite::{Rewriter, definite, mismatch, unsupported};

/// Returns the type of a result whose shape is given by an operand: the declared type, if it is static, otherwise the
/// operand's sizes.
fn shaped_result(r: &Rewriter<'_>, op: &Operation, shape: usize) -> Result<TensorType, Error> {
    let ty = r.any_result(op)?;
    if !ty.is_dynamic() {
        return Ok(ty);
    }
    let dims = constant(r, op, shape)?;
    if !shapes_agree(ty.dims(), &dims) || dims.iter().any(|&size| size < 0) {
        return Err(unsupported(format!(
            "the shape operand {dims:?} does not agree with the result type {ty}"
        )));
    }
    Ok(ty.with_dims(dims))
}

/// Returns the elements of an operand, which must be a constant.
fn constant(r: &Rewriter<'_>, op: &Operation, index: usize) -> Result<Vec<i64>, Error> {
    let operands = r.tensors(op)?;
    let &value = operands.get(index).ok_or_else(|| mismatch(op))?;
    let name = op.info().operands.get(index).map_or("operand", |spec| spec.name);
    Ok(r.constant_integers(value, &format!("operand '{name}'"))?.to_vec())
}

/// Decomposes `dynamic_broadcast_in_dim`.
pub(crate) fn broadcast_in_dim(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::DynamicBroadcastInDim(o) = &op.kind else { return Err(mismatch(op)) };
    let (operands, result) = (r.tensors(op)?, shaped_result(r, op, 1)?);
    Ok(r.b.broadcast(operands[0], &o.broadcast_dimensions, result.dims()))
}

/// Decomposes `dynamic_reshape`.
pub(crate) fn reshape(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let (operands, result) = (r.tensors(op)?, shaped_result(r, op, 1)?);
    Ok(r.b.reshape(operands[0], result.dims()))
}

/// Decomposes `dynamic_iota`.
pub(crate) fn iota(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::DynamicIota(o) = &op.kind else { return Err(mismatch(op)) };
    let result = shaped_result(r, op, 0)?;
    Ok(r.b.op_of_type(Op::Iota(Iota { iota_dimension: o.iota_dimension }), &[], result))
}

/// Decomposes `dynamic_pad`.
pub(crate) fn pad(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let operands = r.tensors(op)?;
    let (low, high, interior) = (constant(r, op, 2)?, constant(r, op, 3)?, constant(r, op, 4)?);
    let ty = r.b.tensor(operands[0]);
    definite(&ty)?;
    if [&low, &high, &interior].iter().any(|padding| padding.len() != ty.rank()) {
        return Err(mismatch(op));
    }
    let padded = |dimension: usize| {
        let size = ty.dims()[dimension];
        let between = (size - 1).max(0).checked_mul(interior[dimension])?;
        size.checked_add(between)?.checked_add(low[dimension])?.checked_add(high[dimension])
    };
    let dims: Option<Vec<i64>> = (0..ty.rank()).map(padded).collect();
    let dims = dims.filter(|dims| dims.iter().all(|&size| size >= 0)).ok_or_else(|| mismatch(op))?;
    let kind = Op::Pad(Pad {
        edge_padding_low: low.into(),
        edge_padding_high: high.into(),
        interior_padding: interior.into(),
    });
    Ok(r.b.op_of_type(kind, &operands[..2], ty.with_dims(dims)))
}

/// Decomposes `real_dynamic_slice`.
pub(crate) fn real_dynamic_slice(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let operands = r.tensors(op)?;
    let (x, start) = (operands[0], operands[1]);
    let ty = r.b.tensor(x);
    definite(&ty)?;
    let strides = constant(r, op, 3)?;
    if strides.len() != ty.rank() || strides.iter().any(|&stride| stride <= 0) {
        return Err(unsupported(format!("expected {} positive strides, found {strides:?}", ty.rank())));
    }
    if let (Ok(start), Ok(limit)) = (constant(r, op, 1), constant(r, op, 2)) {
        let size = |dimension: usize| {
            let (start, limit) = (*start.get(dimension)?, *limit.get(dimension)?);
            let is_inside = 0 <= start && start <= limit && limit <= ty.dims()[dimension];
            is_inside.then(|| ((limit - start) as u64).div_ceil(strides[dimension] as u64) as i64)
        };
        let dims: Option<Vec<i64>> = (0..ty.rank()).map(size).collect();
        let dims = dims.ok_or_else(|| {
            unsupported(format!("the slice from {start:?} to {limit:?} is out of bounds of {ty}"))
        })?;
        let kind = Op::Slice(Slice {
            start_indices: start.into(),
            limit_indices: limit.into(),
            strides: strides.into(),
        });
        return Ok(r.b.op_of_type(kind, &[x], ty.with_dims(dims)));
    }
    let declared = r.any_result(op)?;
    let sizes = match declared.static_dims() {
        Some(dims) => Some(dims.to_vec()),
        None => distance(r, start, operands[2])
            .filter(|sizes| sizes.iter().zip(ty.dims()).all(|(size, whole)| (0..=*whole).contains(size)))
            .filter(|sizes| shapes_agree(declared.dims(), sizes)),
    };
    let Some(sizes) = sizes.filter(|_| strides.iter().all(|&stride| stride == 1)) else {
        return Err(unsupported(
            "expected constant bounds, or a constant size and strides of 1, but the shape of the result depends on data",
        ));
    };
    let result = ty.with_dims(sizes);
    let mut operands = vec![x];
    for dimension in 0..ty.rank() as i64 {
        let index = r.b.slice(start, &[dimension], &[dimension + 1]);
        operands.push(r.b.reshape(index, &[]));
    }
    let kind = Op::DynamicSlice(DynamicSlice { slice_sizes: result.dims().into() });
    Ok(r.b.op_of_type(kind, &operands, result))
}

/// Returns the difference of the limits and the starts of a slice, if the limits are computed as sums of the starts and
/// constants.
fn distance(r: &Rewriter<'_>, start: ValueId, limit: ValueId) -> Option<Vec<i64>> {
    let sum = r.b.body.op(r.b.body.defining_op(limit)?);
    let (Op::Add(_), &[x, y]) = (&sum.kind, &*sum.operands) else { return None };
    let (other, constant) = match (r.known(x), r.known(y)) {
        (_, Some(constant)) => (x, constant),
        (Some(constant), _) => (y, constant),
        _ => return None,
    };
    is_same(&r.b.body, start, other).then(|| constant.to_vec())
}

/// Returns `true` if two values are computed by equal operations from equal values. The comparison is limited to a
/// number of operations.
fn is_same(body: &Body, x: ValueId, y: ValueId) -> bool {
    const MAX_STEPS: usize = 256;
    let mut work = vec![(x, y)];
    for _ in 0..MAX_STEPS {
        let Some((x, y)) = work.pop() else { return true };
        if x == y {
            continue;
        }
        let (Some(x), Some(y)) = (body.defining_op(x), body.defining_op(y)) else { return false };
        let (x, y) = (body.op(x), body.op(y));
        let is_pure = |op: &Operation| {
            let info = op.info();
            let is_other = matches!(op.kind, Op::Other(_) | Op::FuncCall(_) | Op::Composite(_) | Op::Rng(_));
            op.results.len() == 1
                && op.regions.is_empty()
                && !is_other
                && !info.has(Trait::SideEffect)
                && !info.has(Trait::Collective)
        };
        let is_alike = is_pure(x)
            && is_pure(y)
            && x.kind == y.kind
            && x.operands.len() == y.operands.len()
            && body.ty(x.result()) == body.ty(y.result());
        if !is_alike {
            return false;
        }
        work.extend(x.operands.iter().copied().zip(y.operands.iter().copied()));
    }
    false
}

/// Decomposes `dynamic_gather`.
pub(crate) fn gather(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::DynamicGather(o) = &op.kind else { return Err(mismatch(op)) };
    let operands = r.tensors(op)?;
    let slice_sizes = constant(r, op, 2)?;
    let numbers = &o.dimension_numbers;
    let indices = r.b.tensor(operands[1]);
    definite(&indices)?;
    let mut result = r.any_result(op)?;
    if result.is_dynamic() {
        // Offset dimensions have the slice sizes without collapsed dimensions; the other dimensions are those of the
        // indices.
        let is_dropped = |dimension: &i64| {
            numbers.collapsed_slice_dims.contains(dimension)
                || numbers.operand_batching_dims.contains(dimension)
        };
        let mut offsets = (0..slice_sizes.len() as i64).filter(|dimension| !is_dropped(dimension));
        let mut batch = (0..indices.rank() as i64).filter(|&dimension| dimension != numbers.index_vector_dim);
        let size = |dimension: i64| match numbers.offset_dims.contains(&dimension) {
            true => offsets.next().map(|offset| slice_sizes[offset as usize]),
            false => batch.next().map(|dimension| indices.dims()[dimension as usize]),
        };
        let dims: Option<Vec<i64>> = (0..result.rank() as i64).map(size).collect();
        result = result.with_dims(dims.ok_or_else(|| mismatch(op))?);
    }
    let kind = Op::Gather(Box::new(Gather {
        dimension_numbers: numbers.clone(),
        slice_sizes: slice_sizes.into(),
        indices_are_sorted: o.indices_are_sorted,
    }));
    Ok(r.b.op_of_type(kind, &operands[..2], result))
}

/// Decomposes `dynamic_conv`.
pub(crate) fn conv(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::DynamicConv(o) = &op.kind else { return Err(mismatch(op)) };
    let (operands, result) = (r.tensors(op)?, r.any_result(op)?);
    let padding = constant(r, op, 2)?;
    let kind = Op::Convolution(Box::new(Convolution {
        window_strides: o.window_strides.clone(),
        padding: padding.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect(),
        lhs_dilation: o.lhs_dilation.clone(),
        rhs_dilation: o.rhs_dilation.clone(),
        window_reversal: o.window_reversal.clone(),
        dimension_numbers: o.dimension_numbers.clone(),
        feature_group_count: o.feature_group_count,
        batch_group_count: o.batch_group_count,
        precision_config: o.precision_config.clone(),
    }));
    let id = r.b.add_op(kind, &operands[..2], vec![result.into()]);
    r.narrow(id, |_, _, _, _| None)?;
    let value = r.b.body.op(id).result();
    definite(&r.b.tensor(value))?;
    Ok(value)
}

/// Decomposes `get_dimension_size`.
pub(crate) fn get_dimension_size(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::GetDimensionSize(o) = &op.kind else { return Err(mismatch(op)) };
    let operands = r.tensors(op)?;
    let ty = r.b.tensor(operands[0]);
    let index =
        usize::try_from(o.dimension).ok().filter(|&index| index < ty.rank()).ok_or_else(|| mismatch(op))?;
    match ty.dim(index) {
        crate::ir::Dim::Static(size) => Ok(r.b.integer(size, TensorType::new(ElementType::I32, []))),
        crate::ir::Dim::Dynamic { .. } => {
            Err(unsupported(format!("dimension {index} of {ty} has a dynamic size")))
        }
    }
}

/// Decomposes `set_dimension_size` to the size that the dimension already has.
pub(crate) fn set_dimension_size(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::SetDimensionSize(o) = &op.kind else { return Err(mismatch(op)) };
    let operands = r.tensors(op)?;
    let size = constant(r, op, 1)?;
    let ty = r.b.tensor(operands[0]);
    let full = usize::try_from(o.dimension).ok().and_then(|index| ty.dims().get(index)).copied();
    match (&*size, full) {
        ([size], Some(full)) if *size == full => Ok(operands[0]),
        _ => Err(unsupported(format!(
            "setting the size of dimension {} of {ty} to {size:?} can be expressed only by '{}'",
            o.dimension,
            OpCode::SetDimensionSize.info().name
        ))),
    }
}

/// A function that replaces an operation with sizes as operands by one with sizes as attributes.
type Rule = for<'r, 'm, 'o> fn(&'r mut Rewriter<'m>, &'o Operation) -> Result<ValueId, Error>;

/// Returns the rule for an operation with sizes as operands.
pub(crate) fn of_known_sizes(code: OpCode) -> Option<Rule> {
    Some(match code {
        OpCode::DynamicBroadcastInDim => broadcast_in_dim,
        OpCode::DynamicConv => conv,
        OpCode::DynamicGather => gather,
        OpCode::DynamicIota => iota,
        OpCode::DynamicPad => pad,
        OpCode::DynamicReshape => reshape,
        OpCode::GetDimensionSize => get_dimension_size,
        OpCode::RealDynamicSlice => real_dynamic_slice,
        OpCode::SetDimensionSize => set_dimension_size,
        _ => return None,
    })
}
