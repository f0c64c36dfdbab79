//! The configuration of a `custom_call`.

use super::DictionaryAttribute;
use crate::Bytes;

/// Configuration of a `custom_call`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BackendConfig {
    /// Bytes whose meaning the target knows; often text.
    Bytes(Bytes),
    /// Named attributes, for the typed foreign function interface.
    Dictionary(DictionaryAttribute),
}

impl Default for BackendConfig {
    fn default() -> Self {
        BackendConfig::Bytes(Bytes::default())
    }
}
