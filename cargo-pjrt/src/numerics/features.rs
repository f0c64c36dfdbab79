//! The attributes and operands by which refused programs differ from those that run.

use std::collections::BTreeSet;

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

/// Returns the properties of the operations in the program of a case that the case is about.
fn features((suite, case): (&Suite, &Case)) -> Vec<Feature> {
    let Some(module) = suite.program(case).ok().and_then(|code| pjrt_stablehlo::parse(code.to_vec()).ok())
    else {
        return Vec::new();
    };
    of_module(&module, &case.op)
}
