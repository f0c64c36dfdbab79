//! Stress: threads that use a plugin concurrently, memory over many rounds, and hosts that end in the middle.
//!
//! Each scenario runs in a child process. A scenario that fails says what was seen and the seed with which
//! every thread repeats its operations; how the threads interleave differs between runs.

mod arrays;
mod child;
mod ending;
mod memory;
mod message;
mod options;
mod parent;
mod report;
mod scenario;
mod slope;
mod threads;

pub use child::child;
pub use options::{ChildOptions, Options};
pub use parent::stress;
pub use report::{Outcome, Report, Row};
pub use scenario::Part;
