//! Views of host memory: buffers over memory that the host may continue to write to.

use std::fmt;
use std::sync::Arc;

use crate::core::event::EventSource;
use crate::core::host_memory::ViewedBytes;
use crate::element_type::ElementType;
use crate::shape::Shape;

/// The right to read an array in memory of the host for as long as a buffer lives, while the host writes to it between
/// uses (`PJRT_Client_CreateViewOfDeviceBuffer`).
///
/// The host owns the memory, which is dense, row-major and aligned for its elements. The host keeps it allocated until this
/// value and every [lease](Self::lease) of it are dropped; then the SDK calls the host's `on_delete_callback`. Until then
/// the host may write to the memory whenever no operation that reads the buffer is running, and operations that start later
/// must read the new values. A plugin must therefore follow two rules:
///
/// * It must not keep a copy of the bytes, or anything computed from them, between operations.
/// * It must read the bytes only during an operation. The bytes are therefore accessible only through a lease, which requires
///   an operation. Drop the lease before the operation is finished.
///
/// The plugin must never write to the memory, even if the buffer is donated. Outputs and copies must not share the memory,
/// because they would change whenever the host writes to it.
///
/// ```
/// use pjrt_plugin::{CopyToHost, HostView};
///
/// fn copy_to_host(view: &HostView, mut copy: CopyToHost) {
///     let lease = view.lease(&copy);
///     if let Some(bytes) = copy.bytes_mut() {
///         bytes.copy_from_slice(lease.bytes());
///         drop(lease);
///         copy.finish();
///     } else {
///         drop(lease);
///         copy.finish_with_view(view);
///     }
/// }
/// ```
pub struct HostView(Arc<Viewed>);

struct Viewed {
    bytes: ViewedBytes,
    shape: Shape,
    released: Option<EventSource>,
}

impl Drop for Viewed {
    fn drop(&mut self) {
        if let Some(released) = self.released.take() {
            released.complete(Ok(()));
        }
    }
}

/// An operation during which the host does not write to the memory of its views: a
/// [`ReadyExecution`](crate::ReadyExecution), a [`CopyToHost`](crate::CopyToHost), or a [`BufferRef`](crate::BufferRef) in
/// [`PjrtClient::copy_buffer`](crate::PjrtClient::copy_buffer) or
/// [`PjrtClient::bitcast_buffer`](crate::PjrtClient::bitcast_buffer). It is the argument of [`HostView::lease`].
pub trait ReadsViews: sealed::Sealed {}

pub(crate) mod sealed {
    /// Restricts implementations of [`super::ReadsViews`] to this crate.
    pub trait Sealed {}
}

impl HostView {
    /// Creates a view. `bytes` must be exactly the array, dense and row-major.
    pub(crate) fn new(bytes: ViewedBytes, shape: Shape, released: EventSource) -> Self {
        Self(Arc::new(Viewed { bytes, shape, released: Some(released) }))
    }

    /// Returns the element type. An element of less than a byte occupies the low bits of one byte, whose other bits are
    /// unspecified.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.0.shape.element_type
    }

    /// Returns the dimensions, none of which is negative.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        self.0.shape.dims()
    }

    /// Returns the size of the array in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.0.shape.host_size()
    }

    /// Returns the address of the array in host memory. It is a multiple of [`ElementType::alignment`], unless the array has
    /// no elements.
    #[must_use]
    pub fn address(&self) -> usize {
        self.0.bytes.address()
    }

    /// Grants access to the bytes during an operation that reads the buffer. The lease does not borrow the view, so it can
    /// be moved to another thread. It must be dropped before `during` is finished, after which the host may write to the
    /// memory.
    #[must_use]
    pub fn lease(&self, during: &impl ReadsViews) -> HostViewLease {
        let _ = during;
        HostViewLease(Arc::clone(&self.0))
    }
}

/// The right to read the bytes of a [`HostView`] until an operation is finished. See the example of [`HostView`].
pub struct HostViewLease(Arc<Viewed>);

impl HostViewLease {
    /// Returns the bytes, dense and row-major.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes.bytes()
    }
}

impl fmt::Debug for HostView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostView({})", self.0.shape)
    }
}

impl fmt::Debug for HostViewLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostViewLease({})", self.0.shape)
    }
}
