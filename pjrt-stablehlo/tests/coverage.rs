//! The coverage of this crate, derived from the op table: the crate's `coverage.json` and the page `docs/ops.md` of the book.
//!
//! The test compares both with what is checked in. `UPDATE_COVERAGE=1 cargo test -p pjrt-stablehlo --test coverage` writes
//! them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use pjrt_stablehlo::ir::{GroupSpec, OpCode, OpInfo, Trait, Variadicity};
use pjrt_stablehlo::versions::{CURRENT_VERSION, MINIMUM_VERSION};
use serde_json::{Value, json};

/// Operations of the table, sorted by dialect and name.
fn ops() -> Vec<&'static OpInfo> {
    let mut ops: Vec<_> = OpCode::ALL.iter().map(|code| code.info()).collect();
    ops.sort_by_key(|info| info.name);
    ops
}

fn dialect(info: &OpInfo) -> &'static str {
    info.name.split_once('.').map_or("", |(dialect, _)| dialect)
}

/// Returns `lhs, rhs`, with dots after groups of any number.
fn groups(specs: &[GroupSpec]) -> Vec<String> {
    let name = |spec: &GroupSpec| match spec.variadicity {
        Variadicity::One => spec.name.to_owned(),
        Variadicity::Variadic => format!("{}...", spec.name),
    };
    specs.iter().map(name).collect()
}

/// Returns the number of constraints that the specification lists for an operation; `None` if it does not contain the
/// operation. The test of constraints shows that all of them are verified.
fn constraints(info: &OpInfo) -> Option<u32> {
    let sections = include_str!("data/constraints.txt").lines().filter_map(|line| line.strip_prefix("# "));
    let mut counts = sections.filter_map(|section| section.rsplit_once(' '));
    let (_, count) = counts.find(|(ops, _)| ops.split(", ").any(|op| op == info.mnemonic()))?;
    (dialect(info) == "stablehlo").then(|| count.parse().unwrap())
}

fn traits(info: &OpInfo) -> Vec<String> {
    info.traits.iter().map(|property| format!("{property:?}")).collect()
}

fn coverage() -> String {
    let op = |info: &&OpInfo| {
        let attributes: Vec<Value> = info
            .attributes
            .iter()
            .map(|spec| json!({"name": spec.name, "expected": spec.expected, "required": spec.required}))
            .collect();
        json!({
            "name": info.name,
            "operands": groups(info.operands),
            "attributes": attributes,
            "regions": groups(info.regions),
            "results": groups(info.results),
            "traits": traits(info),
            "verified_constraints": constraints(info),
            "vhlo": info.vhlo.map(|form| json!({
                "since": format!("{}.{}", form.since.0, form.since.1),
                "forms": form.newest(),
            })),
        })
    };
    let coverage = json!({
        "vhlo_versions": {"oldest": MINIMUM_VERSION.to_string(), "newest": CURRENT_VERSION.to_string()},
        "ops": ops().iter().map(op).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&coverage).unwrap() + "\n"
}

/// Words as code, separated by commas.
fn code(words: &[String]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn page() -> String {
    let ops = ops();
    let mut page = format!(
        "# Operations\n\n\
         <!-- Written by pjrt-stablehlo/tests/coverage.rs from the op table. -->\n\n\
         This page lists the {} operations that `pjrt-stablehlo` represents as typed structs. The crate reads all of them from MLIR\n\
         bytecode and MLIR text, prints them as text, and verifies the operands, attributes, regions and results in this table.\n\
         It reads VHLO in versions {MINIMUM_VERSION} to {CURRENT_VERSION}. `pjrt-stablehlo/coverage.json` contains the same list\n\
         for programs.\n\n\
         *Constraints* is the number of constraints that the StableHLO specification defines for the operation. The crate\n\
         verifies all constraints that can be decided before run time.\n\n\
         `...` means any number of values. Attributes in parentheses are optional. The readers fill in the strides,\n\
         dilations, paddings and sizes of windows that a program omits. *VHLO* is the first version with the operation. If\n\
         the operation has several forms in VHLO, the crate reads all of them. The name of an operation links to its section\n\
         of the specification.\n",
        ops.len()
    );
    let mut current = "";
    for info in ops {
        if dialect(info) != current {
            current = dialect(info);
            write!(
                page,
                "\n## {current}\n\n\
                 | operation | operands | attributes | regions | results | constraints | VHLO |\n|---|---|---|---|---|---|---|\n"
            )
            .unwrap();
        }
        let attributes: Vec<String> = info
            .attributes
            .iter()
            .map(|spec| {
                let text = format!("`{}`: {}", spec.name, spec.expected);
                if spec.required { text } else { format!("({text})") }
            })
            .collect();
        let vhlo = info.vhlo.map_or_else(String::new, |form| {
            let (major, minor) = form.since;
            match form.newest() {
                1 => format!("{major}.{minor}"),
                forms => format!("{major}.{minor}, {forms} forms"),
            }
        });
        let name = info.mnemonic();
        let title = match constraints(info) {
            Some(_) => format!("[`{name}`](https://openxla.org/stablehlo/spec#{name})"),
            None => format!("`{name}`"),
        };
        writeln!(
            page,
            "| {title} | {} | {} | {} | {} | {} | {vhlo} |",
            code(&groups(info.operands)),
            attributes.join("; "),
            code(&groups(info.regions)),
            code(&groups(info.results)),
            constraints(info).map_or_else(String::new, |count| count.to_string()),
        )
        .unwrap();
    }
    page
}

/// Fails unless a file has this content, or writes the file if the environment requests it.
fn compare(path: &Path, expected: &str) {
    if std::env::var_os("UPDATE_COVERAGE").is_some() {
        fs::write(path, expected).unwrap();
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == expected,
        "{} does not agree with the op table: UPDATE_COVERAGE=1 cargo test -p pjrt-stablehlo --test coverage",
        path.display()
    );
}

#[test]
fn the_coverage_file_is_the_op_table() {
    compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("coverage.json"), &coverage());
}

#[test]
fn the_page_of_operations_is_the_op_table() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    if !docs.exists() {
        eprintln!("skipped: the published crate comes without the book");
        return;
    }
    compare(&docs.join("ops.md"), &page());
}

#[test]
fn the_table_is_consistent() {
    for info in ops() {
        let names = |specs: &[GroupSpec]| specs.iter().map(|spec| spec.name).collect::<Vec<_>>();
        for mut names in [
            names(info.operands),
            names(info.results),
            names(info.regions),
            info.attributes.iter().map(|spec| spec.name).collect(),
        ] {
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{} has a name twice", info.name);
        }
        assert!(
            info.vhlo.is_none_or(|form| form.second_since.is_none_or(|second| second > form.since)),
            "{}",
            info.name
        );
        assert!(!info.has(Trait::SameType) || info.has(Trait::Elementwise), "{}", info.name);
    }
}

#[test]
fn every_operation_has_a_summary_of_its_own_and_not_that_of_an_attribute() {
    let table = include_str!("../src/ir/ops.rs");
    let lines: Vec<&str> = table.lines().collect();
    let attributes: Vec<&str> =
        lines.iter().filter_map(|line| line.strip_prefix("            /// ")).collect();
    let mut summaries = Vec::new();
    for pair in lines.windows(2) {
        if pair[1].starts_with("    inline ") || pair[1].starts_with("    boxed ") {
            let summary =
                pair[0].strip_prefix("    /// ").unwrap_or_else(|| panic!("no summary: {}", pair[1]));
            assert!(!attributes.contains(&summary), "'{summary}' describes an attribute, not {}", pair[1]);
            assert!(
                !summaries.contains(&summary),
                "'{summary}' describes another operation than {}",
                pair[1]
            );
            summaries.push(summary);
        }
    }
    assert_eq!(summaries.len(), OpCode::ALL.len());
}
