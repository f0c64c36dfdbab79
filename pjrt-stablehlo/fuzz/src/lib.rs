//! What the fuzz targets share: mutations that keep an input's structure, so that the fuzzer gets beyond the first check.

#![forbid(unsafe_code)]

pub mod bytecode;
pub mod random;
pub mod text;

use pjrt_stablehlo::Module;

/// Fails unless an accepted module can be checked again, printed, and read from what was printed.
///
/// # Panics
/// When it cannot: that is a bug of the reader, the printer or the verifier.
pub fn exercise(module: &Module) -> String {
    pjrt_stablehlo::verify(module).expect("what was read has been verified");
    let _ = module.op_counts();
    module.to_string()
}
