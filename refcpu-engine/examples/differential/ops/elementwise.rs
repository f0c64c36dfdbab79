//! Elementwise operations.

use super::{is_ordered, operands};
use crate::generator::{Generator, Scope, Value};
use crate::table;
use crate::types::{Element, Fill, QUANTIZED, Ty, elements};
use pjrt_stablehlo::ir::{ElementKind, ElementType, OpCode};

/// Generates an operation whose operands and result have the same type.
pub(super) fn same_type(g: &mut Generator, name: &str, count: usize, element: Element) -> Vec<Value> {
    let mut values = operands(g, element, count);
    if name.contains("shift") && g.random.percent(50) {
        let bits = i64::from(element.storage().bits());
        values[1] = g.operand(&values[1].ty.clone(), Fill::Range(0, bits + 1));
    }
    let result = values[0].ty.clone();
    g.push(name, &values.iter().collect::<Vec<_>>(), "", &[], &[result])
}

/// Generates an operation with one operand and a result of the same type, for bodies of regions.
pub(crate) fn step(g: &mut Generator, value: &Value) -> Value {
    let element = value.ty.element;
    let one = [OpCode::Negate, OpCode::Abs, OpCode::Not, OpCode::Floor, OpCode::Sign, OpCode::Cosine];
    let two =
        [OpCode::Add, OpCode::Multiply, OpCode::Subtract, OpCode::Maximum, OpCode::Xor, OpCode::Minimum];
    let binary = g.random.percent(65);
    let code = if binary { g.random.pick(&two) } else { g.random.pick(&one) };
    let keeps_type = !(code == OpCode::Abs && element.kind() == ElementKind::Complex);
    if !table::is_allowed(code, element) || !keeps_type {
        return value.clone();
    }
    let ty = value.ty.clone();
    if binary {
        let fill = if g.random.percent(70) { Fill::Tame } else { Fill::Any };
        let other = g.operand(&ty, fill);
        let (lhs, rhs) = if g.random.percent(50) { (value, &other) } else { (&other, value) };
        return g.push(code.info().name, &[lhs, rhs], "", &[], &[ty]).remove(0);
    }
    g.push(code.info().name, &[value], "", &[], &[ty]).remove(0)
}

/// `abs`, `real`, `imag`.
pub(super) fn part(g: &mut Generator, name: &str, element: Element) -> Option<Vec<Value>> {
    let value = operands(g, element, 1).remove(0);
    let part = match element {
        Element::Plain(ty) => Element::Plain(ty.complex_part().unwrap_or(ty)),
        quantized => quantized,
    };
    let result = value.ty.with_element(part);
    Some(g.push(name, &[&value], "", &[], &[result]))
}

pub(super) fn clamp(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let value = operands(g, element, 1).remove(0);
    let bound = if g.random.percent(50) { value.ty.with_dims(&[]) } else { value.ty.clone() };
    let fill = g.fill();
    let (low, high) = (g.operand(&bound, fill), g.operand(&bound, fill));
    let result = value.ty.clone();
    Some(g.push("stablehlo.clamp", &[&low, &value, &high], "", &[], &[result]))
}

pub(super) fn compare(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let values = operands(g, element, 2);
    let directions = ["EQ", "NE", "GE", "GT", "LE", "LT"];
    let direction =
        if is_ordered(element) { g.random.pick(&directions) } else { g.random.pick(&directions[..2]) };
    let kind = match element.kind() {
        ElementKind::Float if g.random.percent(40) => "TOTALORDER",
        ElementKind::Float | ElementKind::Complex | ElementKind::Quantized => "FLOAT",
        ElementKind::SignedInteger => "SIGNED",
        _ => "UNSIGNED",
    };
    let attributes = format!(
        "comparison_direction = #stablehlo<comparison_direction {direction}>, compare_type = #stablehlo<comparison_type {kind}>"
    );
    let result = values[0].ty.with_element(Element::Plain(ElementType::I1));
    Some(g.push("stablehlo.compare", &[&values[0], &values[1]], &attributes, &[], &[result]))
}

pub(super) fn complex(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let result = match element {
        Element::Plain(ElementType::F32) => ElementType::ComplexF32,
        Element::Plain(ElementType::F64) => ElementType::ComplexF64,
        _ => return None,
    };
    let values = operands(g, element, 2);
    let result = values[0].ty.with_element(Element::Plain(result));
    Some(g.push("stablehlo.complex", &[&values[0], &values[1]], "", &[], &[result]))
}

pub(super) fn constant(g: &mut Generator, element: Element) -> Vec<Value> {
    let dims = g.dims(3);
    let fill = g.fill();
    vec![g.constant(&Ty::new(element, &dims), fill)]
}

/// `convert` to any plain type.
pub(super) fn convert(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let value = operands(g, element, 1).remove(0);
    let all: Vec<Element> = elements().into_iter().filter(|e| matches!(e, Element::Plain(_))).collect();
    let result = value.ty.with_element(g.random.pick(&all));
    Some(g.push("stablehlo.convert", &[&value], "", &[], &[result]))
}

pub(super) fn is_finite(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let value = operands(g, element, 1).remove(0);
    let result = value.ty.with_element(Element::Plain(ElementType::I1));
    Some(g.push("stablehlo.is_finite", &[&value], "", &[], &[result]))
}

pub(super) fn map(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let count = 1 + g.random.below(2);
    let values = operands(g, element, count);
    let scalars = vec![super::scalar(element); count];
    let body = g.region(Scope::Isolated, &scalars, |g, arguments| {
        let steps = 1 + g.random.below(3);
        vec![g.transformed(&arguments[0], steps)]
    });
    let ty = values[0].ty.clone();
    let dimensions: Vec<i64> = (0..ty.rank() as i64).collect();
    let attributes = format!("dimensions = {}", crate::generator::array(&dimensions));
    Some(g.push("stablehlo.map", &values.iter().collect::<Vec<_>>(), &attributes, &[body], &[ty]))
}

pub(super) fn reduce_precision(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let value = operands(g, element, 1).remove(0);
    let storage = element.storage();
    let exponent = g.random.between(1, i64::from(storage.exponent_bits().max(1)));
    let mantissa = g.random.between(0, i64::from(storage.mantissa_bits()));
    let attributes = format!("exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32");
    let ty = value.ty.clone();
    Some(g.push("stablehlo.reduce_precision", &[&value], &attributes, &[], &[ty]))
}

pub(super) fn select(g: &mut Generator, element: Element) -> Vec<Value> {
    let values = operands(g, element, 2);
    let ty = values[0].ty.clone();
    let pred = ty.with_element(Element::Plain(ElementType::I1));
    let pred = if g.random.percent(30) { pred.with_dims(&[]) } else { pred };
    let pred = g.operand(&pred, Fill::Any);
    g.push("stablehlo.select", &[&pred, &values[0], &values[1]], "", &[], &[ty])
}

/// `bitcast_convert` to a type of the same width, or to one of another width, with one dimension more or less.
pub(super) fn bitcast_convert(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let Element::Plain(ty) = element else { return None };
    if matches!(ty.kind(), ElementKind::Boolean) {
        return None;
    }
    let fill = g.fill();
    let plain = elements().into_iter().filter_map(|e| match e {
        Element::Plain(other) if other.kind() != ElementKind::Boolean => Some(other),
        _ => None,
    });
    let is_complex = ty.is_complex();
    let fitting: Vec<ElementType> = plain
        .filter(|other| {
            let (a, b) = (ty.bits(), other.bits());
            other.is_complex() == is_complex
                && (a % b == 0 || b % a == 0)
                && a.is_power_of_two() == b.is_power_of_two()
        })
        .collect();
    let other = g.random.pick(&fitting);
    let (from, to) = (ty.bits(), other.bits());
    let mut dims = g.dims(3);
    let mut result = dims.clone();
    if to > from {
        dims.push(i64::from(to / from));
    } else if to < from {
        result.push(i64::from(from / to));
    }
    let value = g.operand(&Ty::plain(ty, &dims), fill);
    Some(g.push("stablehlo.bitcast_convert", &[&value], "", &[], &[Ty::plain(other, &result)]))
}

pub(super) fn dequantize(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let Element::Quantized(_) = element else { return None };
    let value = operands(g, element, 1).remove(0);
    let result = value.ty.with_element(Element::Plain(ElementType::F32));
    Some(g.push("stablehlo.uniform_dequantize", &[&value], "", &[], &[result]))
}

pub(super) fn quantize(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let is_float = element == Element::Plain(ElementType::F32);
    if !is_float && !matches!(element, Element::Quantized(_)) {
        return None;
    }
    let value = operands(g, element, 1).remove(0);
    let result = value.ty.with_element(Element::Quantized(g.random.below(QUANTIZED.len())));
    Some(g.push("stablehlo.uniform_quantize", &[&value], "", &[], &[result]))
}
