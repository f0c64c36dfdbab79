//! The attributes and operands by which refused programs differ from those that run.

use std::collections::BTreeSet;

use pjrt_stablehlo::Module;

use super::joined::{Tried, joined};
use super::lengths::lengths;
use super::order::Order;
use super::report::{Row, Status};
use super::suite::{Case, Suite};
use crate::run::features::{Feature, differences, of_module};

/// Adds to the messages of refused programs the properties of their operation that no program of this operation has that runs.
pub(super) fn explain(cases: &[(&Suite, &Case)], rows: &mut [Row]) {
    let ops: BTreeSet<String> = rows.iter().map(|row| row.op.clone()).collect();
    for op in ops {
        let of_op: Vec<usize> = (0..rows.len()).filter(|&at| rows[at].op == op).collect();
        let with = |rows: &[Row], is_wanted: fn(Status) -> bool| -> Vec<usize> {
            of_op.iter().copied().filter(|&at| is_wanted(rows[at].status)).collect()
        };
        let (refused, run) = (
            with(rows, |status| status == Status::Refused),
            with(rows, |status| matches!(status, Status::Right | Status::Wrong)),
        );
        if refused.is_empty() || run.is_empty() {
            continue;
        }
        let known: BTreeSet<String> =
            run.into_iter().flat_map(|at| features(cases[at])).map(|feature| feature.property).collect();
        for at in refused {
            if let Some(new) = differences(&features(cases[at]), |feature| known.contains(&feature.property))
            {
                rows[at].message.push_str(&format!("; in no {op} that runs, {new}"));
            }
        }
    }
}

/// Adds to the messages of wrong results the operations that their programs contain besides their own, and that are wrong in
/// programs of their own for the same element type; or else that each of their operations is right in such programs.
pub(super) fn name_causes(cases: &[(&Suite, &Case)], rows: &mut [Row]) {
    let modules: Vec<Option<Module>> = rows
        .iter()
        .zip(cases)
        .map(|(row, case)| module_of(*case).filter(|_| row.status == Status::Wrong))
        .collect();
    // The rows change below.
    let names: Vec<(Status, String, String, Vec<Vec<i64>>)> = rows
        .iter()
        .zip(cases)
        .map(|(row, (_, case))| (row.status, row.op.clone(), row.element.clone(), case.operands()))
        .collect();
    let tried: Vec<Tried<'_>> = names
        .iter()
        .zip(&modules)
        .filter(|((status, ..), _)| matches!(status, Status::Right | Status::Wrong))
        .map(|((_, op, element, operands), module)| {
            Tried::new(op, element, operands.clone(), module.as_ref())
        })
        .collect();
    let order = Order::new();
    for ((row, module), (_, case)) in rows.iter_mut().zip(&modules).zip(cases) {
        let Some(module) = module else { continue };
        // What depends on timing or on what ran before is no matter of the operations.
        if !row.message.is_empty() {
            continue;
        }
        let is_wrong = |op: &&str| {
            tried.iter().any(|other| other.op == *op && other.element == row.element && other.steps.is_some())
        };
        let ops = module.functions().iter().flat_map(|function| function.body.all_ops());
        let contained: BTreeSet<&str> = ops.map(|(_, op)| op.info().mnemonic()).collect();
        let causes: Vec<&str> = contained.into_iter().filter(|op| *op != row.op).filter(is_wrong).collect();
        let why = match causes[..] {
            [] => {
                let wrong = Tried::new(&row.op, &row.element, case.operands(), Some(module));
                joined(&wrong, &tried, &order).or_else(|| lengths(&wrong, &tried))
            }
            _ => Some(format!("the program contains {}, of which results are wrong too", causes.join(", "))),
        };
        if let Some(why) = why {
            row.message = why;
        }
    }
}

/// Returns the program of a case.
fn module_of((suite, case): (&Suite, &Case)) -> Option<Module> {
    suite.program(case).ok().and_then(|code| pjrt_stablehlo::parse(code.to_vec()).ok())
}

/// Returns the properties of the operations in the program of a case that the case is about.
fn features((suite, case): (&Suite, &Case)) -> Vec<Feature> {
    module_of((suite, case)).map_or_else(Vec::new, |module| of_module(&module, &case.op))
}
