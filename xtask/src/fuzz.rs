//! `cargo xtask fuzz`: runs a fuzz target of `pjrt-stablehlo`, starting from the programs of the corpus.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::corpus;
use crate::environment::run::{output, run};
use crate::environment::workspace;

/// The maximum size of a program that becomes a seed. Short programs are executed more often.
const MAX_SEED: u64 = 4096;

/// The maximum size of the fuzzer's inputs.
const MAX_INPUT: u64 = 16384;

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Fuzz target
    target: Target,
    /// The number of minutes to run
    #[arg(long, default_value_t = 30)]
    minutes: u64,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Target {
    /// Read MLIR bytecode
    Bytecode,
    /// Read MLIR text, print it and read it again
    Text,
    /// Read bytecode, print it and read the text
    BytecodeTextAgree,
    /// Read HLO, print it and read the text
    Hlo,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Target::Bytecode => "bytecode",
            Target::Text => "text",
            Target::BytecodeTextAgree => "bytecode_text_agree",
            Target::Hlo => "hlo",
        }
    }

    /// Returns `true` if programs in this form are inputs of the target.
    fn takes(self, form: &str) -> bool {
        match self {
            Target::Bytecode | Target::BytecodeTextAgree => form.starts_with("vhlo"),
            Target::Text => matches!(form, "mlir" | "generic" | "pretty"),
            Target::Hlo => form == "hlo",
        }
    }
}

/// Collects seeds and runs the target on one core. Fails at the first input that makes the target fail.
pub(crate) fn fuzz(options: &Options) -> Result<()> {
    let is_installed = output(workspace::cargo().args(["fuzz", "--version"])).is_ok();
    if !is_installed {
        bail!("cargo-fuzz is not installed: run 'cargo install cargo-fuzz --locked'");
    }
    let name = options.target.name();
    let folder = workspace::root().join("pjrt-stablehlo/fuzz");
    let seeds = folder.join("corpus").join(name);
    let count = collect_seeds(options.target, &seeds)?;
    println!("{count} seeds in {}", seeds.display());
    let mut command = Command::new("cargo");
    command.current_dir(folder.parent().context("the folder of the targets is in the crate")?);
    // The sanitizer's flags require a nightly compiler; the environment variable makes the stable one accept
    // them.
    let nightly = output(Command::new("rustup").args(["run", "nightly", "rustc", "--version"])).is_ok();
    if nightly {
        command.env("RUSTUP_TOOLCHAIN", "nightly");
    } else {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    let seconds = options.minutes.saturating_mul(60);
    run(command.args(["fuzz", "run", name, "--"]).args([
        format!("-max_total_time={seconds}"),
        format!("-max_len={MAX_INPUT}"),
        "-timeout=20".into(),
    ]))
}

/// Writes the programs of the corpus, or of the sample in this repository if there is no corpus, to a folder.
fn collect_seeds(target: Target, folder: &Path) -> Result<usize> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let corpus = corpus::folder().unwrap_or_else(|| workspace::root().join("tests/data"));
    let programs = programs(target, &corpus)?;
    for program in &programs {
        let mut hasher = DefaultHasher::new();
        program.hash(&mut hasher);
        let path = folder.join(format!("seed-{:016x}", hasher.finish()));
        fs::write(&path, program).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(programs.len())
}

/// Returns the short programs of a corpus in the forms that the target reads.
fn programs(target: Target, folder: &Path) -> Result<Vec<Vec<u8>>> {
    let mut programs = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let records = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let blob = fs::read(path.with_extension("bin"))?;
        for record in records.lines() {
            let record: Value = serde_json::from_str(record)?;
            for (form, place) in record["programs"].as_object().into_iter().flatten() {
                let number = |name: &str| place[name].as_u64().context("a program has a place");
                let (start, len) = (number("off")?, number("len")?);
                if target.takes(form) && len <= MAX_SEED {
                    let bytes = blob.get(start as usize..(start + len) as usize);
                    programs.push(bytes.context("programs lie inside their file")?.to_vec());
                }
            }
        }
    }
    Ok(programs)
}
