//! The device and the memory in which an array is.

use super::verdict::{Finding, Verdict};
use pjrt_testing::host::{Buffer, Device, Memory};

/// The sentence about an array whose memory belongs to another device, which many checks notice.
pub(crate) const MEMORY_OF_ANOTHER_DEVICE: &str =
    "PJRT_Buffer_Memory probably returns the memory of another device than that of PJRT_Buffer_Device";

/// The sentence about an array whose device is another one than that of its memory, which many checks notice.
pub(crate) const DEVICE_CONTRADICTED: &str = "PJRT_Buffer_Memory returns a memory of the expected device: PJRT_Buffer_Device itself \
                                               probably answers wrongly";

/// The words before the function that says where an array is.
pub(crate) const ACCORDING_TO: &str = " according to ";

/// Describes a device, for messages.
pub(crate) fn device_name(device: Device<'_>) -> String {
    device
        .description()
        .and_then(|description| description.id())
        .map_or_else(|_| "a device without an id".to_owned(), |id| format!("the device {id}"))
}

/// Fails unless an array is on a device. `cause` is the probable cause if it is on another one.
pub(crate) fn is_on_device(what: &str, array: &Buffer, expected: Device<'_>, cause: &str) -> Verdict {
    let got = array.device()?;
    if got == expected {
        return Ok(());
    }
    let is_in_its_memory = array
        .memory()
        .and_then(|memory| memory.devices())
        .is_ok_and(|of_memory| of_memory.contains(&expected) && !of_memory.contains(&got));
    let cause = if is_in_its_memory { DEVICE_CONTRADICTED } else { cause };
    Err(Finding::Wrong(format!(
        "{what} is on {}{ACCORDING_TO}PJRT_Buffer_Device; expected {}. {cause}",
        device_name(got),
        device_name(expected)
    )))
}

/// Describes a memory, for messages. Memories of several devices often have the same kind.
pub(crate) fn memory_name(memory: Memory<'_>) -> String {
    let id = memory.id().map_or_else(|_| "a memory without an id".to_owned(), |id| format!("memory {id}"));
    memory.kind().map_or_else(|_| id.clone(), |kind| format!("{id} ({kind})"))
}

/// Fails unless an array is in a memory. `cause` is the probable cause if it is in another one of the same device.
pub(crate) fn is_in_memory(what: &str, array: &Buffer, expected: Memory<'_>, cause: &str) -> Verdict {
    let got = array.memory()?;
    if got == expected {
        return Ok(());
    }
    let device = array.device()?;
    let cause = match got.devices() {
        Ok(devices) if !devices.contains(&device) => MEMORY_OF_ANOTHER_DEVICE,
        _ => cause,
    };
    Err(Finding::Wrong(format!(
        "{what} is in {}{ACCORDING_TO}PJRT_Buffer_Memory; expected {}. {cause}",
        memory_name(got),
        memory_name(expected)
    )))
}

/// Passes if the plugin lacks a function that the verdict is about.
pub(crate) fn if_supported(verdict: Verdict) -> Verdict {
    match verdict {
        Err(Finding::Unsupported(_)) => Ok(()),
        verdict => verdict,
    }
}
