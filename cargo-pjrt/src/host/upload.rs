//! Transfers of host memory to devices.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use pjrt_sys::*;

use super::buffer::Buffer;
use super::client::Client;
use super::error::Result;
use super::event::Event;
use super::objects::{Device, Memory};
use super::plugin::call;
use super::values::ElementType;

/// The host's guarantee about its memory (`PJRT_HostBufferSemantics`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Semantics {
    /// The memory does not change during the call.
    ImmutableOnlyDuringCall,
    /// The memory does not change until the event is complete.
    ImmutableUntilTransferCompletes,
    /// The memory does not change while the buffer exists, and the buffer may use it in place.
    ImmutableZeroCopy,
    /// As `ImmutableZeroCopy`; in addition, the plugin may write to the memory.
    MutableZeroCopy,
}

impl Semantics {
    fn raw(self) -> PJRT_HostBufferSemantics {
        PJRT_HostBufferSemantics(self as u32)
    }
}

/// Host memory. It is never freed, because a plugin may read it for any length of time.
#[derive(Debug)]
pub struct HostMemory {
    start: *mut u8,
    len: usize,
}

// SAFETY: this is plain memory that is never freed, and is read and written only through pointers.
unsafe impl Send for HostMemory {}
// SAFETY: as above. A reader that runs concurrently with a writer sees bytes, as the plugin's readers do.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Allocates memory with these bytes, `skew` bytes after an address that is a multiple of 64.
    #[must_use]
    pub fn new(bytes: &[u8], skew: usize) -> Self {
        const ALIGN: usize = 64;
        let block: &'static mut [u8] = Vec::leak(vec![0; bytes.len() + 2 * ALIGN]);
        let start = block.as_mut_ptr();
        let offset = start.align_offset(ALIGN) + skew % ALIGN;
        // SAFETY: the block has room for the bytes after an offset of less than twice the alignment.
        unsafe {
            let start = start.add(offset);
            ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            Self { start, len: bytes.len() }
        }
    }

    /// Overwrites the memory with these bytes.
    ///
    /// # Panics
    ///
    /// Panics if the number of bytes differs from the size of the memory.
    pub fn write(&self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.len, "the bytes have the size of the memory");
        // SAFETY: this object owns the memory, which is never freed.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start, self.len) };
    }

    /// Sets all bytes to this value.
    pub fn fill(&self, byte: u8) {
        // SAFETY: this object owns the memory, which is never freed.
        unsafe { self.start.write_bytes(byte, self.len) };
    }

    /// Returns the contents.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: this object owns the memory, which is never freed.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }.to_vec()
    }

    /// Returns the address, for a plugin that writes to the memory.
    pub(super) fn exposed(&self) -> usize {
        self.start.expose_provenance()
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> usize {
        self.start.addr()
    }
}

/// The layout of an array in memory (`PJRT_Buffer_MemoryLayout`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// A dense layout: the dimensions from minor to major.
    MinorToMajor(Vec<i64>),
    /// The strides, in bytes.
    Strides(Vec<i64>),
}

impl Layout {
    /// Returns the C struct, which points into `self`. Its nested `struct_size` is garbage, as some hosts
    /// leave it.
    pub(super) fn raw(&self) -> PJRT_Buffer_MemoryLayout {
        let mut raw = PJRT_Buffer_MemoryLayout::zeroed();
        match self {
            Self::MinorToMajor(order) => {
                raw.type_ = PJRT_Buffer_MemoryLayout_Type_Tiled;
                raw.u.tiled = PJRT_Buffer_MemoryLayout_Tiled {
                    minor_to_major: order.as_ptr(),
                    minor_to_major_size: order.len(),
                    ..PJRT_Buffer_MemoryLayout_Tiled::zeroed()
                };
            }
            Self::Strides(strides) => {
                raw.type_ = PJRT_Buffer_MemoryLayout_Type_Strides;
                raw.u.strides = PJRT_Buffer_MemoryLayout_Strides {
                    byte_strides: strides.as_ptr(),
                    num_byte_strides: strides.len(),
                    ..PJRT_Buffer_MemoryLayout_Strides::zeroed()
                };
            }
        }
        raw
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

/// Memory for views.
#[derive(Debug)]
pub struct ViewMemory {
    /// `None` is a null pointer.
    memory: Option<HostMemory>,
    deleted: &'static AtomicUsize,
}

impl ViewMemory {
    /// Allocates memory with these bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self::skewed(bytes, 0)
    }

    /// Allocates memory with these bytes, `skew` bytes after an address that is a multiple of 64.
    #[must_use]
    pub fn skewed(bytes: &[u8], skew: usize) -> Self {
        Self { memory: Some(HostMemory::new(bytes, skew)), deleted: Box::leak(Box::default()) }
    }

    /// Returns no memory, which is a null pointer.
    #[must_use]
    pub fn null() -> Self {
        Self { memory: None, deleted: Box::leak(Box::default()) }
    }

    fn start(&self) -> *mut u8 {
        self.memory.as_ref().map_or(ptr::null_mut(), |memory| memory.start)
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> usize {
        self.start().addr()
    }

    /// Overwrites the memory with these bytes.
    ///
    /// # Panics
    ///
    /// Panics if the number of bytes differs from the size of the memory.
    pub fn write(&self, bytes: &[u8]) {
        match &self.memory {
            Some(memory) => memory.write(bytes),
            None => assert!(bytes.is_empty(), "there is no memory"),
        }
    }

    /// Returns the number of times that the plugin released the memory.
    #[must_use]
    pub fn deleted(&self) -> usize {
        self.deleted.load(Ordering::SeqCst)
    }

    /// Returns the contents.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.memory.as_ref().map(HostMemory::bytes).unwrap_or_default()
    }
}

/// The callback of a view.
///
/// # Safety
///
/// The plugin calls this function with the argument of `view`.
unsafe extern "C" fn view_deleted(_: *mut c_void, user_arg: *mut c_void) {
    // SAFETY: the argument is a counter that is never freed.
    unsafe { &*user_arg.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}
