//! What callers of the compiler give and get: options and errors.

mod error;
mod options;

pub(super) use error::Result;
pub use error::{CompileError, CompileErrorKind};
pub use options::{CompileOptions, Parts};
