//! Bytecode: every form of every record must be read and verified, and have the operations that its record lists.

use std::collections::{BTreeMap, BTreeSet};

use pjrt_stablehlo::ir::{DYNAMIC, Op, Type};
use pjrt_stablehlo::versions::{CURRENT_VERSION, MINIMUM_VERSION};
use pjrt_stablehlo::{Inferred, Module, infer_result_types, parse};

use crate::damage::read_damaged;
use crate::files::{Record, captured, corpus, folder, report};

/// The bytecode forms of the corpus.
fn programs(records: &[Record]) -> impl Iterator<Item = (&Record, &str, &[u8])> {
    records.iter().flat_map(|record| {
        let forms = record.forms.iter().filter(|(form, _)| form.starts_with("vhlo"));
        forms.map(move |(form, bytes)| (record, &**form, &**bytes))
    })
}

/// Returns the number of operations of each kind that the record lists.
fn listed_ops(record: &Record) -> BTreeMap<&str, u64> {
    let ops = record.manifest["ops"].as_object().into_iter().flatten();
    ops.map(|(op, count)| (&**op, count.as_u64().unwrap())).collect()
}

/// Returns `true` if a client expands operations of the record: those of CHLO, and functions of complex numbers.
fn has_expansions(record: &Record) -> bool {
    let types = record.manifest["dtypes"].as_array().into_iter().flatten();
    let has_complex = types.flat_map(|ty| ty.as_str()).any(|ty| ty.starts_with("complex"));
    has_complex || listed_ops(record).keys().any(|op| op.starts_with("chlo."))
}

/// Returns the difference between the operations that were read and the record's list. The list is of the text form; a client
/// removes duplicate and unused operations before it sends a program, and expands CHLO operations and complex functions,
/// so an operation may occur less often, and more often only where something was expanded.
fn count_difference(record: &Record, form: &str, module: &Module) -> Option<String> {
    let ops = listed_ops(record);
    if !matches!(form, "vhlo" | "vhlo_latest") || has_expansions(record) || ops.is_empty() {
        return None;
    }
    let listed = |op: &str| ops.get(op).copied().unwrap_or(0);
    let differences: Vec<_> = module
        .op_counts()
        .into_iter()
        .filter(|(op, count)| {
            // Pretty text does not show every `stablehlo.return`, and the list knows no names with hyphens.
            let is_listed = op.starts_with("stablehlo.") && *op != "stablehlo.return" && !op.contains('-');
            is_listed && *count as u64 > listed(op)
        })
        .map(|(op, count)| format!("{op}: listed {}, read {count}", listed(op)))
        .collect();
    (!differences.is_empty()).then(|| differences.join("; "))
}

#[test]
fn every_program_of_the_corpus_reads() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let records = corpus(&folder);
    let (mut total, mut failures) = (0, Vec::new());
    let mut versions = BTreeSet::new();
    for (record, form, bytes) in programs(&records) {
        total += 1;
        match parse(bytes) {
            Ok(module) => {
                versions.extend(module.source_version);
                if let Some(difference) = count_difference(record, form, &module) {
                    failures.push(format!("{} {form}: {difference}", record.name));
                }
            }
            Err(error) => failures.push(format!("{} {form}: {error}", record.name)),
        }
    }
    report("bytecode forms of the corpus", total, &failures);
    // What is advertised is what has been read.
    assert_eq!(versions.first(), Some(&MINIMUM_VERSION));
    assert_eq!(versions.last(), Some(&CURRENT_VERSION));
}

#[test]
fn every_captured_program_reads() {
    let Some(folder) = folder("PJRT_CAPTURED") else { return };
    let programs = captured(&folder, "mlir-bytecode");
    let failure =
        |(name, bytes): &(String, Vec<u8>)| Some(format!("{name}: {}", parse(bytes.clone()).err()?));
    let failures: Vec<_> = programs.iter().filter_map(failure).collect();
    report("captured programs", programs.len(), &failures);
}

/// Returns whether a declared type is compatible with the inferred one, and whether it is equal to it.
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
    let records = corpus(&folder);
    for (record, _, bytes) in programs(&records) {
        let Ok(module) = parse(bytes) else { continue };
        for function in module.functions() {
            for (id, op) in function.body.all_ops().filter(|(_, op)| !matches!(op.kind, Op::Other(_))) {
                let inferred = infer_result_types(&module, &function.body, id).unwrap();
                assert_eq!(inferred.len(), op.results.len(), "{} in {}", op.kind, record.name);
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
                        failures.push(format!("{} in {}: {inferred:?}, {declared}", op.kind, record.name));
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

#[test]
fn damaged_programs_give_errors_or_modules() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let records = corpus(&folder);
    let programs: Vec<_> = programs(&records).map(|(_, _, bytes)| bytes.to_vec()).collect();
    read_damaged(&programs, parse);
}
