//! Compiled programs.

use pjrt_plugin::layout::dense_size;
use pjrt_plugin::stablehlo::Signature;
use pjrt_plugin::{ArraySpec, PjrtExecutable, Result};

use crate::compiler;

/// A compiled program: the code of the compiler.
pub struct Executable {
    pub(crate) code: Vec<u8>,
    pub(crate) signature: Signature,
}

impl Executable {
    /// Runs the program.
    ///
    /// # Errors
    ///
    /// Returns the error of the runtime.
    pub(crate) fn run(&self, arguments: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
        let size = |spec: &ArraySpec| dense_size(spec.dims(), spec.element_type().byte_size());
        let sizes = self.outputs().iter().map(size).collect::<Result<Vec<usize>>>()?;
        compiler::run(&self.code, arguments, &sizes)
    }
}

impl PjrtExecutable for Executable {
    fn name(&self) -> &str {
        &self.signature.name
    }

    fn parameters(&self) -> &[ArraySpec] {
        &self.signature.parameters
    }

    fn outputs(&self) -> &[ArraySpec] {
        &self.signature.outputs
    }

    /// Returns the code, so that a saved program runs without the compiler.
    fn serialize(&self) -> Result<Option<Vec<u8>>> {
        Ok(Some(self.code.clone()))
    }
}
