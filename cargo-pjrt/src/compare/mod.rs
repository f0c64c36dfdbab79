//! Compares the behavior of two plugins: the checks of the conformance kit, the attributes of their objects,
//! the order of their events, programs and recorded sessions.
//!
//! Each plugin is observed in child processes, which send *facts* to the parent: a name and a value. Facts
//! are grouped by *subject*, such as `buffer/f32` or `program/add.mlir`. A plugin that crashes or hangs in a
//! subject is observed in the remaining ones. [`compare`] then compares the facts of both plugins, without
//! knowledge of what they mean. Facts that any two correct plugins may differ in, such as names and
//! versions, are listed separately.

mod child;
mod diff;
mod observe;
mod options;
mod parent;
mod report;
mod subject;

pub use child::child;
pub use diff::{Difference, Report};
pub use options::{ChildOptions, Options};
pub use parent::compare;
