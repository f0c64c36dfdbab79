//! Checks that each compile option holds in whichever way a program is compiled: without a client, with one, and after it was
//! serialized.

use super::devices::{id_of, two};
use super::entry::{Entry, check};
use super::program_text::with_main;
use super::reloaded::REPORTS;
use crate::conform::harness::{Context, Finding, Verdict, ensure, f32_bytes};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Client, Device, ElementType, Error, Executable, ExecuteOptions, HostArray, LoadedExecutable, Program,
    Topology,
};
use pjrt_testing::protobuf::Message;

const OPTIONS: &str = "PJRT_Compile_Args::compile_options";
const OPTIONS_TEXT: &str =
    "A serialized CompileOptionsProto. The client, whose properties may guide the compiler, can be null.";
const SERIALIZE: &str = "PJRT_Executable_DeserializeAndLoad";
const SERIALIZE_TEXT: &str =
    "Deserializes an executable serialized by `PJRT_Executable_Serialize`: it is the same executable.";
const USERS: &[Profile] = &[Profile::Jax, Profile::TorchXla];

pub(super) const CHECKS: &[Entry] = &[
    check(
        "options/compiled_without_a_client",
        "A program that PJRT_Compile compiles without a client has each compile option, before and after PJRT_Client_Load loads it.",
        |context| each(context, &WITHOUT_A_CLIENT),
        "PJRT_Compile when client=0 give compile_options_size=0",
    )
    .header(OPTIONS, OPTIONS_TEXT)
    .used_by(USERS)
    .also(&["options/*"]),
    check(
        "options/compiled_for_a_copied_topology",
        "A program that PJRT_Compile compiles for a topology that was serialized and deserialized has each compile option.",
        |context| each(context, &FOR_A_COPY),
        "PJRT_Compile since PJRT_TopologyDescription_Deserialize give compile_options_size=0",
    )
    .header(OPTIONS, OPTIONS_TEXT),
    check(
        "options/compiled_with_a_client",
        "A program that PJRT_Compile compiles with a client has each compile option, before and after PJRT_Client_Load loads it.",
        |context| each(context, &WITH_A_CLIENT),
        "PJRT_Compile when client!=0 give compile_options_size=0",
    )
    .header(OPTIONS, OPTIONS_TEXT)
    .used_by(USERS),
    check(
        "options/serialized",
        "A program that was serialized and loaded has each compile option that it was compiled with.",
        |context| each(context, &SERIALIZED),
        "PJRT_Executable_GetCompileOptions since PJRT_Executable_DeserializeAndLoad set serialized_bytes_size=0",
    )
    .header(SERIALIZE, SERIALIZE_TEXT)
    .used_by(USERS)
    .also(&["reloaded/several_devices", "options/serialized_without_a_client"]),
    check(
        "options/serialized_without_a_client",
        "A program that was compiled without a client, serialized and loaded has each compile option that it was compiled with.",
        |context| each(context, &SERIALIZED_WITHOUT_A_CLIENT),
        "PJRT_Executable_GetCompileOptions since PJRT_Compile since PJRT_Executable_DeserializeAndLoad set serialized_bytes_size=0",
    )
    .header(SERIALIZE, SERIALIZE_TEXT)
    .used_by(USERS)
    .also(&["options/serialized"]),
];

/// A program that was obtained in some way, and the same program loaded, if the plugin loads it.
struct Obtained {
    program: Executable,
    loaded: Option<LoadedExecutable>,
    /// The topology for which the program was compiled. No sentence of the header says that a program outlives it.
    _topology: Option<Topology>,
}

/// A way to obtain a program, in words for a message, and the way itself, from the bytes of the options and the program of
/// `PJRT_Client_Compile`.
struct Way {
    what: &'static str,
    obtain: fn(&Client, &Program<'_>, &[u8], &LoadedExecutable) -> Result<Obtained, Error>,
}

impl Obtained {
    fn ahead(client: &Client, program: Executable, topology: Topology) -> Self {
        // Another check tests that a program can be loaded.
        let loaded = client.load(&program).ok();
        Self { program, loaded, _topology: Some(topology) }
    }

    fn loaded(loaded: LoadedExecutable) -> Result<Self, Error> {
        Ok(Self { program: loaded.executable()?, loaded: Some(loaded), _topology: None })
    }
}

const WITHOUT_A_CLIENT: Way = Way {
    what: "by PJRT_Compile without a client",
    obtain: |client, program, options, _| {
        let topology = client.topology()?;
        Ok(Obtained::ahead(client, topology.compile(program, options)?, topology))
    },
};

const FOR_A_COPY: Way = Way {
    what: "by PJRT_Compile without a client, for a topology that was deserialized",
    obtain: |client, program, options, _| {
        let topology = Topology::deserialize(client.plugin(), &client.topology()?.serialize()?.0)?;
        Ok(Obtained::ahead(client, topology.compile(program, options)?, topology))
    },
};

const WITH_A_CLIENT: Way = Way {
    what: "by PJRT_Compile with a client",
    obtain: |client, program, options, _| {
        let topology = client.topology()?;
        Ok(Obtained::ahead(client, client.compile_ahead(&topology, program, options)?, topology))
    },
};

const SERIALIZED: Way = Way {
    what: "by PJRT_Client_Compile, and serialized and loaded,",
    obtain: |client, _, _, compiled| {
        Obtained::loaded(client.deserialize(&compiled.executable()?.serialize()?.bytes)?)
    },
};

const SERIALIZED_WITHOUT_A_CLIENT: Way = Way {
    what: "by PJRT_Compile without a client, and serialized and loaded,",
    obtain: |client, program, options, _| {
        let compiled = client.topology()?.compile(program, options)?;
        Obtained::loaded(client.deserialize(&compiled.serialize()?.bytes)?)
    },
};

/// Compile options, in words for a message, the program that they are for, and their bytes.
struct Case {
    what: &'static str,
    text: String,
    bytes: Vec<u8>,
}

/// Returns a program that adds arrays that are divided between two devices.
fn partitioned() -> String {
    let ty = "tensor<8xf32>";
    let sharded = format!("{ty} {{mhlo.sharding = \"{{devices=[2]<=[2]}}\"}}");
    format!(
        "module @divided attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{\n  func.func public \
         @main(%x: {sharded}, %y: {sharded}) -> ({sharded}) {{\n    %s = stablehlo.add %x, %y : {ty}\n    return %s : {ty}\n  }}\n}}\n"
    )
}

/// Returns the options of all checks. Those of two devices are left out if there is only one.
fn cases(client: &Client) -> Result<Vec<Case>, Error> {
    let add = || {
        with_main(
            "%p0: tensor<4xf32>, %p1: tensor<4xf32>",
            "    %s0 = stablehlo.add %p0, %p1 : tensor<4xf32>\n",
            "%s0",
            "tensor<4xf32>",
        )
    };
    let plain = CompileOptions::default();
    let of = |what, options: &CompileOptions| Case { what, text: add(), bytes: options.encode() };
    let with_field = |what, field| {
        let bytes = [plain.encode(), Message::encode(field)].concat();
        Case { what, text: add(), bytes }
    };
    let mut all = vec![
        of("without special options", &plain),
        of("as a portable executable", &CompileOptions { portable: true, ..plain.clone() }),
        of("with the option use_shardy_partitioner", &CompileOptions { shardy: true, ..plain.clone() }),
        with_field("with a profile_version of 2^53 + 1", Message::default().int(5, (1 << 53) + 1)),
        with_field("with a profile_version of -2^40", Message::default().int(5, -(1 << 40))),
    ];
    let flag = ("xla_embed_ir_in_executable".to_owned(), "true".to_owned());
    all.push(of(
        "with a flag in env_option_overrides",
        &CompileOptions { overrides: vec![flag], ..plain.clone() },
    ));
    if let Ok([first, second]) = two(client) {
        let (a, b) = (id_of(first)?, id_of(second)?);
        let on = |devices: Vec<i64>| CompileOptions { devices, ..plain.clone() };
        all.push(of("for the second device", &on(vec![b])));
        all.push(of("for two replicas", &CompileOptions { replicas: 2, ..plain.clone() }));
        all.push(of(
            "for two replicas on the second and the first device",
            &CompileOptions { replicas: 2, ..on(vec![b, a]) },
        ));
        let partitions = CompileOptions { partitions: 2, ..on(vec![a, b]) };
        all.push(of("for two partitions", &partitions));
        let divided =
            |what, options: CompileOptions| Case { what, text: partitioned(), bytes: options.encode() };
        all.push(divided("for two partitions that divide the arrays", partitions.clone()));
        all.push(divided(
            "for two partitions that divide the arrays, on the second and the first device,",
            CompileOptions { devices: vec![b, a], ..partitions },
        ));
    }
    Ok(all)
}

/// The facts that compile options do not determine.
const UNDETERMINED: &[&str] = &[
    "PJRT_Executable_Fingerprint",
    "PJRT_LoadedExecutable_Fingerprint",
    "PJRT_Executable_SizeOfGeneratedCodeInBytes",
    "PJRT_Executable_GetCostAnalysis",
    "PJRT_Executable_GetCompiledMemoryStats",
];

/// Compares a program that was obtained in some way with the one of `PJRT_Client_Compile`, with all options.
fn each(context: &Context, way: &Way) -> Verdict {
    let client = context.client()?;
    let mut compared = 0;
    let mut refused = None;
    for case in cases(&client)? {
        let program = Program::mlir(&case.text);
        // A plugin that does not have an option does not support it in other ways either.
        let Ok(compiled) = client.compile(&program, &case.bytes) else { continue };
        let reference = compiled.executable()?;
        // The reports from before the other program exists.
        let expected: Vec<Option<String>> =
            REPORTS.iter().map(|(_, describe)| describe(&compiled, &reference).ok()).collect();
        match (way.obtain)(&client, &program, &case.bytes, &compiled) {
            Ok(obtained) => {
                reports_the_same(way, &case, &obtained, &compiled, &expected)?;
                computes_the_same(&client, way, &case, &obtained, &compiled)?;
                compared += 1;
            }
            Err(error) if compared == 0 => refused = Some(error),
            Err(error) => {
                return Err(Finding::Wrong(format!(
                    "a program cannot be compiled {} {}, although PJRT_Client_Compile accepts the same options, and other \
                     options are accepted here: {error}",
                    way.what, case.what
                )));
            }
        }
    }
    match refused {
        Some(error) if compared == 0 => Err(Finding::Unsupported(format!("{}: {error}", way.what))),
        _ => Ok(()),
    }
}

const DROPPED: &str = "The plugin probably drops the compile options, or a part of them, in one of these two ways to compile a program";

fn reports_the_same(
    way: &Way,
    case: &Case,
    obtained: &Obtained,
    compiled: &LoadedExecutable,
    expected: &[Option<String>],
) -> Verdict {
    for ((function, describe), expected) in REPORTS.iter().zip(expected) {
        let is_of_loaded = function.starts_with("PJRT_LoadedExecutable");
        let Some(expected) = expected.as_ref().filter(|_| !UNDETERMINED.contains(function)) else { continue };
        if is_of_loaded && obtained.loaded.is_none() {
            continue;
        }
        let got = describe(obtained.loaded.as_ref().unwrap_or(compiled), &obtained.program);
        let got = got.unwrap_or_else(|error| format!("the error {error}"));
        ensure!(
            got == *expected,
            "{function} of a program that is compiled {} {} is {got}; expected {expected}, as after PJRT_Client_Compile with the \
             same options. {DROPPED}",
            way.what,
            case.what
        );
    }
    Ok(())
}

/// Runs a program on its devices, and returns the elements of the outputs and the devices that they are on.
fn outputs(client: &Client, program: &LoadedExecutable) -> Result<Vec<String>, Error> {
    let devices = program.devices()?;
    let elements =
        program.executable()?.output_dims()?.first().map_or(4, |dims| dims.iter().product::<i64>());
    let upload = |device: &Device<'_>, start: usize| {
        let bytes = f32_bytes(&(0..elements).map(|at| (start as i64 + at) as f32).collect::<Vec<_>>());
        let dims = [elements];
        let array = HostArray::new(&bytes, ElementType::F32, &dims);
        client.upload(&array, Some(*device), None).map(|uploaded| uploaded.buffer)
    };
    let arrays = devices.iter().enumerate().map(|(at, device)| upload(device, 10 * at + 1));
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    let lists: Vec<_> = arrays.iter().map(|array| vec![array, array]).collect();
    let launched =
        program.launch(&lists, &ExecuteOptions::default(), None, true).map_err(|refused| refused.error)?;
    let outputs = launched.outputs.iter().flatten();
    outputs
        .map(|output| Ok(format!("{:?} on the device {}", output.read()?, id_of(output.device()?)?)))
        .collect()
}

fn computes_the_same(
    client: &Client,
    way: &Way,
    case: &Case,
    obtained: &Obtained,
    compiled: &LoadedExecutable,
) -> Verdict {
    let (Some(loaded), Ok(expected)) = (&obtained.loaded, outputs(client, compiled)) else { return Ok(()) };
    let got = outputs(client, loaded).unwrap_or_else(|error| vec![error.to_string()]);
    ensure!(
        got == expected,
        "a program that is compiled {} {} returns {got:?}; expected {expected:?}, as after PJRT_Client_Compile with the same \
         options. {DROPPED}",
        way.what,
        case.what
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_divided_program_is_valid() {
        let module = pjrt_stablehlo::parse(partitioned().into_bytes());
        assert!(module.is_ok(), "{module:?}");
    }
}
