//! A compiler and executor of StableHLO programs on the CPU, in pure Rust.
//!
//! The engine knows programs and arrays, and nothing of PJRT: `examples/refcpu` is the plugin that hosts load.
#![deny(unsafe_code)]

pub mod compile;
pub mod dump;
pub mod exec;
pub mod graph;
pub mod plan;
#[allow(
    unsafe_code,
    reason = "kernels write into memory that arrays share; the module says why that is sound"
)]
pub mod storage;
pub mod trace;
