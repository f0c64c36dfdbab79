//! The conformance kit: checks that a plugin keeps the rules of the PJRT C API and does what its hosts need.
//!
//! Every check is named for the rule that it protects, and runs in a child process with a time limit, so that a plugin may
//! crash or hang. What a plugin does not offer is kept apart from what it does wrong: the one is "unsupported" (an error with
//! the code UNIMPLEMENTED, or a slot that its version does not have), the other "wrong". With a [`Profile`], what that host
//! cannot do without must be supported.
//!
//! Beside every check stands a *fault*: what a plugin would do that breaks the rule, in the small language of this project's
//! fault plugin, which wraps a good plugin and does that. A test plants each and sees that its check notices.

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

/// How long something may take that a host waits for, within a check.
const PATIENCE: Duration = Duration::from_secs(10);

/// A rule, and how to see whether a plugin keeps it.
pub struct Check {
    /// `area/rule`, in few words.
    pub name: String,
    /// The rule, as a sentence that tells an author what the plugin must do.
    pub rule: String,
    /// Whether it only looks at the table, of which it calls nothing.
    pub is_of_the_table: bool,
    /// The minor version of the C API from which the rule holds.
    pub since: i32,
    /// The hosts that cannot do without.
    pub needed_by: &'static [Profile],
    /// The minor version of the C API from which they cannot: they put up with older plugins, or the kit sees the rule only with
    /// newer ones.
    pub needed_since: i32,
    /// A fault that breaks the rule, for the fault plugin.
    pub fault: String,
    /// Other checks that notice this fault, because they cannot do without what it breaks. A name that ends with `*` stands for
    /// all that begin like it.
    pub also: &'static [&'static str],
    run: Box<dyn Fn(&Context) -> Verdict + Send + Sync>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Check({})", self.name)
    }
}

/// All checks, in the order in which they run.
#[must_use]
pub fn checks() -> Vec<Check> {
    checks::all()
}

/// The check that fails where the plugin cannot be initialized; others than those of the table then do not run.
const INITIALIZES: &str = "plugin/initializes";

/// The check after which the process is to end as any other: its exit status and the time that it takes are looked at.
const PROCESS_ENDS: &str = "plugin/process_ends";

/// The checks with these names, of those whose names contain the filter; all where nothing is named.
///
/// # Errors
///
/// If there is no such check.
pub fn select(filter: Option<&str>, names: &[String]) -> std::result::Result<Vec<Check>, String> {
    let mut checks = checks();
    if let Some(unknown) = names.iter().find(|name| checks.iter().all(|check| check.name != **name)) {
        return Err(format!("there is no check {unknown}; --list lists all of them"));
    }
    checks.retain(|check| {
        filter.is_none_or(|filter| check.name.contains(filter))
            && (names.is_empty() || names.contains(&check.name))
    });
    match filter {
        Some(filter) if checks.is_empty() => {
            Err(format!("no check that is asked for has {filter:?} in its name; --list lists all of them"))
        }
        _ => Ok(checks),
    }
}

/// A check as lists for programs have it.
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

/// What a check says.
type Verdict = std::result::Result<(), Finding>;

/// Why a check did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    /// The plugin breaks the rule.
    Wrong(String),
    /// The plugin has no such thing.
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

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The plugin keeps the rule.
    Passed,
    /// It has no such thing.
    Unsupported,
    /// The rule does not apply to it.
    NotApplicable,
    /// It breaks the rule.
    Wrong,
    /// The process died.
    Crashed,
    /// It took too long.
    TimedOut,
    /// It has no such thing, and the host of the profile cannot do without.
    Missing,
}

impl Status {
    /// Whether a plugin with this has failed.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Wrong | Self::Crashed | Self::TimedOut | Self::Missing)
    }

    /// In a word.
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

/// What many checks begin with. A plugin that hangs there would cost each of them its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Step {
    /// A client is made.
    Client,
    /// The program that all checks run is compiled.
    Compilation,
    /// Four numbers are put on a device.
    Upload,
}

impl Step {
    /// In words.
    fn name(self) -> &'static str {
        match self {
            Self::Client => "making a client",
            Self::Compilation => "compiling the program that adds",
            Self::Upload => "putting four numbers on a device",
        }
    }
}

/// What checks are given.
struct Context {
    plugin: Plugin,
    path: PathBuf,
    options: Vec<CreateOption>,
    /// How making the first client went.
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

    /// Why no client can be made at all, such as for want of the hardware; then most rules do not apply.
    fn why_no_client(&self) -> Option<&Error> {
        self.first_client.get()?.as_ref().err()
    }

    fn minor(&self) -> i32 {
        self.plugin.version().1
    }
}

/// A program that adds two arrays of f32. All checks that run something run this, so that a plugin which can do nothing else
/// can still be checked.
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

/// Four numbers on the first device.
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

/// Fails the check unless something holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conform::Finding::Wrong(format!($($message)+)));
        }
    };
}
use ensure;

/// Fails the check unless two values are equal.
fn equal<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Verdict {
    ensure!(got == expected, "{what} is {got:?}; it must be {expected:?}");
    Ok(())
}

/// Fails the check unless something was refused with a code, in a message that contains what helps the user.
fn refused<T>(what: &str, outcome: Result<T>, code: Code, contains: &[&str]) -> Verdict {
    refused_with(what, outcome, &[code], contains)
}

/// The same, with one of several codes.
fn refused_with<T>(what: &str, outcome: Result<T>, codes: &[Code], contains: &[&str]) -> Verdict {
    let names: Vec<String> = codes.iter().map(ToString::to_string).collect();
    let names = names.join(" or ");
    let Err(error) = outcome else {
        return Err(Finding::Wrong(format!("{what} was accepted; it must be refused with {names}")));
    };
    if error.code == Code::UNIMPLEMENTED && !codes.contains(&error.code) {
        return Err(error.into());
    }
    ensure!(codes.contains(&error.code), "{what} was refused with {error}; the code must be {names}");
    for part in contains {
        ensure!(
            error.message.contains(part),
            "{what} was refused with {:?}; the message must contain {part:?}",
            error.message
        );
    }
    Ok(())
}
