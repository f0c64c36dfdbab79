//! Programs that are written as bytecode, and read again.

use crate::{generator, on_large_stack, table, types};
use pjrt_stablehlo::ir::OpCode;
use pjrt_stablehlo::versions::{CURRENT_VERSION, MINIMUM_VERSION, Version};
use pjrt_stablehlo::{ErrorKind, Module, parse, write_bytecode, write_portable_artifact};

/// The versions of portable artifacts, of which each program is written in one, and in the newest.
const VERSIONS: [Version; 6] = [
    MINIMUM_VERSION,
    Version::new(0, 14, 0),
    Version::new(1, 0, 0),
    Version::new(1, 5, 0),
    Version::new(1, 9, 0),
    Version::new(1, 13, 0),
];

/// Returns the text of a module with everything that bytecode contains.
fn text(module: &Module) -> String {
    format!("{module:#}")
}

#[test]
fn programs_are_the_same_after_writing_them_in_both_forms() {
    on_large_stack(|| {
        let all =
            OpCode::ALL.iter().flat_map(|&code| types::elements().into_iter().map(move |ty| (code, ty)));
        let (mut written, mut refused) = (0, 0);
        for (number, (code, element)) in all.filter(|&(code, ty)| table::is_allowed(code, ty)).enumerate() {
            let Some(program) = generator::program(31, number as u64, code, element) else { continue };
            let Ok(module) = parse(program.text(false)) else { continue };
            let expected = text(&module);
            let bytecode = write_bytecode(&module).unwrap_or_else(|error| panic!("{error}\n{module}"));
            let again = parse(bytecode).unwrap_or_else(|error| panic!("{error}\n{module}"));
            assert_eq!(text(&again), expected);
            for version in [VERSIONS[number % VERSIONS.len()], CURRENT_VERSION] {
                match write_portable_artifact(&module, version) {
                    Ok(artifact) => {
                        let again =
                            parse(artifact).unwrap_or_else(|error| panic!("{version}: {error}\n{module}"));
                        assert_eq!(text(&again), expected, "{version}");
                        written += 1;
                    }
                    Err(error) => {
                        let is_old = error.kind == ErrorKind::Unsupported && version != CURRENT_VERSION;
                        assert!(is_old && error.message.contains("VHLO"), "{version}: {error}\n{module}");
                        refused += 1;
                    }
                }
            }
        }
        assert!(written > 1000 && refused > 50, "{written} written, {refused} refused");
    });
}
