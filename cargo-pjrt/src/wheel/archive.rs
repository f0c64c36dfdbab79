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
        let [distribution, version, tag] = [distribution, version, tag].map(str::to_owned);
        Self { distribution, version, tag, members: Vec::new() }
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

    /// Writes the wheel to a folder, from which it removes other wheels of the same distribution.
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
            let name = old.file_name().to_string_lossy().into_owned();
            if name.starts_with(&format!("{}-", self.distribution)) && name.ends_with(".whl") {
                fs::remove_file(old.path()).map_err(|error| fault(&error))?;
            }
        }
        fs::write(&path, bytes).map_err(|error| fault(&error))?;
        Ok(path)
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
