//! The key-value store through which the processes of a distributed computation find each other.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;

/// What a key-value store does. The host's is one; a test can bring its own.
pub trait KeyValueBackend: Send + Sync {
    /// Waits until a key has a value.
    ///
    /// # Errors
    ///
    /// DEADLINE_EXCEEDED if that takes too long; whatever the store fails with.
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>>;

    /// The value of a key, if it has one now.
    ///
    /// # Errors
    ///
    /// UNIMPLEMENTED if the host is older than C API 0.61; whatever the store fails with.
    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>>;

    /// Gives a key a value.
    ///
    /// # Errors
    ///
    /// ALREADY_EXISTS if it has one; whatever the store fails with.
    fn put(&self, key: &str, value: &[u8]) -> Result<()>;
}

/// A key-value store that all processes of a computation share. Cloning gives another handle.
#[derive(Clone)]
pub struct KeyValueStore(Arc<dyn KeyValueBackend>);

impl KeyValueStore {
    /// A store.
    #[must_use]
    pub fn new(backend: impl KeyValueBackend + 'static) -> Self {
        Self(Arc::new(backend))
    }

    /// Waits until a key has a value.
    ///
    /// # Errors
    ///
    /// DEADLINE_EXCEEDED if that takes too long; whatever the store fails with.
    pub fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        self.0.get(key, timeout)
    }

    /// The value of a key, if it has one now.
    ///
    /// # Errors
    ///
    /// UNIMPLEMENTED if the host is older than C API 0.61; whatever the store fails with.
    pub fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.0.try_get(key)
    }

    /// Gives a key a value.
    ///
    /// # Errors
    ///
    /// ALREADY_EXISTS if it has one; whatever the store fails with.
    pub fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        self.0.put(key, value)
    }
}

impl fmt::Debug for KeyValueStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyValueStore")
    }
}
