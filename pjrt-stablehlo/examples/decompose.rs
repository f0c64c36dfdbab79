//! Reads a program in any supported form from standard input, rewrites it to core operations, and prints it as text.
//!
//! `cargo run -p pjrt-stablehlo --example decompose < program.mlir`

use std::error::Error;
use std::io::Read;

use pjrt_stablehlo::passes::{CoreOps, decompose};

fn main() -> Result<(), Box<dyn Error>> {
    let mut program = Vec::new();
    std::io::stdin().read_to_end(&mut program)?;
    let module = decompose(&pjrt_stablehlo::parse(program)?, &CoreOps::default())?;
    print!("{module}");
    Ok(())
}
