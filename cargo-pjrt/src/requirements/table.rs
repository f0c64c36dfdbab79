//! Rules for a plugin's function table that `inspect` and the conformance kit share.

use pjrt_sys::SLOTS;

use pjrt_testing::host::{ExtensionInfo, Plugin};

/// The oldest minor version that all hosts accept.
pub(crate) const OLDEST_MINOR: i32 = 29;

/// The largest credible size of a table. No version of the interface comes close to it.
const LARGEST_TABLE: usize = 64 << 10;

/// The minimum number of slots of each minor version, for the versions that hosts are known to use. For 0.54
/// and 0.55 there are headers with 100 slots, and plugins of XLA with 96.
const SLOTS_BY_MINOR: &[(i32, usize)] = &[
    (54, 96),
    (57, 101),
    (64, 104),
    (67, 112),
    (70, 113),
    (76, 115),
    (85, 122),
    (90, 128),
    (100, 133),
    (112, 138),
];

/// Returns the minimum number of slots of a version of the interface.
pub(crate) fn slots_of(minor: i32) -> usize {
    let known = SLOTS_BY_MINOR.iter().rev().find(|(since, _)| *since <= minor);
    known.map_or(90, |(_, slots)| *slots)
}

/// Checks that hosts accept the major version.
pub(crate) fn check_major((major, minor): (i32, i32)) -> Result<(), String> {
    if major == 0 {
        return Ok(());
    }
    Err(format!("the plugin reports version {major}.{minor} of the C API; hosts accept only major version 0"))
}

/// Checks that hosts accept the minor version.
pub(crate) fn check_minor((major, minor): (i32, i32)) -> Result<(), String> {
    if minor >= OLDEST_MINOR {
        return Ok(());
    }
    Err(format!(
        "the plugin reports version {major}.{minor} of the C API; the oldest version that hosts accept is 0.{OLDEST_MINOR}"
    ))
}

/// Checks that the table has all slots of its version, because hosts decide by version which slots they call.
pub(crate) fn check_size((_, minor): (i32, i32), size: usize) -> Result<(), String> {
    let needed = SLOTS[slots_of(minor) - 1].offset + size_of::<usize>();
    if size < needed {
        return Err(format!("the table has {size} bytes; version 0.{minor} requires {needed}"));
    }
    if size > LARGEST_TABLE {
        return Err(format!("the table has {size} bytes; a size above {LARGEST_TABLE} is not credible"));
    }
    Ok(())
}

/// Checks that the chain of extensions ends, and that each extension is at least as large as its base.
pub(crate) fn check_extensions(extensions: Option<&[ExtensionInfo]>) -> Result<(), String> {
    let extensions = extensions.ok_or("the chain of extensions does not end")?;
    match extensions.iter().find(|extension| extension.struct_size < 24) {
        None => Ok(()),
        Some(small) => Err(format!(
            "the extension of type {} reports a size of {} bytes; its base alone has 24 bytes",
            small.type_, small.struct_size
        )),
    }
}

/// Returns all faults of a plugin's table.
pub(crate) fn faults(plugin: Plugin) -> Vec<String> {
    let (version, extensions) = (plugin.version(), plugin.extensions());
    let rules = [
        check_major(version),
        check_minor(version),
        check_size(version, plugin.table_size()),
        check_extensions(extensions.as_deref()),
    ];
    rules.into_iter().filter_map(Result::err).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_no_host_takes_are_refused() {
        assert!(check_major((0, 117)).is_ok() && check_minor((0, 29)).is_ok());
        assert!(check_major((1, 112)).unwrap_err().contains("1.112"));
        assert!(check_minor((0, 28)).unwrap_err().contains("0.29"));
    }

    #[test]
    fn tables_have_the_size_of_their_version_or_more_within_reason() {
        let newest = SLOTS[SLOTS.len() - 1].offset + 8;
        assert!(check_size((0, 117), newest).is_ok() && check_size((0, 130), newest + 800).is_ok());
        for size in [0, newest - 8, usize::MAX] {
            assert!(check_size((0, 117), size).is_err(), "{size}");
        }
        assert!(check_size((0, 54), SLOTS[95].offset + 8).is_ok());
    }

    #[test]
    fn chains_of_extensions_end_and_have_links_of_some_size() {
        assert!(check_extensions(Some(&[])).is_ok());
        assert!(check_extensions(None).unwrap_err().contains("does not end"));
        let link = ExtensionInfo { type_: 4, struct_size: 8 };
        assert!(check_extensions(Some(&[link])).unwrap_err().contains("8 bytes"));
    }
}
