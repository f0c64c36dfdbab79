//! Reads the text forms of a corpus folder: every one has to read and verify, and to give the same module as the other
//! forms of its record.
//!
//! The folder comes from `PJRT_CORPUS`, and one of programs that hosts sent from `PJRT_CAPTURED`. Without them the
//! tests are skipped with a note, except in CI.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pjrt_stablehlo::parse;
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

/// A record of the corpus: its forms by name.
struct Record {
    name: String,
    category: String,
    forms: BTreeMap<String, Vec<u8>>,
}

fn corpus(folder: &Path) -> Vec<Record> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let blob = fs::read(path.with_extension("bin")).unwrap();
        for record in records(&path) {
            let name = format!("{}/{}", record["group"].as_str().unwrap(), record["name"].as_str().unwrap());
            let forms = record["programs"].as_object().unwrap().iter().map(|(form, place)| {
                let start = place["off"].as_u64().unwrap() as usize;
                (form.clone(), blob[start..start + place["len"].as_u64().unwrap() as usize].to_vec())
            });
            let category = record["category"].as_str().unwrap().to_owned();
            found.push(Record { name, category, forms: forms.collect() });
        }
    }
    found
}

fn is_text(form: &str) -> bool {
    form.starts_with("mlir") || matches!(form, "generic" | "pretty")
}

fn report(what: &str, total: usize, failures: &[String]) {
    println!("{what}: {} of {total}", total - failures.len());
    let shown: Vec<_> = failures.iter().take(60).cloned().collect();
    assert!(failures.is_empty(), "{} of {total} {what} failed:\n{}", failures.len(), shown.join("\n"));
}

#[test]
fn every_text_of_the_corpus_reads() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let mut failures = Vec::new();
    let mut total = 0;
    for record in corpus(&folder) {
        for (form, text) in record.forms.iter().filter(|(form, _)| is_text(form)) {
            total += 1;
            if let Err(error) = parse(text.clone()) {
                failures.push(format!("{} ({}) {form}: {error}", record.name, record.category));
            }
        }
    }
    report("texts of the corpus", total, &failures);
}

#[test]
fn every_captured_text_reads() {
    let Some(folder) = folder("PJRT_CAPTURED") else { return };
    let mut failures = Vec::new();
    let mut total = 0;
    for record in records(&folder.join("manifest.jsonl")) {
        if record["format"].as_str() != Some("mlir-text") {
            continue;
        }
        total += 1;
        let bytes = fs::read(folder.join(record["program"].as_str().unwrap())).unwrap();
        if let Err(error) = parse(bytes) {
            failures.push(format!("{}: {error}", record["name"]));
        }
    }
    report("captured texts", total, &failures);
}
