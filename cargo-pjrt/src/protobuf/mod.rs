//! Encodes compile options and programs as protocol buffers, and decodes device assignments.
//!
//! The code is written by hand because there are few messages, and because a tool that checks plugins
//! should not share their code.

mod compile_options;
mod device_assignment;
mod hlo;
mod message;

pub use compile_options::CompileOptions;
pub use device_assignment::DeviceAssignment;
pub use hlo::{hlo_add, hlo_tuple};
