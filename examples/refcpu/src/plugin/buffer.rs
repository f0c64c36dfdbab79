//! refcpu's buffers: arrays in host memory.

use super::element_type::from_pjrt;
use super::errors::out_of_memory;
use crate::storage::{Allocator, Array, ForeignBytes};
use pjrt_plugin::{CopyToHost, Error, HostBuffer, PjrtBuffer, Result};
use refcpu_kernels::DType;
use std::sync::{Arc, OnceLock};

/// Uploads up to this many bytes are copied at once: cheaper than to keep the host's memory and tell it later.
const COPY_LIMIT: usize = 16 << 10;

/// An array, or a shard of one that has not been cut out yet.
pub struct RefcpuBuffer {
    array: Array,
    /// The array in one piece, where the host wants to see it.
    dense: OnceLock<Result<Array>>,
    allocator: Allocator,
}

impl RefcpuBuffer {
    /// A buffer that holds this array.
    pub(super) fn new(array: Array, allocator: &Allocator) -> Self {
        Self { array, dense: OnceLock::new(), allocator: allocator.clone() }
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
    pub(super) fn array(&self) -> &Array {
        &self.array
    }

    /// The array, by value.
    pub(super) fn into_array(self) -> Array {
        self.array
    }

    fn dense(&self) -> Result<&Array> {
        if self.array.as_window().is_none() {
            return Ok(&self.array);
        }
        let cut = || self.array.dense(&self.allocator).map_err(|e| out_of_memory(&e));
        self.dense.get_or_init(cut).as_ref().map_err(Clone::clone)
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

    fn host_bytes(&self) -> Option<&[u8]> {
        self.dense().ok()?.bytes()
    }
}
