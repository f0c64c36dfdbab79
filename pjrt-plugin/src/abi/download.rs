//! Copies of buffers to the host, to other devices and to other memories.
//!
//! `PJRT_Buffer_CopyToDevice`, `PJRT_Buffer_ToHostBuffer`, `PJRT_Buffer_CopyToMemory`,
//! `PJRT_Buffer_CopyRawToHost`, `PJRT_Buffer_Bitcast`.

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use pjrt_sys::{
    PJRT_Buffer_Bitcast_Args, PJRT_Buffer_CopyRawToHost_Args, PJRT_Buffer_CopyToDevice_Args,
    PJRT_Buffer_CopyToMemory_Args, PJRT_Buffer_ToHostBuffer_Args,
};

use crate::abi::args::{View, element_type, handle, input, null, output, slice};
use crate::abi::buffer::BufferHandle;
use crate::abi::event::event_to_raw;
use crate::abi::handle;
use crate::abi::layout::{HostLayout, host_array, read_layout};
use crate::buffer::PjrtBuffer;
use crate::client::Location;
use crate::client::{BufferRef, PjrtClient, Placement, through_host};
use crate::core::event::{Event, EventSource, after};
use crate::core::host_memory::HostBytesMut;
use crate::core::panic_guard;
use crate::core::promise::Pending;
use crate::core::storage::{BufferState, Held};
use crate::error::{Error, Result};
use crate::host_buffer::CopyToHost;
use crate::shape::Shape;

/// Runs a function with the storage of a buffer when its data is ready: immediately, or later on the thread that completes
/// it. If the buffer is in error, the function receives the error.
fn with_data<B: Send + Sync + 'static>(held: Held<B>, run: impl FnOnce(Result<Arc<B>>) + Send + 'static) {
    let events = vec![held.allocated.clone(), held.ready.clone()];
    after(events, move || {
        let outcome = held.outcome().unwrap_or(Ok(()));
        run(outcome.and_then(|()| held.share.into_storage()));
    });
}

/// Starts a copy to the host when the data is ready.
pub(crate) fn read_back<C: PjrtClient>(held: Held<C::Buffer>, copy: CopyToHost) {
    with_data(held, move |storage| match storage {
        Ok(storage) => storage.copy_to_host(copy),
        Err(error) => copy.fail(error),
    });
}

/// Passes an event to the host. An event that is already complete without an error becomes the shared ready event.
fn raw(event: Event) -> *mut pjrt_sys::PJRT_Event {
    event_to_raw(if matches!(event.outcome(), Some(Ok(()))) { Event::ready() } else { event })
}

/// `PJRT_Buffer_ToHostBuffer`: copies an array to host memory, in the layout that the host requests. If the destination is
/// null, only returns the size of the array.
pub(crate) fn buffer_to_host_buffer<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_ToHostBuffer_Args>,
) -> Result<()> {
    output!(args.event = ptr::null_mut());
    let buffer = handle!(args.src: BufferHandle<C>)?;
    let shape = &buffer.shape;
    let size = shape.host_size();
    let dst: *mut u8 = input!(args.dst).cast();
    if dst.is_null() {
        output!(args.dst_size = size);
        return Ok(());
    }
    let element_size = shape.element_type.byte_size();
    // SAFETY: the field is null or a layout of the host.
    let strides = match unsafe { read_layout(input!(args.host_layout), shape.dims().len()) }? {
        None => None,
        Some(HostLayout::Strides(strides)) => Some(strides),
        Some(HostLayout::Tiled(layout)) if layout.tiles().is_empty() => {
            Some(layout.byte_strides(shape.dims(), element_size))
        }
        Some(HostLayout::Tiled(layout)) => {
            return Err(Error::unimplemented(format!(
                "the host layout has the tiles {:?}; only layouts without tiles are supported",
                layout.tiles()
            )));
        }
    };
    let placed = host_array(shape.dims(), strides.as_deref(), element_size)?;
    let needed = if size == 0 { 0 } else { placed.above };
    let given = input!(args.dst_size);
    if placed.below > 0 || given < needed {
        return Err(Error::invalid_argument(format!(
            "the destination of {given} bytes is too small for the array {shape}, which needs {needed} bytes from its \
                 first element on and {} bytes before it",
            placed.below
        )));
    }
    let held = buffer.state.share()?;
    let (done, event) = Event::pending();
    // SAFETY: the host lends `dst_size` bytes, of which these are the first, until the event completes. The event completes
    // when the copy created here is finished or dropped.
    let bytes = unsafe { HostBytesMut::new(dst, needed) };
    let copy = CopyToHost::lent(bytes, shape.clone(), placed.strided, done);
    read_back::<C>(held, copy);
    output!(args.event = raw(event));
    Ok(())
}

/// `PJRT_Buffer_CopyRawToHost`: copies a range of an array's bytes to host memory. An invalid range is an error of the
/// event.
pub(crate) fn buffer_copy_raw_to_host<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_CopyRawToHost_Args>,
) -> Result<()> {
    output!(args.event = ptr::null_mut());
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    let range = match raw_range(&buffer.shape, input!(args.offset), input!(args.transfer_size)) {
        Ok(range) => range,
        Err(error) => {
            output!(args.event = event_to_raw(Event::failed(error)));
            return Ok(());
        }
    };
    let held = buffer.state.share()?;
    let (done, event) = Event::pending();
    // SAFETY: the host lends `transfer_size` bytes until the event completes.
    unsafe { copy_range::<C>(held, buffer.shape.clone(), range, input!(args.dst).cast(), done) };
    output!(args.event = raw(event));
    Ok(())
}

/// `PJRT_Buffer_CopyToDevice`: copies a buffer to the default memory of another device.
pub(crate) fn buffer_copy_to_device<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_CopyToDevice_Args>,
) -> Result<()> {
    output!(args.dst_buffer = ptr::null_mut());
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    let device = input!(args.dst_device);
    if device.is_null() {
        return Err(null("dst_device"));
    }
    let to = Location::of(&buffer.client, device, ptr::null())?;
    if to.device == buffer.device {
        return Err(Error::invalid_argument(
            "CopyToDevice cannot accept the same source and destination devices",
        ));
    }
    output!(args.dst_buffer = copy(buffer, to)?);
    Ok(())
}

/// `PJRT_Buffer_CopyToMemory`: copies a buffer to a memory of the client.
pub(crate) fn buffer_copy_to_memory<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_CopyToMemory_Args>,
) -> Result<()> {
    output!(args.dst_buffer = ptr::null_mut());
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    let memory = input!(args.dst_memory);
    if memory.is_null() {
        return Err(null("dst_memory"));
    }
    let to = Location::of(&buffer.client, ptr::null(), memory)?;
    output!(args.dst_buffer = copy(buffer, to)?);
    Ok(())
}

/// `PJRT_Buffer_Bitcast`: reinterprets the bytes of a buffer as an array of another type, in the same memory.
pub(crate) fn buffer_bitcast<C: PjrtClient>(args: View<'_, PJRT_Buffer_Bitcast_Args>) -> Result<()> {
    output!(args.out_buffer = ptr::null_mut());
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    let dims = slice!(args.dims as i64, num_dims)?;
    let shape = Shape::new(element_type(input!(args.element_type))?, dims)?;
    if buffer.shape.packed_size() != shape.packed_size() {
        return Err(Error::invalid_argument(format!(
            "cannot bitcast {} to {shape}: their sizes are {} and {} bytes, and must be equal",
            buffer.shape,
            buffer.shape.packed_size(),
            shape.packed_size()
        )));
    }
    // SAFETY: the field is null or a layout of the host.
    match unsafe { read_layout(input!(args.device_layout), dims.len()) }? {
        None => {}
        Some(HostLayout::Tiled(layout)) if layout.tiles().is_empty() && layout.is_row_major() => {}
        Some(_) => {
            return Err(Error::unimplemented("cannot bitcast to a layout that is not dense and row-major"));
        }
    }
    output!(args.out_buffer = handle::into_raw(bitcast(buffer, shape)?));
    Ok(())
}

/// Reinterprets the bytes of a buffer as an array of another shape with the same packed size.
pub(crate) fn bitcast<C: PjrtClient>(buffer: &BufferHandle<C>, shape: Shape) -> Result<BufferHandle<C>> {
    let to = Location { device: buffer.device, memory: buffer.memory };
    let wanted = shape.clone();
    let differ = buffer.shape.element_type.packed_bits() != shape.element_type.packed_bits();
    let is_packed = buffer.shape.element_type.bits() < 8 || shape.element_type.bits() < 8;
    derive(buffer, to, shape, move |client, from, to| {
        if is_packed && differ {
            return through_host(from, to, wanted.element_type, wanted.dims().to_vec());
        }
        client.bitcast_buffer(from, to, wanted.element_type, wanted.dims())
    })
}

/// Returns the range of an array's bytes that a raw copy reads.
pub(crate) fn raw_range(shape: &Shape, offset: i64, transfer_size: i64) -> Result<Range<usize>> {
    let size = shape.host_size();
    let range = usize::try_from(offset).ok().zip(usize::try_from(transfer_size).ok());
    let range = range.and_then(|(from, len)| Some(from..from.checked_add(len).filter(|end| *end <= size)?));
    range.ok_or_else(|| {
        Error::invalid_argument(format!(
            "a copy of {transfer_size} bytes from offset {offset} is out of bounds of a buffer of {size} bytes"
        ))
    })
}

/// Copies a range of an array's bytes when its data is ready.
///
/// # Safety
///
/// `dst` is null or the start of as many bytes as the range has, to which the plugin has exclusive access until `done`
/// completes.
pub(crate) unsafe fn copy_range<C: PjrtClient>(
    held: Held<C::Buffer>,
    shape: Shape,
    range: Range<usize>,
    dst: *mut u8,
    done: EventSource,
) {
    if dst.is_null() && !range.is_empty() {
        return done.complete(Err(null("dst")));
    }
    // SAFETY: this function's contract; the closure below owns the memory, and completes the event after its last access.
    let mut target = unsafe { HostBytesMut::new(dst, range.len()) };
    let copy = CopyToHost::collected(shape, move |bytes| {
        done.complete(bytes.map(|bytes| target.bytes().copy_from_slice(&bytes[range])));
    });
    if let Some(copy) = copy {
        read_back::<C>(held, copy);
    }
}

/// Copies a buffer to another device or memory.
fn copy<C: PjrtClient>(buffer: &BufferHandle<C>, to: Location) -> Result<*mut pjrt_sys::PJRT_Buffer> {
    let copy = derive(buffer, to, buffer.shape.clone(), |client, from, to| client.copy_buffer(from, to))?;
    Ok(handle::into_raw(copy))
}

/// Creates a buffer from another one when the data of the other one is ready.
fn derive<C: PjrtClient>(
    buffer: &BufferHandle<C>,
    to: Location,
    shape: Shape,
    make: impl FnOnce(&C, BufferRef<'_, C>, Placement<'_, C>) -> Result<Pending<C::Buffer>> + Send + 'static,
) -> Result<BufferHandle<C>> {
    let held = buffer.state.share()?;
    let (client, source) = (Arc::clone(&buffer.client), buffer.shape.clone());
    let place = Location { device: buffer.device, memory: buffer.memory };
    let make = move |storage: Arc<C::Buffer>| {
        let from = BufferRef {
            storage: &storage,
            device: client.author_device(place.device)?,
            memory: &client.memories[place.memory].memory,
            element_type: source.element_type,
            dims: source.dims(),
        };
        client.explain(make(&client.client, from, to.placement(&client, None)?))
    };
    let state = match held.outcome() {
        Some(Err(error)) => BufferState::failed(error),
        Some(Ok(())) => BufferState::from_pending(make(held.share.into_storage()?)?),
        None => {
            let (state, promise) = BufferState::promised();
            let host = held.host.clone();
            with_data(held, move |storage| {
                match storage.and_then(|storage| panic_guard::catch(|| make(storage))) {
                    Ok(pending) => pending.receive(|value| promise.deliver(value)),
                    Err(error) => promise.deliver(Err(error)),
                }
            });
            state.after_host(host)
        }
    };
    Ok(BufferHandle::new(Arc::clone(&buffer.client), to, shape, state))
}
