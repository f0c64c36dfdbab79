//! Attributes: named values that describe the plugin, its devices and its programs to the host.

/// The value of an attribute (`PJRT_NamedValue`).
///
/// ```
/// use pjrt_plugin::{AttributeValue, DeviceDescription};
///
/// let chip = DeviceDescription::new(0, "chip").with_attribute("coords", vec![1, 2]).with_attribute("slice", 3_i64);
/// assert_eq!(chip.attributes()[0], ("coords".to_owned(), AttributeValue::Int64List(vec![1, 2])));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AttributeValue {
    /// A string.
    String(String),
    /// An integer.
    Int64(i64),
    /// A list of integers.
    Int64List(Vec<i64>),
    /// A floating-point number. Hosts abort if an attribute of a device has this type.
    Float(f32),
    /// A boolean. Hosts abort if an attribute of a device has this type.
    Bool(bool),
}

impl From<&str> for AttributeValue {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<i64> for AttributeValue {
    fn from(value: i64) -> Self {
        Self::Int64(value)
    }
}

impl From<Vec<i64>> for AttributeValue {
    fn from(value: Vec<i64>) -> Self {
        Self::Int64List(value)
    }
}

impl From<f32> for AttributeValue {
    fn from(value: f32) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for AttributeValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

/// A version of StableHLO: `[major, minor, patch]`.
pub type StablehloVersion = [i64; 3];

/// The attributes of a plugin, which hosts read before they create a client (`PJRT_Plugin_Attributes`).
///
/// The StableHLO versions determine the version in which a host serializes programs: the older of the host's own version and
/// [`with_stablehlo_current_version`](Self::with_stablehlo_current_version). Without that attribute, hosts use a version
/// that is about twelve weeks old.
///
/// ```
/// use pjrt_plugin::PluginAttributes;
///
/// let attributes = PluginAttributes::new()
///     .with_stablehlo_minimum_version([0, 9, 0])
///     .with_stablehlo_current_version([1, 13, 0])
///     .with("driver", "2.1");
/// assert_eq!(attributes.values().len(), 4);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PluginAttributes {
    values: Vec<(String, AttributeValue)>,
}

/// The name of the attribute with the newest version of StableHLO that a plugin reads.
pub(crate) const STABLEHLO_CURRENT_VERSION: &str = "stablehlo_current_version";

impl PluginAttributes {
    /// Creates attributes with only `xla_version`, which indicates to JAX that the plugin supports the current interfaces.
    #[must_use]
    pub fn new() -> Self {
        Self::default().with("xla_version", 2_i64)
    }

    /// Sets the newest version of StableHLO that the plugin reads.
    #[must_use]
    pub fn with_stablehlo_current_version(self, version: StablehloVersion) -> Self {
        self.with(STABLEHLO_CURRENT_VERSION, version.to_vec())
    }

    /// Sets the oldest version of StableHLO that the plugin reads.
    #[must_use]
    pub fn with_stablehlo_minimum_version(self, version: StablehloVersion) -> Self {
        self.with("stablehlo_minimum_version", version.to_vec())
    }

    /// Adds an attribute, or replaces the one with the same name. JAX exposes it as an attribute of its client.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<AttributeValue>) -> Self {
        let name = name.into();
        self.values.retain(|(existing, _)| *existing != name);
        self.values.push((name, value.into()));
        self
    }

    /// Returns the names and values, in the order in which they were added.
    #[must_use]
    pub fn values(&self) -> &[(String, AttributeValue)] {
        &self.values
    }
}
