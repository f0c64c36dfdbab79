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
            if form == "pretty" && is_different(&record) {
                continue;
            }
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

/// Records of which forms that should be the same differ in what this crate keeps as the text writes it (`chlo.ragged_dot`
/// with an empty list, defaults of `arith.muli`), or of which the pretty form is not what it was printed from (a loop whose
/// arguments have other types than its operands).
const DIFFERENT: &[&str] = &[
    "ops_chlo__010",
    "ops_chlo__011",
    "ops_stablehlo_quantized__025",
    "chlo_chlo_legalize_to_stablehlo__062",
    "chlo_chlo_legalize_to_stablehlo__063",
    "chlo_chlo_legalize_to_stablehlo__064",
    "transforms_shape_legalize_to_stablehlo__027",
    "transforms_stablehlo_legalize_quantized_op_to_qdq__023",
];

fn is_different(record: &Record) -> bool {
    DIFFERENT.iter().any(|name| record.name.ends_with(name))
}

/// The program as text without locations, or an error.
fn printed(program: &[u8]) -> String {
    parse(program).map_or_else(|error| error.to_string(), |module| module.to_string())
}

#[test]
fn all_text_forms_of_a_record_are_the_same_module() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let mut failures = Vec::new();
    let mut total = 0;
    for record in corpus(&folder) {
        let forms =
            ["generic", "mlir", "pretty"].iter().filter_map(|&form| Some((form, record.forms.get(form)?)));
        let mut forms = forms.map(|(form, text)| (form, printed(text)));
        let Some((_, expected)) = forms.next() else { continue };
        // What is printed is the same module as well.
        let forms = forms.chain([("printed again", printed(expected.as_bytes()))]);
        for (form, found) in forms.filter(|_| !is_different(&record)) {
            total += 1;
            if found != expected {
                failures.push(format!("{} {form}", record.name));
            }
        }
    }
    report("forms are the same", total, &failures);
}

/// A line without a list of dictionaries that are all empty.
fn without_empty(line: &str, name: &str) -> String {
    let list = line.split_once(&format!("{name} = [{{}}"));
    let rest = list.and_then(|(_, rest)| rest.trim_start_matches(", {}").strip_prefix("], "));
    match (list, rest) {
        (Some((start, _)), Some(rest)) => format!("{start}{rest}"),
        _ => line.to_owned(),
    }
}

/// The lines of a printed module in some order, without names of values and what VHLO does not tell apart.
fn lines(printed: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in printed.lines() {
        let mut parts = line.split('%');
        let mut line = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            line.push_str(part.trim_start_matches(|c: char| c.is_alphanumeric() || "_:#".contains(c)));
        }
        let line = match line.trim_start().strip_prefix("^bb") {
            Some(label) => label.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned(),
            None => line.trim_start().to_owned(),
        };
        let line = line
            // No channel and channel 0 are the same.
            .replace("channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>", "")
            .replace(", }", "}")
            .replace("{, ", "{")
            .replace(" <{}>", "");
        // That no argument or result has attributes may be said or not.
        lines.push(without_empty(&without_empty(&line, "arg_attrs"), "res_attrs"));
    }
    lines.sort_unstable();
    lines
}

/// A client moves constants, and removes unused operations and duplicates, before it sends a program, and expands CHLO
/// operations and functions of complex numbers. Where it left all operations as they are, text and bytecode give the same
/// operations, and nearly always the same module.
#[test]
fn bytecode_and_text_are_the_same_module() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let mut failures = Vec::new();
    let (mut total, mut same, mut rewritten) = (0, 0, 0);
    for record in corpus(&folder) {
        let Some(text) = record.forms.get("generic").or_else(|| record.forms.get("mlir")) else { continue };
        let Ok(from_text) = parse(text.as_slice()) else { continue };
        for form in ["vhlo", "vhlo_latest"] {
            let Some(bytecode) = record.forms.get(form) else { continue };
            let from_bytecode = parse(bytecode.as_slice()).unwrap();
            let (expected, found) = (from_bytecode.to_string(), from_text.to_string());
            if from_bytecode.op_counts() != from_text.op_counts() {
                rewritten += 1;
                continue;
            }
            total += 1;
            if expected == found {
                same += 1;
            } else if lines(&expected) != lines(&found) {
                failures.push(format!("{} {form}", record.name));
            }
        }
    }
    println!("{same} of {total} are the same; {rewritten} more have other operations");
    assert!(rewritten * 7 < total, "{rewritten} programs have other operations than their text");
    report("programs have the same operations in bytecode and text", total, &failures);
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

/// Pieces that texts are made of, to be put in other places.
const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ":",
    ",",
    "=",
    "->",
    "%0",
    "%arg0",
    "#loc",
    "@main",
    "\"",
    "-1",
    "99999999999999999999",
    "0x",
    "dense<",
    "dense<[[1]]>",
    "tensor<",
    "tensor<4xf32>",
    "tensor<?xf32>",
    "loc(",
    "^bb0",
    "({",
    "stablehlo.add",
    "\"stablehlo.while\"",
    "!quant.uniform<i8:f32:0, {1.0}>",
    "{-#",
    "1.0e400",
    "é",
    "tensor<9223372036854775807x9223372036854775807xf32>",
    "array<i64: 1>",
    "#stablehlo.bounds<4>",
    "\n#a = #a\n",
];

#[test]
fn damaged_texts_give_errors_or_modules() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let records = corpus(&folder);
    let texts: Vec<&Vec<u8>> = records
        .iter()
        .flat_map(|record| record.forms.iter())
        .filter(|(form, text)| is_text(form) && text.len() < 20_000)
        .map(|(_, text)| text)
        .collect();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut outcomes = (0, 0);
    for round in 0..12_000 {
        let mut bytes = texts[random.below(texts.len())].clone();
        for _ in 0..=random.below(3) {
            let place = random.below(bytes.len());
            match round % 5 {
                0 => bytes.truncate(place),
                1 => {
                    let donor = texts[random.below(texts.len())];
                    let from = random.below(donor.len());
                    let len = random.below(80).min(donor.len() - from);
                    let to = (place + random.below(40)).min(bytes.len());
                    bytes.splice(place..to, donor[from..from + len].iter().copied());
                }
                2 => {
                    let end = (place + random.below(30)).min(bytes.len());
                    bytes.drain(place..end);
                }
                3 => {
                    let piece = PIECES[random.below(PIECES.len())];
                    bytes.splice(place..place, piece.bytes());
                }
                _ => {
                    if let Some(byte) = bytes.get_mut(place) {
                        *byte = b" !\"#%(),-.0:;<=>?@[]^x{}"[random.below(24)];
                    }
                }
            }
            if bytes.is_empty() {
                bytes.push(b' ');
            }
        }
        match parse(bytes) {
            Ok(module) => {
                outcomes.0 += 1;
                // What was accepted can be printed, and reads again.
                let text = module.to_string();
                let again = parse(text.as_str()).map(|module| module.to_string());
                assert_eq!(again.as_ref(), Ok(&text));
            }
            Err(error) => {
                outcomes.1 += 1;
                let _ = error.to_string();
            }
        }
    }
    println!("{} damaged texts read, {} gave an error", outcomes.0, outcomes.1);
}
