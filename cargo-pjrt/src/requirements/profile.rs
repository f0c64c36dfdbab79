//! The hosts of plugins.

use std::fmt;
use std::str::FromStr;

/// A host of plugins. Its calls were traced; see the documentation of the conformance kit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// JAX, with jaxlib 0.4.35 or newer.
    Jax,
    /// PyTorch/XLA 2.9.
    TorchXla,
    /// GoMLX, through go-xla.
    Gomlx,
    /// ZML.
    Zml,
    /// The crate `pjrt` 0.2.0, a client in Rust.
    PjrtRs,
}

impl Profile {
    /// All hosts.
    pub const ALL: [Self; 5] = [Self::Jax, Self::TorchXla, Self::Gomlx, Self::Zml, Self::PjrtRs];

    /// Returns the name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jax => "jax",
            Self::TorchXla => "torch_xla",
            Self::Gomlx => "gomlx",
            Self::Zml => "zml",
            Self::PjrtRs => "pjrt_rs",
        }
    }

    /// Returns the name of the host and the version that was examined.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Jax => "JAX 0.10.2 (C API 0.112)",
            Self::TorchXla => "PyTorch/XLA 2.9 (C API 0.75)",
            Self::Gomlx => "GoMLX with go-xla 0.3 (C API 0.104)",
            Self::Zml => "ZML of mid-2026",
            Self::PjrtRs => "the Rust crate pjrt 0.2.0 (C API 0.54)",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|profile| profile.name() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no profile {name:?}; the profiles are {names}")
        })
    }
}
