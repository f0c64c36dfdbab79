//! Versions of VHLO, the versioned serialization of StableHLO.
//!
//! ```
//! use pjrt_stablehlo::versions::{CURRENT_VERSION, MINIMUM_VERSION, Version};
//!
//! let program = Version::new(1, 13, 7);
//! assert!((MINIMUM_VERSION..=CURRENT_VERSION).contains(&program));
//! assert_eq!(program.to_string(), "1.13.7");
//! assert_eq!("1.13.7".parse(), Ok(program));
//! assert!("1".parse::<Version>().is_err() && "1.2.3.4".parse::<Version>().is_err());
//! ```

use std::fmt;
use std::str::FromStr;

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

/// The error of parsing a [`Version`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a version such as 1.9.0 or 1.9")]
pub struct ParseVersionError;

impl FromStr for Version {
    type Err = ParseVersionError;

    /// Parses `major.minor.patch` or `major.minor`.
    fn from_str(text: &str) -> Result<Version, ParseVersionError> {
        let mut parts = text.split('.').map(|part| part.parse().map_err(|_| ParseVersionError));
        let mut next = || parts.next().ok_or(ParseVersionError)?;
        let (major, minor) = (next()?, next()?);
        let patch = parts.next().unwrap_or(Ok(0))?;
        if parts.next().is_some() {
            return Err(ParseVersionError);
        }
        Ok(Version { major, minor, patch })
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
