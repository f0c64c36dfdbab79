//! Arrays on a device.

use std::sync::Arc;

use iree_runtime::Array;
use pjrt_plugin::{CopyToHost, Error, HostBuffer, Pending, PjrtBuffer, Placement, Result};

use crate::client::Iree;
use crate::convert;
use crate::device::Threads;
use crate::memory::Reserved;

/// An array on a device.
pub struct Buffer {
    pub(crate) array: Array,
    threads: Arc<Threads>,
    _memory: Reserved,
}

/// Memory of the host that a device reads in place.
struct Lent {
    data: Option<HostBuffer>,
    threads: Arc<Threads>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.data.as_ref().and_then(HostBuffer::dense_bytes).unwrap_or_default()
    }
}

impl Drop for Lent {
    /// Releases the memory on a thread of the device, because this may be one of IREE, and the host is notified.
    fn drop(&mut self) {
        if let Some(data) = self.data.take() {
            self.threads.transfer(move || drop(data));
        }
    }
}

impl Buffer {
    /// Creates the buffer of an array on a device.
    pub(crate) fn new(array: Array, memory: Reserved, threads: &Arc<Threads>) -> Self {
        Self { array, threads: Arc::clone(threads), _memory: memory }
    }

    /// Uploads an array, without a copy if the device can read the host's memory in place and the host permits it.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory, or UNIMPLEMENTED if IREE has no arrays of this type.
    pub(crate) fn upload(data: HostBuffer, to: Placement<'_, Iree>) -> Result<Pending<Self>> {
        let element = data.element_type();
        let (ty, dims) = (convert::element_type(element)?, convert::dimensions(element, data.dims()));
        let (iree, threads) = (to.device.iree(), &to.device.threads);
        threads.health.check()?;
        let memory = threads.memory.reserve(data.dense_size())?;
        let upload = |data: HostBuffer| match data.dense_bytes() {
            Some(bytes) => Array::upload(iree, ty, &dims, bytes).map_err(convert::error),
            None => Array::upload(iree, ty, &dims, &data.to_vec()?).map_err(convert::error),
        };
        let array = if data.may_alias() && data.is_dense() && threads.is_host_memory {
            let lent = Lent { data: Some(data), threads: Arc::clone(threads) };
            let imported = Array::import(iree, ty, &dims, lent);
            imported.or_else(|mut lent| lent.data.take().map_or_else(lost, upload))?
        } else {
            upload(data)?
        };
        Ok(Pending::from(Self::new(array, memory, threads)))
    }
}

fn lost() -> Result<Array> {
    Err(Error::internal("the memory of the host is lost"))
}

impl PjrtBuffer for Buffer {
    fn size_in_bytes(&self) -> usize {
        self.array.size()
    }

    fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
        match self.host_bytes() {
            Ok(Some(bytes)) => copy.finish_with(bytes),
            Ok(None) => {
                let threads = Arc::clone(&self.threads);
                threads.transfer(move || match self.array.to_vec(&self.threads.iree) {
                    Ok(bytes) => copy.finish_with(&bytes),
                    Err(error) => copy.fail(self.threads.health.failed(error)),
                });
            }
            Err(error) => copy.fail(error),
        }
    }

    fn host_bytes(&self) -> Result<Option<&[u8]>> {
        if !self.threads.is_host_memory {
            return Ok(None);
        }
        match self.array.bytes().map_err(convert::error)? {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(Error::internal("IREE does not map memory of the host")),
        }
    }
}
