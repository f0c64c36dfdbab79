//! Versions of VHLO, the versioned serialization of StableHLO.
//!
//! ```
//! use pjrt_stablehlo::versions::{CURRENT_VERSION, MINIMUM_VERSION, Version};
//!
//! let program = Version::new(1, 13, 7);
//! assert!((MINIMUM_VERSION..=CURRENT_VERSION).contains(&program));
//! assert_eq!(program.to_string(), "1.13.7");
//! ```

use std::fmt;

/// A version of VHLO: `major.minor.patch`. Versions are ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
    /// The patch version.
    pub patch: u32,
}

impl Version {
    /// Creates the version `major.minor.patch`.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Version { major, minor, patch }
    }

    /// Returns `[major, minor, patch]`, the form of a plugin's attributes.
    pub fn components(self) -> [i64; 3] {
        [self.major, self.minor, self.patch].map(i64::from)
    }
}

/// The newest version of VHLO that [`parse`](crate::parse) reads, including all of its operations, attributes and
/// types.
///
/// A plugin advertises this version as `stablehlo_current_version`, so that hosts do not send programs of newer versions. If it
/// does not, JAX sends programs of a version that is months old, and lacks newer operations.
pub const CURRENT_VERSION: Version = Version::new(1, 20, 0);

/// The oldest version of VHLO that [`parse`](crate::parse) reads.
///
/// A plugin advertises this version as `stablehlo_minimum_version`.
pub const MINIMUM_VERSION: Version = Version::new(0, 9, 0);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
