//! Expands scatters.

use super::loops::{all_flat, apply, either, element, elements, for_each, shaped, with_elements};
use super::{Result, pitches, positions_of};
use crate::graph::{Builder, Constant, Graph, ScatterDims, Shape, ValueId};
use refcpu_kernels::DType;
use refcpu_kernels::region::Direction;
use refcpu_kernels::tile::TileOp;

/// Expands a scatter, which combines updates in row-major order. Updates of windows that exceed the array are skipped.
pub(super) fn scatter(
    b: &mut Builder,
    body: &Graph,
    operands: &[ValueId],
    shapes: &[Shape],
    dims: &ScatterDims,
) -> Result<Vec<ValueId>> {
    let (inputs, rest) = operands.split_at(shapes.len());
    let (indices, updates) = (rest[0], &rest[1..]);
    let from = b.shape(updates[0]).clone();
    if from.is_empty() || shapes[0].is_empty() {
        return Ok(inputs.to_vec());
    }
    let (places, inside) = places(b, &shapes[0].dims, indices, &from.dims, dims)?;
    let arrays = all_flat(b, inputs);
    let fixed = [&[places, inside], updates].concat();
    let fixed = all_flat(b, &fixed);
    let arrays = for_each(b, from.len(), &arrays, &fixed, |b, turn, arrays, fixed| {
        let place = element(b, fixed[0], turn);
        let inside = element(b, fixed[1], turn);
        let mut arguments = elements(b, arrays, place);
        arguments.extend(elements(b, &fixed[2..], turn));
        let combine = |b: &mut Builder, arguments: &[ValueId]| apply(b, body, arguments);
        // An update outside the array reads the nearest element and writes it back.
        let keep = |_: &mut Builder, arguments: &[ValueId]| arguments[..arrays.len()].to_vec();
        let values = either(b, inside, &arguments, combine, keep);
        with_elements(b, arrays, place, &values)
    });
    Ok(shaped(b, &arrays, shapes))
}

/// Returns, for each update, the index of its element in an array of dimensions `of`, and whether its whole window is inside
/// the array. Both have the dimensions of the updates.
fn places(
    b: &mut Builder,
    of: &[usize],
    indices: ValueId,
    updates: &[usize],
    dims: &ScatterDims,
) -> Result<(ValueId, ValueId)> {
    let shape = positions_of(updates)?;
    let vectors = b.shape(indices).clone();
    positions_of(&vectors.dims)?;
    let indices = b.convert(indices, DType::S64);
    let pitches = pitches(of);
    let number = |b: &mut Builder, value: i64| {
        let value = b.constant(Constant::integer(DType::S64, value));
        b.spread(value, updates)
    };
    let is_windowed =
        |d: &usize| !dims.inserted_window_dims.contains(d) && !dims.input_batching_dims.contains(d);
    let windowed: Vec<usize> = (0..of.len()).filter(is_windowed).collect();
    let scattered: Vec<usize> = (0..updates.len()).filter(|d| !dims.update_window_dims.contains(d)).collect();

    let mut inside = b.constant(Constant::splat(shape.with_dtype(DType::Pred), vec![1]));
    let mut parts = Vec::new();
    for (k, d) in dims.scatter_dims_to_operand_dims.iter().enumerate() {
        let start = component(b, indices, dims.index_vector_dim, k);
        let start = b.broadcast(start, &scattered, updates);
        let window = windowed.iter().position(|w| w == d).map_or(1, |w| updates[dims.update_window_dims[w]]);
        let first = number(b, 0);
        let last = number(b, of[*d] as i64 - window as i64);
        for (relation, bound) in [(Direction::Ge, first), (Direction::Le, last)] {
            let fits = b.compare(relation, start, bound);
            inside = b.tile(TileOp::And, &[inside, fits]);
        }
        parts.push((*d, start));
    }
    for (d, along) in windowed.iter().zip(&dims.update_window_dims) {
        parts.push((*d, b.iota(shape.clone(), *along)));
    }
    for (d, along) in dims.input_batching_dims.iter().zip(&dims.scatter_indices_batching_dims) {
        let along = scattered[along - usize::from(dims.index_vector_dim < *along)];
        parts.push((*d, b.iota(shape.clone(), along)));
    }
    let mut place = number(b, 0);
    for (d, coordinate) in parts {
        let pitch = number(b, pitches[d]);
        let part = b.tile(TileOp::Multiply, &[coordinate, pitch]);
        place = b.tile(TileOp::Add, &[place, part]);
    }
    Ok((place, inside))
}

/// Returns one component of all index vectors, without the dimension that contains the vectors.
fn component(b: &mut Builder, indices: ValueId, vector_dim: usize, k: usize) -> ValueId {
    let mut limit = b.shape(indices).dims.to_vec();
    if vector_dim == limit.len() {
        return indices;
    }
    let mut start = vec![0; limit.len()];
    (start[vector_dim], limit[vector_dim]) = (k, k + 1);
    let one = b.slice(indices, &start, &limit);
    limit.remove(vector_dim);
    b.reshape(one, &limit)
}
