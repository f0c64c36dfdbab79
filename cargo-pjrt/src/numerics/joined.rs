//! Programs that are wrong although each of their operations is right alone.

use std::collections::BTreeSet;

use super::order::{BROADCAST, Order};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Function, Operation, Trait};

/// A program that the plugin ran.
pub(crate) struct Tried<'t> {
    /// The operation that the program is about.
    pub(crate) op: &'t str,
    /// The element type.
    pub(crate) element: &'t str,
    /// The dimensions of the operands.
    pub(super) operands: Vec<Vec<i64>>,
    /// The operations of the program, if it is wrong.
    pub(crate) steps: Option<BTreeSet<String>>,
}

impl<'t> Tried<'t> {
    /// Describes a program, whose module is given if its results are wrong.
    pub(crate) fn new(
        op: &'t str,
        element: &'t str,
        operands: Vec<Vec<i64>>,
        wrong: Option<&Module>,
    ) -> Self {
        let steps = |module: &Module| module.functions().iter().flat_map(steps_of).collect();
        Self { op, element, operands, steps: wrong.map(steps) }
    }
}

/// Returns the names of the operations of a function, without constants and what spreads them. One operation in a region, such as
/// that of a reduction, belongs to the operation that has the region.
fn steps_of(function: &Function) -> Vec<String> {
    let body = &function.body;
    let is_step = |op: &Operation| {
        !op.info().has(Trait::Terminator) && !["constant", BROADCAST].contains(&op.info().mnemonic())
    };
    let name = |op: &Operation| op.info().mnemonic().to_owned();
    let mut names = Vec::new();
    for (_, op) in function.ops().filter(|(_, op)| is_step(op)) {
        names.push(name(op));
        for index in 0..op.regions.len() {
            let ops = body.region_block(op, index).into_iter().flat_map(|block| &block.ops);
            let inner: Vec<String> = ops.map(|op| body.op(*op)).filter(|op| is_step(op)).map(name).collect();
            if inner.len() > 1 {
                names.extend(inner);
            }
        }
    }
    names
}

/// Returns the reason why a wrong program is probably no matter of its operations: each of them, or each of those that it may be
/// decomposed into, is right in all programs that consist of it alone.
pub(crate) fn joined(wrong: &Tried<'_>, all: &[Tried<'_>], order: &Order) -> Option<String> {
    let steps = wrong.steps.as_ref()?;
    let parts: BTreeSet<String> = match steps.len() {
        0 | 1 => order.parts(wrong.op).into_iter().map(str::to_owned).collect(),
        _ => steps.clone(),
    };
    let has = |op: &str, is_wanted: fn(&Tried<'_>) -> bool| {
        all.iter().any(|other| other.op == op && other.element == wrong.element && is_wanted(other))
    };
    let is_right = |op: &&String| has(op, |other| other.steps.is_none());
    let is_wrong = |op: &String| has(op, |other| other.steps.as_ref().is_some_and(|steps| steps.len() < 2));
    // An operation that is right in another program of its own is wrong for some numbers only.
    if steps.len() < 2 && has(wrong.op, |other| other.steps.is_none()) {
        return None;
    }
    let mut right: Vec<&str> = parts.iter().filter(is_right).map(String::as_str).collect();
    if right.len() < 2 || parts.iter().any(is_wrong) {
        return None;
    }
    // Programs of the operation itself are right and wrong.
    right.retain(|op| *op != wrong.op);
    let how = if steps.len() < 2 { "if it is decomposed, its parts" } else { "its operations" };
    Some(format!(
        "{how} are right in programs of their own ({}): the plugin probably joins operations wrongly, or reuses the memory of an \
         intermediate array too early",
        right.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried<'t>(op: &'t str, wrong: Option<&[&str]>) -> Tried<'t> {
        let steps = wrong.map(|steps| steps.iter().map(|step| (*step).to_owned()).collect());
        Tried { op, element: "f32", operands: Vec::new(), steps }
    }

    #[test]
    fn a_program_is_joined_wrongly_only_if_its_operations_are_right_alone() {
        let order = Order::new();
        let joins = |all: &[Tried<'_>]| joined(&all[0], all, &order).is_some();
        let both: &[&str] = &["negate", "subtract"];
        let wrong = || tried("subtract", Some(both));
        assert!(joins(&[wrong(), tried("subtract", None), tried("negate", None)]));
        assert!(!joins(&[wrong(), tried("subtract", None), tried("negate", Some(&["negate"]))]));
        assert!(!joins(&[wrong(), tried("subtract", None)]), "nothing is known of negate");
    }

    #[test]
    fn an_operation_that_is_wrong_for_some_numbers_is_not_joined() {
        let order = Order::new();
        let parts = || ["exponential", "log"].map(|op| tried(op, None));
        let all = |more: Option<Tried<'static>>| {
            std::iter::once(tried("sqrt", Some(&["sqrt"]))).chain(parts()).chain(more).collect::<Vec<_>>()
        };
        let joins = |all: Vec<Tried<'_>>| joined(&all[0], &all, &order).is_some();
        assert!(joins(all(None)));
        assert!(!joins(all(Some(tried("sqrt", None)))));
    }
}
