//! Transfer managers, which fill buffers with data that arrives in chunks.
//!
//! `PJRT_AsyncHostToDeviceTransferManager_Destroy`, `PJRT_AsyncHostToDeviceTransferManager_TransferData`,
//! `PJRT_Client_CreateBuffersForAsyncHostToDevice`, `PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer`,
//! `PJRT_AsyncHostToDeviceTransferManager_Device`, `PJRT_AsyncHostToDeviceTransferManager_BufferCount`,
//! `PJRT_AsyncHostToDeviceTransferManager_BufferSize`,
//! `PJRT_AsyncHostToDeviceTransferManager_SetBufferError`,
//! `PJRT_AsyncHostToDeviceTransferManager_AddMetadata`,
//! `PJRT_AsyncHostToDeviceTransferManager_TransferLiteral`.

use std::ptr;
use std::sync::{Arc, Mutex};

use pjrt_sys::{
    PJRT_AsyncHostToDeviceTransferManager, PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args,
    PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args,
    PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args,
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, PJRT_AsyncHostToDeviceTransferManager_Device_Args,
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args,
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args,
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args,
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, PJRT_Buffer_MemoryLayout,
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, PJRT_ShapeSpec,
};

use crate::abi::args::{View, bytes, element_type, handle, input, null, output, slice};
use crate::abi::c_arrays::read_named_values;
use crate::abi::client_state::ClientState;
use crate::abi::download::raw_range;
use crate::abi::error::host_error;
use crate::abi::event::event_to_raw;
use crate::abi::handle::{self, Handle};
use crate::abi::layout::{HostLayout, host_array, read_layout};
use crate::abi::upload::buffer_to_raw;
use crate::client::Location;
use crate::client::PjrtClient;
use crate::core::allocate::{self, zeros};
use crate::core::event::Event;
use crate::core::host_memory::HostBytes;
use crate::core::panic_guard;
use crate::core::storage::{BufferState, StoragePromise};
use crate::core::sync::lock;
use crate::error::{Error, Result};
use crate::host_buffer::HostBuffer;
use crate::layout::Layout;
use crate::shape::Shape;

/// The object behind a `PJRT_AsyncHostToDeviceTransferManager`: buffers of one memory that wait for their data.
pub(crate) struct TransferManager<C: PjrtClient> {
    client: Arc<ClientState<C>>,
    place: Location,
    buffers: Vec<Transfer<C>>,
}

/// The transfer of one buffer.
struct Transfer<C: PjrtClient> {
    shape: Shape,
    /// The layout of the chunks; `None` is row-major.
    layout: Option<Layout>,
    progress: Mutex<Progress<C::Buffer>>,
}

struct Progress<B> {
    /// The buffer, until the host retrieves it.
    buffer: Option<BufferState<B>>,
    /// The promise of the storage, until the data is complete or there is an error.
    promise: Option<StoragePromise<B>>,
    /// The data received so far; empty before the first chunk.
    bytes: Vec<u8>,
}

/// The complete data, and the promise of the storage that must be kept by uploading it.
type Complete<B> = (StoragePromise<B>, Vec<u8>);

impl<C: PjrtClient> Handle for TransferManager<C> {
    type Opaque = PJRT_AsyncHostToDeviceTransferManager;
    const KIND: &'static str = "PJRT_AsyncHostToDeviceTransferManager";
}

impl<C: PjrtClient> Drop for TransferManager<C> {
    /// Fails the buffers that were not filled, so that their readers do not wait forever.
    fn drop(&mut self) {
        for transfer in &self.buffers {
            if let Some(promise) = transfer.take_promise() {
                let error =
                    Error::cancelled("the transfer manager was destroyed before the buffer was filled");
                promise.deliver(Err(error));
            }
        }
    }
}

impl<C: PjrtClient> TransferManager<C> {
    fn transfer(&self, index: i32) -> Result<&Transfer<C>> {
        let transfer = usize::try_from(index).ok().and_then(|index| self.buffers.get(index));
        transfer.ok_or_else(|| {
            Error::invalid_argument(format!(
                "buffer_index {index} is out of range for a transfer manager of {} buffers",
                self.buffers.len()
            ))
        })
    }

    /// Uploads the complete data, which is dense and row-major. An error is returned, and set on the buffer too.
    fn upload(
        &self,
        transfer: &Transfer<C>,
        mut promise: StoragePromise<C::Buffer>,
        dense: Vec<u8>,
    ) -> Result<()> {
        promise.host_has_acted(&Event::ready());
        let shape = &transfer.shape;
        let upload = || {
            let data = HostBuffer::dense(shape.clone(), dense)?;
            let to = self.place.placement(&self.client, transfer.layout.as_ref())?;
            self.client.client.buffer_from_host(data, to)
        };
        match panic_guard::catch(upload) {
            Ok(pending) => {
                pending.receive(move |value| promise.deliver(value));
                Ok(())
            }
            Err(error) => {
                promise.deliver(Err(error.clone()));
                Err(error)
            }
        }
    }
}

impl<C: PjrtClient> Transfer<C> {
    fn new(shape: Shape, layout: Option<Layout>) -> Self {
        let (buffer, promise) = BufferState::promised_by_host();
        let progress = Progress { buffer: Some(buffer), promise: Some(promise), bytes: Vec::new() };
        Self { shape, layout, progress: Mutex::new(progress) }
    }

    fn take_promise(&self) -> Option<StoragePromise<C::Buffer>> {
        lock(&self.progress).promise.take()
    }

    /// Copies a chunk to its offset. Returns the complete data after the last chunk.
    fn add(&self, offset: i64, piece: &[u8], is_last: bool) -> Result<Option<Complete<C::Buffer>>> {
        let len = i64::try_from(piece.len()).unwrap_or(i64::MAX);
        let range = raw_range(&self.shape, offset, len)?;
        let size = self.shape.host_size();
        let mut progress = lock(&self.progress);
        if progress.promise.is_none() {
            return Err(complete());
        }
        if is_last && progress.bytes.is_empty() && piece.len() == size {
            progress.bytes = allocate::copy(piece)?;
        } else {
            if progress.bytes.is_empty() {
                progress.bytes = zeros(size)?;
            }
            progress.bytes[range].copy_from_slice(piece);
        }
        if !is_last {
            return Ok(None);
        }
        let bytes = std::mem::take(&mut progress.bytes);
        Ok(progress.promise.take().map(|promise| (promise, bytes)))
    }

    /// Converts data from the layout of the chunks to dense and row-major.
    fn dense(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let Some(layout) = &self.layout else { return Ok(bytes) };
        let (dims, element_size) = (self.shape.dims(), self.shape.element_type.byte_size());
        let strides = layout.byte_strides(dims, element_size);
        let Some(strided) = host_array(dims, Some(&strides), element_size)?.strided else { return Ok(bytes) };
        let mut dense = zeros(bytes.len())?;
        strided.gather(&bytes, &mut dense);
        Ok(dense)
    }
}

/// Returns the error for data that arrives after the last chunk or an error.
fn complete() -> Error {
    Error::failed_precondition(
        "the buffer accepts no more data: its last chunk has been transferred, or an error has been set",
    )
}

/// Reads the layout of a buffer's chunks. Returns `None` for row-major.
///
/// # Safety
///
/// The same as for [`read_layout`].
unsafe fn piece_layout(layout: *const PJRT_Buffer_MemoryLayout, rank: usize) -> Result<Option<Layout>> {
    // SAFETY: this function's contract.
    match unsafe { read_layout(layout, rank) }? {
        None => Ok(None),
        Some(HostLayout::Tiled(layout)) if layout.tiles().is_empty() => {
            Ok(Some(layout).filter(|layout| !layout.is_row_major()))
        }
        Some(HostLayout::Tiled(layout)) => Err(Error::unimplemented(format!(
            "a transfer in a layout with the tiles {:?} is not supported; use a layout without tiles",
            layout.tiles()
        ))),
        Some(HostLayout::Strides(_)) => Err(Error::unimplemented(
            "a transfer in a layout of byte strides is not supported; use a layout with minor_to_major",
        )),
    }
}

/// `PJRT_Client_CreateBuffersForAsyncHostToDevice`: creates pending buffers, and the manager that fills them.
pub(crate) fn client_create_buffers_for_async_host_to_device<C: PjrtClient>(
    args: View<'_, PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>,
) -> Result<()> {
    output!(args.transfer_manager = ptr::null_mut());
    let client = handle!(args.client: ClientState<C>)?;
    let specs = slice!(args.shape_specs as PJRT_ShapeSpec, num_shape_specs)?;
    let layouts: &[*mut PJRT_Buffer_MemoryLayout] = if input!(args.device_layouts).is_null() {
        &[]
    } else {
        slice!(args.device_layouts as *mut PJRT_Buffer_MemoryLayout, num_device_layouts)?
    };
    if !layouts.is_empty() && layouts.len() != specs.len() {
        return Err(Error::invalid_argument(format!(
            "there are {} device layouts for {} buffers; pass one for each buffer, or none",
            layouts.len(),
            specs.len()
        )));
    }
    let place = Location::of(client, ptr::null(), input!(args.memory))?;
    let mut buffers = Vec::with_capacity(specs.len());
    for (index, spec) in specs.iter().enumerate() {
        // SAFETY: pointer and length in the host's struct describe an array.
        let dims = unsafe { crate::abi::args::borrowed_slice(spec.dims, spec.num_dims, "dims") }?;
        let shape = Shape::new(element_type(spec.element_type)?, dims)?;
        let layout = layouts.get(index).copied().unwrap_or(ptr::null_mut());
        // SAFETY: the element is null or a layout of the host.
        let layout = unsafe { piece_layout(layout, dims.len()) }?;
        buffers.push(Transfer::new(shape, layout));
    }
    let manager = TransferManager::<C> { client: client.share()?, place, buffers };
    output!(args.transfer_manager = handle::into_raw(manager));
    Ok(())
}

/// `PJRT_AsyncHostToDeviceTransferManager_Destroy`. Buffers that have not been filled fail.
pub(crate) fn async_host_to_device_transfer_manager_destroy<C: PjrtClient>(
    args: View<'_, PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>,
) -> Result<()> {
    let manager = input!(args.transfer_manager);
    // SAFETY: the host passes ownership of the manager, which came from `PJRT_Client_CreateBuffersForAsyncHostToDevice`.
    drop(unsafe { handle::from_raw::<TransferManager<C>>(manager, "transfer_manager") }?);
    Ok(())
}

/// `PJRT_AsyncHostToDeviceTransferManager_TransferData`: copies a chunk of a buffer during the call. Bytes that no chunk
/// covers are zero.
pub(crate) fn async_host_to_device_transfer_manager_transfer_data<C: PjrtClient>(
    args: View<'_, PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>,
) -> Result<()> {
    output!(args.done_with_h2d_transfer = ptr::null_mut());
    let manager = handle!(args.transfer_manager: TransferManager<C>)?;
    let transfer = manager.transfer(input!(args.buffer_index))?;
    let size = input!(args.transfer_size);
    let size = usize::try_from(size)
        .map_err(|_| Error::invalid_argument(format!("transfer_size must be at least 0, found {size}")))?;
    // SAFETY: the host lends `transfer_size` bytes until the event completes, which is when the call returns.
    let piece = unsafe { crate::abi::args::borrowed_slice::<u8>(input!(args.data).cast(), size, "data") }?;
    if let Some((promise, bytes)) = transfer.add(input!(args.offset), piece, input!(args.is_last_transfer))? {
        match transfer.dense(bytes) {
            Ok(dense) => manager.upload(transfer, promise, dense)?,
            Err(error) => {
                promise.deliver(Err(error.clone()));
                return Err(error);
            }
        }
    }
    output!(args.done_with_h2d_transfer = event_to_raw(Event::ready()));
    Ok(())
}

/// `PJRT_AsyncHostToDeviceTransferManager_TransferLiteral`: copies a whole array, in its own layout, during the call.
pub(crate) fn async_host_to_device_transfer_manager_transfer_literal<C: PjrtClient>(
    args: View<'_, PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args>,
) -> Result<()> {
    output!(args.done_with_h2d_transfer = ptr::null_mut());
    let manager = handle!(args.transfer_manager: TransferManager<C>)?;
    let transfer = manager.transfer(input!(args.buffer_index))?;
    let dims = slice!(args.shape_dims as i64, shape_num_dims)?;
    let literal = Shape::new(element_type(input!(args.shape_element_type))?, dims)?;
    if literal != transfer.shape {
        return Err(Error::invalid_argument(format!(
            "cannot transfer a literal of shape {literal} to a buffer of shape {}",
            transfer.shape
        )));
    }
    // SAFETY: the field is null or a layout of the host.
    let layout = unsafe { piece_layout(input!(args.shape_layout), dims.len()) }?;
    let element_size = literal.element_type.byte_size();
    let strides = layout.map(|layout| layout.byte_strides(dims, element_size));
    let placed = host_array(dims, strides.as_deref(), element_size)?;
    let (data, size): (*const u8, _) = (input!(args.data).cast(), literal.host_size());
    if data.is_null() && size > 0 {
        return Err(null("data"));
    }
    // SAFETY: the host lends the array, which is dense in some order of dimensions, until the event completes, which is when
    // the call returns.
    let lent = unsafe { HostBytes::new(data, size) };
    let (released, _) = Event::pending();
    let dense = HostBuffer::lent(lent, literal, placed.strided, false, released).to_vec()?;
    let promise = transfer.take_promise().ok_or_else(complete)?;
    manager.upload(transfer, promise, dense)?;
    output!(args.done_with_h2d_transfer = event_to_raw(Event::ready()));
    Ok(())
}

/// `PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer`: returns a buffer, which may be pending. Each buffer can be
/// retrieved once.
pub(crate) fn async_host_to_device_transfer_manager_retrieve_buffer<C: PjrtClient>(
    args: View<'_, PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>,
) -> Result<()> {
    output!(args.buffer_out = ptr::null_mut());
    let manager = handle!(args.transfer_manager: TransferManager<C>)?;
    let index = input!(args.buffer_index);
    let transfer = manager.transfer(index)?;
    let state = lock(&transfer.progress).buffer.take();
    let state = state.ok_or_else(|| {
        Error::failed_precondition(format!(
            "buffer {index} of the transfer manager has already been retrieved"
        ))
    })?;
    let buffer = buffer_to_raw(&manager.client, manager.place, transfer.shape.clone(), state)?;
    output!(args.buffer_out = buffer);
    Ok(())
}

/// `PJRT_AsyncHostToDeviceTransferManager_Device`.
pub(crate) fn async_host_to_device_transfer_manager_device<C: PjrtClient>(
    args: View<'_, PJRT_AsyncHostToDeviceTransferManager_Device_Args>,
) -> Result<()> {
    let manager = handle!(args.transfer_manager: TransferManager<C>)?;
    output!(args.device_out = manager.client.device_pointer(manager.place.device));
    Ok(())
}

/// `PJRT_AsyncHostToDeviceTransferManager_BufferCount`.
pub(crate) fn async_host_to_device_transfer_manager_buffer_count<C: PjrtClient>(
    args: View<'_, PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args>,
) -> Result<()> {
    let manager = handle!(args.transfer_manager: TransferManager<C>)?;
    output!(args.buffer_count = manager.buffers.len());
    Ok(())
}

/// `PJRT_AsyncHostToDeviceTransferManager_BufferSize`: returns the number of bytes of all chunks of a buffer.
pub(crate) fn async_host_to_device_transfer_manager_buffer_size<C: PjrtClient>(
    args: View<'_, PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args>,
) -> Result<()> {
    let manager = handle!(args.transfer_manager: TransferManager<C>)?;
    output!(args.buffer_size = manager.transfer(input!(args.buffer_index))?.shape.host_size());
    Ok(())
}

/// `PJRT_AsyncHostToDeviceTransferManager_SetBufferError`: sets an error on a buffer instead of its data.
pub(crate) fn async_host_to_device_transfer_manager_set_buffer_error<C: PjrtClient>(
    args: View<'_, PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args>,
) -> Result<()> {
    let manager = handle!(args.transfer_manager: TransferManager<C>)?;
    let transfer = manager.transfer(input!(args.buffer_index))?;
    let message = bytes!(args.error_message, error_message_size)?;
    // SAFETY: the bytes are a string.
    let error = unsafe { host_error(input!(args.error_code), message.as_ptr().cast(), message.len()) };
    let promise = transfer.take_promise().ok_or_else(complete)?;
    promise.deliver(Err(error.reported()));
    Ok(())
}

/// `PJRT_AsyncHostToDeviceTransferManager_AddMetadata`: checks the metadata and drops it, because it is meant for profilers.
pub(crate) fn async_host_to_device_transfer_manager_add_metadata<C: PjrtClient>(
    args: View<'_, PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args>,
) -> Result<()> {
    handle!(args.transfer_manager: TransferManager<C>)?;
    // SAFETY: pointer and length describe an array of the host.
    unsafe { read_named_values(input!(args.transfer_metadata), input!(args.num_metadata)) }?;
    Ok(())
}
