//! The hosts.

use serde::{Deserialize, Serialize};

/// A host that runs the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub enum Host {
    /// JAX
    Jax,
    /// PyTorch/XLA, through PyTorch
    #[value(name = "torch_xla")]
    TorchXla,
    /// GoMLX's client of PJRT, go-xla
    Gomlx,
}

impl Host {
    /// All hosts.
    pub const ALL: [Self; 3] = [Self::Jax, Self::TorchXla, Self::Gomlx];

    /// Returns the name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jax => "jax",
            Self::TorchXla => "torch_xla",
            Self::Gomlx => "gomlx",
        }
    }

    /// Returns the name for a reader.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Jax => "JAX",
            Self::TorchXla => "PyTorch/XLA",
            Self::Gomlx => "GoMLX",
        }
    }

    /// Returns the packages of PyPI that contain the host, or nothing for a host in Go.
    pub(super) fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Jax => &["jax"],
            Self::TorchXla => &["torch==2.9.1", "torch_xla==2.9.0", "numpy"],
            Self::Gomlx => &[],
        }
    }
}
