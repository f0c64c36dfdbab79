//! Reading HLO protos gives a module whose text reads as the same module, or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pjrt_stablehlo_fuzz::exercise;

fuzz_target!(|program: &[u8]| {
    let forms = [pjrt_stablehlo::parse_hlo(program), pjrt_stablehlo::parse_hlo_with_config(program)];
    for form in forms {
        match form {
            Ok(module) => {
                let printed = exercise(&module);
                let again =
                    pjrt_stablehlo::parse(&*printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
                assert_eq!(again.to_string(), printed);
            }
            Err(error) => drop(error.to_string()),
        }
    }
});
