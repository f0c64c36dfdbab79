//! The conformance kit: checks that a plugin follows the rules of the PJRT C API and the requirements of
//! hosts.
//!
//! Each check is named for the rule that it protects, and runs in a child process with a time limit, because
//! a plugin may crash or hang. The kit distinguishes unsupported features from errors. A feature is
//! unsupported if the plugin returns UNIMPLEMENTED, or if its version lacks the slot. With a
//! [`Profile`](crate::requirements::Profile), the
//! features that this host requires must be supported.
//!
//! Each check comes with a *fault*, a misbehavior that breaks the rule. It is written in the language of this
//! project's fault plugin, which wraps a correct plugin and misbehaves as the fault says. A test injects each
//! fault and expects its check to fail.

mod checks;
mod child;
mod harness;
mod list;
mod options;
mod process;
mod random;
mod report;
mod runner;

pub use child::child;
pub use harness::{AnotherOptions, Check, Sequences, Source, Status, TIMEOUT, another_process};
pub use list::{Listed, checks, select};
pub use options::{ChildOptions, Isolation, Options};
pub use report::{Format, Report, Row};
pub use runner::run;
