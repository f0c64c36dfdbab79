//! Operations that combine many elements with a region.

use super::{is_ordered, scalar, tame};
use crate::generator::{Generator, Region, Scope, Value, array, pairs};
use crate::table::is_allowed;
use crate::types::{Element, Fill, Ty};
use pjrt_stablehlo::ir::{ElementKind, ElementType, OpCode};

/// Chooses an associative and commutative operation on the type, and elements for which the result does not depend on the order.
pub(super) fn combination(g: &mut Generator, element: Element) -> Option<(OpCode, Fill)> {
    let exact = [OpCode::Maximum, OpCode::Minimum, OpCode::And, OpCode::Or, OpCode::Xor];
    let rounded = [OpCode::Add, OpCode::Multiply];
    let exact = exact.into_iter().map(|code| (code, Fill::Any));
    let all: Vec<(OpCode, Fill)> = exact
        .chain(rounded.into_iter().map(|code| (code, tame(element))))
        .filter(|(code, _)| is_allowed(*code, element))
        .filter(|(code, _)| is_ordered(element) || !matches!(code, OpCode::Maximum | OpCode::Minimum))
        .collect();
    (!all.is_empty()).then(|| g.random.pick(&all))
}

/// Generates the region that combines two scalars.
pub(super) fn combining(g: &mut Generator, code: OpCode, element: Element) -> Region {
    let ty = scalar(element);
    let swapped = g.random.percent(30);
    g.region(Scope::Isolated, &[ty.clone(), ty.clone()], |g, arguments| {
        let (a, b) = if swapped { (1, 0) } else { (0, 1) };
        g.push(code.info().name, &[&arguments[a], &arguments[b]], "", &[], &[ty])
    })
}

/// Generates the initial value. It is the identity of the operation, because the specification allows an implementation to use
/// it any number of times.
fn initial(g: &mut Generator, code: OpCode, element: Element) -> Value {
    let neutral = match code {
        OpCode::Multiply => Fill::Range(1, 1),
        OpCode::And => Fill::Range(-1, -1),
        OpCode::Maximum => Fill::Lowest,
        OpCode::Minimum => Fill::Highest,
        _ => Fill::Range(0, 0),
    };
    g.operand(&scalar(element), neutral)
}

pub(super) fn reduce(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    if is_ordered(element) && element.kind() != ElementKind::Quantized && g.random.percent(20) {
        return Some(argument_of_extreme(g, element));
    }
    let (code, fill) = combination(g, element)?;
    let value = g.some(element, 1..=4, fill);
    let start = initial(g, code, element);
    let mut dimensions = g.random.permutation(value.ty.rank());
    dimensions.truncate(1 + g.random.below(value.ty.rank()));
    dimensions.sort_unstable();
    let dims = without(&value.ty.dims, &dimensions);
    let body = combining(g, code, element);
    let attributes = format!("dimensions = {}", array(&dimensions));
    Some(g.push("stablehlo.reduce", &[&value, &start], &attributes, &[body], &[Ty::new(element, &dims)]))
}

fn without(dims: &[i64], dropped: &[i64]) -> Vec<i64> {
    (0..dims.len()).filter(|&d| !dropped.contains(&(d as i64))).map(|d| dims[d]).collect()
}

/// Generates a reduction of values and indices to the largest or smallest value and its first index.
fn argument_of_extreme(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 1..=3, Fill::Any);
    let dimension = g.random.below(value.ty.rank());
    let index = Element::Plain(g.random.pick(&[ElementType::I32, ElementType::I64]));
    let places = value.ty.with_element(index);
    let attributes = format!("iota_dimension = {dimension} : i64");
    let places = g.push("stablehlo.iota", &[], &attributes, &[], &[places]).remove(0);
    let (scalar, place) = (scalar(element), Ty::new(index, &[]));
    let direction = g.random.pick(&["GT", "LT"]);
    let start = g.constant(&scalar, if direction == "GT" { Fill::Lowest } else { Fill::Highest });
    let first = g.constant(&place, Fill::Range(0, 0));
    let arguments = [scalar.clone(), place.clone(), scalar.clone(), place.clone()];
    let body = g.region(Scope::Isolated, &arguments, |g, a| {
        let bool = Ty::plain(ElementType::I1, &[]);
        let mut compare = |direction: &str, lhs: usize, rhs: usize| {
            let attributes = format!("comparison_direction = #stablehlo<comparison_direction {direction}>");
            g.push("stablehlo.compare", &[&a[lhs], &a[rhs]], &attributes, &[], std::slice::from_ref(&bool))
                .remove(0)
        };
        let (better, is_nan, equal) = (compare(direction, 0, 2), compare("NE", 0, 0), compare("EQ", 0, 2));
        let earlier = compare("LT", 1, 3);
        let mut logic = |op: &str, lhs: &Value, rhs: &Value| {
            g.push(op, &[lhs, rhs], "", &[], std::slice::from_ref(&bool)).remove(0)
        };
        let keep = logic("stablehlo.or", &better, &is_nan);
        let tie = logic("stablehlo.and", &equal, &earlier);
        let keep_place = logic("stablehlo.or", &keep, &tie);
        let best = g.push("stablehlo.select", &[&keep, &a[0], &a[2]], "", &[], &[scalar]).remove(0);
        let place = g.push("stablehlo.select", &[&keep_place, &a[1], &a[3]], "", &[], &[place]).remove(0);
        vec![best, place]
    });
    let dims = without(&value.ty.dims, &[dimension as i64]);
    let results = [value.ty.with_dims(&dims), Ty::new(index, &dims)];
    let attributes = format!("dimensions = {}", array(&[dimension as i64]));
    g.push("stablehlo.reduce", &[&value, &places, &start, &first], &attributes, &[body], &results)
}

/// The windows of an operation on a shape.
struct Windows {
    sizes: Vec<i64>,
    strides: Vec<i64>,
    base: Vec<i64>,
    dilations: Vec<i64>,
    padding: Vec<(i64, i64)>,
    result: Vec<i64>,
}

impl Windows {
    fn over(g: &mut Generator, dims: &[i64], dilated: bool) -> Self {
        let mut w = Self {
            sizes: vec![],
            strides: vec![],
            base: vec![],
            dilations: vec![],
            padding: vec![],
            result: vec![],
        };
        for &size in dims {
            let window = g.random.between(1, 3);
            let stride = g.random.between(1, 3);
            let factor = |g: &mut Generator| if dilated && g.random.percent(30) { 2 } else { 1 };
            let (base, dilation) = (factor(g), factor(g));
            let inner = if size == 0 { 0 } else { (size - 1) * base + 1 };
            let low = g.random.between(if dilated { -1 } else { 0 }, 2).max(-inner);
            let high = g.random.between(if dilated { -1 } else { 0 }, 2).max(-(inner + low));
            let room = inner + low + high - ((window - 1) * dilation + 1);
            let result = if room < 0 || inner + low + high == 0 { 0 } else { room / stride + 1 };
            w.sizes.push(window);
            w.strides.push(stride);
            w.base.push(base);
            w.dilations.push(dilation);
            w.padding.push((low, high));
            w.result.push(result);
        }
        w
    }
}

pub(super) fn reduce_window(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let (code, fill) = combination(g, element)?;
    let value = g.some(element, 1..=3, fill);
    let w = Windows::over(g, &value.ty.dims.clone(), true);
    let start = initial(g, code, element);
    let body = combining(g, code, element);
    let attributes = format!(
        "window_dimensions = {}, window_strides = {}, base_dilations = {}, window_dilations = {}, padding = {}",
        array(&w.sizes),
        array(&w.strides),
        array(&w.base),
        array(&w.dilations),
        pairs(&w.padding)
    );
    let result = value.ty.with_dims(&w.result);
    Some(g.push("stablehlo.reduce_window", &[&value, &start], &attributes, &[body], &[result]))
}

pub(super) fn select_and_scatter(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    if !is_ordered(element) {
        return None;
    }
    // The specification does not define how often a sum is rounded or the initial value is used, and a quantized type may not
    // contain the identity of the operation.
    let (code, fill) = match element.kind() {
        ElementKind::Quantized => (g.random.pick(&[OpCode::Maximum, OpCode::Minimum]), Fill::Any),
        _ => combination(g, element)?,
    };
    let value = g.some(element, 1..=3, Fill::Tame);
    let mut w = Windows::over(g, &value.ty.dims.clone(), false);
    // A window of padding only does not select an element.
    w.padding.iter_mut().zip(&w.sizes).for_each(|(p, size)| *p = (p.0.min(size - 1), p.1.min(size - 1)));
    let dims = value.ty.dims.clone();
    let result = |d: usize| {
        let room = dims[d] + w.padding[d].0 + w.padding[d].1 - w.sizes[d];
        if room < 0 || dims[d] == 0 { 0 } else { room / w.strides[d] + 1 }
    };
    let source: Vec<i64> = (0..dims.len()).map(result).collect();
    let source = g.operand(&value.ty.with_dims(&source), fill);
    let start = initial(g, code, element);
    let direction = g.random.pick(&["GE", "LE"]);
    let ty = scalar(element);
    let select = g.region(Scope::Isolated, &[ty.clone(), ty.clone()], |g, arguments| {
        let attributes = format!("comparison_direction = #stablehlo<comparison_direction {direction}>");
        let bool = Ty::plain(ElementType::I1, &[]);
        g.push("stablehlo.compare", &[&arguments[0], &arguments[1]], &attributes, &[], &[bool])
    });
    let scatter = combining(g, code, element);
    let attributes = format!(
        "window_dimensions = {}, window_strides = {}, padding = {}",
        array(&w.sizes),
        array(&w.strides),
        pairs(&w.padding)
    );
    let result = value.ty.clone();
    Some(g.push(
        "stablehlo.select_and_scatter",
        &[&value, &source, &start],
        &attributes,
        &[select, scatter],
        &[result],
    ))
}

/// `sort` of one to three operands by the first.
pub(super) fn sort(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    if !is_ordered(element) {
        return None;
    }
    let key = g.some(element, 1..=3, Fill::Any);
    let dimension = g.random.below(key.ty.rank());
    let mut values = vec![key];
    for _ in 0..g.random.below(3) {
        let other = g.some_element();
        let ty = values[0].ty.with_element(other);
        values.push(g.operand(&ty, Fill::Any));
    }
    let total = element.is_float() && g.random.percent(60);
    let direction = g.random.pick(&["LT", "GT"]);
    // Without a total order, the position of NaN is not specified.
    if element.is_float() && !total {
        let ty = values[0].ty.clone();
        values[0] = g.input(&ty, Fill::Tame);
    }
    let scalars: Vec<Ty> = values.iter().flat_map(|v| [scalar(v.ty.element), scalar(v.ty.element)]).collect();
    let body = g.region(Scope::Isolated, &scalars, |g, arguments| {
        let kind = if total { ", compare_type = #stablehlo<comparison_type TOTALORDER>" } else { "" };
        let attributes = format!("comparison_direction = #stablehlo<comparison_direction {direction}>{kind}");
        let bool = Ty::plain(ElementType::I1, &[]);
        g.push("stablehlo.compare", &[&arguments[0], &arguments[1]], &attributes, &[], &[bool])
    });
    let attributes = format!("dimension = {dimension} : i64, is_stable = true");
    let results: Vec<Ty> = values.iter().map(|v| v.ty.clone()).collect();
    Some(g.push("stablehlo.sort", &values.iter().collect::<Vec<_>>(), &attributes, &[body], &results))
}
