//! Checks of the plugin itself, most of which need no client.

use std::collections::HashSet;

use pjrt_sys::SLOTS;

use super::entry::{ALL, Entry, check};
use crate::conform::harness::{Context, Finding, INITIALIZES, PROCESS_ENDS, Verdict, ensure};
use crate::requirements::Profile;
use crate::requirements::table;
use pjrt_testing::host::{SlotState, Value};

pub(super) const CHECKS: &[Entry] = &[
    check("plugin/version_is_0", "The major version of the C API is 0.", major, "GetPjrtApi set major=1")
    .host("XLA's client, pjrt_api.cc, InitializePjrtPlugin", "Refuses a plugin with another major version.")
    .needed_by(ALL)
    .of_the_table(),
    check(
        "plugin/minor_is_accepted_by_hosts",
        "The minor version is at least 29: hosts refuse older plugins.",
        minor,
        "GetPjrtApi set minor=28",
    )
    .host("XLA's client, pjrt_api.cc, InitializePjrtPlugin", "Refuses a plugin older than version 0.29.")
    .needed_by(ALL)
    .of_the_table(),
    check(
        "plugin/table_holds_what_its_version_has",
        "The table is large enough for every function of the reported version, and of a credible size: hosts decide by version, not by size, which functions they call.",
        table_size,
        "GetPjrtApi set struct_size=1000",
    )
    .header("PJRT_API_MINOR", "Callers can use PJRT_Api_Version to check if the implementation is aware of newer interface additions.")
    .needed_by(ALL)
    .of_the_table()
    .also(&[
        "device/tracking_event",
        "plugin/needed_slots_are_not_null",
        "struct_size/PJRT_Error_ForEachPayload",
    ]),
    check(
        "plugin/needed_slots_are_not_null",
        "No function that hosts call without a check for null is a null pointer; a function that is not implemented returns UNIMPLEMENTED.",
        null_slots,
        "GetPjrtApi null PJRT_Event_IsReady",
    )
    .host("XLA's client, PjRtCApiClient::InitDevicesAndMemorySpaces", "Calls the functions of the table without comparing them with null.")
    .of_the_table()
    .needed_by(ALL),
    check(
        "plugin/the_table_stays_the_same",
        "GetPjrtApi returns the same table each time, even after the library was closed and opened again.",
        same_table,
        "GetPjrtApi fresh",
    )
    .host("go-xla, pjrt/plugins.go, checkPlugin", "Loads, closes and loads the library again, and uses the table of the second time.")
    .needed_by(&[Profile::Gomlx])
    .of_the_table(),
    check(
        "plugin/extensions_end",
        "The chain of extensions ends, and each extension reports a size of at least its base.",
        extensions_end,
        "GetPjrtApi extension small",
    )
    .header("PJRT_Extension_Base", "The framework can go through this chain to find an extension and identify it with the type.")
    .needed_by(&[Profile::Jax, Profile::TorchXla])
    .of_the_table()
    .also(&["plugin/extensions_are_unique"]),
    check(
        "plugin/extensions_are_unique",
        "No type of extension occurs twice: hosts use the first or the last one.",
        extensions_unique,
        "GetPjrtApi extension twice",
    )
    .host("XLA's client, pjrt_c_api_client.cc, InitExtensions", "Keeps the first extension of each type, and ignores others.")
    .of_the_table(),
    check(
        INITIALIZES,
        "PJRT_Plugin_Initialize succeeds: hosts call it before all other functions, and do not use the plugin if it fails.",
        |_| Ok(()),
        "PJRT_Plugin_Initialize fail INTERNAL",
    )
    .header("PJRT_Plugin_Initialize", "One-time plugin setup. Must be called before any other functions are called.")
    .needed_by(ALL),
    check(
        PROCESS_ENDS,
        "After a client was created and destroyed, a process ends when its main function returns, with the status that main returned: the plugin's exit handlers and static destructors neither crash nor hang.",
        |context| {
            // Without the hardware, no client can be created.
            drop(context.client());
            Ok(())
        },
        "PJRT_Client_Create crash_at_exit",
    )
    .host("JAX, the end of the Python interpreter", "Destroys the client and returns from main: a crash there is the exit status of every program.")
    .needed_by(ALL),
    check(
        "plugin/initialize_twice",
        "PJRT_Plugin_Initialize can be called again, as several hosts in one process do.",
        initialize_twice,
        "PJRT_Plugin_Initialize after PJRT_Plugin_Initialize fail FAILED_PRECONDITION",
    )
    .host("XLA's client, pjrt_api.cc, InitializePjrtPlugin", "Each host has a copy of this client, which initializes once: a process with JAX and PyTorch/XLA does so twice."),
    check(
        "plugin/attributes_have_unique_names",
        "No attribute occurs twice.",
        unique_attributes,
        "PJRT_Plugin_Attributes repeat attributes num_attributes 56",
    )
    .host("XLA's client, PjRtCApiClient::InitAttributes", "Puts the attributes into a map, in which one of two values is lost."),
    check(
        "plugin/attribute_names_end_with_zero",
        "A zero byte follows each attribute's name: XLA's own tests read them as C strings.",
        terminated_names,
        "PJRT_Plugin_Attributes set attributes>name_size-1",
    )
    .advice("The header has name_size. XLA's tests of plugins, pjrt_c_api_test.cc, read the names as C strings."),
    check(
        "plugin/stablehlo_minimum_version",
        "The attribute stablehlo_minimum_version is a list of three numbers, which is not above the current version.",
        minimum_version,
        "PJRT_Plugin_Attributes attribute stablehlo_minimum_version 9999",
    )
    .header("PJRT_Plugin_Attributes", "Common keys include `xla_version`, `stablehlo_current_version`, and `stablehlo_minimum_version`.")
    .only_used_by(&[Profile::Jax, Profile::Zml]),
    check(
        "plugin/attributes_have_known_types",
        "Attributes are strings, integers, lists of integers, floats or booleans: JAX throws an exception for other types.",
        attribute_types,
        "PJRT_Plugin_Attributes set attributes>type_=9",
    )
    .host("XLA's client, pjrt_c_api_helpers.cc, ConvertFromPjRtNamedValueList", "Ends the process if an attribute has a different type."),
    check(
        "plugin/attributes_stay_where_they_are",
        "PJRT_Plugin_Attributes returns the same array each time, which lives as long as the process.",
        stable_attributes,
        "PJRT_Plugin_Attributes fresh attributes num_attributes 56",
    )
    .header("PJRT_Plugin_Attributes_Args::attributes", "Returned attributes have the lifetime of the process."),
    check(
        "plugin/attributes_of_hosts_up_to_0_70",
        "PJRT_Plugin_Attributes writes num_attributes even if struct_size is 24: hosts for version 0.70 of the C API or older pass that size with a struct of 32 bytes.",
        old_attributes,
        "PJRT_Plugin_Attributes when struct_size=24 fail INVALID_ARGUMENT",
    )
    .advice("The headers up to 0.70 declare a size of 24 bytes by mistake. Plugins of that time accept it; a plugin that refuses it does not run with JAX 0.6.2 and older."),
    check(
        "plugin/destroying_nothing",
        "Every function that destroys objects accepts a null pointer, and does nothing.",
        destroy_null,
        "PJRT_Buffer_Destroy when buffer=0 fail INVALID_ARGUMENT",
    )
    .header("PJRT_Buffer_Destroy and the other functions that destroy", "Frees `buffer`. `buffer` can be nullptr."),
];

fn major(context: &Context) -> Verdict {
    table::check_major(context.plugin.version()).map_err(Finding::Wrong)
}

fn minor(context: &Context) -> Verdict {
    table::check_minor(context.plugin.version()).map_err(Finding::Wrong)
}

fn table_size(context: &Context) -> Verdict {
    table::check_size(context.plugin.version(), context.plugin.table_size()).map_err(Finding::Wrong)
}

fn null_slots(context: &Context) -> Verdict {
    let slots = table::slots_of(context.minor());
    let mut null = Vec::new();
    for (index, slot) in SLOTS.iter().enumerate().take(slots) {
        let name = slot.name.trim_start_matches("PJRT_");
        let needed = Profile::ALL.into_iter().any(|profile| profile.functions().any(|needed| needed == name));
        if needed && context.plugin.slot(index) != SlotState::Function {
            null.push(slot.name);
        }
    }
    ensure!(null.is_empty(), "null: {}", null.join(", "));
    Ok(())
}

fn same_table(context: &Context) -> Verdict {
    let same = context.plugin.reload(&context.path).map_err(|error| Finding::Wrong(error.to_string()))?;
    ensure!(same, "GetPjrtApi returned a different table on the second call");
    Ok(())
}

fn extensions_end(context: &Context) -> Verdict {
    table::check_extensions(context.plugin.extensions().as_deref()).map_err(Finding::Wrong)
}

fn extensions_unique(context: &Context) -> Verdict {
    let mut seen = HashSet::new();
    for extension in context.plugin.extensions().unwrap_or_default() {
        let name = extension.name().unwrap_or("unknown");
        ensure!(seen.insert(extension.type_), "the extension {name} ({}) occurs twice", extension.type_);
    }
    Ok(())
}

fn initialize_twice(context: &Context) -> Verdict {
    Ok(context.plugin.initialize()?)
}

fn unique_attributes(context: &Context) -> Verdict {
    let mut seen = HashSet::new();
    for attribute in context.plugin.attributes()? {
        ensure!(seen.insert(attribute.name.clone()), "the attribute {} occurs twice", attribute.name);
    }
    Ok(())
}

fn terminated_names(context: &Context) -> Verdict {
    for attribute in context.plugin.attributes()? {
        ensure!(attribute.name_is_terminated, "the name {:?} is not followed by a zero byte", attribute.name);
    }
    Ok(())
}

fn version_attribute(context: &Context, name: &str) -> Result<Vec<i64>, Finding> {
    let attributes = context.plugin.attributes()?;
    match attributes.into_iter().find(|attribute| attribute.name == name).map(|attribute| attribute.value) {
        Some(Value::Int64List(list)) if list.len() == 3 => Ok(list),
        Some(other) => {
            Err(Finding::Wrong(format!("the attribute {name} is {other}; expected a list of 3 integers")))
        }
        None => Err(Finding::Unsupported(format!("there is no attribute {name}"))),
    }
}

fn minimum_version(context: &Context) -> Verdict {
    let minimum = version_attribute(context, "stablehlo_minimum_version")?;
    let current = version_attribute(context, "stablehlo_current_version")?;
    ensure!(minimum <= current, "the minimum version {minimum:?} is above the current version {current:?}");
    Ok(())
}

fn attribute_types(context: &Context) -> Verdict {
    for attribute in context.plugin.attributes()? {
        let known = !matches!(attribute.value, Value::Unknown(_));
        ensure!(known, "the attribute {} is {}", attribute.name, attribute.value);
    }
    Ok(())
}

fn stable_attributes(context: &Context) -> Verdict {
    let addresses = [context.plugin.attributes_address()?, context.plugin.attributes_address()?];
    ensure!(
        addresses[0] == addresses[1],
        "the address of the array of attributes differs on the second call"
    );
    Ok(())
}

fn old_attributes(context: &Context) -> Verdict {
    // The number may be smaller than for a newer host, because old hosts may not know the attributes about
    // StableHLO.
    let Some(attributes) = context.plugin.attributes_of_old_struct()? else {
        return Err(Finding::Wrong("num_attributes was not written".to_owned()));
    };
    ensure!(
        attributes.iter().all(|attribute| !attribute.name.is_empty()),
        "an attribute has no name: {attributes:?}"
    );
    Ok(())
}

fn destroy_null(context: &Context) -> Verdict {
    for function in [
        "PJRT_Error_Destroy",
        "PJRT_Event_Destroy",
        "PJRT_Client_Destroy",
        "PJRT_Buffer_Destroy",
        "PJRT_Executable_Destroy",
        "PJRT_LoadedExecutable_Destroy",
        "PJRT_TopologyDescription_Destroy",
    ] {
        context.plugin.destroy_null(function)?;
    }
    Ok(())
}
