//! Programs that cannot be compiled.

use super::COMPILATION;
use super::fact::outcome;
use super::observer::Observer;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::Program;

const GOOD: &str = "module {\n func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n \
                    %0 = stablehlo.add %x, %x : tensor<2xf32>\n return %0 : tensor<2xf32>\n }\n}\n";

const NO_MAIN: &str = "module {\n func.func public @other(%x: tensor<2xf32>) -> tensor<2xf32> {\n \
                       return %x : tensor<2xf32>\n }\n}\n";

const UNKNOWN: &str = "module {\n func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n \
                       %0 = stablehlo.custom_call @no_such_target(%x) : (tensor<2xf32>) -> tensor<2xf32>\n \
                       return %0 : tensor<2xf32>\n }\n}\n";

const WRONG_TYPES: &str = "module {\n func.func public @main(%x: tensor<2xf32>) -> tensor<3xf32> {\n \
                           %0 = stablehlo.add %x, %x : tensor<2xf32>\n return %0 : tensor<3xf32>\n }\n}\n";

/// Inputs of the compiler: name, program, format, and compile options if they are not the default.
const INPUTS: &[(&str, &str, &str, Option<&[u8]>)] = &[
    ("an empty program", "", "mlir", None),
    ("garbage", "module {\n", "mlir", None),
    ("an unknown format", GOOD, "onnx", None),
    ("text as HLO", GOOD, "hlo", None),
    ("a program without main", NO_MAIN, "mlir", None),
    ("an unknown custom call", UNKNOWN, "mlir", None),
    ("a result of another type", WRONG_TYPES, "mlir", None),
    ("options that are no protocol buffer", GOOD, "mlir", Some(&[0xff, 0xff, 0xff, 0xff])),
    ("no options", GOOD, "mlir", Some(&[])),
];

pub(super) fn names() -> Vec<String> {
    INPUTS.iter().map(|(name, ..)| (*name).to_owned()).collect()
}

pub(super) fn observe(observer: &Observer, name: &str) {
    let Ok(client) = observer.client() else { return };
    let Some((_, code, format, options)) = INPUTS.iter().find(|(known, ..)| *known == name) else { return };
    let default = CompileOptions::default().encode();
    let compiled = client.compile(&Program { code: code.as_bytes(), format }, options.unwrap_or(&default));
    outcome(COMPILATION, compiled, |_| "ok".to_owned());
}
