//! `cargo xtask test-gomlx`: tests refcpu with GoMLX's client, as a CPU plugin.

mod suite;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::environment::run::watch;
use crate::environment::workspace;

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Test this build of refcpu instead of building it
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Run the tests of a checkout of GoMLX or go-xla instead of those of `tests/go`
    #[arg(long, value_name = "FOLDER")]
    suite: Option<PathBuf>,
}

/// Builds refcpu, and runs the tests of `tests/go` and the programs of `cargo pjrt test`. Go downloads the modules that
/// `go.sum` pins; nothing else is installed.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    check_go()?;
    let library = workspace::release_refcpu(options.library.as_deref())?;
    let plugins = workspace::target().join("gomlx");
    link(&library, &plugins, "pjrt_c_api_cpu_plugin.so")?;
    if let Some(suite) = &options.suite {
        return suite::run(suite, &library, &plugins);
    }
    let mut go = Command::new("go");
    go.args(["test", "-count=1", "-mod=readonly", "./..."]).current_dir(workspace::root().join("tests/go"));
    go.env("PJRT_PLUGIN_LIBRARY_PATH", &plugins).env("GOMLX_BACKEND", "xla:cpu");
    // Without this variable, the client downloads a plugin of XLA's if it finds none.
    go.env("GOMLX_NO_AUTO_INSTALL", "1");
    let (status, _) = watch(&mut go)?;
    let (programs, _) = watch(workspace::test_in_host(&library, "gomlx").arg("--install"))?;
    Ok(ExitCode::from(u8::from(!status.success() || !programs.success())))
}

fn check_go() -> Result<()> {
    if Command::new("go").arg("version").output().is_err() {
        bail!(
            "there is no `go` in PATH: install Go 1.24 or newer (https://go.dev/doc/install) and a C compiler, which cgo calls"
        );
    }
    Ok(())
}

/// Links the library under a name by which the client finds plugins in a folder. If the name contains "cpu",
/// the client creates views of its buffers.
fn link(library: &Path, plugins: &Path, name: &str) -> Result<()> {
    fs::create_dir_all(plugins).with_context(|| format!("cannot create {}", plugins.display()))?;
    let link = plugins.join(name);
    match fs::remove_file(&link) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot replace {}", link.display()));
        }
        _ => {}
    }
    std::os::unix::fs::symlink(library, &link).with_context(|| format!("cannot create {}", link.display()))
}
