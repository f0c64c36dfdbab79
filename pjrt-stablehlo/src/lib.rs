//! Reads, verifies, rewrites and writes StableHLO programs, without MLIR or LLVM.
//!
//! Frameworks such as JAX send programs to a PJRT plugin as *portable artifacts*: StableHLO in its versioned form VHLO,
//! encoded as MLIR bytecode. This crate reads such a program of any supported version into a verified, typed [`Module`]
//! of the newest version of StableHLO. It does not execute programs.
//!
//! # A tour
//!
//! [`parse`] reads and verifies a program:
//!
//! ```
//! use pjrt_stablehlo::ir::{Body, ElementType, Function, Op, OpId, Trait, Type};
//! use pjrt_stablehlo::{Error, Module};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/mlp_1.17.0.mlirbc");
//! let program: Vec<u8> = std::fs::read(path).unwrap();
//! let module: Module = pjrt_stablehlo::parse(program)?;
//! let main: &Function = module.main().expect("programs of frameworks have a function 'main'");
//!
//! // The signature of a small neural network.
//! assert_eq!(main.argument_types()[0].to_string(), "tensor<64x32xf32>");
//! let Type::Tensor(result) = &main.result_types()[0] else { panic!("expected a tensor") };
//! assert_eq!((result.element_type(), result.static_dims()), (ElementType::F32, Some(&[8, 10][..])));
//!
//! // Operations are in execution order. Attributes are typed fields of each operation's struct.
//! let mut flops = 0;
//! for (_, op) in main.ops() {
//!     match &op.kind {
//!         Op::DotGeneral(dot) => {
//!             let [lhs, rhs] = *op.operands else { unreachable!("the verifier has counted operands") };
//!             let contracted = dot.dot_dimension_numbers.lhs_contracting_dimensions[0] as usize;
//!             let (lhs, rhs) = (main.body.ty(lhs).as_tensor().unwrap(), main.body.ty(rhs).as_tensor().unwrap());
//!             flops += 2 * lhs.num_elements().unwrap() * rhs.num_elements().unwrap() / lhs.dims()[contracted] as u64;
//!         }
//!         // `to_f64s` converts elements of any float type; `dense_bytes` and `splat` return their bytes.
//!         Op::Constant(constant) => assert!(constant.value.to_f64s(1 << 20).is_some()),
//!         Op::FuncCall(call) => assert!(module.function(&call.callee).is_some()),
//!         _ if op.info().has(Trait::Elementwise) => flops += 1,
//!         _ => {}
//!     }
//! }
//! assert!(flops > 2 * 8 * 64 * 32);
//!
//! // An error names the unsupported operation and its location in the user's program.
//! fn unsupported(body: &Body, op: OpId) -> String {
//!     let op = body.op(op);
//!     format!("{} is not supported by this device, at {}", op.kind, op.location.brief())
//! }
//! let (id, _) = main.ops().find(|(_, op)| matches!(op.kind, Op::DotGeneral(_))).unwrap();
//! let message = unsupported(&main.body, id);
//! assert!(message.starts_with("stablehlo.dot_general is not supported by this device, at \"jit(mlp)/"));
//! assert!(message.contains("generate.py"));
//!
//! // `Display` writes text that MLIR parses. `{:#}` adds locations.
//! assert!(module.to_string().contains("\"stablehlo.dot_general\"(%arg4, %arg0)"));
//! # Ok::<(), Error>(())
//! ```
//!
//! # Contents
//!
//! * [`ir`]: modules, functions, bodies, types, literals, attributes and locations. [`ir::ops`] contains the
//!   operations, which one table defines; [`ir::OpInfo`] makes that table available at run time.
//!   [`ir::scalar`] computes elementwise operations on single elements, and [`ir::indexing`] the indices of elements.
//! * [`parse`], [`parse_hlo`], [`parse_hlo_with_config`] and [`Error`]: reading programs. [`limits`] lists the limits
//!   on their size.
//! * [`write_bytecode`] and [`write_portable_artifact`]: writing programs as MLIR bytecode, for compilers over MLIR.
//! * [`verify`]: checks every [`Constraint`] of the specification. Readers and passes return verified modules.
//! * [`build`]: adds operations to functions, and infers their result types.
//! * [`infer_result_types`] and [`types_compatible`]: infer result types from operations and operands, and compare them
//!   with declared types.
//! * [`passes`]: rewrites programs to the operations that a device implements ([`passes::decompose`]), and programs
//!   with symbolic shapes to the shapes of their arguments ([`passes::refine_shapes`]).
//! * [`versions`]: the versions of VHLO that can be read and written, which a plugin advertises to hosts.
//!
//! # Supported formats
//!
//! * MLIR bytecode of format versions 0 to 6, with VHLO from [`versions::MINIMUM_VERSION`] to
//!   [`versions::CURRENT_VERSION`]. Operations, attributes and types of `builtin`, `func`, `sdy`, `chlo`, `quant` and
//!   `stablehlo` may occur among those of VHLO, as in programs of JAX, or alone. Older VHLO is upgraded.
//! * MLIR text: the generic form, which GoMLX sends, and the custom assembly of StableHLO, CHLO, `func` and Shardy,
//!   which `jax.jit(f).lower(x).as_text()` returns. Aliases, locations and resources are supported.
//! * HLO: XLA's `HloModuleProto` and `HloModuleProtoWithConfig`, which PyTorch/XLA, TensorFlow and older versions of
//!   GoMLX send. Tuples are flattened, and called and fused computations become functions. Opcodes that StableHLO lacks
//!   become composites or equivalent operations; see [`parse_hlo`].
//! * Exports of JAX: the result of `jax.export.Exported.serialize`, which contains a program as bytecode.
//!
//! Other input is an error of kind [`ErrorKind::Unsupported`].
//!
//! Operations of other dialects become [`ir::Op::Other`] if their encoding is known. Discardable attributes
//! (`mhlo.sharding`, `sdy.sharding`, `jax.result_info`, ...) are preserved.
//!
//! [`ir::OpCode::ALL`] lists the operations with their own type, `docs/ops.md` in the repository documents them,
//! and the crate's `coverage.json` lists them for programs.
//!
//! # Command line
//!
//! `cargo pjrt cat` of the package `cargo-pjrt` reads programs from files or standard input, verifies them, and prints their
//! text (with `--locations`, including source locations) or the numbers of their operations, constants and values
//! (`--statistics`), or converts them (`--to bytecode`, `--to portable=1.9.0`). Errors show the line of the text or the byte of
//! the bytecode.
//!
//! # Hostile input
//!
//! No input causes a panic. The depth of recursion is bounded: a stack of 512 KiB is sufficient for reading, printing
//! and dropping any program. Memory is proportional to the size of the input: constants of bytecode are slices of the
//! input ([`Bytes`]), splats are not expanded, and counts are compared with the number of remaining bytes before memory
//! is allocated for them. Errors contain the byte of the input (for text, the line and column), the operation, and its
//! location in the source program, where they are known.

#![forbid(unsafe_code)]

pub mod build;
mod bytecode;
mod bytes;
mod formulas;
mod hlo;
mod infer;
pub mod ir;
pub mod limits;
mod parse;
pub mod passes;
mod print;
mod text;
mod verify;
pub mod versions;

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use bytecode::{write_bytecode, write_portable_artifact};
pub use bytes::Bytes;
pub use infer::{Inferred, infer_result_types, types_compatible};
pub use ir::Module;
pub use ir::error::{Constraint, Error, ErrorKind};
pub use parse::{parse, parse_hlo, parse_hlo_with_config, program_of_jax_export};
pub use verify::verify;
