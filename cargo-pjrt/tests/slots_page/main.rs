//! Generates the page of the book about the slots of the function table, and compares it with the committed page.
//!
//! `UPDATE_SLOTS=1 cargo test -p cargo-pjrt --test slots_page` writes the page.

mod rows;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use cargo_pjrt::requirements::{Calls, FUNCTIONS, Function, Profile};
use pjrt_sys::{PJRT_API_MAJOR, PJRT_API_MINOR, SLOTS};

use rows::ROWS;

/// Returns the hosts that call a function, those that require it in bold, and the remark about it.
fn callers(function: &Function) -> String {
    let host = |host: Profile| match function.called_by(host) {
        Calls::Required => Some(format!("**{host}**")),
        Calls::Optional => Some(host.to_string()),
        Calls::Never => None,
    };
    let hosts: Vec<String> = Profile::ALL.into_iter().filter_map(host).collect();
    let parts = [hosts.join(", "), function.remark.to_owned()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn page() -> String {
    let mut page = format!(
        "# The function table, slot by slot\n\n\
         <!-- Written by cargo-pjrt/tests/slots_page from the function table. -->\n\n\
         Version {PJRT_API_MAJOR}.{PJRT_API_MINOR} of the PJRT C API has {} functions. No slot of a plugin's table is null. The \
         table lists for each slot the minor version that introduced it, the author's method that implements it, the default \
         behavior of the SDK (or its behavior, if there is no method), and the hosts that call it, by the names of their profiles in \
         `cargo pjrt conform --profile`. A host in bold cannot run a program without the function. The others call it for one of \
         their features, or tolerate a plugin that returns UNIMPLEMENTED; a plugin that has the function must still implement it \
         correctly for them. *XLA's client* is the library through which JAX, PyTorch/XLA and TensorFlow call plugins; if a row names \
         only XLA's client, none of the hosts was seen to call the function. A dash under *implemented by* means that the SDK implements \
         the slot without a method of the author. A dash under *default* means that the function does what its name says.\n\n\
         | slot | function | since | implemented by | default | called by |\n|---|---|---|---|---|---|\n",
        SLOTS.len()
    );
    for ((index, function), row) in FUNCTIONS.iter().enumerate().zip(&ROWS) {
        let methods: Vec<String> =
            row.methods.split_whitespace().map(|method| format!("`{method}`")).collect();
        let cell = |text: &str| if text.is_empty() { "–".to_owned() } else { text.to_owned() };
        let (methods, otherwise) = (cell(&methods.join(", ")), cell(row.otherwise));
        let (name, since, callers) = (function.name, row.since, callers(function));
        writeln!(page, "| {index} | `{name}` | {since} | {methods} | {otherwise} | {callers} |").unwrap();
    }
    page
}

#[test]
fn the_page_is_the_function_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/slots.md");
    let page = page();
    if std::env::var_os("UPDATE_SLOTS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let checked_in = fs::read_to_string(&path).unwrap();
    assert!(
        checked_in == page,
        "docs/slots.md does not agree with the function table: \
         UPDATE_SLOTS=1 cargo test -p cargo-pjrt --test slots_page"
    );
}

#[test]
fn every_method_on_the_page_exists() {
    for row in &ROWS {
        for method in row.methods.split_whitespace() {
            let (owner, name) = method.split_once("::").unwrap();
            let source = match owner {
                "PjrtClient" => include_str!("../../../pjrt-plugin/src/client.rs"),
                "PjrtDevice" => include_str!("../../../pjrt-plugin/src/device.rs"),
                "PjrtBuffer" => include_str!("../../../pjrt-plugin/src/buffer.rs"),
                "PjrtExecutable" => include_str!("../../../pjrt-plugin/src/executable.rs"),
                _ => panic!("{owner} is no trait"),
            };
            let body = source.split_once(&format!("pub trait {owner}")).unwrap().1;
            let body = body.split_once("\n}\n").unwrap().0;
            let found = body.contains(&format!("fn {name}(")) || body.contains(&format!("const {name}:"));
            assert!(found, "{method} does not exist");
        }
    }
}
