//! Read, check and print StableHLO programs without MLIR or LLVM.
//!
//! Frameworks such as JAX send programs to a PJRT plugin as *portable artifacts*: StableHLO in its versioned form
//! VHLO, encoded as MLIR bytecode. This crate turns those bytes into one checked, typed [`Module`] of the newest
//! StableHLO, whatever version the program was sent in. It executes nothing.
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
//! // The signature: a small neural network.
//! assert_eq!(main.argument_types()[0].to_string(), "tensor<64x32xf32>");
//! let Type::Tensor(result) = &main.result_types()[0] else { panic!("expected a tensor") };
//! assert_eq!((result.element_type(), result.static_dims()), (ElementType::F32, Some(&[8, 10][..])));
//!
//! // Operations in the order in which they run. Attributes are typed fields of each operation's struct.
//! let mut flops = 0;
//! for (_, op) in main.ops() {
//!     match &op.kind {
//!         Op::DotGeneral(dot) => {
//!             let [lhs, rhs] = *op.operands else { unreachable!("the verifier has counted operands") };
//!             let contracted = dot.dot_dimension_numbers.lhs_contracting_dimensions[0] as usize;
//!             let (lhs, rhs) = (main.body.ty(lhs).as_tensor().unwrap(), main.body.ty(rhs).as_tensor().unwrap());
//!             flops += 2 * lhs.num_elements().unwrap() * rhs.num_elements().unwrap() / lhs.dims()[contracted] as u64;
//!         }
//!         // Elements as numbers, of any float type; `dense_bytes` and `splat` have them as they are stored.
//!         Op::Constant(constant) => assert!(constant.value.to_f64s(1 << 20).is_some()),
//!         Op::FuncCall(call) => assert!(module.function(&call.callee).is_some()),
//!         _ if op.info().has(Trait::Elementwise) => flops += 1,
//!         _ => {}
//!     }
//! }
//! assert!(flops > 2 * 8 * 64 * 32);
//!
//! // A target that cannot do everything says which operation it lacks, and where in the user's program it is.
//! fn unsupported(body: &Body, op: OpId) -> String {
//!     let op = body.op(op);
//!     format!("{} is not supported by this device, at {}", op.kind, op.location)
//! }
//! let (id, _) = main.ops().find(|(_, op)| matches!(op.kind, Op::DotGeneral(_))).unwrap();
//! let message = unsupported(&main.body, id);
//! assert!(message.starts_with("stablehlo.dot_general is not supported by this device, at \"jit(mlp)/"));
//! assert!(message.contains("generate.py"));
//!
//! // The program as text, which MLIR's own parsers read; with locations for `{:#}`.
//! assert!(module.to_string().contains("\"stablehlo.dot_general\"(%arg4, %arg0)"));
//! # Ok::<(), Error>(())
//! ```
//!
//! # What is where
//!
//! * [`ir`]: modules, functions, bodies, types, literals, attributes, locations; [`ir::ops`] has the operations, all
//!   from one table, which [`ir::OpInfo`] makes available at run time.
//! * [`parse`], [`parse_hlo`], [`parse_hlo_with_config`] and [`Error`]: reading. [`limits`] has every cap on what is
//!   accepted.
//! * [`verify`]: the rules that a module keeps, which consumers can rely on: every [`Constraint`] of the specification.
//! * [`build`]: adding operations to functions, with inferred types.
//! * [`infer_result_types`] and [`types_compatible`]: result types from operations and operands, and how they relate to
//!   declared ones, for those who make or change programs.
//! * [`passes`]: rewriting programs to the operations that a device has ([`passes::decompose`]), and programs of
//!   symbolic shapes to the shapes of their arguments.
//! * [`versions`]: the versions of VHLO that can be read, which a plugin advertises to its hosts.
//!
//! # What can be read
//!
//! * MLIR bytecode of format versions 0 to 6, with VHLO from [`versions::MINIMUM_VERSION`] to
//!   [`versions::CURRENT_VERSION`], and `builtin`, `func`, `sdy`, `chlo`, `quant` and native `stablehlo` operations,
//!   attributes and types mixed in, as JAX mixes them, or alone. Older VHLO is upgraded on the way in.
//! * MLIR text: the generic form, which GoMLX sends, and the custom assembly of StableHLO, CHLO, `func` and Shardy, which
//!   `jax.jit(f).lower(x).as_text()` gives; with aliases, locations and resources.
//! * HLO, XLA's own form: `HloModuleProto` and `HloModuleProtoWithConfig`, which PyTorch/XLA, TensorFlow and older GoMLX
//!   send. Tuples are taken apart, called and fused computations become functions, opcodes that StableHLO lacks become
//!   composites or are expressed in StableHLO; see [`parse_hlo`].
//! * Everything else gives an error of kind [`ErrorKind::Unsupported`].
//!
//! Operations of dialects that the table does not have are kept as [`ir::Op::Other`] where their encoding is known;
//! attributes beyond an operation's own (`mhlo.sharding`, `sdy.sharding`, `jax.result_info`, ...) are kept as they are.
//!
//! Which operations are typed says [`ir::OpCode::ALL`], and for people `docs/ops.md` of the repository; programs find the
//! same in the crate's `coverage.json`.
//!
//! # On the command line
//!
//! `cargo pjrt cat` (of the package `cargo-pjrt`) reads programs from files or standard input, checks them, and prints their
//! text (`--locations` for source locations as well) or their numbers of operations, constants and values (`--statistics`).
//! Errors show the line of the text or the byte of the bytecode.
//!
//! # Hostile input
//!
//! Reading neither panics nor recurses in proportion to the input (a stack of 512 KiB is enough, for printing and dropping
//! too), and takes memory in proportion to it: constants are windows of the input ([`Bytes`]) where it is bytecode, splats
//! stay splats, and counts are checked against the bytes that are left before anything is allocated for them. Errors say at
//! which byte of the input (of text: at which line and column), in which operation, and where in the source program.

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

/// The example of the crate's front page, which is no part of this documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use bytes::Bytes;
pub use infer::{Inferred, infer_result_types, types_compatible};
pub use ir::Module;
pub use ir::error::{Constraint, Error, ErrorKind};
pub use parse::{parse, parse_hlo, parse_hlo_with_config};
pub use verify::verify;
