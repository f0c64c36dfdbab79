//! Checks of optimized programs: hosts receive all of their bytes.

use super::compile::compile_hlo;
use super::entry::{Entry, check};
use crate::conform::harness::{Context, Finding, Verdict, add_program, compile_add, ensure, equal};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{LoadedExecutable, Program};

const PROGRAM: &str = "PJRT_Executable_OptimizedProgram";
const PROGRAM_TEXT: &str = "The caller calls the function twice: without memory for the code to obtain its size, and then with memory of this size, which the function fills.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "optimized/is_whole",
        "The bytes of an optimized program are a whole program of its format, which hosts parse.",
        is_whole,
        "PJRT_Executable_OptimizedProgram cut_program",
    )
    .header(PROGRAM, PROGRAM_TEXT)
    .used_by(&[Profile::Jax, Profile::TorchXla])
    .also(&["optimized/fills_its_size"]),
    check(
        "optimized/fills_its_size",
        "PJRT_Executable_OptimizedProgram writes as many bytes as the size that it returns.",
        fills,
        "PJRT_Executable_OptimizedProgram set program>code_size+4",
    )
    .header(PROGRAM, PROGRAM_TEXT)
    .used_by(&[Profile::Jax, Profile::TorchXla])
    .also(&["optimized/is_whole"]),
    check(
        "optimized/is_of_each_executable",
        "PJRT_Executable_OptimizedProgram returns the program of the executable that it is called for: those of two programs differ.",
        is_of_each,
        "PJRT_Executable_OptimizedProgram first executable",
    )
    .header(PROGRAM, PROGRAM_TEXT)
    .used_by(&[Profile::Jax, Profile::TorchXla])
    .also(&["optimized/*", "compile/optimized_program", "compile/optimized_program_of_hlo"]),
];

fn fills(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = compile_add(&client)?;
    let executable = loaded.executable()?;
    let (first, _) = executable.optimized_program_over(0x00)?;
    let (second, _) = executable.optimized_program_over(0xFF)?;
    equal("the size of the program in the second pair of calls", second.len(), first.len())?;
    let is_unwritten = |(first, second): (&u8, &u8)| *first == 0x00 && *second == 0xFF;
    let unwritten = first.iter().zip(&second).filter(|pair| is_unwritten(*pair)).count();
    ensure!(
        unwritten == 0,
        "{unwritten} of {} bytes were not written: the size in the first call is larger than the program, or the second call copies only a part",
        first.len()
    );
    Ok(())
}

fn is_of_each(context: &Context) -> Verdict {
    let client = context.client()?;
    let compile =
        |shape| client.compile(&Program::mlir(&add_program(shape)), &CompileOptions::default().encode());
    let loaded = [compile("4x")?, compile("2x3x")?];
    let [first, second] = [loaded[0].executable()?, loaded[1].executable()?];
    let (of_first, _) = first.optimized_program()?;
    ensure!(
        second.optimized_program()?.0 != of_first,
        "{PROGRAM} returns the same bytes for two programs, which add f32[4] and f32[2,3]: it probably keeps the program of the \
         first executable that it was called for"
    );
    Ok(())
}

fn is_whole(context: &Context) -> Verdict {
    let client = context.client()?;
    is_whole_of(&compile_add(&client)?)?;
    // A plugin need not read HLO.
    compile_hlo(&client).map_or(Ok(()), |loaded| is_whole_of(&loaded))
}

fn is_whole_of(loaded: &LoadedExecutable) -> Verdict {
    let (code, format) = loaded.executable()?.optimized_program()?;
    // Hosts choose the parser by the format.
    let is_mlir = code.starts_with(b"ML\xefR") || is_text(&code);
    ensure!(
        is_mlir == (format == "mlir") || !["mlir", "hlo", "hlo_with_config"].contains(&format.as_str()),
        "the format is {format:?}, but the {} bytes of the program are {}: the plugin probably names another format than that of the bytes",
        code.len(),
        if is_mlir { "MLIR" } else { "neither MLIR text nor MLIR bytecode" }
    );
    let outcome = match format.as_str() {
        "mlir" => whole_mlir(&code),
        "hlo" => pjrt_stablehlo::parse_hlo(code.clone()).map(drop).or_else(unless_cut),
        "hlo_with_config" => {
            pjrt_stablehlo::parse_hlo_with_config(code.clone()).map(drop).or_else(unless_cut)
        }
        _ => {
            return Err(Finding::Unsupported(format!("the format {format:?} is not one that the kit reads")));
        }
    };
    let len = code.len();
    outcome.map_err(|why| {
        Finding::Wrong(format!(
            "the program of {len} bytes in the format {format} cannot be parsed: {why}; the plugin probably returned only a part of it"
        ))
    })
}

/// Accepts unknown operations and attributes: only the bytes must be complete.
fn unless_cut(error: pjrt_stablehlo::Error) -> Result<(), String> {
    match error.kind {
        pjrt_stablehlo::ErrorKind::Malformed => Err(error.to_string()),
        _ => Ok(()),
    }
}

fn is_text(code: &[u8]) -> bool {
    let is_printed =
        |text: &str| text.chars().all(|letter| !letter.is_control() || letter.is_ascii_whitespace());
    std::str::from_utf8(code).is_ok_and(is_printed)
}

fn whole_mlir(code: &[u8]) -> Result<(), String> {
    pjrt_stablehlo::parse(code.to_vec()).map(drop).or_else(unless_cut)
}
