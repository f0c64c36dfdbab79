//! A simulated accelerator: a template for devices that have a memory and queues of their own.
//!
//! Two devices, each with a memory that the host cannot reach, a command queue on a thread of its own, and a processor that
//! runs the core of StableHLO. Everything is asynchronous: uploads, programs, copies and readbacks are commands, and a host
//! that submits one goes on at once.
//!
//! Build it with `cargo build`, and let JAX load the library:
//!
//! ```console
//! $ export PJRT_NAMES_AND_LIBRARY_PATHS=accelerator:$PWD/target/debug/libaccelerator_pjrt.so JAX_PLATFORMS=accelerator
//! $ python -c 'import jax; print(jax.grad(lambda x: x ** 3)(2.0))'
//! 12.0
//! ```
//!
//! # Where to read
//!
//! What is any device's, from the host to the hardware:
//!
//! | file | is |
//! |---|---|
//! | `client.rs` | the entry: `PjrtClient`, in which everything else is called |
//! | `options.rs` | what users can set |
//! | `device.rs` | a device as hosts see it, with two memories: `PjrtDevice` |
//! | `buffer.rs` | an array on a device: `PjrtBuffer`; uploads, readbacks, copies between devices |
//! | `executable.rs` | a compiled program as hosts see it: `PjrtExecutable` |
//! | `launch.rs` | starting a program: memory for its results, donated arguments, commands |
//! | `chip.rs` | a device as its driver sees it: memory and queue; running out of memory |
//! | `address_space.rs` | which addresses are taken, and by whom |
//! | `queue.rs` | the command queue, and why commands hold addresses and not memory |
//!
//! What is this device's, and would be hardware, firmware or a compiler elsewhere:
//!
//! | file | is |
//! |---|---|
//! | `ram.rs`, `array.rs` | the memory, and the layout of arrays in it: padded rows |
//! | `program.rs` | the compiler: which operations are possible, and where in memory each value of a program lies |
//! | `cost.rs` | what a run costs |
//! | `interpreter.rs` | the processor |
//! | `arithmetic.rs`, `movement.rs`, `products.rs`, `reduction.rs`, `element_type.rs` | its operations |

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
