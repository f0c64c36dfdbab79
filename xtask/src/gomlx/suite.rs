//! `cargo xtask test-gomlx --suite FOLDER`: runs the tests of a checkout of GoMLX or go-xla.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::environment::run::output;

/// The module of GoMLX's client of PJRT.
const GO_XLA: &str = "github.com/gomlx/go-xla";

/// The packages whose tests are run, by module.
const PACKAGES: &[(&str, &[&str])] = &[
    ("github.com/gomlx/gomlx", &["./core/...", "./ml/..."]),
    (GO_XLA, &["./pjrt", "./internal/tests", "./compute/xla/..."]),
];

/// A test that fails on refcpu and passes on OpenXLA's CPU plugin.
struct Expected {
    test: &'static str,
    reason: &'static str,
}

const EXPECTED: &[Expected] = &[Expected {
    test: "TestGradientFFT",
    reason: "The test differentiates the magnitudes of a Fourier transform that is zero except for two elements. The \
             gradients at the zeros are the phases of rounding errors, which depend on the order of the sums.",
}];

/// A line of `go test -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    package: Option<String>,
    test: Option<String>,
}

/// The outcomes by package and test. The outcome of a package has no test.
type Outcomes = BTreeMap<(String, Option<String>), String>;

/// Runs the tests of a checkout with the library in the folder `plugins`, and compares the failures with those that are
/// expected.
pub(super) fn run(suite: &Path, library: &Path, plugins: &Path) -> Result<ExitCode> {
    let module = output(go(suite).args(["list", "-m"]))?;
    let Some((_, packages)) = PACKAGES.iter().find(|(name, _)| *name == module.trim()) else {
        bail!("{} contains the Go module '{}'; expected GoMLX or go-xla", suite.display(), module.trim());
    };
    // The tests download a plugin unless this file exists.
    let home = plugins.join("home");
    super::link(
        library,
        &home.join(".local/lib/go-xla"),
        &format!("pjrt_c_api_cpu_{}_plugin.so", plugin_version(suite)?),
    )?;
    let mut test = go(suite);
    test.args(["test", "-json", "-count=1", "-buildvcs=false"]).args(*packages);
    for variable in ["GOPATH", "GOCACHE", "GOMODCACHE"] {
        test.env(variable, output(go(suite).args(["env", variable]))?.trim());
    }
    test.env("HOME", &home).env("PJRT_PLUGIN_LIBRARY_PATH", plugins).env("GOMLX_NO_AUTO_INSTALL", "1");
    if std::env::var_os("REFCPU_NUM_DEVICES").is_none() {
        test.env("REFCPU_NUM_DEVICES", "4");
    }
    let lines = test.output().context("cannot start go")?;
    report(&outcomes(&String::from_utf8_lossy(&lines.stdout)), &String::from_utf8_lossy(&lines.stderr))
}

fn go(folder: &Path) -> Command {
    let mut go = Command::new("go");
    go.current_dir(folder);
    go
}

/// Returns the version in the name of the plugin's file. The tests download that version unless its file is in the home
/// directory.
fn plugin_version(suite: &Path) -> Result<String> {
    let folder = || output(go(suite).args(["list", "-m", "-f", "{{.Dir}}", GO_XLA]));
    // `go list` prints no folder for a module that has not been downloaded.
    if folder()?.trim().is_empty() {
        output(go(suite).args(["mod", "download", GO_XLA]))?;
    }
    let folder = folder()?;
    let file = Path::new(folder.trim()).join("internal/utils/utils.go");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let value = text.lines().find_map(|line| line.strip_prefix("var DefaultCPUVersion = "));
    let value = value.with_context(|| format!("{} does not define DefaultCPUVersion", file.display()))?;
    Ok(value.trim().trim_matches('"').to_owned())
}

fn outcomes(lines: &str) -> Outcomes {
    let events = lines.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok());
    let ended = events.filter(|event| matches!(event.action.as_str(), "pass" | "fail" | "skip"));
    ended.filter_map(|event| Some(((event.package?, event.test), event.action))).collect()
}

/// Prints the numbers of outcomes, and the failures that are not expected.
fn report(outcomes: &Outcomes, errors: &str) -> Result<ExitCode> {
    let count =
        |action| outcomes.iter().filter(|((_, test), found)| test.is_some() && *found == action).count();
    println!("{} tests passed, {} failed, {} were skipped", count("pass"), count("fail"), count("skip"));
    if count("pass") == 0 {
        bail!("no test ran:\n{errors}");
    }
    let failed = outcomes.iter().filter(|(_, action)| *action == "fail");
    let failed: Vec<(&str, Option<&str>)> =
        failed.map(|((package, test), _)| (package.as_str(), test.as_deref())).collect();
    let mut unexpected = 0;
    for (package, test) in &failed {
        let Some(test) = test else {
            // The tests of a package that fails without a failed test ended early.
            if !failed.iter().any(|(other, test)| other == package && test.is_some()) {
                println!("FAIL {package}: the package ended without a failed test");
                unexpected += 1;
            }
            continue;
        };
        let name = test.split('/').next().unwrap_or_default();
        match EXPECTED.iter().find(|expected| expected.test == name) {
            Some(expected) if *test == name => {
                println!("expected: {package} {test}\n    {}", expected.reason)
            }
            Some(_) => {}
            None => {
                println!("FAIL {package} {test}");
                unexpected += 1;
            }
        }
    }
    Ok(ExitCode::from(u8::from(unexpected > 0)))
}
