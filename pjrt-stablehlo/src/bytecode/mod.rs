//! The reader of MLIR bytecode: the container, the encodings of the dialects, and the code.

mod asm;
mod builtin;
mod chlo;
mod code;
mod cursor;
mod dialects;
mod entries;
mod ops;
mod quant;
mod sdy;
mod sections;
mod stablehlo;
mod templates;
mod tensor;
mod vhlo;

pub(crate) use code::read;
