//! The file in which `perf` finds the names of machine code (`REFCPU_PERF_MAP=1`).

use refcpu_codegen::Compiled;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Adds a line to `/tmp/perf-PID.map`, where `perf report` looks for it.
pub(super) fn record(code: &Compiled, name: &str) {
    let Some(file) = file() else { return };
    let addresses = code.addresses();
    let line = format!("{:x} {:x} refcpu::{name}\n", addresses.start, code.bytes());
    // A profile without this name is no reason to stop.
    let _ = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
}

/// Returns the file, or `None` if it is not wanted or cannot be created.
fn file() -> Option<&'static Mutex<File>> {
    static FILE: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    let create = || {
        std::env::var_os("REFCPU_PERF_MAP").filter(|value| !value.is_empty() && value != "0")?;
        let path = format!("/tmp/perf-{}.map", std::process::id());
        // A link of this name could belong to someone else.
        match File::create_new(&path) {
            Ok(file) => Some(Mutex::new(file)),
            Err(error) => {
                eprintln!("refcpu: there are no names of machine code for perf: {path}: {error}");
                None
            }
        }
    };
    FILE.get_or_init(create).as_ref()
}
