//! Checks that a program behaves the same in whichever way it was loaded: compiled, serialized and loaded, or compiled
//! ahead of time.

use super::devices::{id_of, two};
use super::donation::is_donated;
use super::entry::{Entry, check};
use super::program_text::{launch_on_all, sums, with_main};
use super::samples::Shaped;
use crate::conform::harness::{Context, Finding, Verdict, add_program, ensure};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Device, ElementType, Error, Executable, ExecuteOptions, LoadedExecutable, Program,
};

const LOAD: &str = "PJRT_Executable_DeserializeAndLoad";
const LOAD_TEXT: &str =
    "Deserializes an executable serialized by `PJRT_Executable_Serialize`: it is the same executable.";
const AHEAD_TEXT: &str =
    "The returned executable must be loaded by a compatible PJRT_Client before execution.";
const USERS: &[Profile] = &[Profile::Jax, Profile::Zml];

pub(super) const CHECKS: &[Entry] = &[
    check(
        "reloaded/properties",
        "An executable that was serialized and loaded reports what the compiled one does: name, outputs, memory kinds, layouts, shardings, costs, options, devices.",
        |context| properties(context, serialized),
        "PJRT_Executable_OutputMemoryKinds since PJRT_Executable_DeserializeAndLoad set num_outputs=0",
    )
    .header(LOAD, LOAD_TEXT)
    .used_by(USERS),
    check(
        "reloaded/results",
        "An executable that was serialized and loaded returns the same arrays as the compiled one, for scalars, several outputs and each run.",
        |context| results(context, serialized),
        "PJRT_LoadedExecutable_Execute when options>launch_id=621 since PJRT_Executable_DeserializeAndLoad zeroed_output 0",
    )
    .header(LOAD, LOAD_TEXT)
    .used_by(USERS),
    check(
        "reloaded/donation",
        "An executable that was serialized and loaded donates the arguments that the compiled one donates, and no others.",
        |context| donation(context, serialized),
        "PJRT_LoadedExecutable_Execute when options>launch_id=622 since PJRT_Executable_DeserializeAndLoad delete_argument 1",
    )
    .header(LOAD, LOAD_TEXT)
    .used_by(USERS),
    check(
        "reloaded/several_devices",
        "An executable of two replicas on the second and the first device that was serialized and loaded runs on these devices in this order.",
        |context| several_devices(context, serialized),
        "PJRT_LoadedExecutable_Execute when options>launch_id=623 since PJRT_Executable_DeserializeAndLoad swap_devices",
    )
    .header(LOAD, LOAD_TEXT)
    .used_by(USERS),
    check(
        "reloaded/compiled_ahead",
        "An executable of PJRT_Compile that PJRT_Client_Load loads reports, computes and donates what the compiled one does.",
        |context| {
            properties(context, compiled_ahead)?;
            results(context, compiled_ahead)?;
            donation(context, compiled_ahead)
        },
        "PJRT_Executable_OutputMemoryKinds since PJRT_Client_Load set num_outputs=0",
    )
    .header("PJRT_Compile", AHEAD_TEXT)
    .since(95),
];

/// A program, and the types and dimensions of its arguments.
struct Subject {
    text: String,
    arguments: Vec<(ElementType, Vec<i64>)>,
}

/// Returns programs that differ in what functions report about them.
fn subjects() -> Vec<Subject> {
    let four = || (ElementType::F32, vec![4]);
    let types = ["4xf32", "f32", "2x3xf32"];
    let ranks = [("%p0", "%p0", types[0]), ("%p1", "%p1", types[1]), ("%p2", "%p2", types[2])];
    vec![
        Subject { text: add_program("4x"), arguments: vec![four(), four()] },
        Subject {
            text: sums(&types, &ranks).replacen("@sums", "@of_three_ranks", 1),
            arguments: vec![four(), (ElementType::F32, vec![]), (ElementType::F32, vec![2, 3])],
        },
        Subject {
            text: sums(&["i32", "2xi32"], &[("%p1", "%p1", "2xi32"), ("%p0", "%p0", "i32")]),
            arguments: vec![(ElementType::S32, vec![]), (ElementType::S32, vec![2])],
        },
        Subject { text: donating(), arguments: vec![four(), four(), four()] },
        Subject { text: sums(&["4xf32"], &[]).replacen("@sums", "@no_outputs", 1), arguments: vec![four()] },
    ]
}

/// Returns a program that donates the second and the third of its parameters.
fn donating() -> String {
    let ty = "tensor<4xf32>";
    let parameters = format!(
        "%p0: {ty}, %p1: {ty} {{tf.aliasing_output = 1 : i32}}, %p2: {ty} {{tf.aliasing_output = 0 : i32}}"
    );
    let lines = format!("    %s0 = stablehlo.add %p0, %p1 : {ty}\n    %s1 = stablehlo.add %p1, %p2 : {ty}\n");
    with_main(&parameters, &lines, "%s0, %s1", &format!("{ty}, {ty}")).replacen("@sums", "@donating", 1)
}

/// A way to obtain a program other than by PJRT_Client_Compile, from the program and its options, and the compiled one.
type Loader = fn(&Client, &str, &[u8], &LoadedExecutable) -> Result<LoadedExecutable, Finding>;

fn serialized(
    client: &Client,
    _: &str,
    _: &[u8],
    compiled: &LoadedExecutable,
) -> Result<LoadedExecutable, Finding> {
    Ok(client.deserialize(&compiled.executable()?.serialize()?.bytes)?)
}

fn compiled_ahead(
    client: &Client,
    text: &str,
    options: &[u8],
    _: &LoadedExecutable,
) -> Result<LoadedExecutable, Finding> {
    let executable = client.compile_ahead(&client.topology()?, &Program::mlir(text), options);
    // Another check tests that programs can be compiled and loaded so.
    let lacking =
        |error: Error| Finding::Unsupported(format!("the program cannot be compiled ahead of time: {error}"));
    client.load(&executable.map_err(lacking)?).map_err(lacking)
}

/// A compiled program, and the same program that was loaded in another way.
struct Pair {
    compiled: LoadedExecutable,
    loaded: LoadedExecutable,
    /// The [`REPORTS`] about the compiled program from before the other one was loaded.
    expected: Vec<Option<String>>,
}

/// Compiles a program, and loads it in another way. Returns `None` if the plugin does not compile it.
fn both(
    client: &Client,
    text: &str,
    options: &CompileOptions,
    load: Loader,
) -> Result<Option<Pair>, Finding> {
    let options = options.encode();
    let Ok(compiled) = client.compile(&Program::mlir(text), &options) else { return Ok(None) };
    let program = compiled.executable()?;
    // Other checks test what functions report about a compiled program.
    let expected = REPORTS.iter().map(|(_, describe)| describe(&compiled, &program).ok()).collect();
    let loaded = load(client, text, &options, &compiled)?;
    Ok(Some(Pair { compiled, loaded, expected }))
}

/// A function that describes a program as text.
pub(super) type Describe = fn(&LoadedExecutable, &Executable) -> Result<String, Error>;

/// The facts that functions report about a program.
pub(super) const REPORTS: &[(&str, Describe)] = &[
    ("PJRT_Executable_Name", |_, program| program.name()),
    ("PJRT_Executable_NumReplicas", |_, program| program.num_replicas().map(|it| it.to_string())),
    ("PJRT_Executable_NumPartitions", |_, program| program.num_partitions().map(|it| it.to_string())),
    ("PJRT_Executable_NumOutputs", |_, program| program.num_outputs().map(|it| it.to_string())),
    ("PJRT_Executable_OutputElementTypes", |_, program| program.output_types().map(|it| format!("{it:?}"))),
    ("PJRT_Executable_OutputDimensions", |_, program| program.output_dims().map(|it| format!("{it:?}"))),
    ("PJRT_Executable_OutputMemoryKinds", |_, program| {
        program.output_memory_kinds().map(|it| format!("{it:?}"))
    }),
    ("PJRT_Executable_ParameterMemoryKinds", |_, program| {
        program.parameter_memory_kinds().map(|it| format!("{it:?}"))
    }),
    ("PJRT_Executable_Fingerprint", |_, program| program.fingerprint()),
    ("PJRT_Executable_GetCostAnalysis", |_, program| program.cost_analysis().map(|it| format!("{it:?}"))),
    ("PJRT_Executable_GetCompiledMemoryStats", |_, program| {
        program.memory_stats().map(|it| {
            format!(
                "{} bytes of arguments, {} of outputs, {} temporary",
                it.arguments, it.outputs, it.temporaries
            )
        })
    }),
    ("PJRT_Executable_SizeOfGeneratedCodeInBytes", |_, program| program.code_size().map(|it| it.to_string())),
    ("PJRT_Executable_GetCompileOptions", |_, program| {
        program.compile_options().map(|it| format!("{} bytes: {:?}", it.bytes.len(), it.bytes))
    }),
    ("PJRT_LoadedExecutable_Fingerprint", |loaded, _| loaded.fingerprint()),
    ("PJRT_Executable_OptimizedProgram", |_, program| program.optimized_program().map(|(_, format)| format)),
    ("PJRT_Layouts_PJRT_Executable_GetOutputLayouts", |_, program| {
        program.output_layouts().map(|it| format!("{it:?}"))
    }),
    ("PJRT_Layouts_PJRT_Executable_GetParameterLayouts", |_, program| {
        program.parameter_layouts().map(|it| format!("{it:?}"))
    }),
    ("PJRT_Shardings_PJRT_Executable_OutputShardings", |_, program| {
        program.output_shardings().map(|it| format!("{it:?}"))
    }),
    ("PJRT_Shardings_PJRT_Executable_ParameterShardings", |_, program| {
        program.parameter_shardings().map(|it| format!("{it:?}"))
    }),
    ("PJRT_LoadedExecutable_AddressableDevices", |loaded, _| {
        loaded.devices()?.into_iter().map(id_of).collect::<Result<Vec<_>, _>>().map(|it| format!("{it:?}"))
    }),
    ("PJRT_LoadedExecutable_AddressableDeviceLogicalIds", |loaded, _| {
        loaded.logical_ids().map(|it| format!("{it:?}"))
    }),
    ("PJRT_LoadedExecutable_GetDeviceAssignment", |loaded, _| {
        loaded.device_assignment().map(|it| format!("{:?}", it.bytes))
    }),
    ("PJRT_LoadedExecutable_IsDeleted", |loaded, _| loaded.is_deleted().map(|it| it.to_string())),
];

/// Compares what two programs report.
fn report_the_same(name: &str, Pair { loaded, expected, .. }: &Pair) -> Verdict {
    let program = loaded.executable()?;
    for ((function, describe), expected) in REPORTS.iter().zip(expected) {
        let Some(expected) = expected else { continue };
        let got = match describe(loaded, &program) {
            Ok(got) => got,
            Err(error) => format!("the error {error}"),
        };
        ensure!(
            got == *expected,
            "{function} of the program {name} is {got} after the program was loaded; it was {expected} for the compiled \
             program. The plugin probably does not store this with the executable"
        );
    }
    Ok(())
}

/// Runs a check for each program that the plugin compiles.
fn for_each_subject(
    context: &Context,
    load: Loader,
    work: impl Fn(&Client, &Subject, &str, &Pair) -> Verdict,
) -> Verdict {
    let client = context.client()?;
    let mut checked = 0;
    for subject in subjects() {
        let Some(pair) = both(&client, &subject.text, &CompileOptions::default(), load)? else { continue };
        let name = subject
            .text
            .split_once('@')
            .and_then(|(_, rest)| rest.split_once(' '))
            .map_or("", |(name, _)| name);
        work(&client, &subject, name, &pair)?;
        checked += 1;
    }
    match checked {
        0 => Err(Finding::Unsupported("no program can be compiled".to_owned())),
        _ => Ok(()),
    }
}

fn properties(context: &Context, load: Loader) -> Verdict {
    for_each_subject(context, load, |_, _, name, pair| report_the_same(name, pair))
}

/// Uploads arguments of a program to a device, with elements that depend on the round.
fn arguments(
    client: &Client,
    subject: &Subject,
    device: Device<'_>,
    round: usize,
) -> Result<Vec<Buffer>, Error> {
    let upload = |(index, (element_type, dims)): (usize, &(ElementType, Vec<i64>))| {
        let sample = Shaped::new(*element_type, dims, 3 * index + round);
        Ok(client.upload(&sample.host(), Some(device), None)?.buffer)
    };
    subject.arguments.iter().enumerate().map(upload).collect()
}

/// Executes a program, and returns the bytes of its outputs.
fn outputs(program: &LoadedExecutable, arguments: &[Buffer], launch_id: i32) -> Result<Vec<Vec<u8>>, Error> {
    let options = ExecuteOptions { launch_id, ..ExecuteOptions::default() };
    let launched = program
        .launch(&[arguments.iter().collect()], &options, None, true)
        .map_err(|refused| refused.error)?;
    launched.done[0].wait()?;
    launched.outputs_of(0, 0)?.iter().map(Buffer::read).collect()
}

fn results(context: &Context, load: Loader) -> Verdict {
    for_each_subject(context, load, |client, subject, name, Pair { compiled, loaded, .. }| {
        for round in 0..3 {
            let device = client.device()?;
            let expected = outputs(compiled, &arguments(client, subject, device, round)?, 0)?;
            let got = outputs(loaded, &arguments(client, subject, device, round)?, 621);
            let got = got.map_err(|error| {
                Finding::Wrong(format!(
                    "run {} of the program {name} fails after the program was loaded: {error}",
                    round + 1
                ))
            })?;
            ensure!(
                got == expected,
                "run {} of the program {name}, after the program was loaded, returns {got:?}; the compiled program returns \
                 {expected:?}",
                round + 1
            );
        }
        Ok(())
    })
}

fn donation(context: &Context, load: Loader) -> Verdict {
    let mut donates = false;
    let client = context.client()?;
    for subject in subjects() {
        let Some(Pair { compiled, loaded, .. }) =
            both(&client, &subject.text, &CompileOptions::default(), load)?
        else {
            continue;
        };
        let donated = |program: &LoadedExecutable, id: i32| -> Result<Vec<bool>, Finding> {
            let arguments = arguments(&client, &subject, client.device()?, 0)?;
            outputs(program, &arguments, id)?;
            arguments.iter().map(|argument| is_donated(argument, "an argument")).collect()
        };
        let (expected, got) = (donated(&compiled, 0)?, donated(&loaded, 622)?);
        donates |= expected.contains(&true);
        ensure!(
            got == expected,
            "after a program was loaded, its arguments are donated as {got:?}; those of the compiled program as {expected:?}. \
             The plugin probably does not store which parameters are donated"
        );
    }
    match donates {
        true => Ok(()),
        false => Err(Finding::Unsupported("the plugin does not donate arguments".to_owned())),
    }
}

fn several_devices(context: &Context, load: Loader) -> Verdict {
    let client = context.client()?;
    let [first, second] = two(&client)?;
    let devices = [second, first];
    let options = CompileOptions {
        replicas: 2,
        devices: devices.iter().map(|device| id_of(*device)).collect::<Result<_, _>>()?,
        ..CompileOptions::default()
    };
    let subject = Subject { text: donating(), arguments: vec![(ElementType::F32, vec![4]); 3] };
    let Some(pair) = both(&client, &subject.text, &options, load)? else {
        return Err(Finding::Unsupported("no program can be compiled for two devices".to_owned()));
    };
    report_the_same("of two replicas", &pair)?;
    let mut all = Vec::new();
    for (program, id) in [(&pair.compiled, 0), (&pair.loaded, 623)] {
        let uploaded = [arguments(&client, &subject, second, 0)?, arguments(&client, &subject, first, 5)?];
        let lists: Vec<Vec<&Buffer>> = uploaded.iter().map(|list| list.iter().collect()).collect();
        let launched = launch_on_all(program, &lists, id)?;
        let mut seen = Vec::new();
        for (list, outputs) in uploaded.iter().zip(&launched.outputs) {
            for output in outputs {
                seen.push(format!("{:?} on {}", output.read()?, id_of(output.device()?)?));
            }
            for argument in list {
                seen.push(format!("donated: {}", argument.is_deleted()?));
            }
        }
        all.push(seen);
    }
    let differs = all[1].iter().zip(&all[0]).find(|(got, expected)| got != expected);
    match differs {
        None => Ok(()),
        Some((got, expected)) => Err(Finding::Wrong(format!(
            "a program of two replicas on the second and the first device differs after it was loaded: {got}; the compiled \
             program: {expected}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_are_valid() {
        for subject in subjects() {
            let module = pjrt_stablehlo::parse(subject.text.as_bytes().to_vec());
            assert!(module.is_ok(), "{}: {module:?}", subject.text);
        }
    }
}
