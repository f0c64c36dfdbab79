//! The manifests of the workspace.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Returns the manifests that state the version of the workspace: its own, those of its members, and that of the template of
/// new plugins.
pub(super) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![root.join("Cargo.toml")];
    for folder in [root.to_owned(), root.join("examples")] {
        for entry in
            std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
        {
            let manifest = entry?.path().join("Cargo.toml");
            if manifest.is_file() {
                found.push(manifest);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Replaces the version of a package, and of the dependencies on other packages of the workspace, which have a path.
pub(super) fn with_version(manifest: &str, current: &str, new: &str) -> String {
    let own = format!("version = \"{current}\"");
    let changed = format!("version = \"{new}\"");
    let line = |line: &str| match line {
        _ if line.trim_end() == own => line.replace(&own, &changed),
        _ if line.contains("path = \"") => line.replace(&own, &changed),
        _ => line.to_owned(),
    };
    manifest.split_inclusive('\n').map(line).collect()
}

/// Checks that a version has the form `1.2.3` and is newer than the current one.
pub(super) fn check_newer(current: &str, new: &str) -> Result<()> {
    let Some(numbers) = parsed(new) else {
        bail!("'{new}' is not a version: expected three numbers, such as 0.2.0");
    };
    if parsed(current).is_none_or(|current| numbers <= current) {
        bail!("version {new} is not newer than {current}");
    }
    Ok(())
}

fn parsed(version: &str) -> Option<[u64; 3]> {
    let numbers = version.split('.').map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_of_the_workspace_change() {
        let manifest = "[package]\nversion = \"0.1.0\"\n\n[dependencies]\na = { path = \"../a\", version = \"0.1.0\" }\nb = \"0.1.0\"\n\
                        c = { version = \"0.1.0\" }\n";
        let changed = with_version(manifest, "0.1.0", "0.2.0");
        assert_eq!(
            changed,
            "[package]\nversion = \"0.2.0\"\n\n[dependencies]\na = { path = \"../a\", version = \"0.2.0\" }\nb = \"0.1.0\"\n\
             c = { version = \"0.1.0\" }\n"
        );
    }

    #[test]
    fn versions_are_three_numbers_and_increase() {
        assert!(check_newer("0.1.0", "0.1.1").is_ok());
        assert!(check_newer("0.9.0", "0.10.0").is_ok());
        for wrong in ["0.1.0", "0.0.9", "0.2", "v0.2.0", "0.2.0-beta"] {
            assert!(check_newer("0.1.0", wrong).is_err(), "{wrong}");
        }
    }
}
