//! The shared library of the recorder: found beside this program, or built on first use.
//!
//! `cargo install` installs programs, but no shared libraries. The library is therefore built by the user's cargo, from the source
//! in this program, as a package that depends on this crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::new::Sdk;
use crate::process::{cache, output};

/// The source of the library.
const SOURCE: &str = include_str!("../../examples/recorder.rs");

/// Returns the path of the library. `program` is the path of this program.
///
/// # Errors
///
/// Returns an error if the library is not in the folder of this program and cannot be built.
pub(super) fn find(program: &Path) -> Result<PathBuf, String> {
    beside(program).map_or_else(build, Ok)
}

fn file_name() -> String {
    format!("{}recorder{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// Returns the path of the library in the folder of this program, where cargo puts it if both are built together.
fn beside(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    [folder.join("examples").join(file_name()), folder.join(file_name())]
        .into_iter()
        .find(|path| path.exists())
}

/// Builds the library in the user's cache folder, once for each version of this program. The library of a checkout, whose sources
/// may change, is built again if they did.
fn build() -> Result<PathBuf, String> {
    let sdk = Sdk::default();
    let folder = cache::folder()?.join("recorder").join(env!("CARGO_PKG_VERSION"));
    let library = folder.join("target/debug").join(file_name());
    if library.exists() && sdk == Sdk::Registry {
        return Ok(library);
    }
    write(&folder.join("Cargo.toml"), &manifest(&sdk))?;
    write(&folder.join("lib.rs"), SOURCE)?;
    if let Sdk::Checkout(checkout) = &sdk {
        // The same versions of the dependencies as those of this program, which cargo need not download again.
        if let Ok(lock) = fs::read_to_string(checkout.join("Cargo.lock")) {
            write(&folder.join("Cargo.lock"), &lock)?;
        }
    }
    if !library.exists() {
        output::print_error(&format!(
            "building the recorder in {}, which is necessary once and takes some minutes",
            folder.display()
        ));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.args(["build", "--quiet", "--target-dir", "target"]).current_dir(&folder).stdout(Stdio::null());
    let advice = "pass the path of a recorder that is already built with --recorder";
    let status = command.status().map_err(|error| {
        let cargo = Path::new(&cargo).display();
        format!("the recorder cannot be built, because {cargo} cannot be started: {error}\n(hint: install Rust, https://rustup.rs, or {advice})")
    })?;
    if !status.success() || !library.exists() {
        return Err(format!(
            "the recorder cannot be built in {}: cargo ended with {status}\n(hint: its messages are above; or {advice})",
            folder.display()
        ));
    }
    Ok(library)
}

/// Returns the manifest of the package.
fn manifest(sdk: &Sdk) -> String {
    format!(
        r#"[package]
name = "recorder"
version = "0.0.0"
edition = "2024"

[lib]
path = "lib.rs"
crate-type = ["cdylib"]

[dependencies]
{}
# The copies of arrays are slow without optimization.
[profile.dev]
opt-level = 1
debug = false

[workspace]
"#,
        sdk.dependency(env!("CARGO_PKG_NAME"), "")
    )
}

/// Writes a file unless it has this content, so that cargo does not build again.
fn write(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}
