//! Compiles StableHLO modules to plans.

mod api;
mod call_rule;
mod compiled;
mod core_ops;
mod emit;
mod lower;
mod optimise;
mod phases;

pub use api::{CompileError, CompileErrorKind, CompileOptions, Parts};
pub use compiled::{ArrayInfo, Compiled, compile, core_ops, partitioned, stats_of_partition};
