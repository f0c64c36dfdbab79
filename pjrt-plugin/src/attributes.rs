//! Named values that a plugin tells the host about itself, its devices and its programs.

/// The value of an attribute (`PJRT_NamedValue`).
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// Text.
    String(String),
    /// A whole number.
    Int64(i64),
    /// A list of whole numbers.
    Int64List(Vec<i64>),
    /// A number. Hosts abort on one in a device's attributes.
    Float(f32),
    /// A truth value. Hosts abort on one in a device's attributes.
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

/// A version of StableHLO: major, minor, patch.
pub type StablehloVersion = [i64; 3];

/// What a plugin says about itself before there is a client (`PJRT_Plugin_Attributes`).
///
/// The two StableHLO versions decide what programs look like: a host writes its program in the newer of what it knows and
/// [`stablehlo_current_version`](Self::stablehlo_current_version). Without that attribute it takes a version that is
/// about twelve weeks old.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PluginAttributes {
    values: Vec<(String, AttributeValue)>,
}

/// The attribute that names the newest version of StableHLO that a plugin reads.
pub(crate) const STABLEHLO_CURRENT_VERSION: &str = "stablehlo_current_version";

impl PluginAttributes {
    /// No attributes but `xla_version`, by which JAX decides that old interfaces need no care.
    #[must_use]
    pub fn new() -> Self {
        Self::default().with("xla_version", 2_i64)
    }

    /// The newest version of StableHLO that the plugin reads.
    #[must_use]
    pub fn stablehlo_current_version(self, version: StablehloVersion) -> Self {
        self.with(STABLEHLO_CURRENT_VERSION, version.to_vec())
    }

    /// The oldest version of StableHLO that the plugin reads.
    #[must_use]
    pub fn stablehlo_minimum_version(self, version: StablehloVersion) -> Self {
        self.with("stablehlo_minimum_version", version.to_vec())
    }

    /// Any other attribute; JAX shows it as an attribute of its client. One of the same name is replaced.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<AttributeValue>) -> Self {
        let name = name.into();
        self.values.retain(|(existing, _)| *existing != name);
        self.values.push((name, value.into()));
        self
    }

    /// All of them, in the order of their addition.
    #[must_use]
    pub fn values(&self) -> &[(String, AttributeValue)] {
        &self.values
    }
}
