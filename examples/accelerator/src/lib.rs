//! A simulated accelerator: a template for devices that have their own memory and queues.
//!
//! There are two devices. Each has a memory that the host cannot access, a command queue with its own thread,
//! and a processor that runs the core of StableHLO. Everything is asynchronous: uploads, programs, copies and
//! readbacks are commands, and the host continues as soon as it has submitted one.
//!
//! Build it with `cargo build`, and configure JAX to load the library:
//!
//! ```console
//! $ export PJRT_NAMES_AND_LIBRARY_PATHS=accelerator:$PWD/target/debug/libaccelerator_pjrt.so JAX_PLATFORMS=accelerator
//! $ python -c 'import jax; print(jax.grad(lambda x: x ** 3)(2.0))'
//! 12.0
//! ```
//!
//! # Overview
//!
//! These parts exist for every device, from the host to the hardware:
//!
//! | file | contents |
//! |---|---|
//! | `client.rs` | the entry point, `PjrtClient`, which calls all other parts |
//! | `options.rs` | the options that users can set |
//! | `device.rs` | a device as hosts see it, with two memories: `PjrtDevice` |
//! | `buffer.rs` | an array on a device, `PjrtBuffer`; uploads, readbacks, copies between devices |
//! | `executable.rs` | a compiled program as hosts see it, `PjrtExecutable` |
//! | `launch.rs` | launching a program: memory for its results, donated arguments, commands |
//! | `chip.rs` | a device as its driver sees it: memory and queue; exhausted memory |
//! | `address_space.rs` | the allocator of addresses |
//! | `queue.rs` | the command queue, and why commands hold addresses instead of memory |
//!
//! These parts are specific to this device, and would be hardware, firmware or a compiler elsewhere:
//!
//! | file | contents |
//! |---|---|
//! | `ram.rs`, `array.rs` | the memory, and the layout of arrays in it, which are padded rows |
//! | `program.rs` | the compiler, which checks the operations and assigns memory to the values of a program |
//! | `cost.rs` | the cost of an execution |
//! | `interpreter.rs` | the processor |
//! | `arithmetic.rs`, `movement.rs`, `products.rs`, `reduction.rs`, `element_type.rs` | the processor's operations |

#![forbid(unsafe_code)]

mod address_space;
mod arithmetic;
mod array;
mod buffer;
mod chip;
mod client;
mod cost;
mod device;
mod element_type;
mod executable;
mod interpreter;
mod launch;
mod movement;
mod options;
mod products;
mod program;
mod queue;
mod ram;
mod reduction;

pub use crate::buffer::Buffer;
pub use crate::client::Accelerator;
pub use crate::device::Device;
pub use crate::executable::Executable;
