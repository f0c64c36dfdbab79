//! The functions of the C API that a forked child can call.

/// The treatment of a call in a forked child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForkedCall {
    /// The call runs normally: it reads only immutable data, or checks for a fork itself.
    Call,
    /// The call succeeds without an effect: the object that it should release stays alive.
    Leave,
    /// The call returns an error.
    Refuse,
}

/// The functions that read only immutable data, and the few that call [`is_child`] themselves. Many hosts abort if one of
/// these fails. A name that ends with `*` matches all functions with that prefix.
const CALLED: &[&str] = &[
    "PJRT_Buffer_Device",
    "PJRT_Buffer_Dimensions",
    "PJRT_Buffer_DynamicDimensionIndices",
    "PJRT_Buffer_ElementType",
    "PJRT_Buffer_GetMemoryLayout",
    "PJRT_Buffer_IsDeleted",
    "PJRT_Buffer_IsOnCpu",
    "PJRT_Buffer_Memory",
    "PJRT_Buffer_ReadyEvent",
    "PJRT_Buffer_UnpaddedDimensions",
    "PJRT_Client_AddressableDevices",
    "PJRT_Client_AddressableMemories",
    "PJRT_Client_Devices",
    "PJRT_Client_LookupAddressableDevice",
    "PJRT_Client_LookupDevice",
    "PJRT_Client_PlatformName",
    "PJRT_Client_PlatformVersion",
    "PJRT_Client_ProcessIndex",
    "PJRT_Client_TopologyDescription",
    "PJRT_DeviceDescription_*",
    "PJRT_Device_AddressableMemories",
    "PJRT_Device_CreateAsyncTrackingEvent",
    "PJRT_Device_DefaultMemory",
    "PJRT_Device_GetAttributes",
    "PJRT_Device_GetDescription",
    "PJRT_Device_IsAddressable",
    "PJRT_Device_LocalHardwareId",
    "PJRT_Error_*",
    "PJRT_Event_Await",
    "PJRT_Event_Error",
    "PJRT_Event_IsReady",
    "PJRT_Event_OnReady",
    "PJRT_Executable_Name",
    "PJRT_Executable_NumOutputs",
    "PJRT_Executable_NumPartitions",
    "PJRT_Executable_NumReplicas",
    "PJRT_Executable_OutputDimensions",
    "PJRT_Executable_OutputElementTypes",
    "PJRT_Executable_OutputMemoryKinds",
    "PJRT_Executable_ParameterMemoryKinds",
    "PJRT_Executable_SizeOfGeneratedCodeInBytes",
    "PJRT_Layouts_*",
    "PJRT_LoadedExecutable_AddressableDeviceLogicalIds",
    "PJRT_LoadedExecutable_AddressableDevices",
    "PJRT_LoadedExecutable_GetDeviceAssignment",
    "PJRT_LoadedExecutable_GetExecutable",
    "PJRT_LoadedExecutable_IsDeleted",
    "PJRT_MemoryDescription_*",
    "PJRT_Memory_*",
    "PJRT_Plugin_Attributes",
    "PJRT_TopologyDescription_Attributes",
    "PJRT_TopologyDescription_GetDeviceDescriptions",
    "PJRT_TopologyDescription_PlatformName",
    "PJRT_TopologyDescription_PlatformVersion",
    "PLUGIN_Profiler_Error_*",
];

/// The functions that release an object. Hosts call them at exit, and abort if one fails.
const LEFT: &[&str] = &[
    "*_Destroy",
    "*_Delete",
    "PJRT_Buffer_DecreaseExternalReferenceCount",
    "PJRT_Client_UpdateGlobalProcessInfo",
];

/// Returns the treatment of a function in a forked child.
#[cold]
pub(crate) fn forked_call(function: &str) -> ForkedCall {
    let matches = |pattern: &&str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => function.ends_with(end),
        (_, Some(start)) => function.starts_with(start),
        _ => function == *pattern,
    };
    if CALLED.iter().any(&matches) {
        ForkedCall::Call
    } else if LEFT.iter().any(matches) {
        ForkedCall::Leave
    } else {
        ForkedCall::Refuse
    }
}

#[cfg(test)]
mod tests {
    use pjrt_sys::SLOTS;

    use super::*;

    #[test]
    fn every_name_in_the_tables_is_that_of_a_function() {
        let of_extensions = ["PJRT_Layouts_", "PJRT_MemoryDescription_", "PLUGIN_Profiler_Error_"];
        for pattern in CALLED.iter().chain(LEFT) {
            let name = pattern.trim_matches('*');
            assert!(
                of_extensions.contains(&name) || SLOTS.iter().any(|slot| slot.name.contains(name)),
                "{pattern}"
            );
        }
    }

    #[test]
    fn work_is_refused_and_destruction_left() {
        for (function, expected) in [
            ("PJRT_LoadedExecutable_Execute", ForkedCall::Refuse),
            ("PJRT_Client_Create", ForkedCall::Refuse),
            ("PJRT_RawBuffer_CopyRawHostToDevice", ForkedCall::Refuse),
            ("PJRT_RawBuffer_Destroy", ForkedCall::Leave),
            ("PJRT_Client_Destroy", ForkedCall::Leave),
            ("PJRT_Event_Destroy", ForkedCall::Leave),
            ("PJRT_Error_Message", ForkedCall::Call),
            ("PJRT_Memory_Kind_Id", ForkedCall::Call),
            ("PJRT_Layouts_PJRT_Buffer_MemoryLayout", ForkedCall::Call),
        ] {
            assert_eq!(forked_call(function), expected, "{function}");
        }
    }
}
