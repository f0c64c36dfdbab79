//! Files with machine code as text (`REFCPU_DUMP=folder`).

use refcpu_codegen::{Function, disassemble};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The folder in that of the dumps.
const FOLDER: &str = "machine-code";

/// Writes the machine code of a function, with the function beside it, to a file with this name.
pub(super) fn write(f: &Function, name: &str) {
    let Some(folder) = folder() else { return };
    let written = disassemble(f).map_err(|error| io::Error::other(error.to_string()));
    // A dump that cannot be written is no reason to stop.
    if let Err(error) = written.and_then(|text| write_text(&folder, name, &text)) {
        eprintln!("refcpu: cannot write the machine code of {name} to {}: {error}", folder.display());
    }
}

/// Writes a text to a new file, whose name begins with the first number that is free: other processes may use the folder.
fn write_text(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    fs::create_dir_all(folder)?;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        match File::create_new(folder.join(format!("{number:04}-{name}.s"))) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            file => return file?.write_all(text.as_bytes()),
        }
    }
}

/// Returns the folder, or `None` if there are no dumps. The variable may change: a test suite sets it for each test.
fn folder() -> Option<PathBuf> {
    let parent = std::env::var_os("REFCPU_DUMP").filter(|parent| !parent.is_empty())?;
    Some(Path::new(&parent).join(FOLDER))
}
