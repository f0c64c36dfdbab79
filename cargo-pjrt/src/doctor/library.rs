//! The library's file: its format, its architecture, and what it needs of the system.

use std::path::Path;
use std::process::Command;

use object::read::elf::ElfFile64;
use object::{Architecture, Endianness, Object, ObjectSymbol};

use super::finding::{Finding, Level};
use crate::wheel::linux::Requirements;

/// The entry point of plugins.
const ENTRY: &str = "GetPjrtApi";

/// Examines the file, without loading it.
pub(super) fn findings(path: &Path) -> Vec<Finding> {
    let data = match std::fs::read(path) {
        Ok(data) => data,
        Err(error) => {
            return vec![Finding::problem(
                format!("the file cannot be read: {error}"),
                "pass the path of the shared library, such as target/release/libmy_plugin.so",
            )];
        }
    };
    let file = match object::File::parse(&*data) {
        Ok(file) => file,
        Err(error) => {
            return vec![Finding::problem(
                format!("the file is not a shared library: {error}"),
                "build the plugin with crate-type = [\"cdylib\"], and pass the .so file",
            )];
        }
    };
    let mut findings = vec![architecture(&file)];
    findings.push(entry(&file));
    if let object::File::Elf64(elf) = &file {
        findings.extend(needs(path, elf));
    }
    if findings.iter().all(|finding| finding.level == Level::Ok) {
        let size = data.len() as f64 / (1 << 20) as f64;
        findings.insert(0, Finding::ok(format!("a shared library of {size:.1} MiB")));
    }
    findings
}

fn architecture(file: &object::File<'_>) -> Finding {
    let name = match file.architecture() {
        Architecture::X86_64 => "x86_64".to_owned(),
        Architecture::Aarch64 => "aarch64".to_owned(),
        other => format!("{other:?}"),
    };
    let (machine, system) = (std::env::consts::ARCH, std::env::consts::OS);
    let format = match file.format() {
        object::BinaryFormat::Elf => "linux",
        object::BinaryFormat::MachO => "macos",
        _ => "windows",
    };
    if (name.as_str(), format) == (machine, system) {
        return Finding::ok(format!("built for {name}, as this machine is"));
    }
    Finding::problem(
        format!("built for {format} on {name}, but this machine is {system} on {machine}"),
        format!("build the plugin for {machine}, or run it on {name}"),
    )
}

fn entry(file: &object::File<'_>) -> Finding {
    let has_entry = |symbol: object::Symbol<'_, '_>| {
        symbol.is_definition() && symbol.name().is_ok_and(|name| name.trim_start_matches('_') == ENTRY)
    };
    if file.dynamic_symbols().any(has_entry) {
        return Finding::ok(format!("exports {ENTRY}"));
    }
    Finding::problem(
        format!("does not export {ENTRY}, so no host can use it as a plugin"),
        "add #[pjrt_plugin] to the impl of PjrtClient; in C++, declare the function extern \"C\" with default visibility",
    )
}

/// Finds the shared libraries and the versions of symbols that this system lacks.
fn needs(path: &Path, elf: &ElfFile64<'_, Endianness>) -> Vec<Finding> {
    let mut findings = missing(path);
    let Ok(requirements) = Requirements::of(elf) else { return findings };
    let Some(required) = requirements.glibc else { return findings };
    match system_glibc() {
        Some(found) if found < required => findings.push(Finding::problem(
            format!("needs glibc 2.{required}, but this system has 2.{found}"),
            format!("build for an older glibc: cargo pjrt wheel --glibc 2.{found}, or build on this system"),
        )),
        Some(found) => {
            findings.push(Finding::ok(format!("needs glibc 2.{required}; this system has 2.{found}")))
        }
        None => {}
    }
    findings
}

/// Returns the minor version of this system's glibc 2.
fn system_glibc() -> Option<u32> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().strip_prefix("glibc 2.")?.split('.').next()?.parse().ok()
}

/// Returns the shared libraries and versions that the system's loader does not find.
fn missing(path: &Path) -> Vec<Finding> {
    let Ok(path) = path.canonicalize() else { return Vec::new() };
    let Ok(output) = Command::new("ldd").arg(path).output() else { return Vec::new() };
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    missing_in(&text)
}

/// Reads the output of `ldd`.
fn missing_in(text: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for line in text.lines().map(str::trim) {
        let finding = if let Some(name) = line.strip_suffix(" => not found") {
            Finding::problem(
                format!("needs the shared library {name}, which this system does not have"),
                format!("install the package that contains {name}, or add its folder to LD_LIBRARY_PATH"),
            )
        } else if let Some((_, version)) = line.split_once(": version `")
            && let Some((version, _)) = version.split_once("' not found")
        {
            Finding::problem(
                format!("needs {version} of a system library, which is newer than this system's"),
                "build on an older system, or with cargo pjrt wheel --glibc 2.N",
            )
        } else {
            continue;
        };
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_libraries_and_versions_are_named_once() {
        let text = "\
./p.so: /lib/libc.so.6: version `GLIBC_2.99' not found (required by ./p.so)
./p.so: /lib/libc.so.6: version `GLIBC_2.99' not found (required by libother.so)
\tlinux-vdso.so.1 (0x00007ffd)
\tlibvendor.so.3 => not found
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)";
        let found = missing_in(text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].message.contains("GLIBC_2.99") && found[1].message.contains("libvendor.so.3"));
        assert!(found.iter().all(|finding| finding.level == Level::Problem && !finding.fix.is_empty()));
    }

    #[test]
    fn a_file_that_is_no_library_is_a_problem() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(findings(&source)[0].message.contains("not a shared library"));
        assert!(findings(Path::new("/no/such.so"))[0].message.contains("cannot be read"));
        let program = std::env::current_exe().unwrap();
        let found = findings(&program);
        assert!(
            found.iter().any(|finding| finding.message.contains("does not export GetPjrtApi")),
            "{found:?}"
        );
    }
}
