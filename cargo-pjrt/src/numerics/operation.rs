//! The programs of one operation that the conformance kit runs.

use std::collections::HashSet;

use super::child::execute_case;
use super::comparison::{coarse, compare};
use super::message::Outcome;
use super::options::Selection;
use super::order::Order;
use super::suite::{Case, Suite};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::OpCode;
use pjrt_testing::host::Client;

/// A program of one operation of StableHLO, with ordinary numbers.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    suite: &'static Suite,
    case: &'static Case,
}

impl Operation {
    /// Returns the programs with an element type: the first one of each operation, or the others. Those of operations that
    /// others are decomposed into come first. The choice of dimensions does not depend on the type: the programs about it are
    /// those of f32.
    ///
    /// # Errors
    ///
    /// Returns an error if the programs of this tool are damaged.
    pub(crate) fn with_element(element: &str, first: bool) -> Result<Vec<Self>, String> {
        let selection = Selection {
            element: vec![element.to_owned()],
            skip: ["special", "denormals"].map(str::to_owned).to_vec(),
            ..Selection::default()
        };
        let of_suite = |suite: &'static Suite| suite.cases(&selection).map(move |case| Self { suite, case });
        let mut seen = HashSet::new();
        let suites = Suite::operations()?;
        let mut operations: Vec<Self> = suites[..if element == "f32" { suites.len() } else { 1 }]
            .iter()
            .flat_map(of_suite)
            .filter(|operation| is_of_stablehlo(operation.op()) && seen.insert(operation.op()) == first)
            .collect();
        let order = Order::new();
        operations.sort_by_cached_key(|operation| order.key(operation.op()));
        Ok(operations)
    }

    /// Returns the name of the operation.
    pub(crate) fn op(self) -> &'static str {
        &self.case.op
    }

    /// Returns a text that names the operation, the element type and the case.
    pub(crate) fn label(self) -> String {
        self.case.label()
    }

    /// Returns the dimensions of the operands.
    pub(crate) fn operands(self) -> Vec<Vec<i64>> {
        self.case.operands()
    }

    /// Returns the program.
    pub(crate) fn module(self) -> Option<Module> {
        let code = self.suite.program(self.case).ok()?;
        pjrt_stablehlo::parse(code.to_vec()).ok()
    }

    /// Runs the program. Returns `None` if the plugin does not compile it, and the fault if it fails or its results are far
    /// from the expected ones.
    ///
    /// # Errors
    ///
    /// Returns an error if the programs of this tool are damaged.
    pub(crate) fn run(self, client: &Client) -> Result<Option<Result<(), String>>, String> {
        let results = match execute_case(client, self.suite, self.case)? {
            Ok(results) => results,
            Err(Outcome::Refused(_)) => return Ok(None),
            Err(Outcome::Failed(error)) => return Ok(Some(Err(error))),
            Err(_) => return Ok(Some(Ok(()))),
        };
        // No operation is named, so that moved elements may lose bits, too.
        let expected = self.suite.expected(self.case)?;
        let fault = results.iter().zip(expected).enumerate().find_map(|(index, (found, (wanted, _)))| {
            compare("", index, &wanted, found, &coarse(&wanted)).fault
        });
        Ok(Some(fault.map_or(Ok(()), |fault| Err(fault.text().replace("\n      ", "; ")))))
    }
}

/// Returns `true` if StableHLO has this operation. The programs of the others, such as those of CHLO, consist of several
/// operations.
fn is_of_stablehlo(op: &str) -> bool {
    OpCode::from_name(&format!("stablehlo.{op}")).is_some()
}
