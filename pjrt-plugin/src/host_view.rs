//! Host memory that a buffer stands on, and that the host goes on writing to.

use std::fmt;
use std::sync::Arc;

use crate::core::event::EventSource;
use crate::core::host_memory::ViewedBytes;
use crate::element_type::ElementType;
use crate::shape::Shape;

/// The right to read an array in memory of the host for as long as a buffer lives, while the host writes to it between
/// uses (`PJRT_Client_CreateViewOfDeviceBuffer`).
///
/// The memory belongs to the host, is dense and row-major, and is aligned for its elements. The host keeps it allocated
/// until this value and every [lease](Self::lease) of it are dropped, which is when the host's `on_delete_callback` is
/// called. Until then the host may write to it at any time at which no operation that reads the buffer is unfinished, and
/// every operation that starts afterwards must see what was written. Two rules follow for a plugin:
///
/// * It keeps no copy of the bytes, and nothing that is computed from them, from one operation to the next.
/// * It looks at the bytes in the course of an operation only. That is why there is no way to the bytes but a lease, and
///   no way to a lease without an unfinished operation. Drop the lease before the operation is finished.
///
/// The memory is never written by the plugin, also not where the buffer is donated. An output that shared it would change
/// whenever the host writes, so outputs and copies have memory of their own.
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

/// An operation during which the host does not write to the memory of its views: a [`ReadyExecution`](crate::ReadyExecution), a
/// [`CopyToHost`](crate::CopyToHost), or a copy by [`PjrtClient::copy_buffer`](crate::PjrtClient::copy_buffer) or
/// [`PjrtClient::bitcast_buffer`](crate::PjrtClient::bitcast_buffer) ([`BufferRef`](crate::BufferRef)).
pub trait ReadsViews: sealed::Sealed {}

pub(crate) mod sealed {
    /// Keeps [`super::ReadsViews`] to operations of this crate.
    pub trait Sealed {}
}

impl HostView {
    /// `bytes` is exactly the array, dense and row-major.
    pub(crate) fn new(bytes: ViewedBytes, shape: Shape, released: EventSource) -> Self {
        Self(Arc::new(Viewed { bytes, shape, released: Some(released) }))
    }

    /// The type of the elements. Types of less than a byte take one byte for each element, of which the upper bits may be
    /// anything.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.0.shape.element_type
    }

    /// The dimensions, none of them negative.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        self.0.shape.dims()
    }

    /// How many bytes the array takes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.0.shape.host_size()
    }

    /// The host's own address of the array: a multiple of [`ElementType::alignment`], unless the array has no elements.
    #[must_use]
    pub fn address(&self) -> usize {
        self.0.bytes.address()
    }

    /// Makes the bytes readable in the course of an operation that reads the buffer. The lease is a value of its own, so
    /// that it can go to the thread where the operation is done. Drop it before `during` is finished: from then on the
    /// host may write.
    #[must_use]
    pub fn lease(&self, during: &impl ReadsViews) -> HostViewLease {
        let _ = during;
        HostViewLease(Arc::clone(&self.0))
    }
}

/// The right to read the bytes of a [`HostView`] until an operation is finished.
pub struct HostViewLease(Arc<Viewed>);

impl HostViewLease {
    /// The bytes, dense and row-major.
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
