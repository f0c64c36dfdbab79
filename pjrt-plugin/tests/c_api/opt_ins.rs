//! The smaller extensions that authors opt into.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pjrt_plugin::ext::CustomPartitioner;
use pjrt_plugin::{CompileOptions, Error, ErrorCode};
use pjrt_sys::*;
use prost::Message;

use crate::dummy::Dummy;
use crate::dummy_extensions::{COUNTED, DummyFunctions};
use crate::host::*;

#[test]
fn host_memory_comes_from_the_author_and_goes_back_through_its_deleter() {
    let client = Client::new(&[]);
    let allocator: &PJRT_HostMemoryAllocator_Extension = extension(PJRT_Extension_Type_HostMemoryAllocator);
    let allocate = |size, numa_node| {
        call_extension!(
            allocator,
            allocate(PJRT_HostMemoryAllocator_Allocate_Args { client: client.0, size, numa_node })
        )
    };
    let (near, any) = (allocate(100, 3).unwrap(), allocate(50, -1).unwrap());
    assert_eq!(array(near.ptr, 100), [3; 100]);
    assert_eq!(array(any.ptr, 50), [0xff; 50]);
    assert_eq!(COUNTED.load(Ordering::Relaxed), 150);
    for args in [near, any] {
        // SAFETY: what the deleter is for, once.
        unsafe { args.deleter.unwrap()(args.ptr.cast(), args.deleter_arg) };
    }
    let error = allocate(100, 7).unwrap_err();
    assert!(error.message.contains("returned 99 bytes; expected at least 100"), "{error:?}");
    assert_eq!(COUNTED.load(Ordering::Relaxed), 0);
}

#[test]
fn metadata_of_an_executable_is_what_the_author_says() {
    let client = Client::new(&[]);
    let extension: &PJRT_ExecutableMetadata_Extension = extension(PJRT_Extension_Type_ExecutableMetadata);
    let metadata = |word: &str| {
        let loaded = client.compile(word).unwrap();
        let executable = loaded.get();
        let mut args =
            PJRT_ExecutableMetadata_GetExecutableMetadata_Args { executable, metadata: ptr::null_mut() };
        // SAFETY: the struct is filled in as the API says.
        let error = unsafe { (extension.get_executable_metadata.unwrap())(&raw mut args) };
        call!(PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args { executable })).unwrap();
        take_error(error).map(|()| {
            // SAFETY: the plugin made the struct, which lives until it is destroyed.
            let read = unsafe { *args.metadata };
            let read = text(read.serialized_metadata, read.serialized_metadata_size);
            let mut args = PJRT_ExecutableMetadata_DestroySerializedMetadata_Args { metadata: args.metadata };
            // SAFETY: what the function is for, once.
            unsafe { (extension.destroy_serialized_metadata.unwrap())(&raw mut args) };
            read
        })
    };
    assert_eq!(metadata("negate").unwrap(), "NEGATE");
    let error = metadata("none").unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound as u32);
    assert!(error.message.contains("[PJRT_ExecutableMetadata_GetExecutableMetadata]"), "{error:?}");
}

/// The fields of `PjRtPartialProgramProto` that the tests read.
#[derive(Clone, PartialEq, Message)]
struct PartialProgram {
    #[prost(bytes = "vec", tag = "1")]
    program: Vec<u8>,
    #[prost(string, tag = "3")]
    producer_phase: String,
}

#[test]
fn phases_run_one_by_one_on_partial_programs() {
    let client = Client::new(&[]);
    let extension: &PJRT_PhaseCompile_Extension = extension(PJRT_Extension_Type_PhaseCompile);
    let phase_compiler =
        call_extension!(extension, phase_compile_get_compiler(PJRT_PhaseCompile_Get_Compiler_Args {}))
            .unwrap()
            .phase_compiler;
    let take = |buffers: *mut *const c_char, sizes: *const usize, count| {
        let strings = array(buffers.cast_const(), count).iter().zip(array(sizes, count));
        let read: Vec<Vec<u8>> =
            strings.map(|(start, size)| array(start.cast::<u8>(), *size).to_vec()).collect();
        let mut args = PJRT_PhaseCompile_C_Buffers_Destroy_Args {
            char_buffers: buffers,
            char_buffer_sizes: sizes,
            num_char_buffers: count,
            ..SizedStruct::zeroed()
        };
        // SAFETY: what the function is for, once.
        unsafe { (extension.phase_compile_c_buffers_destroy.unwrap())(&raw mut args) };
        read
    };
    let names = call_extension!(
        extension,
        phase_compile_get_phase_names(PJRT_PhaseCompile_Get_PhaseNames_Args { phase_compiler })
    )
    .unwrap();
    let names = take(names.phase_names, names.phase_names_sizes, names.num_phase_names);
    assert_eq!(names, [b"upper".to_vec(), b"twice".to_vec()]);
    let topology =
        call!(PJRT_Client_TopologyDescription(PJRT_Client_TopologyDescription_Args { client: client.0 }))
            .unwrap();
    let run = |phases: &[&str]| {
        let program =
            PartialProgram { program: b"add".to_vec(), ..PartialProgram::default() }.encode_to_vec();
        let mut programs = [program.as_ptr().cast::<c_char>()];
        let sizes = [program.len()];
        let mut phase_pointers: Vec<*const c_char> =
            phases.iter().map(|phase| phase.as_ptr().cast()).collect();
        let phase_sizes: Vec<usize> = phases.iter().map(|phase| phase.len()).collect();
        let options = CompileOptions::default().encode();
        let args = call_extension!(
            extension,
            phase_compile_run_phases(PJRT_PhaseCompile_Run_Phase_Args {
                phase_compiler,
                input_programs: programs.as_mut_ptr(),
                input_programs_sizes: sizes.as_ptr(),
                num_input_programs: 1,
                phases_to_run: phase_pointers.as_mut_ptr(),
                phases_to_run_sizes: phase_sizes.as_ptr(),
                num_phases_to_run: phases.len(),
                compile_options: options.as_ptr().cast(),
                compile_options_size: options.len(),
                topology: topology.topology,
            })
        )?;
        let outputs = take(args.output_programs, args.output_programs_sizes, args.num_output_programs);
        Ok::<_, HostError>(PartialProgram::decode(&*outputs[0]).unwrap())
    };
    let expected = PartialProgram { program: b"ADDADD".to_vec(), producer_phase: "twice".to_owned() };
    assert_eq!(run(&["upper", "twice"]).unwrap(), expected);
    let error = run(&["upper", "thrice"]).unwrap_err();
    assert!(
        error.message.contains("no phase 'thrice'") && error.message.contains("upper, twice"),
        "{error:?}"
    );
    let mut args = PJRT_PhaseCompile_Destroy_Compiler_Args { phase_compiler, ..SizedStruct::zeroed() };
    // SAFETY: what the function is for, once.
    unsafe { (extension.phase_compile_destroy_compiler.unwrap())(&raw mut args) };
}

#[test]
fn a_host_is_told_of_a_fatal_error_before_the_end() {
    type Heard = Mutex<Vec<(u32, String)>>;
    unsafe extern "C" fn hear(args: *mut c_void, heard: *mut c_void) {
        // SAFETY: the struct belongs to this type of callback, and the argument is the list below.
        let (args, heard) = unsafe { (*args.cast::<PJRT_Callback_PrefatalArgs>(), &*heard.cast::<Heard>()) };
        heard.lock().unwrap().push((args.error_code.0, text(args.error_message, args.error_message_size)));
    }
    let client = Client::new(&[]);
    let heard: &Heard = Box::leak(Box::default());
    let extension: &PJRT_Callback_Extension = extension(PJRT_Extension_Type_Callback);
    let register = |type_| {
        call_extension!(
            extension,
            register_callback(PJRT_Callback_RegisterCallback_Args {
                client: client.0,
                type_,
                callback: Some(hear),
                user_arg: ptr::from_ref(heard).cast_mut().cast(),
            })
        )
    };
    register(PJRT_Callback_Type_Prefatal).unwrap();
    let error = register(PJRT_Callback_Type_Tpu_SliceBuilder).unwrap_err();
    assert_eq!(error.code, ErrorCode::Unimplemented as u32);
    // By the host, and by the author.
    let message = "by the host";
    let mut prefatal = PJRT_Callback_PrefatalArgs {
        error_code: PJRT_Error_Code_INTERNAL,
        error_message: message.as_ptr().cast(),
        error_message_size: message.len(),
        ..SizedStruct::zeroed()
    };
    call_extension!(
        extension,
        invoke_callback(PJRT_Callback_InvokeCallback_Args {
            client: client.0,
            type_: PJRT_Callback_Type_Prefatal,
            args: (&raw mut prefatal).cast(),
        })
    )
    .unwrap();
    // SAFETY: the client is one of the dummy's.
    let dummy = unsafe { pjrt_plugin::ext::vendor::client::<Dummy>(client.0) }.unwrap();
    pjrt_plugin::ext::Callbacks::prefatal_callbacks(dummy).invoke(&Error::data_loss("by the author"));
    let heard = heard.lock().unwrap();
    assert_eq!(heard[0], (ErrorCode::Internal as u32, "by the host".to_owned()));
    assert_eq!(
        (heard[1].0, heard[1].1.contains("by the author")),
        (ErrorCode::DataLoss as u32, true),
        "{heard:?}"
    );
}

#[test]
fn an_extension_of_the_vendors_own_is_found_by_its_number_and_guarded() {
    #[repr(C)]
    struct Whole {
        base: PJRT_Extension_Base,
        functions: DummyFunctions,
    }
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[1.0; 4]);
    let whole: &Whole = extension(PJRT_Extension_Type(pjrt_plugin::ext::vendor::FIRST_TYPE + 1));
    assert_eq!(whole.base.struct_size, size_of::<Whole>());
    let mut size = 0;
    let call = |buffer: *mut PJRT_Buffer, place: *mut usize| {
        // SAFETY: null or what the function takes.
        take_error(unsafe { (whole.functions.size)(buffer, place) })
    };
    call(buffer.0, &raw mut size).unwrap();
    assert_eq!(size, 16);
    let error = call(ptr::null_mut(), ptr::null_mut()).unwrap_err();
    assert!(error.message.contains("'buffer' is null [Dummy_Size]"), "{error:?}");
    let error = call(buffer.0, ptr::null_mut()).unwrap_err();
    assert!(
        error.message.contains("panicked") && error.message.contains("nowhere to put the size"),
        "{error:?}"
    );
    buffer.delete();
    call(buffer.0, &raw mut size).unwrap_err();
}

#[test]
fn a_partitioner_that_a_host_registers_is_found_by_its_name_and_freed_when_another_takes_its_place() {
    static FREED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn dtor(callbacks: *mut JAX_CustomCallPartitioner_Callbacks) {
        // SAFETY: the struct below, once.
        drop(unsafe { Box::from_raw(callbacks) });
        FREED.fetch_add(1, Ordering::Relaxed);
    }
    unsafe extern "C" fn partition(
        _: *mut JAX_CustomCallPartitioner_Callbacks,
        args: *mut JAX_CustomCallPartitioner_Partition_Args,
    ) {
        let message = "the mesh is gone";
        // SAFETY: the plugin passes the struct.
        let header = unsafe { &mut (*args).header };
        (header.has_error, header.code) = (true, PJRT_Error_Code_FAILED_PRECONDITION);
        header.error_msg =
            JAX_CustomCallPartitioner_string { data: message.as_ptr().cast(), size: message.len() };
    }
    unsafe extern "C" fn infer(
        _: *mut JAX_CustomCallPartitioner_Callbacks,
        _: *mut JAX_CustomCallPartitioner_InferShardingFromOperands_Args,
    ) {
    }
    unsafe extern "C" fn propagate(
        _: *mut JAX_CustomCallPartitioner_Callbacks,
        _: *mut JAX_CustomCallPartitioner_PropagateUserSharding_Args,
    ) {
    }
    let extension: &PJRT_Custom_Partitioner_Extension = extension(PJRT_Extension_Type_Custom_Partitioner);
    let register = |name: &str, callbacks| {
        call_extension!(
            extension,
            register_custom_partitioner(PJRT_Register_Custom_Partitioner_Args {
                name: name.as_ptr().cast(),
                name_size: name.len(),
                callbacks,
            })
        )
    };
    let callbacks = || {
        Box::into_raw(Box::new(JAX_CustomCallPartitioner_Callbacks {
            version: 0,
            private_data: ptr::null_mut(),
            dtor: Some(dtor),
            partition: Some(partition),
            infer_sharding: Some(infer),
            propagate_user_sharding: Some(propagate),
            can_side_effecting_have_replicated_sharding: false,
        }))
    };
    let find = || CustomPartitioner::find("DUMMY", "halves");
    assert!(find().is_none());
    register("halves", callbacks()).unwrap();
    let error = find().unwrap().partition(&[], &[], b"").unwrap_err();
    assert_eq!((error.code(), error.message()), (ErrorCode::FailedPrecondition, "the mesh is gone"));
    assert_eq!(find().unwrap().infer_sharding(&[], &[], b"").unwrap(), None);
    let first = find();
    register("halves", callbacks()).unwrap();
    assert_eq!(FREED.load(Ordering::Relaxed), 0);
    drop(first);
    assert_eq!(FREED.load(Ordering::Relaxed), 1);
    for (name, callbacks) in [("halves", ptr::null_mut()), ("", ptr::null_mut())] {
        let error = register(name, callbacks).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
        assert!(error.message.contains("[PJRT_Register_Custom_Partitioner]"), "{error:?}");
    }
    let name = "by rows";
    let mark = |size| {
        call_extension!(
            extension,
            register_batch_partitionable(PJRT_Register_Batch_Partitionable_Args {
                name: name.as_ptr().cast(),
                name_size: size,
            })
        )
    };
    assert!(!CustomPartitioner::is_batch_partitionable("dummy", name));
    mark(name.len()).unwrap();
    assert!(CustomPartitioner::is_batch_partitionable("dummy", name));
    assert_eq!(mark(0).unwrap_err().code, ErrorCode::InvalidArgument as u32);
}
