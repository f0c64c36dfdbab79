//! The file format of wheels.

use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{DateTime, ZipWriter};

/// A wheel in memory: a ZIP archive whose last member lists all others with their hashes.
pub(super) struct Archive {
    distribution: String,
    version: String,
    tag: String,
    members: Vec<Member>,
}

struct Member {
    name: String,
    data: Vec<u8>,
    permissions: u32,
}

impl Archive {
    pub(super) fn new(distribution: &str, version: &str, tag: &str) -> Self {
        let [version, tag] = [version, tag].map(str::to_owned);
        Self { distribution: in_file_names(distribution), version, tag, members: Vec::new() }
    }

    pub(super) fn add(&mut self, name: &str, data: impl Into<Vec<u8>>) {
        self.members.push(Member { name: name.to_owned(), data: data.into(), permissions: 0o644 });
    }

    pub(super) fn add_library(&mut self, name: &str, data: Vec<u8>) {
        self.members.push(Member { name: name.to_owned(), data, permissions: 0o755 });
    }

    /// Adds a file of the metadata.
    pub(super) fn add_metadata(&mut self, name: &str, data: impl Into<Vec<u8>>) {
        let name = self.metadata_path(name);
        self.add(&name, data);
    }

    fn metadata_path(&self, name: &str) -> String {
        format!("{}-{}.dist-info/{name}", self.distribution, self.version)
    }

    /// Writes the wheel to a folder. It replaces earlier builds of the same version for the same machine, which can have
    /// another tag; wheels of other versions and machines stay there.
    pub(super) fn write(mut self, folder: &Path) -> Result<PathBuf, String> {
        self.add_metadata(
            "WHEEL",
            format!(
                "Wheel-Version: 1.0\nGenerator: cargo-pjrt {}\nRoot-Is-Purelib: false\nTag: {}\n",
                env!("CARGO_PKG_VERSION"),
                self.tag
            ),
        );
        let list = self.metadata_path("RECORD");
        let hash = |data: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(data));
        let line = |member: &Member| {
            format!("{},sha256={},{}\n", member.name, hash(&member.data), member.data.len())
        };
        let mut lines: String = self.members.iter().map(line).collect();
        lines.push_str(&format!("{list},,\n"));
        self.add(&list, lines);

        let path = folder.join(format!("{}-{}-{}.whl", self.distribution, self.version, self.tag));
        let fault = |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", path.display());
        let bytes = self.zip().map_err(|error| fault(&error))?;
        fs::create_dir_all(folder).map_err(|error| fault(&error))?;
        for old in fs::read_dir(folder).map_err(|error| fault(&error))?.flatten() {
            if self.is_earlier_build(&old.file_name().to_string_lossy()) {
                fs::remove_file(old.path()).map_err(|error| fault(&error))?;
            }
        }
        fs::write(&path, bytes).map_err(|error| fault(&error))?;
        Ok(path)
    }

    /// Returns whether a file is a wheel of the same version for the same system and machine. Tags begin with the system,
    /// and its version follows: `manylinux_2_34_x86_64`.
    fn is_earlier_build(&self, file: &str) -> bool {
        let system_and_machine = |tag: &str| {
            let (system, version_and_machine) = tag.split_once('_')?;
            let system = system.trim_start_matches("many").to_owned();
            let machine = version_and_machine.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
            Some((system, machine.to_owned()))
        };
        let start = format!("{}-{}-py3-none-", self.distribution, self.version);
        let tag = file.strip_prefix(&start).and_then(|rest| rest.strip_suffix(".whl"));
        let own = self.tag.strip_prefix("py3-none-").and_then(system_and_machine);
        own.is_some() && tag.and_then(system_and_machine) == own
    }

    fn zip(&self) -> zip::result::ZipResult<Vec<u8>> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for Member { name, data, permissions } in &self.members {
            // The time is constant, so that builds are reproducible.
            let options = SimpleFileOptions::default()
                .last_modified_time(DateTime::default())
                .unix_permissions(*permissions);
            zip.start_file(name, options)?;
            zip.write_all(data)?;
        }
        Ok(zip.finish()?.into_inner())
    }
}

/// Returns the form of a distribution's name that file names contain (binary distribution format, "Escaping and Unicode").
fn in_file_names(distribution: &str) -> String {
    let words = distribution.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_replaces_only_those_of_its_version_and_machine() {
        let archive = Archive::new("my-chip", "0.2.0", "py3-none-manylinux_2_28_x86_64");
        for (tag, expected) in [
            ("my_chip-0.2.0-py3-none-manylinux_2_34_x86_64.whl", true),
            ("my_chip-0.2.0-py3-none-linux_x86_64.whl", true),
            ("my_chip-0.2.0-py3-none-manylinux_2_28_aarch64.whl", false),
            ("my_chip-0.1.0-py3-none-manylinux_2_28_x86_64.whl", false),
            ("my_chip-0.2.0-py3-none-macosx_11_0_x86_64.whl", false),
            ("my_chip_tools-0.2.0-py3-none-linux_x86_64.whl", false),
            ("notes.txt", false),
        ] {
            assert_eq!(archive.is_earlier_build(tag), expected, "{tag}");
        }
    }

    #[test]
    fn file_names_contain_the_normalized_name() {
        for (name, expected) in [("My.Chip", "my_chip"), ("my--chip_x", "my_chip_x"), ("chip", "chip")] {
            assert_eq!(in_file_names(name), expected);
        }
    }
}
