//! Runs a plugin's programs inside real hosts.
//!
//! Each host that is installed runs small programs on the plugin, in a process of its own, and compares the results with those of its
//! own CPU device. The programs in Python are in the folder `python/test` of this crate, those in Go in its folder `go`.

mod host;
mod installation;
mod options;
mod parent;
mod programs;
mod report;
mod session;

pub use host::Host;
pub use options::Options;
pub use parent::test;
pub use report::{HostRow, Outcome, ProgramRow, Report};
