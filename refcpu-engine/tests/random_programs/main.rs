//! Random programs: those of `cargo xtask differential`, for every operation and element type, with special values.
#![allow(dead_code, reason = "the driver of `cargo xtask differential` uses the rest of the generator")]

#[path = "../../examples/differential/generator.rs"]
mod generator;
#[path = "../../examples/differential/ops/mod.rs"]
mod ops;
#[path = "../../examples/differential/program.rs"]
mod program;
#[path = "../../examples/differential/random.rs"]
mod random;
#[path = "../../examples/differential/table.rs"]
mod table;
#[path = "../../examples/differential/types.rs"]
mod types;
mod writing;

/// Runs a function on a thread with much stack, which reading and compiling nested programs take.
fn on_large_stack(function: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(function).unwrap();
    if let Err(payload) = thread.join() {
        std::panic::resume_unwind(payload);
    }
}
