//! `PJRT_Buffer`.
//!
//! `PJRT_Buffer_Destroy`, `PJRT_Buffer_ElementType`, `PJRT_Buffer_Dimensions`,
//! `PJRT_Buffer_UnpaddedDimensions`, `PJRT_Buffer_DynamicDimensionIndices`, `PJRT_Buffer_GetMemoryLayout`,
//! `PJRT_Buffer_OnDeviceSizeInBytes`, `PJRT_Buffer_Device`, `PJRT_Buffer_Memory`, `PJRT_Buffer_Delete`,
//! `PJRT_Buffer_IsDeleted`, `PJRT_Buffer_IsOnCpu`, `PJRT_Buffer_ReadyEvent`, `PJRT_Buffer_UnsafePointer`,
//! `PJRT_Buffer_IncreaseExternalReferenceCount`, `PJRT_Buffer_DecreaseExternalReferenceCount`,
//! `PJRT_Buffer_OpaqueDeviceMemoryDataPointer`.

use std::ops::Deref;
use std::ptr;
use std::sync::Arc;

use pjrt_sys::{
    PJRT_Buffer, PJRT_Buffer_DecreaseExternalReferenceCount_Args, PJRT_Buffer_Delete_Args,
    PJRT_Buffer_Destroy_Args, PJRT_Buffer_Device_Args, PJRT_Buffer_Dimensions_Args,
    PJRT_Buffer_DynamicDimensionIndices_Args, PJRT_Buffer_ElementType_Args, PJRT_Buffer_GetMemoryLayout_Args,
    PJRT_Buffer_IncreaseExternalReferenceCount_Args, PJRT_Buffer_IsDeleted_Args, PJRT_Buffer_IsOnCpu_Args,
    PJRT_Buffer_Memory_Args, PJRT_Buffer_MemoryLayout, PJRT_Buffer_MemoryLayout_Tiled,
    PJRT_Buffer_MemoryLayout_Type_Tiled, PJRT_Buffer_MemoryLayout_Union,
    PJRT_Buffer_OnDeviceSizeInBytes_Args, PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args,
    PJRT_Buffer_ReadyEvent_Args, PJRT_Buffer_Type, PJRT_Buffer_UnpaddedDimensions_Args,
    PJRT_Buffer_UnsafePointer_Args, SizedStruct,
};

use crate::abi::args::{View, handle, input, output, output_slice};
use crate::abi::client_state::ClientState;
use crate::abi::event::event_to_raw;
use crate::abi::handle::{self, Handle};
use crate::buffer::PjrtBuffer;
use crate::client::Location;
use crate::client::PjrtClient;
use crate::core::event::Event;
use crate::core::fork;
use crate::core::storage::BufferState;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// The properties of a buffer that do not depend on its data.
pub(crate) struct Spec<C: PjrtClient> {
    pub(crate) client: Arc<ClientState<C>>,
    /// Its index in the client's devices.
    pub(crate) device: usize,
    /// Its index in the client's memories.
    pub(crate) memory: usize,
    pub(crate) shape: Shape,
}

/// The owned [`Spec`] of a buffer, or the one that all buffers of a program's output on a device share.
enum SpecOf<C: PjrtClient> {
    Own(Spec<C>),
    Output(Arc<Spec<C>>),
}

/// The object behind a `PJRT_Buffer`.
pub(crate) struct BufferHandle<C: PjrtClient> {
    spec: SpecOf<C>,
    pub(crate) state: BufferState<C::Buffer>,
}

impl<C: PjrtClient> Drop for BufferHandle<C> {
    #[inline]
    fn drop(&mut self) {
        if let SpecOf::Own(spec) = &self.spec {
            spec.client.memory_usage.buffer_destroyed(spec.memory, spec.shape.host_size());
        }
    }
}

impl<C: PjrtClient> Handle for BufferHandle<C> {
    type Opaque = PJRT_Buffer;
    const KIND: &'static str = "PJRT_Buffer";
}

/// Gives access to the fields of the buffer's [`Spec`].
impl<C: PjrtClient> Deref for BufferHandle<C> {
    type Target = Spec<C>;

    #[inline]
    fn deref(&self) -> &Spec<C> {
        match &self.spec {
            SpecOf::Own(spec) => spec,
            SpecOf::Output(spec) => spec,
        }
    }
}

impl<C: PjrtClient> BufferHandle<C> {
    #[inline(always)]
    pub(crate) fn new(
        client: Arc<ClientState<C>>,
        place: Location,
        shape: Shape,
        state: BufferState<C::Buffer>,
    ) -> Self {
        client.memory_usage.buffer_made(place.memory, shape.host_size());
        let spec = Spec { client, device: place.device, memory: place.memory, shape };
        Self { spec: SpecOf::Own(spec), state: state.on_device(place.device) }
    }

    /// Creates the buffer of a program's output.
    #[inline(always)]
    pub(crate) fn of_output(spec: Arc<Spec<C>>, place: usize, state: BufferState<C::Buffer>) -> Self {
        Self { spec: SpecOf::Output(spec), state: state.on_device(place) }
    }

    fn is_host_accessible(&self) -> bool {
        self.client.memories[self.memory].memory.is_host_accessible()
    }

    /// Returns the address of the data. Waits until there is one.
    fn address(&self) -> Result<usize> {
        let storage = match self.state.pinned() {
            Some(storage) => storage,
            None => self.state.wait_for_storage()?,
        };
        if !self.is_host_accessible() {
            return match self.client.explain(storage.device_address())? {
                // Hosts take a null pointer for an error, or use it.
                Some(0) => Err(Error::internal(
                    "PjrtBuffer::device_address returned 0, which is a null pointer to the host; it must return None if the data \
                     has no address",
                )),
                Some(address) => Ok(address),
                None => Err(Error::unimplemented(
                    "the plugin's buffers have no device address (PjrtBuffer::device_address returned None)",
                )),
            };
        }
        if let Some(view) = storage.host_view() {
            return Ok(view.address());
        }
        let mut bytes = self.client.explain(storage.host_bytes())?;
        if bytes.is_none() {
            // A running program may not have written them yet.
            self.state.ready_event().wait()?;
            bytes = self.client.explain(storage.host_bytes())?;
        }
        // The host reads these bytes, so there must be as many as the shape requires.
        match bytes {
            Some(bytes) if bytes.len() >= self.shape.host_size() => Ok(bytes.as_ptr().expose_provenance()),
            Some(bytes) => Err(Error::internal(format!(
                "PjrtBuffer::host_bytes returned {} bytes for the buffer {} in host-accessible memory; its shape needs {}",
                bytes.len(),
                self.shape,
                self.shape.host_size()
            ))),
            None => Err(Error::internal(
                "PjrtBuffer::host_bytes returned no bytes for a buffer in host-accessible memory",
            )),
        }
    }
}

/// `PJRT_Buffer_ElementType`.
pub(crate) fn buffer_element_type<C: PjrtClient>(args: View<'_, PJRT_Buffer_ElementType_Args>) -> Result<()> {
    let element_type = handle!(args.buffer: BufferHandle<C>)?.shape.element_type;
    output!(args.type_ = PJRT_Buffer_Type(element_type as u32));
    Ok(())
}

/// `PJRT_Buffer_Dimensions`. The dimensions stay readable after the buffer is deleted.
pub(crate) fn buffer_dimensions<C: PjrtClient>(args: View<'_, PJRT_Buffer_Dimensions_Args>) -> Result<()> {
    output_slice!(args.dims, num_dims = handle!(args.buffer: BufferHandle<C>)?.shape.dims());
    Ok(())
}

/// `PJRT_Buffer_UnpaddedDimensions`. No dimension is padded.
pub(crate) fn buffer_unpadded_dimensions<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_UnpaddedDimensions_Args>,
) -> Result<()> {
    output_slice!(args.unpadded_dims, num_dims = handle!(args.buffer: BufferHandle<C>)?.shape.dims());
    Ok(())
}

/// `PJRT_Buffer_DynamicDimensionIndices`. No dimension is dynamic.
pub(crate) fn buffer_dynamic_dimension_indices<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_DynamicDimensionIndices_Args>,
) -> Result<()> {
    handle!(args.buffer: BufferHandle<C>)?;
    output!(args.dynamic_dim_indices = ptr::null());
    output!(args.num_dynamic_dims = 0);
    Ok(())
}

/// `PJRT_Buffer_GetMemoryLayout`. Hosts older than C API 0.55 abort if it fails.
pub(crate) fn buffer_get_memory_layout<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_GetMemoryLayout_Args>,
) -> Result<()> {
    let order = handle!(args.buffer: BufferHandle<C>)?.shape.minor_to_major();
    let tiled = PJRT_Buffer_MemoryLayout_Tiled {
        minor_to_major: order.as_ptr(),
        minor_to_major_size: order.len(),
        ..PJRT_Buffer_MemoryLayout_Tiled::zeroed()
    };
    output!(
        args.layout = PJRT_Buffer_MemoryLayout {
            u: PJRT_Buffer_MemoryLayout_Union { tiled },
            type_: PJRT_Buffer_MemoryLayout_Type_Tiled,
            ..PJRT_Buffer_MemoryLayout::zeroed()
        }
    );
    Ok(())
}

/// `PJRT_Buffer_Device`.
pub(crate) fn buffer_device<C: PjrtClient>(args: View<'_, PJRT_Buffer_Device_Args>) -> Result<()> {
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    output!(args.device = buffer.client.device_pointer(buffer.device));
    Ok(())
}

/// `PJRT_Buffer_Memory`.
pub(crate) fn buffer_memory<C: PjrtClient>(args: View<'_, PJRT_Buffer_Memory_Args>) -> Result<()> {
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    output!(args.memory = buffer.client.memory_pointer(buffer.memory));
    Ok(())
}

/// `PJRT_Buffer_IsDeleted`.
pub(crate) fn buffer_is_deleted<C: PjrtClient>(args: View<'_, PJRT_Buffer_IsDeleted_Args>) -> Result<()> {
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    // In a forked child, a thread that does not exist there may hold the lock.
    output!(args.is_deleted = !fork::is_child() && buffer.state.is_deleted());
    Ok(())
}

/// `PJRT_Buffer_IsOnCpu`. The answer must not change during a buffer's life, so it depends only on the memory.
pub(crate) fn buffer_is_on_cpu<C: PjrtClient>(args: View<'_, PJRT_Buffer_IsOnCpu_Args>) -> Result<()> {
    output!(args.is_on_cpu = handle!(args.buffer: BufferHandle<C>)?.is_host_accessible());
    Ok(())
}

/// `PJRT_Buffer_ReadyEvent`.
pub(crate) fn buffer_ready_event<C: PjrtClient>(args: View<'_, PJRT_Buffer_ReadyEvent_Args>) -> Result<()> {
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    let event = if fork::is_child() { Event::failed(fork::refusal()) } else { buffer.state.ready_event() };
    output!(args.event = event_to_raw(event));
    Ok(())
}

/// `PJRT_Buffer_Destroy`.
pub(crate) fn buffer_destroy<C: PjrtClient>(args: View<'_, PJRT_Buffer_Destroy_Args>) -> Result<()> {
    // SAFETY: the host passes ownership of the buffer.
    drop(unsafe { handle::from_raw::<BufferHandle<C>>(input!(args.buffer), "buffer") }?);
    Ok(())
}

/// `PJRT_Buffer_OnDeviceSizeInBytes`. A buffer without storage, or in error, has the size of its dense array.
pub(crate) fn buffer_on_device_size_in_bytes<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_OnDeviceSizeInBytes_Args>,
) -> Result<()> {
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    let size = match buffer.state.share()?.share.storage() {
        Some(Ok(storage)) => storage.size_in_bytes(),
        Some(Err(_)) | None => buffer.shape.host_size(),
    };
    output!(args.on_device_size_in_bytes = size);
    Ok(())
}

/// `PJRT_Buffer_Delete`. Executions and copies that use the storage keep it alive.
pub(crate) fn buffer_delete<C: PjrtClient>(args: View<'_, PJRT_Buffer_Delete_Args>) -> Result<()> {
    handle!(args.buffer: BufferHandle<C>)?.state.delete();
    Ok(())
}

/// `PJRT_Buffer_UnsafePointer`.
pub(crate) fn buffer_unsafe_pointer<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_UnsafePointer_Args>,
) -> Result<()> {
    output!(args.buffer_pointer = handle!(args.buffer: BufferHandle<C>)?.address()?);
    Ok(())
}

/// `PJRT_Buffer_IncreaseExternalReferenceCount`: keeps the storage at its address until
/// `PJRT_Buffer_DecreaseExternalReferenceCount` has been called as often.
pub(crate) fn buffer_increase_external_reference_count<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_IncreaseExternalReferenceCount_Args>,
) -> Result<()> {
    handle!(args.buffer: BufferHandle<C>)?.state.pin()
}

/// `PJRT_Buffer_DecreaseExternalReferenceCount`.
pub(crate) fn buffer_decrease_external_reference_count<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_DecreaseExternalReferenceCount_Args>,
) -> Result<()> {
    handle!(args.buffer: BufferHandle<C>)?.state.unpin()
}

/// `PJRT_Buffer_OpaqueDeviceMemoryDataPointer`.
pub(crate) fn buffer_opaque_device_memory_data_pointer<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>,
) -> Result<()> {
    let address = handle!(args.buffer: BufferHandle<C>)?.address()?;
    output!(args.device_memory_ptr = ptr::with_exposed_provenance_mut(address));
    Ok(())
}
