//! Operations that create and move tensors.

use std::sync::Arc;

use super::context::{Context, integers, list};
use super::result::{ResultRule, Results};
use super::shape::{Shape, concatenated, map_size, sizes_agree};
use crate::Constraint::{self, C};
use crate::Error;
use crate::ir::ops::{Pad, Slice};
use crate::ir::{
    DYNAMIC, ElementType, Literal, Op, QuantizedType, RngAlgorithm, RngDistribution, TensorSharding, Type,
};

/// Returns the results of operations on shapes, positions and constants; `None` for other operations.
pub(super) fn results(cx: &Context<'_>) -> Option<Results> {
    Some(match &cx.op.kind {
        Op::Broadcast(op) => broadcast(cx, &op.broadcast_sizes),
        Op::BroadcastInDim(_) | Op::Reshape(_) => same_elements(cx),
        Op::Concatenate(op) => concatenate(cx, op.dimension),
        Op::Constant(op) => constant(&op.value),
        Op::DynamicBroadcastInDim(op) => {
            dynamic_broadcast_in_dim(cx, &op.known_expanding_dimensions, &op.known_nonexpanding_dimensions)
        }
        Op::DynamicIota(op) => dynamic_iota(cx, op.iota_dimension),
        Op::DynamicPad(_) => dynamic_pad(cx),
        Op::DynamicReshape(_) => dynamic_reshape(cx),
        Op::GetDimensionSize(op) => get_dimension_size(cx, op.dimension),
        Op::OptimizationBarrier(_) => same_types(cx, C(1)),
        Op::Pad(op) => pad(cx, op),
        Op::PartitionId(_) | Op::ReplicaId(_) => process_id(),
        Op::RealDynamicSlice(_) => real_dynamic_slice(cx),
        Op::Reshard(op) => sharded(cx, &op.sharding),
        Op::ShardingConstraint(op) => sharded(cx, &op.sharding),
        Op::Reverse(op) => reverse(cx, &op.dimensions),
        Op::Rng(op) => rng(cx, op.rng_distribution),
        Op::RngBitGenerator(op) => rng_bit_generator(cx, op.rng_algorithm),
        Op::SetDimensionSize(op) => set_dimension_size(cx, op.dimension),
        Op::Slice(op) => slice(cx, op),
        Op::TorchIndexSelect(op) => torch_index_select(cx, op.dim, op.batch_dims),
        Op::Transpose(op) => transpose(cx, &op.permutation),
        _ => return None,
    })
}

/// `constant`: the result has the type of the value.
fn constant(value: &Literal) -> Results {
    Ok(vec![ResultRule::of(value.ty().clone(), C(1))])
}

/// `broadcast`: adds leading dimensions.
fn broadcast(cx: &Context<'_>, sizes: &[i64]) -> Results {
    let operand = cx.tensor(0)?;
    cx.require(None, sizes.iter().all(|&size| size >= 0), || {
        format!("broadcast_sizes: expected nonnegative sizes, found {}", integers(sizes))
    })?;
    let new = sizes.iter().map(|&size| (size, DYNAMIC));
    let shape: Shape = new.chain(Shape::of(operand).sizes()).collect();
    Ok(vec![ResultRule::of(shape.like(operand), None)])
}

/// `broadcast_in_dim`, `reshape`: the element type is that of the operand.
fn same_elements(cx: &Context<'_>) -> Results {
    Ok(vec![ResultRule::elements_of(cx.tensor(0)?, C(1))])
}

/// Returns the shape that an operand specifies: its elements if it is a constant, otherwise a dynamic shape with a
/// dimension for each of its elements.
fn shape_operand(cx: &Context<'_>, index: usize, constraint: Constraint) -> Result<Shape, Error> {
    let operand = cx.tensor(index)?;
    let [rank] = operand.dims() else {
        return Err(cx.error(
            constraint,
            format!("{}: expected a tensor of rank 1, found {operand}", cx.operand_name(index)),
        ));
    };
    if let Some(sizes) = cx.constant(index) {
        cx.require(constraint, sizes.iter().all(|&size| size >= 0), || {
            format!("{}: expected nonnegative sizes, found {}", cx.operand_name(index), integers(&sizes))
        })?;
        return Ok(Shape::from(&*sizes));
    }
    let rank = usize::try_from(*rank).ok().filter(|&rank| rank <= crate::limits::MAX_RANK);
    rank.map(Shape::dynamic).ok_or_else(|| {
        cx.error(
            constraint,
            format!(
                "{}: expected a tensor of static shape, with a size for each dimension, found {operand}",
                cx.operand_name(index)
            ),
        )
    })
}

/// `dynamic_iota`: the operand specifies the shape.
fn dynamic_iota(cx: &Context<'_>, dimension: i64) -> Results {
    let shape = shape_operand(cx, 0, C(2))?;
    cx.dimension(C(1), "iota_dimension", dimension, shape.dims().len())?;
    Ok(vec![ResultRule::shape_of(shape, C(2))])
}

/// `dynamic_reshape`: an operand specifies the shape.
fn dynamic_reshape(cx: &Context<'_>) -> Results {
    let operand = cx.tensor(0)?;
    let shape = shape_operand(cx, 1, C(4))?;
    let target = shape.clone().tensor(ElementType::I1, None);
    if let (Some(before), Some(after)) = (operand.num_elements(), target.num_elements()) {
        cx.require(C(4), before == after, || {
            format!(
                "operand 'output_shape': expected {before} elements as in {operand}, found {}",
                list(shape.dims())
            )
        })?;
    }
    Ok(vec![ResultRule::of(shape.like(operand), C(4)).with_elements(C(1))])
}

/// `dynamic_broadcast_in_dim`: an operand specifies the shape.
fn dynamic_broadcast_in_dim(cx: &Context<'_>, expanding: &[i64], nonexpanding: &[i64]) -> Results {
    let operand = cx.tensor(0)?;
    let shape = shape_operand(cx, 1, C(7))?;
    let both = expanding.iter().chain(nonexpanding).copied();
    cx.unique(C(8), "known_expanding_dimensions and known_nonexpanding_dimensions", both)?;
    cx.dimensions(C(9), "known_expanding_dimensions", expanding, operand.rank())?;
    cx.dimensions(C(10), "known_nonexpanding_dimensions", nonexpanding, operand.rank())?;
    Ok(vec![ResultRule::of(shape.like(operand), C(7)).with_elements(C(1))])
}

/// `transpose`: the permutation contains each dimension once.
fn transpose(cx: &Context<'_>, permutation: &[i64]) -> Results {
    let operand = cx.tensor(0)?;
    cx.length(C(2), "permutation", permutation.len(), operand.rank())?;
    cx.dimensions(C(2), "permutation", permutation, operand.rank())?;
    cx.unique(C(2), "permutation", permutation.iter().copied())?;
    let shape: Shape =
        permutation.iter().map(|&dimension| Shape::size_of(operand, dimension as usize)).collect();
    let quantization = operand.quantization().map(|quantization| match quantization.axis {
        None => quantization.clone(),
        Some(axis) => {
            let axis = permutation.iter().position(|&dimension| dimension == i64::from(axis));
            Arc::new(QuantizedType { axis: axis.map(|axis| axis as u32), ..(**quantization).clone() })
        }
    });
    Ok(vec![ResultRule::of(shape.tensor(operand.element_type(), quantization), C(3)).with_elements(C(1))])
}

/// `reverse`: the dimensions are those of the operand.
fn reverse(cx: &Context<'_>, dimensions: &[i64]) -> Results {
    let operand = cx.tensor(0)?;
    cx.unique(C(2), "dimensions", dimensions.iter().copied())?;
    cx.dimensions(C(3), "dimensions", dimensions, operand.rank())?;
    Ok(vec![ResultRule::of(operand.clone(), C(1))])
}

/// `slice`: the limits are in bounds of the operand.
fn slice(cx: &Context<'_>, op: &Slice) -> Results {
    let operand = cx.tensor(0)?;
    for (what, list) in
        [("start_indices", &op.start_indices), ("limit_indices", &op.limit_indices), ("strides", &op.strides)]
    {
        cx.length(C(2), what, list.len(), operand.rank())?;
    }
    let mut sizes = Vec::with_capacity(operand.rank());
    for index in 0..operand.rank() {
        let (start, limit, stride) = (op.start_indices[index], op.limit_indices[index], op.strides[index]);
        let (size, bound) = Shape::size_of(operand, index);
        let most = if size == DYNAMIC { bound } else { size };
        cx.require(C(3), 0 <= start && start <= limit && (most == DYNAMIC || limit <= most), || {
            format!(
                "dimension {index} of {operand}: expected 0 <= start <= limit <= size, found start {start}, limit {limit}"
            )
        })?;
        cx.require(C(4), stride > 0, || {
            format!("strides: expected positive numbers, found {stride} for dimension {index}")
        })?;
        // The verified order of the limits makes them nonnegative, so the addition cannot overflow.
        sizes.push((limit - start) / stride + i64::from((limit - start) % stride != 0));
    }
    Ok(vec![ResultRule::of(Shape::from(&*sizes).like(operand), C(5)).with_elements(C(1))])
}

/// `real_dynamic_slice`: operands specify the start, limit and stride for each dimension.
fn real_dynamic_slice(cx: &Context<'_>) -> Results {
    let operand = cx.tensor(0)?;
    (1..4).try_for_each(|index| cx.one_for_each(None, index, operand.rank()))?;
    Ok(vec![ResultRule::of(Shape::dynamic(operand.rank()).like(operand), None)])
}

/// Returns a size with padding; `None` if it is negative or does not fit.
fn padded(size: i64, low: i64, high: i64, interior: i64) -> Option<i64> {
    let between = i128::from((size - 1).max(0)) * i128::from(interior);
    let padded = i128::from(size) + between + i128::from(low) + i128::from(high);
    i64::try_from(padded).ok().filter(|&padded| padded >= 0)
}

/// Infers the result of `pad`. Amounts at the edges may be negative.
fn pad_amounts(cx: &Context<'_>, low: &[i64], high: &[i64], interior: &[i64]) -> Results {
    let operand = cx.tensor(0)?;
    cx.require(C(3), interior.iter().all(|&amount| amount >= 0), || {
        format!("interior_padding: expected nonnegative amounts, found {}", integers(interior))
    })?;
    let mut sizes = Vec::with_capacity(operand.rank());
    for index in 0..operand.rank() {
        let (low, high, interior) = (low[index], high[index], interior[index]);
        let size = map_size(Shape::size_of(operand, index), |size| padded(size, low, high, interior));
        sizes.push(size.ok_or_else(|| {
            cx.error(
                C(4),
                format!(
                    "dimension {index} of {operand}: expected a nonnegative size after padding by low {low}, high {high} and interior {interior}"
                ),
            )
        })?);
    }
    let shape: Shape = sizes.into_iter().collect();
    Ok(vec![ResultRule::of(shape.like(operand), C(4)).with_elements(C(1))])
}

/// `pad`.
fn pad(cx: &Context<'_>, op: &Pad) -> Results {
    let operand = cx.tensor(0)?;
    cx.same_elements(C(1), 1, operand)?;
    for (what, list) in [
        ("edge_padding_low", &op.edge_padding_low),
        ("edge_padding_high", &op.edge_padding_high),
        ("interior_padding", &op.interior_padding),
    ] {
        cx.length(C(2), what, list.len(), operand.rank())?;
    }
    pad_amounts(cx, &op.edge_padding_low, &op.edge_padding_high, &op.interior_padding)
}

/// `dynamic_pad`: operands specify the amounts.
fn dynamic_pad(cx: &Context<'_>) -> Results {
    let operand = cx.tensor(0)?;
    cx.same_elements(C(1), 1, operand)?;
    (2..5).try_for_each(|index| cx.one_for_each(C(2), index, operand.rank()))?;
    let interior = cx.constant(4);
    if let (Some(low), Some(high), Some(interior)) = (cx.constant(2), cx.constant(3), &interior) {
        return pad_amounts(cx, &low, &high, interior);
    }
    cx.require(C(3), interior.iter().flatten().all(|&amount| amount >= 0), || {
        format!(
            "interior_padding: expected nonnegative amounts, found {}",
            integers(interior.as_deref().unwrap_or_default())
        )
    })?;
    Ok(vec![ResultRule::of(Shape::dynamic(operand.rank()).like(operand), C(4)).with_elements(C(1))])
}

/// `concatenate`: the sizes of all other dimensions are equal.
fn concatenate(cx: &Context<'_>, dimension: i64) -> Results {
    cx.require(C(3), !cx.op.operands.is_empty(), || "expected at least one operand".to_owned())?;
    let first = cx.tensor(0)?;
    let dimension = cx.dimension(C(4), "dimension", dimension, first.rank())?;
    let mut shape = Shape::of(first);
    for index in 1..cx.op.operands.len() {
        let operand = cx.tensor(index)?;
        cx.same_elements(C(1), index, first)?;
        let mut others = Shape::of(operand);
        let sum = shape.size(dimension);
        let fits = operand.rank() == first.rank() && {
            let size = others.size(dimension);
            others.set(dimension, (DYNAMIC, DYNAMIC));
            shape.set(dimension, (DYNAMIC, DYNAMIC));
            let fits = shape.intersect(&others.like(operand));
            let sum =
                concatenated(sum, size).ok_or_else(|| cx.error(C(6), "the size of the result overflows"))?;
            shape.set(dimension, sum);
            fits
        };
        cx.require(C(2), fits, || {
            format!(
                "operand {index}: expected shape {} except in dimension {dimension}, found {operand}",
                list(first.dims())
            )
        })?;
    }
    Ok(vec![ResultRule::of(shape.like(first), C(6)).with_elements(C(5))])
}

/// `get_dimension_size`: the result is an `i32` scalar.
fn get_dimension_size(cx: &Context<'_>, dimension: i64) -> Results {
    cx.dimension(C(1), "dimension", dimension, cx.tensor(0)?.rank())?;
    Ok(vec![ResultRule::of(Shape::default().tensor(ElementType::I32, None), Constraint::O(1))])
}

/// `set_dimension_size`: the size becomes dynamic, or static if it is set to the bound.
fn set_dimension_size(cx: &Context<'_>, dimension: i64) -> Results {
    let operand = cx.tensor(0)?;
    let dimension = cx.dimension(None, "dimension", dimension, operand.rank())?;
    let (size, bound) = Shape::size_of(operand, dimension);
    let bound = if size == DYNAMIC { bound } else { size };
    let is_whole = bound != DYNAMIC && cx.constant(1).is_some_and(|size| *size == [bound]);
    let mut shape = Shape::of(operand);
    shape.set(dimension, if is_whole { (bound, DYNAMIC) } else { (DYNAMIC, bound) });
    Ok(vec![ResultRule::of(shape.like(operand), None)])
}

/// `replica_id`, `partition_id`: the result is a `ui32` scalar.
fn process_id() -> Results {
    Ok(vec![ResultRule::of(Shape::default().tensor(ElementType::Ui32, None), Constraint::O(1))])
}

/// `rng`: the parameters are scalars, and an operand specifies the shape.
fn rng(cx: &Context<'_>, distribution: RngDistribution) -> Results {
    let a = cx.tensor(0)?;
    cx.same_elements(C(1), 1, a)?;
    cx.require(C(2), distribution != RngDistribution::Normal || a.element_type().is_float(), || {
        format!("operand 'a': expected floats for the normal distribution, found {a}")
    })?;
    Ok(vec![ResultRule::of(shape_operand(cx, 2, C(3))?.like(a), C(3)).with_elements(C(1))])
}

/// `rng_bit_generator`: the first result is the state; the program chooses the type of the bits.
fn rng_bit_generator(cx: &Context<'_>, algorithm: RngAlgorithm) -> Results {
    let state = cx.tensor(0)?;
    let sizes: &[i64] = match algorithm {
        RngAlgorithm::ThreeFry => &[2],
        RngAlgorithm::Philox => &[2, 3],
        RngAlgorithm::Default => &[DYNAMIC],
    };
    // MLIR's verifier accepts any state that is not a vector of 64-bit words.
    let words = state.element_type() == ElementType::Ui64 && state.rank() == 1;
    let fits = !words || sizes.iter().any(|&size| sizes_agree(size, state.dims()[0]));
    cx.require(C(2), fits, || {
        format!("operand 'initial_state': expected {} elements for {algorithm}, found {state}", list(sizes))
    })?;
    Ok(vec![ResultRule::of(state.clone(), C(1)), ResultRule::declared()])
}

/// `torch_index_select`: dimension `dim` is indexed, and the leading dimensions are batch dimensions.
fn torch_index_select(cx: &Context<'_>, dim: i64, batch_dims: i64) -> Results {
    let (operand, index) = (cx.tensor(0)?, cx.tensor(1)?);
    let dim = cx.dimension(None, "dim", dim, operand.rank())?;
    let batch = usize::try_from(batch_dims).ok().filter(|&batch| batch <= dim && batch <= index.rank());
    let batch = batch.ok_or_else(|| {
        cx.error(
            None,
            format!("batch_dims: expected at most 'dim' and the rank of the indices, found {batch_dims}"),
        )
    })?;
    let agree = (0..batch).all(|place| sizes_agree(operand.dims()[place], index.dims()[place]));
    cx.require(None, agree, || {
        format!("operand 'index': expected the batch dimensions of {operand}, found {index}")
    })?;
    let (of_operand, of_index) = (Shape::of(operand), Shape::of(index));
    let shape: Shape = of_operand
        .sizes()
        .take(dim)
        .chain(of_index.sizes().skip(batch))
        .chain(of_operand.sizes().skip(dim + 1))
        .collect();
    Ok(vec![ResultRule::of(shape.like(operand), None)])
}

/// `optimization_barrier`, `collective_permute`: the results have the types of the operands.
pub(super) fn same_types(cx: &Context<'_>, constraint: impl Into<Option<Constraint>>) -> Results {
    let constraint = constraint.into();
    Ok(cx.operand_types().into_iter().map(|ty| ResultRule::of(ty, constraint)).collect())
}

/// `sharding_constraint`, `reshard`: the result has the type of the operand, and the sharding has its rank, or no
/// dimensions if the mesh is a single device.
fn sharded(cx: &Context<'_>, sharding: &TensorSharding) -> Results {
    let count = sharding.dim_shardings.len();
    if let Type::Tensor(operand) = cx.operand_type(0)
        && count > 0
    {
        cx.require(None, count == operand.rank(), || {
            format!(
                "sharding: expected shardings for the {} dimensions of {operand}, found {count}",
                operand.rank()
            )
        })?;
    }
    same_types(cx, None)
}

/// `create_token`, `after_all`, `send`, `outfeed`: the result is a token.
pub(super) fn token() -> Results {
    Ok(vec![ResultRule::of(Type::Token, Constraint::O(1))])
}
