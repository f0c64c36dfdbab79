//! Checks that a module from bytecode that is printed with locations and read again is the same module.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use pjrt_stablehlo::ErrorKind;
use pjrt_stablehlo_fuzz::bytecode;

fuzz_target!(|program: &[u8]| {
    let Ok(module) = pjrt_stablehlo::parse(program) else { return };
    let printed = format!("{module:#}");
    match pjrt_stablehlo::parse(&*printed) {
        Ok(again) => assert_eq!(format!("{again:#}"), printed),
        // Bytecode shares attributes and types that text repeats.
        Err(error) if error.kind == ErrorKind::TooLarge => {}
        Err(error) => panic!("{error}\n{printed}"),
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    bytecode::mutate(data, size, max_size, seed, fuzzer_mutate)
});
