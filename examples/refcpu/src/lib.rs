//! A reference CPU plugin for PJRT: a StableHLO compiler and interpreter in pure Rust.
