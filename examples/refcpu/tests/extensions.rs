//! refcpu's extensions of the PJRT C API, called as hosts call them. The SDK's tests cover the common functions of plugins.

#![allow(unsafe_code, reason = "what a C host does with pointers")]

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Mutex;

use pjrt_plugin::{CompileOptions, ErrorCode, OverrideValue};
use pjrt_sys::*;

use c_host::{Client, api, bytes, call, compile, destroy, download, extension, finish, take_error};

mod c_host;

#[test]
fn bytes_are_written_into_a_buffer_until_the_host_has_its_address() {
    let raw: &PJRT_RawBuffer_Extension = extension(PJRT_Extension_Type_RawBuffer);
    let client = Client::new();
    // Larger than what uploads copy at once.
    for len in [6, 1 << 20] {
        let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let buffer = client.upload(&data);
        let alias = call!(
            raw,
            PJRT_RawBuffer_CreateRawAliasOfBuffer(PJRT_RawBuffer_CreateRawAliasOfBuffer_Args { buffer })
        );
        let alias = alias.unwrap().raw_buffer;
        let write = |bytes: &[u8], offset| {
            let args = call!(
                raw,
                PJRT_RawBuffer_CopyRawHostToDevice(PJRT_RawBuffer_CopyRawHostToDevice_Args {
                    buffer: alias,
                    src: bytes.as_ptr().cast(),
                    offset,
                    transfer_size: bytes.len() as i64,
                })
            )?;
            finish(args.event)
        };
        write(&[90, 91], 2).unwrap();
        write(&[92], 5).unwrap();
        assert_eq!(download(buffer).unwrap()[..6], [0, 1, 90, 91, 4, 92]);
        assert_eq!(data[2], 2, "the host's own memory was written");
        let pointer =
            call!(raw, PJRT_RawBuffer_GetHostPointer(PJRT_RawBuffer_GetHostPointer_Args { buffer: alias }));
        assert_eq!(bytes(pointer.unwrap().host_pointer.cast(), 6), [0, 1, 90, 91, 4, 92]);
        let (code, message) = write(&[0], 0).unwrap_err();
        assert_eq!(code, ErrorCode::FailedPrecondition as u32, "{message}");
        call!(raw, PJRT_RawBuffer_Destroy(PJRT_RawBuffer_Destroy_Args { buffer: alias })).unwrap();
        destroy(buffer);
    }
}

#[test]
fn a_buffer_crosses_from_one_client_to_another() {
    let transfers: &PJRT_CrossHostTransfers_Extension = extension(PJRT_Extension_Type_CrossHostTransfers);
    let (here, there) = (Client::new(), Client::new());
    let buffer = here.upload(&[1, 2, 3]);
    let (mut buffers, mut event, to, key) = ([buffer], ptr::null_mut(), [0], [5]);
    call!(
        transfers,
        PJRT_Transfers_PJRT_Client_CrossHostSendBuffers(
            PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args {
                client: here.0,
                num_buffers: 1,
                buffers: buffers.as_mut_ptr(),
                dst_global_device_ids: to.as_ptr(),
                transfer_keys: key.as_ptr(),
                send_events: &raw mut event,
            }
        )
    )
    .unwrap();
    let (mut rank, shape, mut received) = ([1], [3_i64], ptr::null_mut());
    let (mut dims, mut types, mut layouts) = ([shape.as_ptr()], [PJRT_Buffer_Type_U8], [ptr::null_mut()]);
    call!(
        transfers,
        PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers(
            PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args {
                client: there.0,
                num_shapes: 1,
                shape_num_dims: rank.as_mut_ptr(),
                num_dims: dims.as_mut_ptr(),
                element_types: types.as_mut_ptr(),
                layouts: layouts.as_mut_ptr(),
                device: there.device(),
                src_global_device_ids: to.as_ptr(),
                transfer_keys: key.as_ptr(),
                buffers: &raw mut received,
            }
        )
    )
    .unwrap();
    finish(event).unwrap();
    assert_eq!(download(received).unwrap(), [1, 2, 3]);
    destroy(buffer);
    destroy(received);
}

#[test]
fn host_memory_is_aligned_as_arrays_are_and_is_not_memory_of_the_device() {
    let allocator: &PJRT_HostMemoryAllocator_Extension = extension(PJRT_Extension_Type_HostMemoryAllocator);
    let client = Client::new();
    let in_use = || {
        let device = client.device();
        let stats = PJRT_Device_MemoryStats_Args { device, ..SizedStruct::zeroed() };
        call!(api(), PJRT_Device_MemoryStats(PJRT_Device_MemoryStats_Args { device: stats.device }))
            .unwrap()
            .bytes_in_use
    };
    let before = in_use();
    for (size, numa_node) in [(1_usize << 20, -1), (3 << 20, 0)] {
        let client = client.0;
        let memory =
            call!(allocator, allocate(PJRT_HostMemoryAllocator_Allocate_Args { client, size, numa_node }))
                .unwrap();
        assert!(memory.ptr.addr().is_multiple_of(64));
        // SAFETY: the memory is the host's until it calls the deleter, which it does once.
        unsafe {
            memory.ptr.cast::<u8>().write_bytes(7, size);
            memory.deleter.unwrap()(memory.ptr.cast(), memory.deleter_arg);
        }
        assert_eq!(in_use(), before);
    }
}

const PROGRAM: &str = "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}";

#[test]
fn the_metadata_of_an_executable_is_its_plan_as_text() {
    let metadata: &PJRT_ExecutableMetadata_Extension = extension(PJRT_Extension_Type_ExecutableMetadata);
    let client = Client::new();
    let loaded = compile(&client, PROGRAM, &CompileOptions::default()).unwrap();
    let executable = call!(
        api(),
        PJRT_LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args {
            loaded_executable: loaded
        })
    );
    let executable = executable.unwrap().executable;
    let mut args =
        PJRT_ExecutableMetadata_GetExecutableMetadata_Args { executable, metadata: ptr::null_mut() };
    // SAFETY: the structs are filled in as the API says; the metadata is read before it is destroyed.
    let text = unsafe {
        take_error((metadata.get_executable_metadata.unwrap())(&raw mut args)).unwrap();
        let read = &*args.metadata;
        let text = bytes(read.serialized_metadata.cast(), read.serialized_metadata_size).to_vec();
        let mut destroy = PJRT_ExecutableMetadata_DestroySerializedMetadata_Args { metadata: args.metadata };
        (metadata.destroy_serialized_metadata.unwrap())(&raw mut destroy);
        String::from_utf8(text).unwrap()
    };
    assert!(text.contains("region of 1 operations") && text.contains("parameter 0"), "{text}");
    call!(api(), PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args { executable })).unwrap();
    call!(api(), PJRT_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args { executable: loaded }))
        .unwrap();
}

#[test]
fn compiler_options_are_declared_and_a_misspelled_one_is_refused_with_a_hint() {
    let client = Client::new();
    let with = |name: &str, value: OverrideValue| {
        let mut options = CompileOptions::default();
        options.overrides.push((name.to_owned(), value));
        compile(&client, PROGRAM, &options)
    };
    for (name, value) in [("refcpu_fusion", "false"), ("xla_cpu_enable_fast_math", "true")] {
        let executable = with(name, OverrideValue::String(value.to_owned())).unwrap();
        call!(api(), PJRT_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args { executable }))
            .unwrap();
    }
    let (code, message) = with("refcpu_fussion", OverrideValue::Bool(false)).unwrap_err();
    assert_eq!(code, ErrorCode::InvalidArgument as u32);
    assert!(message.contains("did you mean 'refcpu_fusion'?"), "{message}");
    let (code, message) = with("refcpu_fusion", OverrideValue::String("maybe".to_owned())).unwrap_err();
    assert_eq!(code, ErrorCode::InvalidArgument as u32);
    assert!(message.contains("refcpu_fusion") && message.contains("maybe"), "{message}");
}

/// A `PjRtPartialProgramProto` with this program and format: two fields of bytes.
fn partial_program(program: &str, format: &str) -> Vec<u8> {
    let field = |number: u8, text: &str| {
        let mut bytes = vec![number << 3 | 2];
        let mut len = text.len();
        while len >= 0x80 {
            bytes.push(len as u8 | 0x80);
            len >>= 7;
        }
        bytes.push(len as u8);
        bytes.extend(text.bytes());
        bytes
    };
    [field(1, program), field(2, format)].concat()
}

/// The first field of such a message, which is the program.
fn program_of(message: &[u8]) -> Vec<u8> {
    assert_eq!(message[0], 1 << 3 | 2);
    let (mut len, mut at) = (0, 1);
    for shift in (0..).step_by(7) {
        len |= usize::from(message[at] & 0x7f) << shift;
        at += 1;
        if message[at - 1] < 0x80 {
            break;
        }
    }
    message[at..at + len].to_vec()
}

#[test]
fn phases_lead_from_a_program_to_core_operations_and_to_a_plan() {
    let phases: &PJRT_PhaseCompile_Extension = extension(PJRT_Extension_Type_PhaseCompile);
    let client = Client::new();
    let compiler = call!(phases, phase_compile_get_compiler(PJRT_PhaseCompile_Get_Compiler_Args {}));
    let phase_compiler = compiler.unwrap().phase_compiler;
    let topology = call!(
        api(),
        PJRT_Client_TopologyDescription(PJRT_Client_TopologyDescription_Args { client: client.0 })
    );
    let topology = topology.unwrap().topology;
    let run = |names: &[&str], program: &[u8]| {
        let options = CompileOptions::default().encode();
        let (mut programs, sizes) = ([program.as_ptr().cast::<c_char>()], [program.len()]);
        let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr().cast()).collect();
        let lengths: Vec<usize> = names.iter().map(|name| name.len()).collect();
        let args = call!(
            phases,
            phase_compile_run_phases(PJRT_PhaseCompile_Run_Phase_Args {
                phase_compiler,
                input_programs: programs.as_mut_ptr(),
                input_programs_sizes: sizes.as_ptr(),
                num_input_programs: 1,
                phases_to_run: pointers.as_mut_ptr(),
                phases_to_run_sizes: lengths.as_ptr(),
                num_phases_to_run: names.len(),
                compile_options: options.as_ptr().cast(),
                compile_options_size: options.len(),
                topology,
            })
        )?;
        assert_eq!(args.num_output_programs, 1);
        // SAFETY: the plugin gave one string and its size, which are freed once, after they were read.
        let program = unsafe {
            let program = bytes((*args.output_programs).cast(), *args.output_programs_sizes).to_vec();
            let mut free = PJRT_PhaseCompile_C_Buffers_Destroy_Args {
                char_buffers: args.output_programs,
                char_buffer_sizes: args.output_programs_sizes,
                num_char_buffers: 1,
                ..SizedStruct::zeroed()
            };
            (phases.phase_compile_c_buffers_destroy.unwrap())(&raw mut free);
            program
        };
        Result::Ok(program)
    };
    let whole = PROGRAM
        .replace("stablehlo.add %x, %x", "stablehlo.composite \"my.twice\" %x {decomposition = @twice}");
    let whole = whole.replace(": tensor<4xf32>\n  return", ": (tensor<4xf32>) -> tensor<4xf32>\n  return")
        + "\nfunc.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
             %0 = stablehlo.add %x, %x : tensor<4xf32>
             return %0 : tensor<4xf32>
           }";
    let whole = partial_program(&whole, "mlir");
    let core = run(&["core_ops"], &whole).unwrap();
    let text = String::from_utf8(program_of(&core)).unwrap();
    assert!(text.contains("stablehlo.add") && !text.contains("composite"), "{text}");
    let in_steps = program_of(&run(&["plan"], &core).unwrap());
    let at_once = program_of(&run(&["core_ops", "plan"], &whole).unwrap());
    assert_eq!(in_steps, at_once);
    assert!(String::from_utf8(in_steps).unwrap().contains("region of 1 operations"));
    let (code, message) = run(&["core_ops"], &partial_program(PROGRAM, "hlo")).unwrap_err();
    assert_eq!(code, ErrorCode::InvalidArgument as u32);
    assert!(message.contains("'mlir', found 'hlo'"), "{message}");
    let mut args = PJRT_PhaseCompile_Destroy_Compiler_Args { phase_compiler, ..SizedStruct::zeroed() };
    // SAFETY: what the function is for, once.
    unsafe { (phases.phase_compile_destroy_compiler.unwrap())(&raw mut args) };
}

#[test]
fn a_host_registers_callbacks_for_the_end_of_the_process() {
    unsafe extern "C" fn hear(args: *mut c_void, heard: *mut c_void) {
        // SAFETY: the struct belongs to this type of callback, and the argument is the list below.
        unsafe {
            let args = &*args.cast::<PJRT_Callback_PrefatalArgs>();
            (*heard.cast::<Mutex<Vec<u32>>>()).lock().unwrap().push(args.error_code.0);
        }
    }
    let callbacks: &PJRT_Callback_Extension = extension(PJRT_Extension_Type_Callback);
    let client = Client::new();
    let heard = Mutex::new(Vec::<u32>::new());
    let type_ = PJRT_Callback_Type_Prefatal;
    call!(
        callbacks,
        register_callback(PJRT_Callback_RegisterCallback_Args {
            client: client.0,
            type_,
            callback: Some(hear),
            user_arg: (&raw const heard).cast_mut().cast(),
        })
    )
    .unwrap();
    let mut prefatal =
        PJRT_Callback_PrefatalArgs { error_code: PJRT_Error_Code_INTERNAL, ..SizedStruct::zeroed() };
    call!(
        callbacks,
        invoke_callback(PJRT_Callback_InvokeCallback_Args {
            client: client.0,
            type_,
            args: (&raw mut prefatal).cast()
        })
    )
    .unwrap();
    assert_eq!(*heard.lock().unwrap(), [ErrorCode::Internal as u32]);
}
