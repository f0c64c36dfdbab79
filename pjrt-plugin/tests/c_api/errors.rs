//! Errors: codes, texts, payloads, panics.

use std::ffi::c_char;
use std::ptr;

use pjrt_plugin::ErrorCode;
use pjrt_sys::*;

use crate::host::*;

#[test]
fn a_panic_in_any_method_is_an_internal_error_with_its_place() {
    for method in ["create", "compile", "load", "execute", "buffer_from_host", "default_device_assignment"] {
        let error = match Client::try_new(&[text_option("panic_in", method)]) {
            Err(error) => error,
            Ok(client) => provoke(&client, method),
        };
        assert_eq!(error.code, ErrorCode::Internal as u32, "{method}");
        assert!(error.message.contains(&format!("asked to panic in {method}")), "{error:?}");
        assert!(error.message.contains("dummy.rs:"), "{error:?}");
        assert!(error.payloads.iter().any(|(key, value)| key.contains("backtrace") && !value.is_empty()));
    }
}

/// Calls the function of the table that calls a method.
fn provoke(client: &Client, method: &str) -> HostError {
    match method {
        "buffer_from_host" => {
            let numbers = [0.0_f32; 4];
            let upload = Upload { dims: &[4], device: client.devices()[0], ..Upload::new(&numbers) };
            upload.to(client).err().unwrap()
        }
        "default_device_assignment" => {
            let mut ids = [0; 1];
            call!(PJRT_Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args {
                client: client.0,
                num_replicas: 1,
                num_partitions: 1,
                default_assignment_size: 1,
                default_assignment: ids.as_mut_ptr(),
            }))
            .err()
            .unwrap()
        }
        "execute" => {
            let buffer = client.upload(0, &[0.0; 4]);
            client.compile("negate").unwrap().run(&[&buffer]).err().unwrap()
        }
        _ => client.compile("negate").err().unwrap(),
    }
}

#[test]
fn payloads_hints_and_functions_reach_the_host() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[0.0; 4]);
    let error = client.compile("error").unwrap().run(&[&buffer]).err().unwrap();
    assert_eq!(error.code, ErrorCode::ResourceExhausted as u32);
    assert!(error.message.starts_with("no room (hint: the host holds buffers of "), "{error:?}");
    assert!(error.message.ends_with(" [PJRT_LoadedExecutable_Execute]"), "{error:?}");
    assert_eq!(error.payloads, [("room".to_owned(), b"none".to_vec())]);
    let error = client.compile("nonsense").err().unwrap();
    assert!(error.message.contains("(hint: try 'negate')"), "{error:?}");
}

#[test]
fn the_table_in_an_error_does_what_the_slots_do() {
    let mut args = PJRT_Client_Compile_Args::zeroed();
    // SAFETY: null handles are allowed to be refused.
    let error = unsafe { (api().PJRT_Client_Compile.unwrap())(&raw mut args) };
    let expected = read_error(error);
    assert_eq!((expected.code, expected.payloads.len()), (ErrorCode::InvalidArgument as u32, 0));
    let (mut message, mut size): (*const c_char, usize) = (ptr::null(), 0);
    // SAFETY: the first word of an error is its table.
    unsafe {
        let table = *(*error).vtable;
        assert_eq!(table.struct_size, PJRT_Error_FunctionTable::STRUCT_SIZE);
        (table.message.unwrap())(error, &raw mut message, &raw mut size);
        assert_eq!(text(message, size), expected.message);
        assert_eq!((table.get_code.unwrap())(error).0, expected.code);
        (table.destroy.unwrap())(error);
    }
}

#[test]
fn null_errors_can_be_destroyed() {
    let mut args = PJRT_Error_Destroy_Args::zeroed();
    // SAFETY: destroying null is allowed.
    unsafe { (api().PJRT_Error_Destroy.unwrap())(&raw mut args) };
}

#[test]
fn null_arguments_are_refused_not_followed() {
    macro_rules! refused {
        ($($function:ident $args:ident;)*) => {$(
            let error = call!($function($args {})).err().expect(stringify!($function));
            assert_eq!(error.code, ErrorCode::InvalidArgument as u32, "{error:?}");
            assert!(error.message.contains("null"), "{error:?}");
        )*};
    }
    refused! {
        PJRT_Event_IsReady PJRT_Event_IsReady_Args;
        PJRT_Event_OnReady PJRT_Event_OnReady_Args;
        PJRT_Client_Devices PJRT_Client_Devices_Args;
        PJRT_Client_BufferFromHostBuffer PJRT_Client_BufferFromHostBuffer_Args;
        PJRT_Device_GetDescription PJRT_Device_GetDescription_Args;
        PJRT_Memory_Kind PJRT_Memory_Kind_Args;
        PJRT_Buffer_Dimensions PJRT_Buffer_Dimensions_Args;
        PJRT_Buffer_ToHostBuffer PJRT_Buffer_ToHostBuffer_Args;
        PJRT_Executable_Name PJRT_Executable_Name_Args;
        PJRT_LoadedExecutable_Execute PJRT_LoadedExecutable_Execute_Args;
        PJRT_TopologyDescription_PlatformName PJRT_TopologyDescription_PlatformName_Args;
    }
    // SAFETY: a null pointer is what is tested.
    let error = unsafe { (api().PJRT_Client_Devices.unwrap())(ptr::null_mut()) };
    assert!(take_error(error).unwrap_err().message.contains("PJRT_Client_Devices_Args"));
}

#[test]
fn destroying_null_is_allowed() {
    call!(PJRT_Event_Destroy(PJRT_Event_Destroy_Args {})).unwrap();
    call!(PJRT_Client_Destroy(PJRT_Client_Destroy_Args {})).unwrap();
    call!(PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args {})).unwrap();
    call!(PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args {})).unwrap();
    call!(PJRT_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args {})).unwrap();
    call!(PJRT_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args {})).unwrap();
}

#[test]
#[cfg(debug_assertions)]
fn in_debug_builds_wrong_and_dead_handles_are_refused() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[0.0; 4]);
    let error = call!(PJRT_Event_IsReady(PJRT_Event_IsReady_Args { event: buffer.0.cast() })).err().unwrap();
    assert!(error.message.contains("a handle to a PJRT_Buffer, not to a PJRT_Event"), "{error:?}");
    let event = buffer.ready();
    destroy_event(event);
    let error = call!(PJRT_Event_Destroy(PJRT_Event_Destroy_Args { event })).err().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
}

#[test]
fn an_error_that_memory_ran_out_says_who_holds_it() {
    let client = Client::new(&[]);
    let (two, error) = (client.compile("two").unwrap(), client.compile("error").unwrap());
    let buffer = client.upload(0, &[1.0; 4]);
    let held = two.run(&[&buffer]).unwrap();
    let no_room = || error.run(&[&buffer]).err().unwrap();
    let message = no_room().message;
    assert!(message.contains("the host holds buffers of 48 bytes in memory 0 ('device')"), "{message}");
    assert!(
        message.contains("2 outputs of 'two' with 32 bytes, the rest was uploaded or copied"),
        "{message}"
    );
    drop(held);
    let message = no_room().message;
    assert!(
        message.contains("16 bytes in memory 0 ('device'), without padding: the rest was uploaded"),
        "{message}"
    );
}
