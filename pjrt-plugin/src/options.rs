//! Options of clients, topologies and compilers. A plugin declares them, so that the SDK can validate and convert the values
//! that hosts pass.

use crate::error::{Error, Result};

/// The declaration of an option: its name, its default value, which also determines its type, and its meaning.
///
/// ```
/// use pjrt_plugin::options::OptionSpec;
///
/// const CREATE_OPTIONS: &[OptionSpec] = &[
///     OptionSpec::integer("num_devices", 1, "the number of devices"),
///     OptionSpec::boolean("trace", false, "whether every step is printed"),
/// ];
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptionSpec {
    pub(crate) name: &'static str,
    pub(crate) default: OptionDefault,
    pub(crate) meaning: &'static str,
    /// The smallest and the largest valid integer.
    range: (i64, i64),
}

/// The default value of an option, whose variant determines the type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum OptionDefault {
    String(&'static str),
    Integer(i64),
    IntegerList(&'static [i64]),
    Float(f32),
    Boolean(bool),
}

impl OptionSpec {
    const fn new(name: &'static str, default: OptionDefault, meaning: &'static str) -> Self {
        Self { name, default, meaning, range: (i64::MIN, i64::MAX) }
    }

    /// Declares an option whose value is a string.
    #[must_use]
    pub const fn string(name: &'static str, default: &'static str, meaning: &'static str) -> Self {
        Self::new(name, OptionDefault::String(default), meaning)
    }

    /// Declares an option whose value is an integer.
    #[must_use]
    pub const fn integer(name: &'static str, default: i64, meaning: &'static str) -> Self {
        Self::new(name, OptionDefault::Integer(default), meaning)
    }

    /// Declares an option whose value is a list of integers. In a string, the integers are separated by commas.
    #[must_use]
    pub const fn integer_list(name: &'static str, default: &'static [i64], meaning: &'static str) -> Self {
        Self::new(name, OptionDefault::IntegerList(default), meaning)
    }

    /// Declares an option whose value is a floating-point number.
    #[must_use]
    pub const fn float(name: &'static str, default: f32, meaning: &'static str) -> Self {
        Self::new(name, OptionDefault::Float(default), meaning)
    }

    /// Declares an option whose value is a boolean. As a string, the value is `true`, `1`, `false` or `0`, in upper or lower
    /// case.
    #[must_use]
    pub const fn boolean(name: &'static str, default: bool, meaning: &'static str) -> Self {
        Self::new(name, OptionDefault::Boolean(default), meaning)
    }

    /// Limits the values that hosts can set: an integer, or each integer of a list, must be at least `min` and at most `max`.
    ///
    /// ```
    /// use pjrt_plugin::{OptionSpec, OptionValue, Options};
    ///
    /// const SPECS: &[OptionSpec] = &[OptionSpec::integer("num_devices", 1, "the number of devices").in_range(1, 8)];
    ///
    /// let error = Options::new(SPECS, vec![("num_devices".to_owned(), OptionValue::Integer(0))]).unwrap_err();
    /// assert!(error.message().contains("expected a number from 1 to 8"));
    /// ```
    #[must_use]
    pub const fn in_range(self, min: i64, max: i64) -> Self {
        Self { range: (min, max), ..self }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the meaning, which errors about the option contain.
    #[must_use]
    pub const fn meaning(&self) -> &'static str {
        self.meaning
    }
}

/// The values of options: those that the host set, and the defaults of the others.
///
/// ```
/// use pjrt_plugin::{OptionSpec, OptionValue, Options};
///
/// const SPECS: &[OptionSpec] = &[OptionSpec::integer("num_devices", 1, "the number of devices")];
///
/// let given = vec![("num_devices".to_owned(), OptionValue::String("4".to_owned()))];
/// assert_eq!(Options::new(SPECS, given)?.integer("num_devices")?, 4);
///
/// let misspelled = Options::new(SPECS, vec![("num_device".to_owned(), OptionValue::Integer(4))]);
/// assert_eq!(misspelled.unwrap_err().hint(), Some("did you mean 'num_devices'?"));
/// # Ok::<(), pjrt_plugin::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    values: Vec<(&'static str, OptionValue)>,
}

/// The value of an option. See the example of [`Options`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OptionValue {
    /// A string.
    String(String),
    /// An integer.
    Integer(i64),
    /// A list of integers.
    IntegerList(Vec<i64>),
    /// A floating-point number.
    Float(f32),
    /// A boolean.
    Boolean(bool),
}

impl OptionValue {
    fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::IntegerList(_) => "a list of integers",
            Self::Float(_) => "a float",
            Self::Boolean(_) => "a boolean",
        }
    }
}

impl From<OptionDefault> for OptionValue {
    fn from(default: OptionDefault) -> Self {
        match default {
            OptionDefault::String(value) => Self::String(value.to_owned()),
            OptionDefault::Integer(value) => Self::Integer(value),
            OptionDefault::IntegerList(value) => Self::IntegerList(value.to_vec()),
            OptionDefault::Float(value) => Self::Float(value),
            OptionDefault::Boolean(value) => Self::Boolean(value),
        }
    }
}

macro_rules! getters {
    ($($name:ident $variant:ident $ty:ty, $what:literal;)*) => {$(
        #[doc = concat!("Returns the value of an option that is declared as ", $what, ".")]
        ///
        /// # Errors
        ///
        /// Returns INTERNAL if no option with this name and type is declared.
        pub fn $name(&self, name: &str) -> Result<$ty> {
            match self.get(name) {
                Some(OptionValue::$variant(value)) => Ok(value.clone()),
                _ => Err(Error::internal(format!(concat!("no option '{}' is declared as ", $what), name))),
            }
        }
    )*};
}

impl Options {
    /// Validates the values that a host passes against the declared options.
    ///
    /// Strings, which JAX's flags produce, are converted to the declared type, and integers to floats.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if a name is not declared, with the most similar name as a hint, or if a value has the wrong
    /// type or is out of the option's range.
    pub fn new(specs: &[OptionSpec], given: Vec<(String, OptionValue)>) -> Result<Self> {
        Self::read(specs, given, &CREATE)
    }

    /// Does the same as [`new`](Self::new), with other texts of errors.
    pub(crate) fn read(
        specs: &[OptionSpec],
        given: Vec<(String, OptionValue)>,
        words: &Words,
    ) -> Result<Self> {
        let mut values: Vec<(&'static str, OptionValue)> =
            specs.iter().map(|spec| (spec.name, spec.default.into())).collect();
        for (name, value) in given {
            let Some((spec, slot)) = specs.iter().zip(&mut values).find(|(spec, _)| spec.name == name) else {
                return Err(unknown_option(&name, specs, words));
            };
            slot.1 = checked(spec, value, words)?;
        }
        Ok(Self { values })
    }

    /// Returns the value of an option, or `None` if no option with this name is declared.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.values.iter().find(|(declared, _)| *declared == name).map(|(_, value)| value)
    }

    getters! {
        string String String, "a string";
        integer Integer i64, "an integer";
        integer_list IntegerList Vec<i64>, "a list of integers";
        float Float f32, "a float";
        boolean Boolean bool, "a boolean";
    }
}

/// The texts of errors about options. They are those of XLA's plugins, which tests of hosts expect.
pub(crate) struct Words {
    /// The texts before and after the name of an unknown option.
    unknown: (&'static str, &'static str),
    /// The recipient of the options.
    passed_to: &'static str,
}

/// The texts for the options of a client.
const CREATE: Words = Words {
    unknown: ("Unexpected option name passed to PJRT_Client_Create: ", ""),
    passed_to: "PJRT_Client_Create",
};

/// The texts for the options of the compiler.
pub(crate) const COMPILE: Words =
    Words { unknown: ("No such compile option: '", "'"), passed_to: "the compiler" };

fn unknown_option(name: &str, specs: &[OptionSpec], words: &Words) -> Error {
    let (before, after) = words.unknown;
    let error = Error::invalid_argument(format!("{before}{name}{after}"));
    if let Some(nearest) = nearest(name, specs.iter().map(|spec| spec.name)) {
        return error.with_hint(format!("did you mean '{nearest}'?"));
    }
    let names: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
    if names.is_empty() {
        error.with_hint("the plugin declares no options")
    } else {
        error.with_hint(format!("the options are: {}", names.join(", ")))
    }
}

/// Converts a value to the type of its option, and checks that it is in the option's range.
fn checked(spec: &OptionSpec, value: OptionValue, words: &Words) -> Result<OptionValue> {
    let value = convert(spec, value, words)?;
    let (min, max) = spec.range;
    let integers = match &value {
        OptionValue::Integer(integer) => std::slice::from_ref(integer),
        OptionValue::IntegerList(integers) => integers,
        _ => &[],
    };
    match integers.iter().find(|integer| !(min..=max).contains(*integer)) {
        Some(integer) => Err(Error::invalid_argument(format!(
            "Option '{}' passed to {} is {integer}; expected a number from {min} to {max}",
            spec.name, words.passed_to
        ))
        .with_hint(spec.meaning)),
        None => Ok(value),
    }
}

fn convert(spec: &OptionSpec, value: OptionValue, words: &Words) -> Result<OptionValue> {
    let declared = OptionValue::from(spec.default);
    if std::mem::discriminant(&declared) == std::mem::discriminant(&value) {
        return Ok(value);
    }
    let converted = match (&declared, &value) {
        (OptionValue::Float(_), OptionValue::Integer(value)) => Some(OptionValue::Float(*value as f32)),
        (_, OptionValue::String(text)) => parse(&declared, text.trim()),
        _ => None,
    };
    converted.ok_or_else(|| {
        let found = match &value {
            OptionValue::String(text) => format!("the string '{text}'"),
            other => other.type_name().to_owned(),
        };
        Error::invalid_argument(format!(
            "Option '{}' passed to {} must be {}, not {found}",
            spec.name,
            words.passed_to,
            declared.type_name()
        ))
        .with_hint(spec.meaning)
    })
}

/// Parses a string as a value of the same type as `like`.
fn parse(like: &OptionValue, text: &str) -> Option<OptionValue> {
    match like {
        OptionValue::String(_) => Some(OptionValue::String(text.to_owned())),
        OptionValue::Integer(_) => text.parse().ok().map(OptionValue::Integer),
        OptionValue::Float(_) => text.parse().ok().map(OptionValue::Float),
        OptionValue::Boolean(_) => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(OptionValue::Boolean(true)),
            "false" | "0" => Some(OptionValue::Boolean(false)),
            _ => None,
        },
        OptionValue::IntegerList(_) => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| part.parse().ok()).collect::<Option<Vec<i64>>>().map(OptionValue::IntegerList)
        }
    }
}

/// Returns the known name that is most similar to a misspelled one, if one is similar enough.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// A limit on the length of the host's name, which bounds the cost of the comparison.
    const LONGEST: usize = 256;
    if name.len() > LONGEST {
        return None;
    }
    known
        .map(|candidate| (strsim::levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(name.len()) / 3 + 1)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[OptionSpec] = &[
        OptionSpec::integer("num_devices", 1, "how many devices to make"),
        OptionSpec::boolean("trace", false, "whether to trace"),
        OptionSpec::float("scale", 1.0, "a factor"),
        OptionSpec::integer_list("shape", &[1, 2], "a shape"),
        OptionSpec::string("mode", "fast", "a mode"),
    ];

    fn given(name: &str, value: OptionValue) -> Result<Options> {
        Options::new(SPECS, vec![(name.to_owned(), value)])
    }

    fn text(value: &str) -> OptionValue {
        OptionValue::String(value.to_owned())
    }

    #[test]
    fn an_unknown_name_is_refused_and_the_nearest_one_named() {
        let error = given("num_device", OptionValue::Integer(2)).unwrap_err();
        assert_eq!(error.code(), crate::error::ErrorCode::InvalidArgument);
        assert!(
            error.message().starts_with("Unexpected option name passed to PJRT_Client_Create: num_device")
        );
        assert_eq!(error.hint(), Some("did you mean 'num_devices'?"));
        let far = given("something_else_entirely", OptionValue::Integer(2)).unwrap_err();
        assert!(far.hint().unwrap().contains("num_devices, trace"));
    }

    #[test]
    fn text_becomes_the_declared_type() {
        assert_eq!(given("num_devices", text("4")).unwrap().integer("num_devices").unwrap(), 4);
        assert!(given("trace", text("True")).unwrap().boolean("trace").unwrap());
        assert_eq!(given("shape", text("3, 4")).unwrap().integer_list("shape").unwrap(), [3, 4]);
        assert_eq!(given("scale", OptionValue::Integer(2)).unwrap().float("scale").unwrap(), 2.0);
        assert_eq!(given("mode", text("slow")).unwrap().string("mode").unwrap(), "slow");
    }

    #[test]
    fn a_value_out_of_its_range_is_refused_by_name() {
        let specs = [SPECS[0].in_range(1, 4), SPECS[3].in_range(0, 9)];
        let given = |name: &str, value: &str| Options::new(&specs, vec![(name.to_owned(), text(value))]);
        assert!(given("num_devices", "1").is_ok() && given("num_devices", "4").is_ok());
        for (name, value, wrong) in
            [("num_devices", "0", "0"), ("num_devices", "5", "5"), ("shape", "3,-1", "-1")]
        {
            let error = given(name, value).unwrap_err();
            assert!(error.message().contains(&format!("Option '{name}'")), "{error}");
            assert!(error.message().contains(&format!("is {wrong}; expected a number from")), "{error}");
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused() {
        for (name, value) in [
            ("num_devices", text("four")),
            ("num_devices", OptionValue::Boolean(true)),
            ("trace", OptionValue::Integer(1)),
            ("mode", OptionValue::Integer(1)),
        ] {
            let error = given(name, value).unwrap_err();
            assert!(error.message().contains(name), "{error}");
        }
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let options = Options::new(SPECS, Vec::new()).unwrap();
        assert_eq!(options.integer("num_devices").unwrap(), 1);
        assert_eq!(options.string("mode").unwrap(), "fast");
        assert!(options.integer("mode").is_err());
    }
}
