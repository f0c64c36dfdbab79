//! Libraries that a wheel contains beside the plugin's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::linux::{Requirements, is_system_library};

/// A library beside the plugin's.
pub(super) struct Companion {
    /// The name of the file, by which other libraries load it.
    pub(super) name: String,
    pub(super) code: Vec<u8>,
    /// The names and contents of the files with its licenses, if it belongs to a package of the system.
    pub(super) licenses: Vec<(String, Vec<u8>)>,
}

impl Companion {
    /// Returns the requirements of the library.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not a library for Linux.
    pub(super) fn requirements(&self) -> Result<Requirements, String> {
        let file = object::File::parse(&*self.code).map_err(|error| format!("{}: {error}", self.name))?;
        match &file {
            object::File::Elf64(elf) => Requirements::of(elf),
            _ => Err(format!("{}: the file is not a 64-bit library for Linux", self.name)),
        }
    }
}

/// Reads libraries, and those that they load and that not every Linux has, in the order of their names.
///
/// # Errors
///
/// Returns an error if a library cannot be read, or if one that it loads is not installed.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Companion>, String> {
    let mut paths = BTreeMap::new();
    for file in files {
        let name = file.file_name().ok_or_else(|| format!("{}: expected a file", file.display()))?;
        paths.insert(name.to_string_lossy().into_owned(), file.clone());
        paths.extend(loaded_by(file)?);
    }
    let read = |(name, path): (String, PathBuf)| {
        let code = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let licenses = licenses_of(&path)?;
        if licenses.is_empty() && !files.contains(&path) {
            eprintln!(
                "note: {}: the library belongs to no package of the system, so the wheel has no text of its license (hint: put it \
                 into the file LICENSE-{name} beside the plugin's)",
                path.display()
            );
        }
        Ok(Companion { name, code, licenses })
    };
    paths.into_iter().map(read).collect()
}

/// Returns the files with the licenses of the package of the system that a library belongs to. The result is empty if it belongs to
/// none.
fn licenses_of(library: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let found = debian_licenses(library).or_else(|| rpm_licenses(library)).unwrap_or_default();
    let read = |(name, path): (String, PathBuf)| match std::fs::read(&path) {
        Ok(text) => Ok((name, text)),
        Err(error) => Err(format!("{}: the license of {}: {error}", path.display(), library.display())),
    };
    found.into_iter().map(read).collect()
}

/// Finds the licenses of a package of Debian, which are one file.
fn debian_licenses(library: &Path) -> Option<Vec<(String, PathBuf)>> {
    let real = library.canonicalize().ok()?;
    // The folder /lib is a link to /usr/lib. Packages may name either of them.
    let linked = real.strip_prefix("/usr").map(|rest| Path::new("/").join(rest));
    let owner = [Some(real.clone()), linked.ok()].into_iter().flatten().find_map(|path| {
        let listed = printed(Command::new("dpkg-query").arg("--search").arg(path))?;
        Some(listed.split([':', ',']).next()?.trim().to_owned())
    })?;
    let path = Path::new("/usr/share/doc").join(&owner).join("copyright");
    Some(vec![(format!("LICENSE-{owner}"), path)])
}

/// Finds the licenses of a package of a system with RPM.
fn rpm_licenses(library: &Path) -> Option<Vec<(String, PathBuf)>> {
    let real = library.canonicalize().ok()?;
    let query = |option: &str| printed(Command::new("rpm").args(["--query", option, "--file"]).arg(&real));
    let owner = query("--queryformat=%{NAME}")?;
    let named = |path: &str| {
        let path = PathBuf::from(path);
        Some((format!("LICENSE-{}-{}", owner.trim(), path.file_name()?.to_string_lossy()), path))
    };
    Some(query("--licensefiles")?.lines().filter_map(named).collect())
}

/// Returns the output of a command, or `None` if it does not exist or fails.
fn printed(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the names and paths of the libraries that a library loads directly or indirectly, except those of every Linux.
fn loaded_by(file: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let output = Command::new("ldd").arg(file).output().map_err(|error| format!("ldd: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("{}: the libraries that it loads cannot be listed: {why}", file.display()));
    }
    parse(&String::from_utf8_lossy(&output.stdout)).map_err(|error| format!("{}: {error}", file.display()))
}

/// Parses the output of `ldd`, with lines such as `libgloo.so.0 => /lib/libgloo.so.0 (0x00007ffb1aed7000)`.
fn parse(output: &str) -> Result<Vec<(String, PathBuf)>, String> {
    let mut found = Vec::new();
    for line in output.lines() {
        let Some((name, path)) = line.trim().split_once(" => ") else { continue };
        if is_system_library(name) {
            continue;
        }
        match path.rsplit_once(" (") {
            Some((path, _)) => found.push((name.to_owned(), PathBuf::from(path))),
            None => return Err(format!("it loads {name}, which is not installed")),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_every_linux_are_left_out_and_missing_ones_are_named() {
        let listed = "\tlinux-vdso.so.1 (0x1)\n\tlibvendor.so.3 => /opt/lib/libvendor.so.3 (0x2)\n\tlibc.so.6 => \
                      /lib/libc.so.6 (0x3)\n\t/lib64/ld-linux-x86-64.so.2 (0x4)\n";
        let expected = ("libvendor.so.3".to_owned(), PathBuf::from("/opt/lib/libvendor.so.3"));
        assert_eq!(parse(listed).unwrap(), [expected]);
        let error = parse("\tlibvendor.so.3 => not found\n").unwrap_err();
        assert!(error.contains("libvendor.so.3"), "{error}");
    }

    #[test]
    fn a_library_has_the_license_of_its_package() {
        let licenses = licenses_of(Path::new("/lib/x86_64-linux-gnu/libc.so.6")).unwrap();
        if Path::new("/usr/share/doc/libc6/copyright").exists() {
            let [(name, text)] = &licenses[..] else { panic!("{licenses:?}") };
            assert_eq!(name, "LICENSE-libc6");
            assert!(String::from_utf8_lossy(text).contains("LGPL"));
        }
        assert_eq!(licenses_of(Path::new("/nowhere/libvendor.so")).unwrap(), []);
    }

    #[test]
    fn a_file_that_does_not_exist_is_an_error_with_its_path() {
        let error = read(&[PathBuf::from("/nowhere/libvendor.so")]).err().unwrap();
        assert!(error.contains("/nowhere/libvendor.so"), "{error}");
    }
}
