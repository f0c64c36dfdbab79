//! The child process, which calls the plugin's functions.

use std::path::Path;

use pjrt_sys::SLOTS;

use super::report::{Report, Slot, Step};
use super::stage::Stage;
use crate::process::child;
use crate::requirements::table;
use pjrt_testing::host::{
    Client, CreateOption, Device, DeviceDescription, Memory, Plugin, SlotState, Topology,
};

/// Calls the plugin step by step, in the child process. It sends its current report to the parent before each
/// step.
pub fn child(path: &Path, options: &[CreateOption]) {
    let mut report = Report::default();
    // The client is destroyed after the last message, because its destruction is not part of the report.
    let _client = call_plugin(path, options, &mut report);
    send(Stage::End, &report);
}

/// Sends the stage that begins, and the current report, to the parent.
fn send(stage: Stage, report: &Report) {
    if let Ok(json) = serde_json::to_string(&(stage, report)) {
        child::send(&json);
    }
}

/// Performs all stages, until one fails. Returns the client, if one was created.
fn call_plugin(path: &Path, options: &[CreateOption], report: &mut Report) -> Option<Client> {
    send(Stage::Loading, report);
    let plugin = match Plugin::load(path) {
        Ok(plugin) => plugin,
        Err(error) => {
            report.load_error = Some(error.to_string());
            report.faults.push(error.to_string());
            return None;
        }
    };
    send(Stage::Reading, report);
    read_table(plugin, report);
    send(Stage::Initializing, report);
    initialize(plugin, report);
    send(Stage::Creating, report);
    let created = plugin.create_client(options);
    report.mark("PJRT_Client_Create", &created);
    let client = match created {
        Ok(client) => client,
        Err(error) => {
            report.client = Step::Error(error.to_string());
            return None;
        }
    };
    report.client = Step::Ok;
    send(Stage::Querying, report);
    query_client(&client, report);
    Some(client)
}

/// Reads the plugin's table, without calling a function.
fn read_table(plugin: Plugin, report: &mut Report) {
    report.version = plugin.version();
    report.table_size = plugin.table_size();
    let state = |index: usize| match plugin.slot(index) {
        SlotState::Absent => Slot::Absent,
        SlotState::Null => Slot::Null,
        SlotState::Function => Slot::Function,
    };
    report.slots =
        SLOTS.iter().enumerate().map(|(index, slot)| (slot.name.to_owned(), state(index))).collect();
    match plugin.extensions() {
        Some(extensions) => {
            let named = extensions.iter().map(|extension| {
                let name = extension.name().unwrap_or("unknown to this version").to_owned();
                (extension.type_, name, extension.struct_size)
            });
            report.extensions = named.collect();
        }
        None => report.endless_extensions = true,
    }
    report.faults = table::faults(plugin);
}

/// Initializes the plugin and reads its attributes.
fn initialize(plugin: Plugin, report: &mut Report) {
    let initialized = plugin.initialize();
    report.mark("PJRT_Plugin_Initialize", &initialized);
    report.initialize = match initialized {
        Ok(()) => Step::Ok,
        Err(error) => {
            report.faults.push(error.to_string());
            Step::Error(error.to_string())
        }
    };
    let attributes = plugin.attributes();
    report.mark("PJRT_Plugin_Attributes", &attributes);
    let attributes = attributes.unwrap_or_default().into_iter();
    report.attributes = attributes.map(|attribute| (attribute.name, attribute.value.to_string())).collect();
}

/// Calls the functions that need no object but a client and that change nothing.
fn query_client(client: &Client, report: &mut Report) {
    report.platform = client.platform_name().ok();
    report.mark("PJRT_Client_PlatformName", &client.platform_name());
    report.mark("PJRT_Client_PlatformVersion", &client.platform_version());
    report.mark("PJRT_Client_ProcessIndex", &client.process_index());
    report.mark("PJRT_Client_Devices", &client.devices());
    report.mark("PJRT_Client_AddressableDevices", &client.addressable_devices());
    report.mark("PJRT_Client_AddressableMemories", &client.memories());
    report.mark("PJRT_Client_LookupDevice", &client.lookup_device(0));
    report.mark("PJRT_Client_LookupAddressableDevice", &client.lookup_addressable_device(0));
    report.mark("PJRT_Client_DefaultDeviceAssignment", &client.default_assignment(1, 1, 1));
    report.mark("PJRT_Client_TopologyDescription", &client.topology());
    report.mark("PJRT_ExecuteContext_Create", &client.plugin().create_and_destroy_context());
    for device in client.devices().unwrap_or_default() {
        let Ok(description) = device.description() else { continue };
        report.devices.push(description.to_text().unwrap_or_default());
    }
    if let Ok(device) = client.device() {
        query_device(device, report);
    }
    if let Ok(topology) = client.topology() {
        query_topology(&topology, report);
    }
}

/// Calls the functions of a device, of its description and of its default memory.
fn query_device(device: Device<'_>, report: &mut Report) {
    report.mark("PJRT_Device_GetDescription", &device.description());
    report.mark("PJRT_Device_IsAddressable", &device.is_addressable());
    report.mark("PJRT_Device_LocalHardwareId", &device.local_hardware_id());
    report.mark("PJRT_Device_AddressableMemories", &device.memories());
    report.mark("PJRT_Device_DefaultMemory", &device.default_memory());
    report.mark("PJRT_Device_MemoryStats", &device.memory_stats());
    report.mark("PJRT_Device_GetAttributes", &device.attributes());
    report.mark("PJRT_Device_CreateAsyncTrackingEvent", &device.track("inspect"));
    if let Ok(description) = device.description() {
        query_description(description, report);
    }
    if let Ok(memory) = device.default_memory() {
        query_memory(memory, report);
    }
}

fn query_description(description: DeviceDescription<'_>, report: &mut Report) {
    report.mark("PJRT_DeviceDescription_Id", &description.id());
    report.mark("PJRT_DeviceDescription_ProcessIndex", &description.process_index());
    report.mark("PJRT_DeviceDescription_Attributes", &description.attributes());
    report.mark("PJRT_DeviceDescription_Kind", &description.kind());
    report.mark("PJRT_DeviceDescription_DebugString", &description.debug_string());
    report.mark("PJRT_DeviceDescription_ToString", &description.to_text());
}

fn query_memory(memory: Memory<'_>, report: &mut Report) {
    report.mark("PJRT_Memory_Id", &memory.id());
    report.mark("PJRT_Memory_Kind", &memory.kind());
    report.mark("PJRT_Memory_Kind_Id", &memory.kind_id());
    report.mark("PJRT_Memory_DebugString", &memory.debug_string());
    report.mark("PJRT_Memory_ToString", &memory.to_text());
    report.mark("PJRT_Memory_AddressableByDevices", &memory.devices());
}

fn query_topology(topology: &Topology, report: &mut Report) {
    report.mark("PJRT_TopologyDescription_PlatformName", &topology.platform_name());
    report.mark("PJRT_TopologyDescription_PlatformVersion", &topology.platform_version());
    report.mark("PJRT_TopologyDescription_GetDeviceDescriptions", &topology.devices());
    report.mark("PJRT_TopologyDescription_Serialize", &topology.serialize());
    report.mark("PJRT_TopologyDescription_Attributes", &topology.attributes());
    report.mark("PJRT_TopologyDescription_Fingerprint", &topology.fingerprint());
}
