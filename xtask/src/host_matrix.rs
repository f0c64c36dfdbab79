//! `cargo xtask test-hosts`: tests one shared library with many releases of JAX.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Args;

use crate::run::watch;
use crate::venv::Venv;
use crate::{wheel, workspace};

/// The releases of jaxlib, from the oldest that a plugin built today supports to the one that the other tests
/// use.
pub(crate) const RELEASES: &[&str] =
    &["0.4.30", "0.4.35", "0.5.3", "0.6.2", "0.7.2", "0.8.3", "0.9.2", "0.10.2"];

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Test only this release, such as 0.6.2; can be given several times
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(RELEASES))]
    only: Vec<String>,
}

/// Runs `tests/python/smoke.py` on refcpu under each release, and prints a table.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let library = wheel::build_library(wheel::Profile::Release)?;
    let root = workspace::root();
    let mut rows = Vec::new();
    let mut failed = 0;
    for release in RELEASES {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == release) {
            continue;
        }
        println!("\n== jaxlib {release}");
        let started = Instant::now();
        let outcome = environment(release).and_then(|venv| {
            let mut smoke = venv.python();
            smoke
                .arg(root.join("tests/python/smoke.py"))
                .env("PJRT_NAMES_AND_LIBRARY_PATHS", format!("refcpu:{}", library.display()))
                // This is the Python part of the package, which must support every release too. It does not
                // contain the library.
                .env("PYTHONPATH", root.join("examples/refcpu/python"))
                .env("JAX_PLATFORMS", "refcpu")
                // 0.4.30 requires the plugin's version to equal its own unless this variable is set. Later
                // releases ignore it.
                .env("ENABLE_PJRT_COMPATIBILITY", "1");
            watch(&mut smoke)
        });
        let (right, result) = match outcome {
            Ok((status, text)) => {
                let last = text.lines().last().unwrap_or("no output").to_owned();
                (status.success(), if status.success() { last } else { format!("{last} ({status})") })
            }
            Err(error) => (false, format!("{error:#}")),
        };
        failed += usize::from(!right);
        let verdict = if right { "ok" } else { "FAILED" };
        rows.push(format!("{release:<8} {verdict:<7} {:5.1} s  {result}", started.elapsed().as_secs_f64()));
    }
    println!("\njaxlib   result     time  smoke test");
    println!("{}\n{} passed, {failed} failed", rows.join("\n"), rows.len() - failed);
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Returns the virtual environment of a release.
pub(crate) fn environment(release: &str) -> Result<Venv> {
    // jax.export of early releases needs absl-py, but does not declare this dependency.
    let requirements =
        format!("jax=={release}\njaxlib=={release}\nnumpy==2.4.6\nscipy==1.17.1\nabsl-py==2.5.1\n");
    Venv::with_requirements(&format!("jax-{release}"), &requirements)
}
