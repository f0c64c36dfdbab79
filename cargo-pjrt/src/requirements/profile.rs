//! The hosts of plugins.

use std::fmt;
use std::str::FromStr;

use super::functions::{Calls, FUNCTIONS};

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

    /// Returns the names of the functions without which the host cannot run a program, without the prefix
    /// `PJRT_`.
    pub fn functions(self) -> impl Iterator<Item = &'static str> {
        FUNCTIONS
            .iter()
            .filter(move |function| function.called_by(self) == Calls::Required)
            .map(|function| function.name)
    }

    /// Returns the hosts that call a function of the table, whether they require it or not.
    pub(crate) fn that_call(function: &str) -> Vec<Self> {
        let name = function.trim_start_matches("PJRT_");
        let function = FUNCTIONS.iter().find(|function| function.name == name);
        let calls = |host: &Self| function.is_some_and(|function| function.called_by(*host) != Calls::Never);
        Self::ALL.into_iter().filter(calls).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_functions_have_callers_and_are_not_required() {
        assert_eq!(
            Profile::that_call("PJRT_Executable_Serialize"),
            [Profile::Jax, Profile::TorchXla, Profile::Zml, Profile::PjrtRs]
        );
        assert!(Profile::Jax.functions().all(|function| function != "Executable_Serialize"));
        assert!(Profile::Jax.functions().any(|function| function == "Buffer_ToHostBuffer"));
        assert!(Profile::that_call("PJRT_Device_ClearMemoryStats").is_empty());
    }
}
