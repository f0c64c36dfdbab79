//! The conformance kit: checks that a plugin follows the rules of the PJRT C API and the requirements of
//! hosts.
//!
//! Each check is named for the rule that it protects, and runs in a child process with a time limit, because
//! a plugin may crash or hang. The kit distinguishes unsupported features from errors. A feature is
//! unsupported if the plugin returns UNIMPLEMENTED, or if its version lacks the slot. With a [`Profile`], the
//! features that this host requires must be supported.
//!
//! Each check comes with a *fault*, a misbehavior that breaks the rule. It is written in the language of this
//! project's fault plugin, which wraps a correct plugin and misbehaves as the fault says. A test injects each
//! fault and expects its check to fail.

mod checks;
mod report;
mod runner;

pub use report::{Format, Report, Row};
pub use runner::{Isolation, Options, child, run};

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::compile_options::CompileOptions;
use crate::host::{
    Buffer, Client, Code, CreateOption, Device, ElementType, Error, HostArray, LoadedExecutable, Plugin,
    Program, Result, Uploaded,
};
use crate::profile::Profile;

/// The maximum time that a check waits for a result that hosts wait for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A rule, and the code that checks it.
pub struct Check {
    /// The name, `area/rule`.
    pub name: String,
    /// The rule, as a sentence that tells an author what the plugin must do.
    pub rule: String,
    /// `true` if the check only examines the table, and calls no function.
    pub is_of_the_table: bool,
    /// The minor version of the C API from which the rule holds.
    pub since: i32,
    /// The hosts that require the rule.
    pub needed_by: &'static [Profile],
    /// The minor version of the C API from which these hosts require the rule. They accept older plugins
    /// without it, or the kit can only check newer ones.
    pub needed_since: i32,
    /// A fault that breaks the rule, for the fault plugin.
    pub fault: String,
    /// Other checks that this fault makes fail, because they depend on the behavior that it breaks. A name
    /// that ends with `*` matches all names with this prefix.
    pub also: &'static [&'static str],
    run: Box<dyn Fn(&Context) -> Verdict + Send + Sync>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Check({})", self.name)
    }
}

/// Returns all checks, in the order in which they run.
#[must_use]
pub fn checks() -> Vec<Check> {
    checks::all()
}

/// The check that fails if the plugin cannot be initialized. Then only the checks of the table run.
const INITIALIZES: &str = "plugin/initializes";

/// The check after which the process ends normally, so that its exit status and duration can be examined.
const PROCESS_ENDS: &str = "plugin/process_ends";

/// Selects checks by exact names and by a part of the name. Without names and filter, returns all checks.
///
/// # Errors
///
/// Returns an error if there is no such check.
pub fn select(filter: Option<&str>, names: &[String]) -> std::result::Result<Vec<Check>, String> {
    let mut checks = checks();
    if let Some(unknown) = names.iter().find(|name| checks.iter().all(|check| check.name != **name)) {
        return Err(format!("unknown check {unknown:?}; --list lists all checks"));
    }
    checks.retain(|check| {
        filter.is_none_or(|filter| check.name.contains(filter))
            && (names.is_empty() || names.contains(&check.name))
    });
    match filter {
        Some(filter) if checks.is_empty() => {
            Err(format!("no selected check has {filter:?} in its name; --list lists all checks"))
        }
        _ => Ok(checks),
    }
}

/// A check, as `--list` prints it in JSON.
#[derive(Debug, Serialize)]
pub struct Listed<'c> {
    name: &'c str,
    rule: &'c str,
    since: i32,
    needed_by: Vec<&'static str>,
}

impl<'c> From<&'c Check> for Listed<'c> {
    fn from(check: &'c Check) -> Self {
        Self {
            name: &check.name,
            rule: &check.rule,
            since: check.since,
            needed_by: check.needed_by.iter().map(|profile| profile.name()).collect(),
        }
    }
}

/// The result of a check.
type Verdict = std::result::Result<(), Finding>;

/// The reason why a check did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    /// The plugin breaks the rule.
    Wrong(String),
    /// The plugin does not support the feature.
    Unsupported(String),
    /// The rule does not apply, such as one about several devices to a plugin that has one.
    NotApplicable(String),
}

impl From<Error> for Finding {
    fn from(error: Error) -> Self {
        if error.code == Code::UNIMPLEMENTED {
            Self::Unsupported(error.to_string())
        } else {
            Self::Wrong(error.to_string())
        }
    }
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The plugin follows the rule.
    Passed,
    /// The plugin does not support the feature.
    Unsupported,
    /// The rule does not apply to the plugin.
    NotApplicable,
    /// The plugin breaks the rule.
    Wrong,
    /// The process crashed.
    Crashed,
    /// The check took too long.
    TimedOut,
    /// The plugin does not support the feature, which the host of the profile requires.
    Missing,
}

impl Status {
    /// Returns `true` if the outcome is a failure.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Wrong | Self::Crashed | Self::TimedOut | Self::Missing)
    }

    /// Returns a short name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Unsupported => "unsupported",
            Self::NotApplicable => "not applicable",
            Self::Wrong => "WRONG",
            Self::Crashed => "CRASHED",
            Self::TimedOut => "TIMED OUT",
            Self::Missing => "MISSING",
        }
    }
}

/// A step that many checks begin with. If a plugin hangs in it, each of these checks would run into the time
/// limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Step {
    /// Creates a client.
    Client,
    /// Compiles the program that all checks run.
    Compilation,
    /// Transfers four numbers to a device.
    Upload,
}

impl Step {
    /// Returns a description.
    fn name(self) -> &'static str {
        match self {
            Self::Client => "creating a client",
            Self::Compilation => "compiling the program add",
            Self::Upload => "transferring four numbers to a device",
        }
    }
}

/// The context that checks run in.
struct Context {
    plugin: Plugin,
    path: PathBuf,
    options: Vec<CreateOption>,
    /// The outcome of the first creation of a client.
    first_client: OnceLock<Result<()>>,
}

impl Context {
    fn new(plugin: Plugin, path: &Path, options: Vec<CreateOption>) -> Self {
        Self { plugin, path: path.to_owned(), options, first_client: OnceLock::new() }
    }

    fn client(&self) -> Result<Client> {
        let client = runner::in_step(Step::Client, || self.plugin.create_client(&self.options));
        self.first_client.get_or_init(|| client.as_ref().map(|_| ()).map_err(Clone::clone));
        client
    }

    /// Returns the reason why no client can be created, such as missing hardware. Most rules then do not
    /// apply.
    fn why_no_client(&self) -> Option<&Error> {
        self.first_client.get()?.as_ref().err()
    }

    fn minor(&self) -> i32 {
        self.plugin.version().1
    }
}

/// Returns a program that adds two arrays of f32. All checks that execute a program use this one, so that
/// plugins which support nothing else can still be checked.
fn add_program(dims: &str) -> String {
    let ty = format!("tensor<{dims}f32>");
    format!(
        "module @add {{\n  func.func public @main(%x: {ty}, %y: {ty}) -> {ty} {{\n    %sum = stablehlo.add %x, %y : {ty}\n    \
         return %sum : {ty}\n  }}\n}}\n"
    )
}

fn compile_add(client: &Client) -> Result<LoadedExecutable> {
    runner::in_step(Step::Compilation, || {
        client.compile(&Program::mlir(&add_program("4x")), &CompileOptions::default().encode())
    })
}

fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Transfers four numbers to the first device.
fn upload_four(client: &Client, values: &[f32; 4]) -> Result<Buffer> {
    upload_to(client, values, client.device()?).map(|uploaded| uploaded.buffer)
}

fn upload_to(client: &Client, values: &[f32; 4], device: Device<'_>) -> Result<Uploaded> {
    runner::in_step(Step::Upload, || {
        client.upload(&HostArray::new(&f32_bytes(values), ElementType::F32, &[4]), Some(device), None)
    })
}

fn numbers(buffer: &Buffer) -> Result<Vec<f32>> {
    let bytes = buffer.read()?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

/// Fails the check unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conform::Finding::Wrong(format!($($message)+)));
        }
    };
}
use ensure;

/// Fails the check unless the values are equal.
fn equal<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Verdict {
    ensure!(got == expected, "{what} is {got:?}; expected {expected:?}");
    Ok(())
}

/// Fails the check unless the call returned an error with this code whose message contains these texts.
fn refused<T>(what: &str, outcome: Result<T>, code: Code, contains: &[&str]) -> Verdict {
    refused_with(what, outcome, &[code], contains)
}

/// The same as [`refused`], with several permitted codes.
fn refused_with<T>(what: &str, outcome: Result<T>, codes: &[Code], contains: &[&str]) -> Verdict {
    let names: Vec<String> = codes.iter().map(ToString::to_string).collect();
    let names = names.join(" or ");
    let Err(error) = outcome else {
        return Err(Finding::Wrong(format!("{what} was accepted; expected the error {names}")));
    };
    if error.code == Code::UNIMPLEMENTED && !codes.contains(&error.code) {
        return Err(error.into());
    }
    ensure!(codes.contains(&error.code), "{what} was refused with {error}; expected the code {names}");
    for part in contains {
        ensure!(
            error.message.contains(part),
            "{what} was refused with {:?}; expected a message that contains {part:?}",
            error.message
        );
    }
    Ok(())
}
