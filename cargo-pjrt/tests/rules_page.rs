//! Generates the page of the book about the rules of the conformance kit, and compares it with the committed
//! page.
//!
//! `UPDATE_RULES=1 cargo test -p cargo-pjrt --test rules_page` writes the page.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use cargo_pjrt::conform::{Check, Source, checks};

/// Escapes text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*")
}

fn source(source: Source) -> String {
    match source {
        Source::Header { place, text } => format!("header, `{place}`: {}", cell(text)),
        Source::Host { place, text } => format!("{}: {}", cell(place), cell(text)),
        Source::Advice { text } => format!("*advice:* {}", cell(text)),
    }
}

/// Returns the names of the hosts that need the rule; in parentheses those that tolerate a plugin without the
/// feature.
fn hosts(check: &Check) -> String {
    let needed = check.needed_by.iter().map(|host| host.name().to_owned());
    let used_by = check.used_by();
    let used = used_by.iter().filter(|host| !check.needed_by.contains(host));
    needed.chain(used.map(|host| format!("({})", host.name()))).collect::<Vec<_>>().join(", ")
}

fn page() -> String {
    let checks = checks();
    let advice = checks.iter().filter(|check| check.source.is_advice()).count();
    let mut page = format!(
        "# The rules of the conformance kit\n\n\
         <!-- Written by cargo-pjrt/tests/rules_page.rs from the checks of the kit. -->\n\n\
         The kit has {} checks. The source of a rule is a sentence of the header `pjrt_c_api.h` or of an extension's header, \
         quoted or in other words, with the function, struct or field that it is about; or the file and the function of a host \
         that depends on the rule. {advice} rules are *advice*: neither the header nor a host demands them, and a plugin that does \
         not follow them fails no run, except one with the profile of a host that needs them. *XLA's client* is the library through \
         which JAX, PyTorch/XLA and TensorFlow call plugins. A host in parentheses uses the feature only if the plugin has it.\n",
        checks.len()
    );
    let mut area = "";
    for check in &checks {
        let (of_check, name) = check.name.split_once('/').unwrap_or(("", &check.name));
        if of_check != area {
            area = of_check;
            write!(page, "\n## {area}\n\n| check | rule | source | needed by |\n|---|---|---|---|\n")
                .unwrap();
        }
        writeln!(page, "| {name} | {} | {} | {} |", cell(&check.rule), source(check.source), hosts(check))
            .unwrap();
    }
    page
}

#[test]
fn the_page_lists_the_rules_of_the_kit() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rules.md");
    let page = page();
    if std::env::var_os("UPDATE_RULES").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let checked_in = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == page,
        "docs/rules.md does not agree with the checks: UPDATE_RULES=1 cargo test -p cargo-pjrt --test rules_page"
    );
}
