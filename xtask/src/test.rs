//! `cargo xtask test`: runs all tests, in stages.

use std::cmp::Reverse;
use std::iter::Sum;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::environment::run::{finish, run as run_command, watch};
use crate::environment::venv::Venv;
use crate::environment::workspace;
use crate::{book, corpus, gloo, lowerings, packaged, wheel};

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Run only this stage; can be given several times
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(STAGES.iter().map(|stage| stage.name)))]
    only: Vec<String>,
}

/// The numbers of passed and failed checks of a stage.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outcome {
    passed: u64,
    failed: u64,
}

impl Sum for Outcome {
    fn sum<I: Iterator<Item = Self>>(outcomes: I) -> Self {
        let add = |a: Self, b: Self| Self { passed: a.passed + b.passed, failed: a.failed + b.failed };
        outcomes.fold(Self::default(), add)
    }
}

struct Stage {
    name: &'static str,
    run: fn() -> Result<Outcome>,
}

/// The stages. Those that fail often and quickly come first, and nothing is built twice.
const STAGES: &[Stage] = &[
    Stage { name: "fmt", run: formatting },
    Stage { name: "clippy", run: clippy },
    Stage { name: "rust", run: rust_tests },
    Stage { name: "doc", run: documentation },
    Stage { name: "corpus", run: corpus_programs },
    Stage { name: "mlir", run: mlir_agreement },
    Stage { name: "jax", run: jax },
    Stage { name: "conform", run: conform },
    Stage { name: "packaged", run: packaged_crates },
    Stage { name: "generated", run: generated },
    Stage { name: "book", run: book_links },
];

/// Runs the stages, even after one has failed, and prints a table.
pub(crate) fn run(options: &Options) -> ExitCode {
    if options.only.is_empty() {
        // This mostly waits for the network. The first stage that needs the environment waits for it, and reports errors.
        std::thread::spawn(Venv::of_tests);
    }
    let mut rows = Vec::new();
    let mut total = Outcome::default();
    for stage in STAGES {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == stage.name) {
            continue;
        }
        println!("\n== {}", stage.name);
        let started = Instant::now();
        let outcome = (stage.run)().unwrap_or_else(|error| {
            println!("{error:#}");
            Outcome { passed: 0, failed: 1 }
        });
        total.passed += outcome.passed;
        total.failed += outcome.failed;
        rows.push(format!(
            "{:<12} {:>7} {:>7} {:>8.0}",
            stage.name,
            outcome.passed,
            outcome.failed,
            started.elapsed().as_secs_f64()
        ));
    }
    println!("\nstage         passed  failed  seconds\n{}", rows.join("\n"));
    println!("{} passed, {} failed", total.passed, total.failed);
    ExitCode::from(u8::from(total.failed > 0))
}

fn formatting() -> Result<Outcome> {
    check(workspace::cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<Outcome> {
    check(workspace::cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-Dwarnings"]))
}

/// The beginning of the names of the tests that run the kit on plugins with faults, which take longest.
const FAULTS: &str = "every_fault_";

/// Runs the unit tests and those of the folders `tests`. The tests of `cargo pjrt` use plugins of the workspace and JAX too.
///
/// Most test programs occupy one processor, and so do the tests of [faults](FAULTS), which run beside them.
fn rust_tests() -> Result<Outcome> {
    let venv = Venv::of_tests()?;
    let libraries = Libraries::build()?;
    let test = |arguments: &[&str]| {
        let mut command = workspace::cargo();
        command
            .args(["test", "--quiet", "--no-fail-fast", "--workspace"])
            .args(arguments)
            .env("TEST_REFCPU", &libraries.refcpu)
            .env("TEST_ACCELERATOR", &libraries.accelerator)
            .env("TEST_PYTHON", venv.program("python"));
        command
    };
    let all = ["--lib", "--bins", "--tests"];
    run_command(test(&all).arg("--no-run"))?;
    std::thread::scope(|scope| {
        let faults = scope.spawn(|| cargo_test(&mut test(&["--test", "faults", FAULTS])));
        let others = cargo_test(test(&all).args(["--", "--skip", FAULTS]))?;
        let mut faults = faults.join().expect("the thread ends")?;
        // Without the name, no test would run.
        faults.failed += u64::from(faults.passed + faults.failed == 0);
        Ok([others, faults].into_iter().sum())
    })
}

fn documentation() -> Result<Outcome> {
    let examples =
        cargo_test(workspace::cargo().args(["test", "--quiet", "--no-fail-fast", "--workspace", "--doc"]))?;
    let pages = check(
        workspace::cargo()
            .args(["doc", "--quiet", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-Dwarnings"),
    )?;
    Ok([examples, pages].into_iter().sum())
}

/// Runs the tests with JAX in a virtual environment, with one process per file, because a process selects its
/// platforms once.
fn jax() -> Result<Outcome> {
    let venv = Venv::of_tests()?;
    let libraries = Libraries::build()?;
    let wheel = wheel::build(wheel::Profile::Dev, &workspace::target().join("test-wheel"))?;
    venv.install_wheel(&wheel)?;
    // Without Gloo, the tests of several processes are skipped.
    let gloo =
        gloo::library().inspect_err(|error| println!("test_distributed.py is skipped: {error:#}")).ok();
    let folder = workspace::root().join("tests/python");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| is_test_file(file));
    // The long files come first, so that the last ones keep both processors busy.
    files.sort_by_cached_key(|file| Reverse(file.metadata().map_or(0, |data| data.len())));
    let pytest = |file: &PathBuf| {
        let (status, text) = finish(
            venv.python()
                .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
                .arg(file)
                .current_dir(&folder)
                .env("TEST_REFCPU", &libraries.refcpu)
                .env("TEST_HELLO", &libraries.hello)
                .env("TEST_ACCELERATOR", &libraries.accelerator)
                .env("TEST_MLIR", &libraries.mlir)
                .env("TEST_TUTORIAL", &libraries.tutorial)
                .env("TEST_FAULT_PLUGIN", &libraries.fault)
                .env("TEST_CARGO_PJRT", &libraries.cargo_pjrt)
                .env("TEST_RECORDER", &libraries.recorder)
                .envs(gloo.as_ref().map(|gloo| ("REFCPU_GLOO", gloo))),
        )?;
        let summary = text.lines().last().unwrap_or_default();
        let failed = count(summary, "failed") + count(summary, "error") + count(summary, "errors");
        let failed = if status.success() { failed } else { failed.max(1) };
        Ok(Outcome { passed: count(summary, "passed"), failed })
    };
    in_parallel(&files, pytest)
}

/// Runs a function on each subject, such as a file of tests, two at a time, because a test program mostly occupies one processor;
/// and returns the sum of the outcomes.
fn in_parallel<T: Sync>(subjects: &[T], run: impl Fn(&T) -> Result<Outcome> + Sync) -> Result<Outcome> {
    let next = AtomicUsize::new(0);
    let subjects = || std::iter::from_fn(|| subjects.get(next.fetch_add(1, Ordering::Relaxed)));
    let work = || subjects().map(&run).sum::<Result<Outcome>>();
    std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().map(|worker| worker.join().expect("a worker ends")).sum()
    })
}

fn is_test_file(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("test_") && name.ends_with(".py")
}

/// Runs the conformance kit on the plugins, including refcpu as a device whose memory the host cannot read; and an independent
/// conformance prober for PJRT plugins, from PyPI.
fn conform() -> Result<Outcome> {
    let venv = Venv::of_tests()?;
    let libraries = Libraries::build()?;
    // Shared processes are several times as fast. The devices are all simulated, so that several processes can use them.
    let shared: &[&str] = &["--shared", "--jobs=4"];
    let steps = libraries.tutorial_steps.iter().map(|library| (library, None, shared));
    // Those that take longest come first.
    let plugins = [
        (&libraries.accelerator, None, shared),
        // As users run it by default, with each check in a process of its own.
        (&libraries.refcpu, None, &[]),
        (&libraries.refcpu, Some("1"), shared),
        (&libraries.tutorial, None, shared),
        (&libraries.mlir, None, shared),
        (&libraries.hello, None, shared),
    ];
    let plugins: Vec<_> = plugins.into_iter().chain(steps).collect();
    let kit = |(library, opaque, arguments): &(&PathBuf, Option<&str>, &[&str])| {
        let opaque = opaque.map(|value| ("REFCPU_OPAQUE", value));
        let mut kit = Command::new(&libraries.cargo_pjrt);
        kit.arg("conform").args(*arguments).arg(library).env_remove("REFCPU_OPAQUE").envs(opaque);
        let (status, text) = finish(&mut kit)?;
        // `364 passed, 16 unsupported, 1 not applicable, 0 failed`, or an error.
        let summary = text.lines().last().unwrap_or_default();
        let failed = count(summary, "failed").max(u64::from(!status.success()));
        Ok(Outcome { passed: count(summary, "passed"), failed })
    };
    let mut total = in_parallel(&plugins, kit)?;
    for library in [&libraries.hello, &libraries.refcpu] {
        let script = workspace::root().join("tests/python/conform.py");
        let (status, text) = watch(venv.python().arg(script).arg(library))?;
        // `49 pass · 8 unsupported · 6 skip · 0 FAIL`, or a traceback.
        let summary = text.lines().find(|line| line.ends_with(" FAIL")).unwrap_or_default();
        total.passed += count(summary, "pass");
        total.failed += count(summary, "FAIL").max(u64::from(!status.success()));
    }
    Ok(total)
}

/// Runs `cargo xtask corpus` in every form, decomposed, without complex numbers, and split among devices. Only the programs
/// that are known to fail may fail.
fn corpus_programs() -> Result<Outcome> {
    if corpus::folder().is_none() && std::env::var_os("CI").is_some_and(|ci| ci == "true") {
        bail!("PJRT_CORPUS is not set: in CI it names the folder of the program corpus");
    }
    let known = workspace::root().join("refcpu-engine/examples/corpus/known_failures.txt");
    let mut outcome = Outcome::default();
    for more in [&[][..], &["--decompose"], &["--without-complex"], &["--split"]] {
        let (status, text) = watch(corpus::runner()?.arg("--known").arg(&known).args(more))?;
        // The table has a row per form and category: both, the number of programs, the number that passed,
        // and the other outcomes.
        let cell = |line: &str| line.split_whitespace().nth(3)?.parse::<u64>().ok();
        outcome.passed += text.lines().filter_map(cell).sum::<u64>();
        // `2 programs fared other than expected`
        let surprises = text.lines().last().map_or(0, |line| count(line, "programs"));
        outcome.failed += surprises.max(u64::from(!status.success()));
    }
    Ok(outcome)
}

/// Checks that MLIR's own reader, in jaxlib, reads the same modules as `pjrt-stablehlo`: in the corpus, in
/// programs that hosts sent, and in lowerings of many functions by this release of JAX.
fn mlir_agreement() -> Result<Outcome> {
    workspace::build_dev()?;
    let venv = Venv::of_tests()?;
    let folder = lowerings::write(&venv, "test")?;
    let (status, text) = watch(lowerings::agreement(&venv).arg("--lowerings").arg(folder))?;
    // `31531 passed, 0 failed, 8 exceptions`, or a traceback.
    let summary = text.lines().last().unwrap_or_default();
    let failed = count(summary, "failed").max(u64::from(!status.success()));
    Ok(Outcome { passed: count(summary, "passed"), failed })
}

/// Creates plugins from the templates and builds them outside the workspace, one of them from the packaged
/// crates; then runs them with JAX.
fn packaged_crates() -> Result<Outcome> {
    let venv = Venv::of_tests()?;
    let mut outcome = Outcome::default();
    for plugin in packaged::build_new_plugins()? {
        let program = check(
            venv.python()
                .arg(workspace::root().join("tests/python/first_program.py"))
                .env(
                    "PJRT_NAMES_AND_LIBRARY_PATHS",
                    format!("{}:{}", plugin.platform, plugin.library.display()),
                )
                .env("JAX_PLATFORMS", plugin.platform),
        )?;
        outcome.passed += program.passed;
        outcome.failed += program.failed;
    }
    Ok(outcome)
}

/// Checks the generated files: the bindings of the C API, and the structs of protocol buffers.
fn generated() -> Result<Outcome> {
    let bindings = check(workspace::cargo().args(["xtask", "bindgen", "--check"]))?;
    let protos = check(workspace::cargo().args(["xtask", "protos", "--check"]))?;
    Ok(Outcome { passed: bindings.passed + protos.passed, failed: bindings.failed + protos.failed })
}

/// Builds the book, and checks its links.
fn book_links() -> Result<Outcome> {
    Ok(Outcome { passed: book::build()?, failed: 0 })
}

/// The shared libraries and the program that the tests use, which the tests build.
struct Libraries {
    refcpu: PathBuf,
    hello: PathBuf,
    accelerator: PathBuf,
    mlir: PathBuf,
    tutorial: PathBuf,
    tutorial_steps: Vec<PathBuf>,
    fault: PathBuf,
    recorder: PathBuf,
    cargo_pjrt: PathBuf,
}

impl Libraries {
    fn build() -> Result<Self> {
        workspace::build_dev()?;
        let steps = workspace::tutorial_steps()?;
        Ok(Self {
            refcpu: workspace::shared_library("debug", "refcpu"),
            hello: workspace::shared_library("debug", "hello_pjrt"),
            accelerator: workspace::shared_library("debug", "accelerator_pjrt"),
            mlir: workspace::shared_library("debug", "mlir_pjrt"),
            tutorial: workspace::shared_library("debug", "tutorial_pjrt"),
            tutorial_steps: steps
                .iter()
                .map(|step| workspace::shared_library("debug/examples", step))
                .collect(),
            fault: workspace::shared_library("debug/examples", "fault_plugin"),
            recorder: workspace::shared_library("debug/examples", "recorder"),
            cargo_pjrt: workspace::program("debug", "cargo-pjrt"),
        })
    }
}

/// Runs a command that is one check.
fn check(command: &mut Command) -> Result<Outcome> {
    let (status, _) = watch(command)?;
    Ok(Outcome { passed: status.success().into(), failed: (!status.success()).into() })
}

/// Runs `cargo test`, and sums the results of its test programs.
fn cargo_test(command: &mut Command) -> Result<Outcome> {
    let (status, text) = watch(command)?;
    let results = || text.lines().filter(|line| line.starts_with("test result: "));
    let passed = results().map(|line| count(line, "passed")).sum();
    let failed: u64 = results().map(|line| count(line, "failed")).sum();
    // If the compilation fails or a test program crashes, there is no line with numbers.
    Ok(Outcome { passed, failed: if status.success() { failed } else { failed.max(1) } })
}

/// Returns the number before a word in a summary such as `3 passed, 1 failed in 2.1s`.
fn count(summary: &str, word: &str) -> u64 {
    let words: Vec<&str> =
        summary.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let pair = words.windows(2).find(|pair| pair[1] == word);
    pair.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn summaries_of_cargo_and_pytest_are_counted() {
        assert_eq!(count("test result: ok. 12 passed; 3 failed; 0 ignored", "passed"), 12);
        assert_eq!(count("test result: ok. 12 passed; 3 failed; 0 ignored", "failed"), 3);
        assert_eq!(count("=== 1 failed, 7 passed, 2 warnings in 3.21s ===", "passed"), 7);
        assert_eq!(count("no tests ran in 0.01s", "passed"), 0);
    }
}
