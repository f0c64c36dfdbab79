//! Sessions of hosts with plugins: recorded as logs, and replayed on other plugins.

pub mod log;
pub mod record;
#[allow(unsafe_code, reason = "the one module that is called by foreign hosts")]
mod recorder;
pub mod replay;

pub use recorder::table;
