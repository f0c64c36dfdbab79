//! Arrays in the memory of devices.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::{ptr, slice};

use eerie_sys::runtime as sys;

use crate::allocator::allocator;
use crate::device::{Device, called_by_iree};
use crate::element_type::ElementType;
use crate::fence::{Fence, forever};
use crate::handle::Handle;
use crate::status::{Code, Error, Result, check};

/// An array in the memory of a device: a buffer view.
///
/// The elements are dense and row-major. They do not change: an array is written when it is created or, if it is the result of a
/// call, once by the call.
pub struct Array {
    /// The memory as the host sees it, if the host can read it in place.
    mapping: OnceLock<Option<Mapping>>,
    view: Handle<sys::iree_hal_buffer_view_t>,
    /// The point in time at which the elements are written; `None` if they are.
    ready: Option<Fence>,
    /// The device of the memory, which has no reference to it, and is dropped last.
    _device: Device,
}

impl Array {
    /// Creates an array with these elements.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory, or INVALID_ARGUMENT if the size of the bytes is not that of the
    /// array.
    pub fn upload(device: &Device, element_type: ElementType, dims: &[usize], bytes: &[u8]) -> Result<Self> {
        check_size(element_type, dims, bytes.len())?;
        let mut buffer = ptr::null_mut();
        // SAFETY: The allocator is alive, and the pointer is valid for writes. The new buffer belongs to the handle.
        let buffer = unsafe {
            let params = parameters(sys::iree_hal_memory_access_bits_t_IREE_HAL_MEMORY_ACCESS_ALL as _);
            let allocator = device.allocator();
            check(sys::iree_hal_allocator_allocate_buffer(allocator, params, bytes.len() as _, &mut buffer))?;
            Handle::own(buffer)?
        };
        if !bytes.is_empty() {
            let (source, size) = (bytes.as_ptr().cast(), bytes.len() as _);
            // SAFETY: Device and buffer are alive. The source is valid for this size, which is that of the buffer, until the call
            // returns: it waits for the transfer.
            unsafe {
                let device = device.as_ptr();
                check(sys::iree_hal_device_transfer_h2d(
                    device,
                    source,
                    buffer.as_ptr(),
                    0,
                    size,
                    0,
                    forever(),
                ))?;
            }
        }
        Self::of_buffer(device, &buffer, element_type, dims)
    }

    /// Creates an array whose elements are the bytes of `owner`, which the device reads in place. The owner is dropped when
    /// nothing uses the array any more.
    ///
    /// # Errors
    ///
    /// Returns the owner if the device cannot read this memory in place, for example because it is not aligned to 64 bytes.
    pub fn import<O>(device: &Device, element_type: ElementType, dims: &[usize], owner: O) -> Result<Self, O>
    where
        O: AsRef<[u8]> + Send + 'static,
    {
        // The box gives the owner a fixed address, so that its bytes stay where they are.
        let owner = Box::new(owner);
        let bytes = (*owner).as_ref();
        if bytes.is_empty() || check_size(element_type, dims, bytes.len()).is_err() {
            return Err(*owner);
        }
        let mut external = sys::iree_hal_external_buffer_t {
            type_: sys::iree_hal_external_buffer_type_e_IREE_HAL_EXTERNAL_BUFFER_TYPE_HOST_ALLOCATION,
            flags: 0,
            size: bytes.len() as _,
            ..Default::default()
        };
        external.handle.host_allocation.ptr = bytes.as_ptr().cast_mut().cast();
        let user_data = Box::into_raw(owner);
        let callback =
            sys::iree_hal_buffer_release_callback_t { fn_: Some(release::<O>), user_data: user_data.cast() };
        let params = parameters(sys::iree_hal_memory_access_bits_t_IREE_HAL_MEMORY_ACCESS_READ as _);
        let mut buffer = ptr::null_mut();
        // SAFETY: The allocator is alive, and the pointers are valid. The bytes are valid until `release` drops their owner,
        // which nobody else can access. They are only read: the access of the buffer does not permit writes, and programs do
        // not write to their arguments. The new buffer belongs to the handle.
        let imported = unsafe {
            check(sys::iree_hal_allocator_import_buffer(
                device.allocator(),
                params,
                &mut external,
                callback,
                &mut buffer,
            ))
        };
        if imported.is_err() || buffer.is_null() {
            // SAFETY: The pointer came from a box, and the callback is not called if there is no buffer.
            return Err(*unsafe { Box::from_raw(user_data) });
        }
        // SAFETY: As above.
        let array = unsafe { Handle::own(buffer) }
            .and_then(|buffer| Self::of_buffer(device, &buffer, element_type, dims));
        // The view is a small allocation. If it fails, there is no memory to report an error either.
        Ok(array.expect("there is memory for a view"))
    }

    /// Creates the view of a buffer.
    fn of_buffer(
        device: &Device,
        buffer: &Handle<sys::iree_hal_buffer_t>,
        element_type: ElementType,
        dims: &[usize],
    ) -> Result<Self> {
        let mut view = ptr::null_mut();
        let dims: Vec<sys::iree_hal_dim_t> = dims.iter().map(|dim| *dim as _).collect();
        let row_major = sys::iree_hal_encoding_types_t_IREE_HAL_ENCODING_TYPE_DENSE_ROW_MAJOR;
        // SAFETY: The buffer is alive, the list has this length, and the pointer is valid for writes. The view has a reference of
        // its own to the buffer, and belongs to the handle.
        let view = unsafe {
            check(sys::iree_hal_buffer_view_create(
                buffer.as_ptr(),
                dims.len(),
                dims.as_ptr(),
                element_type.number(),
                row_major as _,
                allocator(),
                &mut view,
            ))?;
            Handle::own(view)?
        };
        Ok(Self::of_view(device, view, None))
    }

    /// Creates the array of a view whose elements are written at a point in time.
    pub(crate) fn of_view(
        device: &Device,
        view: Handle<sys::iree_hal_buffer_view_t>,
        ready: Option<Fence>,
    ) -> Self {
        Self { mapping: OnceLock::new(), view, ready, _device: device.clone() }
    }

    pub(crate) fn view(&self) -> &Handle<sys::iree_hal_buffer_view_t> {
        &self.view
    }

    /// Returns the point in time at which the elements are written, if it is not reached.
    pub(crate) fn pending(&self) -> Option<&Fence> {
        self.ready.as_ref().filter(|ready| !matches!(ready.is_reached(), Ok(true)))
    }

    fn buffer(&self) -> *mut sys::iree_hal_buffer_t {
        // SAFETY: The view is alive, and has a reference to the buffer.
        unsafe { sys::iree_hal_buffer_view_buffer(self.view.as_ptr()) }
    }

    /// Returns the size of the elements in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        // SAFETY: The view is alive.
        unsafe { sys::iree_hal_buffer_view_byte_length(self.view.as_ptr()) as usize }
    }

    /// Waits until the elements are written.
    ///
    /// # Errors
    ///
    /// Returns the error of the call that should have written them.
    pub fn wait(&self) -> Result<()> {
        self.ready.as_ref().map_or(Ok(()), Fence::wait)
    }

    /// Returns the elements, if the host can read the memory in place. Waits until they are written.
    ///
    /// # Errors
    ///
    /// Returns the error of the call that should have written them.
    pub fn bytes(&self) -> Result<Option<&[u8]>> {
        self.wait()?;
        if self.size() == 0 {
            return Ok(Some(&[]));
        }
        // SAFETY: The buffer is alive, and nobody writes to it any more.
        let mapping = self.mapping.get_or_init(|| unsafe { Mapping::of(self.buffer(), self.size()) });
        Ok(mapping.as_ref().map(Mapping::bytes))
    }

    /// Copies the elements to host memory of exactly their size. Waits until they are written.
    ///
    /// # Errors
    ///
    /// Returns the error of the call that should have written them, INVALID_ARGUMENT if the size is wrong, or the error of the
    /// transfer.
    pub fn read(&self, device: &Device, target: &mut [u8]) -> Result<()> {
        let size = self.size();
        if target.len() != size {
            let message = format!("the array has {size} bytes, but its copy would have {}", target.len());
            return Err(Error::new(Code::InvalidArgument, message));
        }
        if let Some(bytes) = self.bytes()? {
            target.copy_from_slice(bytes);
            return Ok(());
        }
        let (target, size) = (target.as_mut_ptr().cast(), size as _);
        // SAFETY: Device and buffer are alive. The target is valid for writes of this size, which is that of the buffer, until
        // the call returns: it waits for the transfer.
        unsafe {
            check(sys::iree_hal_device_transfer_d2h(
                device.as_ptr(),
                self.buffer(),
                0,
                target,
                size,
                0,
                forever(),
            ))
        }
    }

    /// Returns a copy of the elements. Waits until they are written.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](Self::read).
    pub fn to_vec(&self, device: &Device) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.size()];
        self.read(device, &mut bytes)?;
        Ok(bytes)
    }
}

fn check_size(element_type: ElementType, dims: &[usize], found: usize) -> Result<()> {
    let size = dims.iter().try_fold(element_type.byte_size(), |size, dim| size.checked_mul(*dim));
    if size == Some(found) {
        return Ok(());
    }
    let message = format!("{found} bytes are not an array of {element_type:?} with the dimensions {dims:?}");
    Err(Error::new(Code::InvalidArgument, message))
}

/// Returns the parameters of memory that the device uses often and that the host can map if the device has such memory.
fn parameters(access: sys::iree_hal_memory_access_t) -> sys::iree_hal_buffer_params_t {
    sys::iree_hal_buffer_params_t {
        usage: (sys::iree_hal_buffer_usage_bits_t_IREE_HAL_BUFFER_USAGE_DEFAULT
            | sys::iree_hal_buffer_usage_bits_t_IREE_HAL_BUFFER_USAGE_MAPPING_OPTIONAL
            | sys::iree_hal_buffer_usage_bits_t_IREE_HAL_BUFFER_USAGE_MAPPING) as _,
        access,
        type_: sys::iree_hal_memory_type_bits_t_IREE_HAL_MEMORY_TYPE_DEVICE_VISIBLE as _,
        ..Default::default()
    }
}

/// Drops the owner of imported memory.
unsafe extern "C" fn release<O>(user_data: *mut c_void, _: *mut sys::iree_hal_buffer_t) {
    // SAFETY: `import` made the pointer from a box of this type, and IREE calls the function once.
    called_by_iree(|| drop(unsafe { Box::from_raw(user_data.cast::<O>()) }));
}

/// Memory of a device that is mapped for the host until it is dropped, and has a reference to its buffer.
struct Mapping(sys::iree_hal_buffer_mapping_t);

// SAFETY: The mapping consists of pointers to memory that does not change, and it is unmapped once, by any thread.
unsafe impl Send for Mapping {}
// SAFETY: As above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a buffer of this size, or returns `None` if the host cannot read it in place.
    ///
    /// # Safety
    ///
    /// The buffer must be alive, and nobody may write to it any more.
    unsafe fn of(buffer: *mut sys::iree_hal_buffer_t, size: usize) -> Option<Self> {
        let visible = sys::iree_hal_memory_type_bits_t_IREE_HAL_MEMORY_TYPE_HOST_VISIBLE;
        let usage = sys::iree_hal_buffer_usage_bits_t_IREE_HAL_BUFFER_USAGE_MAPPING_SCOPED;
        // SAFETY: The buffer is alive.
        let (memory, allowed) =
            unsafe { (sys::iree_hal_buffer_memory_type(buffer), sys::iree_hal_buffer_allowed_usage(buffer)) };
        if memory & visible as sys::iree_hal_memory_type_t == 0
            || allowed & usage as sys::iree_hal_buffer_usage_t == 0
        {
            return None;
        }
        let mut mapping = sys::iree_hal_buffer_mapping_t::default();
        let mode = sys::iree_hal_mapping_mode_bits_t_IREE_HAL_MAPPING_MODE_SCOPED;
        let read = sys::iree_hal_memory_access_bits_t_IREE_HAL_MEMORY_ACCESS_READ;
        // SAFETY: The buffer is alive, and the pointer is valid for writes.
        let mapped = unsafe {
            check(sys::iree_hal_buffer_map_range(buffer, mode as _, read as _, 0, size as _, &mut mapping))
        };
        let mut mapping = mapped.ok().map(|()| Self(mapping))?;
        // SAFETY: The mapping is valid. Memory that is not coherent becomes visible to the host.
        unsafe { check(sys::iree_hal_buffer_mapping_invalidate_range(&mut mapping.0, 0, size as _)).ok()? };
        (mapping.0.contents.data_length >= size).then_some(mapping)
    }

    fn bytes(&self) -> &[u8] {
        let contents = self.0.contents;
        // SAFETY: The memory is mapped until `self` is dropped, and nobody writes to it.
        unsafe { slice::from_raw_parts(contents.data, contents.data_length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: The mapping was created by `iree_hal_buffer_map_range`, has a reference to its buffer, and this happens once.
        // There is nothing to do about an error.
        let _ = unsafe { check(sys::iree_hal_buffer_unmap_range(&mut self.0)) };
    }
}
