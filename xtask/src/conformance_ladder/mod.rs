//! `cargo xtask conformance-ladder`: the conformance kit on this repository's plugins and on those of others.

mod kit;
mod page;
mod plugins;
mod proofs;
mod verdicts;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;

use page::Tested;
use proofs::Proofs;

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Run the kit only on this plugin, such as hello, and leave the page as it is; can be given several times
    #[arg(long, value_name = "PLUGIN")]
    only: Vec<String>,
    /// Test this release build of refcpu instead of building it
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// Downloads and builds the plugins, runs the kit on each, proves the verdicts again, and writes the results
/// into docs/conformance.md. Fails if a failure has no verdict, or a verdict no failure or no proof.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let plugins = plugins::all(options.library.as_deref())?;
    for only in &options.only {
        ensure!(
            plugins.iter().any(|plugin| plugin.name == *only),
            "there is no plugin {only}; expected one of {}",
            plugins.iter().map(|plugin| plugin.name).collect::<Vec<_>>().join(", ")
        );
    }
    let proofs = Proofs::compile()?;
    let mut complaints = Vec::new();
    proofs.check_without_bugs(&plugins, &mut complaints)?;
    let mut tested = Vec::new();
    for plugin in plugins {
        if !options.only.is_empty() && !options.only.iter().any(|only| plugin.name == *only) {
            continue;
        }
        println!("{}", plugin.title());
        let outcome = kit::run(&plugin)?;
        println!("  {}", outcome.summary());
        let judged = verdicts::judge(&plugin, &outcome, &proofs, &mut complaints)?;
        tested.push(Tested { plugin, outcome, judged });
    }
    if options.only.is_empty() {
        page::write(&tested)?;
    }
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    Ok(ExitCode::from(u8::from(!complaints.is_empty())))
}
