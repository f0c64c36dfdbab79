//! The headers of upstream, from public packages, which are compared with those of this repository.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::generate::{bind, our_headers, work_folder};
use super::model::Header;
use crate::environment::run::{output, run};
use crate::environment::venv::Venv;
use crate::environment::workspace;

/// A version of the interface, and the package that contains its headers.
struct Upstream {
    /// The version of the interface.
    version: &'static str,
    package: Package,
}

/// A package that contains headers.
enum Package {
    /// A Python wheel, which contains the headers of the extensions.
    Wheel(&'static str),
    /// A crate, which contains only the main header.
    Crate { name: &'static str, version: &'static str },
}

/// The versions to compare, oldest first. The last one is the version that `pjrt-sys` declares.
const UPSTREAM: [Upstream; 3] = [
    Upstream { version: "0.54", package: Package::Crate { name: "pjrt-sys", version: "0.2.0" } },
    Upstream { version: "0.90", package: Package::Wheel("tensorflow-cpu==2.21.0") },
    Upstream { version: "0.117", package: Package::Wheel("tf-nightly==2.23.0.dev20261026") },
];

impl Upstream {
    /// Returns the include folder to which the headers are extracted.
    fn include(&self) -> PathBuf {
        work_folder().join("upstream").join(self.version).join("include")
    }
}

/// Returns the folder of the layouts, one file per version, which the test compares.
fn layouts() -> PathBuf {
    work_folder().join("upstream/layouts")
}

/// Downloads the headers that are missing.
fn fetch() -> Result<()> {
    for upstream in &UPSTREAM {
        let include = upstream.include();
        if include.exists() {
            continue;
        }
        // The headers are extracted to a temporary folder, which is renamed when it is complete, so that an
        // interrupted run leaves no incomplete folder.
        let partial = include.with_extension("partial");
        if partial.exists() {
            std::fs::remove_dir_all(&partial)?;
        }
        std::fs::create_dir_all(&partial)?;
        let fetched = match &upstream.package {
            Package::Wheel(requirement) => from_wheel(requirement, &partial),
            Package::Crate { name, version } => from_crate(name, version, &partial),
        };
        fetched.map_err(|error| {
            error.context(format!("cannot download upstream's headers of version {}", upstream.version))
        })?;
        std::fs::rename(partial, include)?;
    }
    Ok(())
}

/// Downloads a wheel and extracts the headers of the interface from it.
fn from_wheel(requirement: &str, include: &Path) -> Result<()> {
    let venv = Venv::with_requirements("upstream-headers", "")?;
    let download = include.with_extension("download");
    println!("Fetching {requirement}");
    run(venv
        .python()
        .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["--only-binary=:all:", "--implementation", "cp", "--python-version", "3.11"])
        .args(["--platform", "manylinux_2_27_x86_64", "--dest"])
        .arg(&download)
        .arg(requirement))?;
    run(venv.python().args(["-c", EXTRACT]).arg(&download).arg(include))?;
    std::fs::remove_dir_all(&download).context("cannot remove the downloaded wheel")
}

/// Extracts the headers from the only wheel in the first folder to the second folder.
const EXTRACT: &str = "
import pathlib, sys, zipfile
root = 'tensorflow/include/'
wanted = ('xla/pjrt/c/', 'xla/pjrt/extensions/', 'xla/backends/profiler/plugin/')
(wheel,) = pathlib.Path(sys.argv[1]).glob('*.whl')
archive = zipfile.ZipFile(wheel)
for name in archive.namelist():
    path = name.removeprefix(root)
    if path != name and path.endswith('.h') and path.startswith(wanted):
        target = pathlib.Path(sys.argv[2], path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(name))
";

/// Downloads a crate with cargo, and copies its main header.
fn from_crate(name: &str, version: &str, include: &Path) -> Result<()> {
    let probe = include.with_extension("crate");
    std::fs::create_dir_all(probe.join("src"))?;
    std::fs::write(probe.join("src/lib.rs"), "")?;
    std::fs::write(
        probe.join("Cargo.toml"),
        format!(
            "[package]\nname = \"probe\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{name} = \"={version}\"\n"
        ),
    )?;
    let metadata = output(
        workspace::cargo()
            .args(["metadata", "--quiet", "--format-version", "1", "--manifest-path"])
            .arg(probe.join("Cargo.toml")),
    )?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == name)
        .and_then(|package| package["manifest_path"].as_str())
        .context("cargo does not report the path of the crate")?;
    let header = PathBuf::from(manifest).with_file_name("include").join(MAIN_HEADER);
    let target = include.join(MAIN_HEADER);
    std::fs::create_dir_all(target.parent().context("the header is in a folder")?)?;
    std::fs::copy(&header, target).with_context(|| format!("cannot copy {}", header.display()))?;
    std::fs::remove_dir_all(&probe).context("cannot remove the probe")
}

/// The path of the interface's main header in upstream's source tree.
const MAIN_HEADER: &str = "xla/pjrt/c/pjrt_c_api.h";

/// Downloads the headers, writes their declarations, and runs the test that compares them.
pub(super) fn compare() -> Result<()> {
    fetch()?;
    write_layouts()?;
    run(workspace::cargo()
        .args(["test", "--quiet", "--package", "pjrt-tests", "--test", "abi", "--", "--ignored"])
        .env("PJRT_UPSTREAM_LAYOUTS", layouts()))
}

/// Runs bindgen on upstream's headers and those of this repository, and writes the declarations as JSON, one
/// file per version.
fn write_layouts() -> Result<()> {
    let folder = layouts();
    std::fs::create_dir_all(&folder)?;
    let stubs = folder.with_file_name("stubs");
    std::fs::create_dir_all(stubs.join("xla/pjrt"))?;
    std::fs::write(stubs.join("xla/pjrt/pjrt_client.h"), CLIENT_STUB)?;
    std::fs::write(stubs.join("xla/pjrt/pjrt_common.h"), "")?;
    for upstream in &UPSTREAM {
        let include = upstream.include();
        let mut headers = vec![include.join("xla/pjrt/c/pjrt_c_api.h")];
        for place in ["xla/pjrt/c", "xla/pjrt/extensions"] {
            headers.extend(extension_headers(&include.join(place))?);
        }
        let arguments: Vec<_> = ["-x", "c++", "-std=c++17", "-I"]
            .into_iter()
            .map(str::to_owned)
            .chain([stubs.display().to_string(), "-I".to_owned(), include.display().to_string()])
            .collect();
        let (_, header) = bind(&headers, &arguments)
            .with_context(|| format!("upstream's headers of version {}", upstream.version))?;
        write_layout(&folder.join(format!("{}.json", upstream.version)), &header)?;
    }
    let (_, header) = bind(&our_headers(), &[])?;
    write_layout(&folder.join("ours.json"), &header)
}

/// A replacement for the header of upstream's C++ client library. The headers of some extensions use a few of
/// its types.
const CLIENT_STUB: &str = "#pragma once
#include <cstdint>
namespace xla {
using GlobalDeviceId = int32_t;
using PjRtGlobalDeviceId = int32_t;
using CrossHostTransferKey = int64_t;
struct PjRtCrossHostRecvNotifier;
struct PjRtBuffer { struct RemoteSendCallback; };
}
";

/// Returns the headers of extensions in a folder and its subfolders.
fn extension_headers(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut headers = Vec::new();
    if !folder.exists() {
        return Ok(headers);
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            headers.extend(extension_headers(&path)?);
        } else if path.to_string_lossy().ends_with("_extension.h")
            && !path.components().any(|part| part.as_os_str() == "abi_version")
        {
            headers.push(path);
        }
    }
    headers.sort();
    Ok(headers)
}

/// Writes the declarations of one version.
fn write_layout(path: &Path, header: &Header) -> Result<()> {
    Ok(std::fs::write(path, serde_json::to_string_pretty(header)?)?)
}
