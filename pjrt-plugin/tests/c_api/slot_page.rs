//! Generates the page of the book about the slots of the function table, and compares it with the committed page.
//!
//! `UPDATE_SLOTS=1 cargo test -p pjrt-plugin --test c_api slot_page` writes the page.

use std::fmt::Write;
use std::path::Path;
use std::{fs, ptr};

use pjrt_plugin::ErrorCode;
use pjrt_sys::*;

use crate::host::*;
use crate::slot_rows::ROWS;

fn page() -> String {
    let mut page = format!(
        "# The function table, slot by slot\n\n\
         <!-- Written by pjrt-plugin/tests/c_api/slot_page.rs from the function table. -->\n\n\
         Version {PJRT_API_MAJOR}.{PJRT_API_MINOR} of the PJRT C API has {} functions. No slot of a plugin's table is null. The \
         table lists for each slot the minor version that introduced it, the author's method that implements it, the default \
         behavior of the SDK (or its behavior, if there is no method), and the callers. *XLA's client* is the library through which \
         JAX, PyTorch/XLA and TensorFlow call plugins. If a row names only XLA's client, JAX does not need the function to upload \
         arrays, compile, run and read results. A dash under *implemented by* means that the SDK implements the slot without a method \
         of the author. A dash under *default* means that the function does what its name says.\n\n\
         | slot | function | since | implemented by | default | called by |\n|---|---|---|---|---|---|\n",
        SLOTS.len()
    );
    for ((index, slot), row) in SLOTS.iter().enumerate().zip(&ROWS) {
        let methods: Vec<String> =
            row.methods.split_whitespace().map(|method| format!("`{method}`")).collect();
        let name = slot.name.strip_prefix("PJRT_").unwrap_or(slot.name);
        let cell = |text: &str| if text.is_empty() { "–".to_owned() } else { text.to_owned() };
        let (methods, otherwise) = (cell(&methods.join(", ")), cell(row.otherwise));
        writeln!(page, "| {index} | `{name}` | {} | {methods} | {otherwise} | {} |", row.since, row.callers)
            .unwrap();
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
         UPDATE_SLOTS=1 cargo test -p pjrt-plugin --test c_api slot_page"
    );
}

#[test]
fn every_method_on_the_page_exists() {
    for row in &ROWS {
        for method in row.methods.split_whitespace() {
            let (owner, name) = method.split_once("::").unwrap();
            let source = match owner {
                "PjrtClient" => include_str!("../../src/client.rs"),
                "PjrtDevice" => include_str!("../../src/device.rs"),
                "PjrtBuffer" => include_str!("../../src/buffer.rs"),
                "PjrtExecutable" => include_str!("../../src/executable.rs"),
                _ => panic!("{owner} is no trait"),
            };
            let body = source.split_once(&format!("pub trait {owner}")).unwrap().1;
            let body = body.split_once("\n}\n").unwrap().0;
            let found = body.contains(&format!("fn {name}(")) || body.contains(&format!("const {name}:"));
            assert!(found, "{method} does not exist");
        }
    }
}

/// A slot that no plugin can implement returns UNIMPLEMENTED for all arguments.
#[test]
fn the_page_names_exactly_the_slots_that_no_plugin_can_implement() {
    for ((index, slot), row) in
        SLOTS.iter().enumerate().zip(&ROWS).filter(|((_, slot), _)| slot.returns_error)
    {
        let mut args = vec![0_usize; slot.args.size.div_ceil(8)];
        args[0] = slot.args.struct_size;
        // SAFETY: the table has a function at this offset that returns an error; the struct is zero apart from its size.
        let error = unsafe {
            let function = ptr::from_ref(api()).byte_add(slot.offset);
            let function = function.cast::<unsafe extern "C" fn(*mut usize) -> *mut PJRT_Error>().read();
            function(args.as_mut_ptr())
        };
        let unimplemented = take_error(error).is_err_and(|error| {
            error.code == ErrorCode::Unimplemented as u32
                && error.message.contains("is not implemented by this plugin")
        });
        let on_the_page = row.methods.is_empty() && row.otherwise == "UNIMPLEMENTED";
        assert_eq!(unimplemented, on_the_page, "slot {index}, {}", slot.name);
    }
}
