//! The entry point: finds out the format of a program and reads it.

use crate::verify::HandedOn;
use crate::{Bytes, Error, ErrorKind, Module};

/// First bytes of MLIR bytecode.
const BYTECODE_MAGIC: &[u8] = b"ML\xefR";

/// Reads and verifies a program.
///
/// The format is recognised from the content: MLIR bytecode and MLIR text from the first bytes; HLO, which has nothing that
/// marks it, from the computations with instructions that it must have. Where the host says what it sends, [`parse_hlo`] and
/// [`parse_hlo_with_config`] give better errors for damaged programs. Constants of the module share memory with `program`
/// where it is bytecode, so pass a `Vec<u8>` (which is taken over) rather than a slice (which is copied) where you can.
///
/// # Errors
/// When the program is damaged, not in a supported format, or breaks a rule of StableHLO.
pub fn parse(program: impl Into<Bytes>) -> Result<Module, Error> {
    let program = program.into();
    if program.starts_with(BYTECODE_MAGIC) {
        let module = crate::bytecode::read(program)?;
        crate::verify::check(&module, HandedOn::Equal)?;
        return Ok(module);
    }
    if let Some(text) = crate::text::recognise(&program) {
        return crate::text::parse(text);
    }
    match crate::hlo::recognise(&program) {
        Some(false) => parse_hlo(program),
        Some(true) => parse_hlo_with_config(program),
        None => Err(crate::text::damage(&program).unwrap_or_else(|| {
            let message =
                "only programs in MLIR bytecode, MLIR text and HLO are supported; this is none of them";
            Error::new(ErrorKind::Unsupported, message)
        })),
    }
}

/// Reads and verifies a program in XLA's HLO: a serialized `HloModuleProto`, PJRT's program format `hlo`.
///
/// The entry computation becomes the function `main`, whose arguments and results are the arrays of the parameters and of
/// the root in order: tuples are taken apart. Constants are copied.
///
/// # Errors
/// When the program is damaged, has an opcode or element type that StableHLO has no form for, or breaks a rule of
/// StableHLO. Errors name the instruction.
pub fn parse_hlo(program: impl Into<Bytes>) -> Result<Module, Error> {
    let module = crate::hlo::read(&program.into())?;
    crate::verify::check(&module, HandedOn::Equal)?;
    Ok(module)
}

/// Reads and verifies a program in XLA's HLO with a configuration: a serialized `HloModuleProtoWithConfig`, PJRT's program
/// format `hlo_with_config`.
///
/// Like [`parse_hlo`]; the numbers of replicas and partitions in the configuration become the module's attributes
/// `mhlo.num_replicas` and `mhlo.num_partitions`. The rest of the configuration is for XLA's own passes.
///
/// # Errors
/// As those of [`parse_hlo`].
pub fn parse_hlo_with_config(program: impl Into<Bytes>) -> Result<Module, Error> {
    let module = crate::hlo::read_with_config(&program.into())?;
    crate::verify::check(&module, HandedOn::Equal)?;
    Ok(module)
}
