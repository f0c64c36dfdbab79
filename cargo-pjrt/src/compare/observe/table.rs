//! The function table and the extensions, without a call.

use pjrt_sys::SLOTS;

use super::fact::{behavior, identity};
use super::observer::Observer;
use pjrt_testing::host::SlotState;

pub(super) fn names() -> Vec<String> {
    ["functions", "extensions"].map(str::to_owned).to_vec()
}

pub(super) fn observe(observer: &Observer, name: &str) {
    let plugin = observer.plugin;
    if name == "functions" {
        let (major, minor) = plugin.version();
        behavior("major version", major);
        identity("minor version", minor);
        identity("size of the table", plugin.table_size());
        for (index, slot) in SLOTS.iter().enumerate() {
            behavior(
                slot.name,
                match plugin.slot(index) {
                    SlotState::Absent => "newer than the plugin",
                    SlotState::Null => "null",
                    SlotState::Function => "a function",
                },
            );
        }
        return;
    }
    let Some(mut extensions) = plugin.extensions() else { return behavior("chain", "endless") };
    extensions.sort_by_key(|extension| extension.type_);
    let name = |type_: u32, name: Option<&str>| name.map_or_else(|| format!("type {type_}"), str::to_owned);
    let names: Vec<String> =
        extensions.iter().map(|extension| name(extension.type_, extension.name())).collect();
    behavior("names", names.join(", "));
    for (extension, name) in extensions.iter().zip(names) {
        identity(format!("size of {name}"), extension.struct_size);
    }
}
