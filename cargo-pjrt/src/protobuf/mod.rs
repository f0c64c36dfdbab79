//! Encodes programs as protocol buffers, and decodes device assignments and traces.
//!
//! The code is written by hand because there are few messages, and because a tool that checks plugins
//! should not share their code.

mod device_assignment;
mod fields;
mod hlo;
mod trace;

pub use device_assignment::DeviceAssignment;
pub use hlo::{hlo_add, hlo_tuple};
pub(crate) use trace::events_of_trace;
