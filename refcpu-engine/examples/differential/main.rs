//! Generates random StableHLO programs and runs them on refcpu, for `cargo xtask differential`.
//!
//! `generate` writes for each program a line with a JSON object, which contains the program and refcpu's results. `run` reads
//! programs as lines of JSON, and writes the same object for each. `table` writes the operations and element types that are
//! tested. The driver, `tests/python/differential`, runs the other implementations and compares the results.
#![forbid(unsafe_code)]

mod execute;
mod generator;
mod ops;
mod program;
mod random;
mod table;
mod types;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use execute::{Machine, Outcome};
use pjrt_stablehlo::ir::OpCode;
use program::GeneratedProgram;
use serde::Serialize;
use serde_json::json;
use std::io::{BufRead, Write};
use types::Element;

/// Random programs on refcpu.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Generate programs and run them
    Generate {
        /// Seed of the random choices
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Number of the first program
        #[arg(long, default_value_t = 0)]
        start: u64,
        /// Number of programs
        #[arg(long, default_value_t = 100)]
        programs: u64,
        /// Only programs about this operation
        #[arg(long)]
        only: Option<String>,
        /// Only programs about this element type
        #[arg(long)]
        element: Option<String>,
    },
    /// Run the programs of standard input
    Run,
    /// Write the tested operations with their element types, and the reasons why others are not tested
    Table,
}

/// A program and its outcome.
#[derive(Serialize)]
struct Record {
    number: u64,
    /// The operation that the program is about.
    about: (&'static str, &'static str),
    program: GeneratedProgram,
    outcome: Outcome,
}

fn main() -> Result<()> {
    let command = Arguments::parse().command;
    std::panic::set_hook(Box::new(|_| ()));
    // The recursion depth of reading and compiling grows with the nesting of the program.
    let worker = std::thread::Builder::new().stack_size(64 << 20).spawn(move || match command {
        Command::Generate { seed, start, programs, only, element } => {
            generate(seed, start..start + programs, only.as_deref(), element.as_deref())
        }
        Command::Run => run(),
        Command::Table => write_table(),
    })?;
    worker.join().unwrap_or_else(|_| anyhow::bail!("the command panicked"))
}

/// Generates programs. The pairs of operation and element type rotate, so that each occurs equally often with every seed.
fn generate(
    seed: u64,
    numbers: std::ops::Range<u64>,
    only: Option<&str>,
    element: Option<&str>,
) -> Result<()> {
    let is_wanted =
        |code: OpCode| only.is_none_or(|only| [code.info().name, code.info().mnemonic()].contains(&only));
    let pairs: Vec<(OpCode, Element)> = OpCode::ALL
        .iter()
        .filter(|code| is_wanted(**code))
        .flat_map(|&code| types::elements().into_iter().map(move |element| (code, element)))
        .filter(|&(code, ty)| table::is_allowed(code, ty) && element.is_none_or(|e| e == ty.family()))
        .collect();
    anyhow::ensure!(
        !pairs.is_empty(),
        "there are no such programs; `table` lists operations and element types"
    );
    let machine = Machine::new();
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    for number in numbers {
        let (code, element) = pairs[(number % pairs.len() as u64) as usize];
        let Some(program) = generator::program(seed, number, code, element) else { continue };
        let cut = (number as usize / pairs.len()) % program.statements.len().max(1);
        let outcome = machine.outcome(&program, cut.max(1));
        let about = (code.info().name, element.family());
        serde_json::to_writer(&mut output, &Record { number, about, program, outcome })?;
        writeln!(output)?;
    }
    Ok(output.flush()?)
}

fn run() -> Result<()> {
    let machine = Machine::new();
    for line in std::io::stdin().lock().lines() {
        let program: GeneratedProgram = serde_json::from_str(&line?).context("a program")?;
        let outcome = machine.outcome(&program, program.statements.len() / 2);
        let mut output = std::io::stdout().lock();
        serde_json::to_writer(&mut output, &outcome)?;
        writeln!(output)?;
        output.flush()?;
    }
    Ok(())
}

fn write_table() -> Result<()> {
    let pairs: Vec<_> = table::allowed().iter().map(|(code, element)| (code.info().name, element)).collect();
    let without = OpCode::ALL.iter().filter(|code| table::allowed().iter().all(|(other, _)| other != *code));
    let reasons: Vec<_> = without.map(|&code| (code.info().name, ops::reason(code))).collect();
    println!("{}", json!({ "pairs": pairs, "untested": reasons }));
    Ok(())
}
