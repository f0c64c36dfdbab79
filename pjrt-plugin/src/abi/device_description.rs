//! `PJRT_DeviceDescription`.
//!
//! `PJRT_DeviceDescription_Id`, `PJRT_DeviceDescription_ProcessIndex`, `PJRT_DeviceDescription_Attributes`,
//! `PJRT_DeviceDescription_Kind`, `PJRT_DeviceDescription_DebugString`, `PJRT_DeviceDescription_ToString`.

use pjrt_sys::{
    PJRT_DeviceDescription, PJRT_DeviceDescription_Attributes_Args, PJRT_DeviceDescription_DebugString_Args,
    PJRT_DeviceDescription_Id_Args, PJRT_DeviceDescription_Kind_Args,
    PJRT_DeviceDescription_ProcessIndex_Args, PJRT_DeviceDescription_ToString_Args, PJRT_MemoryDescription,
};

use crate::abi::args::{View, handle, output, output_slice, output_str};
use crate::abi::c_arrays::NamedValues;
use crate::abi::handle::{Handle, registry};
use crate::attributes::AttributeValue;
use crate::client::PjrtClient;
use crate::device::DeviceDescription;
use crate::error::Result;
use crate::memory::Memory;

/// The object behind a `PJRT_DeviceDescription`, which its client or topology owns.
pub(crate) struct DescriptionHandle {
    pub(crate) description: DeviceDescription,
    attributes: NamedValues,
    /// The handles of the description's memories.
    pub(crate) memories: Vec<*const PJRT_MemoryDescription>,
}

// SAFETY: the pointers refer to the description's memories, which never change; the rest is `Send` and `Sync`.
unsafe impl Send for DescriptionHandle {}
// SAFETY: as above.
unsafe impl Sync for DescriptionHandle {}

impl Handle for Memory {
    type Opaque = PJRT_MemoryDescription;
    const KIND: &'static str = "PJRT_MemoryDescription";
}

impl Handle for DescriptionHandle {
    type Opaque = PJRT_DeviceDescription;
    const KIND: &'static str = "PJRT_DeviceDescription";
}

impl DescriptionHandle {
    pub(crate) fn new(description: DeviceDescription) -> Self {
        // Hosts abort if a device attribute is a float or a boolean.
        let allowed = description
            .attributes()
            .iter()
            .filter(|(_, value)| !matches!(value, AttributeValue::Float(_) | AttributeValue::Bool(_)));
        let attributes = NamedValues::new(allowed);
        let memories: Vec<_> =
            description.memories().iter().map(|memory| (&raw const *memory).cast()).collect();
        for memory in &memories {
            registry::add::<Memory>(*memory);
        }
        Self { description, attributes, memories }
    }
}

impl Drop for DescriptionHandle {
    fn drop(&mut self) {
        for memory in &self.memories {
            let _ = registry::remove::<Memory>(*memory, "memory description");
        }
    }
}

/// `PJRT_DeviceDescription_Id`.
pub(crate) fn device_description_id<C: PjrtClient>(
    args: View<'_, PJRT_DeviceDescription_Id_Args>,
) -> Result<()> {
    output!(args.id = handle!(args.device_description: DescriptionHandle)?.description.id());
    Ok(())
}

/// `PJRT_DeviceDescription_ProcessIndex`.
pub(crate) fn device_description_process_index<C: PjrtClient>(
    args: View<'_, PJRT_DeviceDescription_ProcessIndex_Args>,
) -> Result<()> {
    let handle = handle!(args.device_description: DescriptionHandle)?;
    output!(args.process_index = handle.description.process_index());
    Ok(())
}

/// `PJRT_DeviceDescription_Attributes`.
pub(crate) fn device_description_attributes<C: PjrtClient>(
    args: View<'_, PJRT_DeviceDescription_Attributes_Args>,
) -> Result<()> {
    let handle = handle!(args.device_description: DescriptionHandle)?;
    output_slice!(args.attributes, num_attributes = handle.attributes.as_slice());
    Ok(())
}

/// `PJRT_DeviceDescription_Kind`.
pub(crate) fn device_description_kind<C: PjrtClient>(
    args: View<'_, PJRT_DeviceDescription_Kind_Args>,
) -> Result<()> {
    let handle = handle!(args.device_description: DescriptionHandle)?;
    output_str!(args.device_kind, device_kind_size = handle.description.kind());
    Ok(())
}

/// `PJRT_DeviceDescription_DebugString`.
pub(crate) fn device_description_debug_string<C: PjrtClient>(
    args: View<'_, PJRT_DeviceDescription_DebugString_Args>,
) -> Result<()> {
    let handle = handle!(args.device_description: DescriptionHandle)?;
    output_str!(args.debug_string, debug_string_size = handle.description.debug());
    Ok(())
}

/// `PJRT_DeviceDescription_ToString`.
pub(crate) fn device_description_to_string<C: PjrtClient>(
    args: View<'_, PJRT_DeviceDescription_ToString_Args>,
) -> Result<()> {
    let handle = handle!(args.device_description: DescriptionHandle)?;
    output_str!(args.to_string, to_string_size = handle.description.display());
    Ok(())
}
