//! The key-value store that the processes of a distributed computation share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;

/// The operations of a key-value store. The SDK implements them with the host's callbacks; a test can implement them itself:
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
/// use std::time::Duration;
///
/// use pjrt_plugin::{Error, KeyValueBackend, KeyValueStore, Result};
///
/// #[derive(Default)]
/// struct InMemory(Mutex<HashMap<String, Vec<u8>>>);
///
/// impl KeyValueBackend for InMemory {
///     fn get(&self, key: &str, _: Duration) -> Result<Vec<u8>> {
///         self.try_get(key)?.ok_or_else(|| Error::deadline_exceeded(format!("the key '{key}' has no value")))
///     }
///
///     fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
///         Ok(self.0.lock().unwrap().get(key).cloned())
///     }
///
///     fn put(&self, key: &str, value: &[u8]) -> Result<()> {
///         match self.0.lock().unwrap().insert(key.to_owned(), value.to_vec()) {
///             None => Ok(()),
///             Some(_) => Err(Error::already_exists(format!("the key '{key}' already has a value"))),
///         }
///     }
/// }
///
/// let store = KeyValueStore::new(InMemory::default());
/// store.put("address/0", b"10.0.0.1:80")?;
/// assert_eq!(store.get("address/0", Duration::from_secs(1))?, b"10.0.0.1:80");
/// # Ok::<(), Error>(())
/// ```
pub trait KeyValueBackend: Send + Sync {
    /// Waits until a key has a value, and returns the value.
    ///
    /// # Errors
    ///
    /// Returns DEADLINE_EXCEEDED if the timeout expires, UNIMPLEMENTED if the host passed no callback for it, or any other
    /// error of the store.
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>>;

    /// Returns the value of a key, if it has one, without waiting.
    ///
    /// # Errors
    ///
    /// Returns UNIMPLEMENTED if the host is older than C API 0.61, or any other error of the store.
    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>>;

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// Returns ALREADY_EXISTS if the key has a value, UNIMPLEMENTED if the host passed no callback for it, or any other
    /// error of the store.
    fn put(&self, key: &str, value: &[u8]) -> Result<()>;
}

/// A key-value store that all processes of a distributed computation share ([`ClientConfig::kv_store`]). A clone refers to
/// the same store. See the example of [`KeyValueBackend`].
///
/// [`ClientConfig::kv_store`]: crate::ClientConfig::kv_store
#[derive(Clone)]
pub struct KeyValueStore(pub(crate) Arc<dyn KeyValueBackend>);

impl KeyValueStore {
    /// Creates a store with a backend.
    #[must_use]
    pub fn new(backend: impl KeyValueBackend + 'static) -> Self {
        Self(Arc::new(backend))
    }

    /// Waits until a key has a value, and returns the value.
    ///
    /// # Errors
    ///
    /// Returns DEADLINE_EXCEEDED if the timeout expires, UNIMPLEMENTED if the host passed no callback for it, or any other
    /// error of the store.
    pub fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        self.0.get(key, timeout)
    }

    /// Returns the value of a key, if it has one, without waiting.
    ///
    /// # Errors
    ///
    /// Returns UNIMPLEMENTED if the host is older than C API 0.61, or any other error of the store.
    pub fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.0.try_get(key)
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// Returns ALREADY_EXISTS if the key has a value, UNIMPLEMENTED if the host passed no callback for it, or any other
    /// error of the store.
    pub fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        self.0.put(key, value)
    }
}

impl fmt::Debug for KeyValueStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyValueStore")
    }
}
