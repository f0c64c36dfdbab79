//! The MemoryDescriptions extension, which returns the memories of device descriptions, including those of a topology.

use pjrt_sys::{
    PJRT_DeviceDescription_MemoryDescriptions_Args, PJRT_Extension_Base,
    PJRT_Extension_Type_MemoryDescriptions, PJRT_MemoryDescription_Kind_Args,
    PJRT_MemoryDescriptions_Extension, SizedStruct,
};

use crate::abi::args::{View, handle, output, output_slice, output_str};
use crate::abi::device_description::DescriptionHandle;
use crate::abi::guard::shim;
use crate::client::PjrtClient;
use crate::error::Result;
use crate::memory::Memory;

/// Prepends the extension to a linked list.
pub(super) fn link<C: PjrtClient>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_MemoryDescriptions_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_MemoryDescriptions_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_MemoryDescriptions,
            next,
        },
        PJRT_DeviceDescription_MemoryDescriptions: Some(shim(memory_descriptions::<C>)),
        PJRT_MemoryDescription_Kind: Some(shim(kind::<C>)),
    })
}

/// Returns the memories of a device, which its description owns. The first is the default memory.
fn memory_descriptions<C: PjrtClient>(
    args: View<'_, PJRT_DeviceDescription_MemoryDescriptions_Args>,
) -> Result<()> {
    let memories = &handle!(args.device_description: DescriptionHandle)?.memories;
    output_slice!(args.memory_descriptions, num_memory_descriptions = memories);
    output!(args.default_memory_index = if memories.is_empty() { usize::MAX } else { 0 });
    Ok(())
}

/// Returns the name and the id of a memory's kind.
fn kind<C: PjrtClient>(args: View<'_, PJRT_MemoryDescription_Kind_Args>) -> Result<()> {
    let memory = handle!(args.memory_description: Memory)?;
    output_str!(args.kind, kind_size = memory.kind());
    output!(args.kind_id = memory.kind_id());
    Ok(())
}
