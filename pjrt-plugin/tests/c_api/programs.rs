//! Compiling, loading and storing programs, and the functions that return their properties.

use std::ptr;

use pjrt_plugin::{CompileOptions, DeviceAssignment, ErrorCode};
use pjrt_sys::*;

use crate::host::*;

fn destroy(executable: *mut PJRT_Executable) {
    call!(PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args { executable })).unwrap();
}

#[test]
fn what_cannot_be_compiled_is_refused() {
    let client = Client::new(&[]);
    let error = client.compile_with("negate", "mlir", b"garbage").err().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
    assert!(
        error.message.starts_with("PJRT_Client_Compile: failed to deserialize CompileOptionsProto"),
        "{error:?}"
    );
    let error = client.compile_with("negate", "invalid", &[]).err().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
    assert!(error.message.starts_with("Unknown program format 'invalid'."), "{error:?}");
    assert!(
        client
            .compile_with("negate", "hlo", &[])
            .err()
            .unwrap()
            .message
            .contains("the plugin supports the formats: mlir")
    );
}

#[test]
fn assignments_to_devices_that_are_not_there_are_refused() {
    let client = Client::new(&[]);
    let compile = |devices: Vec<i32>| {
        let mut options = CompileOptions::default();
        options.num_replicas = devices.len();
        options.device_assignment = Some(DeviceAssignment::new(devices.len(), 1, devices).unwrap());
        client.compile_with("negate", "mlir", &options.encode())
    };
    assert!(
        compile(vec![7]).err().unwrap().message.contains("device 7, which is not a device of the client")
    );
    assert!(compile(vec![1, 1]).err().unwrap().message.contains("device 1 twice"));
    let executable = compile(vec![1]).unwrap();
    let args =
        call!(PJRT_LoadedExecutable_AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args {
            executable: executable.0
        }))
        .unwrap();
    assert_eq!(array(args.addressable_devices, args.num_addressable_devices), [client.devices()[1]]);
}

#[test]
fn programs_that_a_plugin_compiles_for_fewer_devices_than_requested_are_refused() {
    let client = Client::new(&[]);
    let refused = |word: &str, replicas: usize, partitions: usize| {
        let mut options = CompileOptions::default();
        (options.num_replicas, options.num_partitions) = (replicas, partitions);
        client.compile_with(word, "mlir", &options.encode()).err()
    };
    // The dummy has no partitions, and one of its programs ignores the number of replicas.
    assert!(refused("negate", 2, 1).is_none());
    for (error, expected) in [
        (refused("negate", 1, 2), "a program with 2 partitions; it compiled the program for 1"),
        (refused("drop", 2, 1), "a program with 2 replicas; it compiled the program for 1"),
    ] {
        let error = error.unwrap();
        assert_eq!(error.code, ErrorCode::Unimplemented as u32);
        assert!(error.message.contains(expected), "{error:?}");
    }
}

#[test]
fn getters_describe_the_program() {
    let client = Client::new(&[]);
    let loaded = client.compile("two").unwrap();
    let executable = loaded.get();
    let args = call!(PJRT_Executable_Name(PJRT_Executable_Name_Args { executable })).unwrap();
    assert_eq!(text(args.executable_name, args.executable_name_size), "two");
    let args =
        call!(PJRT_Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args { executable }))
            .unwrap();
    assert_eq!(args.num_outputs, 2);
    assert_eq!(array(args.memory_kind_sizes, 2), ["device".len(); 2]);
    let args = call!(PJRT_Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args { executable }))
        .unwrap();
    assert_eq!(array(args.dim_sizes, args.num_outputs), [1, 1]);
    assert_eq!(array(args.dims, 2), [4, 4]);
    let args =
        call!(PJRT_Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args { executable }))
            .unwrap();
    assert_eq!(array(args.output_types, args.num_output_types), [PJRT_Buffer_Type_F32; 2]);
    let cost = || {
        call!(PJRT_Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args { executable })).unwrap()
    };
    assert_eq!((cost().num_properties, cost().properties), (1, cost().properties));
    let stats = call!(PJRT_Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args {
        executable
    }))
    .unwrap();
    assert_eq!((stats.argument_size_in_bytes, stats.output_size_in_bytes), (16, 32));
    let args =
        call!(PJRT_Executable_GetCompileOptions(PJRT_Executable_GetCompileOptions_Args { executable }))
            .unwrap();
    let options = array(args.serialized_bytes.cast::<u8>(), args.serialized_bytes_size);
    assert_eq!(options, CompileOptions::default().encode());
    // SAFETY: the deleter is called once.
    unsafe { (args.serialized_compile_options_deleter.unwrap())(args.serialized_compile_options) };
    destroy(executable);
}

#[test]
fn fingerprints_differ_where_programs_do() {
    let client = Client::new(&[]);
    let fingerprint = |program: &str| {
        let executable = client.compile(program).unwrap().get();
        let args =
            call!(PJRT_Executable_Fingerprint(PJRT_Executable_Fingerprint_Args { executable })).unwrap();
        let print = text(args.executable_fingerprint, args.executable_fingerprint_size);
        destroy(executable);
        print
    };
    assert_eq!(fingerprint("negate"), fingerprint("negate"));
    assert_ne!(fingerprint("negate"), fingerprint("two"));
}

#[test]
fn the_optimised_program_comes_in_two_calls() {
    let client = Client::new(&[]);
    let executable = client.compile("negate").unwrap().get();
    let mut program = PJRT_Program::zeroed();
    let ask = |program: &mut PJRT_Program| {
        call!(PJRT_Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args { executable, program }))
    };
    ask(&mut program).unwrap();
    assert_eq!((program.code_size, text(program.format, program.format_size).as_str()), (6, "mlir"));
    let mut code = [0_u8; 6];
    program.code = code.as_mut_ptr().cast();
    ask(&mut program).unwrap();
    assert_eq!(&code, b"negate");
    program.code_size = 5;
    assert!(ask(&mut program).is_err());
    destroy(executable);
}

#[test]
fn the_device_assignment_is_empty_for_a_portable_executable() {
    let client = Client::new(&[]);
    let assignment = |executable: &Executable| {
        let args = call!(PJRT_LoadedExecutable_GetDeviceAssignment(
            PJRT_LoadedExecutable_GetDeviceAssignment_Args { executable: executable.0 }
        ))
        .unwrap();
        let bytes = array(args.serialized_bytes.cast::<u8>(), args.serialized_bytes_size).to_vec();
        // SAFETY: the deleter is called once, for empty bytes too.
        unsafe {
            (args.serialized_device_assignment_deleter.unwrap())(args.serialized_device_assignment);
        }
        bytes
    };
    assert!(!assignment(&client.compile("negate").unwrap()).is_empty());
    let mut options = CompileOptions::default();
    options.compile_portable_executable = true;
    assert!(assignment(&client.compile_with("negate", "mlir", &options.encode()).unwrap()).is_empty());
}

fn serialize(executable: *mut PJRT_Executable) -> Vec<u8> {
    let args = call!(PJRT_Executable_Serialize(PJRT_Executable_Serialize_Args { executable })).unwrap();
    let bytes = array(args.serialized_bytes.cast::<u8>(), args.serialized_bytes_size).to_vec();
    // SAFETY: the deleter is called once.
    unsafe { (args.serialized_executable_deleter.unwrap())(args.serialized_executable) };
    bytes
}

fn restore(client: &Client, bytes: &[u8], options: &[u8]) -> Result<Executable> {
    call!(PJRT_Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args {
        client: client.0,
        serialized_executable: bytes.as_ptr().cast(),
        serialized_executable_size: bytes.len(),
        overridden_serialized_compile_options: options.as_ptr().cast(),
        overridden_serialized_compile_options_size: options.len(),
    }))
    .map(|args| Executable(args.loaded_executable))
}

#[test]
fn a_stored_program_runs_where_it_is_restored() {
    let client = Client::new(&[]);
    let executable = client.compile("negate").unwrap().get();
    let bytes = serialize(executable);
    destroy(executable);
    let restored = restore(&client, &bytes, &[]).unwrap();
    let buffer = client.upload(0, &[1.0; 4]);
    assert_eq!(restored.run(&[&buffer]).unwrap().outputs[0][0].numbers().unwrap(), [-1.0; 4]);
    let mut options = CompileOptions::default();
    options.device_assignment = Some(DeviceAssignment::new(1, 1, vec![1]).unwrap());
    let elsewhere = restore(&client, &bytes, &options.encode()).unwrap();
    let buffer = client.upload(1, &[2.0; 4]);
    assert_eq!(elsewhere.run(&[&buffer]).unwrap().outputs[0][0].numbers().unwrap(), [-2.0; 4]);
}

#[test]
fn a_damaged_stored_program_is_not_restored() {
    let client = Client::new(&[]);
    let executable = client.compile("negate").unwrap().get();
    let bytes = serialize(executable);
    destroy(executable);
    let is_damage = |damaged: &[u8], options: &[u8], how: &str| {
        let error = restore(&client, damaged, options).err().unwrap();
        assert_eq!(error.code, ErrorCode::DataLoss as u32, "{how}: {error:?}");
    };
    let options = CompileOptions::default().encode();
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // Other options do not replace what is damaged.
        is_damage(&flipped, if bit % 2 == 0 { &[] } else { &options }, &format!("bit {bit}"));
    }
    for length in 0..bytes.len() {
        is_damage(&bytes[..length], &[], &format!("cut to {length}"));
    }
    is_damage(&[&bytes[..], b"more"].concat(), &[], "longer");
}

#[test]
fn a_program_can_be_compiled_without_a_client_and_loaded_later() {
    let client = Client::new(&[]);
    let topology =
        call!(PJRT_Client_TopologyDescription(PJRT_Client_TopologyDescription_Args { client: client.0 }))
            .unwrap()
            .topology;
    let program = PJRT_Program {
        code: b"negate".as_ptr().cast_mut().cast(),
        code_size: 6,
        format: b"mlir".as_ptr().cast(),
        format_size: 4,
        ..PJRT_Program::zeroed()
    };
    let executable =
        call!(PJRT_Compile(PJRT_Compile_Args { topology, program: &raw const program })).unwrap().executable;
    let loaded = call!(PJRT_Client_Load(PJRT_Client_Load_Args { client: client.0, executable })).unwrap();
    destroy(executable);
    let loaded = Executable(loaded.loaded_executable);
    let buffer = client.upload(0, &[1.0; 4]);
    assert_eq!(loaded.run(&[&buffer]).unwrap().outputs[0][0].numbers().unwrap(), [-1.0; 4]);
}

#[test]
fn a_deleted_executable_does_not_run() {
    let client = Client::new(&[]);
    let loaded = client.compile("negate").unwrap();
    let executable = loaded.0;
    let is_deleted = || {
        call!(PJRT_LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args { executable }))
            .unwrap()
            .is_deleted
    };
    assert!(!is_deleted());
    call!(PJRT_LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args { executable })).unwrap();
    assert!(is_deleted());
    let buffer = client.upload(0, &[1.0; 4]);
    assert!(loaded.run(&[&buffer]).err().unwrap().message.contains("deleted"));
    assert!(!ptr::eq(loaded.0, ptr::null()));
}
