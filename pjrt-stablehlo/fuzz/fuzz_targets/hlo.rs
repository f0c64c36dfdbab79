//! Checks that reading HLO protos returns an error, or a module whose text is that of a module with the same operations.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pjrt_stablehlo_fuzz::exercise;

fuzz_target!(|program: &[u8]| {
    let forms = [pjrt_stablehlo::parse_hlo(program), pjrt_stablehlo::parse_hlo_with_config(program)];
    for form in forms {
        match form {
            Ok(module) => {
                let text = |printed: &str| {
                    pjrt_stablehlo::parse(printed).unwrap_or_else(|error| panic!("{error}\n{printed}"))
                };
                // Operations are numbered in the order in which they are read.
                let again = text(&exercise(&module));
                assert_eq!(again.op_counts(), module.op_counts());
                let printed = exercise(&again);
                assert_eq!(text(&printed).to_string(), printed);
            }
            Err(error) => drop(error.to_string()),
        }
    }
});
