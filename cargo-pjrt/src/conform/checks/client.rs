//! Checks of clients, devices and topologies.

use std::collections::HashSet;

use super::entry::{ALL, Entry, NONE, check};
use super::properties::type_name;
use crate::conform::harness::{
    Context, Finding, Message, SAME_ID, Verdict, ask_another, ensure, equal, refused, refused_with, send,
};
use crate::requirements::Profile;
use pjrt_testing::host::{Code, CreateOption, ElementType, NamedValue, Topology, Value};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "client/options_are_of_each_client",
        "Each client has its own options: with an option that determines the number of devices, such as num_devices, each has as many devices as it was created with.",
        own_options,
        "PJRT_Client_Create clients 1 give num_options=0",
    )
    .header("PJRT_Client_Create_Args::create_options", "Extra platform-specific options to create a client."),
    check(
        "client/can_be_made",
        "A client can be created if the hardware is present and the options are valid.",
        create,
        "PJRT_Client_Create fail INTERNAL",
    )
    .header("PJRT_Client_Create", "Creates and initializes a new PJRT_Client and returns in `client`.")
    .needed_by(ALL),
    check(
        "client/can_be_destroyed",
        "A client that the host no longer uses can be destroyed: the call neither fails nor hangs.",
        create,
        "PJRT_Client_Destroy fail INTERNAL",
    )
    .host("XLA's client, pjrt_c_api_helpers.cc, MakeClientDeleter", "Ends the process if the function fails.")
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "client/wild_callbacks_are_not_called",
        "PJRT_Client_Create does not use the callbacks of the key-value store unless an option says that there are several processes: hosts leave these fields uninitialized.",
        create_with_garbage,
        "PJRT_Client_Create when kv_get_user_arg!=0 touch kv_get_user_arg",
    )
    .host("XLA's client, pjrt_c_api_client.cc, GetCApiClient", "Without a key-value store, the fields of the callbacks are uninitialized.")
    .needed_by(ALL),
    check(
        "client/two_at_once",
        "A process can have two clients.",
        two_clients,
        "PJRT_Client_Create clients 1 fail ALREADY_EXISTS",
    )
    .advice("GoMLX creates a client for each backend that a program asks for. A device that only one client can hold may forbid it.")
    .used_by(&[Profile::Gomlx])
    .also(&["layouts/readback_by_strides_at_rank_3"]),
    check(
        "client/unknown_option",
        "An unknown option is refused with INVALID_ARGUMENT, and the message names it.",
        unknown_option,
        "PJRT_Client_Create accept",
    )
    .advice("A misspelled option that is refused is found immediately. The header only says that the options are platform-specific."),
    check(
        "client/platform_name",
        "The name of the platform is not empty, is in lower case, and does not change: hosts select lowering rules by it.",
        platform_name,
        "PJRT_Client_PlatformName set platform_name=text:Fault platform_name_size=5",
    )
    .header("PJRT_Client_PlatformName", "Returns a string that identifies the platform (e.g. \"cpu\", \"gpu\", \"tpu\"). JAX compares it with names in lower case.")
    .needed_by(ALL)
    .also(&["topology/platform_name"]),
    check(
        "client/platform_version",
        "The version of the platform is not empty: it becomes part of cache keys.",
        platform_version,
        "PJRT_Client_PlatformVersion set platform_version_size=0",
    )
    .header("PJRT_Client_PlatformVersion", "Returns a string containing human-readable, platform-specific version info.")
    .needed_by(&[Profile::Jax, Profile::TorchXla, Profile::Gomlx]),
    check(
        "client/process_index",
        "The index of the process is written, and is 0 if there is only one process.",
        process_index,
        "PJRT_Client_ProcessIndex set process_index=1",
    )
    .header("PJRT_Client_ProcessIndex", "Return the process index of this client. Always 0 in single-process settings.")
    .needed_by(&[Profile::Jax, Profile::Gomlx]).also(&["device/process_index"]),
    check(
        "client/devices_exist",
        "There is at least one device, and at least one addressable one.",
        devices_exist,
        "PJRT_Client_Devices set num_devices=0",
    )
    .header("PJRT_Client_AddressableDevices", "All devices are addressable in a single-process environment. JAX cannot determine its process index without a device.")
    .needed_by(ALL).also(&["client/addressable_devices_are_devices", "client/default_assignment", "client/default_assignment_of_too_many", "client/two_at_once", "lifetime/many_clients", "topology/devices"]),
    check(
        "client/devices_stay",
        "A device is the same pointer each time: hosts use it as a key.",
        devices_stay,
        "PJRT_Client_Devices after PJRT_Client_Devices other_first devices num_devices",
    )
    .host("XLA's client, PjRtCApiClient::GetCppDevice", "Looks a device up by its pointer, and ends the process if it does not find it.")
    .needed_by(ALL),
    check(
        "client/addressable_devices_are_devices",
        "Every addressable device is among the devices.",
        addressable,
        "PJRT_Client_Devices since PJRT_Client_AddressableDevices other_first devices num_devices",
    )
    .header("PJRT_Client_Devices", "Returns a list of all devices visible to the runtime, including addressable and non-addressable devices.")
    .needed_by(ALL),
    check(
        "client/lookup_device",
        "PJRT_Client_LookupDevice finds every device by its id.",
        lookup,
        "PJRT_Client_LookupDevice set device=null",
    )
    .header("PJRT_Client_LookupDevice", "Returns a PJRT_Device* with the specified ID as returned by PJRT_DeviceDescription_Id.")
    .needed_by(&[Profile::Jax]),
    check(
        "client/lookup_of_an_unknown_id",
        "An id of no device is refused with INVALID_ARGUMENT, and the message names it.",
        lookup_unknown,
        "PJRT_Client_LookupDevice when id=12345 code NOT_FOUND",
    )
    .header("PJRT_Client_LookupDevice", "Returns a PJRT_Device* with the specified ID. There is none.")
    .only_used_by(NONE)
    .also(&["client/lookup_of_a_negative_id"]),
    check(
        "client/lookup_of_a_negative_id",
        "A negative id is refused with INVALID_ARGUMENT, and the message names it.",
        lookup_negative,
        "PJRT_Client_LookupDevice when id=-1 message nothing",
    )
    .header("PJRT_Client_LookupDevice", "Returns a PJRT_Device* with the specified ID. There is none.")
    .only_used_by(NONE),
    check(
        "client/lookup_addressable_device",
        "PJRT_Client_LookupAddressableDevice finds every device by its local hardware id, and refuses others.",
        lookup_addressable,
        "PJRT_Client_LookupAddressableDevice set addressable_device=null",
    )
    .header("PJRT_Client_LookupAddressableDevice", "Returns an addressable PJRT_Device* with the specified ID as returned by PJRT_DeviceDescription_LocalHardwareId."),
    check(
        "client/default_assignment",
        "PJRT_Client_DefaultDeviceAssignment fills the host's array with ids of devices.",
        assignment,
        "PJRT_Client_DefaultDeviceAssignment when default_assignment_size=1 skip",
    )
    .header("PJRT_Client_DefaultDeviceAssignment_Args::default_assignment", "This API writes `num_replicas * num_partitions` ints within that buffer.")
    .needed_by(&[Profile::Gomlx]),
    check(
        "client/default_assignment_without_room",
        "An array that is too small for the assignment is refused with FAILED_PRECONDITION.",
        assignment_room,
        "PJRT_Client_DefaultDeviceAssignment code INVALID_ARGUMENT",
    )
    .advice("The header requires the caller to pass enough memory. An error reveals the caller's mistake."),
    check(
        "client/default_assignment_of_too_many",
        "More replicas or partitions than devices are refused, without a crash, also if their product overflows 32 bits or is positive because both are negative.",
        assignment_many,
        "PJRT_Client_DefaultDeviceAssignment accept",
    )
    .advice("The header does not say what happens. An error reveals the mistake before devices with ids that do not exist are used.")
    .also(&["client/default_assignment_without_room"]),
    check(
        "client/process_info",
        "PJRT_Client_UpdateGlobalProcessInfo succeeds even if the plugin ignores it: an error ends JAX's process.",
        process_info,
        "PJRT_Client_UpdateGlobalProcessInfo fail UNIMPLEMENTED",
    )
    .host("JAX, the watcher thread of jax.distributed", "Ends the process if the function fails.")
    .since(73),
    check(
        "client/memory_lists_agree",
        "The client's memories are those of its devices, and each occurs once.",
        memory_lists,
        "PJRT_Client_AddressableMemories set num_addressable_memories-1",
    )
    .host("XLA's client, PjRtCApiClient::InitDevicesAndMemorySpaces", "Looks each memory of a device up among those of the client, and ends the process if it is missing.")
    .needed_by(&[Profile::Jax, Profile::TorchXla, Profile::Zml]),
    check(
        "device/ids_differ",
        "The ids of devices are not negative, and are unique.",
        ids,
        "PJRT_DeviceDescription_Id set id=-3",
    )
    .header("PJRT_DeviceDescription_Id", "IDs are unique among devices of this type.")
    .needed_by(ALL).also(&["client/default_assignment", "client/lookup_device"]),
    check(
        "device/process_index",
        "A device of this process reports the index of the process.",
        device_process,
        "PJRT_DeviceDescription_ProcessIndex set process_index=3",
    )
    .header("PJRT_DeviceDescription_ProcessIndex", "The index of the process that this device belongs to, i.e. is addressable from.")
    .needed_by(&[Profile::Jax]),
    check(
        "device/kind",
        "A device's kind is not empty.",
        kind,
        "PJRT_DeviceDescription_Kind set device_kind_size=0",
    )
    .header("PJRT_DeviceDescription_Kind", "A vendor-dependent string that uniquely identifies the kind of device.")
    .needed_by(&[Profile::Jax, Profile::Zml]),
    check(
        "device/to_string",
        "The short description of a device is not empty.",
        to_text,
        "PJRT_DeviceDescription_ToString set to_string_size=0",
    )
    .header("PJRT_DeviceDescription_ToString", "Debug string suitable for reading by end users, should be reasonably terse.")
    .needed_by(&[Profile::Jax, Profile::Zml]),
    check(
        "device/debug_string",
        "The debug string of a device is not empty.",
        debug_string,
        "PJRT_DeviceDescription_DebugString set debug_string_size=0",
    )
    .header("PJRT_DeviceDescription_DebugString", "Should be verbose enough to describe the current device unambiguously.")
    .needed_by(&[Profile::Jax, Profile::Gomlx, Profile::Zml]),
    check(
        "device/description_attributes",
        "The attributes of a description are strings, integers or lists of integers, and each name occurs once: JAX aborts if there are others.",
        attributes,
        "PJRT_DeviceDescription_Attributes add_float",
    )
    .host("XLA's client, PjRtCApiDeviceDescription::InitAttributes", "Ends the process if an attribute is neither a string, nor an integer, nor a list of integers.")
    .needed_by(&[Profile::Jax, Profile::TorchXla]),
    check(
        "device/attributes_can_be_deleted",
        "PJRT_Device_GetAttributes returns a deleter, even if there are no attributes: hosts call it without a check for null.",
        device_attributes,
        "PJRT_Device_GetAttributes set attributes_deleter=null",
    )
    .host("XLA's client, PjRtCApiDevice", "Calls the deleter without comparing it with null.")
    .since(92),
    check(
        "device/is_addressable",
        "An addressable device reports that it is addressable.",
        is_addressable,
        "PJRT_Device_IsAddressable set is_addressable=0",
    )
    .header("PJRT_Device_IsAddressable", "Whether client can issue command to this device.")
    .needed_by(ALL),
    check(
        "device/local_hardware_ids_differ",
        "The local hardware ids of addressable devices are unique, or all are -1.",
        hardware_ids,
        "PJRT_Device_LocalHardwareId set local_hardware_id=-5",
    )
    .header("PJRT_Device_LocalHardwareId", "Opaque hardware ID, e.g., the CUDA device number; -1 if undefined."),
    check(
        "device/tracking_event",
        "PJRT_Device_CreateAsyncTrackingEvent succeeds, with or without an event: an error ends JAX's process.",
        tracking,
        "PJRT_Device_CreateAsyncTrackingEvent fail INTERNAL",
    )
    .host("XLA's client, PjRtCApiDevice::CreateAsyncTrackingEvent", "Ends the process if the function fails.")
    .since(86),
    check(
        "topology/platform_name",
        "A client's topology has the client's platform name.",
        topology_name,
        "PJRT_TopologyDescription_PlatformName set platform_name_size=0",
    )
    .header("PJRT_TopologyDescription_PlatformName", "Returns a string that identifies the platform (e.g. \"cpu\", \"gpu\", \"tpu\")."),
    check(
        "topology/platform_version",
        "A client's topology has a version.",
        topology_version,
        "PJRT_TopologyDescription_PlatformVersion set platform_version_size=0",
    )
    .header("PJRT_TopologyDescription_PlatformVersion", "Returns a string containing human-readable, platform-specific version info."),
    check(
        "topology/devices",
        "A client's topology describes the client's devices.",
        topology_devices,
        "PJRT_TopologyDescription_GetDeviceDescriptions set num_descriptions=0",
    )
    .header("PJRT_TopologyDescription_GetDeviceDescriptions", "Returns descriptions for all devices in this topology."),
    check(
        "topology/attributes",
        "The attributes of a topology have known types, and each name occurs once.",
        topology_attributes,
        "PJRT_TopologyDescription_Attributes fail INTERNAL",
    )
    .host("XLA's client, PjRtCApiTopologyDescription::InitAttributes", "Ends the process if the function fails or an attribute has an unknown type."),
    check(
        "topology/fingerprint",
        "The fingerprint of a topology does not change.",
        topology_fingerprint,
        "PJRT_TopologyDescription_Fingerprint call 2 set fingerprint=77",
    )
    .header("PJRT_TopologyDescription_Fingerprint", "The fingerprint identifies the topology.")
    .since(101),
    check(
        "topology/serialized_has_a_deleter",
        "PJRT_TopologyDescription_Serialize returns a deleter for the bytes.",
        topology_deleter,
        "PJRT_TopologyDescription_Serialize set serialized_topology_deleter=null",
    )
    .header("PJRT_TopologyDescription_Serialize_Args", "cleanup fn must be called to free the backing memory for serialized_bytes."),
    check(
        "topology/round_trip",
        "A topology is the same after it was serialized and deserialized.",
        topology_round_trip,
        "PJRT_TopologyDescription_Deserialize fail INVALID_ARGUMENT",
    )
    .header("PJRT_TopologyDescription_Deserialize", "Deserializes a topology that PJRT_TopologyDescription_Serialize serialized.")
    .since(75),
    check(
        "topology/garbage",
        "Bytes that do not represent a topology are refused with INVALID_ARGUMENT.",
        topology_garbage,
        "PJRT_TopologyDescription_Deserialize when serialized_topology_size=5 code INTERNAL",
    )
    .header("PJRT_TopologyDescription_Deserialize", "Deserializes a serialized topology. These bytes are none.")
    .since(75),
    check(
        "topology/by_an_unknown_name",
        "A topology with an unknown name is refused with INVALID_ARGUMENT or NOT_FOUND, or with FAILED_PRECONDITION if the machine lacks the device.",
        topology_unknown,
        "PJRT_TopologyDescription_Create code INTERNAL",
    )
    .advice("Names of topologies are platform-specific; a misspelled one that is refused is found immediately."),
    check(
        "topology/memory_kind_ids",
        "PJRT_TopologyDescription_GetMemorySpaceKindIds lists the kinds of the devices' memories, and each occurs once.",
        topology_kinds,
        "PJRT_TopologyDescription_GetMemorySpaceKindIds set num_memory_space_kind_ids=0",
    )
    .header("PJRT_TopologyDescription_GetMemorySpaceKindIds", "Returns the ids of the kinds of memory, which PJRT_Memory_Kind_Id returns for a memory."),
    check(
        "topology/canonical_shape",
        "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace returns a ShapeProto with the element type, and a deleter.",
        topology_shape,
        "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace set serialized_shape_size=0",
    )
    .header("PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args::serialized_shape", "Output shape (serialized ShapeProto)."),
    check(
        "client/execute_context",
        "An execute context can be created and destroyed.",
        execute_context,
        "PJRT_ExecuteContext_Create set context=null",
    )
    .header("PJRT_ExecuteContext_Create", "Creates an execute context."),
];

fn create(context: &Context) -> Verdict {
    drop(context.client()?);
    Ok(())
}

fn create_with_garbage(context: &Context) -> Verdict {
    // The rule does not apply if no client can be created at all.
    drop(context.client()?);
    drop(context.plugin.create_client_with_garbage(&context.options)?);
    Ok(())
}

fn two_clients(context: &Context) -> Verdict {
    let (first, second) = (context.client()?, context.client()?);
    drop(first);
    ensure!(!second.devices()?.is_empty(), "the second client has no devices after the first was destroyed");
    Ok(())
}

fn unknown_option(context: &Context) -> Verdict {
    const NAME: &str = "no_such_option_2b";
    drop(context.client()?);
    let mut options = context.options.clone();
    options.push(CreateOption::new(NAME, Value::Int64(1)));
    let outcome = context.plugin.create_client(&options);
    if let Err(error) = &outcome {
        send(&Message::UnknownOption(error.message.clone()));
    }
    refused("an unknown option", outcome, Code::INVALID_ARGUMENT, &[NAME])
}

fn platform_name(context: &Context) -> Verdict {
    let client = context.client()?;
    let name = client.platform_name()?;
    ensure!(!name.is_empty(), "the name is empty");
    ensure!(name == name.to_lowercase(), "the name is {name:?}; expected a name in lower case");
    equal("the name on the second call", client.platform_name()?, name)
}

fn platform_version(context: &Context) -> Verdict {
    ensure!(!context.client()?.platform_version()?.is_empty(), "the version is empty");
    Ok(())
}

fn process_index(context: &Context) -> Verdict {
    equal("the index of the process", context.client()?.process_index()?, 0)
}

fn devices_exist(context: &Context) -> Verdict {
    let client = context.client()?;
    ensure!(!client.devices()?.is_empty(), "there are no devices");
    ensure!(!client.addressable_devices()?.is_empty(), "there are no addressable devices");
    Ok(())
}

fn devices_stay(context: &Context) -> Verdict {
    let client = context.client()?;
    let (first, second) = (client.devices()?, client.devices()?);
    ensure!(first == second, "the pointers of the devices, or their order, differ on the second call");
    Ok(())
}

fn addressable(context: &Context) -> Verdict {
    let client = context.client()?;
    let addressable = client.addressable_devices()?;
    let devices = client.devices()?;
    for device in addressable {
        ensure!(devices.contains(&device), "an addressable device is not among the devices");
    }
    Ok(())
}

fn lookup(context: &Context) -> Verdict {
    let client = context.client()?;
    for device in client.devices()? {
        let id = device.description()?.id()?;
        ensure!(
            client.lookup_device(id)? == device,
            "PJRT_Client_LookupDevice returns another pointer for the id {id}"
        );
    }
    Ok(())
}

fn lookup_unknown(context: &Context) -> Verdict {
    let client = context.client()?;
    refused("the id 12345", client.lookup_device(12345), Code::INVALID_ARGUMENT, &["12345"])
}

fn lookup_negative(context: &Context) -> Verdict {
    let client = context.client()?;
    refused("the id -1", client.lookup_device(-1), Code::INVALID_ARGUMENT, &["-1"])
}

fn lookup_addressable(context: &Context) -> Verdict {
    let client = context.client()?;
    for device in client.addressable_devices()? {
        let id = device.local_hardware_id()?;
        if id >= 0 {
            let same = client.lookup_addressable_device(id)? == device;
            ensure!(
                same,
                "PJRT_Client_LookupAddressableDevice returns another pointer for the local hardware id {id}"
            );
        }
    }
    refused("a local hardware id", client.lookup_addressable_device(12345), Code::INVALID_ARGUMENT, &[])
}

fn assignment(context: &Context) -> Verdict {
    let client = context.client()?;
    let ids =
        client.devices()?.iter().map(|device| device.description()?.id()).collect::<Result<Vec<_>, _>>()?;
    let assigned = client.default_assignment(1, 1, 1)?;
    ensure!(
        ids.contains(&assigned[0]),
        "the assignment contains device {}; expected one of {ids:?}",
        assigned[0]
    );
    Ok(())
}

fn assignment_room(context: &Context) -> Verdict {
    let client = context.client()?;
    refused("an array without room", client.default_assignment(1, 1, 0), Code::FAILED_PRECONDITION, &[])
}

fn assignment_many(context: &Context) -> Verdict {
    let client = context.client()?;
    let many = client.devices()?.len() as i32 + 1;
    // The products of some of the numbers are small numbers in 32 bits.
    let numbers =
        [(many, 1), (1, many), (1 << 16, 1 << 16), (i32::MAX, 2), (1 << 30, 4), (-1, -1), (-many, -1)];
    numbers.into_iter().try_for_each(|(replicas, partitions)| {
        refused_with(
            &format!("an assignment of {replicas} replicas and {partitions} partitions"),
            client.default_assignment(replicas, partitions, many as usize),
            &[Code::INVALID_ARGUMENT, Code::FAILED_PRECONDITION],
            &[],
        )
    })
}

fn process_info(context: &Context) -> Verdict {
    match context.client()?.update_process_info(0) {
        Err(error) => Err(Finding::Wrong(error.to_string())),
        Ok(()) => Ok(()),
    }
}

fn memory_lists(context: &Context) -> Verdict {
    let client = context.client()?;
    let of_client = client.memories()?;
    for device in client.addressable_devices()? {
        for memory in device.memories()? {
            let count = of_client.iter().filter(|other| **other == memory).count();
            ensure!(count == 1, "a device's memory occurs {count} times among the client's; expected once");
        }
    }
    Ok(())
}

/// Returns the lists of options in which one, which is at least 2, is replaced by 1, and the number of devices then in another
/// process, if it is another one than `count`. No client exists meanwhile: some devices belong to one process at a time.
fn fewer_devices(context: &Context, count: usize) -> Vec<(Vec<CreateOption>, usize)> {
    let with_one = |index: usize| {
        let mut options = context.options.clone();
        options[index].0.value = Value::Int64(1);
        let devices = ask_another(context, &options, None).ok()?.identity.devices;
        (devices != count).then_some((options, devices))
    };
    let is_number = |index: &usize| matches!(context.options[*index].0.value, Value::Int64(2..));
    (0..context.options.len()).filter(is_number).filter_map(with_one).collect()
}

fn own_options(context: &Context) -> Verdict {
    let count = context.client()?.devices()?.len();
    let fewer = fewer_devices(context, count);
    if fewer.is_empty() {
        let why = "no option of at least 2 was passed that determines the number of devices";
        return Err(Finding::NotApplicable(why.to_owned()));
    }
    let first = context.client()?;
    for (options, devices) in &fewer {
        for (options, expected) in [(options, *devices), (&context.options, count), (options, *devices)] {
            let second = context.plugin.create_client(options)?;
            equal("the number of devices of a client after another one", second.devices()?.len(), expected)?;
            equal("the number of devices of the first client", first.devices()?.len(), count)?;
        }
    }
    Ok(())
}

fn ids(context: &Context) -> Verdict {
    let client = context.client()?;
    let mut seen = HashSet::new();
    for device in client.devices()? {
        let id = device.description()?.id()?;
        ensure!(id >= 0, "a device has the id {id}");
        ensure!(seen.insert(id), "{SAME_ID} {id}");
    }
    Ok(())
}

fn device_process(context: &Context) -> Verdict {
    let client = context.client()?;
    equal(
        "the process of a device",
        client.device()?.description()?.process_index()?,
        client.process_index()?,
    )
}

fn kind(context: &Context) -> Verdict {
    for device in context.client()?.devices()? {
        ensure!(!device.description()?.kind()?.is_empty(), "the kind is empty");
    }
    Ok(())
}

fn to_text(context: &Context) -> Verdict {
    for device in context.client()?.devices()? {
        ensure!(!device.description()?.to_text()?.is_empty(), "the string is empty");
    }
    Ok(())
}

fn debug_string(context: &Context) -> Verdict {
    for device in context.client()?.devices()? {
        ensure!(!device.description()?.debug_string()?.is_empty(), "the string is empty");
    }
    Ok(())
}

/// Fails unless the attributes of a device have types that hosts can read, and names of their own.
fn plain_attributes(attributes: &[NamedValue]) -> Verdict {
    let mut seen = HashSet::new();
    for attribute in attributes {
        let plain = matches!(attribute.value, Value::String(_) | Value::Int64(_) | Value::Int64List(_));
        let NamedValue { name, value, .. } = attribute;
        ensure!(
            plain,
            "the value of the attribute {name} of a device, {value}, is {}; expected a string, an integer or a list of integers, \
             because hosts refuse other types",
            type_name(value)
        );
        ensure!(seen.insert(name), "the attribute {name} of a device occurs twice");
    }
    Ok(())
}

fn attributes(context: &Context) -> Verdict {
    for device in context.client()?.devices()? {
        plain_attributes(&device.description()?.attributes()?)?;
    }
    Ok(())
}

fn device_attributes(context: &Context) -> Verdict {
    for device in context.client()?.addressable_devices()? {
        ensure!(device.attributes()?.1, "there is no deleter for the attributes with");
    }
    Ok(())
}

fn is_addressable(context: &Context) -> Verdict {
    for device in context.client()?.addressable_devices()? {
        equal("is_addressable", device.is_addressable()?, true)?;
    }
    Ok(())
}

fn hardware_ids(context: &Context) -> Verdict {
    let client = context.client()?;
    let mut seen = HashSet::new();
    for device in client.addressable_devices()? {
        let id = device.local_hardware_id()?;
        ensure!(id >= -1, "a device has the local hardware id {id}");
        ensure!(id == -1 || seen.insert(id), "two devices have the local hardware id {id}");
    }
    Ok(())
}

fn tracking(context: &Context) -> Verdict {
    let client = context.client()?;
    client.device()?.track("a check").map_err(|error| Finding::Wrong(error.to_string()))
}

fn topology_name(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("the topology's platform name", client.topology()?.platform_name()?, client.platform_name()?)
}

fn topology_version(context: &Context) -> Verdict {
    let client = context.client()?;
    ensure!(!client.topology()?.platform_version()?.is_empty(), "the version is empty");
    Ok(())
}

fn topology_devices(context: &Context) -> Verdict {
    let client = context.client()?;
    let topology = client.topology()?;
    let mut described =
        topology.devices()?.iter().map(|device| device.id()).collect::<Result<Vec<_>, _>>()?;
    let mut ids =
        client.devices()?.iter().map(|device| device.description()?.id()).collect::<Result<Vec<_>, _>>()?;
    described.sort_unstable();
    ids.sort_unstable();
    equal("the ids of the topology's devices", described, ids)
}

fn topology_attributes(context: &Context) -> Verdict {
    let client = context.client()?;
    let attributes = client.topology()?.attributes()?;
    let mut seen = HashSet::new();
    for attribute in &attributes {
        ensure!(!matches!(attribute.value, Value::Unknown(_)), "{} is {}", attribute.name, attribute.value);
        ensure!(seen.insert(&attribute.name), "the attribute {} occurs twice", attribute.name);
    }
    Ok(())
}

fn topology_fingerprint(context: &Context) -> Verdict {
    let client = context.client()?;
    let topology = client.topology()?;
    equal("the fingerprint on the second call", topology.fingerprint()?, topology.fingerprint()?)
}

fn topology_deleter(context: &Context) -> Verdict {
    let client = context.client()?;
    let (_, has_deleter) = client.topology()?.serialize()?;
    ensure!(has_deleter, "there is no deleter for the bytes with");
    Ok(())
}

fn topology_round_trip(context: &Context) -> Verdict {
    let client = context.client()?;
    let topology = client.topology()?;
    let again = Topology::deserialize(context.plugin, &topology.serialize()?.0)?;
    equal("the platform name", again.platform_name()?, topology.platform_name()?)?;
    let ids = |of: &Topology| of.devices()?.iter().map(|device| device.id()).collect::<Result<Vec<_>, _>>();
    equal("the ids of the devices, in their order,", ids(&again)?, ids(&topology)?)
}

fn topology_garbage(context: &Context) -> Verdict {
    refused(
        "garbage",
        Topology::deserialize(context.plugin, b"\xff\xff\xff\xff\x00"),
        Code::INVALID_ARGUMENT,
        &[],
    )
}

fn topology_unknown(context: &Context) -> Verdict {
    refused_with(
        "an unknown name of a topology",
        Topology::create(context.plugin, "no such topology 2b"),
        &[Code::INVALID_ARGUMENT, Code::NOT_FOUND, Code::FAILED_PRECONDITION],
        &[],
    )
}

fn topology_kinds(context: &Context) -> Verdict {
    let client = context.client()?;
    let kinds = client.topology()?.memory_kind_ids()?;
    let distinct: HashSet<_> = kinds.iter().collect();
    ensure!(distinct.len() == kinds.len(), "the kinds are {kinds:?}; expected each kind once");
    for memory in client.memories()? {
        let (kind, id) = (memory.kind()?, memory.kind_id()?);
        ensure!(
            kinds.contains(&id),
            "the kinds are {kinds:?}; expected {id}, the kind of the client's memory {kind}, among them"
        );
    }
    Ok(())
}

fn topology_shape(context: &Context) -> Verdict {
    let client = context.client()?;
    let kind = client.device()?.default_memory()?.kind_id()?;
    let (shape, has_deleter) = client.topology()?.canonical_shape(kind, ElementType::F32, &[2, 3])?;
    ensure!(has_deleter, "there is no deleter for the shape with");
    // Field 2, an integer, is the element type: F32 of XLA's PrimitiveType.
    ensure!(
        shape.windows(2).any(|bytes| bytes == [0x10, 11]),
        "the bytes {shape:?} do not represent a shape of f32"
    );
    Ok(())
}

fn execute_context(context: &Context) -> Verdict {
    let client = context.client()?;
    Ok(client.plugin().create_and_destroy_context()?)
}
