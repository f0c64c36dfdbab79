//! A simulated accelerator: a template for devices that have their own memory and queues.
//!
//! There are four devices. Each has a memory that the host cannot access, a processor and a copy engine. Both engines have a
//! command queue with its own thread. Everything is asynchronous: uploads, programs, copies and readbacks are commands, and the
//! host continues as soon as it has submitted one.
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
//! These parts exist for every device. Read them in this order, from the host to the device:
//!
//! | file | contents |
//! |---|---|
//! | `client.rs` | the entry point, `PjrtClient`, which calls all other parts |
//! | `options.rs` | the options that users can set, and the faults that some of them switch on |
//! | `device.rs` | a device as hosts see it, with two memories: `PjrtDevice` |
//! | `chip.rs` | a device as its driver sees it: memory, two engines with queues |
//! | `buffer.rs` | an array on a device, `PjrtBuffer`; uploads, readbacks, copies between devices |
//! | `executable.rs` | a compiled program as hosts see it, `PjrtExecutable`; saving and loading it |
//! | `launch.rs` | launching a program: memory for its results, donated arguments, commands |
//! | `cost.rs`, `timeline.rs` | the estimated cost of a program, and the measured times of commands |
//!
//! These parts are the compiler, from StableHLO to the commands of the processor:
//!
//! | file | contents |
//! |---|---|
//! | `operations.rs` | the operations that it translates; others are decomposed into these, or refused |
//! | `commands.rs`, `kernel.rs` | the language of the processor |
//! | `lowering.rs`, `contraction.rs` | the translation |
//! | `fusion.rs` | elementwise operations, which become kernels of one or more steps |
//! | `planner.rs` | the assignment of memory to the values of a program |
//!
//! These parts simulate the device, and would be hardware or firmware elsewhere:
//!
//! | file | contents |
//! |---|---|
//! | `ram.rs`, `array.rs` | the memory, and the location of arrays in it, which are dense |
//! | `processor.rs` | the processor, which executes commands |
//! | `movement.rs` | the coordinates of the elements that commands move |
//!
//! The processor computes elements with the functions of `pjrt_stablehlo::ir::scalar`, and finds them with those of
//! `pjrt_stablehlo::ir::indexing`.

#![forbid(unsafe_code)]

mod array;
mod buffer;
mod chip;
mod client;
mod commands;
mod contraction;
mod cost;
mod device;
mod executable;
mod fusion;
mod kernel;
mod launch;
mod lowering;
mod movement;
mod operations;
mod options;
mod planner;
mod processor;
mod ram;
mod timeline;

pub use crate::buffer::Buffer;
pub use crate::client::Accelerator;
pub use crate::device::Device;
pub use crate::executable::Executable;
