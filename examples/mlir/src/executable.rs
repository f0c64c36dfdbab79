//! Compiled programs.

use pjrt_plugin::{ArraySpec, PjrtExecutable, Result, Signature};

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
        let sizes: Vec<usize> = self.signature.outputs.iter().map(ArraySpec::dense_size).collect();
        compiler::run(&self.code, arguments, &sizes)
    }
}

impl PjrtExecutable for Executable {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Returns the code, so that a saved program runs without the compiler.
    fn serialize(&self) -> Result<Option<Vec<u8>>> {
        Ok(Some(self.code.clone()))
    }
}
