//! The crates of the SDK that a new plugin depends on.

use std::path::{Path, PathBuf};

use super::name::Name;
use super::template::Template;

/// The origin of the SDK's crates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sdk {
    /// The published crates, of the same version as this program.
    Registry,
    /// A checkout of the repository.
    Checkout(PathBuf),
}

/// The crates of the SDK that the templates use, and the rest of their entries in the manifest.
const CRATES: &[(&str, &str)] = &[("pjrt-plugin", ", features = [\"stablehlo\"]"), ("pjrt-stablehlo", "")];

/// The crates that the tests of the templates use.
const TEST_CRATES: &[(&str, &str)] = &[("pjrt-testing", "")];

/// The build dependencies of a template with code in C++.
const BUILD_DEPENDENCIES: &str = "\n[build-dependencies]\ncc = \"1.2.62\"\n";

impl Default for Sdk {
    /// Returns the checkout from which this program was installed, or the published crates if it was installed from those.
    fn default() -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(""));
        Self::checkout(source).unwrap_or(Self::Registry)
    }
}

impl Sdk {
    /// Checks that a folder is a checkout.
    ///
    /// # Errors
    ///
    /// Returns an error if a crate is missing.
    pub(super) fn checkout(folder: &Path) -> Result<Self, String> {
        for (name, _) in CRATES.iter().chain(TEST_CRATES) {
            let manifest = folder.join(name).join("Cargo.toml");
            if !manifest.is_file() {
                return Err(format!(
                    "{} does not exist; expected the folder of a checkout of pjrt-plugin",
                    manifest.display()
                ));
            }
        }
        let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self::Checkout(folder))
    }

    /// Returns the entry of a manifest that makes a package depend on a crate of the SDK. `rest` is the end of the entry's table.
    pub(crate) fn dependency(&self, crate_name: &str, rest: &str) -> String {
        match self {
            Self::Registry => {
                format!("{crate_name} = {{ version = \"{}\"{rest} }}\n", env!("CARGO_PKG_VERSION"))
            }
            // A TOML string in single quotes has no escapes.
            Self::Checkout(folder) => {
                format!("{crate_name} = {{ path = '{}'{rest} }}\n", folder.join(crate_name).display())
            }
        }
    }

    /// Returns the manifest of a plugin.
    pub(super) fn manifest(&self, name: &Name, template: Template) -> String {
        let dependency = |(crate_name, rest): &(&str, &str)| self.dependency(crate_name, rest);
        let dependencies: String = CRATES.iter().map(dependency).collect();
        let test_dependencies: String = TEST_CRATES.iter().map(dependency).collect();
        let (build, lints) = match template.has_foreign_code() {
            true => (BUILD_DEPENDENCIES, "deny\"\n\n[lints.clippy]\nundocumented_unsafe_blocks = \"deny"),
            false => ("", "forbid"),
        };
        format!(
            r#"[package]
name = "{}"
description = "{}"
version = "0.1.0"
edition = "2024"

[lib]
name = "{}"
crate-type = ["cdylib", "rlib"]

[dependencies]
{dependencies}
[dev-dependencies]
{test_dependencies}{build}
[lints.rust]
unsafe_code = "{lints}"

# The platform in hosts, and what its Python package enables: https://github.com/pjrt-plugin/pjrt-plugin/blob/main/docs/packaging.md
[package.metadata.pjrt]
name = "{}"

# A device that is simulated in software, and dependencies such as the reader of programs, are slow without optimization.
[profile.dev]
opt-level = 1

[profile.release]
strip = "debuginfo"

# The plugin is not part of a workspace in a folder above this one.
[workspace]
"#,
            name.package,
            template.description(),
            name.platform,
            name.platform,
        )
    }
}
