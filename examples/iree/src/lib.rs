//! A plugin around IREE: its compiler, and its runtime with the devices that it supports.
//!
//! Build it with `cargo xtask iree`, which installs the compiler and prints how to use the library:
//!
//! ```console
//! $ export PJRT_NAMES_AND_LIBRARY_PATHS=iree:$PWD/target/iree/release/libiree_pjrt.so JAX_PLATFORMS=iree
//! $ python -c 'import jax; print(jax.grad(lambda x: x ** 3)(2.0))'
//! 12.0
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `client.rs` | the entry point, `PjrtClient`, which calls all other parts |
//! | `options.rs` | the options that users can set |
//! | `target.rs` | the kinds of devices |
//! | `library.rs` | finds and loads the compiler |
//! | `operations.rs` | the operations that IREE compiles; others are decomposed into these, or refused |
//! | `compilation.rs` | from the bytes of a program to the code of IREE, and from diagnostics to errors |
//! | `executable.rs` | a compiled program as hosts see it, `PjrtExecutable`; saving and loading it |
//! | `device.rs` | a device as hosts see it, `PjrtDevice`, and its threads |
//! | `memory.rs` | the memory of a device that arrays occupy, and its limit |
//! | `buffer.rs` | an array on a device, `PjrtBuffer`; uploads and copies to the host |
//! | `launch.rs` | launching a program |
//! | `timeline.rs` | the measured times of launches, which profilers show |
//! | `convert.rs` | element types and errors of IREE as those of PJRT |
//!
//! The crate `iree-runtime` in the folder `runtime` makes IREE's C interfaces safe.

mod buffer;
mod client;
mod compilation;
mod convert;
mod device;
mod executable;
mod launch;
mod library;
mod memory;
mod operations;
mod options;
mod target;
mod timeline;

pub use crate::buffer::Buffer;
pub use crate::client::Iree;
pub use crate::device::Device;
pub use crate::executable::{Executable, Loaded};
