//! Host memory that a plugin reads from or writes to, and gives back.

use std::fmt;

use crate::core::event::EventSource;
use crate::core::host_memory::{HostBytes, HostBytesMut};
use crate::core::strided::Strided;
use crate::core::{allocate, panic_guard};
use crate::element_type::ElementType;
use crate::error::{Error, Result};
use crate::host_view::{HostView, ReadsViews, sealed};
use crate::shape::Shape;

/// Host memory to read, for an upload (`PJRT_Client_BufferFromHostBuffer`): an array with an element type, dimensions
/// and byte strides.
///
/// The host must leave the memory alone until this is dropped; dropping it tells the host that it is released. Memory
/// that the host lends only for the duration of the call has been copied before.
pub struct HostBuffer(Box<Array>);

/// Boxed, because what authors make of a [`HostBuffer`] is moved often.
struct Array {
    bytes: Bytes,
    shape: Shape,
    /// `None` if the array is dense and row-major.
    strided: Option<Strided>,
    may_alias: bool,
    released: Option<EventSource>,
}

enum Bytes {
    Lent(HostBytes),
    Copied(Vec<u8>),
}

impl HostBuffer {
    /// `bytes` spans exactly the array: `strided`'s extent, or the dense size.
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

    /// An array in memory of the plugin's own; `dense` is row-major.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT if `dense` has not the size of the array.
    pub fn from_vec(element_type: ElementType, dims: Vec<i64>, dense: Vec<u8>) -> Result<Self> {
        Self::dense(Shape::new(element_type, &dims)?, dense)
    }

    /// As [`from_vec`](Self::from_vec).
    pub(crate) fn dense(shape: Shape, dense: Vec<u8>) -> Result<Self> {
        let size = shape.host_size();
        if dense.len() != size {
            return Err(Error::invalid_argument(format!(
                "{} bytes are not an array {shape}, which has {size}",
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

    /// The type of the elements. Types of less than a byte are unpacked: one byte per element.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.0.shape.element_type
    }

    /// The dimensions, none of them negative.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        self.0.shape.dims()
    }

    /// How many bytes the array takes when it is dense.
    #[must_use]
    pub fn dense_size(&self) -> usize {
        self.0.shape.host_size()
    }

    /// Whether it is row-major without gaps.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.0.strided.is_none()
    }

    /// The bytes, if they are dense and row-major. They can have any alignment.
    #[must_use]
    pub fn dense_bytes(&self) -> Option<&[u8]> {
        self.is_dense().then(|| self.bytes())
    }

    /// Copies the array, whatever its strides, into dense row-major bytes.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT if `dense` has not [the array's size](Self::dense_size).
    pub fn copy_into(&self, dense: &mut [u8]) -> Result<()> {
        let size = self.dense_size();
        if dense.len() != size {
            return Err(Error::invalid_argument(format!(
                "an array {} of {size} bytes does not fit into {} bytes",
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

    /// The array as dense row-major bytes.
    ///
    /// # Errors
    ///
    /// RESOURCE_EXHAUSTED if the host has no memory for them.
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

    /// Whether the host lets the memory live as long as the buffer: storage may then keep this value and use
    /// [`dense_bytes`](Self::dense_bytes) in place of a copy.
    #[must_use]
    pub fn may_alias(&self) -> bool {
        self.0.may_alias
    }

    /// Copies what was lent into memory of the plugin's own, and releases the host's.
    ///
    /// # Errors
    ///
    /// RESOURCE_EXHAUSTED if there is no memory.
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

/// Host memory to fill, for a readback (`PJRT_Buffer_ToHostBuffer`). Finishing or failing it tells the host; dropping it
/// fails it with an INTERNAL error.
pub struct CopyToHost {
    target: Target,
    shape: Shape,
    /// `None` if the host wants the array dense and row-major.
    strided: Option<Strided>,
}

/// Where the bytes go, and who is told.
enum Target {
    Lent(HostBytesMut, EventSource),
    Collected(Vec<u8>, Receiver),
    /// The copy is finished or has failed.
    Ended,
}

/// Who takes the bytes of a copy that does not go to the host.
type Receiver = Box<dyn FnOnce(Result<Vec<u8>>) + Send>;

impl sealed::Sealed for CopyToHost {}
impl ReadsViews for CopyToHost {}

impl CopyToHost {
    /// `bytes` spans exactly the array: `strided`'s extent, or the dense size.
    pub(crate) fn lent(
        bytes: HostBytesMut,
        shape: Shape,
        strided: Option<Strided>,
        done: EventSource,
    ) -> Self {
        Self { target: Target::Lent(bytes, done), shape, strided }
    }

    /// A copy into memory of the SDK's own: `receiver` gets the dense row-major bytes, or, at once, that there is no memory for
    /// them. Then there is nothing to copy.
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

    /// The type of the elements. Types of less than a byte are wanted unpacked: one byte per element.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.shape.element_type
    }

    /// The dimensions.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        self.shape.dims()
    }

    /// How many bytes the array takes when it is dense.
    #[must_use]
    pub fn dense_size(&self) -> usize {
        self.shape.host_size()
    }

    /// The memory to fill, if the host wants the array dense and row-major. What it holds before is unspecified.
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

    /// Fills the memory from dense row-major bytes, in the layout that the host wants, and tells the host. If the bytes
    /// have not [the array's size](Self::dense_size), the copy fails with an INTERNAL error.
    pub fn finish_with(mut self, dense_row_major: &[u8]) {
        let outcome = self.fill(dense_row_major);
        self.end(outcome);
    }

    /// As [`finish_with`](Self::finish_with), with what is in a view of the host's memory now.
    pub fn finish_with_view(mut self, view: &HostView) {
        // The lease ends before the host learns of the end, and may write.
        let lease = view.lease(&self);
        let outcome = self.fill(lease.bytes());
        drop(lease);
        self.end(outcome);
    }

    fn fill(&mut self, dense_row_major: &[u8]) -> Result<()> {
        let size = self.dense_size();
        if dense_row_major.len() != size {
            return Err(Error::internal(format!(
                "the device gave {} bytes for an array {}, which has {size}",
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

    /// Tells the host that the memory is filled.
    pub fn finish(mut self) {
        self.end(Ok(()));
    }

    /// Tells the host that the copy failed.
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
            self.end(Err(panic_guard::lost("a copy to the host was dropped before it was finished")));
        }
    }
}

impl fmt::Debug for CopyToHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CopyToHost({})", self.shape)
    }
}
