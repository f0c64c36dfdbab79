//! The Python modules of wheels.

use std::fs;
use std::path::Path;

use super::archive::Archive;
use super::manifest::{Jax, Package};

/// The modules of the package that all plugins share.
pub(crate) const SUPPORT: &[(&str, &str)] = &[
    ("__init__.py", include_str!("../../python/pjrt_plugin_support/__init__.py")),
    ("buffer_callback.py", include_str!("../../python/pjrt_plugin_support/buffer_callback.py")),
    ("eigh.py", include_str!("../../python/pjrt_plugin_support/eigh.py")),
    ("ffi.py", include_str!("../../python/pjrt_plugin_support/ffi.py")),
    ("jax_internals.py", include_str!("../../python/pjrt_plugin_support/jax_internals.py")),
    ("jax_plugin.py", include_str!("../../python/pjrt_plugin_support/jax_plugin.py")),
];

/// The name of the private copy of that package in a plugin's package.
const SUPPORT_FOLDER: &str = "_support";

/// Adds the modules for JAX and PyTorch/XLA.
pub(super) fn add(package: &Package, archive: &mut Archive) -> Result<(), String> {
    let name = &package.settings.name;
    match &package.settings.jax_package {
        None => archive.add(&format!("jax_plugins/{name}/__init__.py"), jax(package)),
        Some(folder) => add_folder(folder, &format!("jax_plugins/{name}"), archive)?,
    }
    for (file, text) in SUPPORT {
        archive.add(&format!("jax_plugins/{name}/{SUPPORT_FOLDER}/{file}"), *text);
    }
    archive.add(&format!("torch_xla_{name}.py"), torch_xla(package));
    Ok(())
}

/// Adds the Python files of a folder and of the folders in it, except for a copy of the shared package.
fn add_folder(folder: &Path, name: &str, archive: &mut Archive) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(fault)?.collect();
    let mut entries = entries.map_err(fault)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, file) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if file == SUPPORT_FOLDER {
            continue;
        }
        let member = format!("{name}/{file}");
        if path.is_dir() {
            add_folder(&path, &member, archive)?;
        } else if file.ends_with(".py") {
            archive.add(&member, fs::read(&path).map_err(fault)?);
        }
    }
    Ok(())
}

/// Returns the module that JAX imports.
fn jax(package: &Package) -> String {
    let Jax {
        priority,
        options,
        callbacks,
        multi_process,
        similar_platform,
        whole_functions,
        sharding_inspection,
    } = &package.settings.jax;
    let mut arguments = vec![
        python_string(&package.settings.name),
        format!("pathlib.Path(__file__).with_name({})", python_string(&package.library_file())),
    ];
    if let Some(priority) = priority {
        arguments.push(format!("priority={priority}"));
    }
    if !options.is_empty() {
        let entries: Vec<String> = options
            .iter()
            .map(|(name, value)| format!("{}: {}", python_string(name), python(value)))
            .collect();
        arguments.push(format!("options={{{}}}", entries.join(", ")));
    }
    if let Some(platform) = similar_platform {
        arguments.push(format!("similar_platform={}", python_string(platform)));
    }
    if !whole_functions.is_empty() {
        let names: String = whole_functions.iter().map(|name| format!("{}, ", python_string(name))).collect();
        arguments.push(format!("whole_functions=({names})"));
    }
    let flags = [
        ("callbacks", callbacks),
        ("multi_process", multi_process),
        ("sharding_inspection", sharding_inspection),
    ];
    arguments.extend(flags.iter().filter(|(_, set)| **set).map(|(flag, _)| format!("{flag}=True")));
    format!(
        "\"\"\"Registers the PJRT plugin {} with JAX.\"\"\"\n\nimport pathlib\n\nfrom ._support.jax_plugin import JaxPlugin\n\n\
         plugin = JaxPlugin(\n    {},\n)\ninitialize = plugin.initialize\n",
        package.settings.name,
        arguments.join(",\n    ")
    )
}

/// Returns the module that PyTorch/XLA imports. It must not import JAX.
fn torch_xla(package: &Package) -> String {
    let (name, file) = (&package.settings.name, package.library_file());
    let device = name.to_uppercase();
    format!(
        r#""""Registers the PJRT plugin {name} with PyTorch/XLA.

torch_xla loads this module through the entry point `torch_xla.plugins` and creates a `Plugin`. The environment variable
`PJRT_DEVICE={device}` selects it.
"""

import os
import pathlib

from torch_xla.experimental import plugins

# The wheel contains the library once, in the package for JAX. Importing that package would import JAX.
LIBRARY = pathlib.Path(__file__).parent / "jax_plugins" / "{name}" / "{file}"


class Plugin(plugins.DevicePlugin):
    """The library of this package, or the one that `PJRT_LIBRARY_PATH` names."""

    def library_path(self) -> str:
        return os.environ.get("PJRT_LIBRARY_PATH", str(LIBRARY))

    def configure_single_process(self) -> None:
        """Does nothing: a single process needs no configuration. torch_xla calls this method before debugging."""
"#
    )
}

/// Returns a JSON value as a Python expression.
fn python(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Bool(true) => "True".to_owned(),
        serde_json::Value::Bool(false) => "False".to_owned(),
        serde_json::Value::String(text) => python_string(text),
        other => other.to_string(),
    }
}

/// Returns a string literal. JSON's escapes are Python's too.
fn python_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_has_every_module_of_the_shared_package() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/pjrt_plugin_support");
        let mut files: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|file| file.ends_with(".py"))
            .collect();
        files.sort();
        assert_eq!(files, SUPPORT.iter().map(|(file, _)| *file).collect::<Vec<_>>());
    }
}
