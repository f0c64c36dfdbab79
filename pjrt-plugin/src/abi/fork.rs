//! Processes that are forked from one that uses the plugin.
//!
//! Only the thread that calls `fork` goes on in the child. Threads of the plugin are gone there, and what they had locked stays
//! locked, so work would never be done and locks never be given back. In such a child no function of the table does work, waits, or
//! takes a lock that another thread may have had: it reads what never changes, leaves what it should destroy to the end of the
//! process, or is an error, as [`in_child`] says.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Whether this is such a child.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// The platform, once the plugin has been used in this process, or why a fork would not be noticed.
static USED: OnceLock<Result<&'static str>> = OnceLock::new();

/// What becomes of a call in a forked child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InChild {
    /// It is made as always: it reads what does not change, or takes care of forks itself.
    Call,
    /// It succeeds, and what it should give up stays as it is.
    Leave,
    /// It is an error.
    Refuse,
}

/// The functions that read what does not change, and the few that look at [`is_child`] themselves. Many hosts do not survive an
/// error of theirs. Names that end with `*` are those of several functions.
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

/// The functions that give something up: hosts call them when they end, and do not survive an error.
const LEFT: &[&str] = &[
    "*_Destroy",
    "*_Delete",
    "PJRT_Buffer_DecreaseExternalReferenceCount",
    "PJRT_Client_UpdateGlobalProcessInfo",
];

/// What becomes of a call of this function in a forked child.
#[cold]
pub(crate) fn in_child(function: &str) -> InChild {
    let matches = |pattern: &&str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => function.ends_with(end),
        (_, Some(start)) => function.starts_with(start),
        _ => function == *pattern,
    };
    if CALLED.iter().any(&matches) {
        InChild::Call
    } else if LEFT.iter().any(matches) {
        InChild::Leave
    } else {
        InChild::Refuse
    }
}

/// Whether this process was forked from one that used the plugin.
#[inline]
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Notes that the plugin is used in this process: from now on, children that are forked are ones whose threads are missing.
///
/// # Errors
///
/// RESOURCE_EXHAUSTED if a fork would not be noticed.
pub(crate) fn note_use(platform: &'static str) -> Result<()> {
    USED.get_or_init(|| watch().map(|()| platform)).clone().map(drop)
}

#[cfg(unix)]
fn watch() -> Result<()> {
    /// Runs in each child, before `fork` returns there.
    unsafe extern "C" fn child() {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
    // SAFETY: the function may be called at any fork: it only stores into a static, and the library that it is in stays in memory.
    match unsafe { libc::pthread_atfork(None, None, Some(child)) } {
        0 => Ok(()),
        number => {
            let error = std::io::Error::from_raw_os_error(number);
            Err(Error::resource_exhausted(format!("forks of this process would not be noticed: {error}")))
        }
    }
}

#[cfg(not(unix))]
fn watch() -> Result<()> {
    Ok(())
}

/// The error of whatever a forked child cannot do.
#[cold]
pub(crate) fn refusal() -> Error {
    let platform = USED.get().and_then(|used| used.as_ref().ok()).unwrap_or(&"PJRT");
    Error::failed_precondition(format!(
        "this process was forked from one that had used the plugin '{platform}', whose threads do not exist here, so the \
         plugin cannot be used"
    ))
    .with_hint(
        "start processes with multiprocessing's start method 'spawn' or 'forkserver', or fork before the plugin is first \
         used, and use it in the child only",
    )
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
            ("PJRT_LoadedExecutable_Execute", InChild::Refuse),
            ("PJRT_Client_Create", InChild::Refuse),
            ("PJRT_RawBuffer_CopyRawHostToDevice", InChild::Refuse),
            ("PJRT_RawBuffer_Destroy", InChild::Leave),
            ("PJRT_Client_Destroy", InChild::Leave),
            ("PJRT_Event_Destroy", InChild::Leave),
            ("PJRT_Error_Message", InChild::Call),
            ("PJRT_Memory_Kind_Id", InChild::Call),
            ("PJRT_Layouts_PJRT_Buffer_MemoryLayout", InChild::Call),
        ] {
            assert_eq!(in_child(function), expected, "{function}");
        }
    }
}
