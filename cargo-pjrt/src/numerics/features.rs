//! The attributes and operands by which refused programs differ from those that run.

use std::collections::BTreeSet;

use pjrt_stablehlo::Module;

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
/// programs of their own for the same element type.
pub(super) fn name_causes(cases: &[(&Suite, &Case)], rows: &mut [Row]) {
    let of_row = |row: &Row| (row.op.clone(), row.element.clone());
    let wrong: BTreeSet<(String, String)> =
        rows.iter().filter(|row| row.status == Status::Wrong).map(of_row).collect();
    for (row, case) in rows.iter_mut().zip(cases).filter(|(row, _)| row.status == Status::Wrong) {
        let Some(module) = module_of(*case) else { continue };
        let ops = module.functions().iter().flat_map(|function| function.body.all_ops());
        let contained: BTreeSet<&str> = ops.map(|(_, op)| op.info().mnemonic()).collect();
        let causes: Vec<&str> = contained
            .into_iter()
            .filter(|op| *op != row.op && wrong.contains(&((*op).to_owned(), row.element.clone())))
            .collect();
        if !causes.is_empty() {
            let separator = if row.message.is_empty() { "" } else { "; " };
            row.message.push_str(&format!(
                "{separator}the program contains {}, of which results are wrong too",
                causes.join(", ")
            ));
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
