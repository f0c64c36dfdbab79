//! HLO: every program must be read and verified.

use std::fs;
use std::path::Path;

use pjrt_stablehlo::{parse, parse_hlo};

use crate::damage::read_damaged;
use crate::files::{captured, corpus, folder, report};

/// The HLO programs of the corpus by name.
fn programs(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let records = corpus(folder).into_iter();
    records.filter_map(|mut record| Some((record.name, record.forms.remove("hlo")?))).collect()
}

fn all_read(what: &str, programs: &[(String, Vec<u8>)]) {
    let mut failures = Vec::new();
    for (name, bytes) in programs {
        match (parse(bytes.clone()), parse_hlo(bytes.clone())) {
            (Ok(found), Ok(told)) => assert_eq!(found.to_string(), told.to_string(), "{name}"),
            (Err(error), _) | (_, Err(error)) => failures.push(format!("{name}: {error}")),
        }
    }
    report(what, programs.len(), &failures);
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
    all_read("HLO programs of the corpus", &programs(&folder));
}

#[test]
fn every_captured_hlo_program_reads() {
    let Some(folder) = folder("PJRT_CAPTURED") else { return };
    all_read("captured HLO programs", &captured(&folder, "hlo"));
}

#[test]
fn damaged_programs_give_errors_or_modules() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let programs: Vec<_> = programs(&folder).into_iter().map(|(_, bytes)| bytes).collect();
    read_damaged(&programs, parse_hlo);
}
