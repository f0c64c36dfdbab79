//! Shardings of StableHLO programs: how arrays are split among devices, and the program that each device runs then.
//!
//! * [`propagate`](propagate()) finds how the arrays of a program are split of which the program does not say it.
//! * [`partition`](partition()) rewrites a program on whole arrays as that of one device, on parts of them, with the collective
//!   operations by which devices get what they need of each other.
//! * [`partition_calls`] asks the host how its custom calls run on parts (`custom_partitioning`).
//! * [`ShardingRule`] says which dimensions of an operation's operands and results are cut together, in the terms of
//!   [Shardy](https://openxla.org/shardy); one table has the rules of all operations.
//!
//! All are from StableHLO to StableHLO, and know nothing of what compiles the program afterwards.
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
//! // Each device computes the rows of the product that it has of `%a`, and needs nothing of the other.
//! assert_eq!(part.main().unwrap().result_types()[0].to_string(), "tensor<4x2xf32>");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

/// The example of the crate's front page, which is no part of this documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod call_partitioner;
mod calls;
mod cut;
mod devices;
mod error;
mod hlo_sharding;
mod layout;
mod mesh;
mod options;
mod partition;
mod propagate;
mod rule;
mod said;
mod sharding;
mod split;

pub use call_partitioner::{CallPartitioner, PartitionedCall, WholeCall};
pub use calls::{has_partitioned_calls, partition_calls};
pub use error::{Error, ErrorKind};
pub use mesh::mesh_of;
pub use options::{FindPartitioner, Options};
pub use partition::partition;
pub use propagate::{Shardings, propagate};
pub use rule::{CallRule, Factor, FactorKind, Padding, RuleBuilder, ShardingRule, TensorMapping};
pub use sharding::{Sharding, Subgroup, TileAssignment};
