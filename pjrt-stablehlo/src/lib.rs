//! Read, check and print StableHLO programs without MLIR or LLVM.

#![forbid(unsafe_code)]

mod bytes;
mod error;
pub mod ir;
pub mod limits;
mod parse;
pub mod versions;

pub use bytes::Bytes;
pub use error::{Error, ErrorKind};
pub use ir::Module;
pub use parse::parse;
