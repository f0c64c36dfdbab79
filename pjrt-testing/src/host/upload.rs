//! Transfers of host memory to devices.

use std::ffi::c_void;
use std::ptr;

use pjrt_sys::*;

use super::buffer::Buffer;
use super::call::call;
use super::client::Client;
use super::element_type::ElementType;
use super::error::Result;
use super::event::Event;
use super::host_memory::{HostMemory, ViewMemory, view_deleted};
use super::layout::Layout;
use super::objects::{Device, Memory};

/// The host's guarantee about its memory (`PJRT_HostBufferSemantics`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Semantics {
    /// The memory does not change during the call.
    ImmutableOnlyDuringCall,
    /// The memory does not change until the event is complete.
    ImmutableUntilTransferCompletes,
    /// The memory does not change while the buffer exists, and the buffer may use it in place.
    ImmutableZeroCopy,
    /// The same as `ImmutableZeroCopy`, but the plugin may also write to the memory.
    MutableZeroCopy,
}

impl Semantics {
    /// All values.
    pub const ALL: [Self; 4] = [
        Self::ImmutableOnlyDuringCall,
        Self::ImmutableUntilTransferCompletes,
        Self::ImmutableZeroCopy,
        Self::MutableZeroCopy,
    ];

    fn raw(self) -> PJRT_HostBufferSemantics {
        PJRT_HostBufferSemantics(self as u32)
    }
}

/// A host array to transfer to a device.
#[derive(Debug, Clone)]
pub struct HostArray<'a> {
    /// The bytes. If there are strides, the bytes from the first to the last element in memory.
    pub bytes: &'a [u8],
    /// The element type. Elements of less than a byte occupy one byte each.
    pub element_type: ElementType,
    /// The dimensions.
    pub dims: &'a [i64],
    /// The distance between elements along each dimension, in bytes. `None` means dense and row-major.
    pub strides: Option<&'a [i64]>,
    /// The offset in `bytes` of the element whose indices are all 0. It is nonzero if strides are negative.
    pub first: usize,
    /// The host's guarantee about the memory.
    pub semantics: Semantics,
    /// The number of bytes by which the memory is misaligned to 64 bytes.
    pub skew: usize,
    /// The requested layout on the device.
    pub device_layout: Option<Layout>,
    /// `true` to pass a null pointer in place of the bytes.
    pub null_data: bool,
    /// The value for the layout's `struct_size`, to simulate hosts that leave it uninitialized.
    pub layout_struct_size: Option<usize>,
}

impl<'a> HostArray<'a> {
    /// Creates a dense, row-major array.
    #[must_use]
    pub fn new(bytes: &'a [u8], element_type: ElementType, dims: &'a [i64]) -> Self {
        Self {
            bytes,
            element_type,
            dims,
            strides: None,
            first: 0,
            semantics: Semantics::ImmutableOnlyDuringCall,
            skew: 0,
            device_layout: None,
            null_data: false,
            layout_struct_size: None,
        }
    }
}

/// An array that was transferred to a device.
#[derive(Debug)]
pub struct Uploaded {
    /// The array on the device.
    pub buffer: Buffer,
    /// The event that is complete when the plugin no longer needs the host's memory.
    pub done: Event,
    /// The host's memory.
    pub memory: HostMemory,
}

impl Client {
    /// Transfers an array to a device, or to one of its memories (`PJRT_Client_BufferFromHostBuffer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn upload(
        &self,
        array: &HostArray<'_>,
        device: Option<Device<'_>>,
        memory: Option<Memory<'_>>,
    ) -> Result<Uploaded> {
        let (device, memory) = self.place_of_upload(device, memory)?;
        let host = HostMemory::new(array.bytes, array.skew);
        let mut layout = array.device_layout.as_ref().map(Layout::raw);
        if let (Some(layout), Some(size)) = (&mut layout, array.layout_struct_size) {
            layout.struct_size = size;
        }
        let data: *const u8 =
            if array.null_data { ptr::null() } else { host.start.wrapping_add(array.first) };
        let args = call!(
            self.plugin,
            PJRT_Client_BufferFromHostBuffer_Args {
                client: self.raw,
                data: data.cast(),
                type_: PJRT_Buffer_Type(array.element_type.0),
                dims: array.dims.as_ptr(),
                num_dims: array.dims.len(),
                byte_strides: array.strides.map_or(ptr::null(), <[i64]>::as_ptr),
                num_byte_strides: array.strides.map_or(0, <[i64]>::len),
                host_buffer_semantics: array.semantics.raw(),
                device: device.map_or(ptr::null_mut(), |device| device.raw),
                memory: memory.map_or(ptr::null_mut(), |memory| memory.raw),
                device_layout: layout.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
            }
        )?;
        const FUNCTION: &str = "PJRT_Client_BufferFromHostBuffer";
        Ok(Uploaded {
            buffer: Buffer::from_raw(self.plugin, args.buffer, FUNCTION)?,
            done: Event::from_raw(self.plugin, args.done_with_host_buffer, FUNCTION)?,
            memory: host,
        })
    }

    /// Replaces a device by the memory of it that the host [prefers](crate::preferred).
    fn place_of_upload<'c>(
        &self,
        device: Option<Device<'c>>,
        memory: Option<Memory<'c>>,
    ) -> Result<(Option<Device<'c>>, Option<Memory<'c>>)> {
        let (Some(on), None) = (device, memory) else { return Ok((device, memory)) };
        Ok(match on.preferred_memory()? {
            Some(preferred) => (None, Some(preferred)),
            None => (device, memory),
        })
    }

    /// Transfers all bytes of host memory to a device, with `ImmutableUntilTransferCompletes`.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn upload_from(
        &self,
        memory: &HostMemory,
        element_type: ElementType,
        dims: &[i64],
        device: Device<'_>,
    ) -> Result<Uploaded> {
        const FUNCTION: &str = "PJRT_Client_BufferFromHostBuffer";
        let args = call!(
            self.plugin,
            PJRT_Client_BufferFromHostBuffer_Args {
                client: self.raw,
                data: memory.start.cast(),
                type_: PJRT_Buffer_Type(element_type.0),
                dims: dims.as_ptr(),
                num_dims: dims.len(),
                host_buffer_semantics: Semantics::ImmutableUntilTransferCompletes.raw(),
                device: device.raw,
            }
        )?;
        Ok(Uploaded {
            buffer: Buffer::from_raw(self.plugin, args.buffer, FUNCTION)?,
            done: Event::from_raw(self.plugin, args.done_with_host_buffer, FUNCTION)?,
            memory: HostMemory { start: memory.start, len: memory.len, is_destination: false },
        })
    }

    /// Creates a buffer that is a view of host memory (`PJRT_Client_CreateViewOfDeviceBuffer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn view(
        &self,
        memory: &ViewMemory,
        element_type: ElementType,
        dims: &[i64],
        device: Device<'_>,
    ) -> Result<Buffer> {
        let args = call!(
            self.plugin,
            PJRT_Client_CreateViewOfDeviceBuffer_Args {
                client: self.raw,
                device_buffer_ptr: memory.start().cast(),
                dims: dims.as_ptr(),
                num_dims: dims.len(),
                element_type: PJRT_Buffer_Type(element_type.0),
                device: device.raw,
                on_delete_callback: Some(view_deleted),
                on_delete_callback_arg: ptr::from_ref(memory.deleted).cast_mut().cast(),
            }
        )?;
        Buffer::from_raw(self.plugin, args.buffer, "PJRT_Client_CreateViewOfDeviceBuffer")
    }

    /// Pins host memory for transfers, and unpins it (`PJRT_Client_DmaMap`, `PJRT_Client_DmaUnmap`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn map_and_unmap(&self, memory: &HostMemory) -> Result<()> {
        let data: *mut c_void = memory.start.cast();
        call!(self.plugin, PJRT_Client_DmaMap_Args { client: self.raw, data, size: memory.len })?;
        call!(self.plugin, PJRT_Client_DmaUnmap_Args { client: self.raw, data }).map(drop)
    }
}
