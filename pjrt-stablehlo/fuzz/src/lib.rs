//! The functions that the fuzz targets share: mutations that keep the structure of an input, so that inputs pass the first
//! checks of the readers.

#![forbid(unsafe_code)]

pub mod bytecode;
pub mod random;
pub mod text;

use pjrt_stablehlo::Module;

/// Checks that an accepted module can be verified again and printed, and that the printed text can be read.
///
/// # Panics
/// Panics if one of these fails, which is a bug of the reader, the printer or the verifier.
pub fn exercise(module: &Module) -> String {
    pjrt_stablehlo::verify(module).expect("what was read has been verified");
    let _ = module.op_counts();
    module.to_string()
}
