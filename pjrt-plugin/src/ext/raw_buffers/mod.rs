//! The RawBuffer extension, with which hosts read and write the bytes of buffers.

mod device_event;
mod function_table;

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use pjrt_sys::{
    PJRT_Extension_Base, PJRT_Extension_Type_RawBuffer, PJRT_RawBuffer,
    PJRT_RawBuffer_CopyRawDeviceToHost_Args, PJRT_RawBuffer_CopyRawHostToDevice_Args,
    PJRT_RawBuffer_CreateRawAliasOfBuffer_Args, PJRT_RawBuffer_Destroy_Args, PJRT_RawBuffer_Extension,
    PJRT_RawBuffer_FunctionTable, PJRT_RawBuffer_GetHostPointer_Args, PJRT_RawBuffer_GetMemorySpace_Args,
    PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args, SizedStruct,
};

use crate::abi::args::{View, handle, input, null, output};
use crate::abi::buffer::BufferHandle;
use crate::abi::client_state::ClientState;
use crate::abi::download::read_back;
use crate::abi::event::event_to_raw;
use crate::abi::guard::shim;
use crate::abi::handle::{self, Handle};
use crate::buffer::PjrtBuffer;
use crate::client::Location;
use crate::client::PjrtClient;
use crate::core::event::{Event, EventSource, after};
use crate::core::host_memory::{HostBytes, HostBytesMut};
use crate::core::panic_guard;
use crate::core::storage::{Held, Share};
use crate::element_type::ElementType;
use crate::error::{Error, Result};
use crate::host_buffer::{CopyToHost, HostBuffer};
use crate::shape::Shape;

/// Reads and writes the bytes of buffers of any type for hosts (`PJRT_RawBuffer_Extension`). JAX's transfer library uses it
/// to send arrays between processes. See the [example](crate::ext#example).
///
/// The bytes are dense and row-major. OpenXLA marks the extension as experimental, so its structs may change between
/// versions.
pub trait RawBuffers: PjrtClient {
    /// Writes the dense bytes of `data` to storage, from the byte `offset` of the storage on. The SDK has checked that the
    /// range is in bounds. The returned event completes when the bytes are written. There may be other shares of the
    /// storage; the host orders reads and writes.
    ///
    /// # Errors
    ///
    /// Returns FAILED_PRECONDITION if the storage is not mutable, such as borrowed host memory.
    fn write_raw(storage: &Arc<Self::Buffer>, offset: usize, data: HostBuffer) -> Result<Event>;
}

pub(super) fn link<C: RawBuffers>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_RawBuffer_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_RawBuffer_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_RawBuffer,
            next,
        },
        PJRT_RawBuffer_CreateRawAliasOfBuffer: Some(shim(create_raw_alias_of_buffer::<C>)),
        PJRT_RawBuffer_Destroy: Some(shim(destroy::<C>)),
        PJRT_RawBuffer_GetOnDeviceSizeInBytes: Some(shim(get_on_device_size_in_bytes::<C>)),
        PJRT_RawBuffer_GetMemorySpace: Some(shim(get_memory_space::<C>)),
        PJRT_RawBuffer_CopyRawHostToDevice: Some(shim(copy_raw_host_to_device::<C>)),
        PJRT_RawBuffer_CopyRawDeviceToHost: Some(shim(copy_raw_device_to_host::<C>)),
        PJRT_RawBuffer_GetHostPointer: Some(shim(get_host_pointer::<C>)),
    })
}

/// The object behind a `PJRT_RawBuffer`: a range of the bytes of a buffer. It is reference-counted.
#[repr(C)]
struct RawBuffer<C: RawBuffers> {
    vtable: *const PJRT_RawBuffer_FunctionTable,
    client: Arc<ClientState<C>>,
    place: Location,
    shape: Shape,
    share: Share<C::Buffer>,
    allocated: Event,
    ready: Event,
    range: Range<usize>,
}

// SAFETY: the first word is a pointer to a table that lives forever; the rest is `Send` and `Sync`.
unsafe impl<C: RawBuffers> Send for RawBuffer<C> {}
// SAFETY: as above.
unsafe impl<C: RawBuffers> Sync for RawBuffer<C> {}

impl<C: RawBuffers> Handle for RawBuffer<C> {
    type Opaque = PJRT_RawBuffer;
    const KIND: &'static str = "PJRT_RawBuffer";
}

impl<C: RawBuffers> RawBuffer<C> {
    /// Creates the raw buffer of a whole buffer. It keeps the storage alive after the buffer is deleted.
    fn of(buffer: &BufferHandle<C>) -> Result<Self> {
        let Held { share, allocated, ready, .. } = buffer.state.share()?;
        Ok(Self {
            vtable: &raw const *function_table::TableOf::<C>::TABLE,
            client: Arc::clone(&buffer.client),
            place: Location { device: buffer.device, memory: buffer.memory },
            shape: buffer.shape.clone(),
            share,
            allocated,
            ready,
            range: 0..buffer.shape.host_size(),
        })
    }

    /// Creates the raw buffer of a range of these bytes.
    fn slice(&self, offset: i64, size: i64) -> Result<Self> {
        Ok(Self {
            vtable: self.vtable,
            client: Arc::clone(&self.client),
            place: self.place,
            shape: self.shape.clone(),
            share: self.share.clone(),
            allocated: self.allocated.clone(),
            ready: self.ready.clone(),
            range: self.part(offset, size)?,
        })
    }

    /// Returns the range in the storage of a range of these bytes.
    fn part(&self, offset: i64, size: i64) -> Result<Range<usize>> {
        let part = usize::try_from(offset).ok().zip(usize::try_from(size).ok());
        let part = part.and_then(|(offset, size)| {
            let end = offset.checked_add(size).filter(|end| *end <= self.range.len())?;
            Some(self.range.start + offset..self.range.start + end)
        });
        part.ok_or_else(|| {
            Error::invalid_argument(format!(
                "a range of {size} bytes from offset {offset} is out of bounds of a raw buffer of {} bytes",
                self.range.len()
            ))
        })
    }

    fn held(&self) -> Held<C::Buffer> {
        Held {
            share: self.share.clone(),
            allocated: self.allocated.clone(),
            ready: self.ready.clone(),
            // The share is only read, which is no launch.
            host: Event::ready(),
            donated: false,
        }
    }

    /// Waits until there is storage, and returns the address of the first byte, or null if the host cannot read it.
    fn host_pointer(&self) -> Result<*mut u8> {
        if !self.client.memories[self.place.memory].memory.is_host_accessible() {
            return Ok(ptr::null_mut());
        }
        self.allocated.wait()?;
        let storage = self.share.clone().into_storage()?;
        if let Some(view) = storage.host_view() {
            return Ok(ptr::with_exposed_provenance_mut(view.address().wrapping_add(self.range.start)));
        }
        let bytes =
            self.client.explain(storage.host_bytes())?.and_then(|bytes| bytes.get(self.range.clone()));
        bytes.map(|bytes| bytes.as_ptr().cast_mut()).ok_or_else(|| {
            Error::internal("PjrtBuffer::host_bytes returned no bytes for a buffer in host-accessible memory")
        })
    }

    /// Reads a range of the storage when the data is ready and `dependencies` are complete.
    fn read(
        &self,
        range: Range<usize>,
        dependencies: Vec<Event>,
        receive: impl FnOnce(Result<Vec<u8>>) + Send + 'static,
    ) {
        let copy = CopyToHost::collected(self.shape.clone(), move |bytes| {
            receive(bytes.map(|mut bytes| {
                bytes.truncate(range.end);
                bytes.drain(..range.start);
                bytes
            }));
        });
        let Some(copy) = copy else { return };
        let held = self.held();
        after_all(dependencies, move |outcome| match outcome {
            Ok(()) => read_back::<C>(held, copy),
            Err(error) => copy.fail(error),
        });
    }

    /// Writes to the storage at an offset when there is storage and `dependencies` are complete.
    fn write(&self, offset: usize, data: HostBuffer, mut dependencies: Vec<Event>, done: EventSource) {
        dependencies.push(self.allocated.clone());
        let share = self.share.clone();
        after_all(dependencies, move |outcome| {
            let write = || C::write_raw(&share.into_storage()?, offset, data);
            match outcome.and_then(|()| panic_guard::catch(write)) {
                Ok(written) => written.on_ready(move |outcome| done.complete(outcome)),
                Err(error) => done.complete(Err(error)),
            }
        });
    }

    /// # Safety
    ///
    /// `src` is null or the start of `size` bytes, which are readable until the event completes.
    unsafe fn write_from(
        &self,
        src: *const u8,
        (offset, size): (i64, i64),
        dependencies: Vec<Event>,
    ) -> Result<Event> {
        let range = self.part(offset, size)?;
        if src.is_null() && !range.is_empty() {
            return Err(null("src"));
        }
        let (done, event) = Event::pending();
        // The host's memory is released when the data is dropped, which is at the latest when the event completes.
        let (released, _) = Event::pending();
        // SAFETY: this function's contract.
        let bytes = unsafe { HostBytes::new(src, range.len()) };
        let data = HostBuffer::lent(bytes, Shape::new(ElementType::U8, &[size])?, None, false, released);
        self.write(range.start, data, dependencies, done);
        Ok(event)
    }

    /// # Safety
    ///
    /// `dst` is null or the start of `size` bytes, to which the plugin has exclusive access until the event completes.
    unsafe fn read_into(
        &self,
        dst: *mut u8,
        (offset, size): (i64, i64),
        dependencies: Vec<Event>,
    ) -> Result<Event> {
        let range = self.part(offset, size)?;
        if dst.is_null() && !range.is_empty() {
            return Err(null("dst"));
        }
        let (done, event) = Event::pending();
        // SAFETY: this function's contract.
        let mut target = unsafe { HostBytesMut::new(dst, range.len()) };
        self.read(range, dependencies, move |bytes| {
            done.complete(bytes.map(|bytes| target.bytes().copy_from_slice(&bytes)));
        });
        Ok(event)
    }
}

/// Runs a function when all events are complete, with the error of the first event that has one.
fn after_all(events: Vec<Event>, run: impl FnOnce(Result<()>) + Send + 'static) {
    let waiting = events.clone();
    after(waiting, move || {
        run(events.iter().find_map(|event| event.outcome()?.err()).map_or(Ok(()), Err));
    });
}

/// Creates the raw buffer of a buffer.
fn create_raw_alias_of_buffer<C: RawBuffers>(
    args: View<'_, PJRT_RawBuffer_CreateRawAliasOfBuffer_Args>,
) -> Result<()> {
    output!(args.raw_buffer = ptr::null_mut());
    let raw = RawBuffer::of(handle!(args.buffer: BufferHandle<C>)?)?;
    output!(args.raw_buffer = handle::share_into_raw(Arc::new(raw)));
    Ok(())
}

/// Releases a share.
fn destroy<C: RawBuffers>(args: View<'_, PJRT_RawBuffer_Destroy_Args>) -> Result<()> {
    // SAFETY: the host passes ownership of the share.
    drop(unsafe { handle::share_from_raw::<RawBuffer<C>>(input!(args.buffer), "buffer") }?);
    Ok(())
}

/// Returns the number of bytes.
fn get_on_device_size_in_bytes<C: RawBuffers>(
    args: View<'_, PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args>,
) -> Result<()> {
    output!(args.on_device_size_in_bytes = handle!(args.buffer: RawBuffer<C>)?.range.len());
    Ok(())
}

/// Returns the memory of the buffer.
fn get_memory_space<C: RawBuffers>(args: View<'_, PJRT_RawBuffer_GetMemorySpace_Args>) -> Result<()> {
    let raw = handle!(args.buffer: RawBuffer<C>)?;
    output!(args.memory_space = raw.client.memory_pointer(raw.place.memory));
    Ok(())
}

/// Returns the address of the bytes, or null if the host cannot read them.
fn get_host_pointer<C: RawBuffers>(args: View<'_, PJRT_RawBuffer_GetHostPointer_Args>) -> Result<()> {
    output!(args.host_pointer = handle!(args.buffer: RawBuffer<C>)?.host_pointer()?.cast());
    Ok(())
}

/// Writes a range of bytes.
fn copy_raw_host_to_device<C: RawBuffers>(
    args: View<'_, PJRT_RawBuffer_CopyRawHostToDevice_Args>,
) -> Result<()> {
    output!(args.event = ptr::null_mut());
    let raw = handle!(args.buffer: RawBuffer<C>)?;
    let range = (input!(args.offset), input!(args.transfer_size));
    // SAFETY: the host lends this number of bytes until the event is complete.
    let event = unsafe { raw.write_from(input!(args.src).cast(), range, Vec::new()) }?;
    output!(args.event = event_to_raw(event));
    Ok(())
}

/// Reads a range of bytes.
fn copy_raw_device_to_host<C: RawBuffers>(
    args: View<'_, PJRT_RawBuffer_CopyRawDeviceToHost_Args>,
) -> Result<()> {
    output!(args.event = ptr::null_mut());
    let raw = handle!(args.buffer: RawBuffer<C>)?;
    let range = (input!(args.offset), input!(args.transfer_size));
    // SAFETY: the host lends this number of bytes until the event is complete.
    let event = unsafe { raw.read_into(input!(args.dst).cast(), range, Vec::new()) }?;
    output!(args.event = event_to_raw(event));
    Ok(())
}
