//! Hosts of other versions of the interface: structs that are shorter or longer than ours.

use pjrt_sys::*;

use crate::host::*;

#[test]
fn fields_that_an_old_host_does_not_have_are_not_written() {
    let client = Client::new(&[]);
    let stats = |struct_size| {
        call!(PJRT_Device_MemoryStats(PJRT_Device_MemoryStats_Args {
            struct_size,
            device: client.devices()[0],
            peak_allocated_bytes: -1,
        }))
        .unwrap()
    };
    assert_eq!((stats(201).bytes_in_use, stats(201).peak_allocated_bytes), (10, 20));
    assert_eq!((stats(185).bytes_in_use, stats(185).peak_allocated_bytes), (10, -1));
    // A host of a future version.
    assert_eq!(stats(4096).peak_allocated_bytes, 20);
}

#[test]
fn fields_that_an_old_host_does_not_have_take_their_default() {
    let client = Client::new(&[]);
    let device = client.devices()[0];
    let options = [option("num_devices", 1)];
    // The pointer to the key-value callback of 0.61 lies behind the end.
    call!(PJRT_Client_Create(PJRT_Client_Create_Args {
        struct_size: 72,
        create_options: options.as_ptr(),
        num_options: 1,
    }))
    .map(|args| drop(Client(args.client)))
    .unwrap();
    let executable = client.compile("negate").unwrap();
    let buffer = client.upload(0, &[1.0; 4]);
    let (arguments, mut output) = ([buffer.0], std::ptr::null_mut());
    let (argument_list, output_list) = (arguments.as_ptr(), &raw mut output);
    for size in [72, 80, 88, 112, 144, 160, 400] {
        let mut options = PJRT_ExecuteOptions { struct_size: size, ..PJRT_ExecuteOptions::zeroed() };
        call!(PJRT_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args {
            executable: executable.0,
            options: &raw mut options,
            argument_lists: &raw const argument_list,
            num_devices: 1,
            num_args: 1,
            output_lists: &raw const output_list,
            execute_device: device,
        }))
        .unwrap();
        assert_eq!(Buffer(output).numbers().unwrap(), [-1.0; 4]);
    }
}

#[test]
fn getters_accept_structs_that_end_early() {
    let client = Client::new(&[]);
    let args = call!(PJRT_Client_Devices(PJRT_Client_Devices_Args {
        struct_size: field_end::PJRT_Client_Devices_Args::devices,
        client: client.0,
        num_devices: 77,
    }))
    .unwrap();
    assert!(!args.devices.is_null());
    assert_eq!(args.num_devices, 77);
}
