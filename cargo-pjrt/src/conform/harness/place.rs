//! The memory in which an array is.

use super::verdict::{Finding, Verdict};
use pjrt_testing::host::{Buffer, Memory};

/// The sentence about an array whose memory belongs to another device, which many checks notice.
pub(crate) const MEMORY_OF_ANOTHER_DEVICE: &str =
    "PJRT_Buffer_Memory probably returns the memory of another device than that of PJRT_Buffer_Device";

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
        "{what} is in {} according to PJRT_Buffer_Memory; expected {}. {cause}",
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
