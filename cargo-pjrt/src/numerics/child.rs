//! Runs the programs of the suites in a child process.

use std::fs;
use std::path::Path;

use super::comparison::compare;
use super::identity;
use super::message::{AGAIN, Fault, Measure, Message, Outcome, send};
use super::options::ChildOptions;
use super::suite::{Case, Suite, Tolerance};
use crate::array::{Array, npy};
use crate::run::{execute, folder};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Client, Code, Error, Plugin, Program};

/// The format of the programs of a suite.
const FORMAT: &str = "mlir";

/// Runs the selected programs, from the given one on, and sends their outcomes to the parent.
pub fn child(options: &ChildOptions) {
    let (suites, client) = match prepare(options) {
        Ok(prepared) => prepared,
        Err(why) => return send(&Message::Unusable(why)),
    };
    send(&Message::Ready);
    let cases =
        suites.iter().flat_map(|suite| suite.cases(&options.selection).map(move |case| (suite, case)));
    for (index, (suite, case)) in cases.enumerate().skip(options.first) {
        send(&Message::Begins(index));
        match run(&client, suite, case, options.selection.dump.as_deref()) {
            Ok(outcome) => send(&Message::Ends(outcome)),
            Err(why) => return send(&Message::Unusable(why)),
        }
    }
}

fn prepare(options: &ChildOptions) -> Result<(Vec<Suite>, Client), String> {
    let suites = identity::suites(&options.selection)?;
    let plugin = Plugin::load(&options.plugin).map_err(|error| error.to_string())?;
    plugin.initialize().map_err(|error| error.to_string())?;
    let client =
        plugin.create_client(&options.selection.create_options()?).map_err(|error| error.to_string())?;
    Ok((suites, client))
}

/// Runs a program once, and compares its results. Returns an error if the suite is damaged or a file cannot be written.
fn run(client: &Client, suite: &Suite, case: &Case, dump: Option<&Path>) -> Result<Outcome, String> {
    let (code, inputs, expected) = (suite.program(case)?, suite.inputs(case)?, suite.expected(case)?);
    let results = match execute_case(client, suite, case)? {
        Ok(results) => results,
        Err(outcome) => return Ok(outcome),
    };
    let (faults, largest) = faults_of(case, &expected, &results);
    if faults.is_empty() {
        return Ok(Outcome::Right(largest));
    }
    if let Some(to) = dump {
        let wanted: Vec<&Array> = expected.iter().map(|(array, _)| array).collect();
        write(
            &to.join(case.label().replace(|c: char| !c.is_alphanumeric(), "-")),
            (code, &CompileOptions::default().encode()),
            &inputs,
            &results,
            &wanted,
        )?;
    }
    let is_right = |_: &usize| {
        let again = execute_case(client, suite, case);
        again.is_ok_and(|again| again.is_ok_and(|again| faults_of(case, &expected, &again).0.is_empty()))
    };
    let right = (0..AGAIN).filter(is_right).count();
    Ok(Outcome::Wrong(faults, right))
}

/// Compares the results of a program with the expected ones, and returns the faults and the largest error.
fn faults_of(
    case: &Case,
    expected: &[(Array, &Tolerance)],
    results: &[Array],
) -> (Vec<Fault>, Option<Measure>) {
    let (mut largest, mut faults) = (None, Vec::new());
    for (index, (found, (wanted, tolerance))) in results.iter().zip(expected).enumerate() {
        let comparison = compare(&case.op, index, wanted, found, tolerance);
        largest =
            comparison.largest.map_or(largest, |measure| Some(measure.max(largest.unwrap_or_default())));
        faults.extend(comparison.fault);
    }
    (faults, largest)
}

/// Runs a program once. Returns its results, which are as many as expected, or the outcome if there are none.
pub(super) fn execute_case(
    client: &Client,
    suite: &Suite,
    case: &Case,
) -> Result<Result<Vec<Array>, Outcome>, String> {
    let (code, inputs, expected) = (suite.program(case)?, suite.inputs(case)?, suite.expected(case)?);
    let options = CompileOptions::default().encode();
    let executable = match client.compile(&Program { code, format: FORMAT }, &options) {
        Ok(executable) => executable,
        Err(error) => return Ok(Err(Outcome::Refused(error.to_string()))),
    };
    let results = match execute(client, &executable, &inputs) {
        Ok(results) => results,
        Err(error) if is_refusal(&error) => return Ok(Err(Outcome::Refused(error.to_string()))),
        Err(error) => return Ok(Err(Outcome::Failed(error.to_string()))),
    };
    if results.len() != expected.len() {
        return Ok(Err(Outcome::Failed(format!(
            "the program has {} results, but the execution returned {}",
            expected.len(),
            results.len()
        ))));
    }
    Ok(Ok(results))
}

/// Returns `true` if the plugin says that it does not support the program or the type of an argument.
fn is_refusal(error: &Error) -> bool {
    error.code == Code::UNIMPLEMENTED || error.function == "PJRT_Client_BufferFromHostBuffer"
}

/// Writes a program with its arguments and results to a folder, which `cargo pjrt run --replay` takes.
fn write(
    to: &Path,
    (code, options): (&[u8], &[u8]),
    inputs: &[Array],
    results: &[Array],
    expected: &[&Array],
) -> Result<(), String> {
    let located = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let arguments = to.join(folder::ARGUMENTS);
    fs::create_dir_all(&arguments).map_err(|error| located(&arguments, error))?;
    for (name, bytes) in
        [(folder::PROGRAM, code), (folder::FORMAT, FORMAT.as_bytes()), (folder::OPTIONS, options)]
    {
        let path = to.join(name);
        fs::write(&path, bytes).map_err(|error| located(&path, error))?;
    }
    for (index, input) in inputs.iter().enumerate() {
        npy::write(&arguments.join(format!("{index}.npy")), input)?;
    }
    for (index, (found, wanted)) in results.iter().zip(expected).enumerate() {
        npy::write(&to.join(format!("result_{index}.npy")), found)?;
        npy::write(&to.join(format!("expected_{index}.npy")), wanted)?;
    }
    Ok(())
}
