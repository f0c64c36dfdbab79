//! What of a program matters: operations whose results are used, functions that are reached.

use std::collections::BTreeSet;

use super::CoreOps;
use crate::ir::{Body, Function, Module, Op, OpId, Operation, Str, Trait, Visibility};

/// Which operations have an effect or results that are used, by the index of their [`OpId`].
pub(super) fn live_ops(body: &Body) -> Vec<bool> {
    let mut live = vec![false; body.num_ops()];
    let mut work: Vec<OpId> = Vec::new();
    for (id, op) in body.ops() {
        if is_root(op) {
            live[id.index()] = true;
            work.push(id);
        }
    }
    while let Some(id) = work.pop() {
        for &operand in &body.op(id).operands {
            if let Some(definition) = body.defining_op(operand)
                && !std::mem::replace(&mut live[definition.index()], true)
            {
                work.push(definition);
            }
        }
    }
    live
}

/// Whether an operation stays whether its results are used or not. Operations with regions do, because of what may be in
/// them, except those whose regions only combine elements.
fn is_root(op: &Operation) -> bool {
    let info = op.info();
    let has_effect = [Trait::Terminator, Trait::SideEffect, Trait::Collective].iter().any(|&t| info.has(t));
    let is_unknown = match &op.kind {
        Op::Other(other) => !other.name.starts_with("chlo."),
        Op::FuncCall(_) | Op::Composite(_) => true,
        _ => false,
    };
    has_effect || is_unknown || !op.regions.is_empty()
}

/// The names of functions that operations of the program call.
pub(super) fn called_functions(module: &Module) -> BTreeSet<Str> {
    let ops = module.functions().iter().flat_map(|function| function.body.ops());
    let names = ops.filter_map(|(_, op)| match &op.kind {
        Op::FuncCall(call) => Some(std::slice::from_ref(&call.callee)),
        Op::Composite(composite) => Some(std::slice::from_ref(&composite.decomposition)),
        Op::CustomCall(call) => Some(&*call.called_computations),
        _ => None,
    });
    names.flatten().cloned().collect()
}

/// Which functions of a module stay once calls are inlined as `core` says, by their index: those that others can call,
/// and what is still called from the rest.
pub(super) fn kept_functions(module: &Module, core: &CoreOps) -> Vec<bool> {
    let functions = module.functions();
    let referenced: BTreeSet<usize> = functions
        .iter()
        .flat_map(|function| references(module, core, function))
        .map(|(index, _)| index)
        .collect();
    let is_root = |index: usize, function: &Function| {
        function.visibility != Some(Visibility::Private)
            || function.name == "main"
            || !referenced.contains(&index)
    };
    let roots = functions.iter().enumerate().filter(|(index, function)| is_root(*index, function));
    let mut work: Vec<usize> = roots.map(|(index, _)| index).collect();
    let mut kept = vec![false; functions.len()];
    let mut visited = vec![false; functions.len()];
    for &index in &work {
        (kept[index], visited[index]) = (true, true);
    }
    while let Some(index) = work.pop() {
        for (callee, stays) in references(module, core, &functions[index]) {
            kept[callee] |= stays;
            if !std::mem::replace(&mut visited[callee], true) {
                work.push(callee);
            }
        }
    }
    kept
}

/// The functions that a function's operations name, with whether they still do once calls are inlined.
pub(super) fn references(module: &Module, core: &CoreOps, function: &Function) -> Vec<(usize, bool)> {
    let mut found = Vec::new();
    for (_, op) in function.body.ops() {
        let calls_stay = !super::inlines_calls(core);
        match &op.kind {
            Op::FuncCall(call) => {
                found.extend(module.function_index(&call.callee).map(|index| (index, calls_stay)))
            }
            Op::Composite(composite) => {
                let stays = calls_stay || core.contains_op(&op.kind);
                found.extend(module.function_index(&composite.decomposition).map(|index| (index, stays)));
            }
            Op::CustomCall(call) => {
                let called = call.called_computations.iter();
                found
                    .extend(called.filter_map(|name| module.function_index(name)).map(|index| (index, true)));
            }
            _ => {}
        }
    }
    found
}
