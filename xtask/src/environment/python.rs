//! Finds a Python that can create virtual environments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::debian;

/// The oldest minor version of Python 3 that the tasks' own scripts run with.
pub(crate) const OLDEST: u32 = 11;

/// The minor versions that are searched by name, newest first: those for which the packages in use have
/// wheels.
const MINORS: [u32; 4] = [14, 13, 12, 11];

/// A Python that can create virtual environments.
#[derive(Debug)]
pub(crate) struct Python {
    /// The path of the program.
    program: PathBuf,
    /// The command line that starts programs where this Python is installed, which precedes the program's
    /// path. Empty on this system.
    launcher: Vec<OsString>,
    /// The version, such as 3.13.5.
    pub(crate) version: String,
}

impl Python {
    /// Finds a Python of at least version 3.`minor`: the one that `PYTHON` names, `python3`, one in `PATH`,
    /// one of pyenv, or otherwise that of a Debian which is installed into `target/`.
    pub(crate) fn at_least(minor: u32) -> Result<Self> {
        let named = std::env::var_os("PYTHON");
        let first = probe(&[], Path::new(named.as_deref().unwrap_or("python3".as_ref())));
        if let (Some(named), None) = (&named, &first) {
            bail!(
                "PYTHON is {}, which does not run as a Python 3 with the modules venv and ensurepip",
                named.display()
            );
        }
        let minors = || MINORS.into_iter().filter(|&found| found >= minor);
        let in_path = minors().map(|minor| PathBuf::from(format!("python3.{minor}")));
        let of_pyenv = pyenv_versions();
        let of_pyenv = minors().flat_map(|minor| {
            let program = format!("bin/python3.{minor}");
            of_pyenv.iter().map(move |version| version.join(&program))
        });
        let others = in_path.chain(of_pyenv).filter_map(|program| probe(&[], &program));
        if let Some(python) = first.into_iter().chain(others).find(|python| python.minor() >= Some(minor)) {
            return Ok(python);
        }
        let (launcher, program) = debian::python().with_context(|| {
            format!(
                "Python 3.{minor} or newer is needed: name its program in PYTHON, have python3.{minor} in PATH, or install it \
                 with pyenv; on Debian, with the package python3-venv"
            )
        })?;
        probe(&launcher, &program)
            .filter(|python| python.minor() >= Some(minor))
            .with_context(|| format!("{} of the installed Debian is not Python 3.{minor}", program.display()))
    }

    /// Returns the command that runs this Python.
    pub(crate) fn command(&self) -> Command {
        self.launch(&self.program)
    }

    /// Returns the command that runs a program, such as the Python of an environment, where this Python is
    /// installed.
    pub(crate) fn launch(&self, program: &Path) -> Command {
        launch(&self.launcher, program)
    }

    /// Returns a description that distinguishes this Python from others.
    pub(crate) fn description(&self) -> String {
        let launcher = if self.launcher.is_empty() { "" } else { " of another system" };
        format!("{}{launcher}", self.version)
    }

    fn minor(&self) -> Option<u32> {
        self.version.strip_prefix("3.")?.split('.').next()?.parse().ok()
    }
}

fn launch(launcher: &[OsString], program: &Path) -> Command {
    match launcher {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    }
}

/// Returns the Python that a program is, or `None` if it does not run (such as pyenv's placeholder for a
/// version that is not selected) or cannot create environments.
fn probe(launcher: &[OsString], program: &Path) -> Option<Python> {
    let code = "import ensurepip, sys, venv; print(*sys.version_info[:3], sep='.')";
    let output = launch(launcher, program).args(["-c", code]).stderr(Stdio::null()).output().ok()?;
    let version = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(Python {
        program: program.to_owned(),
        launcher: launcher.to_owned(),
        version: version.trim().to_owned(),
    })
}

/// Returns the folders of the versions that pyenv has installed.
fn pyenv_versions() -> Vec<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let Some(entries) = root.and_then(|root| root.join("versions").read_dir().ok()) else {
        return Vec::new();
    };
    let mut versions: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    versions.sort();
    versions
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// Creates a program with this content in its own folder.
    fn program(name: &str, script: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-python-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("python3.12");
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[test]
    fn a_python_is_a_program_that_runs_as_one() {
        // All programs are written before the first one runs, because a program that is open for writing
        // cannot be started.
        let refuses = program("refuses", "#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n");
        let runs = program("runs", "#!/bin/sh\necho 3.12.1\n");
        assert!(probe(&[], &refuses).is_none());
        assert!(probe(&[], Path::new("/there/is/no/python")).is_none());
        let python = probe(&[], &runs).unwrap();
        assert_eq!((python.minor(), &*python.description()), (Some(12), "3.12.1"));
        let python = probe(&["env".into(), "-i".into()], &runs).unwrap();
        assert_eq!(python.description(), "3.12.1 of another system");
        let command = python.launch(Path::new("/venv/bin/python"));
        assert_eq!(command.get_program(), "env");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["-i", "/venv/bin/python"]);
        for program in [refuses, runs] {
            fs::remove_dir_all(program.parent().unwrap()).unwrap();
        }
    }
}
