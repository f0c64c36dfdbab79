//! Encodes programs as protocol buffers, and decodes device assignments.
//!
//! The code is written by hand because there are few messages, and because a tool that checks plugins
//! should not share their code.

mod device_assignment;
mod hlo;

pub use device_assignment::DeviceAssignment;
pub use hlo::{hlo_add, hlo_tuple};
