//! Lists the operations and element types that programs need, and those that a plugin refuses.
//!
//! The plugin compiles each program in a child process, without running it. For each program that it refuses, it also compiles
//! each operation alone, as a program of one operation. The report thus names the operations to implement next.

mod child;
mod options;
mod parent;
mod recorded;
mod report;
mod source;
mod sources;
mod text;
mod trials;

pub use child::child;
pub use options::{ChildOptions, Options};
pub(crate) use parent::accepted;
pub use parent::needs;
pub use report::{OpRow, Outcome, ProgramRow, Report, Tier};
