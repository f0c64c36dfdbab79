//! IREE's compiler and runtime as safe Rust.
//!
//! This crate wraps the parts of IREE that a plugin needs:
//!
//! | type | object of IREE |
//! |---|---|
//! | [`Compiler`] | `iree-compile`, beside `libIREECompiler.so`: from StableHLO to the code of a program |
//! | [`Driver`], [`Device`] | a HAL driver and one of its devices, with the device's allocator |
//! | [`Array`] | a buffer view: memory of a device, with an element type and dimensions |
//! | [`Fence`] | a point on a timeline semaphore, for which hosts and devices wait |
//! | [`CodeTarget`] | for what the compiler makes code: the processor, or devices with their features |
//! | [`Program`] | a VM context with the loaded code of a program, whose calls are asynchronous |
//!
//! All handles can move between threads and be used from several threads at once. Errors have IREE's status [`Code`], so
//! that an allocation that fails is [`Code::ResourceExhausted`].
//!
//! ```no_run
//! use iree_runtime::{Array, Compiler, Driver, ElementType, Program};
//!
//! let source = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
//!     %0 = stablehlo.add %x, %x : tensor<2xf32>
//!     return %0 : tensor<2xf32>
//! }";
//! let flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"];
//! let flags = flags.map(str::to_owned).into_iter().chain(Program::COMPILER_FLAGS.map(str::to_owned));
//! let compiler = Compiler::load("libIREECompiler.so".as_ref())?;
//! let code = compiler.compile(&flags.collect::<Vec<_>>(), "main", source.as_bytes())?;
//!
//! let device = Driver::open("local-task")?.device(0)?;
//! let program = Program::load(&device, &code)?;
//! let x = Array::upload(&device, ElementType::F32, &[2], &[0, 0, 128, 63, 0, 0, 0, 64])?;
//! let call = program.call(&[&x])?;
//! call.done.wait()?;
//! assert_eq!(call.results[0].to_vec(&device)?, [0, 0, 0, 64, 0, 0, 128, 64]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Safety
//!
//! The functions of this crate are safe under one assumption, which the type system cannot express: the code of a program is
//! what IREE's compiler wrote. [`Program::load`] checks the container of the code, but the machine code in it runs unchecked,
//! as that of every compiler.
//!
//! Each type that owns an object of IREE owns one reference to it. The functions that count references are atomic, and
//! IREE documents devices, allocators and semaphores as thread-safe. Arrays and fences are not modified after they have
//! been created. VM contexts are not thread-safe, so [`Program`] has a lock.

mod allocator;
mod array;
mod code_target;
mod compiler;
mod device;
mod driver;
mod element_type;
mod fence;
mod handle;
mod instance;
mod processor;
mod program;
mod status;
mod strings;
#[cfg(feature = "vulkan")]
mod vulkan;
mod vulkan_features;

pub use array::Array;
pub use code_target::CodeTarget;
pub use compiler::{CompileError, Compiler, Diagnostic, Severity};
pub use device::{Device, MemoryStatistics};
pub use driver::{DeviceInfo, Driver};
pub use element_type::ElementType;
pub use fence::Fence;
pub use program::{Call, Program};
pub use status::{Code, Error, Result};
pub use vulkan_features::VulkanFeatures;
