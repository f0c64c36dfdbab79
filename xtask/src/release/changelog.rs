//! The changelog, in the format of Keep a Changelog.

use anyhow::{Result, bail};

const UNRELEASED: &str = "## [Unreleased]\n";

/// Gives the changes of the section "Unreleased" to a version, and leaves that section empty.
pub(super) fn with_release(text: &str, version: &str, date: &str) -> Result<String> {
    let Some((before, changes)) = text.split_once(UNRELEASED) else {
        bail!("CHANGELOG.md has no section '{}'", UNRELEASED.trim());
    };
    if changes.split("\n## ").next().is_none_or(|section| section.trim().is_empty()) {
        bail!("the section '{}' of CHANGELOG.md is empty: there is nothing to release", UNRELEASED.trim());
    }
    Ok(format!("{before}{UNRELEASED}\n## [{version}] - {date}\n{changes}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_receives_the_unreleased_changes() {
        let text = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A verb.\n\n## [0.1.0] - 2026-01-01\n";
        assert_eq!(
            with_release(text, "0.2.0", "2026-02-03").unwrap(),
            "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n### Added\n\n- A verb.\n\n## [0.1.0] - 2026-01-01\n"
        );
    }

    #[test]
    fn a_release_without_changes_is_an_error() {
        let text = "## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n### Added\n";
        assert!(
            with_release(text, "0.2.0", "2026-02-03").unwrap_err().to_string().contains("nothing to release")
        );
        assert!(with_release("# Changelog\n", "0.2.0", "2026-02-03").is_err());
    }
}
