//! Python virtual environments under `target/venvs`, which are created once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run::{output, run};
use crate::workspace;

/// A virtual environment with its packages installed.
pub(crate) struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// Creates an environment with the given requirements (lines in pip's requirements format), or finds the
    /// one that an earlier call created with the same Python and the same requirements.
    pub(crate) fn with_requirements(name: &str, requirements: &str) -> Result<Self> {
        let python = python()?;
        let venv = Self { folder: workspace::root().join("target/venvs").join(name) };
        let stamp = venv.folder.join("made-of.txt");
        let made_of = format!("{}\n{requirements}", python.version);
        if fs::read_to_string(&stamp).is_ok_and(|text| text == made_of) {
            return Ok(venv);
        }
        if venv.folder.exists() {
            fs::remove_dir_all(&venv.folder)
                .with_context(|| format!("cannot remove {}", venv.folder.display()))?;
        }
        println!("Creating the virtual environment {}", venv.folder.display());
        run(Command::new(&python.program).args(["-m", "venv"]).arg(&venv.folder))
            .context("cannot create a virtual environment; on Debian, install python3-venv")?;
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

    /// Returns the command that runs the environment's Python. The environment's folder of programs comes
    /// first in `PATH`.
    pub(crate) fn python(&self) -> Command {
        Command::new(self.program("python"))
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

/// A Python installation.
pub(crate) struct Python {
    /// The name or path of the program.
    pub(crate) program: String,
    version: String,
}

/// Returns the Python that `PYTHON` names, or `python3`. Returns an error if it is too old for JAX.
pub(crate) fn python() -> Result<Python> {
    let program = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let version =
        output(Command::new(&program).args(["-c", "import sys; print(*sys.version_info[:3], sep='.')"]))
            .context("Python 3.11 or newer is required; set PYTHON to its program")?;
    let mut parts = version.trim().split('.').filter_map(|part| part.parse::<u32>().ok());
    if (parts.next(), parts.next()) < (Some(3), Some(11)) {
        bail!(
            "{program} is Python {}, but 3.11 or newer is required; set PYTHON to another program",
            version.trim()
        );
    }
    Ok(Python { program, version })
}
