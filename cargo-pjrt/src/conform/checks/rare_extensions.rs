//! Checks of extensions that no host of JAX or PyTorch/XLA uses: PhaseCompile and ExecutableMetadata.

use super::entry::{Entry, check};
use super::program_text::{compiled, sums};
use crate::conform::harness::{Context, Finding, Verdict, add_program, compile_add, ensure, equal};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::Code;
use pjrt_testing::protobuf::Message;

pub(super) const CHECKS: &[Entry] = &[
    check(
        "extension/phases_run",
        "PJRT_PhaseCompile_Run_Phase runs a phase on each program that it is given, in order, with the same result each time, and refuses a phase that does not exist.",
        phases,
        "PJRT_PhaseCompile_Run_Phase when num_input_programs=2 give num_input_programs=1",
    )
    .header("pjrt_c_api_phase_compile_extension.h", "Runs phases on a list of partial programs, and returns a list of them."),
    check(
        "extension/executable_metadata",
        "ExecutableMetadata returns the metadata of the executable, the same each time, in memory of its own that stays until it is freed.",
        metadata,
        "GetPjrtApi shared_metadata",
    )
    .header("executable_metadata_extension.h", "Returns an executable's metadata, which the caller frees."),
];

/// Returns a program before the first phase (`PjRtPartialProgramProto`).
fn partial(text: &str, first_phase: &str) -> Vec<u8> {
    let message =
        Message::default().bytes(1, text.as_bytes()).bytes(2, b"mlir").bytes(4, first_phase.as_bytes());
    message.bytes(6, b"conform").encode()
}

fn phases(context: &Context) -> Verdict {
    let client = context.client()?;
    let names = context.plugin.compile_phases()?;
    let Some(first) = names.first() else {
        return Err(Finding::NotApplicable("PhaseCompile has no phases".to_owned()));
    };
    let options = CompileOptions::default().encode();
    let programs = [partial(&add_program("4x"), first), partial(&add_program("6x"), first)];
    let run = |programs: &[Vec<u8>]| client.run_phases(&[first], programs, &options);
    // The formats of programs belong to the plugin.
    let alone = run(&programs[..1]).map_err(|error| {
        Finding::NotApplicable(format!("the first phase takes no StableHLO text: {error}"))
    })?;
    equal("the number of programs after a phase that was run on one", alone.len(), 1)?;
    ensure!(!alone[0].is_empty(), "the program after the phase {first:?} is empty");
    equal("the program after the same phase the second time", run(&programs[..1])?, alone.clone())?;
    let other = run(&programs[1..])?;
    ensure!(other != alone, "two different programs are equal after the phase {first:?}");
    let expected = [alone, other].concat();
    equal("the number of programs after a phase that was run on two", run(&programs)?.len(), 2)?;
    equal("the programs after a phase that was run on two", run(&programs)?, expected.clone())?;
    let reversed: Vec<Vec<u8>> = programs.iter().rev().cloned().collect();
    let reversed_outputs: Vec<Vec<u8>> = expected.into_iter().rev().collect();
    equal("the programs after a phase that was run on two in reverse", run(&reversed)?, reversed_outputs)?;
    let unknown = client.run_phases(&["no_such_phase_7f"], &programs[..1], &options);
    ensure!(
        unknown.as_ref().is_err_and(|error| error.code != Code::UNIMPLEMENTED),
        "the phase \"no_such_phase_7f\", which PJRT_PhaseCompile_Get_PhaseNames does not list, returned {unknown:?}; expected an error"
    );
    Ok(())
}

fn metadata(context: &Context) -> Verdict {
    let client = context.client()?;
    let (first, second) = (compile_add(&client)?, {
        let text = sums(&["2x3xf32", "f32"], &[("%p0", "%p0", "2x3xf32"), ("%p1", "%p1", "f32")]);
        compiled(&client, &text, &CompileOptions::default())?
    });
    let (first, second) = (first.executable()?, second.executable()?);
    let of_first = first.metadata()?;
    let before = of_first.read()?;
    let of_second = second.metadata()?;
    let (again, other) = (first.metadata()?.read()?, of_second.read()?);
    equal("the metadata of an executable the second time", &again, &before)?;
    equal(
        "the metadata of an executable after that of another one was requested",
        &of_first.read()?,
        &before,
    )?;
    drop(of_second);
    equal("the metadata of an executable after that of another one was freed", &of_first.read()?, &before)?;
    ensure!(
        before.is_empty() || other != before,
        "the metadata of two different programs is the same {} bytes; the plugin probably returns that of the first executable",
        before.len()
    );
    drop(first);
    equal("the metadata of an executable that was destroyed", &of_first.read()?, &before)
}
