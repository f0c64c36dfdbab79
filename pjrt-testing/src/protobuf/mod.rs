//! Encodes compile options as protocol buffers.
//!
//! The code is written by hand because there are few messages, and because a crate that tests plugins
//! should not share their code.

mod compile_options;
mod message;

pub use compile_options::CompileOptions;
pub use message::Message;
