//! Host memory that a plugin reads for uploads and writes for copies to the host.

use std::fmt;

use crate::core::event::EventSource;
use crate::core::host_memory::{HostBytes, HostBytesMut};
use crate::core::strided::Strided;
use crate::core::{allocate, panic_guard};
use crate::element_type::ElementType;
use crate::error::{Error, Result};
use crate::host_view::{HostView, ReadsViews, sealed};
use crate::shape::Shape;

/// Host memory to read for an upload (`PJRT_Client_BufferFromHostBuffer`): an array with an element type, dimensions and
/// byte strides.
///
/// The host does not modify the memory until this value is dropped, which notifies the host that the memory is released. If
/// the host lends the memory only during the call, the SDK has already copied it.
///
/// ```
/// use pjrt_plugin::{ElementType, HostBuffer};
///
/// let data = HostBuffer::from_vec(ElementType::U16, vec![2], vec![1, 0, 2, 0])?;
/// let mut storage = vec![0; data.dense_size()];
/// data.copy_into(&mut storage)?;
/// assert_eq!(storage, [1, 0, 2, 0]);
/// # Ok::<(), pjrt_plugin::Error>(())
/// ```
pub struct HostBuffer(Box<Array>);

/// The content of a [`HostBuffer`]. It is boxed because the storage that authors create from it is moved often.
struct Array {
    bytes: Bytes,
    shape: Shape,
    /// The strides; `None` if the array is dense and row-major.
    strided: Option<Strided>,
    may_alias: bool,
    released: Option<EventSource>,
}

enum Bytes {
    Lent(HostBytes),
    Copied(Vec<u8>),
}

impl HostBuffer {
    /// Creates a buffer over memory of the host. `bytes` must be exactly the extent of `strided`, or the dense array.
    #[inline(always)]
    pub(crate) fn lent(
        bytes: HostBytes,
        shape: Shape,
        strided: Option<Strided>,
        may_alias: bool,
        released: EventSource,
    ) -> Self {
        let bytes = Bytes::Lent(bytes);
        Self(Box::new(Array { bytes, shape, strided, may_alias, released: Some(released) }))
    }

    /// Creates an array from dense, row-major bytes of the plugin.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if a dimension is negative, if the size of the array overflows the address space, or if `dense`
    /// does not have exactly that size.
    pub fn from_vec(element_type: ElementType, dims: Vec<i64>, dense: Vec<u8>) -> Result<Self> {
        Self::dense(Shape::new(element_type, &dims)?, dense)
    }

    /// Creates an array from a shape and dense, row-major bytes of the plugin. See [`from_vec`](Self::from_vec) for errors.
    pub(crate) fn dense(shape: Shape, dense: Vec<u8>) -> Result<Self> {
        let size = shape.host_size();
        if dense.len() != size {
            return Err(Error::invalid_argument(format!(
                "an array {shape} needs {size} bytes; found {}",
                dense.len()
            )));
        }
        let bytes = Bytes::Copied(dense);
        Ok(Self(Box::new(Array { bytes, shape, strided: None, may_alias: true, released: None })))
    }

    fn bytes(&self) -> &[u8] {
        match &self.0.bytes {
            Bytes::Lent(lent) => lent.bytes(),
            Bytes::Copied(copied) => copied,
        }
    }

    /// Returns the element type. An element of less than a byte occupies one byte.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.0.shape.element_type
    }

    /// Returns the dimensions, none of which is negative.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        self.0.shape.dims()
    }

    /// Returns the size of the dense array in bytes.
    #[must_use]
    pub fn dense_size(&self) -> usize {
        self.0.shape.host_size()
    }

    /// Returns whether the array is dense and row-major.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.0.strided.is_none()
    }

    /// Returns the bytes if the array is dense and row-major. Their address may not be aligned for the elements.
    #[must_use]
    pub fn dense_bytes(&self) -> Option<&[u8]> {
        self.is_dense().then(|| self.bytes())
    }

    /// Copies the array to a dense, row-major slice.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the size of the slice is not [that of the array](Self::dense_size).
    pub fn copy_into(&self, dense: &mut [u8]) -> Result<()> {
        let size = self.dense_size();
        if dense.len() != size {
            return Err(Error::invalid_argument(format!(
                "an array {} needs a slice of {size} bytes; found {}",
                self.0.shape,
                dense.len()
            )));
        }
        match &self.0.strided {
            None => dense.copy_from_slice(self.bytes()),
            Some(strided) => strided.gather(self.bytes(), dense),
        }
        Ok(())
    }

    /// Copies the array to a dense, row-major vector.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough host memory.
    pub fn to_vec(&self) -> Result<Vec<u8>> {
        match &self.0.strided {
            None => allocate::copy(self.bytes()),
            Some(strided) => {
                let mut dense = allocate::zeros(self.dense_size())?;
                strided.gather(self.bytes(), &mut dense);
                Ok(dense)
            }
        }
    }

    /// Returns whether the memory remains available for the life of the buffer, because the host lends it for that long or
    /// because the plugin owns it. Storage may then own this value, and use [`dense_bytes`](Self::dense_bytes) instead of a
    /// copy.
    #[must_use]
    pub fn may_alias(&self) -> bool {
        self.0.may_alias
    }

    /// Copies the array to memory of the plugin, and releases that of the host.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory.
    pub(crate) fn detach(&mut self) -> Result<()> {
        if let Bytes::Lent(_) = self.0.bytes {
            self.0.bytes = Bytes::Copied(self.to_vec()?);
            self.0.strided = None;
            self.0.may_alias = true;
        }
        self.release();
        Ok(())
    }

    fn release(&mut self) {
        if let Some(released) = self.0.released.take() {
            released.complete(Ok(()));
        }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        self.release();
    }
}

impl fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBuffer({})", self.0.shape)
    }
}

/// Host memory to write for a copy to the host (`PJRT_Buffer_ToHostBuffer`). Finishing or failing it notifies the host.
/// Dropping it before either is an INTERNAL error.
///
/// ```
/// use pjrt_plugin::CopyToHost;
///
/// /// Copies an array whose device may not be able to read it.
/// fn copy(read: impl FnOnce() -> pjrt_plugin::Result<Vec<u8>>, copy: CopyToHost) {
///     match read() {
///         Ok(dense) => copy.finish_with(&dense),
///         Err(error) => copy.fail(error),
///     }
/// }
/// ```
pub struct CopyToHost {
    target: Target,
    shape: Shape,
    /// The strides; `None` if the host requests a dense, row-major array.
    strided: Option<Strided>,
}

/// The destination of the bytes, and the receiver of the outcome.
enum Target {
    Lent(HostBytesMut, EventSource),
    Collected(Vec<u8>, Receiver),
    /// The copy has been finished or failed.
    Ended,
}

/// The receiver of the bytes of a copy to memory of the SDK.
type Receiver = Box<dyn FnOnce(Result<Vec<u8>>) + Send>;

impl sealed::Sealed for CopyToHost {}
impl ReadsViews for CopyToHost {}

impl CopyToHost {
    /// Creates a copy to memory of the host. `bytes` must be exactly the extent of `strided`, or the dense array.
    pub(crate) fn lent(
        bytes: HostBytesMut,
        shape: Shape,
        strided: Option<Strided>,
        done: EventSource,
    ) -> Self {
        Self { target: Target::Lent(bytes, done), shape, strided }
    }

    /// Creates a copy to memory of the SDK, whose dense, row-major bytes are passed to `receiver`. If the memory cannot be
    /// allocated, passes the error to `receiver` immediately, and returns `None`.
    pub(crate) fn collected(
        shape: Shape,
        receiver: impl FnOnce(Result<Vec<u8>>) + Send + 'static,
    ) -> Option<Self> {
        match allocate::zeros(shape.host_size()) {
            Ok(bytes) => {
                let target = Target::Collected(bytes, Box::new(receiver));
                Some(Self { target, shape, strided: None })
            }
            Err(error) => {
                receiver(Err(error));
                None
            }
        }
    }

    /// Returns the element type. An element of less than a byte must be written to the low bits of one byte.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.shape.element_type
    }

    /// Returns the dimensions.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        self.shape.dims()
    }

    /// Returns the size of the dense array in bytes.
    #[must_use]
    pub fn dense_size(&self) -> usize {
        self.shape.host_size()
    }

    /// Returns the memory to write, whose content is unspecified, or `None` if the host does not request the array dense and
    /// row-major. [`finish_with`](Self::finish_with) supports all layouts.
    #[must_use]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if self.strided.is_some() {
            return None;
        }
        Some(self.target_bytes())
    }

    fn target_bytes(&mut self) -> &mut [u8] {
        match &mut self.target {
            Target::Lent(bytes, _) => bytes.bytes(),
            Target::Collected(bytes, _) => bytes,
            Target::Ended => &mut [],
        }
    }

    /// Copies dense, row-major bytes to the memory, in the layout that the host requests, and finishes the copy. If the size
    /// of the bytes is not [that of the array](Self::dense_size), the copy fails with an INTERNAL error.
    pub fn finish_with(mut self, dense_row_major: &[u8]) {
        let outcome = self.fill(dense_row_major);
        self.end(outcome);
    }

    /// Does the same as [`finish_with`](Self::finish_with), with the current bytes of a view of host memory.
    pub fn finish_with_view(mut self, view: &HostView) {
        // The lease must end before the copy does, because the host may then write to its memory.
        let lease = view.lease(&self);
        let outcome = self.fill(lease.bytes());
        drop(lease);
        self.end(outcome);
    }

    fn fill(&mut self, dense_row_major: &[u8]) -> Result<()> {
        let size = self.dense_size();
        if dense_row_major.len() != size {
            return Err(Error::internal(format!(
                "PjrtBuffer::copy_to_host passed {} bytes for an array {}; expected {size}",
                dense_row_major.len(),
                self.shape
            )));
        }
        match self.strided.take() {
            None => self.target_bytes().copy_from_slice(dense_row_major),
            Some(strided) => strided.scatter(dense_row_major, self.target_bytes()),
        }
        Ok(())
    }

    /// Finishes the copy after its memory has been written.
    pub fn finish(mut self) {
        self.end(Ok(()));
    }

    /// Finishes the copy with an error.
    pub fn fail(mut self, error: Error) {
        self.end(Err(error));
    }

    fn end(&mut self, outcome: Result<()>) {
        match std::mem::replace(&mut self.target, Target::Ended) {
            Target::Lent(_, done) => done.complete(outcome),
            Target::Collected(bytes, receiver) => receiver(outcome.map(|()| bytes)),
            Target::Ended => {}
        }
    }
}

impl Drop for CopyToHost {
    fn drop(&mut self) {
        if !matches!(self.target, Target::Ended) {
            self.end(Err(panic_guard::lost(
                "the plugin dropped a copy to the host (CopyToHost) before it was finished",
            )));
        }
    }
}

impl fmt::Debug for CopyToHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CopyToHost({})", self.shape)
    }
}
