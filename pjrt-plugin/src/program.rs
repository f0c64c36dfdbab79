//! Programs as the host hands them over.

use std::fmt;
use std::sync::Arc;

/// How the bytes of a program are to be read (`PJRT_Program`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProgramFormat {
    /// `mlir`: StableHLO, as a portable artifact (VHLO bytecode), as MLIR bytecode or as MLIR text. What JAX, GoMLX and ZML
    /// send.
    Mlir,
    /// `hlo`: a serialized `HloModuleProto`. What PyTorch/XLA and TensorFlow send.
    Hlo,
    /// `hlo_with_config`: a serialized `HloModuleProtoWithConfig`. Hosts accept it as an optimised program.
    HloWithConfig,
}

impl ProgramFormat {
    /// The name in the C API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mlir => "mlir",
            Self::Hlo => "hlo",
            Self::HloWithConfig => "hlo_with_config",
        }
    }

    /// The format of this name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        [Self::Mlir, Self::Hlo, Self::HloWithConfig]
            .into_iter()
            .find(|format| format.name().as_bytes() == name)
    }
}

/// A program: a format and bytes. Cloning is cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    format: ProgramFormat,
    code: Arc<[u8]>,
}

impl Program {
    /// A program of this format.
    #[must_use]
    pub fn new(format: ProgramFormat, code: impl Into<Arc<[u8]>>) -> Self {
        Self { format, code: code.into() }
    }

    /// How to read the bytes.
    #[must_use]
    pub fn format(&self) -> ProgramFormat {
        self.format
    }

    /// The bytes.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        &self.code
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({}, {} bytes)", self.format.name(), self.code.len())
    }
}
