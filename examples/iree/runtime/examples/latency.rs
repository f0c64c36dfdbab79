//! Measures the time of a call: `cargo run --release --example latency PROGRAM.vmfb`, with the code of a program of one matrix
//! of f32.
//!
//! The option `dump` of the plugin writes such code. The result is a lower bound for the time of a call through the plugin.

use std::time::Instant;

use iree_runtime::{Array, Driver, ElementType, Program};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected the path of the code")?;
    let device = Driver::open("local-task")?.device(0)?;
    let program = Program::load(&device, &std::fs::read(path)?)?;
    let x = Array::upload(&device, ElementType::F32, &[64, 64], &[0; 4 * 64 * 64])?;
    let calls = 2000_u32;
    for _ in 0..2 {
        let start = Instant::now();
        for _ in 0..calls {
            program.call(&[&x])?.done.wait()?;
        }
        println!("{:?} for each call, waiting for each", start.elapsed() / calls);
        let start = Instant::now();
        let mut last = program.call(&[&x])?;
        for _ in 1..calls {
            last = program.call(&[&x])?;
        }
        last.done.wait()?;
        println!("{:?} for each call, waiting for the last", start.elapsed() / calls);
    }
    Ok(())
}
