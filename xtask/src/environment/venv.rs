//! Python virtual environments under `target/venvs`, which are created once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

use super::python::{self, Python};
use super::run::run;
use super::workspace;

/// A virtual environment with its packages installed.
pub(crate) struct Venv {
    folder: PathBuf,
    /// The Python that the environment was created with.
    base: Python,
}

impl Venv {
    /// Creates an environment with the given requirements (lines in pip's requirements format), or finds the
    /// one that an earlier call created with the same Python and the same requirements.
    pub(crate) fn with_requirements(name: &str, requirements: &str) -> Result<Self> {
        Self::with_python(Python::at_least(python::OLDEST)?, name, requirements)
    }

    /// The same as `with_requirements`, with this Python.
    pub(crate) fn with_python(base: Python, name: &str, requirements: &str) -> Result<Self> {
        static CREATION: Mutex<()> = Mutex::new(());
        // Another thread may be creating the same environment.
        let _creation = CREATION.lock().unwrap_or_else(PoisonError::into_inner);
        let venv = Self { folder: workspace::root().join("target/venvs").join(name), base };
        let stamp = venv.folder.join("made-of.txt");
        let made_of = format!("{}\n\n{requirements}", venv.base.description());
        if fs::read_to_string(&stamp).is_ok_and(|text| text == made_of) {
            return Ok(venv);
        }
        if venv.folder.exists() {
            fs::remove_dir_all(&venv.folder)
                .with_context(|| format!("cannot remove {}", venv.folder.display()))?;
        }
        println!("Creating the virtual environment {}", venv.folder.display());
        run(venv.base.command().args(["-m", "venv"]).arg(&venv.folder))
            .context("cannot create a virtual environment")?;
        let list = venv.folder.join("requirements.txt");
        fs::write(&list, requirements)?;
        venv.pip_install(&["-r", &list.to_string_lossy()])?;
        fs::write(stamp, made_of)?;
        Ok(venv)
    }

    /// The same as `with_requirements`, with the requirements from a file in the repository.
    pub(crate) fn with_requirements_file(name: &str, file: &str) -> Result<Self> {
        let file = workspace::root().join(file);
        let requirements =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Self::with_requirements(name, &requirements)
    }

    /// Returns the environment of the tests, with the release of JAX that they support.
    pub(crate) fn of_tests() -> Result<Self> {
        Self::with_requirements_file("test", "tests/python/requirements.txt")
    }

    /// Returns the command that runs the environment's Python. The environment's folder of programs comes
    /// first in `PATH`.
    pub(crate) fn python(&self) -> Command {
        self.base.launch(&self.program("python"))
    }

    /// Returns the path of a program that a package installed.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// Installs packages.
    pub(crate) fn pip_install(&self, arguments: &[&str]) -> Result<()> {
        run(self
            .python()
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(arguments))
    }

    /// Installs a wheel, and replaces an earlier build of it with the same version.
    pub(crate) fn install_wheel(&self, wheel: &Path) -> Result<()> {
        self.pip_install(&["--force-reinstall", "--no-deps", &wheel.to_string_lossy()])
    }
}
