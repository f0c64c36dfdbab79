//! Sharding propagation and SPMD partitioning of StableHLO programs.
//!
//! * [`propagate`](propagate()) derives the shardings that a program does not state.
//! * [`partition`](partition()) rewrites a program on whole arrays as the program of one partition: every array becomes the
//!   part that the partition holds, and collective operations exchange data between partitions.
//! * [`partition_calls`] replaces custom calls with the programs that the host supplies for one partition (JAX's
//!   `custom_partitioning`).
//! * [`to_manual_computations`] replaces the custom calls by which programs for XLA's GSPMD partitioner express JAX's
//!   `shard_map` with manual computations.
//! * [`ShardingRule`] states which dimensions of an operation's operands and results are split together, in the terms of
//!   [Shardy](https://openxla.org/shardy). One table contains the rules of all StableHLO operations.
//!
//! All functions take and return StableHLO modules. They do not depend on the compiler that runs afterwards.
//!
//!
//! ```
//! use pjrt_sharding::{Options, partition, propagate};
//!
//! let module = pjrt_stablehlo::parse(
//!     r#"sdy.mesh @mesh = <["x"=2]>
//!     func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<4x2xf32>)
//!         -> tensor<8x2xf32> {
//!       %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
//!         : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
//!       return %0 : tensor<8x2xf32>
//!     }"#,
//! )?;
//! let options = Options { num_partitions: 2, propagate_to_results: vec![true], ..Options::default() };
//! let shardings = propagate(&module, &options)?;
//! let part = partition(&module, &shardings, &options)?;
//! // Each device holds four rows of `%a` and computes the same rows of the product. It needs no data of the other device.
//! assert_eq!(part.main().unwrap().result_types()[0].to_string(), "tensor<4x2xf32>");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

/// Compiles the example in the crate's README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod axes;
mod call_partitioner;
mod calls;
mod cut;
mod devices;
mod error;
mod gspmd;
mod hlo_sharding;
mod layout;
mod mesh;
mod options;
mod partition;
mod propagate;
mod rebuilt;
mod rule;
mod said;
mod sharding;
mod split;

pub use call_partitioner::{CallPartitioner, PartitionedCall, WholeCall};
pub use calls::{has_partitioned_calls, partition_calls};
pub use error::{Error, ErrorKind};
pub use gspmd::{has_manual_regions, to_manual_computations};
pub use mesh::mesh_of;
pub use options::{FindPartitioner, Options};
pub use partition::partition;
pub use pjrt_stablehlo::ir::Reduction;
pub use propagate::{Shardings, propagate};
pub use rule::{CallRule, Factor, FactorKind, Padding, RuleBuilder, ShardingRule, TensorMapping};
pub use sharding::{Sharding, Subgroup, TileAssignment};
