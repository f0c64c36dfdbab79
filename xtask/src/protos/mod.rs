//! `cargo xtask protos`: writes the Rust structs of the protocol buffers from the `.proto` files, or checks
//! them.
//!
//! prost-build and protox, a protocol buffer compiler in Rust, are used only here. Therefore they are behind
//! the feature `generators` of this package. Without the feature, the task runs itself again with it.

use anyhow::Result;

#[cfg(not(feature = "generators"))]
use crate::environment::{run, workspace};

#[cfg(feature = "generators")]
mod generate;

/// Writes the structs. With `check_only`, nothing is written, and a difference is an error that names the
/// file.
///
/// # Errors
///
/// Returns an error if a `.proto` file is invalid, or if a file cannot be read or written.
pub(crate) fn run(check_only: bool) -> Result<()> {
    #[cfg(feature = "generators")]
    return generate::run(check_only);
    #[cfg(not(feature = "generators"))]
    {
        let check: &[&str] = if check_only { &["--check"] } else { &[] };
        run::run(workspace::task_with_generators("protos").args(check))
    }
}
