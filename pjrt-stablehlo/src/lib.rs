//! Read, check and print StableHLO programs without MLIR or LLVM.

#![forbid(unsafe_code)]

mod bytecode;
mod bytes;
mod error;
pub mod ir;
pub mod limits;
mod parse;
mod print;
mod sharding_text;
mod verify;
pub mod versions;

pub use bytes::Bytes;
pub use error::{Error, ErrorKind};
pub use ir::Module;
pub use parse::parse;
pub use verify::verify;
