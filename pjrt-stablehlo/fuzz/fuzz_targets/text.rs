//! Checks that reading MLIR text returns an error, or a module whose text is that of the same module.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use pjrt_stablehlo_fuzz::{exercise, text};

fuzz_target!(|program: &str| {
    match pjrt_stablehlo::parse(program) {
        Ok(module) => {
            let printed = exercise(&module);
            let again = pjrt_stablehlo::parse(&*printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
            assert_eq!(again.to_string(), printed);
        }
        Err(error) => drop(error.to_string()),
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    text::mutate(data, size, max_size, seed, fuzzer_mutate)
});
