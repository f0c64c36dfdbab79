//! Products of tensors, transforms, decompositions and normalizations.

use super::tame;
use crate::generator::{Generator, Value, array, list, pairs};
use crate::types::{Element, Fill, SYMMETRIC, Ty};
use pjrt_stablehlo::ir::{ElementKind, ElementType, OpCode};

/// Chooses the element type of the result of a product: that of the operands, or a wider one.
fn accumulated(g: &mut Generator, element: Element) -> Element {
    let Element::Plain(ty) = element else { return element };
    let wider: &[ElementType] = match ty.kind() {
        ElementKind::Float if ty.bits() <= 16 => &[ElementType::F32],
        ElementKind::SignedInteger if ty.bits() <= 16 => &[ElementType::I32],
        ElementKind::UnsignedInteger if ty.bits() <= 16 => &[ElementType::Ui32],
        _ => &[],
    };
    if !wider.is_empty() && g.random.percent(30) { Element::Plain(wider[0]) } else { element }
}

/// Replaces a quantized element type with one that has no zero point, as right operands of products require.
fn symmetric(g: &mut Generator, element: Element) -> Element {
    match element {
        Element::Quantized(_) => Element::Quantized(g.random.pick(&SYMMETRIC)),
        plain => plain,
    }
}

pub(super) fn dot(g: &mut Generator, element: Element) -> Vec<Value> {
    let fill = tame(element);
    let (m, k, n) = (g.size(), g.size(), g.size());
    let (lhs, rhs, result) = g.random.pick(&[
        (vec![m, k], vec![k, n], vec![m, n]),
        (vec![k], vec![k], vec![]),
        (vec![m, k], vec![k], vec![m]),
        (vec![k], vec![k, n], vec![n]),
    ]);
    let lhs = g.operand(&Ty::new(element, &lhs), fill);
    let rhs = g.operand(&Ty::new(element, &rhs), fill);
    g.push("stablehlo.dot", &[&lhs, &rhs], "", &[], &[Ty::new(element, &result)])
}

pub(super) fn dot_general(g: &mut Generator, element: Element) -> Vec<Value> {
    let element = symmetric(g, element);
    let fill = tame(element);
    let sizes = |g: &mut Generator, most: usize| -> Vec<i64> {
        let count = g.random.below(most + 1);
        (0..count).map(|_| g.size()).collect()
    };
    let (batch, contracted) = (sizes(g, 1), sizes(g, 2));
    let (left, right) = (sizes(g, 2), sizes(g, 1));
    let (lhs, lhs_batch, lhs_contracted) = placed(g, &batch, &contracted, &left);
    let (rhs, rhs_batch, rhs_contracted) = placed(g, &batch, &contracted, &right);
    let lhs = g.operand(&Ty::new(element, &lhs), fill);
    let rhs = g.operand(&Ty::new(element, &rhs), fill);
    let attributes = format!(
        "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {}, rhs_batching_dimensions = {}, lhs_contracting_dimensions = {}, rhs_contracting_dimensions = {}>",
        list(&lhs_batch),
        list(&rhs_batch),
        list(&lhs_contracted),
        list(&rhs_contracted)
    );
    // The sizes of the dimensions that are neither batched nor contracted, in the order of the operand.
    let free = |value: &Value, batch: &[i64], contracted: &[i64]| -> Vec<i64> {
        let is_free = |d: &usize| !batch.contains(&(*d as i64)) && !contracted.contains(&(*d as i64));
        (0..value.ty.rank()).filter(is_free).map(|d| value.ty.dims[d]).collect()
    };
    let dims =
        [batch, free(&lhs, &lhs_batch, &lhs_contracted), free(&rhs, &rhs_batch, &rhs_contracted)].concat();
    let result = Ty::new(accumulated(g, element), &dims);
    g.push("stablehlo.dot_general", &[&lhs, &rhs], &attributes, &[], &[result])
}

/// Generates an operand with its dimensions in random order, and returns the batch and contracting dimensions.
fn placed(
    g: &mut Generator,
    batch: &[i64],
    contracted: &[i64],
    free: &[i64],
) -> (Vec<i64>, Vec<i64>, Vec<i64>) {
    let all = [batch, contracted, free].concat();
    let places = g.random.permutation(all.len());
    let mut dims = vec![0; all.len()];
    places.iter().zip(&all).for_each(|(&place, &size)| dims[place as usize] = size);
    let (b, c) = (batch.len(), batch.len() + contracted.len());
    (dims, places[..b].to_vec(), places[b..c].to_vec())
}

pub(super) fn einsum(g: &mut Generator, element: Element) -> Vec<Value> {
    let fill = tame(element);
    let (a, b, c) = (g.size(), g.size(), g.size());
    let (config, lhs, rhs, result) = g.random.pick(&[
        ("ab,bc->ac", vec![a, b], vec![b, c], vec![a, c]),
        ("ab,cb->ac", vec![a, b], vec![c, b], vec![a, c]),
        ("ab,ab->a", vec![a, b], vec![a, b], vec![a]),
        ("a,b->ba", vec![a], vec![b], vec![b, a]),
        ("ab,b->", vec![a, b], vec![b], vec![]),
    ]);
    let lhs = g.operand(&Ty::new(element, &lhs), fill);
    let rhs = g.operand(&Ty::new(element, &rhs), fill);
    let attributes = format!("einsum_config = \"{config}\"");
    g.push("stablehlo.einsum", &[&lhs, &rhs], &attributes, &[], &[Ty::new(element, &result)])
}

pub(super) fn unary_einsum(g: &mut Generator, element: Element) -> Vec<Value> {
    let (a, b) = (g.size(), g.size());
    let (config, operand, result) = g.random.pick(&[
        ("ab->a", vec![a, b], vec![a]),
        ("ab->ba", vec![a, b], vec![b, a]),
        ("ab->", vec![a, b], vec![]),
    ]);
    let operand = g.operand(&Ty::new(element, &operand), tame(element));
    let attributes = format!("einsum_config = \"{config}\"");
    g.push("stablehlo.unary_einsum", &[&operand], &attributes, &[], &[Ty::new(element, &result)])
}

/// One spatial dimension of a convolution.
struct Spatial {
    input: i64,
    kernel: i64,
    stride: i64,
    padding: (i64, i64),
    input_dilation: i64,
    kernel_dilation: i64,
    reversed: bool,
    output: i64,
}

impl Spatial {
    fn new(g: &mut Generator) -> Self {
        let dilated = |size: i64, by: i64| if size == 0 { 0 } else { (size - 1) * by + 1 };
        let (input, kernel) = (g.random.between(1, 7), g.random.between(1, 3));
        let factor = |g: &mut Generator| if g.random.percent(65) { 1 } else { g.random.between(2, 3) };
        let (stride, input_dilation, kernel_dilation) = (factor(g), factor(g), factor(g));
        let inner = dilated(input, input_dilation);
        let low = g.random.between(-1, 3).max(-inner);
        let high = g.random.between(-1, 3).max(-(inner + low));
        let room = inner + low + high - dilated(kernel, kernel_dilation);
        let output = if room < 0 || inner + low + high == 0 { 0 } else { room / stride + 1 };
        let reversed = g.random.percent(25);
        Self {
            input,
            kernel,
            stride,
            padding: (low, high),
            input_dilation,
            kernel_dilation,
            reversed,
            output,
        }
    }
}

/// `convolution`, or `dynamic_conv` with a constant padding.
pub(super) fn convolution(g: &mut Generator, element: Element, dynamic: bool) -> Vec<Value> {
    let element = symmetric(g, element);
    let fill = tame(element);
    let rank = g.random.below(3);
    let spatial: Vec<Spatial> = (0..rank).map(|_| Spatial::new(g)).collect();
    let groups = if g.random.percent(70) { 1 } else { g.random.between(2, 3) };
    let (feature_groups, batch_groups) = if g.random.percent(50) { (groups, 1) } else { (1, groups) };
    let features = g.random.between(1, 3);
    let batch = g.random.between(1, 3) * batch_groups;
    let outputs = g.random.between(1, 3) * groups;
    // The position of each role: batch or output features, input features, then the spatial dimensions.
    let orders: [Vec<i64>; 3] = std::array::from_fn(|_| g.random.permutation(rank + 2));
    let shape = |order: &[i64], first: i64, second: i64, sizes: Vec<i64>| {
        let mut dims = vec![0; rank + 2];
        let all = [vec![first, second], sizes].concat();
        order.iter().zip(all).for_each(|(&place, size)| dims[place as usize] = size);
        dims
    };
    let of = |size: fn(&Spatial) -> i64| spatial.iter().map(size).collect::<Vec<i64>>();
    let lhs = shape(&orders[0], batch, features * feature_groups, of(|s| s.input));
    let rhs = shape(&orders[1], outputs, features, of(|s| s.kernel));
    let result = shape(&orders[2], batch / batch_groups, outputs, of(|s| s.output));
    let labels = |order: &[i64], first: &'static str, second: &'static str| {
        let mut labels = vec![String::new(); rank + 2];
        let numbers = (0..rank).map(|n| n.to_string());
        let all = [first.to_owned(), second.to_owned()].into_iter().chain(numbers);
        order.iter().zip(all).for_each(|(&place, label)| labels[place as usize] = label);
        labels.join(", ")
    };
    let reversal: Vec<String> = spatial.iter().map(|s| s.reversed.to_string()).collect();
    let reversal =
        if rank == 0 { "array<i1>".to_owned() } else { format!("array<i1: {}>", reversal.join(", ")) };
    let padding: Vec<(i64, i64)> = spatial.iter().map(|s| s.padding).collect();
    let mut attributes = format!(
        "window_strides = {}, lhs_dilation = {}, rhs_dilation = {}, window_reversal = {reversal}, \
         dimension_numbers = #stablehlo.conv<[{}]x[{}]->[{}]>, \
         feature_group_count = {feature_groups} : i64, batch_group_count = {batch_groups} : i64",
        array(&of(|s| s.stride)),
        array(&of(|s| s.input_dilation)),
        array(&of(|s| s.kernel_dilation)),
        labels(&orders[0], "b", "f"),
        labels(&orders[1], "o", "i"),
        labels(&orders[2], "b", "f"),
    );
    let result = Ty::new(accumulated(g, element), &result);
    let lhs = g.operand(&Ty::new(element, &lhs), fill);
    let rhs = g.operand(&Ty::new(element, &rhs), fill);
    if !dynamic {
        attributes.push_str(&format!(", padding = {}", pairs(&padding)));
        return g.push("stablehlo.convolution", &[&lhs, &rhs], &attributes, &[], &[result]);
    }
    let ty = Ty::plain(ElementType::I64, &[rank as i64, 2]);
    let elements: Vec<Vec<u8>> =
        padding.iter().flat_map(|&(low, high)| [low, high]).map(|v| v.to_le_bytes().to_vec()).collect();
    let value = format!("value = {}", crate::types::literal(&ty, &elements));
    let padding = g.push("stablehlo.constant", &[], &value, &[], &[ty]).remove(0);
    g.push("stablehlo.dynamic_conv", &[&lhs, &rhs, &padding], &attributes, &[], &[result])
}

pub(super) fn fft(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let (kinds, other) = match element {
        Element::Plain(ElementType::F32) => (&["RFFT"][..], ElementType::ComplexF32),
        Element::Plain(ElementType::F64) => (&["RFFT"][..], ElementType::ComplexF64),
        Element::Plain(ElementType::ComplexF32) => (&["FFT", "IFFT", "IRFFT"][..], ElementType::F32),
        Element::Plain(ElementType::ComplexF64) => (&["FFT", "IFFT", "IRFFT"][..], ElementType::F64),
        _ => return None,
    };
    let kind = g.random.pick(kinds);
    let rank = 1 + g.random.below(3);
    let transformed = 1 + g.random.below(rank.min(3));
    let mut dims: Vec<i64> = (0..rank).map(|_| g.random.between(1, 9)).collect();
    let lengths: Vec<i64> = dims[rank - transformed..].to_vec();
    let last = rank - 1;
    let mut result = Ty::new(element, &dims);
    match kind {
        "RFFT" => {
            let mut halved = dims.clone();
            halved[last] = dims[last] / 2 + 1;
            result = Ty::plain(other, &halved);
        }
        "IRFFT" => {
            result = Ty::plain(other, &dims);
            dims[last] = dims[last] / 2 + 1;
        }
        _ => {}
    }
    let operand = g.operand(&Ty::new(element, &dims), Fill::Tame);
    let attributes = format!("fft_type = #stablehlo<fft_type {kind}>, fft_length = {}", array(&lengths));
    Some(g.push("stablehlo.fft", &[&operand], &attributes, &[], &[result]))
}

/// Generates a batch of diagonally dominant matrices, so that the results are well conditioned.
fn dominant(g: &mut Generator, element: Element, batch: &[i64], n: i64) -> Value {
    let dims = [batch, &[n, n]].concat();
    let ty = Ty::new(element, &dims);
    let noise = g.input(&ty, Fill::Tame);
    let large = g.constant(&ty.with_dims(&[]), Fill::Range(16, 16));
    let large = g
        .push(
            "stablehlo.broadcast_in_dim",
            &[&large],
            "broadcast_dimensions = array<i64>",
            &[],
            std::slice::from_ref(&ty),
        )
        .remove(0);
    let index = ty.with_element(Element::Plain(ElementType::I32));
    let rank = dims.len();
    let places: Vec<Value> = [rank - 2, rank - 1]
        .into_iter()
        .map(|d| {
            let attributes = format!("iota_dimension = {d} : i64");
            g.push("stablehlo.iota", &[], &attributes, &[], std::slice::from_ref(&index)).remove(0)
        })
        .collect();
    let pred = ty.with_element(Element::Plain(ElementType::I1));
    let equal = "comparison_direction = #stablehlo<comparison_direction EQ>";
    let diagonal = g.push("stablehlo.compare", &[&places[0], &places[1]], equal, &[], &[pred]).remove(0);
    g.push("stablehlo.select", &[&diagonal, &large, &noise], "", &[], &[ty]).remove(0)
}

fn batch(g: &mut Generator) -> Vec<i64> {
    if g.random.percent(50) { vec![] } else { vec![g.random.between(1, 3)] }
}

/// `cholesky` of a symmetric matrix. The other triangle of the result is not specified, so it is masked.
pub(super) fn cholesky(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    if !element.is_float() && element.kind() != ElementKind::Complex {
        return None;
    }
    let (batch, n) = (batch(g), g.random.between(1, 5));
    let a = dominant(g, element, &batch, n);
    let lower = g.random.percent(50);
    let ty = a.ty.clone();
    let result = g
        .push("stablehlo.cholesky", &[&a], &format!("lower = {lower}"), &[], std::slice::from_ref(&ty))
        .remove(0);
    let rank = ty.rank();
    let index = ty.with_element(Element::Plain(ElementType::I32));
    let place = |g: &mut Generator, d: usize| {
        let attributes = format!("iota_dimension = {d} : i64");
        g.push("stablehlo.iota", &[], &attributes, &[], std::slice::from_ref(&index)).remove(0)
    };
    let (row, column) = (place(g, rank - 2), place(g, rank - 1));
    let pred = ty.with_element(Element::Plain(ElementType::I1));
    let direction = if lower { "GE" } else { "LE" };
    let attributes = format!("comparison_direction = #stablehlo<comparison_direction {direction}>");
    let mask = g.push("stablehlo.compare", &[&row, &column], &attributes, &[], &[pred]).remove(0);
    let zero = g.constant(&ty, Fill::Range(0, 0));
    Some(g.push("stablehlo.select", &[&mask, &result, &zero], "", &[], &[ty]))
}

pub(super) fn triangular_solve(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    if !element.is_float() && element.kind() != ElementKind::Complex {
        return None;
    }
    let (batch, n, m) = (batch(g), g.random.between(1, 5), g.random.between(1, 4));
    let a = dominant(g, element, &batch, n);
    let left = g.random.percent(50);
    let matrix = if left { [n, m] } else { [m, n] };
    let b = g.operand(&a.ty.with_dims(&[batch, matrix.to_vec()].concat()), Fill::Tame);
    // With a unit diagonal, the matrix is not diagonally dominant, and errors grow.
    let unit = n <= 2 && g.random.percent(30);
    let kind = g.random.pick(&["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]);
    let lower = g.random.percent(50);
    let attributes = format!(
        "left_side = {left}, lower = {lower}, unit_diagonal = {unit}, transpose_a = #stablehlo<transpose {kind}>"
    );
    let result = b.ty.clone();
    Some(g.push("stablehlo.triangular_solve", &[&a, &b], &attributes, &[], &[result]))
}

pub(super) fn batch_norm(g: &mut Generator, code: OpCode, element: Element) -> Option<Vec<Value>> {
    let operand = g.some(element, 1..=4, Fill::Tame);
    let feature = g.random.below(operand.ty.rank());
    let vector = operand.ty.with_dims(&[operand.ty.dims[feature]]);
    let ty = operand.ty.clone();
    let mut more =
        |fills: &[Fill]| -> Vec<Value> { fills.iter().map(|&fill| g.operand(&vector, fill)).collect() };
    let (vectors, results) = match code {
        OpCode::BatchNormTraining => {
            (more(&[Fill::Tame; 2]), vec![ty.clone(), vector.clone(), vector.clone()])
        }
        OpCode::BatchNormInference => {
            (more(&[Fill::Tame, Fill::Tame, Fill::Tame, Fill::Positive]), vec![ty.clone()])
        }
        _ => (
            more(&[Fill::Tame, Fill::Tame, Fill::Positive]),
            vec![ty.clone(), vector.clone(), vector.clone()],
        ),
    };
    let mut operands: Vec<&Value> = std::iter::once(&operand).chain(&vectors).collect();
    let gradient = g.operand(&ty, Fill::Tame);
    if code == OpCode::BatchNormGrad {
        operands.push(&gradient);
    }
    let attributes = format!("epsilon = 1.250000e-01 : f32, feature_index = {feature} : i64");
    Some(g.push(code.info().name, &operands, &attributes, &[], &results))
}
