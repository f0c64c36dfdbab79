//! The host's data for the handlers of custom calls.

use std::ffi::c_void;
use std::sync::Arc;

use crate::core::host_memory::HostPointer;

/// The data that a host passes to the handlers of an execution's custom calls: one pointer for each type id. See
/// [`Execution::user_data`](crate::Execution::user_data).
#[derive(Debug, Clone, Default)]
pub struct UserData(Option<Arc<Vec<(i64, HostPointer)>>>);

impl UserData {
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Returns whether there is no data.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds a value, or replaces the one with the same type id. Clones that executions own do not change.
    pub(crate) fn add(&mut self, type_id: i64, data: *mut c_void) {
        let mut all: Vec<(i64, HostPointer)> = self.0.iter().flat_map(|all| all.iter().copied()).collect();
        all.retain(|(existing, _)| *existing != type_id);
        all.push((type_id, HostPointer(data)));
        self.0 = Some(Arc::new(all));
    }

    pub(crate) fn get(&self, type_id: i64) -> Option<*mut c_void> {
        self.0.as_ref()?.iter().find(|(existing, _)| *existing == type_id).map(|(_, data)| data.get())
    }
}
