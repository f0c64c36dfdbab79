//! The entry point: finds out the format of a program and reads it.

use crate::{Bytes, Error, ErrorKind, Module};

/// First bytes of MLIR bytecode.
const BYTECODE_MAGIC: &[u8] = b"ML\xefR";

/// Reads and verifies a program.
///
/// The format, MLIR bytecode or MLIR text, is recognised from the first bytes. Constants of the module share memory with
/// `program` where it is bytecode, so pass a `Vec<u8>` (which is taken over) rather than a slice (which is copied) where
/// you can.
///
/// # Errors
/// When the program is damaged, not in a supported format, or breaks a rule of StableHLO.
pub fn parse(program: impl Into<Bytes>) -> Result<Module, Error> {
    let program = program.into();
    if program.starts_with(BYTECODE_MAGIC) {
        let module = crate::bytecode::read(program)?;
        crate::verify(&module)?;
        return Ok(module);
    }
    if let Some(text) = crate::text::recognise(&program) {
        return crate::text::parse(text);
    }
    let message = "only programs in MLIR bytecode and MLIR text are supported; this is neither";
    Err(Error::new(ErrorKind::Unsupported, message))
}
