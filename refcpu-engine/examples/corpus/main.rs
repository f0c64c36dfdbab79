//! Runs a corpus of StableHLO programs on refcpu and compares the results with the expected ones.
//!
//! The corpus is a folder of `<group>.jsonl` and `<group>.bin` files, named by the environment variable `PJRT_CORPUS`.
#![forbid(unsafe_code)]

mod compare;
mod record;
mod split;

use anyhow::{Context, Result};
use clap::Parser;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::passes::CoreOps;
use record::{ArrayRecord, Device, Group, Record};
use refcpu_engine::compile::{CompileErrorKind, CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};
use split::Split;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Run the corpus.
#[derive(Parser)]
struct Arguments {
    /// Folder of the corpus
    #[arg(long, env = "PJRT_CORPUS")]
    corpus: PathBuf,
    /// Only this form of the programs; may be given several times
    #[arg(long, default_values_t = FORMS.map(str::to_owned))]
    form: Vec<String>,
    /// Rewrite programs to the default core operations of pjrt-stablehlo first
    #[arg(long)]
    decompose: bool,
    /// Rewrite programs to the core operations of a device without complex numbers first
    #[arg(long)]
    without_complex: bool,
    /// Run the programs for one device in the form that they have for each of four, with their arguments split among these
    #[arg(long)]
    split: bool,
    /// Only these categories
    #[arg(long)]
    category: Vec<String>,
    /// Only programs whose name contains this
    #[arg(long)]
    name: Option<String>,
    /// Number of programs that run concurrently
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, |n| n.get()))]
    threads: usize,
    /// Print the error of each program that fails
    #[arg(long)]
    failures: bool,
    /// File that lists the programs that are known to fail, with the reasons; fail if others fail, or if these pass
    #[arg(long)]
    known: Option<PathBuf>,
}

/// The forms whose programs take the inputs of the record.
const FORMS: [&str; 5] = ["vhlo", "vhlo_latest", "mlir", "generic", "hlo"];

/// The outcome of a program.
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
    let records: Vec<(&Group, &Record)> = groups
        .iter()
        .flat_map(|g| g.records.iter().map(move |r| (g, r)))
        .filter(|(_, r)| r.kind == "exec")
        .filter(|(_, r)| arguments.category.is_empty() || arguments.category.contains(&r.category))
        .filter(|(_, r)| !arguments.split || r.num_replicas * r.num_partitions == 1)
        .filter(|(_, r)| arguments.name.as_ref().is_none_or(|n| r.name.contains(n.as_str())))
        .collect();
    let of_form = |form| {
        let has = move |(_, record): &&(&Group, &Record)| record.programs.contains_key(form);
        records.iter().filter(has).map(move |(group, record)| Job { form, group, record })
    };
    let work: Vec<Job<'_>> = arguments.form.iter().flat_map(|form| of_form(form.as_str())).collect();
    std::panic::set_hook(Box::new(|_| ()));
    let (next, fates) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(work.len())));
    std::thread::scope(|s| {
        for _ in 0..arguments.threads.max(1) {
            let worker = || {
                let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = work.get(i) else { break };
                    let fate = attempt(&runtime, job, &arguments);
                    fates.lock().expect("no worker panics").push((i, fate));
                }
            };
            // The recursion depth of importing and compiling grows with the nesting of the program.
            std::thread::Builder::new()
                .stack_size(64 << 20)
                .spawn_scoped(s, worker)
                .expect("a thread starts");
        }
    });
    let mut fates = fates.into_inner().expect("no worker panics");
    fates.sort_by_key(|(i, _)| *i);
    let mut known = Known::read(arguments.known.as_deref())?;
    let mut table: BTreeMap<(&str, &str), [usize; 6]> = BTreeMap::new();
    for (i, (fate, message)) in &fates {
        let job = &work[*i];
        table.entry((job.form, &job.record.category)).or_default()[*fate as usize] += 1;
        let name = format!("{} {}/{}", job.form, job.record.group, job.record.name);
        let expected = known.is_expected(&name, *fate);
        if arguments.failures && *fate != Fate::Pass || !expected {
            println!("{fate:?} {name}: {message}");
        }
    }
    report(&table);
    if arguments.split {
        println!("{} programs communicate", COMMUNICATING.load(Ordering::Relaxed));
    }
    println!("{} programs fared other than expected", known.surprises);
    Ok(if known.surprises > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A program in one of its forms.
struct Job<'c> {
    form: &'c str,
    group: &'c Group,
    record: &'c Record,
}

/// The programs that are known to fail. The file has a line `form group/name: reason` for each.
struct Known {
    /// The names; `None` if the file does not exist, so that every outcome is expected.
    names: Option<BTreeSet<String>>,
    surprises: usize,
}

impl Known {
    fn read(file: Option<&Path>) -> Result<Self> {
        let Some(file) = file else { return Ok(Self { names: None, surprises: 0 }) };
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let name = |line: &str| {
            let (name, _) = line.split_once(": ").with_context(|| format!("{line}: there is no reason"))?;
            Ok(name.to_owned())
        };
        Ok(Self { names: Some(lines.map(name).collect::<Result<_>>()?), surprises: 0 })
    }

    /// Returns whether the outcome of a program is the one that the file states.
    fn is_expected(&mut self, name: &str, fate: Fate) -> bool {
        let Some(names) = &self.names else { return true };
        let expected = names.contains(name) != (fate == Fate::Pass);
        self.surprises += usize::from(!expected);
        expected
    }
}

fn report(table: &BTreeMap<(&str, &str), [usize; 6]>) {
    print!("{:<12}{:<18}{:>8}", "form", "category", "programs");
    for fate in FATES {
        print!("{:>15}", format!("{fate:?}").to_lowercase());
    }
    println!();
    for ((form, category), row) in table {
        print!("{form:<12}{category:<18}{:>8}", row.iter().sum::<usize>());
        row.iter().for_each(|n| print!("{n:>15}"));
        println!();
    }
}

/// Runs one program.
fn attempt(runtime: &Runtime, job: &Job<'_>, how: &Arguments) -> (Fate, String) {
    match std::panic::catch_unwind(AssertUnwindSafe(|| outcome(runtime, job, how))) {
        Ok(Ok(())) => (Fate::Pass, String::new()),
        Ok(Err(failure)) => failure,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_string()));
            (Fate::Panic, text.unwrap_or_default())
        }
    }
}

fn outcome(runtime: &Runtime, job: &Job<'_>, how: &Arguments) -> Result<(), (Fate, String)> {
    let Job { form, group, record } = job;
    let piece = &record.programs[*form];
    let program = group.blob[piece.off..piece.off + piece.len].to_vec();
    let mut module = pjrt_stablehlo::parse(program).map_err(|e| (Fate::Unreadable, e.to_string()))?;
    if how.decompose || how.without_complex {
        let core = CoreOps::default().without_bounded_sizes();
        let core = if how.without_complex { core.without_complex_numbers() } else { core };
        module = pjrt_stablehlo::passes::decompose(&module, &core)
            .map_err(|e| (Fate::Unimplemented, e.to_string()))?;
    }
    let options = CompileOptions {
        num_replicas: record.num_replicas,
        num_partitions: record.num_partitions,
        ..CompileOptions::default()
    };
    if how.split {
        return split_outcome(runtime, job, &module);
    }
    let compiled = compile(&module, &options).map_err(|e| {
        let missing = e.kind == CompileErrorKind::Unimplemented;
        (if missing { Fate::Unimplemented } else { Fate::Error }, e.to_string())
    })?;
    let devices = record.devices();
    let error = |e: &dyn std::fmt::Display| (Fate::Error, e.to_string());
    let mut inputs = Vec::new();
    for device in &devices {
        let arrays = device.inputs.iter().map(|a| input(runtime, group, a, how.without_complex));
        inputs.push(arrays.collect::<Result<Vec<_>>>().map_err(|e| error(&e))?);
    }
    let mut results = run(&compiled.plan, runtime, inputs, &RunOptions::default()).map_err(|e| error(&e))?;
    for (d, (device, results)) in devices.iter().zip(&mut results).enumerate() {
        if how.without_complex {
            for (result, output) in results.iter_mut().zip(&device.outputs) {
                *result = of_parts(runtime, result, output.as_ref()).map_err(|e| error(&e))?;
            }
        }
        check(group, device, results).map_err(|what| (Fate::Wrong, format!("device {d} {what}")))?;
    }
    Ok(())
}

/// The number of programs that have collective operations after they are split.
static COMMUNICATING: AtomicUsize = AtomicUsize::new(0);

/// Runs one program split into parts. The name of the program determines how its arguments are split.
fn split_outcome(runtime: &Runtime, job: &Job<'_>, module: &Module) -> Result<(), (Fate, String)> {
    let Job { group, record, .. } = job;
    let error = |e: anyhow::Error| (Fate::Error, format!("{e:#}"));
    let split = Split::new(module, record.name.len()).map_err(error)?;
    COMMUNICATING.fetch_add(usize::from(split.communicates()), Ordering::Relaxed);
    for device in record.devices() {
        let inputs = device.inputs.iter().map(|a| input(runtime, group, a, false));
        let inputs = inputs.collect::<Result<Vec<_>>>().map_err(error)?;
        let results = split.run(runtime, &inputs).map_err(error)?;
        check(group, &device, &results).map_err(|what| (Fate::Wrong, what))?;
    }
    Ok(())
}

/// Compares the results of a device with the expected ones.
fn check(group: &Group, device: &Device, results: &[Array]) -> Result<(), String> {
    if device.outputs.len() != results.len() {
        return Err(format!("{} results instead of {}", results.len(), device.outputs.len()));
    }
    for (k, (result, output)) in results.iter().zip(&device.outputs).enumerate() {
        let Some(output) = output else { continue };
        if result.dtype().mlir_name() != output.dtype || result.dims() != output.shape {
            return Err(format!("result {k} is {result:?}, should be {}{:?}", output.dtype, output.shape));
        }
        let expected = &group.blob[output.piece.off..output.piece.off + output.piece.len];
        let expected = canonical(result.dtype(), expected);
        let actual = canonical(result.dtype(), result.bytes().expect("results are dense"));
        if let Some(what) = compare::mismatch(result.dtype(), &actual, &expected, &output.tol) {
            return Err(format!("result {k} {}: {what}", output.dtype));
        }
    }
    Ok(())
}

/// Returns the array of an argument; that of the parts of complex numbers, if `as_parts`.
fn input(runtime: &Runtime, group: &Group, array: &ArrayRecord, as_parts: bool) -> Result<Input> {
    let mut dtype =
        DType::from_mlir_name(&array.dtype).with_context(|| format!("element type {}", array.dtype))?;
    let bytes = &group.blob[array.piece.off..array.piece.off + array.piece.len];
    let bytes = canonical(dtype, bytes);
    let mut dims = array.shape.clone();
    if dtype.is_complex() && as_parts {
        dtype = if dtype == DType::C128 { DType::F64 } else { DType::F32 };
        dims.push(2);
    }
    Ok(Input { array: Array::from_bytes(&runtime.allocator, dtype, &dims, &bytes)?, donatable: false })
}

/// Returns the complex numbers of an array of parts, if the expected array has such.
fn of_parts(runtime: &Runtime, array: &Array, output: Option<&ArrayRecord>) -> Result<Array> {
    let expected = output.and_then(|output| Some((DType::from_mlir_name(&output.dtype)?, output)));
    let Some((dtype, output)) = expected.filter(|(dtype, _)| dtype.is_complex()) else {
        return Ok(array.clone());
    };
    let bytes = array.bytes().context("results are dense")?;
    Ok(Array::from_bytes(&runtime.allocator, dtype, &output.shape, bytes)?)
}

/// Sign-extends integers of less than a byte to a byte. The files of the corpus are not consistent in this.
fn canonical(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    let unused = 8u32.saturating_sub(dtype.bits() as u32);
    if unused == 0 || dtype.is_float() || !dtype.compute().is_signed_integer() {
        return bytes.to_vec();
    }
    bytes.iter().map(|b| (((b << unused) as i8) >> unused) as u8).collect()
}
