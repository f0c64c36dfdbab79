//! Reads the HLO programs of a corpus folder, and those that hosts sent; every one has to read and verify.
//!
//! The folders come from `PJRT_CORPUS` and `PJRT_CAPTURED`; without them the tests are skipped with a note, except in CI.

use std::fs;
use std::path::{Path, PathBuf};

use pjrt_stablehlo::{parse, parse_hlo};
use serde_json::Value;

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

/// The HLO programs of the corpus by name.
fn corpus(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut programs = Vec::new();
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    for path in paths {
        let blob = fs::read(path.with_extension("bin")).unwrap();
        for record in records(&path) {
            let place = &record["programs"]["hlo"];
            let Some(start) = place["off"].as_u64() else { continue };
            let bytes = &blob[start as usize..][..place["len"].as_u64().unwrap() as usize];
            let name = format!("{}/{}", record["group"].as_str().unwrap(), record["name"].as_str().unwrap());
            programs.push((name, bytes.to_vec()));
        }
    }
    programs
}

fn captured(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let manifest = records(&folder.join("manifest.jsonl"));
    let programs = manifest.iter().filter(|record| record["format"] == "hlo");
    programs
        .map(|record| {
            let file = record["program"].as_str().unwrap();
            (file.to_owned(), fs::read(folder.join(file)).unwrap())
        })
        .collect()
}

fn all_read(what: &str, programs: &[(String, Vec<u8>)]) {
    assert!(!programs.is_empty(), "{what} has no HLO programs");
    let mut failures = Vec::new();
    for (name, bytes) in programs {
        match (parse(bytes.clone()), parse_hlo(bytes.clone())) {
            (Ok(found), Ok(told)) => assert_eq!(found.to_string(), told.to_string(), "{name}"),
            (Err(error), _) | (_, Err(error)) => failures.push(format!("{name}: {error}")),
        }
    }
    println!("{what}: {} of {} programs read", programs.len() - failures.len(), programs.len());
    let shown = &failures[..failures.len().min(60)];
    assert!(failures.is_empty(), "{} programs of {what} failed:\n{}", failures.len(), shown.join("\n"));
}

#[test]
fn samples_have_the_signature_of_the_function_that_they_were_made_of() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"));
    for name in ["branches", "collatz", "constants", "convolution", "indexing", "mlp_gradient"] {
        let read = |file: String| parse(fs::read(folder.join(file)).unwrap()).unwrap();
        let (hlo, artifact) = (read(format!("{name}.hlo")), read(format!("{name}_1.17.0.mlirbc")));
        assert_eq!(hlo.main().unwrap().ty, artifact.main().unwrap().ty, "{name}");
        for printed in [hlo.to_string(), format!("{hlo:#}")] {
            let again = parse(printed.as_bytes().to_vec()).unwrap();
            let text = if printed.contains("loc(") { format!("{again:#}") } else { again.to_string() };
            assert_eq!(text, printed, "{name}");
        }
    }
}

#[test]
fn every_hlo_program_of_the_corpus_reads() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    all_read("the corpus", &corpus(&folder));
}

#[test]
fn every_captured_hlo_program_reads() {
    let Some(folder) = folder("PJRT_CAPTURED") else { return };
    all_read("the captured programs", &captured(&folder));
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
    let programs = corpus(&folder);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut outcomes = (0, 0);
    for round in 0..6000 {
        let mut bytes = programs[random.below(programs.len())].1.clone();
        if bytes.len() > 100_000 {
            continue;
        }
        match round % 4 {
            0 => bytes.truncate(random.below(bytes.len())),
            1 => {
                let donor = &programs[random.below(programs.len())].1;
                let (start, from) = (random.below(bytes.len()), random.below(donor.len()));
                let len = random.below(64).min(donor.len() - from).min(bytes.len() - start);
                bytes[start..start + len].copy_from_slice(&donor[from..from + len]);
            }
            _ => {
                for _ in 0..=random.below(4) {
                    let place = random.below(bytes.len());
                    bytes[place] ^= 1 << random.below(8);
                }
            }
        }
        match parse_hlo(bytes) {
            // What was accepted can be printed.
            Ok(module) => outcomes.0 += usize::from(!module.to_string().is_empty()),
            Err(error) => outcomes.1 += usize::from(!error.to_string().is_empty()),
        }
    }
    println!("{} damaged programs read, {} gave an error", outcomes.0, outcomes.1);
    assert!(outcomes.0 > 100 && outcomes.1 > 100);
}
