//! From a StableHLO module to a plan.

mod error;
mod lower;
mod options;

pub use error::{CompileError, CompileErrorKind};
pub use options::CompileOptions;
