//! A plugin around a compiler in C++, such as one over MLIR.
//!
//! | file | contents |
//! |---|---|
//! | `compiler/compiler.h` | the three C functions that your compiler and your runtime implement, and their rules |
//! | `compiler/compiler.cc` | a small compiler without MLIR, and its runtime: replace it |
//! | `build.rs` | builds and links the compiler |
//! | `src/compiler.rs` | the C functions as safe functions; the only `unsafe` code |
//! | `src/options.rs` | the compiler options that users can set |
//! | `src/executable.rs` | a compiled program as hosts see it, `PjrtExecutable` |
//! | `src/client.rs` | the other three traits; `compile` calls the compiler |

#![deny(unsafe_code)]

mod client;
mod compiler;
mod executable;
mod options;

pub use crate::client::{Device, Storage, Vendor};
pub use crate::executable::Executable;
