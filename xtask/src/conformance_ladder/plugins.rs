//! The plugins: this repository's, which are built, and others, which are downloaded from PyPI.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::environment::run::output;
use crate::environment::venv::Venv;
use crate::environment::workspace;

/// A plugin that the kit runs on.
pub(super) struct Plugin {
    /// The name of the package.
    pub(super) name: &'static str,
    /// The version of the package, or an empty text for a plugin of this repository.
    pub(super) version: &'static str,
    pub(super) library: PathBuf,
}

impl Plugin {
    /// Returns the name and the version.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.name, self.version).trim_end().to_owned()
    }
}

/// The name of the plugin that has no known bugs.
pub(super) const CORRECT: &str = "refcpu";

/// Packages on PyPI: the name, the version, and the path of the plugin among the installed files. The first two
/// are OpenXLA's plugin on XLA's CPU backend. The third is OpenXLA's plugin for GPUs.
const PACKAGES: &[(&str, &str, &str)] = &[
    ("lammps-jax-pjrt-cpu", "0.11.2", "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"),
    ("fastatomstruct-xla-cpu", "2026.6.23", "fastatomstruct_xla_cpu/libpjrt_cpu.so"),
    ("jax-cuda12-pjrt", "0.10.2", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"),
];

/// Builds and downloads the plugins. `refcpu` is an existing release build.
pub(super) fn all(refcpu: Option<&Path>) -> Result<Vec<Plugin>> {
    workspace::build_dev()?;
    let own = |name, library| Plugin { name, version: "", library };
    let mut plugins = vec![
        own(CORRECT, workspace::release_refcpu(refcpu)?),
        own("hello", workspace::shared_library("debug", "hello_pjrt")),
        own("accelerator", workspace::shared_library("debug", "accelerator_pjrt")),
    ];
    let installed = download()?;
    for &(name, version, path) in PACKAGES {
        let library = installed.join(path);
        ensure!(library.is_file(), "{name} {version} has no file {path} in {}", installed.display());
        plugins.push(Plugin { name, version, library });
    }
    Ok(plugins)
}

/// Installs the packages, without the frameworks that they depend on. Returns the folder of their files.
fn download() -> Result<PathBuf> {
    let venv = Venv::with_requirements("conformance-ladder", "")?;
    let packages: Vec<String> =
        PACKAGES.iter().map(|(name, version, _)| format!("{name}=={version}")).collect();
    let mut arguments = vec!["--no-deps"];
    arguments.extend(packages.iter().map(String::as_str));
    venv.pip_install(&arguments).context("cannot install the plugins from PyPI")?;
    let code = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
    Ok(PathBuf::from(output(venv.python().args(["-c", code]))?.trim()))
}
