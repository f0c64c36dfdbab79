//! The entry points of readers, and the detection of formats.

mod jax_export;

pub use jax_export::program_of_jax_export;

use crate::verify::HandedOn;
use crate::{Bytes, Error, ErrorKind, Module};

/// Reads and verifies a program.
///
/// The function detects the format from the content: MLIR bytecode and MLIR text by their first bytes, a serialized export of
/// JAX by the program in it, and HLO, which has no such mark, by the presence of computations with instructions. If the host states the format, [`parse_hlo`]
/// and [`parse_hlo_with_config`] return better errors for damaged programs.
///
/// Constants of a module from bytecode share memory with `program`. Pass a `Vec<u8>`, of which the function takes ownership,
/// rather than a slice, which it copies.
///
/// # Errors
/// Returns an error of kind [`ErrorKind::Malformed`] if the program is damaged, [`ErrorKind::Unsupported`] if it is in
/// another format or contains something that this crate does not support, [`ErrorKind::Invalid`] if it violates a rule of
/// StableHLO, or [`ErrorKind::TooLarge`] if it exceeds one of the [`limits`](crate::limits).
///
/// ```
/// let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// assert_eq!(module.main().unwrap().argument_types()[0].to_string(), "tensor<f32>");
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
pub fn parse(program: impl Into<Bytes>) -> Result<Module, Error> {
    let program = program.into();
    if program.starts_with(crate::bytecode::MAGIC) {
        let module = crate::bytecode::read(program)?;
        crate::verify::check(&module, HandedOn::Equal)?;
        return Ok(module);
    }
    if let Some(text) = crate::text::recognise(&program) {
        return crate::text::parse(text);
    }
    if let Some(program) = program_of_jax_export(&program) {
        return parse(program);
    }
    match crate::hlo::recognise(&program) {
        Some(false) => parse_hlo(program),
        Some(true) => parse_hlo_with_config(program),
        None => Err(crate::text::damage(&program).unwrap_or_else(|| {
            let message = "the program is not in a supported format, which are MLIR bytecode, MLIR text, HLO, and serialized exports of JAX";
            Error::new(ErrorKind::Unsupported, message)
        })),
    }
}

/// Reads and verifies a program in XLA's HLO: a serialized `HloModuleProto`, which is PJRT's program format `hlo`.
///
/// The entry computation becomes the function `main`. Its arguments and results are the arrays of the parameters and of
/// the root, in order, with tuples flattened. Constants are copied.
///
/// # Errors
/// Returns an error of kind [`ErrorKind::Malformed`] if the program is damaged, [`ErrorKind::Unsupported`] if it has an
/// opcode or element type that StableHLO cannot express, [`ErrorKind::Invalid`] if it violates a rule of StableHLO, or
/// [`ErrorKind::TooLarge`] if it exceeds one of the [`limits`](crate::limits). Errors name the instruction.
///
/// ```
/// use pjrt_stablehlo::{ErrorKind, parse_hlo};
///
/// let error = parse_hlo(b"not HLO").unwrap_err();
/// assert_eq!(error.kind, ErrorKind::Malformed);
/// ```
pub fn parse_hlo(program: impl Into<Bytes>) -> Result<Module, Error> {
    let module = crate::hlo::read(&program.into())?;
    crate::verify::check(&module, HandedOn::Equal)?;
    Ok(module)
}

/// Reads and verifies a program in XLA's HLO with a configuration: a serialized `HloModuleProtoWithConfig`, which is
/// PJRT's program format `hlo_with_config`.
///
/// The function behaves like [`parse_hlo`]. In addition, the numbers of replicas and partitions in the configuration
/// become the module's attributes `mhlo.num_replicas` and `mhlo.num_partitions`. The rest of the configuration affects
/// only XLA's own passes, and is ignored.
///
/// # Errors
/// Returns the errors of [`parse_hlo`].
pub fn parse_hlo_with_config(program: impl Into<Bytes>) -> Result<Module, Error> {
    let module = crate::hlo::read_with_config(&program.into())?;
    crate::verify::check(&module, HandedOn::Equal)?;
    Ok(module)
}
