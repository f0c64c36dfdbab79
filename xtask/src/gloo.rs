//! The library that connects several processes, which `refcpu-gloo` loads.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::environment::run::run;
use crate::environment::workspace::{root, target};

/// Builds the library of `refcpu-gloo/shim`, and returns its path.
pub(crate) fn library() -> Result<PathBuf> {
    let folder = target().join("gloo");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let library = folder.join("librefcpu_gloo.so");
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut command = Command::new(compiler);
    command
        .args(["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o"])
        .arg(&library);
    command.arg(root().join("refcpu-gloo/shim/gloo.cc")).arg("-lgloo");
    // In a wheel, Gloo and the libraries that it loads are in the same folder. Only this older form of the path applies to these too.
    command.arg("-Wl,--disable-new-dtags,-rpath,$ORIGIN");
    run(&mut command).context(
        "cannot build the library of refcpu-gloo: it needs a compiler for C++17 and Gloo, which is the package libgloo-dev of \
         Debian and Ubuntu",
    )?;
    Ok(library)
}
