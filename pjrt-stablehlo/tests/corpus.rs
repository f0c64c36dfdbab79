//! Reads the programs of a corpus folder: every bytecode form of every record has to read, verify, and have the
//! operations that its record lists.
//!
//! The folder comes from `PJRT_CORPUS`; without it the tests are skipped with a note, except in CI. Programs that hosts
//! really sent are read from `PJRT_CAPTURED`, or from the folder `captured` beside the corpus, where there is one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pjrt_stablehlo::ir::{DYNAMIC, Op, Type};
use pjrt_stablehlo::versions::{CURRENT_VERSION, MINIMUM_VERSION};
use pjrt_stablehlo::{Error, Inferred, Module, infer_result_types};
use serde_json::Value;

/// The folder of a variable; `None` with a note when it is not set.
fn folder(variable: &str) -> Option<PathBuf> {
    match std::env::var_os(variable) {
        Some(folder) => Some(folder.into()),
        None if std::env::var_os("CI").is_some() => panic!("{variable} has to be set in CI"),
        None => {
            eprintln!("skipped: {variable} is not set");
            None
        }
    }
}

fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

struct Program {
    record: String,
    form: String,
    bytes: Vec<u8>,
    ops: BTreeMap<String, usize>,
    has_expansions: bool,
}

/// The bytecode forms of the corpus.
fn programs(folder: &Path) -> Vec<Program> {
    let mut programs = Vec::new();
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    for path in paths {
        let blob = fs::read(path.with_extension("bin")).unwrap();
        for record in records(&path) {
            let name = format!("{}/{}", record["group"].as_str().unwrap(), record["name"].as_str().unwrap());
            let ops = record["ops"].as_object();
            let ops =
                ops.map(|ops| ops.iter().map(|(op, count)| (op.clone(), count.as_u64().unwrap() as usize)));
            let complex = record["dtypes"].as_array().is_some_and(|dtypes| {
                dtypes.iter().any(|dtype| dtype.as_str().is_some_and(|dtype| dtype.starts_with("complex")))
            });
            let chlo =
                ops.clone().into_iter().flatten().any(|(op, _): (String, usize)| op.starts_with("chlo."));
            let has_expansions = complex || chlo;
            for (form, place) in record["programs"].as_object().unwrap() {
                if form.starts_with("vhlo") {
                    let start = place["off"].as_u64().unwrap() as usize;
                    let bytes = blob[start..start + place["len"].as_u64().unwrap() as usize].to_vec();
                    let ops = ops.clone().into_iter().flatten().collect();
                    programs.push(Program {
                        record: name.clone(),
                        form: form.clone(),
                        bytes,
                        ops,
                        has_expansions,
                    });
                }
            }
        }
    }
    programs
}

/// How the operations that were read differ from those that the record lists. The list is of the text form; a client
/// removes duplicate and unused operations before it sends a program, and expands CHLO operations and complex functions,
/// so an operation may occur less often, and more often only where something was expanded.
fn count_difference(program: &Program, module: &Module) -> Option<String> {
    let is_main_form = matches!(&*program.form, "vhlo" | "vhlo_latest");
    if !is_main_form || program.has_expansions || program.ops.is_empty() {
        return None;
    }
    let listed = |op: &str| program.ops.get(op).copied().unwrap_or(0);
    let differences: Vec<_> = module
        .op_counts()
        .into_iter()
        // Pretty text does not show every `stablehlo.return`.
        .filter(|(op, count)| {
            // Pretty text does not show every `stablehlo.return`, and the list knows no names with hyphens.
            let is_listed = op.starts_with("stablehlo.") && *op != "stablehlo.return" && !op.contains('-');
            is_listed && *count > listed(op)
        })
        .map(|(op, count)| format!("{op}: listed {}, read {count}", listed(op)))
        .collect();
    (!differences.is_empty()).then(|| differences.join("; "))
}

fn report(what: &str, total: usize, failures: &[String]) {
    println!("{what}: {} of {total} programs read", total - failures.len());
    let shown: Vec<_> = failures.iter().take(40).cloned().collect();
    assert!(
        failures.is_empty(),
        "{} of {total} programs of {what} failed:\n{}",
        failures.len(),
        shown.join("\n")
    );
}

#[test]
fn every_program_of_the_corpus_reads() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let programs = programs(&folder);
    assert!(programs.len() > 1000, "expected a corpus, found {} programs", programs.len());
    let mut failures = Vec::new();
    let mut versions = BTreeSet::new();
    for program in &programs {
        match pjrt_stablehlo::parse(program.bytes.clone()) {
            Ok(module) => {
                versions.extend(module.source_version);
                if let Some(difference) = count_difference(program, &module) {
                    failures.push(format!("{} {}: {difference}", program.record, program.form));
                }
            }
            Err(error) => failures.push(format!("{} {}: {error}", program.record, program.form)),
        }
    }
    report("the corpus", programs.len(), &failures);
    // What is advertised is what has been read.
    assert_eq!(versions.first(), Some(&MINIMUM_VERSION));
    assert_eq!(versions.last(), Some(&CURRENT_VERSION));
}

#[test]
fn every_captured_program_of_jax_reads() {
    let captured = std::env::var_os("PJRT_CAPTURED").map(PathBuf::from);
    let Some(folder) = captured.or_else(|| Some(folder("PJRT_CORPUS")?.parent()?.join("captured"))) else {
        return;
    };
    if !folder.exists() {
        eprintln!("skipped: there is no folder {}", folder.display());
        return;
    }
    let mut failures = Vec::new();
    let mut total = 0;
    for record in records(&folder.join("manifest.jsonl")) {
        if record["format"].as_str() != Some("mlir-bytecode") {
            continue;
        }
        total += 1;
        let bytes = fs::read(folder.join(record["program"].as_str().unwrap())).unwrap();
        if let Err(error) = pjrt_stablehlo::parse(bytes) {
            failures.push(format!("{}: {error}", record["name"]));
        }
    }
    report("the captured programs", total, &failures);
}

/// Whether a declared type can be what was inferred, and whether it is exactly that.
fn agreement(inferred: &Inferred, declared: &Type) -> (bool, bool) {
    let sizes_agree = |inferred: &[i64], declared: &[i64]| {
        inferred.len() == declared.len()
            && inferred.iter().zip(declared).all(|(&a, &b)| a == b || a == DYNAMIC || b == DYNAMIC)
    };
    match (inferred, declared) {
        (Inferred::Type(Type::Tensor(inferred)), Type::Tensor(declared)) => (
            sizes_agree(inferred.dims(), declared.dims())
                && inferred.storage_type() == declared.storage_type(),
            inferred == declared,
        ),
        (Inferred::Type(inferred), declared) => (inferred == declared, inferred == declared),
        (Inferred::Shape { dims, .. }, Type::Tensor(declared)) => {
            (sizes_agree(dims, declared.dims()), **dims == *declared.dims())
        }
        (Inferred::Elements { element_type, .. }, Type::Tensor(declared)) => {
            (*element_type == declared.element_type(), *element_type == declared.element_type())
        }
        _ => (false, false),
    }
}

/// Operations whose result types the program chooses.
const CHOSEN: &[&str] = &[
    "sdy.manual_computation",
    "stablehlo.bitcast_convert",
    "stablehlo.custom_call",
    "stablehlo.einsum",
    "stablehlo.iota",
    "stablehlo.unary_einsum",
];

#[test]
fn inferred_types_agree_with_declared_ones() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    // For each operation its results, those of which something is inferred, and those inferred exactly.
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut failures = Vec::new();
    for program in programs(&folder) {
        let Ok(module) = pjrt_stablehlo::parse(program.bytes.clone()) else { continue };
        for function in module.functions() {
            for (id, op) in function.body.ops().filter(|(_, op)| !matches!(op.kind, Op::Other(_))) {
                let inferred = infer_result_types(&module, &function.body, id).unwrap();
                assert_eq!(inferred.len(), op.results.len(), "{} in {}", op.kind, program.record);
                for (inferred, value) in inferred.iter().zip(op.results) {
                    let [total, known, exact] = counts.entry(op.info().name).or_default();
                    *total += 1;
                    if *inferred == Inferred::Declared {
                        continue;
                    }
                    *known += 1;
                    let declared = function.body.ty(value);
                    let (agrees, is_exact) = agreement(inferred, declared);
                    *exact += usize::from(is_exact);
                    if !agrees {
                        failures.push(format!("{} in {}: {inferred:?}, {declared}", op.kind, program.record));
                    }
                }
            }
        }
    }
    for (op, [total, known, exact]) in &counts {
        println!("{op}: {total} results, {known} inferred, {exact} exactly");
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    let unknown: Vec<_> = counts.iter().filter(|(_, [_, known, _])| *known == 0).map(|(op, _)| *op).collect();
    assert!(unknown.iter().all(|op| CHOSEN.contains(op)), "nothing is inferred of {unknown:?}");
}

/// A small generator of pseudo-random numbers, so that failures repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

#[test]
fn damaged_programs_give_errors_or_modules() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let programs = programs(&folder);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut outcomes = (0, 0);
    for round in 0..6000 {
        let mut bytes = programs[random.below(programs.len())].bytes.clone();
        if bytes.len() > 100_000 {
            continue;
        }
        match round % 4 {
            0 => {
                let len = random.below(bytes.len());
                bytes.truncate(len);
            }
            1 => {
                let donor = &programs[random.below(programs.len())].bytes;
                let start = random.below(bytes.len());
                let from = random.below(donor.len());
                let len = random.below(64).min(donor.len() - from).min(bytes.len() - start);
                bytes[start..start + len].copy_from_slice(&donor[from..from + len]);
            }
            _ => {
                for _ in 0..=random.below(8) {
                    let place = random.below(bytes.len());
                    bytes[place] ^= 1 << random.below(8);
                }
            }
        }
        let outcome: Result<Module, Error> = pjrt_stablehlo::parse(bytes);
        match outcome {
            Ok(module) => {
                outcomes.0 += 1;
                // What was accepted can be printed.
                let _ = module.to_string();
            }
            Err(error) => {
                outcomes.1 += 1;
                let _ = error.to_string();
            }
        }
    }
    println!("{} damaged programs read, {} gave an error", outcomes.0, outcomes.1);
}
