//! Text: every form must be read and verified, and must become the same module as the other forms of its record.

use pjrt_stablehlo::parse;

use crate::damage::Random;
use crate::files::{Record, captured, corpus, folder, report};

fn is_text(form: &str) -> bool {
    form.starts_with("mlir") || matches!(form, "generic" | "pretty")
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
                failures.push(format!("{} ({}) {form}: {error}", record.name, record.category()));
            }
        }
    }
    report("texts of the corpus", total, &failures);
}

#[test]
fn every_captured_text_reads() {
    let Some(folder) = folder("PJRT_CAPTURED") else { return };
    let programs = captured(&folder, "mlir-text");
    let failure = |(name, text): &(String, Vec<u8>)| Some(format!("{name}: {}", parse(text.clone()).err()?));
    let failures: Vec<_> = programs.iter().filter_map(failure).collect();
    report("captured texts", programs.len(), &failures);
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

/// The lines of a printed module in some order, without names of values and without differences that VHLO does not represent.
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

/// Parts of texts, which are inserted at other positions.
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
    let mut random = Random::new();
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
