//! Encodes compile options and programs as protocol buffers.
//!
//! The encoder is written by hand because there are few messages, and because a tool that checks plugins
//! should not share their code.

mod compile_options;
mod hlo;
mod message;

pub use compile_options::CompileOptions;
pub use hlo::hlo_add;
