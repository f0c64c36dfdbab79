//! Runs a corpus of StableHLO programs on refcpu and compares the results with what they should be.
//!
//! The corpus is a folder of `<group>.jsonl` and `<group>.bin` files, named by the environment variable `PJRT_CORPUS`.
#![forbid(unsafe_code)]

mod compare;
mod record;

use anyhow::{Context, Result};
use clap::Parser;
use record::{ArrayRecord, Group, Record};
use refcpu::compile::{CompileErrorKind, CompileOptions, compile};
use refcpu::exec::{Input, RunOptions, Runtime, run};
use refcpu::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Run the corpus.
#[derive(Parser)]
struct Arguments {
    /// Folder of the corpus
    #[arg(long, env = "PJRT_CORPUS")]
    corpus: PathBuf,
    /// Form of the programs
    #[arg(long, default_value = "vhlo")]
    form: String,
    /// Only these categories
    #[arg(long)]
    category: Vec<String>,
    /// Only programs whose name contains this
    #[arg(long)]
    name: Option<String>,
    /// Programs at once
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, |n| n.get()))]
    threads: usize,
    /// Say what is wrong with each program that fails
    #[arg(long)]
    failures: bool,
    /// Fail if fewer programs of a category pass: `static=1000`
    #[arg(long)]
    floor: Vec<String>,
}

/// How a program fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Pass,
    Wrong,
    Unreadable,
    Unimplemented,
    Error,
    Panic,
}

const FATES: [Fate; 6] =
    [Fate::Pass, Fate::Wrong, Fate::Unreadable, Fate::Unimplemented, Fate::Error, Fate::Panic];

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let groups = record::read(&arguments.corpus)?;
    let work: Vec<(&Group, &Record)> = groups
        .iter()
        .flat_map(|g| g.records.iter().map(move |r| (g, r)))
        .filter(|(_, r)| r.kind == "exec" && r.programs.contains_key(&arguments.form))
        .filter(|(_, r)| arguments.category.is_empty() || arguments.category.contains(&r.category))
        .filter(|(_, r)| arguments.name.as_ref().is_none_or(|n| r.name.contains(n.as_str())))
        .collect();
    std::panic::set_hook(Box::new(|_| ()));
    let (next, fates) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(work.len())));
    std::thread::scope(|s| {
        for _ in 0..arguments.threads.max(1) {
            let worker = || {
                let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some((group, record)) = work.get(i) else { break };
                    let fate = attempt(&runtime, &arguments.form, group, record);
                    fates.lock().expect("no worker panics").push((i, fate));
                }
            };
            // Importing and compiling recurse with the nesting of the program.
            std::thread::Builder::new()
                .stack_size(64 << 20)
                .spawn_scoped(s, worker)
                .expect("a thread starts");
        }
    });
    let mut fates = fates.into_inner().expect("no worker panics");
    fates.sort_by_key(|(i, _)| *i);
    let mut table: BTreeMap<&str, [usize; 6]> = BTreeMap::new();
    for (i, (fate, message)) in &fates {
        let record = work[*i].1;
        table.entry(&record.category).or_default()[*fate as usize] += 1;
        if arguments.failures && *fate != Fate::Pass {
            println!("{fate:?} {}/{}: {message}", record.group, record.name);
        }
    }
    report(&table);
    let mut failed = false;
    for floor in &arguments.floor {
        let (category, least) = floor.split_once('=').context("a floor is written category=number")?;
        let least: usize = least.parse().with_context(|| format!("{floor}: not a number"))?;
        let passed = table.get(category).map_or(0, |row| row[0]);
        if passed < least {
            eprintln!("{category}: {passed} programs pass, there should be at least {least}");
            failed = true;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn report(table: &BTreeMap<&str, [usize; 6]>) {
    print!("{:<18}{:>8}", "category", "programs");
    for fate in FATES {
        print!("{:>15}", format!("{fate:?}").to_lowercase());
    }
    println!();
    for (category, row) in table {
        print!("{category:<18}{:>8}", row.iter().sum::<usize>());
        row.iter().for_each(|n| print!("{n:>15}"));
        println!();
    }
}

/// Runs one program.
fn attempt(runtime: &Runtime, form: &str, group: &Group, record: &Record) -> (Fate, String) {
    match std::panic::catch_unwind(AssertUnwindSafe(|| outcome(runtime, form, group, record))) {
        Ok(Ok(())) => (Fate::Pass, String::new()),
        Ok(Err(failure)) => failure,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_string()));
            (Fate::Panic, text.unwrap_or_default())
        }
    }
}

fn outcome(runtime: &Runtime, form: &str, group: &Group, record: &Record) -> Result<(), (Fate, String)> {
    let piece = &record.programs[form];
    let program = group.blob[piece.off..piece.off + piece.len].to_vec();
    let module = pjrt_stablehlo::parse(program).map_err(|e| (Fate::Unreadable, e.to_string()))?;
    let options = CompileOptions {
        num_replicas: record.num_replicas,
        num_partitions: record.num_partitions,
        ..CompileOptions::default()
    };
    let plan = compile(&module, &options).map_err(|e| {
        let missing = e.kind == CompileErrorKind::Unimplemented;
        (if missing { Fate::Unimplemented } else { Fate::Error }, e.to_string())
    })?;
    let devices = record.devices();
    let error = |e: &dyn std::fmt::Display| (Fate::Error, e.to_string());
    let mut inputs = Vec::new();
    for device in &devices {
        let arrays = device.inputs.iter().map(|a| input(runtime, group, a));
        inputs.push(arrays.collect::<Result<Vec<_>>>().map_err(|e| error(&e))?);
    }
    let results = run(&plan, runtime, inputs, &RunOptions::default()).map_err(|e| error(&e))?;
    for (d, (device, results)) in devices.iter().zip(&results).enumerate() {
        if device.outputs.len() != results.len() {
            return Err((
                Fate::Wrong,
                format!("{} results instead of {}", results.len(), device.outputs.len()),
            ));
        }
        for (k, (result, output)) in results.iter().zip(&device.outputs).enumerate() {
            let Some(output) = output else { continue };
            if result.dtype().mlir_name() != output.dtype || result.dims() != output.shape {
                return Err((
                    Fate::Wrong,
                    format!("result {k} is {result:?}, should be {}{:?}", output.dtype, output.shape),
                ));
            }
            let expected = &group.blob[output.piece.off..output.piece.off + output.piece.len];
            let expected = canonical(result.dtype(), expected);
            let actual = canonical(result.dtype(), result.bytes().expect("results are dense"));
            if let Some(what) = compare::mismatch(result.dtype(), &actual, &expected, &output.tol) {
                return Err((Fate::Wrong, format!("device {d} result {k} {}: {what}", output.dtype)));
            }
        }
    }
    Ok(())
}

fn input(runtime: &Runtime, group: &Group, array: &ArrayRecord) -> Result<Input> {
    let dtype =
        DType::from_mlir_name(&array.dtype).with_context(|| format!("element type {}", array.dtype))?;
    let bytes = &group.blob[array.piece.off..array.piece.off + array.piece.len];
    let bytes = canonical(dtype, bytes);
    Ok(Input { array: Array::from_bytes(&runtime.allocator, dtype, &array.shape, &bytes)?, donatable: false })
}

/// The bytes with signed integers narrower than a byte extended to it; some of the corpus has them so and some not.
fn canonical(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    let unused = 8u32.saturating_sub(dtype.bits() as u32);
    if unused == 0 || dtype.is_float() || !dtype.compute().is_signed_integer() {
        return bytes.to_vec();
    }
    bytes.iter().map(|b| (((b << unused) as i8) >> unused) as u8).collect()
}
