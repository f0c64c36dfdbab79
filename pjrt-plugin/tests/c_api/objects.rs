//! Plugin, client, devices, memories, topology.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use pjrt_plugin::{DeviceDescription, ErrorCode, Topology};
use pjrt_sys::*;

use crate::host::*;

#[test]
fn the_table_is_full_and_reports_its_version() {
    assert_eq!((api().pjrt_api_version.major_version, api().pjrt_api_version.minor_version), (0, 117));
    let words = ptr::from_ref(api()).cast::<usize>();
    for slot in SLOTS {
        // SAFETY: the slot is in the table.
        assert_ne!(unsafe { words.byte_add(slot.offset).read() }, 0, "{}", slot.name);
    }
}

fn attribute_names(args: &PJRT_Plugin_Attributes_Args) -> Vec<String> {
    array(args.attributes, args.num_attributes)
        .iter()
        .map(|value| text(value.name, value.name_size))
        .collect()
}

#[test]
fn attributes_have_names_that_end_with_a_nul_and_the_life_of_the_process() {
    call!(PJRT_Plugin_Initialize(PJRT_Plugin_Initialize_Args {})).unwrap();
    let args = call!(PJRT_Plugin_Attributes(PJRT_Plugin_Attributes_Args {})).unwrap();
    let names = attribute_names(&args);
    assert_eq!(names, ["xla_version", "stablehlo_current_version", "stablehlo_minimum_version", "note"]);
    let again = call!(PJRT_Plugin_Attributes(PJRT_Plugin_Attributes_Args {})).unwrap();
    assert_eq!(args.attributes, again.attributes);
    let values = array(args.attributes, args.num_attributes);
    assert_eq!(values[1].type_, PJRT_NamedValue_kInt64List);
    // SAFETY: the type says which member is there, and names end with a NUL.
    unsafe {
        assert_eq!(array(values[1].u.int64_array_value, values[1].value_size), [1, 13, 0]);
        assert_eq!(values[0].name.add(values[0].name_size).read(), 0);
    }
}

#[test]
fn hosts_of_the_short_attributes_struct_get_their_count_but_no_current_version() {
    let args = call!(PJRT_Plugin_Attributes(PJRT_Plugin_Attributes_Args { struct_size: 24 })).unwrap();
    assert_eq!(attribute_names(&args), ["xla_version", "stablehlo_minimum_version", "note"]);
}

#[test]
fn misspelled_and_mistyped_options_are_refused() {
    let error = Client::try_new(&[option("num_device", 1)]).err().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
    assert!(error.message.contains("Unexpected option name passed to PJRT_Client_Create"), "{error:?}");
    assert!(error.message.contains("did you mean 'num_devices'"), "{error:?}");
    let error = Client::try_new(&[text_option("num_devices", "many")]).err().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
    assert_eq!(Client::new(&[text_option("num_devices", "3")]).devices().len(), 3);
}

#[test]
fn an_option_that_hosts_send_to_every_plugin_is_ignored() {
    assert_eq!(Client::new(&[option("preallocate", 0)]).devices().len(), 2);
}

#[test]
fn a_client_without_devices_is_refused() {
    let error = Client::try_new(&[option("num_devices", 0)]).err().unwrap();
    assert!(error.message.contains("returned no addressable device"), "{error:?}");
}

#[test]
fn devices_and_memories_point_to_each_other() {
    let client = Client::new(&[]);
    let devices = client.devices();
    assert_eq!(devices.len(), 2);
    let args =
        call!(PJRT_Client_AddressableDevices(PJRT_Client_AddressableDevices_Args { client: client.0 }))
            .unwrap();
    assert_eq!(array(args.addressable_devices, args.num_addressable_devices), devices);
    for (index, device) in devices.iter().copied().enumerate() {
        let memories = client.memories(index);
        let args = call!(PJRT_Device_DefaultMemory(PJRT_Device_DefaultMemory_Args { device })).unwrap();
        assert_eq!(args.memory, memories[0]);
        for memory in memories.iter().copied() {
            let args =
                call!(PJRT_Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args { memory }))
                    .unwrap();
            assert_eq!(array(args.devices, args.num_devices), [device]);
            let args = call!(PJRT_Memory_Kind_Id(PJRT_Memory_Kind_Id_Args { memory })).unwrap();
            assert_ne!(args.kind_id, 0);
        }
    }
    let args =
        call!(PJRT_Client_AddressableMemories(PJRT_Client_AddressableMemories_Args { client: client.0 }))
            .unwrap();
    assert_eq!(args.num_addressable_memories, 4);
}

#[test]
fn looking_up_a_device_that_is_not_there_names_the_id() {
    let client = Client::new(&[]);
    let look = |id| call!(PJRT_Client_LookupDevice(PJRT_Client_LookupDevice_Args { client: client.0, id }));
    assert_eq!(look(1).unwrap().device, client.devices()[1]);
    for id in [-1, 2] {
        let error = look(id).err().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
        assert!(
            error.message.starts_with(&format!("No matching device found for device_id {id}")),
            "{error:?}"
        );
    }
}

#[test]
fn a_default_assignment_needs_room() {
    let client = Client::new(&[]);
    let mut ids = [-1; 8];
    let mut assign = |size| {
        call!(PJRT_Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args {
            client: client.0,
            num_replicas: 4,
            num_partitions: 2,
            default_assignment_size: size,
            default_assignment: ids.as_mut_ptr(),
        }))
    };
    let error = assign(7).err().unwrap();
    assert_eq!(error.code, ErrorCode::FailedPrecondition as u32);
    assert!(error.message.contains("7") && error.message.contains("4 * 2 = 8"), "{error:?}");
    assign(8).unwrap();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn descriptions_show_what_the_author_wrote() {
    let client = Client::new(&[]);
    let device = client.devices()[1];
    let args = call!(PJRT_Device_GetDescription(PJRT_Device_GetDescription_Args { device })).unwrap();
    let device_description = args.device_description;
    let args =
        call!(PJRT_DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args { device_description }))
            .unwrap();
    assert_eq!(text(args.to_string, args.to_string_size), "dummy(id=1)");
    let args = call!(PJRT_DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args {
        device_description
    }))
    .unwrap();
    let attributes = array(args.attributes, args.num_attributes);
    assert_eq!(text(attributes[0].name, attributes[0].name_size), "core");
    let args = call!(PJRT_Device_GetAttributes(PJRT_Device_GetAttributes_Args { device })).unwrap();
    assert!(args.attributes_deleter.is_some());
}

static DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count(data: *mut c_void) {
    DESTROYED.fetch_add(data.addr(), Ordering::Relaxed);
}

#[test]
fn memories_keep_what_hosts_attach_under_several_keys() {
    let client = Client::new(&[]);
    let memory = client.memories(0)[0];
    // SAFETY: the first word of a memory is its table.
    let table = unsafe { *(*memory).vtable };
    let (get, set) = (table.get_user_data.unwrap(), table.set_user_data.unwrap());
    let keys = [1_u8, 2];
    let data = |value| ptr::without_provenance_mut::<c_void>(value);
    // SAFETY: memory, keys and functions live.
    unsafe {
        let [a, b] = [0, 1].map(|index| ptr::from_ref(&keys[index]).cast());
        assert!(get(memory, a).is_null());
        set(memory, a, data(1), Some(count));
        set(memory, b, data(10), Some(count));
        assert_eq!((get(memory, a).addr(), get(memory, b).addr()), (1, 10));
        set(memory, a, data(100), Some(count));
        assert_eq!(DESTROYED.load(Ordering::Relaxed), 1);
    }
    drop(client);
    assert_eq!(DESTROYED.load(Ordering::Relaxed), 111);
}

#[test]
fn topologies_can_be_stored_and_restored() {
    let client = Client::new(&[]);
    let own =
        call!(PJRT_Client_TopologyDescription(PJRT_Client_TopologyDescription_Args { client: client.0 }))
            .unwrap();
    let bytes = call!(PJRT_TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args {
        topology: own.topology
    }))
    .unwrap();
    let copy = call!(PJRT_TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args {
        serialized_topology: bytes.serialized_bytes,
        serialized_topology_size: bytes.serialized_bytes_size,
    }))
    .unwrap()
    .topology;
    // SAFETY: the deleter is called once.
    unsafe { (bytes.serialized_topology_deleter.unwrap())(bytes.serialized_topology) };
    let print = |topology: *mut PJRT_TopologyDescription| {
        call!(PJRT_TopologyDescription_Fingerprint(PJRT_TopologyDescription_Fingerprint_Args { topology }))
            .unwrap()
            .fingerprint
    };
    assert_eq!(print(own.topology), print(copy));
    let args = call!(PJRT_TopologyDescription_GetDeviceDescriptions(
        PJRT_TopologyDescription_GetDeviceDescriptions_Args { topology: copy }
    ))
    .unwrap();
    assert_eq!(args.num_descriptions, 2);
    call!(PJRT_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args { topology: copy }))
        .unwrap();
}

#[test]
fn topologies_are_read_under_all_names_of_the_platform_and_no_other() {
    let read = |name: &str| {
        let bytes = Topology::new(name, "dummy 1", vec![DeviceDescription::new(0, name)]).serialize();
        let args = call!(PJRT_TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args {
            serialized_topology: bytes.as_ptr().cast(),
            serialized_topology_size: bytes.len(),
        }))?;
        let topology = args.topology;
        call!(PJRT_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args { topology })).map(drop)
    };
    for name in ["dummy", "doll"] {
        read(name).unwrap();
    }
    let error = read("other").unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
    assert!(error.message.contains("is of platform 'other'; expected 'dummy'"), "{}", error.message);
}

/// A key-value store of the host, behind callbacks.
mod store {
    use std::collections::HashMap;
    use std::ffi::{c_char, c_void};
    use std::ptr;
    use std::sync::Mutex;

    use pjrt_sys::*;

    use crate::host::{array, text};

    #[derive(Default)]
    pub(crate) struct Store {
        pub(crate) values: Mutex<HashMap<String, Vec<u8>>>,
    }

    unsafe extern "C" fn delete(value: *mut c_char) {
        // SAFETY: the value is the string below.
        drop(unsafe { std::ffi::CString::from_raw(value) });
    }

    /// Creates a value that the plugin passes to `delete` later.
    fn value(user_arg: *mut c_void, key: &str) -> Option<(*mut c_char, usize)> {
        // SAFETY: the argument is a store that outlives the client.
        let store = unsafe { &*user_arg.cast::<Store>() };
        let value = store.values.lock().unwrap().get(key)?.clone();
        Some((std::ffi::CString::new(value.clone()).unwrap().into_raw(), value.len()))
    }

    /// Creates an error of the plugin with the function that the plugin passes.
    fn not_found(make: *mut PJRT_CallbackError) -> *mut PJRT_Error {
        let message = "no such key";
        // SAFETY: the plugin gave the function.
        unsafe { ((*make).unwrap())(PJRT_Error_Code_NOT_FOUND, message.as_ptr().cast(), message.len()) }
    }

    pub(crate) unsafe extern "C" fn get(args: *mut PJRT_KeyValueGetCallback_Args) -> *mut PJRT_Error {
        // SAFETY: the plugin filled the struct in.
        let args = unsafe { &mut *args };
        assert!(args.timeout_in_ms > 0);
        match value(args.user_arg, &text(args.key, args.key_size)) {
            None => return not_found(args.callback_error),
            Some((value, size)) => (args.value, args.value_size) = (value, size),
        }
        args.value_deleter_callback = Some(delete);
        ptr::null_mut()
    }

    pub(crate) unsafe extern "C" fn try_get(args: *mut PJRT_KeyValueTryGetCallback_Args) -> *mut PJRT_Error {
        // SAFETY: the plugin filled the struct in.
        let args = unsafe { &mut *args };
        match value(args.user_arg, &text(args.key, args.key_size)) {
            None => return not_found(args.callback_error),
            Some((value, size)) => (args.value, args.value_size) = (value, size),
        }
        args.value_deleter_callback = Some(delete);
        ptr::null_mut()
    }

    pub(crate) unsafe extern "C" fn put(args: *mut PJRT_KeyValuePutCallback_Args) -> *mut PJRT_Error {
        // SAFETY: the plugin filled the struct in, and the argument is a store that outlives the client.
        let (args, store) = unsafe { (&*args, &*(*args).user_arg.cast::<Store>()) };
        let value = array(args.value.cast::<u8>(), args.value_size).to_vec();
        store.values.lock().unwrap().insert(text(args.key, args.key_size), value);
        ptr::null_mut()
    }
}

#[test]
fn a_distributed_client_reaches_the_hosts_store() {
    let store = store::Store::default();
    let user_arg = ptr::from_ref(&store).cast_mut().cast();
    let options = [option("num_nodes", 2), option("node_id", 1)];
    let args = call!(PJRT_Client_Create(PJRT_Client_Create_Args {
        create_options: options.as_ptr(),
        num_options: options.len(),
        kv_get_callback: Some(store::get),
        kv_get_user_arg: user_arg,
        kv_put_callback: Some(store::put),
        kv_put_user_arg: user_arg,
        kv_try_get_callback: Some(store::try_get),
        kv_try_get_user_arg: user_arg,
    }));
    // The dummy puts a value, gets it, and tries to get one that is not there.
    drop(Client(args.unwrap().client));
    assert_eq!(store.values.lock().unwrap()["hello"], b"world");
}

#[test]
fn process_states_reach_the_client() {
    let client = Client::new(&[]);
    let message = "it went away";
    let mut infos = [PJRT_ProcessInfo::zeroed(); 2];
    infos[1].task_id = 1;
    infos[1].state = PJRT_ProcessState_kError;
    infos[1].error_code = 14;
    infos[1].error_message = message.as_ptr().cast();
    infos[1].error_message_size = message.len();
    call!(PJRT_Client_UpdateGlobalProcessInfo(PJRT_Client_UpdateGlobalProcessInfo_Args {
        client: client.0,
        process_infos: infos.as_mut_ptr(),
        num_process_infos: 2,
    }))
    .unwrap();
}

#[test]
fn kv_callbacks_are_used_only_by_a_distributed_client() {
    // `Client::new` passes garbage; a client that says that it is one of two gets no working callbacks here.
    let error = Client::try_new(&[option("num_nodes", 2), option("node_id", 1)]).err().unwrap();
    assert!(error.message.contains("the host passed no kv_put_callback"), "{error:?}");
    Client::new(&[option("num_nodes", 1), option("node_id", 0)]);
}

#[test]
fn a_topology_is_described_by_name_and_options() {
    let create = |name: &str, options: &[PJRT_NamedValue]| {
        call!(PJRT_TopologyDescription_Create(PJRT_TopologyDescription_Create_Args {
            topology_name: name.as_ptr().cast(),
            topology_name_size: name.len(),
            create_options: options.as_ptr(),
            num_options: options.len(),
        }))
        .map(|args| args.topology)
    };
    let topology = create("row", &[option("length", 3)]).unwrap();
    let args = call!(PJRT_TopologyDescription_GetDeviceDescriptions(
        PJRT_TopologyDescription_GetDeviceDescriptions_Args { topology }
    ));
    assert_eq!(args.unwrap().num_descriptions, 3);
    call!(PJRT_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args { topology })).unwrap();
    assert!(create("ring", &[]).unwrap_err().message.contains("'ring' is no topology"));
    assert!(create("row", &[option("lenght", 3)]).unwrap_err().message.contains("length"));
}

#[test]
fn host_memory_is_mapped_and_unmapped_by_its_address() {
    let client = Client::new(&[]);
    let data = [0_u8; 16].as_mut_ptr().cast();
    let unmap = || call!(PJRT_Client_DmaUnmap(PJRT_Client_DmaUnmap_Args { client: client.0, data }));
    assert!(unmap().is_err());
    call!(PJRT_Client_DmaMap(PJRT_Client_DmaMap_Args { client: client.0, data, size: 16 })).unwrap();
    unmap().unwrap();
    assert!(unmap().is_err());
    assert!(call!(PJRT_Client_DmaMap(PJRT_Client_DmaMap_Args { client: client.0, size: 16 })).is_err());
}
