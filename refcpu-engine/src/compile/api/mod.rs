//! The options and errors of the compiler.

mod error;
mod options;

pub(super) use error::Result;
pub use error::{CompileError, CompileErrorKind};
pub use options::{CompileOptions, Parts};
