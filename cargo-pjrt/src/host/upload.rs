//! Host memory on its way to a device.

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

/// What the host promises about its memory (`PJRT_HostBufferSemantics`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Semantics {
    /// It stays as it is during the call.
    ImmutableOnlyDuringCall,
    /// It stays until the event says so.
    ImmutableUntilTransferCompletes,
    /// It stays as long as the buffer, which may use it in place.
    ImmutableZeroCopy,
    /// The same, and the plugin may write into it.
    MutableZeroCopy,
}

impl Semantics {
    fn raw(self) -> PJRT_HostBufferSemantics {
        PJRT_HostBufferSemantics(self as u32)
    }
}

/// Memory of the host. It is never given back: a plugin may read it as long as it likes.
#[derive(Debug)]
pub struct HostMemory {
    start: *mut u8,
    len: usize,
}

// SAFETY: it is plain memory that lives for ever, and read and written only through pointers.
unsafe impl Send for HostMemory {}
// SAFETY: as above; who writes while others read sees what the plugin's readers see, bytes.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Memory with these bytes, `skew` bytes off an alignment of 64.
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

    /// Overwrites it with as many bytes.
    ///
    /// # Panics
    ///
    /// If there are more or fewer.
    pub fn write(&self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.len, "as many bytes as there are");
        // SAFETY: the memory is ours and lives for ever.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start, self.len) };
    }

    /// Overwrites it.
    pub fn fill(&self, byte: u8) {
        // SAFETY: the memory is ours and lives for ever.
        unsafe { self.start.write_bytes(byte, self.len) };
    }

    /// What is in it.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: the memory is ours and lives for ever.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }.to_vec()
    }

    /// Where it is, for a plugin to write to.
    pub(super) fn exposed(&self) -> usize {
        self.start.expose_provenance()
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> usize {
        self.start.addr()
    }
}

/// How an array lies in memory (`PJRT_Buffer_MemoryLayout`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// Dense, by the order of dimensions from the fastest to the slowest.
    MinorToMajor(Vec<i64>),
    /// By the distance of elements, in bytes.
    Strides(Vec<i64>),
}

impl Layout {
    /// The struct, which points into `self`. Its nested `struct_size` is what some hosts leave there: garbage.
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

/// An array of the host to put on a device.
#[derive(Debug, Clone)]
pub struct HostArray<'a> {
    /// The bytes; with strides, those from the first to the last element in memory.
    pub bytes: &'a [u8],
    /// The type of the elements; types of less than a byte take one each.
    pub element_type: ElementType,
    /// The dimensions.
    pub dims: &'a [i64],
    /// The distance of elements along each dimension, in bytes; `None` is dense and row-major.
    pub strides: Option<&'a [i64]>,
    /// Where in `bytes` the element with all indices 0 lies: not at the start, if strides are negative.
    pub first: usize,
    /// What the host promises.
    pub semantics: Semantics,
    /// By how many bytes the memory misses an alignment of 64.
    pub skew: usize,
    /// The layout that the host wants on the device.
    pub device_layout: Option<Layout>,
    /// Pass a null pointer in place of the bytes.
    pub null_data: bool,
    /// Put this into the `struct_size` of the layout, as hosts do that leave it uninitialised.
    pub layout_struct_size: Option<usize>,
}

impl<'a> HostArray<'a> {
    /// A dense row-major array.
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

/// An array that was put on a device.
#[derive(Debug)]
pub struct Uploaded {
    /// The array on the device.
    pub buffer: Buffer,
    /// Complete when the plugin does not need the host's memory any more.
    pub done: Event,
    /// The host's memory.
    pub memory: HostMemory,
}

impl Client {
    /// Puts an array on a device, or in one of its memories (`PJRT_Client_BufferFromHostBuffer`).
    ///
    /// # Errors
    ///
    /// The plugin's.
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

    /// A buffer over memory of the host (`PJRT_Client_CreateViewOfDeviceBuffer`).
    ///
    /// # Errors
    ///
    /// The plugin's.
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

    /// Pins memory of the host for transfers, and unpins it again (`PJRT_Client_DmaMap`, `PJRT_Client_DmaUnmap`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn map_and_unmap(&self, memory: &HostMemory) -> Result<()> {
        let data: *mut c_void = memory.start.cast();
        call!(self.plugin, PJRT_Client_DmaMap_Args { client: self.raw, data, size: memory.len })?;
        call!(self.plugin, PJRT_Client_DmaUnmap_Args { client: self.raw, data }).map(drop)
    }
}

/// Memory that a buffer is made a view of.
#[derive(Debug)]
pub struct ViewMemory {
    /// Nothing is a null pointer.
    memory: Option<HostMemory>,
    deleted: &'static AtomicUsize,
}

impl ViewMemory {
    /// Memory with these bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self::skewed(bytes, 0)
    }

    /// Memory with these bytes, so many bytes off an alignment of 64.
    #[must_use]
    pub fn skewed(bytes: &[u8], skew: usize) -> Self {
        Self { memory: Some(HostMemory::new(bytes, skew)), deleted: Box::leak(Box::default()) }
    }

    /// No memory: a null pointer.
    #[must_use]
    pub fn null() -> Self {
        Self { memory: None, deleted: Box::leak(Box::default()) }
    }

    fn start(&self) -> *mut u8 {
        self.memory.as_ref().map_or(ptr::null_mut(), |memory| memory.start)
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> usize {
        self.start().addr()
    }

    /// Overwrites it with as many bytes.
    ///
    /// # Panics
    ///
    /// If there are more or fewer.
    pub fn write(&self, bytes: &[u8]) {
        match &self.memory {
            Some(memory) => memory.write(bytes),
            None => assert!(bytes.is_empty(), "there is no memory"),
        }
    }

    /// How many times the plugin said that it does not need the memory any more.
    #[must_use]
    pub fn deleted(&self) -> usize {
        self.deleted.load(Ordering::SeqCst)
    }

    /// What is in it.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.memory.as_ref().map(HostMemory::bytes).unwrap_or_default()
    }
}

/// The callback of a view.
///
/// # Safety
///
/// Called by a plugin with the argument of `view`.
unsafe extern "C" fn view_deleted(_: *mut c_void, user_arg: *mut c_void) {
    // SAFETY: the argument is a counter that lives for ever.
    unsafe { &*user_arg.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}
