//! The configuration of a `custom_call`.

use super::DictionaryAttribute;
use crate::Bytes;

/// The configuration of a `custom_call`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BackendConfig {
    /// Bytes that the target interprets; often text.
    Bytes(Bytes),
    /// Named attributes, for targets of XLA's typed foreign function interface.
    Dictionary(DictionaryAttribute),
}

impl Default for BackendConfig {
    fn default() -> Self {
        BackendConfig::Bytes(Bytes::default())
    }
}
