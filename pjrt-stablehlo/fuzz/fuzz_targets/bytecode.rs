//! Checks that reading MLIR bytecode returns an error, or a module that can be printed.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use pjrt_stablehlo_fuzz::{bytecode, exercise};

fuzz_target!(|program: &[u8]| {
    match pjrt_stablehlo::parse(program) {
        Ok(module) => drop(exercise(&module)),
        Err(error) => drop(error.to_string()),
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    bytecode::mutate(data, size, max_size, seed, fuzzer_mutate)
});
