//! Sessions of hosts with plugins, which are recorded in logs and replayed on other plugins.

pub mod log;
pub mod record;
#[allow(unsafe_code, reason = "the only module whose functions are called by hosts")]
mod recorder;
mod recorder_library;
mod recorder_state;
pub mod replay;

pub use recorder::table;
