//! The shared library of a wheel: its build, and the systems that can load it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::Message;
use object::{Architecture, Object, ObjectSymbol};

use super::companions::Companion;
use super::linux::Requirements;
use super::manifest::Package;
use super::smoke::venv;
use crate::process::output;

/// The packages of PyPI with which cargo builds for older versions of glibc.
const ZIG_PACKAGES: &[&str] = &["cargo-zigbuild", "ziglang"];

/// Reads the version of glibc in an argument: `2.28` is 28.
pub(super) fn glibc_minor(text: &str) -> Result<u32, String> {
    let minor = text.strip_prefix("2.").and_then(|minor| minor.parse().ok());
    minor.filter(|minor| *minor >= OLDEST_GLIBC).ok_or_else(|| {
        format!("expected a version of glibc from 2.{OLDEST_GLIBC}, such as 2.28, found {text}")
    })
}

/// Builds the plugin with cargo, and returns the path of its library.
pub(super) fn build(
    package: &Package,
    profile: &str,
    glibc: Option<u32>,
    python: &Path,
) -> Result<PathBuf, String> {
    let mut command = match glibc {
        None => {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.arg("build");
            cargo
        }
        Some(minor) => zigbuild(package, minor, python)?,
    };
    command
        .arg("--manifest-path")
        .arg(&package.manifest)
        .args(["--lib", "--profile", profile, "--message-format=json-render-diagnostics"])
        .stdout(Stdio::piped());
    output::print_error(&format!("building {} {} (profile {profile})", package.name, package.version));
    let mut child = command.spawn().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let output = child.stdout.take().ok_or("the build has no output")?;
    let mut library = None;
    for message in Message::parse_stream(std::io::BufReader::new(output)).flatten() {
        if let Message::CompilerArtifact(artifact) = message
            && artifact.target.name == package.library
        {
            let is_library = |file: &&cargo_metadata::camino::Utf8PathBuf| {
                file.extension().is_some_and(|extension| extension == "so" || extension == "dylib")
            };
            library = artifact.filenames.iter().find(is_library).map(|file| file.clone().into_std_path_buf());
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("the build of {} failed: {status}", package.name));
    }
    library.ok_or_else(|| format!("cargo built no shared library for {}", package.name))
}

/// Returns the command that builds for a version of glibc. Its tools are installed once, in the target folder.
fn zigbuild(package: &Package, minor: u32, python: &Path) -> Result<Command, String> {
    let tools = package.target_folder.join("pjrt-wheel/zig");
    if !tools.join("bin/cargo-zigbuild").exists() {
        println!("Installing {} from PyPI into {}", ZIG_PACKAGES.join(" and "), tools.display());
        venv::create(&tools, python)?;
        venv::install(&tools, ZIG_PACKAGES)?;
    }
    let target = format!("{}-unknown-linux-gnu.2.{minor}", std::env::consts::ARCH);
    let mut command = Command::new(tools.join("bin/cargo-zigbuild"));
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", tools.join("bin").display()));
    command.args(["zigbuild", "--target", &target]);
    Ok(command)
}

/// The oldest minor version of glibc 2 for which a platform tag exists.
const OLDEST_GLIBC: u32 = 17;

/// Checks a library, and returns the platform tag of the oldest system that can load it and the libraries beside it.
///
/// # Errors
///
/// Returns an error if the file is not a shared library for Linux or macOS, if it does not export `GetPjrtApi`, if it
/// exports other symbols, or if it requires a newer glibc 2 than the given minor version.
pub(super) fn tag(code: &[u8], companions: &[Companion], glibc: Option<u32>) -> Result<String, String> {
    let file =
        object::File::parse(code).map_err(|error| format!("the file is not a shared library: {error}"))?;
    let exports = exports(&file);
    if !exports.iter().any(|name| name == "GetPjrtApi") {
        return Err(
            "the library does not export GetPjrtApi; expected #[pjrt_plugin] on the impl of PjrtClient"
                .to_owned(),
        );
    }
    let others: Vec<&str> = exports.iter().map(String::as_str).filter(|name| *name != "GetPjrtApi").collect();
    if !others.is_empty() {
        return Err(format!(
            "the library exports other symbols, which can replace those of the host: {}; expected only GetPjrtApi",
            others[..others.len().min(10)].join(", ")
        ));
    }
    let machine = match file.architecture() {
        Architecture::X86_64 => "x86_64",
        Architecture::Aarch64 => "aarch64",
        other => return Err(format!("wheels for {other:?} are not supported; expected x86_64 or aarch64")),
    };
    let object::File::Elf64(elf) = &file else {
        let machine = if machine == "aarch64" { "arm64" } else { machine };
        return Ok(format!("macosx_11_0_{machine}"));
    };
    let mut requirements = Requirements::of(elf)?;
    for companion in companions {
        requirements.join(companion.requirements()?);
    }
    requirements.libraries.retain(|name| companions.iter().all(|companion| companion.name != *name));
    let tag = linux_tag(&requirements, glibc, machine)?;
    if !requirements.libraries.is_empty() {
        eprintln!(
            "note: the wheel does not contain these libraries, which the plugin loads from the user's system: {}",
            requirements.libraries.join(", ")
        );
    }
    Ok(tag)
}

/// Returns the platform tag of the oldest Linux that fulfils requirements.
fn linux_tag(requirements: &Requirements, glibc: Option<u32>, machine: &str) -> Result<String, String> {
    if !requirements.unknown.is_empty() {
        let versions = requirements.unknown.join(", ");
        if let Some(wanted) = glibc {
            return Err(format!(
                "the library requires {versions}, which systems with glibc 2.{wanted} may not have \
                 (hint: link libstdc++ and libgcc statically, or build with an older compiler)"
            ));
        }
        eprintln!("note: no manylinux tag covers {versions}; the wheel is for systems like this one");
        return Ok(format!("linux_{machine}"));
    }
    match (requirements.glibc, glibc) {
        (Some(required), Some(wanted)) if required > wanted => Err(format!(
            "the library requires a system with glibc 2.{required}; expected at most 2.{wanted} \
             (hint: a C or C++ library that it links was built for a newer system)"
        )),
        (Some(required), _) => Ok(format!("manylinux_2_{}_{machine}", required.max(OLDEST_GLIBC))),
        (None, _) => Ok(format!("linux_{machine}")),
    }
}

/// Returns the symbols that the library defines for others. Those of the linker do not count.
fn exports(file: &object::File<'_>) -> Vec<String> {
    let names = file.dynamic_symbols().filter(|symbol| symbol.is_definition()).filter_map(|symbol| {
        let name = symbol.name().ok()?;
        let name = if matches!(file, object::File::MachO64(_)) { name.strip_prefix('_')? } else { name };
        let is_linkers =
            ["_init", "_fini", "__bss_start", "_edata", "_end", "_mh_dylib_header"].contains(&name);
        (!is_linkers && !name.is_empty()).then(|| name.to_owned())
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_glibc_have_a_platform_tag() {
        assert_eq!(glibc_minor("2.28"), Ok(28));
        for wrong in ["2.5", "3.0", "28", "2.x"] {
            assert!(glibc_minor(wrong).unwrap_err().contains(wrong));
        }
    }

    #[test]
    fn the_tag_is_that_of_the_oldest_system_with_all_requirements() {
        let of = |glibc, unknown: &[&str]| Requirements {
            glibc,
            unknown: unknown.iter().map(ToString::to_string).collect(),
            libraries: Vec::new(),
        };
        let tag = |requirements: &Requirements, glibc| linux_tag(requirements, glibc, "x86_64");
        assert_eq!(tag(&of(Some(34), &[]), None).unwrap(), "manylinux_2_34_x86_64");
        assert_eq!(tag(&of(Some(2), &[]), Some(28)).unwrap(), "manylinux_2_17_x86_64");
        assert_eq!(tag(&of(None, &[]), None).unwrap(), "linux_x86_64");
        assert_eq!(tag(&of(Some(34), &["GLIBC_PRIVATE"]), None).unwrap(), "linux_x86_64");
        assert!(tag(&of(Some(34), &[]), Some(28)).unwrap_err().contains("2.34"));
        assert!(tag(&of(Some(17), &["GLIBCXX_3.4.99"]), Some(28)).unwrap_err().contains("GLIBCXX_3.4.99"));
    }

    #[test]
    fn a_file_that_is_no_plugin_is_refused() {
        assert!(tag(b"text", &[], None).unwrap_err().contains("not a shared library"));
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(tag(&program, &[], None).unwrap_err().contains("GetPjrtApi"));
    }
}
