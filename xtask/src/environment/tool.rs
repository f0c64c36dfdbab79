//! Programs from crates.io, which are installed into `target/tools`.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::run::run;
use super::workspace;

/// Returns the path of a program, after installing this version of its crate if it is missing. It is not optimized, which takes
/// longer than its runs.
pub(crate) fn installed(crate_name: &str, version: &str, options: &[&str]) -> Result<PathBuf> {
    let root = workspace::target().join("tools").join(format!("{crate_name}-{version}"));
    let program = root.join("bin").join(format!("{crate_name}{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        println!("Installing {crate_name} {version} into {}; this takes minutes", root.display());
        run(workspace::cargo()
            .args(["install", "--quiet", "--debug", "--locked", "--version", version, "--root"])
            .arg(&root)
            .args(options)
            .arg(crate_name))
        .with_context(|| format!("cannot install {crate_name} {version}"))?;
    }
    Ok(program)
}
