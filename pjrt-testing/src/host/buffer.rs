//! Arrays on devices.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr;

use pjrt_sys::*;

use super::call::{call, destroyed_by, value_of};
use super::element_type::ElementType;
use super::error::{Code, Error, Result};
use super::event::Event;
use super::handles;
use super::host_memory::HostMemory;
use super::layout::Layout;
use super::objects::{Device, Memory};
use super::plugin::Plugin;
use super::slices::{believed, bytes, given};

/// An array on a device (`PJRT_Buffer`). Dropping it destroys it.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_Buffer,
}

destroyed_by!(Buffer PJRT_Buffer_Destroy_Args buffer);

/// The layout of the array that a readback writes to host memory.
#[derive(Debug, Clone, Default)]
pub enum CopyLayout {
    /// The host passes no layout: dense and row-major.
    #[default]
    Unsaid,
    /// The host passes this layout.
    Layout(Layout),
}

/// A raw copy to the host whose destination is passed later (`PJRT_Buffer_CopyRawToHostFuture`).
#[derive(Debug)]
pub struct FutureCopy {
    event: Event,
    data: *mut std::ffi::c_void,
    callback: unsafe extern "C" fn(*mut PJRT_Buffer_CopyRawToHostFuture_Callback_Args),
    size: usize,
}

impl FutureCopy {
    /// Passes a destination to the plugin, waits for the copy, and returns the bytes.
    ///
    /// # Errors
    ///
    /// Returns the event's error.
    pub fn finish(self) -> Result<Vec<u8>> {
        let destination = HostMemory::destination(self.size, 0);
        let mut args = PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
            callback_data: self.data,
            dst: ptr::with_exposed_provenance_mut(destination.exposed()),
            ..PJRT_Buffer_CopyRawToHostFuture_Callback_Args::zeroed()
        };
        // SAFETY: the plugin returned the function and its data, which are used once. The destination stays
        // valid until the event is complete.
        unsafe { (self.callback)(&raw mut args) };
        self.event.wait()?;
        destination.into_written("PJRT_Buffer_CopyRawToHostFuture", <[u8]>::to_vec)
    }

    /// Returns `true` if the event of the copy is complete.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn is_complete(&self) -> Result<bool> {
        self.event.is_ready()
    }

    /// Notifies the plugin that there is no destination, and returns the outcome of the event.
    ///
    /// # Errors
    ///
    /// Returns the event's error.
    pub fn cancel(self, code: Code, message: &str) -> Result<()> {
        let mut args = PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
            callback_data: self.data,
            error_code: PJRT_Error_Code(code.0),
            error_message: message.as_ptr().cast(),
            error_message_size: message.len(),
            ..PJRT_Buffer_CopyRawToHostFuture_Callback_Args::zeroed()
        };
        // SAFETY: as in `finish`; if it receives an error, the plugin does not access the destination.
        unsafe { (self.callback)(&raw mut args) };
        self.event.wait()
    }
}

/// The largest credible size of an array in bytes.
const MOST_READ: usize = 1 << 36;

/// The bytes of an array that the host holds. They can be read while the host holds the array.
#[derive(Debug)]
pub struct HeldBytes {
    start: *mut std::ffi::c_void,
    size: usize,
}

impl HeldBytes {
    /// Returns the current bytes.
    #[must_use]
    pub fn read(&self) -> Vec<u8> {
        // SAFETY: the plugin returned the address of this many bytes, which stay valid while the array is
        // held.
        unsafe { bytes(self.start, self.size) }.to_vec()
    }
}

/// Completes the dependency of the buffer that takes over a donated buffer's data
/// (`PJRT_Buffer_DonateWithControlDependency`).
#[derive(Debug)]
pub struct Dependency {
    data: *mut std::ffi::c_void,
    callback: unsafe extern "C" fn(*mut PJRT_Buffer_DonateWithControlDependency_Callback_Args),
}

impl Dependency {
    /// Completes the dependency, with or without an error.
    pub fn finish(self, outcome: std::result::Result<(), (Code, &str)>) {
        let (code, message) = outcome.err().unwrap_or((Code::OK, ""));
        let mut args = PJRT_Buffer_DonateWithControlDependency_Callback_Args {
            callback_data: self.data,
            error_code: PJRT_Error_Code(code.0),
            error_message: message.as_ptr().cast(),
            error_message_size: message.len(),
            ..PJRT_Buffer_DonateWithControlDependency_Callback_Args::zeroed()
        };
        // SAFETY: the plugin returned the function and its data, which are used once.
        unsafe { (self.callback)(&raw mut args) };
    }
}

impl Buffer {
    pub(crate) fn from_raw(plugin: Plugin, raw: *mut PJRT_Buffer, function: &'static str) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::broken(function, "it succeeded, but its buffer is a null pointer"));
        }
        handles::take(raw, function)?;
        Ok(Self { plugin, raw })
    }

    value_of! {
        /// Returns the number of bytes that the array occupies on the device
        /// (`PJRT_Buffer_OnDeviceSizeInBytes`).
        on_device_size PJRT_Buffer_OnDeviceSizeInBytes_Args buffer -> on_device_size_in_bytes: usize;
        /// Returns `true` if the array was deleted or donated (`PJRT_Buffer_IsDeleted`).
        is_deleted PJRT_Buffer_IsDeleted_Args buffer -> is_deleted: bool;
        /// Returns `true` if the host can read the array in place (`PJRT_Buffer_IsOnCpu`).
        is_on_cpu PJRT_Buffer_IsOnCpu_Args buffer -> is_on_cpu: bool;
        /// Returns the array's address on the device (`PJRT_Buffer_UnsafePointer`).
        unsafe_pointer PJRT_Buffer_UnsafePointer_Args buffer -> buffer_pointer: usize;
    }

    /// Returns the element type (`PJRT_Buffer_ElementType`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn element_type(&self) -> Result<ElementType> {
        Ok(ElementType(call!(self.plugin, PJRT_Buffer_ElementType_Args { buffer: self.raw })?.type_.0))
    }

    /// Returns the dimensions (`PJRT_Buffer_Dimensions`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn dims(&self) -> Result<Vec<i64>> {
        let args = call!(self.plugin, PJRT_Buffer_Dimensions_Args { buffer: self.raw })?;
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // buffer.
        Ok(unsafe { given("PJRT_Buffer_Dimensions", args.dims, args.num_dims) }?.to_vec())
    }

    /// Returns the address of the plugin's array of dimensions, which must not change between calls.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn dims_address(&self) -> Result<usize> {
        Ok(call!(self.plugin, PJRT_Buffer_Dimensions_Args { buffer: self.raw })?.dims.addr())
    }

    /// Returns the dimensions, read twice from the same address: before and after a query for the dimensions
    /// of another buffer.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn dims_before_and_after(&self, other: &Self) -> Result<(Vec<i64>, Vec<i64>)> {
        let args = call!(self.plugin, PJRT_Buffer_Dimensions_Args { buffer: self.raw })?;
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // buffer.
        let read =
            || unsafe { given("PJRT_Buffer_Dimensions", args.dims, args.num_dims) }.map(<[i64]>::to_vec);
        let before = read()?;
        call!(self.plugin, PJRT_Buffer_Dimensions_Args { buffer: other.raw })?;
        Ok((before, read()?))
    }

    /// Returns the dimensions without padding (`PJRT_Buffer_UnpaddedDimensions`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn unpadded_dims(&self) -> Result<Vec<i64>> {
        let args = call!(self.plugin, PJRT_Buffer_UnpaddedDimensions_Args { buffer: self.raw })?;
        const FUNCTION: &str = "PJRT_Buffer_UnpaddedDimensions";
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // buffer.
        Ok(unsafe { given(FUNCTION, args.unpadded_dims, args.num_dims) }?.to_vec())
    }

    /// Returns the indices of the dynamic dimensions (`PJRT_Buffer_DynamicDimensionIndices`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn dynamic_dims(&self) -> Result<Vec<usize>> {
        let args = call!(self.plugin, PJRT_Buffer_DynamicDimensionIndices_Args { buffer: self.raw })?;
        const FUNCTION: &str = "PJRT_Buffer_DynamicDimensionIndices";
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // buffer.
        Ok(unsafe { given(FUNCTION, args.dynamic_dim_indices, args.num_dynamic_dims) }?.to_vec())
    }

    /// Returns the order of the dimensions in device memory, from minor to major, or `None` if the layout
    /// consists of strides (`PJRT_Buffer_GetMemoryLayout`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn memory_layout(&self) -> Result<Option<Vec<i64>>> {
        let args = call!(self.plugin, PJRT_Buffer_GetMemoryLayout_Args { buffer: self.raw })?;
        if args.layout.type_ != PJRT_Buffer_MemoryLayout_Type_Tiled {
            return Ok(None);
        }
        // SAFETY: the type says which field of the union is set. The array lives as long as the buffer.
        unsafe {
            let tiled = args.layout.u.tiled;
            const FUNCTION: &str = "PJRT_Buffer_GetMemoryLayout";
            Ok(Some(given(FUNCTION, tiled.minor_to_major, tiled.minor_to_major_size)?.to_vec()))
        }
    }

    /// Returns the device (`PJRT_Buffer_Device`). The caller ensures that the client still exists.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn device(&self) -> Result<Device<'_>> {
        let args = call!(self.plugin, PJRT_Buffer_Device_Args { buffer: self.raw })?;
        Ok(Device { plugin: self.plugin, raw: args.device, client: PhantomData })
    }

    /// Returns the memory (`PJRT_Buffer_Memory`). The caller ensures that the client still exists.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn memory(&self) -> Result<Memory<'_>> {
        let args = call!(self.plugin, PJRT_Buffer_Memory_Args { buffer: self.raw })?;
        Memory::new(self.plugin, args.memory, "PJRT_Buffer_Memory")
    }

    /// Deletes the data, but not the object (`PJRT_Buffer_Delete`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn delete(&self) -> Result<()> {
        call!(self.plugin, PJRT_Buffer_Delete_Args { buffer: self.raw }).map(drop)
    }

    /// Returns an event that is complete when the data is ready (`PJRT_Buffer_ReadyEvent`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn ready(&self) -> Result<Event> {
        let args = call!(self.plugin, PJRT_Buffer_ReadyEvent_Args { buffer: self.raw })?;
        Event::from_raw(self.plugin, args.event, "PJRT_Buffer_ReadyEvent")
    }

    /// Holds the data (`PJRT_Buffer_IncreaseExternalReferenceCount`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn hold(&self) -> Result<()> {
        call!(self.plugin, PJRT_Buffer_IncreaseExternalReferenceCount_Args { buffer: self.raw }).map(drop)
    }

    /// Releases the data (`PJRT_Buffer_DecreaseExternalReferenceCount`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn release(&self) -> Result<()> {
        call!(self.plugin, PJRT_Buffer_DecreaseExternalReferenceCount_Args { buffer: self.raw }).map(drop)
    }

    /// Returns the address of data that the host holds (`PJRT_Buffer_OpaqueDeviceMemoryDataPointer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn opaque_pointer(&self) -> Result<usize> {
        let args = call!(self.plugin, PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { buffer: self.raw })?;
        Ok(args.device_memory_ptr.addr())
    }

    /// Returns the bytes of data that the host holds, or `None` if the host cannot read them in place.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn bytes_in_place(&self) -> Result<Option<Vec<u8>>> {
        if !self.is_on_cpu()? {
            return Ok(None);
        }
        let args = call!(self.plugin, PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { buffer: self.raw })?;
        let size = self.on_device_size()?;
        believed::<u8>("PJRT_Buffer_OnDeviceSizeInBytes", size)?;
        // SAFETY: the plugin says that the host can read this many bytes at this address.
        Ok(Some(unsafe { bytes(args.device_memory_ptr, size) }.to_vec()))
    }

    /// Returns access to the bytes of data that the host holds and can read in place, for reading them later.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn held_bytes(&self) -> Result<HeldBytes> {
        let args = call!(self.plugin, PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { buffer: self.raw })?;
        Ok(HeldBytes { start: args.device_memory_ptr, size: self.on_device_size()? })
    }

    /// Returns `true` if both are the same object, which would then be destroyed twice.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.raw == other.raw
    }

    /// Returns the number of bytes that a readback needs (`PJRT_Buffer_ToHostBuffer` without a destination).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn host_size(&self, layout: &CopyLayout) -> Result<usize> {
        let mut layout = layout.raw();
        let host_layout = layout.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
        Ok(call!(self.plugin, PJRT_Buffer_ToHostBuffer_Args { src: self.raw, host_layout })?.dst_size)
    }

    /// Reads the array, dense and row-major, into as many bytes as the plugin requests
    /// (`PJRT_Buffer_ToHostBuffer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, from the call or from the event.
    pub fn read(&self) -> Result<Vec<u8>> {
        self.read_with(<[u8]>::to_vec)
    }

    /// Reads the array, and passes its bytes to `look`, whose result is returned. With large arrays, this is faster than
    /// [`read`](Self::read).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, from the call or from the event.
    pub fn read_with<T>(&self, look: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let size = self.host_size(&CopyLayout::Unsaid)?;
        if size > MOST_READ {
            let message = format!("it requests {size} bytes for an array; expected at most {MOST_READ}");
            return Err(Error::broken("PJRT_Buffer_ToHostBuffer", message));
        }
        self.read_into_with(size, &CopyLayout::Unsaid, look)
    }

    /// Reads the array into this many bytes, which are initialized to [`UNWRITTEN`](super::UNWRITTEN).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, from the call or from the event.
    pub fn read_into(&self, size: usize, layout: &CopyLayout) -> Result<Vec<u8>> {
        self.read_into_with(size, layout, <[u8]>::to_vec)
    }

    fn read_into_with<T>(
        &self,
        size: usize,
        layout: &CopyLayout,
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let (bytes, event) = self.start_read(size, layout)?;
        event.wait()?;
        bytes.into_written("PJRT_Buffer_ToHostBuffer", look)
    }

    /// Reads the array into this many bytes, which are followed by `more` bytes that the plugin must not
    /// write.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, from the call or from the event.
    pub fn read_into_part(&self, size: usize, more: usize) -> Result<Vec<u8>> {
        let destination = HostMemory::destination(size + more, 0);
        let args = call!(
            self.plugin,
            PJRT_Buffer_ToHostBuffer_Args {
                src: self.raw,
                dst: ptr::with_exposed_provenance_mut(destination.exposed()),
                dst_size: size,
            }
        )?;
        Event::from_raw(self.plugin, args.event, "PJRT_Buffer_ToHostBuffer")?.wait()?;
        Ok(destination.bytes())
    }

    /// Starts to read the array, and returns the host memory and the event.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn start_read(&self, size: usize, layout: &CopyLayout) -> Result<(HostMemory, Event)> {
        self.start_read_at(0, size, layout)
    }

    /// Starts to read the array into memory that begins `skew` bytes after a multiple of 64.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn start_read_at(
        &self,
        skew: usize,
        size: usize,
        layout: &CopyLayout,
    ) -> Result<(HostMemory, Event)> {
        let destination = HostMemory::destination(size, skew);
        let mut layout = layout.raw();
        let args = call!(
            self.plugin,
            PJRT_Buffer_ToHostBuffer_Args {
                src: self.raw,
                host_layout: layout.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                dst: ptr::with_exposed_provenance_mut(destination.exposed()),
                dst_size: size,
            }
        )?;
        Ok((destination, Event::from_raw(self.plugin, args.event, "PJRT_Buffer_ToHostBuffer")?))
    }

    /// Copies bytes as they are stored on the device (`PJRT_Buffer_CopyRawToHost`). The inner result is that
    /// of the event.
    ///
    /// # Errors
    ///
    /// Returns the error of the call.
    pub fn read_raw(&self, offset: i64, size: i64) -> Result<Result<Vec<u8>>> {
        self.read_raw_into(usize::try_from(size).unwrap_or(0), offset, size)
    }

    /// The same as [`read_raw`](Self::read_raw), into memory of another size than the host says.
    ///
    /// # Errors
    ///
    /// Returns the error of the call.
    pub fn read_raw_into(&self, room: usize, offset: i64, size: i64) -> Result<Result<Vec<u8>>> {
        let destination = HostMemory::destination(room, 0);
        let args = call!(
            self.plugin,
            PJRT_Buffer_CopyRawToHost_Args {
                buffer: self.raw,
                dst: ptr::with_exposed_provenance_mut(destination.exposed()),
                offset,
                transfer_size: size,
            }
        )?;
        let event = Event::from_raw(self.plugin, args.event, "PJRT_Buffer_CopyRawToHost")?;
        let read = |()| destination.into_written("PJRT_Buffer_CopyRawToHost", <[u8]>::to_vec);
        Ok(event.wait().and_then(read))
    }

    /// Starts a raw copy whose destination is passed later (`PJRT_Buffer_CopyRawToHostFuture`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn read_raw_later(&self, offset: i64, size: i64) -> Result<FutureCopy> {
        const FUNCTION: &str = "PJRT_Buffer_CopyRawToHostFuture";
        let args = call!(
            self.plugin,
            PJRT_Buffer_CopyRawToHostFuture_Args { buffer: self.raw, offset, transfer_size: size }
        )?;
        let event = Event::from_raw(self.plugin, args.event, FUNCTION)?;
        let callback =
            args.future_ready_callback.ok_or_else(|| Error::broken(FUNCTION, "it returned no callback"))?;
        let size = usize::try_from(size).unwrap_or(0);
        Ok(FutureCopy { event, data: args.callback_data, callback, size })
    }

    /// Copies the array to another memory of the client (`PJRT_Buffer_CopyToMemory`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn copy_to_memory(&self, memory: Memory<'_>) -> Result<Self> {
        let args =
            call!(self.plugin, PJRT_Buffer_CopyToMemory_Args { buffer: self.raw, dst_memory: memory.raw })?;
        Self::from_raw(self.plugin, args.dst_buffer, "PJRT_Buffer_CopyToMemory")
    }

    /// Copies the array to another device of the client (`PJRT_Buffer_CopyToDevice`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn copy_to_device(&self, device: Device<'_>) -> Result<Self> {
        let args =
            call!(self.plugin, PJRT_Buffer_CopyToDevice_Args { buffer: self.raw, dst_device: device.raw })?;
        Self::from_raw(self.plugin, args.dst_buffer, "PJRT_Buffer_CopyToDevice")
    }

    /// Returns an array of another type or shape with the same bytes (`PJRT_Buffer_Bitcast`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn bitcast(&self, element_type: ElementType, dims: &[i64]) -> Result<Self> {
        self.bitcast_to(element_type, dims, None)
    }

    /// The same as [`bitcast`](Self::bitcast), with a layout that the host names.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn bitcast_to(
        &self,
        element_type: ElementType,
        dims: &[i64],
        layout: Option<&Layout>,
    ) -> Result<Self> {
        let mut layout = layout.map(Layout::raw);
        let args = call!(
            self.plugin,
            PJRT_Buffer_Bitcast_Args {
                buffer: self.raw,
                element_type: PJRT_Buffer_Type(element_type.0),
                dims: dims.as_ptr(),
                num_dims: dims.len(),
                device_layout: layout.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
            }
        )?;
        Self::from_raw(self.plugin, args.out_buffer, "PJRT_Buffer_Bitcast")
    }

    /// Donates the data to a new buffer, which is ready once the returned dependency is complete
    /// (`PJRT_Buffer_DonateWithControlDependency`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn donate(&self) -> Result<(Self, Dependency)> {
        const FUNCTION: &str = "PJRT_Buffer_DonateWithControlDependency";
        let args = call!(self.plugin, PJRT_Buffer_DonateWithControlDependency_Args { buffer: self.raw })?;
        let buffer = Self::from_raw(self.plugin, args.out_buffer, FUNCTION)?;
        let callback = args
            .dependency_ready_callback
            .ok_or_else(|| Error::broken(FUNCTION, "it returned no callback"))?;
        Ok((buffer, Dependency { data: args.callback_data, callback }))
    }
}

impl CopyLayout {
    fn raw(&self) -> Option<PJRT_Buffer_MemoryLayout> {
        match self {
            Self::Unsaid => None,
            Self::Layout(layout) => Some(layout.raw()),
        }
    }
}

/// Converts a number to C's `int`, with saturation.
pub(crate) fn c_number(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}
