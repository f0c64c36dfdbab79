//! refcpu's buffers: arrays in host memory.

use super::element_type::from_pjrt;
use super::errors::out_of_memory;
use crate::storage::{Allocator, Array, ForeignBytes};
use pjrt_plugin::{CopyToHost, Error, HostBuffer, PjrtBuffer, Result};
use refcpu_kernels::DType;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Uploads up to this many bytes are copied at once: cheaper than to keep the host's memory and tell it later.
const COPY_LIMIT: usize = 16 << 10;

/// An array, or a shard of one that has not been cut out yet.
pub struct RefcpuBuffer {
    array: Array,
    /// What is there instead of `array` since the host has written bytes. Arrays themselves do not change: others may hold them.
    written: Mutex<Option<Array>>,
    /// Whether there is something in `written`, which hardly any buffer ever has.
    is_written: AtomicBool,
    /// The array in one piece, where the host has asked for its address.
    shown: OnceLock<Array>,
    allocator: Allocator,
}

impl RefcpuBuffer {
    /// A buffer that holds this array.
    pub(super) fn new(array: Array, allocator: &Allocator) -> Self {
        Self {
            array,
            written: Mutex::new(None),
            is_written: AtomicBool::new(false),
            shown: OnceLock::new(),
            allocator: allocator.clone(),
        }
    }

    /// A buffer with the host's data: in the host's memory where that is allowed and pays, otherwise in a copy.
    ///
    /// # Errors
    /// If the element type has no kernels, or there is no memory for a copy.
    pub(super) fn from_host(data: HostBuffer, allocator: &Allocator) -> Result<Self> {
        let dtype = dtype(&data)?;
        let dims = data.dims().iter().map(|d| usize::try_from(*d));
        let dims: Vec<usize> =
            dims.collect::<Result<_, _>>().map_err(|_| Error::invalid_argument("a negative dimension"))?;
        let size = data.dense_size();
        let extends = dtype.bits() < 8 && dtype.compute().is_signed_integer();
        if size > COPY_LIMIT && data.may_alias() && data.is_dense() && !extends {
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
        if extends {
            // Hosts give 2- and 4-bit integers a byte each, of which the upper bits may be anything.
            let unused = 8 - dtype.bits() as u32;
            bytes.iter_mut().for_each(|byte| *byte = (((*byte << unused) as i8) >> unused) as u8);
        }
        Ok(Self::new(array, allocator))
    }

    /// The array.
    pub(super) fn array(&self) -> Array {
        if self.is_written.load(Ordering::Acquire)
            && let Some(written) = &*self.lock()
        {
            return written.clone();
        }
        self.array.clone()
    }

    /// The array, by value.
    pub(super) fn into_array(self) -> Array {
        self.written.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or(self.array)
    }

    /// Writes bytes of the dense array from an offset on. Who has taken the array before keeps it as it was.
    ///
    /// # Errors
    /// If the host knows the array's address, where it would not see them, or there is no memory for the array that is written.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let mut written = self.lock();
        if self.shown.get().is_some() {
            return Err(Error::failed_precondition(
                "the bytes of a buffer cannot be written once the host has its address",
            )
            .with_hint("write them before asking for it, or into a new buffer"));
        }
        let mut array = match written.take() {
            Some(array) => array,
            None => self.array.dense(&self.allocator).map_err(|e| out_of_memory(&e))?,
        };
        if array.bytes_mut().is_none() {
            let shared = array.bytes().unwrap_or_default();
            array = Array::from_bytes(&self.allocator, array.dtype(), array.dims(), shared)
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

    fn dense(&self) -> Result<Array> {
        self.array().dense(&self.allocator).map_err(|e| out_of_memory(&e))
    }
}

fn dtype(data: &HostBuffer) -> Result<DType> {
    let element_type = data.element_type();
    from_pjrt(element_type)
        .ok_or_else(|| Error::unimplemented(format!("refcpu has no arrays of element type {element_type}")))
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
        self.array.byte_len()
    }

    fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
        match self.dense() {
            Ok(array) => copy.finish_with(array.bytes().unwrap_or_default()),
            Err(error) => copy.fail(error),
        }
    }

    fn host_bytes(&self) -> Result<Option<&[u8]>> {
        let shown = match self.shown.get() {
            Some(shown) => shown,
            // Where there is no memory for it now, there may be some later.
            None => {
                let dense = self.dense()?;
                self.shown.get_or_init(|| dense)
            }
        };
        Ok(shown.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::AllocatorOptions;

    fn buffer(bytes: &[u8]) -> RefcpuBuffer {
        let allocator = Allocator::new(AllocatorOptions::default());
        let array = Array::from_bytes(&allocator, DType::U8, &[bytes.len()], bytes).unwrap();
        RefcpuBuffer::new(array, &allocator)
    }

    #[test]
    fn an_array_that_was_taken_before_a_write_stays_as_it_was() {
        let buffer = buffer(&[1, 2, 3, 4]);
        let before = buffer.array();
        buffer.write(1, &[8, 9]).unwrap();
        let between = buffer.array();
        buffer.write(3, &[7]).unwrap();
        assert_eq!(before.bytes(), Some(&[1, 2, 3, 4][..]));
        assert_eq!(between.bytes(), Some(&[1, 8, 9, 4][..]));
        assert_eq!(buffer.host_bytes().unwrap(), Some(&[1, 8, 9, 7][..]));
        assert_eq!(buffer.into_array().bytes(), Some(&[1, 8, 9, 7][..]));
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
