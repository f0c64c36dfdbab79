//! Buffers over memory that the host may continue to write to.

use crate::canonical;
use crate::errors::out_of_memory;
use pjrt_plugin::{CopyToHost, HostView, HostViewLease, ReadsViews, Result};
use refcpu_engine::storage::{Allocator, Array, ForeignBytes};
use refcpu_kernels::DType;

/// An array in memory of the host. Nothing is cached between operations, because the host may write in between.
pub(crate) struct ViewedArray {
    view: HostView,
    dtype: DType,
    dims: Vec<usize>,
}

/// The host's memory during an operation.
struct Leased(HostViewLease);

impl ForeignBytes for Leased {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl ViewedArray {
    /// Creates the array of a view. `dtype` and `dims` must be those of the view.
    pub(crate) fn new(view: HostView, dtype: DType, dims: Vec<usize>) -> Self {
        Self { view, dtype, dims }
    }

    pub(crate) fn view(&self) -> &HostView {
        &self.view
    }

    /// Returns the array for one operation. It borrows the host's memory if kernels can read that, and otherwise copies its
    /// current content.
    ///
    /// # Errors
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory for a copy.
    pub(crate) fn array(&self, during: &impl ReadsViews, allocator: &Allocator) -> Result<Array> {
        if canonical::may_differ(self.dtype) || self.view.size_in_bytes() == 0 {
            return self.copy(during, allocator);
        }
        let leased = Box::new(Leased(self.view.lease(during)));
        Array::foreign(leased, self.dtype, &self.dims).or_else(|_| self.copy(during, allocator))
    }

    /// Copies the current content of the host's memory.
    ///
    /// # Errors
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory.
    pub(crate) fn copy(&self, during: &impl ReadsViews, allocator: &Allocator) -> Result<Array> {
        let lease = self.view.lease(during);
        let array = Array::from_bytes(allocator, self.dtype, &self.dims, lease.bytes());
        let mut array = array.map_err(|error| out_of_memory(&error))?;
        if let Some(bytes) = array.bytes_mut() {
            canonical::make_canonical(self.dtype, bytes);
        }
        Ok(array)
    }

    /// Copies the array to the host.
    pub(crate) fn copy_to_host(&self, copy: CopyToHost, allocator: &Allocator) {
        if !canonical::may_differ(self.dtype) {
            return copy.finish_with_view(&self.view);
        }
        match self.copy(&copy, allocator) {
            Ok(array) => copy.finish_with(array.bytes().unwrap_or_default()),
            Err(error) => copy.fail(error),
        }
    }
}
