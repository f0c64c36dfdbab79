//! Runs programs on PJRT plugins from Rust tests, in safe code and without a framework.
//!
//! [`Client`] is a host, as JAX is one: it creates a client of a plugin, transfers arrays to devices, compiles StableHLO programs
//! and executes them through the C API. A test of a plugin therefore covers what a host sees: arguments, errors, events, donation
//! and the lifetimes of objects.
//!
//! ```
//! use hello_pjrt::Hello;
//! use pjrt_testing::{Array, Client, Code};
//!
//! // The plugin is part of this program. `Client::load` loads a shared library instead.
//! let client = Client::of(pjrt_plugin::api_table!(Hello), &[])?;
//!
//! let sum = client.compile(
//!     "func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
//!        %0 = stablehlo.add %x, %y : tensor<2xf32>
//!        return %0 : tensor<2xf32>
//!      }",
//! )?;
//! let x = client.upload(&Array::from([1.0_f32, 2.0]))?;
//! let outputs = sum.run(&[&x, &x])?;
//! assert_eq!(outputs[0].read::<f32>()?, [2.0, 4.0]);
//!
//! // Errors have the code and the message that hosts see.
//! let program = "func.func @main(%x: tensor<f32>) -> tensor<f32> {
//!     %0 = stablehlo.sine %x : tensor<f32>
//!     return %0 : tensor<f32>
//! }";
//! let error = client.compile(program).unwrap_err();
//! assert_eq!(error.code, Code::UNIMPLEMENTED);
//! assert!(error.message.contains("stablehlo.sine"));
//! # Ok::<(), pjrt_testing::Error>(())
//! ```
//!
//! A host may reuse the memory of everything that it passes to a function once the function returns. This crate overwrites that
//! memory after each call, so that a plugin that keeps a pointer to it computes wrong results in the test and not in production.
//!
//! The plugin runs in the process of the test. A plugin that crashes ends the test program; `cargo pjrt conform` and the other
//! subcommands of [`cargo-pjrt`](https://github.com/pjrt-plugin/pjrt-plugin) run plugins in processes of their own.
//!
//! Objects may be dropped in any order, even after their client, as hosts drop them. A plugin stays loaded until the process
//! ends.

#![deny(unsafe_code)]

mod array;
mod buffer;
mod client;
mod device;
#[doc(hidden)]
pub mod host;
#[doc(hidden)]
pub mod preferred;
mod program;
#[doc(hidden)]
pub mod protobuf;

pub use array::{Array, Element};
pub use buffer::Buffer;
pub use client::Client;
pub use device::Device;
pub use host::{Code, CreateOption, ElementType, Error, MemoryStats, Result, Value};
pub use program::Program;
pub use protobuf::CompileOptions;
