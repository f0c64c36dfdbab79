//! The storage of arrays on a device.

use std::sync::Arc;

use crate::error::Result;
use crate::host_buffer::CopyToHost;
use crate::host_view::HostView;

/// The storage of an array on a device. The SDK tracks whether the host's buffer is pending, ready, in error, donated or
/// deleted.
///
/// Storage is shared: the SDK, running executions and copies each own a share of it. It is dropped with the last share.
///
/// This storage is host memory, so it can return its bytes and does not copy dense uploads that outlive the call:
///
/// ```
/// use std::sync::Arc;
///
/// use pjrt_plugin::{CopyToHost, ElementType, HostBuffer, HostView, PjrtBuffer, Result};
///
/// enum Storage {
///     Own(Vec<u8>),
///     /// The host's memory, which stays unchanged as long as this value lives.
///     Borrowed(HostBuffer),
///     /// The host's memory, which the host may change between operations.
///     View(HostView),
/// }
///
/// impl Storage {
///     fn upload(data: HostBuffer) -> Result<Self> {
///         if data.may_alias() && data.is_dense() { Ok(Self::Borrowed(data)) } else { Ok(Self::Own(data.to_vec()?)) }
///     }
/// }
///
/// impl PjrtBuffer for Storage {
///     fn size_in_bytes(&self) -> usize {
///         match self {
///             Self::Own(bytes) => bytes.len(),
///             Self::Borrowed(data) => data.dense_size(),
///             Self::View(view) => view.size_in_bytes(),
///         }
///     }
///
///     fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
///         match &*self {
///             Self::Own(bytes) => copy.finish_with(bytes),
///             Self::Borrowed(data) => copy.finish_with(data.dense_bytes().unwrap_or_default()),
///             Self::View(view) => copy.finish_with_view(view),
///         }
///     }
///
///     fn host_bytes(&self) -> Result<Option<&[u8]>> {
///         Ok(match self {
///             Self::Own(bytes) => Some(bytes),
///             Self::Borrowed(data) => data.dense_bytes(),
///             Self::View(_) => None,
///         })
///     }
///
///     fn host_view(&self) -> Option<&HostView> {
///         if let Self::View(view) = self { Some(view) } else { None }
///     }
///
///     fn device_address(&self) -> Result<Option<usize>> {
///         Ok(self.host_bytes()?.map(|bytes| bytes.as_ptr().addr()))
///     }
/// }
///
/// let data = HostBuffer::from_vec(ElementType::U8, vec![2], vec![1, 2])?;
/// assert_eq!(Storage::upload(data)?.host_bytes()?, Some(&[1, 2][..]));
/// # Ok::<(), pjrt_plugin::Error>(())
/// ```
pub trait PjrtBuffer: Send + Sync + 'static {
    /// Returns the size of the storage on the device, with padding, in bytes (`PJRT_Buffer_OnDeviceSizeInBytes`).
    fn size_in_bytes(&self) -> usize;

    /// Copies the array to the host (`PJRT_Buffer_ToHostBuffer`). The SDK calls this method when the data is ready. The copy
    /// can be finished before the method returns, or later on another thread. [`CopyToHost::fail`] reports an error.
    ///
    /// The host may delete the array as soon as the method returns. A command that reads it later owns `self`, unless the order
    /// of the queues protects the memory: see [`MemoryPool::new`](crate::queue::MemoryPool::new).
    fn copy_to_host(self: Arc<Self>, copy: CopyToHost);

    /// Returns the array's bytes, dense and row-major, if the host can read them. The result must be `Some` in memories that
    /// are [host-accessible](crate::memory::Memory::with_host_access), except for storage that is a [view](Self::host_view),
    /// and `None` in other memories. The address of the bytes must not change as long as the storage lives.
    ///
    /// The default returns `None`.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if the bytes must be assembled and there is not enough memory, or any other error that
    /// prevents access to the bytes. The SDK may call the method again after an error.
    fn host_bytes(&self) -> Result<Option<&[u8]>> {
        Ok(None)
    }

    /// Returns the view of host memory that this storage contains, if
    /// [`PjrtClient::view_host_memory`](crate::client::PjrtClient::view_host_memory) created it. The host then receives the
    /// address of the view instead of that of [`host_bytes`](Self::host_bytes).
    ///
    /// The default returns `None`.
    fn host_view(&self) -> Option<&HostView> {
        None
    }

    /// Returns the address of the data for `PJRT_Buffer_UnsafePointer`, or `None` if the data has no address. The default
    /// returns the address of [`host_bytes`](Self::host_bytes).
    ///
    /// The address must not be 0, which is a null pointer to the host: the SDK then returns INTERNAL. A device whose addresses
    /// begin at 0 adds an offset here.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`host_bytes`](Self::host_bytes).
    fn device_address(&self) -> Result<Option<usize>> {
        Ok(self.host_bytes()?.map(|bytes| bytes.as_ptr().expose_provenance()))
    }
}
