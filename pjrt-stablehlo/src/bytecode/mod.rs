//! The reader and the writer of MLIR bytecode: the container, the encodings of the dialects, and the code.

mod asm;
mod body;
mod builtin;
mod chlo;
mod code;
mod correspondence;
mod cursor;
mod dialects;
mod encoder;
mod entries;
mod file_writer;
mod ops;
mod output;
mod quant;
mod sdy;
mod sections;
mod stablehlo;
mod templates;
mod tensor;
mod vhlo;
mod write;

pub(crate) use code::read;
pub(crate) use sections::MAGIC;
pub use write::{write_bytecode, write_portable_artifact};
