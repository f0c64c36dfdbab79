//! `cargo xtask release`: checks that the crates can be published, and changes the version of the workspace.

mod changelog;
mod manifest;

use std::fs;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::environment::run::{output, run};
use crate::environment::{tool, workspace};

/// The crates that are published, each after the crates that it depends on.
pub(crate) const CRATES: &[&str] = &[
    "pjrt-plugin-sys",
    "pjrt-plugin-macros",
    "pjrt-stablehlo",
    "pjrt-plugin",
    "pjrt-sharding",
    "pjrt-testing",
    "cargo-pjrt",
];

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    /// Build the packages of all crates without publishing them, and check licenses, sources and the compatibility of the
    /// public interfaces
    Check {
        /// Commit whose public interfaces must still work; the default is the newest tag, such as v0.1.0
        #[arg(long, value_name = "COMMIT")]
        baseline: Option<String>,
    },
    /// Change the version of all crates and begin a section of the changelog; commit and publish afterwards
    Prepare {
        /// The new version, such as 0.2.0
        version: String,
    },
}

/// Runs one step of a release.
pub(crate) fn run_step(options: &Options) -> Result<()> {
    match &options.step {
        Step::Check { baseline } => check(baseline.as_deref()),
        Step::Prepare { version } => prepare(version),
    }
}

fn check(baseline: Option<&str>) -> Result<()> {
    let packages = || CRATES.iter().flat_map(|name| ["--package", name]);
    println!("Packaging and building {}", CRATES.join(", "));
    run(workspace::cargo().args(["publish", "--quiet", "--dry-run", "--allow-dirty"]).args(packages()))?;
    println!("Checking licenses, duplicates and sources of all dependencies");
    let deny = tool::installed("cargo-deny", "0.20.2", &["--no-default-features"])?;
    run(workspace::cargo()
        .args(["deny", "check", "bans", "licenses", "sources"])
        .env("PATH", with_tool(&deny)?))?;
    let Some(baseline) = baseline.map_or_else(newest_tag, |given| Ok(Some(given.to_owned())))? else {
        println!(
            "There is no earlier release, so there is no interface to compare with; --baseline names a commit"
        );
        return Ok(());
    };
    println!("Comparing the public interfaces with those of {baseline}");
    let semver = tool::installed("cargo-semver-checks", "0.51.0", &[])?;
    // A program has no interface, and a macro crate none that the tool can read.
    let libraries = CRATES.iter().filter(|name| !["cargo-pjrt", "pjrt-plugin-macros"].contains(name));
    run(workspace::cargo()
        .args(["semver-checks", "--baseline-rev", &baseline])
        .args(libraries.flat_map(|name| ["--package", name]))
        .env("PATH", with_tool(&semver)?))
}

/// Returns `PATH` with the folder of a program in front, so that cargo finds it as a subcommand.
fn with_tool(program: &std::path::Path) -> Result<std::ffi::OsString> {
    let folder = program.parent().context("a program is in a folder")?.to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path)))?)
}

fn newest_tag() -> Result<Option<String>> {
    let tags = output(
        std::process::Command::new("git")
            .args(["tag", "--list", "v*", "--sort=-version:refname"])
            .current_dir(workspace::root()),
    )?;
    Ok(tags.lines().next().map(str::to_owned))
}

fn prepare(version: &str) -> Result<()> {
    let current = env!("CARGO_PKG_VERSION");
    manifest::check_newer(current, version)?;
    for file in manifest::files(workspace::root())? {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let changed = manifest::with_version(&text, current, version);
        if changed != text {
            fs::write(&file, changed)?;
            println!("Changed {}", file.display());
        }
    }
    let changelog = workspace::root().join("CHANGELOG.md");
    fs::write(&changelog, changelog::with_release(&fs::read_to_string(&changelog)?, version, &today()?)?)?;
    println!("Changed {}", changelog.display());
    run(workspace::cargo().args(["update", "--quiet", "--workspace"]))?;
    println!(
        "\nNext:\n  cargo xtask test && cargo xtask release check\n  git commit --all --message 'Release {version}' && git tag \
         v{version}\n  cargo publish {}",
        CRATES.iter().map(|name| format!("--package {name}")).collect::<Vec<_>>().join(" ")
    );
    Ok(())
}

fn today() -> Result<String> {
    let date = output(std::process::Command::new("date").args(["--utc", "+%Y-%m-%d"]))?;
    Ok(date.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    fn metadata() -> Value {
        let text =
            output(workspace::cargo().args(["metadata", "--no-deps", "--format-version", "1"])).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the packages of the workspace that may be published, by name.
    fn published(metadata: &Value) -> BTreeMap<&str, &Value> {
        let packages = metadata["packages"].as_array().unwrap().iter();
        packages
            .filter(|package| package["publish"].is_null())
            .map(|package| (package["name"].as_str().unwrap(), package))
            .collect()
    }

    #[test]
    fn crates_are_published_after_their_dependencies() {
        let metadata = metadata();
        let packages = published(&metadata);
        let mut listed = CRATES.to_vec();
        listed.sort_unstable();
        assert_eq!(packages.keys().copied().collect::<Vec<_>>(), listed);
        for (position, name) in CRATES.iter().enumerate() {
            for dependency in packages[name]["dependencies"].as_array().unwrap() {
                let dependency_name = dependency["name"].as_str().unwrap();
                if dependency["kind"].is_null() && dependency["path"].is_string() {
                    assert!(CRATES[..position].contains(&dependency_name), "{name} needs {dependency_name}");
                }
            }
        }
    }

    #[test]
    fn published_crates_describe_themselves_and_contain_both_licenses() {
        for (name, package) in published(&metadata()) {
            let folder = std::path::Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
            for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
                assert!(folder.join(file).is_file(), "{name} has no {file}");
            }
            for field in ["description", "license", "repository", "readme"] {
                assert!(package[field].is_string(), "{name} has no {field}");
            }
            for list in ["keywords", "categories"] {
                assert!(!package[list].as_array().unwrap().is_empty(), "{name} has no {list}");
            }
            assert!(!package["metadata"]["docs"]["rs"].is_null(), "{name} has no settings for docs.rs");
        }
    }
}
