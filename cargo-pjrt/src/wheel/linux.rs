//! The requirements of a shared library for Linux.

use object::Endianness;
use object::elf::DT_NEEDED;
use object::read::elf::{Dyn, ElfFile64, FileHeader};

/// The requirements of a library.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Requirements {
    /// The minor version of the oldest glibc 2 whose systems have everything that is required of system libraries, or
    /// `None` if nothing is.
    pub(crate) glibc: Option<u32>,
    /// The versions of symbols for which no platform tag is known, such as those of a C++ compiler that is too new.
    pub(crate) unknown: Vec<String>,
    /// The libraries that not every Linux has.
    pub(crate) libraries: Vec<String>,
}

/// The libraries that platform tags promise, by the start of their names. Those of glibc have its versions.
const SYSTEM_LIBRARIES: &[&str] = &[
    "ld-linux",
    "libanl.so.1",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libmvec.so.1",
    "libnsl.so.1",
    "libpthread.so.0",
    "libresolv.so.2",
    "librt.so.1",
    "libstdc++.so.6",
    "libutil.so.1",
];

/// The newest versions of libstdc++ and libgcc on systems with a minor version of glibc, by the policies of manylinux.
const COMPILER_VERSIONS: &[(&str, &[u32], u32)] = &[
    ("GLIBCXX_", &[3, 4, 19], 17),
    ("GLIBCXX_", &[3, 4, 22], 24),
    ("GLIBCXX_", &[3, 4, 24], 27),
    ("GLIBCXX_", &[3, 4, 28], 31),
    ("GLIBCXX_", &[3, 4, 29], 34),
    ("GLIBCXX_", &[3, 4, 30], 35),
    ("GLIBCXX_", &[3, 4, 33], 39),
    ("CXXABI_", &[1, 3, 7], 17),
    ("CXXABI_", &[1, 3, 10], 24),
    ("CXXABI_", &[1, 3, 11], 27),
    ("CXXABI_", &[1, 3, 12], 31),
    ("CXXABI_", &[1, 3, 13], 34),
    ("CXXABI_", &[1, 3, 15], 39),
    ("GCC_", &[4, 7, 0], 17),
    ("GCC_", &[7, 0, 0], 27),
    ("GCC_", &[12, 0, 0], 35),
    ("GCC_", &[14, 0, 0], 39),
];

/// The version of glibc that supports relative relocations in packed form, and its name in a library that has these.
const PACKED_RELOCATIONS: (&str, u32) = ("GLIBC_ABI_DT_RELR", 36);

impl Requirements {
    /// Reads the requirements of a library.
    ///
    /// # Errors
    ///
    /// Returns an error if the library's tables are invalid.
    pub(crate) fn of(elf: &ElfFile64<'_, Endianness>) -> Result<Self, String> {
        let fault =
            |error: object::read::Error| format!("the library's table of versions is invalid: {error}");
        let (endian, data) = (elf.endian(), elf.data());
        let sections = elf.elf_header().sections(endian, data).map_err(fault)?;
        let mut found = Self::default();
        if let Some((entries, strings)) = sections.dynamic(endian, data).map_err(fault)? {
            let strings = sections.strings(endian, data, strings).map_err(fault)?;
            for entry in entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED) {
                let name = entry.val32(endian).and_then(|offset| strings.get(offset).ok());
                found.add_library(&String::from_utf8_lossy(
                    name.ok_or("the library's list of libraries is invalid")?,
                ));
            }
        }
        if let Some((mut libraries, strings)) = sections.gnu_verneed(endian, data).map_err(fault)? {
            let strings = sections.strings(endian, data, strings).map_err(fault)?;
            while let Some((library, mut versions)) = libraries.next().map_err(fault)? {
                let is_system = is_system_library(&String::from_utf8_lossy(
                    library.file(endian, strings).map_err(fault)?,
                ));
                while let Some(version) = versions.next().map_err(fault)? {
                    if is_system {
                        found.add_version(&String::from_utf8_lossy(
                            version.name(endian, strings).map_err(fault)?,
                        ));
                    }
                }
            }
        }
        Ok(found)
    }

    /// Adds the requirements of another library.
    pub(crate) fn join(&mut self, other: Self) {
        self.glibc = self.glibc.max(other.glibc);
        self.unknown.extend(other.unknown);
        self.libraries.extend(other.libraries);
    }

    fn add_library(&mut self, name: &str) {
        if !is_system_library(name) {
            self.libraries.push(name.to_owned());
        }
    }

    fn add_version(&mut self, name: &str) {
        match glibc_with(name) {
            Some(minor) => self.glibc = self.glibc.max(Some(minor)),
            None => self.unknown.push(name.to_owned()),
        }
    }
}

/// Returns whether platform tags promise a library of this name.
pub(crate) fn is_system_library(name: &str) -> bool {
    SYSTEM_LIBRARIES.iter().any(|library| name.starts_with(library))
}

/// Returns the minor version of the oldest glibc 2 whose systems have a version of symbols, if a platform tag covers it.
fn glibc_with(version: &str) -> Option<u32> {
    if version == PACKED_RELOCATIONS.0 {
        return Some(PACKED_RELOCATIONS.1);
    }
    if let Some(glibc) = version.strip_prefix("GLIBC_") {
        return match numbers(glibc)?.as_slice() {
            [2, minor, ..] => Some(*minor),
            _ => None,
        };
    }
    let covers = |&&(prefix, newest, _): &&(&str, &[u32], u32)| {
        version.strip_prefix(prefix).and_then(numbers).is_some_and(|version| version.as_slice() <= newest)
    };
    COMPILER_VERSIONS.iter().find(covers).map(|&(.., minor)| minor)
}

fn numbers(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_a_system_library_needs_the_systems_that_have_it() {
        for (version, expected) in [
            ("GLIBC_2.2.5", Some(2)),
            ("GLIBC_2.34", Some(34)),
            ("GLIBC_ABI_DT_RELR", Some(36)),
            ("GLIBCXX_3.4", Some(17)),
            ("GLIBCXX_3.4.29", Some(34)),
            ("CXXABI_1.3.8", Some(24)),
            ("GCC_3.0", Some(17)),
            ("GCC_12.0.0", Some(35)),
            // These belong to one build of glibc, to a version that no tag covers, and to a part that is not a number.
            ("GLIBC_PRIVATE", None),
            ("GLIBCXX_3.4.99", None),
            ("CXXABI_TM_1", None),
        ] {
            assert_eq!(glibc_with(version), expected, "{version}");
        }
    }

    #[test]
    fn libraries_that_not_every_system_has_are_listed() {
        let mut found = Requirements::default();
        for name in ["libc.so.6", "ld-linux-x86-64.so.2", "libvendor.so.3", "libstdc++.so.6"] {
            found.add_library(name);
        }
        assert_eq!(found.libraries, ["libvendor.so.3"]);
    }
}
