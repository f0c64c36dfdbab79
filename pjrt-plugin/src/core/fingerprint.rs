//! Fingerprints of programs and topologies.

use std::fmt;

/// A hash that is the same in every process and every version of this crate (FNV-1a, 128 bits).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(u128);

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

impl Fingerprint {
    /// Computes the hash of a sequence of parts, including the boundaries between them.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut hash = OFFSET;
        for part in parts {
            for byte in (part.len() as u64).to_le_bytes().iter().chain(*part) {
                hash = (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
            }
        }
        Self(hash)
    }

    /// Returns the lower half.
    pub(crate) fn low(self) -> u64 {
        self.0 as u64
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_between_parts_counts() {
        assert_ne!(Fingerprint::of(&[b"ab", b"c"]), Fingerprint::of(&[b"a", b"bc"]));
        assert_eq!(Fingerprint::of(&[b"ab"]).to_string().len(), 32);
    }
}
