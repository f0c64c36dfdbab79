//! Versions of VHLO, the versioned form in which StableHLO programs are sent.

use std::fmt;

/// A version of VHLO: `major.minor.patch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
    /// Patch version.
    pub patch: u32,
}

impl Version {
    /// The version `major.minor.patch`.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Version { major, minor, patch }
    }
}

/// The newest version of VHLO that [`parse`](crate::parse) reads: every operation, attribute and type of it.
///
/// A plugin advertises it as `stablehlo_current_version`, so that hosts do not send newer programs.
pub const CURRENT_VERSION: Version = Version::new(1, 20, 0);

/// The oldest version of VHLO that [`parse`](crate::parse) reads. A plugin advertises it as
/// `stablehlo_minimum_version`.
pub const MINIMUM_VERSION: Version = Version::new(0, 9, 0);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
