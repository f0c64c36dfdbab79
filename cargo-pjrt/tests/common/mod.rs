//! Functions that the tests of this crate share: paths of the libraries that cargo builds with them, and
//! temporary folders.

#![allow(dead_code, reason = "no test uses all of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn library(name: &str) -> String {
    format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// Returns the folder of the test executables, which contains the libraries that the tests depend on and the
/// folder of the examples.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("this program knows where it is");
    test.parent().expect("a program is in a folder").to_owned()
}

/// Returns the path of the smallest plugin.
pub(crate) fn hello() -> PathBuf {
    built().join(library("hello_pjrt"))
}

/// Returns the path of a shared library among the examples of this crate.
pub(crate) fn example(name: &str) -> PathBuf {
    let path = built().join("../examples").join(library(name));
    assert!(path.exists(), "{} is not built: cargo build --package cargo-pjrt --examples", path.display());
    path
}

/// Returns a command that runs the program under test.
pub(crate) fn cargo_pjrt() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cargo-pjrt"))
}

/// Returns a command that runs the program under test with a subcommand, in an environment in which
/// [`faulty`] is hello with a fault.
pub(crate) fn with_fault(verb: &str, fault: &str) -> Command {
    let mut command = cargo_pjrt();
    command.env("FAULT_PROXY_INNER", hello()).env("FAULT_PROXY", fault).arg(verb);
    command
}

/// Returns the path of the plugin that has the fault.
pub(crate) fn faulty() -> PathBuf {
    example("fault_proxy")
}

/// Returns the output of a command.
pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs a command that must succeed, and returns its output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    text(&output)
}

/// Runs a command that must fail with the exit status of an error, not of a crash, and returns its output.
pub(crate) fn fail(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1), "{command:?}: {}", text(&output));
    text(&output)
}

/// Runs a command that must reject its arguments, and returns its output.
pub(crate) fn refuse(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2), "{command:?}: {}", text(&output));
    text(&output)
}

/// Returns the path of a test file.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A folder that is deleted when the value is dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cargo-pjrt-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a path in the folder")).expect("a folder can be made");
        std::fs::write(&path, bytes).expect("a file can be written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be deleted remains in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
