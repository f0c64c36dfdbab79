//! The facts about a Python environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The facts that `environment.py` prints, and the environment variables.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) facts: Facts,
    /// `None` if JAX is not installed, or if it could not be examined.
    pub(super) jax: Option<Jax>,
    /// The entries of `PJRT_NAMES_AND_LIBRARY_PATHS`.
    pub(super) named: Vec<Registered>,
    /// The values of the variables that select or exclude plugins, if they are set.
    pub(super) variables: BTreeMap<&'static str, String>,
}

/// The facts that need no host.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Facts {
    pub(super) python: String,
    pub(super) executable: String,
    pub(super) packages: BTreeMap<String, Option<String>>,
    pub(super) jax_entry_points: Vec<EntryPoint>,
    pub(super) jax_modules: Vec<String>,
    pub(super) torch_entry_points: Vec<EntryPoint>,
}

/// An entry point of a Python package.
#[derive(Debug, Default, Deserialize)]
pub(super) struct EntryPoint {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) package: Option<String>,
}

/// The behavior of JAX in the environment.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Jax {
    pub(super) modules: Vec<Module>,
    /// The platforms of JAX itself.
    pub(super) builtin: Vec<String>,
    /// The platform of the first device.
    pub(super) platform: Option<String>,
    pub(super) devices: Vec<String>,
    /// The error of JAX, if it has no device.
    pub(super) error: Option<String>,
    /// The errors of the platforms that JAX skipped.
    pub(super) errors: BTreeMap<String, String>,
    pub(super) priorities: BTreeMap<String, i64>,
}

/// A module that registers plugins with JAX.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Module {
    pub(super) module: String,
    pub(super) error: Option<String>,
    pub(super) registered: Vec<Registered>,
}

/// A plugin that is registered with JAX.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Registered {
    pub(super) name: String,
    /// The path of the library. Absent if a module passes a loaded library.
    pub(super) library: Option<PathBuf>,
}

impl Registered {
    /// Returns `true` if the plugin's library is this file.
    pub(super) fn is_of(&self, path: &Path) -> bool {
        let canonical = |path: &Path| path.canonicalize().ok();
        self.library.as_deref().and_then(canonical).is_some_and(|library| canonical(path) == Some(library))
    }
}

impl Environment {
    /// Returns the plugins of modules and of `PJRT_NAMES_AND_LIBRARY_PATHS`.
    pub(super) fn registered(&self) -> Vec<Registered> {
        let modules = self.jax.iter().flat_map(|jax| &jax.modules);
        modules.flat_map(|module| &module.registered).chain(&self.named).cloned().collect()
    }

    pub(super) fn version(&self, package: &str) -> Option<&str> {
        self.facts.packages.get(package)?.as_deref()
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}
