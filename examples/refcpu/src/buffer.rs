//! refcpu's buffers: arrays in host memory.

use crate::canonical;
use crate::device_memory::{DeviceMemory, Reservation};
use crate::element_type::from_pjrt;
use crate::errors::out_of_memory;
use crate::view::ViewedArray;
use pjrt_plugin::{CopyToHost, ElementType, Error, HostBuffer, HostView, PjrtBuffer, ReadsViews, Result};
use refcpu_engine::storage::{Allocator, Array, ForeignBytes};
use refcpu_kernels::DType;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The largest size in bytes at which an upload is copied immediately, because that is cheaper than borrowing the host's
/// memory.
const COPY_LIMIT: usize = 16 << 10;

/// An array of refcpu, or one in memory that the host may continue to write to.
pub struct RefcpuBuffer {
    content: Content,
    /// The memory that the buffer occupies on its device.
    reservation: Reservation,
}

enum Content {
    Own(OwnArray),
    View(ViewedArray),
}

/// An array, which may be a window of a larger one.
struct OwnArray {
    array: Array,
    /// The array that replaces `array` after the host has written bytes. Arrays are immutable, because they may be shared.
    written: Mutex<Option<Array>>,
    /// `true` if `written` contains an array, which is rare.
    is_written: AtomicBool,
    /// The dense array whose address the host has read.
    shown: OnceLock<Array>,
}

impl RefcpuBuffer {
    /// Creates a buffer from an array.
    pub(crate) fn new(array: Array, reservation: Reservation) -> Self {
        let own = OwnArray {
            array,
            written: Mutex::new(None),
            is_written: AtomicBool::new(false),
            shown: OnceLock::new(),
        };
        Self { content: Content::Own(own), reservation }
    }

    /// Creates a buffer with the host's data. It borrows the host's memory if that is allowed and worthwhile, and otherwise
    /// copies it.
    ///
    /// # Errors
    /// Returns UNIMPLEMENTED if the element type has no kernels, or RESOURCE_EXHAUSTED if there is not enough memory.
    pub(crate) fn from_host(data: HostBuffer, memory: &Arc<DeviceMemory>, kind: &str) -> Result<Self> {
        let (dtype, dims) = (dtype(data.element_type())?, sizes(data.dims())?);
        let size = data.dense_size();
        let reservation = memory.reserve_in(kind, size)?;
        let allocator = memory.allocator();
        if size > COPY_LIMIT && data.may_alias() && data.is_dense() && !canonical::may_differ(dtype) {
            let lent = match Array::foreign(Box::new(Lent(data)), dtype, &dims) {
                Ok(array) => return Ok(Self::new(array, reservation)),
                Err(unaligned) => unaligned,
            };
            let array =
                Array::from_bytes(allocator, dtype, &dims, lent.bytes()).map_err(|e| out_of_memory(&e))?;
            return Ok(Self::new(array, reservation));
        }
        let mut array = Array::allocate(allocator, dtype, dims.into()).map_err(|e| out_of_memory(&e))?;
        let bytes = array
            .bytes_mut()
            .ok_or_else(|| Error::internal("a newly allocated array is shared; this is a bug in refcpu"))?;
        data.copy_into(bytes)?;
        canonical::make_canonical(dtype, bytes);
        Ok(Self::new(array, reservation))
    }

    /// Creates a buffer over memory that the host may continue to write to. It occupies no memory of the device.
    ///
    /// # Errors
    /// Returns UNIMPLEMENTED if the element type has no kernels.
    pub(crate) fn from_view(view: HostView, memory: &Arc<DeviceMemory>) -> Result<Self> {
        let (dtype, dims) = (dtype(view.element_type())?, sizes(view.dims())?);
        let view = ViewedArray::new(view, dtype, dims);
        Ok(Self { content: Content::View(view), reservation: memory.reserve(0)? })
    }

    /// Returns the array for one operation.
    ///
    /// # Errors
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory for the copy that some views need.
    pub(crate) fn array(&self, during: &impl ReadsViews) -> Result<Array> {
        match &self.content {
            Content::Own(own) => Ok(own.array()),
            Content::View(view) => view.array(during, self.reservation.allocator()),
        }
    }

    /// Converts the buffer to its array for one operation.
    ///
    /// # Errors
    /// Returns the same errors as [`array`](Self::array).
    pub(crate) fn into_array(self, during: &impl ReadsViews) -> Result<Array> {
        match self.content {
            Content::Own(own) => Ok(own.into_array()),
            Content::View(view) => view.array(during, self.reservation.allocator()),
        }
    }

    /// Returns a buffer with the same array, which later writes of the host to this buffer do not change.
    ///
    /// # Errors
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory.
    pub(crate) fn copy(
        &self,
        during: &impl ReadsViews,
        memory: &Arc<DeviceMemory>,
        kind: &str,
    ) -> Result<Self> {
        let reservation = memory.reserve_in(kind, self.size_in_bytes())?;
        let array = match &self.content {
            // Shared arrays are never written.
            Content::Own(own) => own.array(),
            Content::View(view) => view.copy(during, self.reservation.allocator())?,
        };
        Ok(Self::new(array, reservation))
    }

    /// Writes bytes of the dense array at an offset. Operations that have taken the array before do not see the change.
    ///
    /// # Errors
    /// Returns FAILED_PRECONDITION if the host has read the array's address, at which it would not see the bytes, or
    /// RESOURCE_EXHAUSTED if there is not enough memory for the new array.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        match &self.content {
            Content::Own(own) => own.write(offset, bytes, self.reservation.allocator()),
            Content::View(_) => Err(Error::failed_precondition("the bytes of a view belong to the host")
                .with_hint("write them through the pointer from which the view was created")),
        }
    }
}

impl OwnArray {
    fn array(&self) -> Array {
        if self.is_written.load(Ordering::Acquire)
            && let Some(written) = &*self.lock()
        {
            return written.clone();
        }
        self.array.clone()
    }

    fn into_array(self) -> Array {
        self.written.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or(self.array)
    }

    fn write(&self, offset: usize, bytes: &[u8], allocator: &Allocator) -> Result<()> {
        let mut written = self.lock();
        if self.shown.get().is_some() {
            return Err(Error::failed_precondition(
                "the bytes of a buffer cannot be written after the host has read its address",
            )
            .with_hint("write them before reading the address, or use a new buffer"));
        }
        let mut array = match written.take() {
            Some(array) => array,
            None => self.array.dense(allocator).map_err(|e| out_of_memory(&e))?,
        };
        if array.bytes_mut().is_none() {
            let shared = array.bytes().unwrap_or_default();
            array = Array::from_bytes(allocator, array.dtype(), array.dims(), shared)
                .map_err(|e| out_of_memory(&e))?;
        }
        let place = array.bytes_mut().and_then(|all| all.get_mut(offset..)?.get_mut(..bytes.len()));
        let outcome = match place {
            Some(place) => {
                place.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(Error::invalid_argument(format!(
                "a range of {} bytes from offset {offset} is out of bounds of an array of {} bytes",
                bytes.len(),
                array.byte_len()
            ))),
        };
        *written = Some(array);
        self.is_written.store(true, Ordering::Release);
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, Option<Array>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dense(&self, allocator: &Allocator) -> Result<Array> {
        self.array().dense(allocator).map_err(|e| out_of_memory(&e))
    }

    /// Returns the dense bytes of the array. Their address does not change after the host has read it.
    fn show(&self, allocator: &Allocator) -> Result<Option<&[u8]>> {
        let shown = match self.shown.get() {
            Some(shown) => shown,
            // A failed allocation is not cached, because it may succeed later.
            None => {
                let dense = self.dense(allocator)?;
                self.shown.get_or_init(|| dense)
            }
        };
        Ok(shown.bytes())
    }
}

fn dtype(element_type: ElementType) -> Result<DType> {
    from_pjrt(element_type).ok_or_else(|| {
        Error::unimplemented(format!("refcpu does not support arrays with the element type {element_type}"))
    })
}

fn sizes(dims: &[i64]) -> Result<Vec<usize>> {
    let sizes = dims.iter().map(|d| usize::try_from(*d));
    sizes.collect::<Result<_, _>>().map_err(|_| {
        Error::invalid_argument(format!("the dimensions of an array must not be negative; found {dims:?}"))
    })
}

/// Borrowed memory of the host.
struct Lent(HostBuffer);

impl ForeignBytes for Lent {
    fn bytes(&self) -> &[u8] {
        self.0.dense_bytes().unwrap_or_default()
    }
}

impl PjrtBuffer for RefcpuBuffer {
    fn size_in_bytes(&self) -> usize {
        match &self.content {
            Content::Own(own) => own.array.byte_len(),
            Content::View(view) => view.view().size_in_bytes(),
        }
    }

    fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
        let own = match &self.content {
            Content::Own(own) => own,
            Content::View(view) => return view.copy_to_host(copy, self.reservation.allocator()),
        };
        match own.dense(self.reservation.allocator()) {
            Ok(array) => copy.finish_with(array.bytes().unwrap_or_default()),
            Err(error) => copy.fail(error),
        }
    }

    fn host_bytes(&self) -> Result<Option<&[u8]>> {
        match &self.content {
            Content::Own(own) => own.show(self.reservation.allocator()),
            Content::View(_) => Ok(None),
        }
    }

    fn host_view(&self) -> Option<&HostView> {
        match &self.content {
            Content::Own(_) => None,
            Content::View(view) => Some(view.view()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refcpu_engine::storage::AllocatorOptions;

    fn memory(options: AllocatorOptions) -> Arc<DeviceMemory> {
        Arc::new(DeviceMemory::new(0, usize::MAX, Allocator::new(options)))
    }

    fn buffer(bytes: &[u8]) -> RefcpuBuffer {
        let memory = memory(AllocatorOptions::default());
        let array = Array::from_bytes(memory.allocator(), DType::U8, &[bytes.len()], bytes).unwrap();
        RefcpuBuffer::new(array, memory.reserve(bytes.len()).unwrap())
    }

    #[test]
    fn an_array_that_was_taken_before_a_write_stays_as_it_was() {
        let buffer = buffer(&[1, 2, 3, 4]);
        let Content::Own(own) = &buffer.content else { panic!("an array of its own") };
        let before = own.array();
        buffer.write(1, &[8, 9]).unwrap();
        let between = own.array();
        buffer.write(3, &[7]).unwrap();
        assert_eq!(before.bytes(), Some(&[1, 2, 3, 4][..]));
        assert_eq!(between.bytes(), Some(&[1, 8, 9, 4][..]));
        assert_eq!(buffer.host_bytes().unwrap(), Some(&[1, 8, 9, 7][..]));
        assert_eq!(own.array().bytes(), Some(&[1, 8, 9, 7][..]));
    }

    #[test]
    fn bytes_that_the_host_sees_are_not_written() {
        let buffer = buffer(&[1, 2]);
        assert!(
            buffer.write(2, &[0]).unwrap_err().message().contains("out of bounds of an array of 2 bytes")
        );
        assert_eq!(buffer.host_bytes().unwrap(), Some(&[1, 2][..]));
        let error = buffer.write(0, &[3]).unwrap_err();
        assert_eq!(error.code(), pjrt_plugin::ErrorCode::FailedPrecondition);
        assert_eq!(buffer.host_bytes().unwrap(), Some(&[1, 2][..]));
    }

    #[test]
    fn a_window_that_cannot_be_copied_is_an_error_until_there_is_memory() {
        let memory = memory(AllocatorOptions { limit: 1000, cache_limit: 0 });
        let whole = Array::from_bytes(memory.allocator(), DType::U8, &[20, 30], &[7; 600]).unwrap();
        let column =
            RefcpuBuffer::new(Array::window(&whole, &[0, 5], &[20, 25]), memory.reserve(500).unwrap());
        let error = column.host_bytes().unwrap_err();
        assert_eq!(error.code(), pjrt_plugin::ErrorCode::ResourceExhausted);
        let half = RefcpuBuffer::new(Array::window(&whole, &[0, 5], &[20, 10]), memory.reserve(200).unwrap());
        assert_eq!(half.host_bytes().unwrap(), Some(&[7; 200][..]));
    }
}
