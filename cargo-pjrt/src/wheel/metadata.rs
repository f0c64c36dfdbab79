//! The metadata of wheels, in the format of the Python packaging specifications.

use std::collections::BTreeMap;
use std::fs;

use cargo_metadata::semver::{Prerelease, Version};

use super::archive::Archive;
use super::companions::Companion;
use super::manifest::Package;

/// The releases of the hosts that a plugin supports. Each host is optional, because a plugin works with any of them.
const EXTRAS: &[(&str, &str)] = &[("jax", "jax>=0.4.30"), ("torch-xla", "torch_xla>=2.9")];

/// Adds the metadata, the entry points, and the licenses of a package and of the libraries beside the plugin's.
///
/// # Errors
///
/// Returns an error if a file cannot be read, or if a requirement is not one of pip.
pub(super) fn add(
    package: &Package,
    companions: &[Companion],
    version: &str,
    archive: &mut Archive,
) -> Result<(), String> {
    let mut lines = vec![
        "Metadata-Version: 2.4".to_owned(),
        format!("Name: {}", package.distribution()),
        format!("Version: {version}"),
        "Requires-Python: >=3.10".to_owned(),
    ];
    let line = |key: &str, value: &Option<String>| {
        // A line break would end the entry.
        let value = value.as_ref()?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(format!("{key}: {value}"))
    };
    lines.extend(line("Summary", &package.description));
    lines.extend(line("License-Expression", &package.license.as_deref().map(license_expression)));
    lines.extend(line("Project-URL", &package.repository.as_ref().map(|url| format!("Repository, {url}"))));
    let companions = companions.iter().flat_map(|companion| companion.licenses.iter().cloned());
    // Libraries of one package have the same licenses.
    for (file, text) in licenses(package)?.into_iter().chain(companions).collect::<BTreeMap<_, _>>() {
        lines.push(format!("License-File: {file}"));
        archive.add_metadata(&format!("licenses/{file}"), text);
    }
    for requirement in &package.settings.requires {
        if requirement.trim().is_empty() || requirement.contains(['\n', '\r']) {
            return Err(format!(
                "{}: `requires` in [package.metadata.pjrt] contains {requirement:?}; expected a requirement of pip, such as \
                 \"mychip-compiler>=2.1\"",
                package.manifest.display()
            ));
        }
        lines.push(format!("Requires-Dist: {}", requirement.trim()));
    }
    for (extra, requirement) in EXTRAS {
        lines.push(format!("Provides-Extra: {extra}"));
        lines.push(format!("Requires-Dist: {requirement}; extra == \"{extra}\""));
    }
    let mut text = lines.join("\n");
    if let Some(readme) = &package.readme {
        let readme = fs::read_to_string(readme)
            .map_err(|error| format!("cannot read {}: {error}", readme.display()))?;
        text.push_str(&format!("\nDescription-Content-Type: text/markdown\n\n{readme}"));
    }
    archive.add_metadata("METADATA", format!("{}\n", text.trim_end()));
    let name = &package.settings.name;
    archive.add_metadata(
        "entry_points.txt",
        format!("[jax_plugins]\n{name} = jax_plugins.{name}\n\n[torch_xla.plugins]\n{name} = torch_xla_{name}:Plugin\n"),
    );
    Ok(())
}

/// Returns an SPDX expression. Old manifests separate alternatives with a slash, which cargo accepts and PyPI refuses.
fn license_expression(license: &str) -> String {
    license.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

/// Returns the files with licenses of the package, or, if it has none, of its workspace.
fn licenses(package: &Package) -> Result<Vec<(String, Vec<u8>)>, String> {
    for folder in &package.license_folders {
        let fault = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_license =
                ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|start| name.starts_with(start));
            if is_license && entry.path().is_file() {
                files.push((name, fs::read(entry.path()).map_err(fault)?));
            }
        }
        if !files.is_empty() {
            files.sort();
            return Ok(files);
        }
    }
    Ok(Vec::new())
}

/// Converts a version of a crate to one of a Python package (PEP 440).
///
/// # Errors
///
/// Returns an error if the pre-release part is not alpha, beta, rc or dev with a number, which are those of Python.
pub(super) fn python_version(version: &Version) -> Result<String, String> {
    let mut text = format!("{}.{}.{}", version.major, version.minor, version.patch);
    if version.pre != Prerelease::EMPTY {
        let (stage, number) = version.pre.split_once('.').unwrap_or((version.pre.as_str(), "0"));
        let stage = match stage {
            "alpha" | "a" => "a",
            "beta" | "b" => "b",
            "rc" => "rc",
            "dev" => ".dev",
            _ => "",
        };
        if stage.is_empty() || number.parse::<u32>().is_err() {
            return Err(format!(
                "version {version} has no equivalent for Python packages; expected a pre-release such as alpha.1, beta.1, rc.1 or dev.1"
            ));
        }
        text.push_str(&format!("{stage}{number}"));
    }
    if !version.build.is_empty() {
        text.push_str(&format!("+{}", version.build.replace('-', ".")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licenses_are_spdx_expressions() {
        for license in ["MIT/Apache-2.0", "MIT / Apache-2.0", "MIT OR Apache-2.0"] {
            assert_eq!(license_expression(license), "MIT OR Apache-2.0");
        }
    }

    #[test]
    fn versions_are_those_that_pip_accepts() {
        let python = |version: &str| python_version(&version.parse().unwrap());
        for (version, expected) in [
            ("0.1.0", "0.1.0"),
            ("1.2.3-alpha.4", "1.2.3a4"),
            ("1.2.3-beta", "1.2.3b0"),
            ("1.2.3-rc.1", "1.2.3rc1"),
            ("1.2.3-dev.7+linux-x86", "1.2.3.dev7+linux.x86"),
        ] {
            assert_eq!(python(version).unwrap(), expected);
        }
        assert!(python("1.0.0-nightly").unwrap_err().contains("1.0.0-nightly"));
    }
}
