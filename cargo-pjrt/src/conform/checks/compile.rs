//! Checks of compilation and of compiled programs.

use std::sync::Barrier;

use super::entry::{ALL, Entry, NONE, check};
use super::program_text::{compiled, with_main};
use super::threads::on_threads;
use crate::conform::harness::{
    Compiled, Context, Expected, Finding, Verdict, add_program, compile_add, compile_and_keep_add, ensure,
    equal, f32_bytes, numbers, refused, refused_with, upload_four,
};
use crate::protobuf::hlo_add;
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Client, Code, ElementType, HostArray, LoadedExecutable, Program};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "compile/stablehlo",
        "A StableHLO program compiles.",
        stablehlo,
        "PJRT_Client_Compile when program>format_size=4 fail INTERNAL",
    )
    .header("PJRT_Program", "\"mlir\": code string takes MLIR module bytecode (or string).")
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "compile/bytecode",
        "A StableHLO program in bytecode, the form that JAX and ZML send, compiles and computes the same results.",
        bytecode,
        "PJRT_Client_Compile when program>code_size=246 fail INVALID_ARGUMENT",
    )
    .header("PJRT_Program", "\"mlir\": code string takes MLIR module bytecode (or string).")
    .only_used_by(NONE)
    .needed_by(&[Profile::Jax, Profile::Zml]),
    check(
        "compile/unknown_field_of_options",
        "A field of the compile options that the plugin does not know is ignored, as in all messages of Protocol Buffers.",
        unknown_field,
        "PJRT_Client_Compile when compile_options_size=20 fail INVALID_ARGUMENT",
    )
    .host("XLA, xla/pjrt/proto/compile_options.proto", "Hosts of a newer version write fields that an older plugin does not know; parsers of Protocol Buffers skip them.")
    .needed_by(&[Profile::Jax, Profile::TorchXla]),
    check(
        "compile/hlo",
        "An HloModuleProto, the format that PyTorch/XLA sends, compiles and computes the same results.",
        hlo,
        "PJRT_Client_Compile when program>format_size=3 fail INTERNAL",
    )
    .header("PJRT_Program", "\"hlo\": code string takes serialized HloModuleProto.")
    .only_used_by(NONE)
    .needed_by(&[Profile::TorchXla])
    .also(&["compile/optimized_program_of_hlo"]),
    check(
        "compile/unknown_format",
        "A program in an unknown format is refused with INVALID_ARGUMENT, and the message names the format.",
        unknown_format,
        "PJRT_Client_Compile when program>format_size=9 message nothing",
    )
    .header("PJRT_Program", "Supported formats are \"hlo\", \"hlo_with_config\" and \"mlir\".")
    .only_used_by(NONE),
    check(
        "compile/garbage",
        "Bytes that do not represent a program are refused with INVALID_ARGUMENT.",
        garbage,
        "PJRT_Client_Compile when program>code_size=17 code INTERNAL",
    )
    .header("PJRT_Program", "\"mlir\": code string takes MLIR module bytecode (or string). These bytes are none.")
    .needed_by(ALL),
    check(
        "compile/cut_off_bytecode",
        "Truncated bytecode is refused with INVALID_ARGUMENT.",
        cut_off,
        "PJRT_Client_Compile when program>code_size=24 code INTERNAL",
    )
    .header("PJRT_Program", "\"mlir\": code string takes MLIR module bytecode (or string). These bytes are none.")
    .only_used_by(NONE),
    check(
        "compile/nothing",
        "An empty program is refused with INVALID_ARGUMENT.",
        nothing,
        "PJRT_Client_Compile when program>code_size=0 code INTERNAL",
    )
    .header("PJRT_Program", "\"mlir\": code string takes MLIR module bytecode (or string). A program has a main function.")
    .only_used_by(NONE),
    check(
        "compile/wrong_types",
        "A program with inconsistent types is refused with INVALID_ARGUMENT.",
        wrong_types,
        "PJRT_Client_Compile code UNKNOWN",
    )
    .header("PJRT_Program", "\"mlir\": code string takes MLIR module bytecode (or string). This module is invalid.")
    .only_used_by(NONE)
    .also(&["compile/*"]),
    check(
        "compile/unknown_operation",
        "A program with an unknown operation is refused, and the message names the operation.",
        unknown_op,
        "PJRT_Client_Compile message nothing",
    )
    .header("PJRT_Program", "\"mlir\": code string takes MLIR module bytecode (or string). StableHLO has no such operation.")
    .also(&["compile/*"]),
    check(
        "compile/garbage_options",
        "Bytes that do not represent compile options are refused with INVALID_ARGUMENT.",
        garbage_options,
        "PJRT_Client_Compile when compile_options_size=5 code INTERNAL",
    )
    .header("PJRT_Client_Compile_Args::compile_options", "Serialized CompileOptionsProto. These bytes are none.")
    .only_used_by(NONE),
    check(
        "compile/too_many_replicas",
        "More replicas than devices are refused with INVALID_ARGUMENT.",
        replicas,
        "PJRT_Client_Compile when compile_options_size=19 code INTERNAL",
    )
    .advice("The header does not say what happens. An error reveals the mistake before the program runs."),
    check(
        "compile/unknown_device",
        "A device assignment with a device that does not exist is refused with INVALID_ARGUMENT.",
        unknown_device,
        "PJRT_Client_Compile when compile_options_size=29 code INTERNAL",
    )
    .advice("The header does not say what happens. An error reveals the mistake before the program runs."),
    check(
        "compile/name",
        "A compiled program has a name.",
        name,
        "PJRT_Executable_Name set executable_name_size=0",
    )
    .header("PJRT_Executable_Name", "Returns a string that identifies the executable.")
    .needed_by(&[Profile::Jax, Profile::Gomlx]),
    check(
        "compile/num_replicas",
        "A program for one device has one replica.",
        num_replicas,
        "PJRT_Executable_NumReplicas set num_replicas=3",
    )
    .header("PJRT_Executable_NumReplicas", "Returns the number of replicas of the executable."),
    check(
        "compile/num_partitions",
        "A program for one device has one partition.",
        num_partitions,
        "PJRT_Executable_NumPartitions set num_partitions=3",
    )
    .header("PJRT_Executable_NumPartitions", "Returns the number of partitions of the executable."),
    check(
        "compile/num_outputs",
        "A program reports the number of its outputs; a root tuple counts as its elements.",
        num_outputs,
        "PJRT_Executable_NumOutputs set num_outputs=0",
    )
    .header("PJRT_Executable_NumOutputs", "Gets the number of outputs per device produced by `executable`.")
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "compile/output_types",
        "A program reports the types of its outputs.",
        output_types,
        "PJRT_Executable_OutputElementTypes set num_output_types=0",
    )
    .header("PJRT_Executable_OutputElementTypes", "Returns a list of element types for outputs.")
    .since(29)
    .also(&["programs/types_of_two_outputs", "ownership/PJRT_Executable_OutputElementTypes"]),
    check(
        "compile/output_dims",
        "A program reports the dimensions of its outputs.",
        output_dims,
        "PJRT_Executable_OutputDimensions set num_outputs=0",
    )
    .header("PJRT_Executable_OutputDimensions", "Returns a list of dimensions for outputs.")
    .since(29)
    .also(&["programs/dims_of_three_outputs", "programs/hlo_nested_tuple", "programs/hlo_tuple"]),
    check(
        "compile/output_memory_kinds",
        "A program reports a memory kind for each output, or the function returns UNIMPLEMENTED: JAX compares the number.",
        output_kinds,
        "PJRT_Executable_OutputMemoryKinds set num_outputs=0",
    )
    .header("PJRT_Executable_OutputMemoryKinds", "Returns a list of memory kind strings for outputs.")
    .also(&["programs/memory_kinds_of_two_outputs"]),
    check(
        "compile/parameter_memory_kinds",
        "A program reports a memory kind for each parameter, or the function returns UNIMPLEMENTED.",
        parameter_kinds,
        "PJRT_Executable_ParameterMemoryKinds set num_parameters=0",
    )
    .header("PJRT_Executable_ParameterMemoryKinds", "Returns a list of memory kind strings for parameters.")
    .since(102),
    check(
        "compile/fingerprint",
        "Equal programs have equal fingerprints, and different programs have different fingerprints.",
        fingerprint,
        "PJRT_Executable_Fingerprint set executable_fingerprint=text:same executable_fingerprint_size=4",
    )
    .header("PJRT_Executable_Fingerprint", "A unique fingerprint for `executable`. Two executables that were produced by compiling with identical inputs should have the same fingerprint.")
    .since(35)
    .also(&[
        "passed/programs_of_other_constants",
        "processes/fingerprints",
        "reloaded/compiled_ahead",
        "reloaded/properties",
        "reports/after_a_failure",
        "reports/after_another_client",
        "reports/after_other_objects",
        "reports/of_new_programs",
        "reports/of_programs_after_each_function",
        "reports/on_the_second_call",
    ]),
    check(
        "compile/fingerprint_of_a_loaded_program",
        "PJRT_LoadedExecutable_Fingerprint, which older hosts call, returns the same fingerprint each time.",
        loaded_fingerprint,
        "PJRT_LoadedExecutable_Fingerprint call 2 set executable_fingerprint_size=1",
    )
    .header("PJRT_LoadedExecutable_Fingerprint", "A unique fingerprint for `executable`."),
    check(
        "compile/code_size",
        "The size of the code is not negative, or is -1 if it is unknown.",
        code_size,
        "PJRT_Executable_SizeOfGeneratedCodeInBytes set size_in_bytes=-9",
    )
    .advice("The header does not describe the number. A negative size means nothing; XLA's plugins use -1 for an unknown one."),
    check(
        "compile/cost_analysis",
        "The cost analysis contains numbers, such as flops and bytes, and is the same on the second call.",
        cost,
        "PJRT_Executable_GetCostAnalysis call 2 set num_properties=0",
    )
    .header("PJRT_Executable_GetCostAnalysis_Args::properties", "`properties` and any embedded data are owned by and have the same lifetime as `executable`."),
    check(
        "compile/memory_stats",
        "The reported size of the arguments is at least the size of their elements.",
        memory_stats,
        "PJRT_Executable_GetCompiledMemoryStats set argument_size_in_bytes=-1",
    )
    .header("PJRT_Executable_GetCompiledMemoryStats", "Return memory stats that allow callers to estimate memory usage when running this executable.")
    .needed_by(&[Profile::Gomlx])
    .since(40),
    check(
        "compile/optimized_program",
        "PJRT_Executable_OptimizedProgram returns the size on the first call and the program, as mlir or hlo_with_config, on the second.",
        optimized,
        "PJRT_Executable_OptimizedProgram set program>format_size=2",
    )
    .header("PJRT_Executable_OptimizedProgram", "If called with nullptr as `program->code`, `PJRT_Executable_OptimizedProgram` will populate `program->code_size`.")
    .needed_by(&[Profile::TorchXla])
    .also(&["compile/optimized_program_of_hlo"]),
    check(
        "compile/optimized_program_of_hlo",
        "A program that was compiled from hlo is returned as hlo_with_config or mlir: PyTorch/XLA reads no other format.",
        optimized_of_hlo,
        "PJRT_Executable_OptimizedProgram set program>format_size=3",
    )
    .host("XLA's client, PjRtCApiExecutable::GetHloModules", "Reads mlir and hlo_with_config, and fails for other formats; PyTorch/XLA's PjRtComputationClient::Compile asks for the modules of each program.")
    .only_used_by(NONE)
    .needed_by(&[Profile::TorchXla])
    .also(&["compile/optimized_program"]),
    check(
        "compile/serialized_has_a_deleter",
        "PJRT_Executable_Serialize returns bytes and a deleter.",
        serialize,
        "PJRT_Executable_Serialize set serialized_executable_deleter=null",
    )
    .header("PJRT_Executable_Serialize_Args::serialized_executable_deleter", "cleanup fn must be called to free the backing memory for serialized_bytes.")
    .needed_by(&[Profile::Zml]),
    check(
        "compile/round_trip",
        "A program computes the same results after it was serialized and loaded again.",
        round_trip,
        "PJRT_Executable_DeserializeAndLoad fail INTERNAL",
    )
    .header("PJRT_Executable_DeserializeAndLoad", "Deserializes an executable serialized by `PJRT_Executable_Serialize`.")
    .needed_by(&[Profile::Zml])
    .also(&["compile/garbage_executable"]),
    check(
        "compile/garbage_executable",
        "Bytes that do not represent an executable are refused, without a crash.",
        garbage_executable,
        "PJRT_Executable_DeserializeAndLoad when serialized_executable_size=6 crash",
    )
    .host("JAX, jax/_src/compiler.py, _cache_read", "Warns of an error, and compiles the program, if the bytes of the cache cannot be loaded.")
    .used_by(&[Profile::TorchXla]),
    check(
        "compile/compile_options",
        "PJRT_Executable_GetCompileOptions returns options and a deleter.",
        compile_options,
        "PJRT_Executable_GetCompileOptions set serialized_compile_options_deleter=null",
    )
    .header("PJRT_Executable_GetCompileOptions", "Returns the CompileOptions that were used to compile this executable.")
    .since(87),
    check(
        "compile/devices",
        "A loaded program reports its devices with the same pointers as the client.",
        devices,
        "PJRT_LoadedExecutable_AddressableDevices set num_addressable_devices=0",
    )
    .header("PJRT_LoadedExecutable_AddressableDevices", "Returns a list of devices this executable will run on.")
    .needed_by(&[Profile::Jax, Profile::TorchXla])
    .also(&["compile/logical_ids"]),
    check(
        "compile/device_assignment",
        "A loaded program reports its device assignment, with a deleter: an error ends JAX's process.",
        device_assignment,
        "PJRT_LoadedExecutable_GetDeviceAssignment set serialized_device_assignment_deleter=null",
    )
    .header("PJRT_LoadedExecutable_GetDeviceAssignment", "The caller must call `serialized_device_assignment_deleter` to free the backing memory.")
    .since(79)
    .needed_by(&[Profile::Jax])
    .needed_since(79),
    check(
        "compile/logical_ids",
        "A loaded program reports the replica and the partition of each of its devices: an error ends JAX's process.",
        logical_ids,
        "PJRT_LoadedExecutable_AddressableDeviceLogicalIds set num_addressable_device_logical_ids=0",
    )
    .header("PJRT_LoadedExecutable_AddressableDeviceLogicalIds", "Returns a list of logical device ids this executable will run on.")
    .since(96),
    check(
        "compile/delete",
        "A loaded program that was deleted reports that it was.",
        delete,
        "PJRT_LoadedExecutable_IsDeleted set is_deleted=0",
    )
    .header("PJRT_LoadedExecutable_IsDeleted", "True if and only if PJRT_LoadedExecutable_Delete has previously been called."),
    check(
        "compile/executable_outlives_the_loaded_one",
        "The executable that PJRT_LoadedExecutable_GetExecutable returned can be used after the loaded program was destroyed.",
        outlives,
        "PJRT_Executable_NumOutputs since PJRT_LoadedExecutable_Destroy fail INTERNAL",
    )
    .header("PJRT_LoadedExecutable_GetExecutable", "Constructs a PJRT_Executable from a PJRT_LoadedExecutable. The returned executable should be freed by the caller with PJRT_Executable_Destroy.")
    .only_used_by(NONE)
    .also(&[
        "compile/*",
        "execute/*",
        "special/*",
        "struct_size/*",
        "lifetime/*",
        "outputs/PJRT_Executable_NumOutputs",
        "donation/destroying_the_argument",
        "lent/program_after_the_call",
        "lent/program_after_the_event",
        "outliving/descriptions_of_programs",
        "reuse/inputs_of_a_running_program",
        "view/writes_are_seen_*",
    ]),
    check(
        "compile/ahead_and_load",
        "A program that PJRT_Compile compiles for the client's topology and that PJRT_Client_Load loads can be executed.",
        ahead,
        "PJRT_Client_Load fail INTERNAL",
    )
    .header("PJRT_Compile", "The returned executable must be loaded by a compatible PJRT_Client before execution.")
    .since(95),
    check(
        "compile/by_many_threads",
        "Several threads can compile at the same time.",
        storm,
        "PJRT_Client_Compile call 20 fail INTERNAL",
    )
    .host("JAX, jaxlib/py_client.cc, PyClient::CompileAndLoadIfrtProgram", "Releases Python's lock while it compiles, so that several threads of a program compile at the same time.")
    .used_by(ALL)
    .needed_by(&[Profile::Jax]),
    check(
        "compile/different_programs_by_many_threads",
        "Several threads can compile different programs at the same time, and each gets the program that it passed.",
        different_programs,
        "PJRT_Client_Compile when program>code_size=383 first_program",
    )
    .host("JAX, jaxlib/py_client.cc, PyClient::CompileAndLoadIfrtProgram", "Releases Python's lock while it compiles, so that several threads of a program compile at the same time.")
    .used_by(ALL)
    .needed_by(&[Profile::Jax]),
];

fn options() -> Vec<u8> {
    CompileOptions::default().encode()
}

fn stablehlo(context: &Context) -> Verdict {
    drop(compile_add(&context.client()?)?);
    Ok(())
}

/// The program that adds two arrays f32[2, 3], in bytecode of version 1.0.0, which plugins of all later versions read.
const BYTECODE: &[u8] = include_bytes!("../../../tests/data/add.mlirbc");

fn bytecode(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = client.compile(&Program::mlir(BYTECODE), &options())?;
    let bytes = f32_bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let array = HostArray::new(&bytes, ElementType::F32, &[2, 3]);
    let x = client.upload(&array, Some(client.device()?), None)?.buffer;
    let expected = f32_bytes(&[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    Expected::new("the sum", &expected, ElementType::F32, &[2, 3])
        .check_array(executable.run(&[&x, &x])?.output(0, 0)?)
}

fn unknown_field(context: &Context) -> Verdict {
    let client = context.client()?;
    let text = add_program("4x");
    // A plugin that refuses the program does not refuse the field.
    client.compile(&Program::mlir(&text), &options())?;
    // Field 2000, the integer 1.
    let with_field = [&options()[..], &[0x80, 0x7D, 1]].concat();
    let executable = client.compile(&Program::mlir(&text), &with_field).map_err(|error| {
        Finding::Wrong(format!("compile options with the unknown field 2000 were refused: {error}"))
    })?;
    let x = upload_four(&client, &[1.0; 4])?;
    equal("the sum", numbers(executable.run(&[&x, &x])?.output(0, 0)?)?, vec![2.0; 4])
}

fn hlo(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_hlo(&client)?;
    let launched = executable.run(&[&upload_four(&client, &[1.0; 4])?, &upload_four(&client, &[2.0; 4])?])?;
    equal("the sum", numbers(launched.output(0, 0)?)?, vec![3.0; 4])
}

/// Compiles a program that adds from HLO. Unsupported if the plugin does not read HLO.
pub(super) fn compile_hlo(client: &Client) -> Result<LoadedExecutable, Finding> {
    let program = hlo_add(&[4]);
    match client.compile(&Program { code: &program, format: "hlo" }, &options()) {
        Err(error) if error.code == Code::INVALID_ARGUMENT && error.message.contains("hlo") => {
            Err(Finding::Unsupported(error.to_string()))
        }
        other => Ok(other?),
    }
}

fn unknown_format(context: &Context) -> Verdict {
    let client = context.client()?;
    let text = add_program("4x");
    let program = Program { code: text.as_bytes(), format: "no_format" };
    refused("an unknown format", client.compile(&program, &options()), Code::INVALID_ARGUMENT, &["no_format"])
}

fn refused_program(context: &Context, what: &str, code: &[u8], codes: &[Code], contains: &[&str]) -> Verdict {
    let client = context.client()?;
    refused_with(what, client.compile(&Program::mlir(code), &options()), codes, contains)
}

fn garbage(context: &Context) -> Verdict {
    refused_program(context, "garbage", b"this is garbage!!", &[Code::INVALID_ARGUMENT], &[])
}

fn cut_off(context: &Context) -> Verdict {
    let code = b"ML\xefR\x0dStableHLO_v1.0.0\x00\x01\x02";
    refused_program(context, "bytecode without its end", code, &[Code::INVALID_ARGUMENT], &[])
}

fn nothing(context: &Context) -> Verdict {
    refused_program(context, "an empty program", b"", &[Code::INVALID_ARGUMENT], &[])
}

fn wrong_types(context: &Context) -> Verdict {
    let code = add_program("4x").replacen("%sum : tensor<4xf32>", "%sum : tensor<5xf32>", 1);
    refused_program(context, "a result of another type", code.as_bytes(), &[Code::INVALID_ARGUMENT], &[])
}

fn unknown_op(context: &Context) -> Verdict {
    let text = add_program("4x").replace("stablehlo.add %x, %y", "stablehlo.frobnicate %x, %y");
    let codes = [Code::INVALID_ARGUMENT, Code::UNIMPLEMENTED];
    refused_program(context, "an unknown operation", text.as_bytes(), &codes, &["frobnicate"])
}

fn refused_options(context: &Context, what: &str, options: &[u8]) -> Verdict {
    let client = context.client()?;
    let text = add_program("4x");
    refused_with(what, client.compile(&Program::mlir(&text), options), &[Code::INVALID_ARGUMENT], &[])
}

fn garbage_options(context: &Context) -> Verdict {
    refused_options(context, "a compilation whose options are no message", b"\xff\xff\xff\xff\xff")
}

fn replicas(context: &Context) -> Verdict {
    let many = CompileOptions { replicas: 100_000, ..CompileOptions::default() };
    refused_options(context, "a compilation for 100,000 replicas", &many.encode())
}

fn unknown_device(context: &Context) -> Verdict {
    let elsewhere = CompileOptions { devices: vec![77_777], ..CompileOptions::default() };
    refused_options(context, "a compilation for the device 77777", &elsewhere.encode())
}

fn executable(client: &Client) -> Result<Compiled, pjrt_testing::host::Error> {
    compile_and_keep_add(client)
}

fn name(context: &Context) -> Verdict {
    let client = context.client()?;
    ensure!(!executable(&client)?.name()?.is_empty(), "the name is empty");
    Ok(())
}

fn num_replicas(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("num_replicas", executable(&client)?.num_replicas()?, 1)
}

fn num_partitions(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("num_partitions", executable(&client)?.num_partitions()?, 1)
}

fn num_outputs(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("num_outputs", executable(&client)?.num_outputs()?, 1)
}

fn output_types(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = executable(&client)?;
    let (first, second) = (executable.output_types()?, executable.output_types()?);
    equal(
        "the number of types in the second call of PJRT_Executable_OutputElementTypes",
        second.len(),
        first.len(),
    )?;
    equal("the types", first, vec![ElementType::F32])
}

fn output_dims(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = executable(&client)?;
    let (first, second) = (executable.output_dims()?, executable.output_dims()?);
    equal(
        "the number of outputs in the second call of PJRT_Executable_OutputDimensions",
        second.len(),
        first.len(),
    )?;
    equal("the dimensions", first, vec![vec![4]])
}

fn output_kinds(context: &Context) -> Verdict {
    let client = context.client()?;
    let kinds = executable(&client)?.output_memory_kinds()?;
    equal("the number of kinds", kinds.len(), 1)?;
    let default = client.device()?.default_memory()?.kind()?;
    ensure!(
        kinds[0].is_empty() || kinds[0] == default,
        "the kind is {:?}; expected the default kind {default:?}",
        kinds[0]
    );
    Ok(())
}

fn parameter_kinds(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("the number of kinds", executable(&client)?.parameter_memory_kinds()?.len(), 2)
}

fn fingerprint(context: &Context) -> Verdict {
    let client = context.client()?;
    let (first, second) = (executable(&client)?.fingerprint()?, executable(&client)?.fingerprint()?);
    ensure!(
        first == second,
        "PJRT_Executable_Fingerprint returns {first:?} and {second:?} for two executables that were compiled with identical \
         inputs: it probably contains a counter, a time or an address"
    );
    let other = add_program("5x");
    let other = client.compile(&Program::mlir(&other), &options())?.executable()?.fingerprint()?;
    ensure!(other != first && !first.is_empty(), "two different programs have the fingerprint {first:?}");
    Ok(())
}

fn loaded_fingerprint(context: &Context) -> Verdict {
    let client = context.client()?;
    let program = compile_add(&client)?;
    equal("the fingerprint on the second call", program.fingerprint()?, program.fingerprint()?)
}

fn code_size(context: &Context) -> Verdict {
    let client = context.client()?;
    let size = executable(&client)?.code_size()?;
    ensure!(size >= -1, "the size is {size}");
    Ok(())
}

fn cost(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = executable(&client)?;
    let first = executable.cost_analysis()?;
    if first.is_empty() {
        return Err(Finding::Unsupported("the analysis is empty".to_owned()));
    }
    equal("the second analysis", executable.cost_analysis()?, first)
}

fn memory_stats(context: &Context) -> Verdict {
    let client = context.client()?;
    let stats = executable(&client)?.memory_stats()?;
    ensure!(
        stats.arguments >= 32,
        "the size of two arguments of 16 bytes is {}; expected at least 32",
        stats.arguments
    );
    ensure!(
        stats.outputs >= 16,
        "the size of an output of 16 bytes is {}; expected at least 16",
        stats.outputs
    );
    Ok(())
}

fn optimized(context: &Context) -> Verdict {
    let client = context.client()?;
    let (code, format) = executable(&client)?.optimized_program()?;
    ensure!(!code.is_empty(), "the program is empty");
    is_read_by_hosts(&format)
}

fn optimized_of_hlo(context: &Context) -> Verdict {
    let client = context.client()?;
    let (code, format) = compile_hlo(&client)?.executable()?.optimized_program()?;
    ensure!(!code.is_empty(), "the program is empty");
    is_read_by_hosts(&format)
}

fn is_read_by_hosts(format: &str) -> Verdict {
    ensure!(
        ["mlir", "hlo_with_config"].contains(&format),
        "the format is {format:?}; expected mlir or hlo_with_config, because PyTorch/XLA aborts on other formats"
    );
    Ok(())
}

fn serialize(context: &Context) -> Verdict {
    let client = context.client()?;
    let serialized = executable(&client)?.serialize()?;
    ensure!(!serialized.bytes.is_empty(), "there are no bytes, which a cache would store");
    ensure!(serialized.has_deleter, "there is no deleter for the bytes with");
    Ok(())
}

fn sum(client: &Client, executable: &LoadedExecutable) -> Verdict {
    let launched = executable.run(&[&upload_four(client, &[1.0; 4])?, &upload_four(client, &[2.0; 4])?])?;
    equal("the sum", numbers(launched.output(0, 0)?)?, vec![3.0; 4])
}

fn round_trip(context: &Context) -> Verdict {
    let client = context.client()?;
    let serialized = executable(&client)?.serialize()?;
    sum(&client, &client.deserialize(&serialized.bytes)?)
}

fn garbage_executable(context: &Context) -> Verdict {
    let client = context.client()?;
    let codes = [Code::INVALID_ARGUMENT, Code::FAILED_PRECONDITION, Code::DATA_LOSS, Code::INTERNAL];
    refused_with("garbage", client.deserialize(b"\x01\x02\x03\x04\x05\x06"), &codes, &[])
}

fn compile_options(context: &Context) -> Verdict {
    let client = context.client()?;
    let given = executable(&client)?.compile_options()?;
    ensure!(given.has_deleter, "there is no deleter for the options with");
    ensure!(!given.bytes.is_empty(), "there are no options");
    Ok(())
}

fn devices(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    let devices = executable.devices()?;
    ensure!(
        devices == [client.device()?],
        "the program runs on {} devices, or on a different device than expected",
        devices.len()
    );
    Ok(())
}

fn device_assignment(context: &Context) -> Verdict {
    let client = context.client()?;
    let assignment = compile_add(&client)?.device_assignment()?;
    ensure!(assignment.has_deleter, "there is no deleter for the assignment with");
    Ok(())
}

fn logical_ids(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    equal("the logical ids", executable.logical_ids()?, vec![(0, 0); executable.devices()?.len()])
}

fn delete(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    equal("is_deleted before", executable.is_deleted()?, false)?;
    executable.delete()?;
    equal("is_deleted", executable.is_deleted()?, true)
}

fn outlives(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = compile_add(&client)?;
    let executable = loaded.executable()?;
    drop(loaded);
    equal("num_outputs", executable.num_outputs()?, 1)
}

fn ahead(context: &Context) -> Verdict {
    let client = context.client()?;
    let text = add_program("4x");
    let executable = client.compile_ahead(&client.topology()?, &Program::mlir(&text), &options())?;
    sum(&client, &client.load(&executable)?)
}

/// Returns a program that adds one of its two parameters in each of five additions, as the bits of `number` say.
fn chosen_sums(number: u8) -> String {
    let chosen = |step: u8| number >> step & 1;
    let line = |step: u8| {
        let before = if step == 0 { "%p0".to_owned() } else { format!("%s{}", step - 1) };
        format!("    %s{step} = stablehlo.add {before}, %p{} : tensor<4xf32>\n", chosen(step))
    };
    let lines: String = (0..5).map(line).collect();
    with_main("%p0: tensor<4xf32>, %p1: tensor<4xf32>", &lines, "%s4", "tensor<4xf32>")
}

fn different_programs(context: &Context) -> Verdict {
    const THREADS: u8 = 8;
    let client = context.client()?;
    compiled(&client, &chosen_sums(0), &CompileOptions::default())?;
    let start = Barrier::new(THREADS.into());
    on_threads(THREADS, |thread| {
        start.wait();
        for round in 0..4 {
            let number = round * THREADS + thread;
            let executable = client.compile(&Program::mlir(&chosen_sums(number)), &options())?;
            let arrays = (upload_four(&client, &[1.0; 4])?, upload_four(&client, &[10.0; 4])?);
            let got = numbers(executable.run(&[&arrays.0, &arrays.1])?.output(0, 0)?)?;
            let tens = number.count_ones() as f32;
            let expected = [1.0 + 10.0 * tens + (5.0 - tens); 4];
            ensure!(
                got == expected,
                "a program that was compiled while other threads compiled others returned {got:?}; expected {expected:?}. The \
                 plugin probably compiles from memory that all compilations share"
            );
        }
        Ok(())
    })
}

fn storm(context: &Context) -> Verdict {
    let client = context.client()?;
    on_threads(8, |_| {
        for _ in 0..3 {
            sum(&client, &compile_add(&client)?)?;
        }
        Ok(())
    })
}
