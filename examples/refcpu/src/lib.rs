//! A reference CPU plugin for PJRT: a StableHLO compiler and interpreter in pure Rust.
#![deny(unsafe_code)]

pub mod compile;
pub mod dump;
pub mod exec;
pub mod graph;
pub mod plan;
pub mod plugin;
#[allow(
    unsafe_code,
    reason = "kernels write into memory that arrays share; the module says why that is sound"
)]
pub mod storage;
mod trace;
