//! Builds `examples/hello` as a user would: outside the workspace, from the published form of the crates.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::environment::run::run;
use crate::environment::workspace;

/// The crates of the SDK that a plugin depends on, directly or indirectly.
const CRATES: &[&str] = &["pjrt-plugin-sys", "pjrt-plugin-macros", "pjrt-plugin", "pjrt-stablehlo"];

/// Packages the crates of the SDK, unpacks them, and builds the example with them. Returns its shared
/// library.
pub(crate) fn build_hello() -> Result<PathBuf> {
    let version = env!("CARGO_PKG_VERSION");
    let packages = CRATES.iter().flat_map(|name| ["--package", name]);
    run(workspace::cargo().args(["package", "--quiet", "--allow-dirty", "--no-verify"]).args(packages))?;

    let folder = workspace::target().join("packaged");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("hello/src"))?;
    let mut manifest = fs::read_to_string(workspace::root().join("tests/packaged/Cargo.toml"))
        .context("cannot read the manifest of the packaged example")?;
    manifest.push_str("\n[patch.crates-io]\n");
    for name in CRATES {
        let file = workspace::target().join(format!("package/{name}-{version}.crate"));
        run(Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(&folder))?;
        manifest.push_str(&format!("{name} = {{ path = \"../{name}-{version}\" }}\n"));
    }
    fs::write(folder.join("hello/Cargo.toml"), manifest)?;
    fs::copy(workspace::root().join("examples/hello/src/lib.rs"), folder.join("hello/src/lib.rs"))?;

    // The target folder is shared, so that common dependencies are not built again.
    run(workspace::cargo()
        .args(["build", "--quiet", "--target-dir"])
        .arg(workspace::target())
        .current_dir(folder.join("hello")))?;
    Ok(workspace::shared_library("debug", "hello_outside"))
}
