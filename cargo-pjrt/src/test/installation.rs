//! Finds the hosts, and installs them into virtual environments.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::host::Host;
use super::options::Options;
use crate::process::{Scratch, cache, output};
use crate::wheel::modules::SUPPORT;
use crate::wheel::venv;

/// The modules that run programs in Python.
const PYTHON: &[(&str, &str)] = &[
    ("programs.py", include_str!("../../python/test/programs.py")),
    ("jax_host.py", include_str!("../../python/test/jax_host.py")),
    ("torch_xla_host.py", include_str!("../../python/test/torch_xla_host.py")),
];

/// The package that runs programs in Go.
const GO: &[(&str, &str)] = &[
    ("go.mod", include_str!("../../go/go.mod")),
    ("go.sum", include_str!("../../go/go.sum")),
    ("main.go", include_str!("../../go/main.go")),
    ("programs.go", include_str!("../../go/programs.go")),
];

/// A program that runs the programs of a host, or the reason why there is none.
pub(super) enum Installation {
    /// The program and its first arguments.
    Found(PathBuf, Vec<PathBuf>),
    /// The reason, and the command that mends it.
    Missing(String, String),
}

/// Finds a host, and installs it if that is asked for. The files that it needs are written into the folder.
///
/// # Errors
///
/// Returns an error if a file cannot be written, or if the installation fails.
pub(super) fn find(host: Host, options: &Options, scratch: &Scratch) -> Result<Installation, String> {
    match host {
        Host::Jax | Host::TorchXla => python(host, options, scratch),
        Host::Gomlx => go(options, scratch),
    }
}

fn python(host: Host, options: &Options, scratch: &Scratch) -> Result<Installation, String> {
    let own = cache::folder()?.join("hosts").join(host.name());
    let candidates = match &options.python {
        Some(python) => vec![python.clone()],
        None => candidates(host, &own),
    };
    let mut found = candidates.into_iter().find(|python| has_module(python, host.name()));
    if found.is_none() && options.install {
        let python = options.python.clone().unwrap_or_else(|| "python3".into());
        output::print_error(&format!("installing {} into {}", host.packages().join(" "), own.display()));
        // What an interrupted installation left is not complete.
        let _ = std::fs::remove_dir_all(&own);
        venv::create(&own, &python).and_then(|()| venv::install(&own, host.packages()))?;
        found = Some(own.join("bin/python"));
    }
    let Some(python) = found else {
        let what = match &options.python {
            Some(python) => format!("{} cannot import {}", python.display(), host.name()),
            None => "not installed".to_owned(),
        };
        let fix = format!(
            "pip install {}, or `cargo pjrt test --host {} --install`",
            host.packages().join(" "),
            host.name()
        );
        return Ok(Installation::Missing(what, fix));
    };
    let folder = scratch.folder("python")?;
    write(&folder, PYTHON)?;
    write(&scratch.folder("python/pjrt_plugin_support")?, SUPPORT)?;
    Ok(Installation::Found(python, vec![folder.join(format!("{}_host.py", host.name()))]))
}

/// Returns the Pythons that may have a host: the one of the shell, those of the current folder, and that of this program.
fn candidates(host: Host, own: &Path) -> Vec<PathBuf> {
    let mut candidates: Vec<PathBuf> =
        ["python3", ".venv/bin/python", "venv/bin/python"].map(PathBuf::from).into();
    let suffix = format!("-{}", host.name().replace('_', "-"));
    // The environments of `cargo pjrt wheel`.
    for entry in std::fs::read_dir("target/pjrt-wheel").into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().ends_with(&suffix) {
            candidates.push(entry.path().join("bin/python"));
        }
    }
    candidates.push(own.join("bin/python"));
    candidates
}

/// Returns `true` if a Python finds a module.
fn has_module(python: &Path, module: &str) -> bool {
    let code = format!("import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)");
    let mut command = Command::new(python);
    command.args(["-c", &code]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Builds the program in Go. Without `--install`, Go must have downloaded its modules before.
fn go(options: &Options, scratch: &Scratch) -> Result<Installation, String> {
    let install = "`cargo pjrt test --host gomlx --install`, which downloads five Go modules".to_owned();
    if Command::new("go").arg("version").stdout(Stdio::null()).status().is_err() {
        let fix =
            format!("install Go 1.24 or newer (https://go.dev/doc/install) and a C compiler; then {install}");
        return Ok(Installation::Missing("there is no `go` in PATH".to_owned(), fix));
    }
    let folder = scratch.folder("go")?;
    write(&folder, GO)?;
    output::print_error("building the programs for GoMLX");
    let mut command = Command::new("go");
    command.args(["build", "-o", "programs", "."]).current_dir(&folder).env("GOFLAGS", "-mod=readonly");
    if !options.install {
        command.env("GOPROXY", "off");
    }
    let built = command.output().map_err(|error| format!("cannot run go: {error}"))?;
    if built.status.success() {
        return Ok(Installation::Found(folder.join("programs"), Vec::new()));
    }
    let messages = String::from_utf8_lossy(&built.stderr).trim().to_owned();
    if options.install {
        return Err(format!("the programs for GoMLX cannot be built: {messages}"));
    }
    let last = messages.lines().last().unwrap_or_default().to_owned();
    Ok(Installation::Missing(format!("not installed ({last})"), install))
}

fn write(folder: &Path, files: &[(&str, &str)]) -> Result<(), String> {
    for (file, text) in files {
        let path = folder.join(file);
        std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}
