//! The FFI extension: a host registers a handler, and passes data to it with an execution.

use std::ffi::c_void;
use std::ptr;

use pjrt_plugin::ErrorCode;
use pjrt_sys::*;

use crate::host::*;

fn ffi() -> &'static PJRT_FFI_Extension {
    extension(PJRT_Extension_Type_FFI)
}

/// The beginning of an `XLA_FFI_CallFrame`: the fields that the handler below reads.
#[repr(C)]
struct CallFrame {
    struct_size: usize,
    extension: *mut MetadataExtension,
    api: *const usize,
    context: *mut c_void,
    stage: i32,
    arguments: Arrays,
    results: Arrays,
}

#[repr(C)]
struct Arrays {
    struct_size: usize,
    extension: *mut c_void,
    size: i64,
    types: *const i32,
    arrays: *const *const Array,
}

#[repr(C)]
struct Array {
    struct_size: usize,
    extension: *mut c_void,
    dtype: u32,
    data: *mut f32,
}

#[repr(C)]
struct MetadataExtension {
    struct_size: usize,
    type_: i32,
    next: *mut c_void,
    metadata: *mut Metadata,
}

#[repr(C)]
struct Metadata {
    struct_size: usize,
    version_struct_size: usize,
    version_extension: *mut c_void,
    major: i32,
    minor: i32,
}

#[repr(C)]
struct GetUserData {
    struct_size: usize,
    extension: *mut c_void,
    context: *mut c_void,
    type_id: *const i64,
    data: *const f32,
}

/// The type of the user data, by name.
fn type_id(name: &str, id: i64) -> Result<i64> {
    let mut info = PJRT_FFI_Type_Info { deleter: None, serialize: None, deserialize: None };
    let args = call_extension!(
        ffi(),
        type_register(PJRT_FFI_Type_Register_Args {
            type_name: name.as_ptr().cast(),
            type_name_size: name.len(),
            type_id: id,
            type_info: &raw mut info,
        })
    )?;
    Ok(args.type_id)
}

/// Multiplies by the number that the host passed, or negates if it passed none.
unsafe extern "C" fn scale(frame: *mut CallFrame) -> *mut c_void {
    // SAFETY: the frame is what the names of its fields say.
    unsafe {
        let frame = &*frame;
        if !frame.extension.is_null() {
            let metadata = &mut *(*frame.extension).metadata;
            (metadata.major, metadata.minor) = (0, 1);
            return ptr::null_mut();
        }
        assert_eq!((frame.stage, frame.arguments.size, frame.results.size), (3, 1, 1));
        let id = type_id("c_api test: factor", 0).unwrap();
        let mut get = GetUserData {
            struct_size: size_of::<GetUserData>(),
            extension: ptr::null_mut(),
            context: frame.context,
            type_id: &raw const id,
            data: ptr::null(),
        };
        // The functions of the table begin behind size, extensions, version and a reserved field; this one is the seventh, and
        // the third frees an error.
        let function = |index: usize| frame.api.add(6 + index).read();
        let get_user_data: unsafe extern "C" fn(*mut GetUserData) -> *mut c_void =
            std::mem::transmute(function(6));
        let destroy: unsafe extern "C" fn(*mut [usize; 3]) = std::mem::transmute(function(2));
        let error = get_user_data(&raw mut get);
        if !error.is_null() {
            let mut args = [24, 0, error.expose_provenance()];
            destroy(&raw mut args);
        }
        let factor = if get.data.is_null() { -1.0 } else { *get.data };
        let (from, to) = (&**frame.arguments.arrays, &**frame.results.arrays);
        assert_eq!(from.dtype, 11);
        for index in 0..4 {
            to.data.add(index).write(from.data.add(index).read() * factor);
        }
    }
    ptr::null_mut()
}

fn register(target: &str, handler: *mut c_void) -> Result<()> {
    let platform = "Dummy";
    call_extension!(
        ffi(),
        register_handler(PJRT_FFI_Register_Handler_Args {
            target_name: target.as_ptr().cast(),
            target_name_size: target.len(),
            handler,
            platform_name: platform.as_ptr().cast(),
            platform_name_size: platform.len(),
        })
    )
    .map(drop)
}

#[test]
fn a_handler_runs_in_a_program_with_the_data_that_the_host_hands_in() {
    let client = Client::new(&[]);
    register("negate", scale as *mut c_void).unwrap();
    let executable = client.compile("custom_call").unwrap();
    let buffer = client.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    let context = call!(PJRT_ExecuteContext_Create(PJRT_ExecuteContext_Create_Args {})).unwrap().context;
    let run = || {
        let options = PJRT_ExecuteOptions { context, ..PJRT_ExecuteOptions::zeroed() };
        let launch = executable.launch_with(&[&[&buffer]], options, ptr::null_mut()).unwrap();
        launch.outputs[0][0].numbers().unwrap()
    };
    assert_eq!(run(), [-1.0, -2.0, -3.0, -4.0]);
    let id = type_id("c_api test: factor", 0).unwrap();
    let add = |value: &mut f32| {
        let user_data = PJRT_FFI_UserData { type_id: id, data: ptr::from_mut(value).cast() };
        call_extension!(ffi(), user_data_add(PJRT_FFI_UserData_Add_Args { context, user_data })).unwrap();
    };
    add(&mut 10.0);
    let mut ten = 10.0;
    add(&mut ten);
    assert_eq!(run(), [10.0, 20.0, 30.0, 40.0]);
    call!(PJRT_ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args { context })).unwrap();
    // Without a context, as most executions are.
    assert_eq!(executable.run(&[&buffer]).unwrap().outputs[0][0].numbers().unwrap()[0], -1.0);
}

#[test]
fn a_type_has_the_number_that_it_got_first() {
    let id = type_id("c_api test: type", 0).unwrap();
    assert_eq!(type_id("c_api test: type", id).unwrap(), id);
    let error = type_id("c_api test: type", id + 1).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
}

#[test]
fn a_second_handler_of_the_same_name_and_what_is_no_handler_are_refused() {
    unsafe extern "C" fn other(frame: *mut CallFrame) -> *mut c_void {
        // SAFETY: the host only asks for metadata.
        unsafe { scale(frame) }
    }
    unsafe extern "C" fn silent(_: *mut CallFrame) -> *mut c_void {
        ptr::null_mut()
    }
    register("twice", scale as *mut c_void).unwrap();
    register("twice", scale as *mut c_void).unwrap();
    let error = register("twice", other as *mut c_void).unwrap_err();
    assert_eq!(error.code, ErrorCode::AlreadyExists as u32, "{error:?}");
    let error = register("silent", silent as *mut c_void).unwrap_err();
    assert!(error.message.contains("the handler of 'silent' for the platform 'Dummy'"), "{error:?}");
    register("nothing", ptr::null_mut()).unwrap_err();
}
