//! Arrays on devices.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr;

use pjrt_sys::*;

use super::error::{Code, Error, Result};
use super::event::Event;
use super::objects::{Device, Memory, value_of};
use super::plugin::{Plugin, call, destroyed_by};
use super::upload::Layout;
use super::values::{ElementType, believed, bytes, given};

/// An array on a device (`PJRT_Buffer`). Dropping it destroys it.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_Buffer,
}

destroyed_by!(Buffer PJRT_Buffer_Destroy_Args buffer);

/// How a readback should lie in host memory.
#[derive(Debug, Clone, Default)]
pub enum CopyLayout {
    /// The host does not say: dense and row-major.
    #[default]
    Unsaid,
    /// As this layout says.
    Layout(Layout),
}

/// A raw copy to the host whose destination comes later (`PJRT_Buffer_CopyRawToHostFuture`).
#[derive(Debug)]
pub struct FutureCopy {
    event: Event,
    data: *mut std::ffi::c_void,
    callback: unsafe extern "C" fn(*mut PJRT_Buffer_CopyRawToHostFuture_Callback_Args),
    size: usize,
}

impl FutureCopy {
    /// Names the destination, waits, and gives the bytes.
    ///
    /// # Errors
    ///
    /// The event's.
    pub fn finish(self) -> Result<Vec<u8>> {
        let mut destination = vec![0_u8; self.size];
        let mut args = PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
            callback_data: self.data,
            dst: destination.as_mut_ptr().cast(),
            ..PJRT_Buffer_CopyRawToHostFuture_Callback_Args::zeroed()
        };
        // SAFETY: the plugin gave function and data, which are used once; the destination stays until the event is complete.
        unsafe { (self.callback)(&raw mut args) };
        self.event.wait().map(|()| destination)
    }

    /// Says that there will be no destination, and gives what becomes of the event.
    ///
    /// # Errors
    ///
    /// The event's.
    pub fn cancel(self, code: Code, message: &str) -> Result<()> {
        let mut args = PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
            callback_data: self.data,
            error_code: PJRT_Error_Code(code.0),
            error_message: message.as_ptr().cast(),
            error_message_size: message.len(),
            ..PJRT_Buffer_CopyRawToHostFuture_Callback_Args::zeroed()
        };
        // SAFETY: as in `finish`; with an error, the plugin touches no destination.
        unsafe { (self.callback)(&raw mut args) };
        self.event.wait()
    }
}

/// The most bytes of an array that are believed: no host has more.
const MOST_READ: usize = 1 << 36;

/// Bytes of an array that is held, and readable as long as it is.
#[derive(Debug)]
pub struct HeldBytes {
    start: *mut std::ffi::c_void,
    size: usize,
}

impl HeldBytes {
    /// What they are now.
    #[must_use]
    pub fn read(&self) -> Vec<u8> {
        // SAFETY: the plugin gave the address of so many bytes, and the interface keeps them while the array is held.
        unsafe { bytes(self.start, self.size) }.to_vec()
    }
}

/// What makes a donated buffer's successor ready (`PJRT_Buffer_DonateWithControlDependency`).
#[derive(Debug)]
pub struct Dependency {
    data: *mut std::ffi::c_void,
    callback: unsafe extern "C" fn(*mut PJRT_Buffer_DonateWithControlDependency_Callback_Args),
}

impl Dependency {
    /// Says that what the buffer waits for has happened, or failed.
    pub fn finish(self, outcome: std::result::Result<(), (Code, &str)>) {
        let (code, message) = outcome.err().unwrap_or((Code::OK, ""));
        let mut args = PJRT_Buffer_DonateWithControlDependency_Callback_Args {
            callback_data: self.data,
            error_code: PJRT_Error_Code(code.0),
            error_message: message.as_ptr().cast(),
            error_message_size: message.len(),
            ..PJRT_Buffer_DonateWithControlDependency_Callback_Args::zeroed()
        };
        // SAFETY: the plugin gave function and data, which are used once.
        unsafe { (self.callback)(&raw mut args) };
    }
}

impl Buffer {
    pub(crate) fn from_raw(plugin: Plugin, raw: *mut PJRT_Buffer, function: &'static str) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::broken(function, "it succeeded, but its buffer is a null pointer"));
        }
        Ok(Self { plugin, raw })
    }

    value_of! {
        /// How many bytes it takes on the device (`PJRT_Buffer_OnDeviceSizeInBytes`).
        on_device_size PJRT_Buffer_OnDeviceSizeInBytes_Args buffer -> on_device_size_in_bytes: usize;
        /// Whether it was deleted or donated (`PJRT_Buffer_IsDeleted`).
        is_deleted PJRT_Buffer_IsDeleted_Args buffer -> is_deleted: bool;
        /// Whether the host can read it in place (`PJRT_Buffer_IsOnCpu`).
        is_on_cpu PJRT_Buffer_IsOnCpu_Args buffer -> is_on_cpu: bool;
        /// Its address on the device (`PJRT_Buffer_UnsafePointer`).
        unsafe_pointer PJRT_Buffer_UnsafePointer_Args buffer -> buffer_pointer: usize;
    }

    /// Its type (`PJRT_Buffer_ElementType`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn element_type(&self) -> Result<ElementType> {
        Ok(ElementType(call!(self.plugin, PJRT_Buffer_ElementType_Args { buffer: self.raw })?.type_.0))
    }

    /// Its dimensions (`PJRT_Buffer_Dimensions`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn dims(&self) -> Result<Vec<i64>> {
        let args = call!(self.plugin, PJRT_Buffer_Dimensions_Args { buffer: self.raw })?;
        // SAFETY: the plugin gave pointer and length of an array that lives as long as the buffer.
        Ok(unsafe { given("PJRT_Buffer_Dimensions", args.dims, args.num_dims) }?.to_vec())
    }

    /// Where the plugin keeps the dimensions, which must not change from call to call.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn dims_address(&self) -> Result<usize> {
        Ok(call!(self.plugin, PJRT_Buffer_Dimensions_Args { buffer: self.raw })?.dims.addr())
    }

    /// Its dimensions, and what is in their place after another buffer was asked for its own.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn dims_before_and_after(&self, other: &Self) -> Result<(Vec<i64>, Vec<i64>)> {
        let args = call!(self.plugin, PJRT_Buffer_Dimensions_Args { buffer: self.raw })?;
        // SAFETY: the plugin gave pointer and length of an array that lives as long as the buffer.
        let read =
            || unsafe { given("PJRT_Buffer_Dimensions", args.dims, args.num_dims) }.map(<[i64]>::to_vec);
        let before = read()?;
        call!(self.plugin, PJRT_Buffer_Dimensions_Args { buffer: other.raw })?;
        Ok((before, read()?))
    }

    /// Its dimensions without padding (`PJRT_Buffer_UnpaddedDimensions`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn unpadded_dims(&self) -> Result<Vec<i64>> {
        let args = call!(self.plugin, PJRT_Buffer_UnpaddedDimensions_Args { buffer: self.raw })?;
        const FUNCTION: &str = "PJRT_Buffer_UnpaddedDimensions";
        // SAFETY: the plugin gave pointer and length of an array that lives as long as the buffer.
        Ok(unsafe { given(FUNCTION, args.unpadded_dims, args.num_dims) }?.to_vec())
    }

    /// Which dimensions are dynamic (`PJRT_Buffer_DynamicDimensionIndices`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn dynamic_dims(&self) -> Result<Vec<usize>> {
        let args = call!(self.plugin, PJRT_Buffer_DynamicDimensionIndices_Args { buffer: self.raw })?;
        const FUNCTION: &str = "PJRT_Buffer_DynamicDimensionIndices";
        // SAFETY: the plugin gave pointer and length of an array that lives as long as the buffer.
        Ok(unsafe { given(FUNCTION, args.dynamic_dim_indices, args.num_dynamic_dims) }?.to_vec())
    }

    /// The order of its dimensions in device memory, from the fastest to the slowest, or `None` if it is given by strides
    /// (`PJRT_Buffer_GetMemoryLayout`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn memory_layout(&self) -> Result<Option<Vec<i64>>> {
        let args = call!(self.plugin, PJRT_Buffer_GetMemoryLayout_Args { buffer: self.raw })?;
        if args.layout.type_ != PJRT_Buffer_MemoryLayout_Type_Tiled {
            return Ok(None);
        }
        // SAFETY: the type says which field of the union is set; the array lives as long as the buffer.
        unsafe {
            let tiled = args.layout.u.tiled;
            const FUNCTION: &str = "PJRT_Buffer_GetMemoryLayout";
            Ok(Some(given(FUNCTION, tiled.minor_to_major, tiled.minor_to_major_size)?.to_vec()))
        }
    }

    /// Its device (`PJRT_Buffer_Device`). The caller sees to it that the client is still there.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn device(&self) -> Result<Device<'_>> {
        let args = call!(self.plugin, PJRT_Buffer_Device_Args { buffer: self.raw })?;
        Ok(Device { plugin: self.plugin, raw: args.device, client: PhantomData })
    }

    /// Its memory (`PJRT_Buffer_Memory`). The caller sees to it that the client is still there.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn memory(&self) -> Result<Memory<'_>> {
        let args = call!(self.plugin, PJRT_Buffer_Memory_Args { buffer: self.raw })?;
        Memory::new(self.plugin, args.memory, "PJRT_Buffer_Memory")
    }

    /// Gives up the data, not the object (`PJRT_Buffer_Delete`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn delete(&self) -> Result<()> {
        call!(self.plugin, PJRT_Buffer_Delete_Args { buffer: self.raw }).map(drop)
    }

    /// An event for its data (`PJRT_Buffer_ReadyEvent`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn ready(&self) -> Result<Event> {
        let args = call!(self.plugin, PJRT_Buffer_ReadyEvent_Args { buffer: self.raw })?;
        Event::from_raw(self.plugin, args.event, "PJRT_Buffer_ReadyEvent")
    }

    /// Holds the data (`PJRT_Buffer_IncreaseExternalReferenceCount`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn hold(&self) -> Result<()> {
        call!(self.plugin, PJRT_Buffer_IncreaseExternalReferenceCount_Args { buffer: self.raw }).map(drop)
    }

    /// Holds it no longer (`PJRT_Buffer_DecreaseExternalReferenceCount`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn release(&self) -> Result<()> {
        call!(self.plugin, PJRT_Buffer_DecreaseExternalReferenceCount_Args { buffer: self.raw }).map(drop)
    }

    /// The address of data that is held (`PJRT_Buffer_OpaqueDeviceMemoryDataPointer`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn opaque_pointer(&self) -> Result<usize> {
        let args = call!(self.plugin, PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { buffer: self.raw })?;
        Ok(args.device_memory_ptr.addr())
    }

    /// The bytes of data that is held and that the host can read in place; `None` if it cannot.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn bytes_in_place(&self) -> Result<Option<Vec<u8>>> {
        if !self.is_on_cpu()? {
            return Ok(None);
        }
        let args = call!(self.plugin, PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { buffer: self.raw })?;
        let size = self.on_device_size()?;
        believed::<u8>("PJRT_Buffer_OnDeviceSizeInBytes", size)?;
        // SAFETY: the plugin says that the host can read the data at this address, of which there is so much.
        Ok(Some(unsafe { bytes(args.device_memory_ptr, size) }.to_vec()))
    }

    /// Where the bytes of held data are that the host can read in place, to look at them later.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn held_bytes(&self) -> Result<HeldBytes> {
        let args = call!(self.plugin, PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { buffer: self.raw })?;
        Ok(HeldBytes { start: args.device_memory_ptr, size: self.on_device_size()? })
    }

    /// Whether both are the same object, which would then be destroyed twice.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.raw == other.raw
    }

    /// How many bytes a readback takes (`PJRT_Buffer_ToHostBuffer` without a destination).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn host_size(&self, layout: &CopyLayout) -> Result<usize> {
        let mut layout = layout.raw();
        let host_layout = layout.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
        Ok(call!(self.plugin, PJRT_Buffer_ToHostBuffer_Args { src: self.raw, host_layout })?.dst_size)
    }

    /// Reads it back (`PJRT_Buffer_ToHostBuffer`): dense and row-major, in as many bytes as the plugin asks for.
    ///
    /// # Errors
    ///
    /// The plugin's, of the call or the event.
    pub fn read(&self) -> Result<Vec<u8>> {
        let size = self.host_size(&CopyLayout::Unsaid)?;
        if size > MOST_READ {
            let message =
                format!("it asks for {size} bytes for an array; more than {MOST_READ} are not believed");
            return Err(Error::broken("PJRT_Buffer_ToHostBuffer", message));
        }
        self.read_into(size, &CopyLayout::Unsaid)
    }

    /// Reads it back into so many bytes, which are 0xEE before.
    ///
    /// # Errors
    ///
    /// The plugin's, of the call or the event.
    pub fn read_into(&self, size: usize, layout: &CopyLayout) -> Result<Vec<u8>> {
        let (bytes, event) = self.start_read(size, layout)?;
        event.wait()?;
        Ok(bytes.bytes())
    }

    /// Reads it back into so many bytes with `more` after them, which the plugin is not told of.
    ///
    /// # Errors
    ///
    /// The plugin's, of the call or the event.
    pub fn read_into_part(&self, size: usize, more: usize) -> Result<Vec<u8>> {
        let destination = super::upload::HostMemory::new(&vec![0xEE; size + more], 0);
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

    /// Starts to read it back, and gives the memory and the event.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn start_read(&self, size: usize, layout: &CopyLayout) -> Result<(super::upload::HostMemory, Event)> {
        let destination = super::upload::HostMemory::new(&vec![0xEE; size], 0);
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

    /// Copies bytes as they lie on the device (`PJRT_Buffer_CopyRawToHost`). The first error is the call's, the second the
    /// event's.
    ///
    /// # Errors
    ///
    /// The call's.
    pub fn read_raw(&self, offset: i64, size: i64) -> Result<Result<Vec<u8>>> {
        let len = usize::try_from(size).unwrap_or(0);
        let destination = super::upload::HostMemory::new(&vec![0xEE; len], 0);
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
        Ok(event.wait().map(|()| destination.bytes()))
    }

    /// Starts a raw copy without saying where to (`PJRT_Buffer_CopyRawToHostFuture`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn read_raw_later(&self, offset: i64, size: i64) -> Result<FutureCopy> {
        const FUNCTION: &str = "PJRT_Buffer_CopyRawToHostFuture";
        let args = call!(
            self.plugin,
            PJRT_Buffer_CopyRawToHostFuture_Args { buffer: self.raw, offset, transfer_size: size }
        )?;
        let event = Event::from_raw(self.plugin, args.event, FUNCTION)?;
        let callback =
            args.future_ready_callback.ok_or_else(|| Error::broken(FUNCTION, "it gave no callback"))?;
        let size = usize::try_from(size).unwrap_or(0);
        Ok(FutureCopy { event, data: args.callback_data, callback, size })
    }

    /// A copy in another memory of the client (`PJRT_Buffer_CopyToMemory`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn copy_to_memory(&self, memory: Memory<'_>) -> Result<Self> {
        let args =
            call!(self.plugin, PJRT_Buffer_CopyToMemory_Args { buffer: self.raw, dst_memory: memory.raw })?;
        Self::from_raw(self.plugin, args.dst_buffer, "PJRT_Buffer_CopyToMemory")
    }

    /// A copy on another device of the client (`PJRT_Buffer_CopyToDevice`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn copy_to_device(&self, device: Device<'_>) -> Result<Self> {
        let args =
            call!(self.plugin, PJRT_Buffer_CopyToDevice_Args { buffer: self.raw, dst_device: device.raw })?;
        Self::from_raw(self.plugin, args.dst_buffer, "PJRT_Buffer_CopyToDevice")
    }

    /// The same bytes as another array (`PJRT_Buffer_Bitcast`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn bitcast(&self, element_type: ElementType, dims: &[i64]) -> Result<Self> {
        let args = call!(
            self.plugin,
            PJRT_Buffer_Bitcast_Args {
                buffer: self.raw,
                element_type: PJRT_Buffer_Type(element_type.0),
                dims: dims.as_ptr(),
                num_dims: dims.len(),
            }
        )?;
        Self::from_raw(self.plugin, args.out_buffer, "PJRT_Buffer_Bitcast")
    }

    /// Gives the data to a new buffer, which is ready once the dependency is
    /// (`PJRT_Buffer_DonateWithControlDependency`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn donate(&self) -> Result<(Self, Dependency)> {
        const FUNCTION: &str = "PJRT_Buffer_DonateWithControlDependency";
        let args = call!(self.plugin, PJRT_Buffer_DonateWithControlDependency_Args { buffer: self.raw })?;
        let buffer = Self::from_raw(self.plugin, args.out_buffer, FUNCTION)?;
        let callback =
            args.dependency_ready_callback.ok_or_else(|| Error::broken(FUNCTION, "it gave no callback"))?;
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

/// A number of the interface as C has it.
pub(crate) fn c_number(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}
