//! A compiler and executor for StableHLO programs on the CPU, in pure Rust.
//!
//! * [`compile`] compiles a StableHLO module to a [`plan::Plan`].
//! * [`exec`] runs a plan on [`storage::Array`]s.
//!
//! This crate does not depend on PJRT. The plugin that hosts load is `examples/refcpu`.
#![deny(unsafe_code)]

pub mod compile;
pub mod dump;
pub mod exec;
pub mod graph;
pub mod plan;
#[allow(
    unsafe_code,
    reason = "kernels write to memory that arrays share; the documentation of the module explains why this is sound"
)]
pub mod storage;
pub mod trace;
