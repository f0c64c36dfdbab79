//! refcpu's buffers: arrays in host memory.

use crate::canonical;
use crate::element_type::from_pjrt;
use crate::errors::out_of_memory;
use crate::view::ViewedArray;
use pjrt_plugin::{CopyToHost, ElementType, Error, HostBuffer, HostView, PjrtBuffer, ReadsViews, Result};
use refcpu_engine::storage::{Allocator, Array, ForeignBytes};
use refcpu_kernels::DType;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Uploads up to this many bytes are copied at once: cheaper than to keep the host's memory and tell it later.
const COPY_LIMIT: usize = 16 << 10;

/// An array: refcpu's own, or one in memory that the host goes on writing to.
pub struct RefcpuBuffer {
    content: Content,
    allocator: Allocator,
}

enum Content {
    Own(OwnArray),
    View(ViewedArray),
}

/// An array, or a shard of one that has not been cut out yet.
struct OwnArray {
    array: Array,
    /// What is there instead of `array` since the host has written bytes. Arrays themselves do not change: others may hold them.
    written: Mutex<Option<Array>>,
    /// Whether there is something in `written`, which hardly any buffer ever has.
    is_written: AtomicBool,
    /// The array in one piece, where the host has asked for its address.
    shown: OnceLock<Array>,
}

impl RefcpuBuffer {
    /// A buffer that holds this array.
    pub(crate) fn new(array: Array, allocator: &Allocator) -> Self {
        let own = OwnArray {
            array,
            written: Mutex::new(None),
            is_written: AtomicBool::new(false),
            shown: OnceLock::new(),
        };
        Self { content: Content::Own(own), allocator: allocator.clone() }
    }

    /// A buffer with the host's data: in the host's memory where that is allowed and pays, otherwise in a copy.
    ///
    /// # Errors
    /// If the element type has no kernels, or there is no memory for a copy.
    pub(crate) fn from_host(data: HostBuffer, allocator: &Allocator) -> Result<Self> {
        let (dtype, dims) = (dtype(data.element_type())?, sizes(data.dims())?);
        let size = data.dense_size();
        if size > COPY_LIMIT && data.may_alias() && data.is_dense() && !canonical::may_differ(dtype) {
            let lent = match Array::foreign(Box::new(Lent(data)), dtype, &dims) {
                Ok(array) => return Ok(Self::new(array, allocator)),
                Err(unaligned) => unaligned,
            };
            let array =
                Array::from_bytes(allocator, dtype, &dims, lent.bytes()).map_err(|e| out_of_memory(&e))?;
            return Ok(Self::new(array, allocator));
        }
        let mut array = Array::allocate(allocator, dtype, dims.into()).map_err(|e| out_of_memory(&e))?;
        let bytes = array.bytes_mut().ok_or_else(|| Error::internal("a new array is shared"))?;
        data.copy_into(bytes)?;
        canonical::make_canonical(dtype, bytes);
        Ok(Self::new(array, allocator))
    }

    /// A buffer over memory that the host goes on writing to.
    ///
    /// # Errors
    /// If the element type has no kernels.
    pub(crate) fn from_view(view: HostView, allocator: &Allocator) -> Result<Self> {
        let (dtype, dims) = (dtype(view.element_type())?, sizes(view.dims())?);
        let view = ViewedArray::new(view, dtype, dims);
        Ok(Self { content: Content::View(view), allocator: allocator.clone() })
    }

    /// The array, for one operation.
    ///
    /// # Errors
    /// If there is no memory for the copy that some views need.
    pub(crate) fn array(&self, during: &impl ReadsViews) -> Result<Array> {
        match &self.content {
            Content::Own(own) => Ok(own.array()),
            Content::View(view) => view.array(during, &self.allocator),
        }
    }

    /// The array, by value, for one operation.
    ///
    /// # Errors
    /// As for [`array`](Self::array).
    pub(crate) fn into_array(self, during: &impl ReadsViews) -> Result<Array> {
        match self.content {
            Content::Own(own) => Ok(own.into_array()),
            Content::View(view) => view.array(during, &self.allocator),
        }
    }

    /// A buffer with this array, which stays as it is whatever the host writes to this one.
    ///
    /// # Errors
    /// If there is no memory for the copy that views need.
    pub(crate) fn copy(&self, during: &impl ReadsViews) -> Result<Self> {
        let array = match &self.content {
            // Nobody writes into an array that is shared.
            Content::Own(own) => own.array(),
            Content::View(view) => view.copy(during, &self.allocator)?,
        };
        Ok(Self::new(array, &self.allocator))
    }

    /// Writes bytes of the dense array from an offset on. Who has taken the array before keeps it as it was.
    ///
    /// # Errors
    /// If the host knows the array's address, where it would not see them, or there is no memory for the array that is written.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        match &self.content {
            Content::Own(own) => own.write(offset, bytes, &self.allocator),
            Content::View(_) => Err(Error::failed_precondition("the bytes of a view are the host's own")
                .with_hint("write them through the pointer that the view was made of")),
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
                "the bytes of a buffer cannot be written once the host has its address",
            )
            .with_hint("write them before asking for it, or into a new buffer"));
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
                "{} bytes from offset {offset} on do not lie in an array of {}",
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

    /// The bytes of the array in one piece. Once the host knows their address, they stay there.
    fn show(&self, allocator: &Allocator) -> Result<Option<&[u8]>> {
        let shown = match self.shown.get() {
            Some(shown) => shown,
            // Where there is no memory for it now, there may be some later.
            None => {
                let dense = self.dense(allocator)?;
                self.shown.get_or_init(|| dense)
            }
        };
        Ok(shown.bytes())
    }
}

fn dtype(element_type: ElementType) -> Result<DType> {
    from_pjrt(element_type)
        .ok_or_else(|| Error::unimplemented(format!("refcpu has no arrays of element type {element_type}")))
}

fn sizes(dims: &[i64]) -> Result<Vec<usize>> {
    let dims = dims.iter().map(|d| usize::try_from(*d));
    dims.collect::<Result<_, _>>().map_err(|_| Error::invalid_argument("a negative dimension"))
}

/// Memory that the host lends.
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
            Content::View(view) => return view.copy_to_host(copy, &self.allocator),
        };
        match own.dense(&self.allocator) {
            Ok(array) => copy.finish_with(array.bytes().unwrap_or_default()),
            Err(error) => copy.fail(error),
        }
    }

    fn host_bytes(&self) -> Result<Option<&[u8]>> {
        match &self.content {
            Content::Own(own) => own.show(&self.allocator),
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

    fn buffer(bytes: &[u8]) -> RefcpuBuffer {
        let allocator = Allocator::new(AllocatorOptions::default());
        let array = Array::from_bytes(&allocator, DType::U8, &[bytes.len()], bytes).unwrap();
        RefcpuBuffer::new(array, &allocator)
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
        assert!(buffer.write(2, &[0]).unwrap_err().message().contains("do not lie in an array of 2"));
        assert_eq!(buffer.host_bytes().unwrap(), Some(&[1, 2][..]));
        let error = buffer.write(0, &[3]).unwrap_err();
        assert_eq!(error.code(), pjrt_plugin::ErrorCode::FailedPrecondition);
        assert_eq!(buffer.host_bytes().unwrap(), Some(&[1, 2][..]));
    }
}
