//! Branches, loops, calls, and the operations on tokens and tuples.

use crate::generator::{Generator, Region, Scope, Value};
use crate::types::{Element, Fill, Ty};
use pjrt_stablehlo::ir::ElementType;

fn bool_type() -> Ty {
    Ty::plain(ElementType::I1, &[])
}

/// Generates a branch, which has no arguments and uses values of the enclosing function.
fn branch(g: &mut Generator, sources: &[Value]) -> Region {
    g.region(Scope::Open, &[], |g, _| {
        let steps = g.random.below(4);
        sources.iter().map(|value| nested(g, value, steps)).collect()
    })
}

/// Transforms a value, sometimes with control flow.
fn nested(g: &mut Generator, value: &Value, steps: usize) -> Value {
    if g.may_nest() && g.random.percent(20) {
        let all =
            if g.random.percent(50) { loop_over(g, value) } else { choice(g, std::slice::from_ref(value)) };
        return all.into_iter().next().unwrap_or_else(|| value.clone());
    }
    g.transformed(value, steps)
}

fn sources(g: &mut Generator, element: Element) -> Vec<Value> {
    let mut all = vec![g.some(element, 0..=3, Fill::Any)];
    if g.random.percent(30) {
        let other = g.some_element();
        all.push(g.some(other, 0..=2, Fill::Any));
    }
    all
}

fn choice(g: &mut Generator, sources: &[Value]) -> Vec<Value> {
    let pred = g.operand(&bool_type(), Fill::Any);
    let branches = [branch(g, sources), branch(g, sources)];
    let results: Vec<Ty> = sources.iter().map(|v| v.ty.clone()).collect();
    g.push("stablehlo.if", &[&pred], "", &branches, &results)
}

pub(super) fn if_(g: &mut Generator, element: Element) -> Vec<Value> {
    let sources = sources(g, element);
    choice(g, &sources)
}

pub(super) fn case(g: &mut Generator, element: Element) -> Vec<Value> {
    let sources = sources(g, element);
    let count = g.random.between(1, 4);
    // The last branch also runs for all indices out of range.
    let index = g.operand(&Ty::plain(ElementType::I32, &[]), Fill::Range(-1, count));
    let branches: Vec<Region> = (0..count).map(|_| branch(g, &sources)).collect();
    let results: Vec<Ty> = sources.iter().map(|v| v.ty.clone()).collect();
    g.push("stablehlo.case", &[&index], "", &branches, &results)
}

pub(super) fn while_(g: &mut Generator, element: Element) -> Vec<Value> {
    let value = g.some(element, 0..=3, Fill::Tame);
    loop_over(g, &value)
}

/// Generates a loop of at most five iterations that transforms a value, which is the first result.
fn loop_over(g: &mut Generator, value: &Value) -> Vec<Value> {
    let counter = Ty::plain(g.random.pick(&[ElementType::I32, ElementType::I64, ElementType::Ui8]), &[]);
    let start = g.constant(&counter, Fill::Range(0, 0));
    let limit = g.operand(&counter, Fill::Range(0, 5));
    let mut carried = vec![value.clone(), start, limit];
    if g.random.percent(30) {
        // Two values that the loop swaps.
        carried.push(value.clone());
    }
    let types: Vec<Ty> = carried.iter().map(|v| v.ty.clone()).collect();
    let condition = g.region(Scope::Open, &types, |g, arguments| {
        let attributes = "comparison_direction = #stablehlo<comparison_direction LT>";
        g.push("stablehlo.compare", &[&arguments[1], &arguments[2]], attributes, &[], &[bool_type()])
    });
    let body = g.region(Scope::Open, &types, |g, arguments| {
        let one = g.constant(&counter, Fill::Range(1, 1));
        let next = g
            .push("stablehlo.add", &[&arguments[1], &one], "", &[], std::slice::from_ref(&counter))
            .remove(0);
        let steps = g.random.below(3);
        let changed = nested(g, &arguments[0], steps);
        match arguments.get(3) {
            Some(other) => vec![other.clone(), next, arguments[2].clone(), changed],
            None => vec![changed, next, arguments[2].clone()],
        }
    });
    g.push("stablehlo.while", &carried.iter().collect::<Vec<_>>(), "", &[condition, body], &types)
}

/// Generates a function of the values, with a result for each.
fn function(g: &mut Generator, values: &[Value]) -> (String, Vec<Ty>) {
    let types: Vec<Ty> = values.iter().map(|v| v.ty.clone()).collect();
    let steps = 1 + g.random.below(3);
    g.function(&types, |g, arguments| arguments.iter().map(|value| nested(g, value, steps)).collect())
}

pub(super) fn call(g: &mut Generator, element: Element) -> Vec<Value> {
    let values = sources(g, element);
    let (name, results) = function(g, &values);
    g.push("func.call", &values.iter().collect::<Vec<_>>(), &format!("callee = @{name}"), &[], &results)
}

pub(super) fn composite(g: &mut Generator, element: Element) -> Vec<Value> {
    let values = sources(g, element);
    let (name, results) = function(g, &values);
    let attributes = format!("name = \"test.composite\", decomposition = @{name}, version = 1 : i32");
    g.push("stablehlo.composite", &values.iter().collect::<Vec<_>>(), &attributes, &[], &results)
}

pub(super) fn optimization_barrier(g: &mut Generator, element: Element) -> Vec<Value> {
    let values = sources(g, element);
    let results: Vec<Ty> = values.iter().map(|v| v.ty.clone()).collect();
    g.push("stablehlo.optimization_barrier", &values.iter().collect::<Vec<_>>(), "", &[], &results)
}

pub(super) fn tuple(g: &mut Generator, element: Element) -> Vec<Value> {
    let values = sources(g, element);
    let types: Vec<String> = values.iter().map(|v| v.ty.text()).collect();
    let tuple = format!("tuple<{}>", types.join(", "));
    let name = g
        .push_text(
            "stablehlo.tuple",
            &values.iter().collect::<Vec<_>>(),
            "",
            &[],
            std::slice::from_ref(&tuple),
        )
        .remove(0);
    let index = g.random.below(values.len());
    let attributes = format!("index = {index} : i32");
    let part = &values[index].ty;
    let element =
        g.push_raw("stablehlo.get_tuple_element", &[(name, tuple)], &attributes, &[], &[part.text()]);
    element.into_iter().map(|name| Value { name, ty: part.clone() }).collect()
}

/// Tokens have no effect in these programs; the operations must only accept them.
pub(super) fn tokens(g: &mut Generator, element: Element) -> Vec<Value> {
    let token = || "!stablehlo.token".to_owned();
    let first = g.push_raw("stablehlo.create_token", &[], "", &[], &[token()]).remove(0);
    let second = g.push_raw("stablehlo.create_token", &[], "", &[], &[token()]).remove(0);
    let all = g
        .push_raw("stablehlo.after_all", &[(first, token()), (second, token())], "", &[], &[token()])
        .remove(0);
    let value = g.some(element, 0..=2, Fill::Any);
    let operands = [(value.name.clone(), value.ty.text()), (all, token())];
    let results = [value.ty.text(), token()];
    let kept = g.push_raw("stablehlo.optimization_barrier", &operands, "", &[], &results);
    kept.into_iter().take(1).map(|name| Value { name, ty: value.ty.clone() }).collect()
}

pub(super) fn process_id(g: &mut Generator, name: &str) -> Vec<Value> {
    g.push(name, &[], "", &[], &[Ty::plain(ElementType::Ui32, &[])])
}
