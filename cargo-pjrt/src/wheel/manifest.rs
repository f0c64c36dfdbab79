//! The package of a plugin, as its manifest describes it.

use std::path::{Path, PathBuf};

use cargo_metadata::{CrateType, Metadata, MetadataCommand, semver::Version};
use serde::Deserialize;

/// A package with a plugin.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: Version,
    pub(super) description: Option<String>,
    pub(super) license: Option<String>,
    pub(super) repository: Option<String>,
    pub(super) readme: Option<PathBuf>,
    /// The folders that may contain files with licenses: that of the package, and that of its workspace.
    pub(super) license_folders: Vec<PathBuf>,
    pub(super) manifest: PathBuf,
    pub(super) target_folder: PathBuf,
    /// The name of the library target.
    pub(super) library: String,
    pub(super) settings: Settings,
}

/// The table `[package.metadata.pjrt]` of a plugin's manifest. All entries are optional.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Settings {
    /// The name of the platform in hosts; by default, the name of the library without `_pjrt` at the end.
    pub(super) name: String,
    /// The name of the wheel; by default, the name of the package.
    pub(super) distribution: Option<String>,
    /// The folder with the plugin's own package for JAX, instead of a generated one.
    pub(super) jax_package: Option<PathBuf>,
    /// The README of the wheel; by default, that of the package.
    pub(super) readme: Option<PathBuf>,
    /// The packages from PyPI that the plugin needs, such as its compiler, as requirements of pip.
    pub(super) requires: Vec<String>,
    pub(super) jax: Jax,
}

/// The table `[package.metadata.pjrt.jax]`: arguments of `JaxPlugin`, which describes them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Jax {
    pub(super) priority: Option<i64>,
    pub(super) options: serde_json::Map<String, serde_json::Value>,
    pub(super) callbacks: bool,
    pub(super) multi_process: bool,
    pub(super) similar_platform: Option<String>,
    pub(super) whole_functions: Vec<String>,
    pub(super) sharding_inspection: bool,
}

/// The keywords of Python in lowercase, which cannot be names of modules in an `import`.
const KEYWORDS: &[&str] = &[
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not",
    "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The lines to add to a manifest whose package is not a shared library.
const CDYLIB: &str = "[lib]\ncrate-type = [\"cdylib\"]";

impl Package {
    /// Reads the package with a name, or the package of the manifest.
    ///
    /// # Errors
    ///
    /// Returns an error if cargo cannot read the manifest, if there is no such package, if it has no library of type
    /// `cdylib`, or if its table `[package.metadata.pjrt]` is invalid.
    pub(super) fn read(manifest: Option<&Path>, name: Option<&str>) -> Result<Self, String> {
        let mut command = MetadataCommand::new();
        if let Some(manifest) = manifest {
            command.manifest_path(manifest);
        }
        let metadata = command.no_deps().exec().map_err(|error| {
            format!(
                "{}\n(hint: change to the folder of the plugin's package, or name its manifest with --manifest-path; \
                 `cargo pjrt new my-chip` creates a package)",
                error.to_string().trim_end()
            )
        })?;
        let package = select(&metadata, manifest, name)?;
        let manifest = package.manifest_path.clone().into_std_path_buf();
        let library = package.targets.iter().find(|target| target.crate_types.contains(&CrateType::CDyLib));
        let library = library.ok_or_else(|| {
            format!("{}: the package has no shared library; add\n{CDYLIB}", manifest.display())
        })?;
        let folder = manifest.parent().map(Path::to_owned).unwrap_or_default();
        let settings = settings(&package.metadata, &library.name, &folder)
            .map_err(|error| format!("{}: {error}", manifest.display()))?;
        let distribution = settings.distribution.as_deref().unwrap_or(&package.name);
        if !is_distribution(distribution) {
            return Err(format!(
                "{}: the wheel is called '{distribution}'; expected ASCII letters, digits, '-', '_' and '.', \
                 with a letter or digit at both ends: set `distribution` in [package.metadata.pjrt]",
                manifest.display()
            ));
        }
        let readme = package.readme.as_ref().map(|readme| folder.join(readme));
        Ok(Self {
            name: package.name.to_string(),
            version: package.version.clone(),
            description: package.description.clone(),
            license: package.license.clone(),
            repository: package.repository.clone(),
            readme: settings.readme.clone().or(readme),
            license_folders: vec![folder, metadata.workspace_root.clone().into_std_path_buf()],
            manifest,
            target_folder: metadata.target_directory.clone().into_std_path_buf(),
            library: library.name.clone(),
            settings,
        })
    }

    /// Returns the name of the wheel.
    pub(super) fn distribution(&self) -> &str {
        self.settings.distribution.as_deref().unwrap_or(&self.name)
    }

    /// Returns the file name of the library.
    pub(super) fn library_file(&self) -> String {
        let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        format!("{prefix}{}{suffix}", self.library)
    }
}

/// Returns the package with a name, or else that of the manifest, or else the only one of the workspace.
fn select<'a>(
    metadata: &'a Metadata,
    manifest: Option<&Path>,
    name: Option<&str>,
) -> Result<&'a cargo_metadata::Package, String> {
    let named = |name: &str| metadata.packages.iter().find(|package| package.name == name);
    let found = match (name, metadata.packages.as_slice()) {
        (Some(name), _) => named(name),
        (None, [package]) => Some(package),
        (None, packages) => {
            let manifest = nearest_manifest(manifest);
            packages.iter().find(|package| Some(package.manifest_path.as_std_path()) == manifest.as_deref())
        }
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
        let names = names.join(", ");
        match name {
            Some(name) => format!("the workspace has no package '{name}'; it has {names}"),
            None => format!("this is a workspace of several packages; select one with --package: {names}"),
        }
    })
}

/// Returns the path of a manifest, or of the one that cargo finds from the current folder, without symbolic links.
fn nearest_manifest(manifest: Option<&Path>) -> Option<PathBuf> {
    let manifest = match manifest {
        Some(manifest) => manifest.to_owned(),
        None => {
            let folder = std::env::current_dir().ok()?;
            folder.ancestors().map(|folder| folder.join("Cargo.toml")).find(|manifest| manifest.exists())?
        }
    };
    manifest.canonicalize().ok()
}

/// Returns whether a package can have this name (PEP 508).
fn is_distribution(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars().all(is_inner)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
}

/// Reads the settings, completes their names, and makes their paths absolute.
fn settings(metadata: &serde_json::Value, library: &str, folder: &Path) -> Result<Settings, String> {
    let mut settings = match metadata.get("pjrt") {
        None => Settings::default(),
        Some(table) => serde_json::from_value(table.clone())
            .map_err(|error| format!("[package.metadata.pjrt] is invalid: {error}"))?,
    };
    if settings.name.is_empty() {
        settings.name = library.strip_suffix("_pjrt").unwrap_or(library).to_owned();
    }
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_word =
        settings.name.chars().all(is_name) && !settings.name.starts_with(|c: char| c.is_ascii_digit());
    if !is_word || KEYWORDS.contains(&settings.name.as_str()) {
        return Err(format!(
            "the platform is called '{}', which is not the name of a Python module; set `name` in [package.metadata.pjrt] to \
             one of lowercase letters, digits and '_', and PjrtClient::PLATFORM_NAME to the same",
            settings.name
        ));
    }
    for path in [&mut settings.jax_package, &mut settings.readme].into_iter().flatten() {
        *path = folder.join(&*path);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(metadata: &serde_json::Value) -> Result<Settings, String> {
        settings(metadata, "mine_pjrt", Path::new("/chip"))
    }

    #[test]
    fn the_platform_has_the_name_of_the_library_unless_it_is_set() {
        assert_eq!(read(&serde_json::Value::Null).unwrap().name, "mine");
        let named = json!({"pjrt": {"name": "chip", "jax-package": "python", "jax": {"priority": 10}}});
        let named = read(&named).unwrap();
        assert_eq!((named.name.as_str(), named.jax.priority), ("chip", Some(10)));
        assert_eq!(named.jax_package.unwrap(), Path::new("/chip/python"));
    }

    #[test]
    fn misspelled_settings_and_names_that_python_refuses_are_errors() {
        assert!(read(&json!({"pjrt": {"prio": 1}})).unwrap_err().contains("`prio`"));
        assert!(read(&json!({"pjrt": {"jax": {"prio": 1}}})).unwrap_err().contains("`prio`"));
        for name in ["my-chip", "1chip", "Chip", "class"] {
            assert!(read(&json!({"pjrt": {"name": name}})).unwrap_err().contains(name));
        }
    }

    #[test]
    fn distributions_have_the_names_that_pip_accepts() {
        for name in ["chip", "My.Chip", "a", "chip-2_x"] {
            assert!(is_distribution(name), "{name}");
        }
        for name in ["", "-chip", "chip_", "my chip", "chïp"] {
            assert!(!is_distribution(name), "{name}");
        }
    }

    #[test]
    fn a_manifest_selects_its_package_in_a_workspace_of_several() {
        // This package is a member of such a workspace.
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let metadata = MetadataCommand::new().manifest_path(&manifest).no_deps().exec().unwrap();
        assert!(metadata.packages.len() > 1);
        assert_eq!(select(&metadata, Some(&manifest), None).unwrap().name, env!("CARGO_PKG_NAME"));
        let root = metadata.workspace_root.join("Cargo.toml");
        assert!(select(&metadata, Some(root.as_std_path()), None).unwrap_err().contains("--package"));
    }
}
