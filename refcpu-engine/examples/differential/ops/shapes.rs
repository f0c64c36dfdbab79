//! Operations that move elements, or compute them from their indices.

use crate::generator::{Generator, Value, array};
use crate::types::{Element, Fill, Ty};
use pjrt_stablehlo::ir::ElementType;

/// Chooses another shape with the same number of elements.
fn reshaped(g: &mut Generator, dims: &[i64]) -> Vec<i64> {
    let mut rest: i64 = dims.iter().product();
    let mut result = Vec::new();
    if rest == 0 {
        result.push(0);
        return result;
    }
    while rest > 1 && result.len() < 3 {
        let divisors: Vec<i64> = (1..=rest.min(24)).filter(|d| rest % d == 0).collect();
        let size = g.random.pick(&divisors);
        result.push(size);
        rest /= size;
    }
    if rest > 1 {
        result.push(rest);
    }
    if result.len() < 4 && g.random.percent(25) {
        result.insert(g.random.below(result.len() + 1), 1);
    }
    result
}

pub(super) fn reshape(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=4, Fill::Any);
    let dims = reshaped(g, &value.ty.dims.clone());
    let result = value.ty.with_dims(&dims);
    g.push("stablehlo.reshape", &[&value], "", &[], &[result])
}

pub(super) fn dynamic_reshape(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=4, Fill::Any);
    let dims = reshaped(g, &value.ty.dims.clone());
    let shape = g.integers(&dims);
    let result = value.ty.with_dims(&dims);
    g.push("stablehlo.dynamic_reshape", &[&value, &shape], "", &[], &[result])
}

pub(super) fn broadcast(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=2, Fill::Any);
    let sizes = g.dims(2);
    let dims = [sizes.clone(), value.ty.dims.clone()].concat();
    let attributes = format!("broadcast_sizes = {}", array(&sizes));
    let result = value.ty.with_dims(&dims);
    g.push("stablehlo.broadcast", &[&value], &attributes, &[], &[result])
}

/// Chooses the dimension of the result for each dimension of the operand, and the shape of the result.
fn broadcast_dims(g: &mut Generator, dims: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let rank = (dims.len() + g.random.below(3)).min(4);
    let mut result = g.dims_of(rank);
    let mut places = g.random.permutation(rank);
    places.truncate(dims.len());
    if g.random.percent(70) {
        places.sort_unstable();
    }
    for (&place, &size) in places.iter().zip(dims) {
        if size != 1 {
            result[place as usize] = size;
        }
    }
    (places, result)
}

pub(super) fn broadcast_in_dim(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=3, Fill::Any);
    let (places, dims) = broadcast_dims(g, &value.ty.dims.clone());
    let attributes = format!("broadcast_dimensions = {}", array(&places));
    let result = value.ty.with_dims(&dims);
    g.push("stablehlo.broadcast_in_dim", &[&value], &attributes, &[], &[result])
}

pub(super) fn dynamic_broadcast_in_dim(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=3, Fill::Any);
    let (places, dims) = broadcast_dims(g, &value.ty.dims.clone());
    let shape = g.integers(&dims);
    let attributes = format!("broadcast_dimensions = {}", array(&places));
    let result = value.ty.with_dims(&dims);
    g.push("stablehlo.dynamic_broadcast_in_dim", &[&value, &shape], &attributes, &[], &[result])
}

pub(super) fn transpose(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=4, Fill::Any);
    let permutation = g.random.permutation(value.ty.rank());
    let dims: Vec<i64> = permutation.iter().map(|&d| value.ty.dims[d as usize]).collect();
    let attributes = format!("permutation = {}", array(&permutation));
    let result = value.ty.with_dims(&dims);
    g.push("stablehlo.transpose", &[&value], &attributes, &[], &[result])
}

pub(super) fn reverse(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=4, Fill::Any);
    let mut dimensions = g.random.permutation(value.ty.rank());
    dimensions.truncate(g.random.below(value.ty.rank() + 1));
    let attributes = format!("dimensions = {}", array(&dimensions));
    let result = value.ty.clone();
    g.push("stablehlo.reverse", &[&value], &attributes, &[], &[result])
}

/// Chooses for each dimension the first index, the index after the last, and the step. Returns them and the shape of the slice.
fn window(g: &mut Generator, dims: &[i64]) -> [Vec<i64>; 4] {
    let mut all = [const { Vec::new() }; 4];
    for &size in dims {
        let start = g.random.between(0, size);
        let limit = if g.random.percent(40) { size } else { g.random.between(start, size) };
        let stride = if g.random.percent(60) { 1 } else { g.random.between(1, 4) };
        let taken = (limit - start + stride - 1) / stride;
        all.iter_mut().zip([start, limit, stride, taken]).for_each(|(list, value)| list.push(value));
    }
    all
}

pub(super) fn slice(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=4, Fill::Any);
    let [starts, limits, strides, dims] = window(g, &value.ty.dims.clone());
    let attributes = format!(
        "start_indices = {}, limit_indices = {}, strides = {}",
        array(&starts),
        array(&limits),
        array(&strides)
    );
    let result = value.ty.with_dims(&dims);
    g.push("stablehlo.slice", &[&value], &attributes, &[], &[result])
}

pub(super) fn real_dynamic_slice(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=3, Fill::Any);
    let [starts, limits, strides, dims] = window(g, &value.ty.dims.clone());
    let index = Ty::plain(ElementType::I64, &[]);
    let bounds: Vec<Value> = [starts, limits, strides].iter().map(|list| vector(g, &index, list)).collect();
    let result = value.ty.with_dims(&dims);
    g.push("stablehlo.real_dynamic_slice", &[&value, &bounds[0], &bounds[1], &bounds[2]], "", &[], &[result])
}

/// Adds a constant vector of the given element type.
fn vector(g: &mut Generator, like: &Ty, values: &[i64]) -> Value {
    let ty = like.with_dims(&[values.len() as i64]);
    let width = like.element.storage().byte_width();
    let elements: Vec<Vec<u8>> = values.iter().map(|v| v.to_le_bytes()[..width].to_vec()).collect();
    let attributes = format!("value = {}", crate::types::literal(&ty, &elements));
    g.push("stablehlo.constant", &[], &attributes, &[], &[ty]).remove(0)
}

/// Chooses low, high and interior padding. Returns them and the padded shape.
fn padding(g: &mut Generator, dims: &[i64]) -> [Vec<i64>; 4] {
    let mut all = [const { Vec::new() }; 4];
    for &size in dims {
        let interior = if g.random.percent(60) { 0 } else { g.random.between(1, 2) };
        let inner = size + (size - 1).max(0) * interior;
        let low = g.random.between(-2.min(inner), 3).max(-inner);
        let high = g.random.between(-2, 3).max(-(inner + low));
        all.iter_mut()
            .zip([low, high, interior, inner + low + high])
            .for_each(|(list, value)| list.push(value));
    }
    all
}

pub(super) fn pad(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=3, Fill::Any);
    let [low, high, interior, dims] = padding(g, &value.ty.dims.clone());
    let filling = g.operand(&value.ty.with_dims(&[]), Fill::Any);
    let attributes = format!(
        "edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}",
        array(&low),
        array(&high),
        array(&interior)
    );
    let result = value.ty.with_dims(&dims);
    g.push("stablehlo.pad", &[&value, &filling], &attributes, &[], &[result])
}

pub(super) fn dynamic_pad(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=3, Fill::Any);
    let [low, high, interior, dims] = padding(g, &value.ty.dims.clone());
    let filling = g.operand(&value.ty.with_dims(&[]), Fill::Any);
    let index = Ty::plain(ElementType::I64, &[]);
    let amounts: Vec<Value> = [low, high, interior].iter().map(|list| vector(g, &index, list)).collect();
    let result = value.ty.with_dims(&dims);
    g.push(
        "stablehlo.dynamic_pad",
        &[&value, &filling, &amounts[0], &amounts[1], &amounts[2]],
        "",
        &[],
        &[result],
    )
}

pub(super) fn concatenate(g: &mut Generator, element: Element) -> Vec<Value> {
    let first = g.some(element, 1..=4, Fill::Any);
    let dimension = g.random.below(first.ty.rank());
    let mut values = vec![first];
    for _ in 0..g.random.below(3) {
        let mut dims = values[0].ty.dims.clone();
        if g.random.percent(60) {
            dims[dimension] = g.size();
        }
        let ty = values[0].ty.with_dims(&dims);
        values.push(g.operand(&ty, Fill::Any));
    }
    let mut dims = values[0].ty.dims.clone();
    dims[dimension] = values.iter().map(|v| v.ty.dims[dimension]).sum();
    let result = values[0].ty.with_dims(&dims);
    let attributes = format!("dimension = {dimension} : i64");
    g.push("stablehlo.concatenate", &values.iter().collect::<Vec<_>>(), &attributes, &[], &[result])
}

/// Generates the start indices of a slice as scalars, which are sometimes out of bounds.
fn starts(g: &mut Generator, dims: &[i64]) -> Vec<Value> {
    let types = [ElementType::I32, ElementType::I64, ElementType::Ui32, ElementType::I8, ElementType::Ui8];
    let ty = Ty::plain(g.random.pick(&types), &[]);
    let low = if ty.text().contains("ui") { 0 } else { -3 };
    dims.iter().map(|&size| g.operand(&ty, Fill::Range(low, (size + 2).min(100)))).collect()
}

pub(super) fn dynamic_slice(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=3, Fill::Any);
    let sizes: Vec<i64> =
        value.ty.dims.iter().map(|&size| g.random.between(0.max(size.min(1)), size)).collect();
    let starts = starts(g, &value.ty.dims.clone());
    let attributes = format!("slice_sizes = {}", array(&sizes));
    let result = value.ty.with_dims(&sizes);
    let operands: Vec<&Value> = std::iter::once(&value).chain(&starts).collect();
    g.push("stablehlo.dynamic_slice", &operands, &attributes, &[], &[result])
}

pub(super) fn dynamic_update_slice(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=3, Fill::Any);
    let sizes: Vec<i64> =
        value.ty.dims.iter().map(|&size| g.random.between(0.max(size.min(1)), size)).collect();
    let update = g.operand(&value.ty.with_dims(&sizes), Fill::Any);
    let starts = starts(g, &value.ty.dims.clone());
    let result = value.ty.clone();
    let operands: Vec<&Value> = [&value, &update].into_iter().chain(&starts).collect();
    g.push("stablehlo.dynamic_update_slice", &operands, "", &[], &[result])
}

pub(super) fn get_dimension_size(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 1..=4, Fill::Any);
    let attributes = format!("dimension = {} : i64", g.random.below(value.ty.rank()));
    let result = Ty::plain(ElementType::I32, &[]);
    g.push("stablehlo.get_dimension_size", &[&value], &attributes, &[], &[result])
}

/// `set_dimension_size` to the dimension's own size, the only one that static programs can set.
pub(super) fn set_dimension_size(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 1..=4, Fill::Any);
    let dimension = g.random.below(value.ty.rank());
    let size = value.ty.dims[dimension];
    let size = g.constant(&Ty::plain(ElementType::I32, &[]), Fill::Range(size, size));
    let result = value.ty.clone();
    g.push(
        "stablehlo.set_dimension_size",
        &[&value, &size],
        &format!("dimension = {dimension} : i64"),
        &[],
        &[result],
    )
}

pub(super) fn iota(g: &mut Generator, element: Element) -> Vec<Value> {
    let rank = 1 + g.random.below(3);
    let dims = g.dims_of(rank);
    let attributes = format!("iota_dimension = {} : i64", g.random.below(rank));
    g.push("stablehlo.iota", &[], &attributes, &[], &[Ty::new(element, &dims)])
}

pub(super) fn dynamic_iota(g: &mut Generator, element: Element) -> Vec<Value> {
    let rank = 1 + g.random.below(3);
    let dims = g.dims_of(rank);
    let shape = g.integers(&dims);
    let attributes = format!("iota_dimension = {} : i64", g.random.below(rank));
    g.push("stablehlo.dynamic_iota", &[&shape], &attributes, &[], &[Ty::new(element, &dims)])
}

pub(super) fn rng_bit_generator(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let (algorithm, words) = g.random.pick(&[("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2)]);
    let state = g.operand(&Ty::plain(ElementType::Ui64, &[words]), Fill::Any);
    let dims = g.dims(3);
    let attributes = format!("rng_algorithm = #stablehlo<rng_algorithm {algorithm}>");
    let results = [state.ty.clone(), Ty::new(element, &dims)];
    Some(g.push("stablehlo.rng_bit_generator", &[&state], &attributes, &[], &results))
}
