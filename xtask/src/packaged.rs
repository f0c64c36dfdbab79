//! Creates plugins as a vendor would, with `cargo pjrt new`, and builds them outside the workspace: from the
//! published form of the crates, and from the checkout.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::environment::run::run;
use crate::environment::workspace;

/// The crates of the SDK that a plugin depends on, directly or indirectly.
const CRATES: &[&str] =
    &["pjrt-plugin-sys", "pjrt-plugin-macros", "pjrt-plugin", "pjrt-stablehlo", "pjrt-testing"];

/// A plugin that was created and built.
pub(crate) struct Built {
    pub(crate) platform: &'static str,
    pub(crate) library: PathBuf,
}

/// Creates a plugin from each template, checks its format, builds it, and runs its tests.
pub(crate) fn build_new_plugins() -> Result<Vec<Built>> {
    workspace::build_dev()?;
    let folder = workspace::target().join("packaged");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let registry = folder.join("new-hello");
    new(&registry, &["--template", "hello", "--registry"])?;
    patch_published_crates(&folder, &registry.join("Cargo.toml"))?;
    let checkouts =
        ["queue", "tutorial", "mlir"].map(|template| (template, folder.join(format!("new-{template}"))));
    for (template, plugin) in &checkouts {
        new(plugin, &["--template", template])?;
    }
    for plugin in std::iter::once(&registry).chain(checkouts.iter().map(|(_, plugin)| plugin)) {
        run(workspace::cargo().args(["fmt", "--check"]).current_dir(plugin))?;
        for verb in ["build", "test"] {
            // The target folder is shared, so that common dependencies are not built again.
            run(workspace::cargo()
                .args([verb, "--quiet", "--target-dir"])
                .arg(workspace::target())
                .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
                .current_dir(plugin))?;
        }
    }
    let built = |platform| Built { platform, library: workspace::shared_library("debug", platform) };
    Ok(["new_hello", "new_queue", "new_tutorial", "new_mlir"].map(built).into())
}

/// Runs `cargo pjrt new`.
fn new(folder: &Path, options: &[&str]) -> Result<()> {
    run(Command::new(workspace::program("debug", "cargo-pjrt")).arg("new").arg(folder).args(options))
}

/// Packages the crates of the SDK, and makes a manifest use these packages instead of published ones.
fn patch_published_crates(folder: &Path, manifest: &Path) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let packages = CRATES.iter().flat_map(|name| ["--package", name]);
    run(workspace::cargo().args(["package", "--quiet", "--allow-dirty", "--no-verify"]).args(packages))?;
    let mut manifest = OpenOptions::new().append(true).open(manifest)?;
    writeln!(manifest, "\n[patch.crates-io]")?;
    for name in CRATES {
        let file = workspace::target().join(format!("package/{name}-{version}.crate"));
        // With new times: packages have times in the past, so Cargo would not build them again.
        run(Command::new("tar").arg("-xzmf").arg(&file).arg("-C").arg(folder))?;
        writeln!(manifest, "{name} = {{ path = \"../{name}-{version}\" }}")?;
    }
    Ok(())
}
