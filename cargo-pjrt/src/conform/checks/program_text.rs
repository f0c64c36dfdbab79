//! Programs of several parameters and outputs, which only add.

use crate::conform::harness::Finding;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, ExecuteOptions, Launched, LoadedExecutable, Program, Result};

/// An addition of a program: the two values that it adds, such as `%p0`, and their type.
pub(super) type Sum<'a> = (&'a str, &'a str, &'a str);

/// Returns the text of a program that returns sums of its parameters, which are `%p0`, `%p1` and so on.
pub(super) fn sums(parameters: &[&str], sums: &[Sum<'_>]) -> String {
    let parameters: Vec<String> =
        parameters.iter().enumerate().map(|(index, ty)| format!("%p{index}: tensor<{ty}>")).collect();
    let lines: String = sums
        .iter()
        .enumerate()
        .map(|(index, (x, y, ty))| format!("    %s{index} = stablehlo.add {x}, {y} : tensor<{ty}>\n"))
        .collect();
    let types: Vec<String> = sums.iter().map(|(_, _, ty)| format!("tensor<{ty}>")).collect();
    let names: Vec<String> = (0..sums.len()).map(|index| format!("%s{index}")).collect();
    with_main(&parameters.join(", "), &lines, &names.join(", "), &types.join(", "))
}

/// Returns the text of a program with these parameters, operations and results.
pub(super) fn with_main(parameters: &str, lines: &str, results: &str, types: &str) -> String {
    let (arrow, colon) = match types {
        "" => (String::new(), String::new()),
        _ => (format!(" -> ({types})"), format!(" {results} : {types}")),
    };
    format!(
        "module @sums {{\n  func.func public @main({parameters}){arrow} {{\n{lines}    return{colon}\n  }}\n}}\n"
    )
}

/// Compiles a program. A plugin that cannot compile it lacks the feature that a check tests.
pub(super) fn compiled(
    client: &Client,
    text: &str,
    options: &CompileOptions,
) -> std::result::Result<LoadedExecutable, Finding> {
    client
        .compile(&Program::mlir(text), &options.encode())
        .map_err(|error| Finding::Unsupported(format!("the program cannot be compiled: {error}")))
}

/// Executes a program on one device, with the id of a launch that a fault can refer to.
pub(super) fn launch(
    executable: &LoadedExecutable,
    arguments: &[&Buffer],
    launch_id: i32,
) -> Result<Launched> {
    launch_on_all(executable, &[arguments.to_vec()], launch_id)
}

/// Executes a program with one list of arguments per device.
pub(super) fn launch_on_all(
    executable: &LoadedExecutable,
    arguments: &[Vec<&Buffer>],
    launch_id: i32,
) -> Result<Launched> {
    let options = ExecuteOptions { launch_id, ..ExecuteOptions::default() };
    executable.launch(arguments, &options, None, true).map_err(|refused| refused.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_the_checks_are_valid() {
        for text in [
            sums(&["4xf32", "f32"], &[("%p0", "%p0", "4xf32"), ("%p1", "%p1", "f32")]),
            sums(&["4xf32"], &[]),
        ] {
            let module = pjrt_stablehlo::parse(text.as_bytes().to_vec());
            assert!(module.is_ok(), "{text}: {module:?}");
        }
    }
}
