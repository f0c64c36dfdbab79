//! Storage on a device.

use std::sync::Arc;

use crate::error::Result;
use crate::host_buffer::CopyToHost;
use crate::host_view::HostView;

/// Bytes on a device: *storage*. Whether a buffer is pending, ready, in error, donated or deleted is not its business.
///
/// Storage is shared: the SDK, running executions and copies hold it, and it is dropped when the last of them is done.
pub trait PjrtBuffer: Send + Sync + 'static {
    /// How many bytes it takes on the device (`PJRT_Buffer_OnDeviceSizeInBytes`).
    fn size_in_bytes(&self) -> usize;

    /// Copies the array to the host (`PJRT_Buffer_ToHostBuffer`); called once the data is there. Finish the copy now, or
    /// take `self` and the copy to where the work is done and finish it later.
    fn copy_to_host(self: Arc<Self>, copy: CopyToHost);

    /// The bytes, dense and row-major, where the host can read them: `Some` exactly in memories that are
    /// [host-accessible](crate::memory::Memory::host_accessible), except for storage that is a
    /// [view](Self::host_view). They stay where they are for the life of the storage.
    ///
    /// # Errors
    ///
    /// RESOURCE_EXHAUSTED if they have to be put together first and there is no memory for that; whatever else keeps them from
    /// being read now. A later call may succeed.
    fn host_bytes(&self) -> Result<Option<&[u8]>> {
        Ok(None)
    }

    /// The view that this storage is, if [`PjrtClient::view_host_memory`](crate::client::PjrtClient::view_host_memory) made it.
    /// The host is told the view's address in place of that of [`host_bytes`](Self::host_bytes).
    fn host_view(&self) -> Option<&HostView> {
        None
    }

    /// The address of the data, for `PJRT_Buffer_UnsafePointer`; `None` if there is no such thing. The default is that of
    /// [`host_bytes`](Self::host_bytes).
    ///
    /// # Errors
    ///
    /// As for [`host_bytes`](Self::host_bytes).
    fn device_address(&self) -> Result<Option<usize>> {
        Ok(self.host_bytes()?.map(|bytes| bytes.as_ptr().expose_provenance()))
    }
}
