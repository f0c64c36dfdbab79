//! `cargo xtask fuzz`: runs a fuzz target of `pjrt-stablehlo`, from the programs of the corpus.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::run::{output, run};
use crate::{corpus, workspace};

/// Longest program that becomes a seed: short ones are run more often.
const MAX_SEED: u64 = 4096;

/// Longest input that the fuzzer makes.
const MAX_INPUT: u64 = 16384;

/// What to fuzz, and for how long.
#[derive(Args)]
pub(crate) struct Options {
    /// The fuzz target
    target: Target,
    /// Minutes after which to stop
    #[arg(long, default_value_t = 30)]
    minutes: u64,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Target {
    /// Reading MLIR bytecode
    Bytecode,
    /// Reading MLIR text, and again what is printed
    Text,
    /// Bytecode, printed and read as text
    BytecodeTextAgree,
    /// Reading HLO, and text that is printed of it
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

    /// Whether a form of a program of the corpus is an input of the target.
    fn takes(self, form: &str) -> bool {
        match self {
            Target::Bytecode | Target::BytecodeTextAgree => form.starts_with("vhlo"),
            Target::Text => matches!(form, "mlir" | "generic" | "pretty"),
            Target::Hlo => form == "hlo",
        }
    }
}

/// Collects seeds and runs the target on one core; fails at the first input that breaks it.
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
    command.current_dir(folder.parent().context("the folder of the targets lies in the crate")?);
    // The sanitizer's flags are those of a nightly compiler; the environment variable makes the stable one accept them.
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

/// Writes programs of the corpus, or of the sample in this repository where there is none, into a folder.
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

/// Short programs of a corpus in the forms that the target takes.
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
                    programs.push(bytes.context("programs lie inside of their file")?.to_vec());
                }
            }
        }
    }
    Ok(programs)
}
