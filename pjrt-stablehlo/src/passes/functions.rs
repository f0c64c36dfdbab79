//! The functions of a program and their calls.

use std::collections::BTreeSet;

use crate::ir::{Function, Module, Op, Str, Visibility};

/// Returns the names of the functions that operations of the program call.
pub(super) fn called_functions(module: &Module) -> BTreeSet<Str> {
    let ops = module.functions().iter().flat_map(|function| function.body.all_ops());
    ops.flat_map(|(_, op)| callees(&op.kind)).cloned().collect()
}

/// Returns, for each function of a module by index, whether it remains after inlining: functions that are visible
/// outside the module, and those that remaining functions still call. `stays` returns whether an operation with a
/// callee remains a call.
pub(super) fn kept_functions(module: &Module, stays: impl Fn(&Op) -> bool) -> Vec<bool> {
    let functions = module.functions();
    let referenced: BTreeSet<usize> =
        functions.iter().flat_map(|function| called_from(module, function)).collect();
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
        for (callee, op) in references(module, &functions[index]) {
            kept[callee] |= stays(op);
            if !std::mem::replace(&mut visited[callee], true) {
                work.push(callee);
            }
        }
    }
    kept
}

/// Returns the functions that a function's operations refer to, with these operations.
fn references<'m>(module: &Module, function: &'m Function) -> Vec<(usize, &'m Op)> {
    let mut found = Vec::new();
    for (_, op) in function.body.all_ops() {
        let named = callees(&op.kind).iter().filter_map(|name| module.function_index(name));
        found.extend(named.map(|index| (index, &op.kind)));
    }
    found
}

/// Returns the functions that a function's operations refer to.
pub(super) fn called_from(module: &Module, function: &Function) -> Vec<usize> {
    references(module, function).into_iter().map(|(index, _)| index).collect()
}

/// Returns the names of the functions that an operation refers to.
fn callees(op: &Op) -> &[Str] {
    match op {
        Op::FuncCall(call) => std::slice::from_ref(&call.callee),
        Op::Composite(composite) => std::slice::from_ref(&composite.decomposition),
        Op::CustomCall(call) => &call.called_computations,
        _ => &[],
    }
}
