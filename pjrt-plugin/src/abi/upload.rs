//! Buffers that the host creates.
//!
//! `PJRT_Client_BufferFromHostBuffer`, `PJRT_Client_CreateViewOfDeviceBuffer`,
//! `PJRT_Client_CreateUninitializedBuffer`, `PJRT_Client_CreateAliasBuffer`,
//! `PJRT_Client_FulfillAliasBuffer`, `PJRT_Client_CreateErrorBuffer`.

use std::ptr;

use pjrt_sys::{
    PJRT_Buffer_MemoryLayout, PJRT_Client_BufferFromHostBuffer_Args, PJRT_Client_CreateAliasBuffer_Args,
    PJRT_Client_CreateErrorBuffer_Args, PJRT_Client_CreateUninitializedBuffer_Args,
    PJRT_Client_CreateViewOfDeviceBuffer_Args, PJRT_Client_FulfillAliasBuffer_Args, PJRT_Device,
    PJRT_FulfillAliasBufferCallback, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
    PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes, PJRT_HostBufferSemantics_kImmutableZeroCopy,
    PJRT_HostBufferSemantics_kMutableZeroCopy, PJRT_Memory,
};

use crate::abi::args::{View, element_type, handle, input, null, output, slice};
use crate::abi::buffer::BufferHandle;
use crate::abi::client_state::ClientState;
use crate::abi::error::{host_error, with_payloads};
use crate::abi::event::event_to_raw;
use crate::abi::handle::{self, Handle, borrow};
use crate::abi::layout::{HostArray, HostLayout, check_strides, host_array, read_layout};
use crate::buffer::PjrtBuffer;
use crate::client::{Location, PjrtClient, Placement, Upload, Uploader};
use crate::core::allocate::zeros;
use crate::core::event::Event;
use crate::core::host_memory::HostPointer;
use crate::core::host_memory::{HostBytes, ViewedBytes};
use crate::core::storage::{BufferState, StoragePromise};
use crate::core::sync::Arc;
use crate::error::{Error, Result};
use crate::host_buffer::HostBuffer;
use crate::host_view::HostView;
use crate::layout::Layout;
use crate::shape::Shape;

impl Location {
    /// Returns the location that a host specifies with a device and a memory, of which at least one is not null.
    pub(crate) fn of<C: PjrtClient>(
        client: &ClientState<C>,
        device: *const PJRT_Device,
        memory: *const PJRT_Memory,
    ) -> Result<Self> {
        let device = if device.is_null() { None } else { Some(client.index_of_device(device)?) };
        let memory = if memory.is_null() { None } else { Some(client.index_of_memory(memory)?) };
        let place = match (device, memory) {
            (None, None) => {
                return Err(Error::invalid_argument(
                    "'device' and 'memory' are both null; one of them must be set",
                ));
            }
            (None, Some(memory)) => Self { device: client.device_of_memory(memory)?, memory },
            (Some(device), None) => Self { device, memory: client.memory_of(device, None)? },
            (Some(device), Some(memory)) => Self { device, memory },
        };
        let device = &client.devices[place.device];
        if !device.memory_indices.contains(&place.memory) {
            return Err(Error::invalid_argument(format!(
                "device {} cannot address the memory; its memories are those of PJRT_Device_AddressableMemories",
                device.id()
            )));
        }
        if !device.addressable {
            return Err(Error::invalid_argument(format!(
                "device {} is not addressable by this process",
                device.id()
            )));
        }
        Ok(place)
    }

    pub(crate) fn placement<'a, C: PjrtClient>(
        self,
        client: &'a ClientState<C>,
        layout: Option<&'a Layout>,
    ) -> Result<Placement<'a, C>> {
        Ok(Placement {
            device: client.author_device(self.device)?,
            memory: &client.memories[self.memory].memory,
            layout,
            uploader: client,
            place: self,
        })
    }
}

impl<C: PjrtClient> Uploader<C> for ClientState<C> {
    fn upload_later(&self, place: Location, layout: Option<&Layout>) -> Result<Upload<C>> {
        let (client, layout) = (self.share()?, layout.cloned());
        Ok(Box::new(move |data| {
            client.client.buffer_from_host(data, place.placement(&client, layout.as_ref())?)
        }))
    }
}

/// Reads the layout that a host requests on the device. Returns `None` if it is row-major or byte strides.
///
/// # Safety
///
/// The same as for [`read_layout`].
unsafe fn device_layout(layout: *const PJRT_Buffer_MemoryLayout, rank: usize) -> Result<Option<Layout>> {
    if layout.is_null() {
        return Ok(None);
    }
    // SAFETY: this function's contract.
    Ok(match unsafe { read_layout(layout, rank) }? {
        Some(HostLayout::Tiled(layout)) if !layout.is_row_major() => Some(layout),
        _ => None,
    })
}

/// Passes ownership of a new buffer to the host.
#[inline(always)]
pub(crate) fn buffer_to_raw<C: PjrtClient>(
    client: &ClientState<C>,
    place: Location,
    shape: Shape,
    state: BufferState<C::Buffer>,
) -> Result<*mut pjrt_sys::PJRT_Buffer> {
    let client = client.share()?;
    Ok(handle::make_raw(|| BufferHandle::new(client, place, shape, state)))
}

/// Uploads an array, and passes ownership of the buffer to the host.
#[inline]
fn upload<C: PjrtClient>(
    client: &ClientState<C>,
    data: HostBuffer,
    shape: Shape,
    place: Location,
    layout: Option<&Layout>,
) -> Result<*mut pjrt_sys::PJRT_Buffer> {
    let pending = client.explain(client.client.buffer_from_host(data, place.placement(client, layout)?))?;
    buffer_to_raw(client, place, shape, BufferState::from_pending(pending))
}

/// Returns an error if the host's memory is null, or not aligned for the array's elements.
fn check_viewed(shape: &Shape, data: *const u8) -> Result<()> {
    if shape.host_size() == 0 {
        return Ok(());
    }
    if data.is_null() {
        return Err(null("device_buffer_ptr"));
    }
    let alignment = shape.element_type.alignment();
    if !data.addr().is_multiple_of(alignment) {
        return Err(Error::invalid_argument(format!(
            "cannot create a view of the array {shape} at the address {data:p}, which is not a multiple of the elements' \
             alignment of {alignment} bytes"
        ))
        .with_hint("allocate the memory with that alignment, or copy it with PJRT_Client_BufferFromHostBuffer"));
    }
    Ok(())
}

/// Creates a buffer over the host's memory with the author's function, and passes ownership of it to the host.
fn view<C: PjrtClient>(
    client: &ClientState<C>,
    view: HostView,
    shape: Shape,
    place: Location,
) -> Result<*mut pjrt_sys::PJRT_Buffer> {
    let memory = &client.memories[place.memory].memory;
    if !memory.is_host_accessible() {
        return Err(Error::unimplemented(format!(
            "the plugin '{}' cannot create views of host memory in its memory '{}', which is not host-accessible",
            C::PLATFORM_NAME,
            memory.kind()
        ))
        .with_hint("copy the memory with PJRT_Client_BufferFromHostBuffer"));
    }
    let address = view.address();
    let storage = client.explain(client.client.view_host_memory(view, place.placement(client, None)?))?;
    // A copy would have outdated values after the host writes to its memory.
    if storage.host_view().map(HostView::address) != Some(address) {
        return Err(Error::internal(format!(
            "PjrtClient::view_host_memory of the plugin '{}' returned a buffer that does not use the view: its \
             PjrtBuffer::host_view is not at the view's address",
            C::PLATFORM_NAME
        )));
    }
    buffer_to_raw(client, place, shape, BufferState::allocated(Arc::new(storage), Event::ready()))
}

/// `PJRT_Client_BufferFromHostBuffer`: uploads an array. The event completes when the host's memory is released.
pub(crate) fn client_buffer_from_host_buffer<C: PjrtClient>(
    args: View<'_, PJRT_Client_BufferFromHostBuffer_Args>,
) -> Result<()> {
    output!(args.done_with_host_buffer = ptr::null_mut());
    output!(args.buffer = ptr::null_mut());
    let client = handle!(args.client: ClientState<C>)?;
    let dims = slice!(args.dims as i64, num_dims)?;
    let shape = Shape::new(element_type(input!(args.type_))?, dims)?;
    let strides = slice!(args.byte_strides as i64, num_byte_strides)?;
    let strides = if input!(args.byte_strides).is_null() || (strides.is_empty() && !dims.is_empty()) {
        None
    } else {
        check_strides(strides, dims.len())?;
        Some(strides)
    };
    let place = Location::of(client, input!(args.device), input!(args.memory))?;
    // SAFETY: the field is null or a layout of the host.
    let layout = unsafe { device_layout(input!(args.device_layout), dims.len()) }?;
    let placed = match strides {
        None => HostArray::dense(shape.host_size()),
        Some(_) => host_array(dims, strides, shape.element_type.byte_size())?,
    };
    let data: *const u8 = input!(args.data).cast();
    let len = placed.below + placed.above;
    if data.is_null() && shape.host_size() > 0 {
        return Err(null("data"));
    }
    let (only_during_call, may_alias) = match input!(args.host_buffer_semantics) {
        PJRT_HostBufferSemantics_kImmutableOnlyDuringCall => (true, false),
        PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes => (false, false),
        PJRT_HostBufferSemantics_kImmutableZeroCopy | PJRT_HostBufferSemantics_kMutableZeroCopy => {
            (false, true)
        }
        other => {
            return Err(Error::invalid_argument(format!(
                "{} is not a value of PJRT_HostBufferSemantics",
                other.0
            )));
        }
    };
    let (released, done) = Event::pending();
    let len = if shape.host_size() == 0 { 0 } else { len };
    // SAFETY: the host lends the array that data, dimensions and strides describe until the event completes. The event
    // completes when the buffer created here is dropped; memory that is lent only during this call is copied immediately. The
    // array occupies `below` bytes before `data` and `above` bytes from it on.
    let bytes = unsafe { HostBytes::new(data.wrapping_sub(placed.below), len) };
    let mut lent = HostBuffer::lent(bytes, shape.clone(), placed.strided, may_alias, released);
    if only_during_call {
        client.explain(lent.detach())?;
    }
    let buffer = upload(client, lent, shape, place, layout.as_ref())?;
    // A complete event becomes the shared ready event.
    let done = if done.is_ready() { Event::ready() } else { done };
    output!(args.done_with_host_buffer = event_to_raw(done));
    output!(args.buffer = buffer);
    Ok(())
}

/// `PJRT_Client_CreateViewOfDeviceBuffer`: creates a buffer over memory that the host may continue to write to.
pub(crate) fn client_create_view_of_device_buffer<C: PjrtClient>(
    args: View<'_, PJRT_Client_CreateViewOfDeviceBuffer_Args>,
) -> Result<()> {
    output!(args.buffer = ptr::null_mut());
    let client = handle!(args.client: ClientState<C>)?;
    let dims = slice!(args.dims as i64, num_dims)?;
    let shape = Shape::new(element_type(input!(args.element_type))?, dims)?;
    let place = Location::of(client, input!(args.device), input!(args.memory))?;
    // SAFETY: the field is null or a layout of the host.
    if unsafe { device_layout(input!(args.layout), dims.len()) }?.is_some() {
        return Err(Error::invalid_argument("a view of memory must have a dense, row-major layout"));
    }
    let data = input!(args.device_buffer_ptr);
    check_viewed(&shape, data.cast())?;
    let (released, done) = Event::pending();
    // SAFETY: the host lends the array until its callback reports that the buffer is deleted, which is when the value
    // created here and its leases are dropped. The host does not write to it during operations on the buffer.
    let bytes = unsafe { ViewedBytes::new(data.cast(), shape.host_size()) };
    let buffer = view(client, HostView::new(bytes, shape.clone(), released), shape, place)?;
    // The callback is registered only if the view was created.
    if let Some(callback) = input!(args.on_delete_callback) {
        let (data, user_arg) = (HostPointer(data), HostPointer(input!(args.on_delete_callback_arg)));
        done.on_ready(move |_| {
            // SAFETY: the host allows one call of the callback, on any thread, with these arguments.
            unsafe { callback(data.get(), user_arg.get()) };
        });
    }
    output!(args.buffer = buffer);
    Ok(())
}

/// `PJRT_Client_CreateUninitializedBuffer`: creates a buffer of zeros, because uninitialized storage could leak earlier
/// content.
pub(crate) fn client_create_uninitialized_buffer<C: PjrtClient>(
    args: View<'_, PJRT_Client_CreateUninitializedBuffer_Args>,
) -> Result<()> {
    output!(args.buffer = ptr::null_mut());
    let client = handle!(args.client: ClientState<C>)?;
    let dims = slice!(args.shape_dims as i64, shape_num_dims)?;
    let shape = Shape::new(element_type(input!(args.shape_element_type))?, dims)?;
    let place = Location::of(client, input!(args.device), input!(args.memory))?;
    // SAFETY: the field is null or a layout of the host.
    let layout = unsafe { device_layout(input!(args.shape_layout), dims.len()) }?;
    let data = HostBuffer::dense(shape.clone(), client.explain(zeros(shape.host_size()))?)?;
    output!(args.buffer = upload(client, data, shape, place, layout.as_ref())?);
    Ok(())
}

/// `PJRT_Client_CreateErrorBuffer`: creates a buffer in error.
pub(crate) fn client_create_error_buffer<C: PjrtClient>(
    args: View<'_, PJRT_Client_CreateErrorBuffer_Args>,
) -> Result<()> {
    output!(args.buffer = ptr::null_mut());
    let client = handle!(args.client: ClientState<C>)?;
    let dims = slice!(args.shape_dims as i64, shape_num_dims)?;
    let shape = Shape::new(element_type(input!(args.shape_element_type))?, dims)?;
    let place = Location::of(client, ptr::null(), input!(args.memory))?;
    // SAFETY: message and size describe a string of the host.
    let error = unsafe {
        host_error(input!(args.error_code), input!(args.error_message), input!(args.error_message_size))
    };
    // SAFETY: pointer and length describe an array of the host.
    let error = unsafe { with_payloads(error, input!(args.payload), input!(args.num_payload)) }?;
    output!(args.buffer = buffer_to_raw(client, place, shape, BufferState::failed(error.reported()))?);
    Ok(())
}

/// `PJRT_Client_CreateAliasBuffer`: creates a buffer that is an alias of the one that a later
/// `PJRT_Client_FulfillAliasBuffer` passes.
pub(crate) fn client_create_alias_buffer<C: PjrtClient>(
    args: View<'_, PJRT_Client_CreateAliasBuffer_Args>,
) -> Result<()> {
    output!(args.alias_buffer = ptr::null_mut());
    output!(args.fulfill_alias_buffer_cb = ptr::null_mut());
    let client = handle!(args.client: ClientState<C>)?;
    let dims = slice!(args.shape_dims as i64, shape_num_dims)?;
    let shape = Shape::new(element_type(input!(args.shape_element_type))?, dims)?;
    let place = Location::of(client, ptr::null(), input!(args.memory))?;
    let (state, promise) = BufferState::promised_by_host();
    output!(args.alias_buffer = buffer_to_raw(client, place, shape.clone(), state)?);
    output!(args.fulfill_alias_buffer_cb = handle::into_raw(AliasPromise::<C> { shape, promise }));
    Ok(())
}

/// `PJRT_Client_FulfillAliasBuffer`. The client is not read, because hosts may leave it uninitialized.
pub(crate) fn client_fulfill_alias_buffer<C: PjrtClient>(
    args: View<'_, PJRT_Client_FulfillAliasBuffer_Args>,
) -> Result<()> {
    // SAFETY: the host passes ownership of the promise, which came from `PJRT_Client_CreateAliasBuffer`.
    let alias = unsafe {
        handle::from_raw::<AliasPromise<C>>(input!(args.fulfill_alias_buffer_cb), "fulfill_alias_buffer_cb")
    }?;
    let mut alias = alias.ok_or_else(|| null("fulfill_alias_buffer_cb"))?;
    let buffer = input!(args.buffer);
    if buffer.is_null() {
        let message = (input!(args.status_code), input!(args.error_message), input!(args.error_message_size));
        // SAFETY: message and size describe a string of the host.
        let error = unsafe { host_error(message.0, message.1, message.2) };
        alias.promise.deliver_shared(Err(error.reported()));
        return Ok(());
    }
    // SAFETY: the buffer is one of this client.
    let buffer = unsafe { borrow::<BufferHandle<C>>(buffer, "buffer") }?;
    if buffer.shape != alias.shape {
        let error = Error::invalid_argument(format!(
            "the alias buffer has the shape {}, and cannot be fulfilled with a buffer of shape {}",
            alias.shape, buffer.shape
        ));
        alias.promise.deliver_shared(Err(error.clone()));
        return Err(error);
    }
    let held = buffer.state.share()?;
    alias.promise.host_has_acted(&held.host);
    let allocated = held.allocated.clone();
    allocated.on_ready(move |_| {
        alias.promise.deliver_shared(held.share.into_storage().map(|storage| (storage, held.ready)));
    });
    Ok(())
}

/// The object behind a `PJRT_FulfillAliasBufferCallback`: the promise of an alias buffer's storage.
struct AliasPromise<C: PjrtClient> {
    shape: Shape,
    promise: StoragePromise<C::Buffer>,
}

impl<C: PjrtClient> Handle for AliasPromise<C> {
    type Opaque = PJRT_FulfillAliasBufferCallback;
    const KIND: &'static str = "PJRT_FulfillAliasBufferCallback";
}
