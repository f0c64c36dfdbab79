//! Tries a wheel in a host, in a new virtual environment.

use std::path::Path;
use std::process::Command;

use super::manifest::Package;

/// A host in which wheels are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Host {
    /// JAX's newest release
    Jax,
    /// PyTorch/XLA 2.9, the newest release that supports plugins; with PyTorch, about 1 GB
    TorchXla,
}

/// Lists the devices, and adds two numbers. `{name}` is the platform.
const JAX: &str = r#"
import sys
import jax
import jax.numpy as jnp

devices = jax.devices()
platform = devices[0].platform
if platform != "{name}":
    sys.exit(f"JAX calls the platform {platform!r}, and the wheel '{name}': set PjrtClient::PLATFORM_NAME and `name` in [package.metadata.pjrt] to the same")
total = float(jax.jit(jnp.add)(1.5, 2.0))
if total != 3.5:
    sys.exit(f"jax.jit(jnp.add)(1.5, 2.0) returned {total}; expected 3.5")
print(f"JAX {jax.__version__}: {devices}; 1.5 + 2.0 = {total}")
"#;

const TORCH_XLA: &str = r#"
import sys
import torch
import torch_xla

device = torch_xla.device()
total = (torch.tensor([1.5], device=device) + 2.0).item()
if total != 3.5:
    sys.exit(f"torch.tensor([1.5]) + 2.0 is {total}; expected 3.5")
print(f"PyTorch/XLA {torch_xla.__version__}: {device}; 1.5 + 2.0 = {total}")
"#;

/// Installs a wheel with a host, and runs a small program.
///
/// # Errors
///
/// Returns an error if the environment cannot be created, or if the program fails.
pub(super) fn test(package: &Package, wheel: &Path, host: Host, python: &Path) -> Result<(), String> {
    let name = &package.settings.name;
    let (folder, requirements, program): (_, &[&str], _) = match host {
        Host::Jax => ("jax", &["jax"], JAX),
        Host::TorchXla => ("torch-xla", &["torch==2.9.1", "torch_xla==2.9.0", "numpy"], TORCH_XLA),
    };
    let folder = package.target_folder.join("pjrt-wheel").join(format!("{name}-{folder}"));
    println!("Trying the wheel with {} in {}", requirements.join(" "), folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    }
    venv::create(&folder, python)?;
    let wheel = wheel.to_string_lossy();
    venv::install(&folder, &[&[wheel.as_ref()], requirements].concat())?;
    let mut command = Command::new(folder.join("bin/python"));
    command.args(["-c", &program.replace("{name}", name)]);
    // Settings of the user's shell must not select another plugin.
    for variable in ["PJRT_NAMES_AND_LIBRARY_PATHS", "PJRT_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME"] {
        command.env_remove(variable);
    }
    command.env("JAX_PLATFORMS", name).env("PJRT_DEVICE", name.to_uppercase());
    venv::run(&mut command).map_err(|error| format!("the wheel does not work: {error}"))
}

/// Virtual environments.
pub(crate) mod venv {
    use super::{Command, Path};

    /// Creates a virtual environment.
    pub(crate) fn create(folder: &Path, python: &Path) -> Result<(), String> {
        run(Command::new(python).args(["-m", "venv"]).arg(folder)).map_err(|error| {
            format!("{error}\n(hint: Python 3.10 or newer with the module venv is required; select one with --python)")
        })
    }

    /// Installs packages into a virtual environment.
    pub(crate) fn install(folder: &Path, packages: &[&str]) -> Result<(), String> {
        let mut command = Command::new(folder.join("bin/python"));
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
        run(&mut command)
    }

    /// Runs a command, whose output is the user's.
    pub(in crate::wheel) fn run(command: &mut Command) -> Result<(), String> {
        let name = Path::new(command.get_program()).display().to_string();
        let status = command.status().map_err(|error| format!("cannot run {name}: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
    }
}
