//! The attributes of the plugin, and of its client, devices, memories and topology.

use super::fact::{behavior, failed, identity, outcome, own};
use super::observer::Observer;
use pjrt_testing::host::{Client, Device, DeviceDescription, NamedValue, Topology, Value};

pub(super) fn of_plugin() -> Vec<String> {
    vec!["attributes".to_owned()]
}

pub(super) fn of_client() -> Vec<String> {
    ["creation", "devices", "memories", "lookup", "topology"].map(str::to_owned).to_vec()
}

pub(super) fn observe(observer: &Observer, name: &str) {
    if name == "attributes" {
        outcome("initialization", observer.initialize(), |()| "ok".to_owned());
        if let Some(attributes) = own("attributes", observer.plugin.attributes(), |all| names_of(all)) {
            values("attribute", &attributes);
        }
        return;
    }
    let client = match observer.client() {
        Ok(client) => client,
        Err(error) if name == "creation" => return failed("creation", &error),
        Err(_) => return,
    };
    match name {
        "creation" => creation(client),
        "devices" => devices(client),
        "memories" => memories(client),
        "lookup" => lookup(client),
        _ => {
            if let Some(described) = outcome("topology", client.topology(), |_| "ok".to_owned()) {
                topology(&described);
            }
        }
    }
}

/// Returns the names and types of values.
pub(super) fn types_of(values: &[NamedValue]) -> String {
    let mut names: Vec<String> = values
        .iter()
        .map(|value| {
            let type_ = match value.value {
                Value::String(_) => "string",
                Value::Int64(_) => "int64",
                Value::Int64List(_) => "int64 list",
                Value::Float(_) => "float",
                Value::Bool(_) => "bool",
                Value::Unknown(_) => "unknown type",
            };
            format!("{}: {type_}", value.name)
        })
        .collect();
    names.sort();
    names.join(", ")
}

fn names_of(values: &[NamedValue]) -> String {
    values.iter().map(|value| value.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Notes the types of named values as behavior, and the values as identity.
fn values(what: &str, values: &[NamedValue]) {
    behavior(format!("{what} types"), types_of(values));
    for value in values {
        identity(format!("{what} {}", value.name), &value.value);
    }
}

fn creation(client: &Client) {
    behavior("creation", "ok");
    own("platform name", client.platform_name(), Clone::clone);
    own("platform version", client.platform_version(), Clone::clone);
    outcome("process index", client.process_index(), ToString::to_string);
    outcome("devices", client.devices(), |devices| devices.len().to_string());
    outcome("addressable devices", client.addressable_devices(), |devices| devices.len().to_string());
    outcome("execute context", client.plugin().create_and_destroy_context(), |()| "ok".to_owned());
}

fn devices(client: &Client) {
    for (index, device) in client.devices().unwrap_or_default().into_iter().enumerate() {
        let of = |what: &str| format!("device {index}: {what}");
        outcome(&of("is addressable"), device.is_addressable(), ToString::to_string);
        own(&of("local hardware id"), device.local_hardware_id(), ToString::to_string);
        outcome(&of("tracking event"), device.track("compare"), |()| "ok".to_owned());
        let fields = device.memory_stats();
        outcome(&of("memory statistics"), fields, |stats| {
            let set = |is_set: bool| if is_set { "set" } else { "not set" };
            let (peak, limit) = (set(stats.peak_bytes_in_use.is_some()), set(stats.bytes_limit.is_some()));
            format!("peak_bytes_in_use {peak}, bytes_limit {limit}")
        });
        if let Some((attributes, _)) = outcome(&of("attributes"), device.attributes(), |_| "ok".to_owned()) {
            values(&of("attribute"), &attributes);
        }
        if let Some(described) = outcome(&of("description"), device.description(), |_| "ok".to_owned()) {
            description(&format!("device {index}"), described);
        }
        memories_of(&format!("device {index}"), device);
    }
}

fn description(of: &str, described: DeviceDescription<'_>) {
    own(&format!("{of}: id"), described.id(), ToString::to_string);
    outcome(&format!("{of}: process index"), described.process_index(), ToString::to_string);
    own(&format!("{of}: kind"), described.kind(), Clone::clone);
    own(&format!("{of}: debug string"), described.debug_string(), Clone::clone);
    own(&format!("{of}: string"), described.to_text(), Clone::clone);
    let what = format!("{of}: description's attributes");
    if let Some(attributes) = outcome(&what, described.attributes(), |_| "ok".to_owned()) {
        values(&format!("{of}: description's attribute"), &attributes);
    }
}

fn memories_of(of: &str, device: Device<'_>) {
    let kinds = device
        .memories()
        .map(|memories| memories.iter().map(|memory| memory.kind().unwrap_or_default()).collect::<Vec<_>>());
    outcome(&format!("{of}: memory kinds"), kinds, |kinds| kinds.join(", "));
    let default = device.default_memory().and_then(|memory| memory.kind());
    outcome(&format!("{of}: kind of the default memory"), default, Clone::clone);
}

fn memories(client: &Client) {
    let Some(memories) = outcome("memories", client.memories(), |memories| memories.len().to_string()) else {
        return;
    };
    for (index, memory) in memories.into_iter().enumerate() {
        let of = |what: &str| format!("memory {index}: {what}");
        outcome(&of("kind"), memory.kind(), Clone::clone);
        own(&of("id"), memory.id(), ToString::to_string);
        own(&of("kind id"), memory.kind_id(), ToString::to_string);
        own(&of("debug string"), memory.debug_string(), Clone::clone);
        own(&of("string"), memory.to_text(), Clone::clone);
        outcome(&of("devices"), memory.devices(), |devices| devices.len().to_string());
    }
}

fn lookup(client: &Client) {
    let found = |device: &Device<'_>| if device.is_null() { "null" } else { "a device" }.to_owned();
    for (name, id) in [("-1", -1), ("2^31 - 1", i32::MAX)] {
        outcome(&format!("device {name}"), client.lookup_device(id), found);
        outcome(&format!("local device {name}"), client.lookup_addressable_device(id), found);
    }
    let here = client.addressable_devices().map_or(0, |devices| devices.len());
    for (replicas, partitions) in [(1, 1), (2, 1), (1, 2), (1000, 1000)] {
        let room = usize::try_from(replicas * partitions).unwrap_or_default();
        let assigned = client.default_assignment(replicas, partitions, room);
        let what = format!("default assignment of {replicas} replicas and {partitions} partitions");
        // The plugins may have different numbers of devices.
        if room <= here || room > 1000 {
            outcome(&what, assigned, |ids| format!("{} ids", ids.len()));
        }
    }
}

fn topology(described: &Topology) {
    own("platform name", described.platform_name(), Clone::clone);
    own("platform version", described.platform_version(), Clone::clone);
    own("fingerprint", described.fingerprint(), ToString::to_string);
    outcome("devices", described.devices(), |devices| devices.len().to_string());
    own("serialized", described.serialize(), |(bytes, _)| format!("{} bytes", bytes.len()));
    own("memory kind ids", described.memory_kind_ids(), |ids| format!("{ids:?}"));
    if let Some(attributes) = outcome("attributes", described.attributes(), |_| "ok".to_owned()) {
        values("attribute", &attributes);
    }
}
