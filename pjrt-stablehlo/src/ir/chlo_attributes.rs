//! Attributes of CHLO operations, which are not in the op table, and of the composites and custom calls that represent
//! CHLO operations.

use crate::Error;
use crate::ErrorKind;
use crate::ir::{Attribute, ComparisonDirection, ComparisonType, EnumValue, Op, Operation};

/// Returns an attribute of a CHLO operation, or of a composite or custom call that represents one.
pub(crate) fn get<'a>(op: &'a Operation, name: &str) -> Option<&'a Attribute> {
    match &op.kind {
        Op::Other(other) => other.properties.get(name).or_else(|| op.attributes.get(name)),
        Op::Composite(composite) => composite.composite_attributes.get(name),
        Op::CustomCall(_) => op.attributes.get("mhlo.attributes")?.as_dictionary()?.get(name),
        _ => None,
    }
}

/// Returns an attribute that must be present.
pub(crate) fn require<'a>(op: &'a Operation, name: &str) -> Result<&'a Attribute, Error> {
    get(op, name)
        .ok_or_else(|| Error::new(ErrorKind::Unsupported, format!("the attribute '{name}' is missing")))
}

fn unexpected(name: &str, expected: &str, found: &Attribute) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("attribute '{name}': expected {expected}, found {}", found.kind()),
    )
}

/// Returns the value of a required integer attribute.
pub(crate) fn integer(op: &Operation, name: &str) -> Result<i64, Error> {
    let attribute = require(op, name)?;
    attribute.as_i64().ok_or_else(|| unexpected(name, "an integer", attribute))
}

/// Returns the value of a boolean attribute, `false` if it is absent.
pub(crate) fn boolean(op: &Operation, name: &str) -> Result<bool, Error> {
    match get(op, name) {
        None => Ok(false),
        Some(Attribute::Bool(value)) => Ok(*value),
        Some(other) => Err(unexpected(name, "a boolean", other)),
    }
}

/// Returns a list of integers, in any of MLIR's encodings of such lists.
pub(crate) fn integers(op: &Operation, name: &str) -> Result<Option<Vec<i64>>, Error> {
    const MAX_INTEGERS: usize = 1024;
    let Some(attribute) = get(op, name) else { return Ok(None) };
    let values = match attribute {
        Attribute::IntegerArray { values, .. } => Some(values.to_vec()),
        Attribute::Elements(literal) => literal.to_i64s(MAX_INTEGERS),
        Attribute::Array(elements) => elements.iter().map(Attribute::as_i64).collect(),
        _ => None,
    };
    values.map(Some).ok_or_else(|| unexpected(name, "a list of integers", attribute))
}

/// Returns the name of an enumeration's case, from StableHLO's attribute or from CHLO's, which this crate stores as
/// text: `GT` for `#chlo<comparison_direction GT>`.
fn case_name(attribute: &Attribute) -> Option<&str> {
    match attribute {
        Attribute::Opaque(text) => {
            let inner = text.strip_prefix("chlo<")?.strip_suffix('>')?;
            inner.rsplit([' ', '<']).next().map(|name| name.trim_end_matches('>'))
        }
        Attribute::String(text) => Some(text),
        Attribute::Enum(EnumValue::ComparisonDirection(direction)) => Some(direction.name()),
        Attribute::Enum(EnumValue::ComparisonType(kind)) => Some(kind.name()),
        _ => None,
    }
}

/// Returns the direction of a comparison.
pub(crate) fn comparison_direction(op: &Operation) -> Result<ComparisonDirection, Error> {
    let attribute = require(op, "comparison_direction")?;
    let direction = case_name(attribute).and_then(ComparisonDirection::from_name);
    direction.ok_or_else(|| unexpected("comparison_direction", "a comparison direction", attribute))
}

/// Returns the type of a comparison, [`ComparisonType::NoType`] if the attribute is absent.
pub(crate) fn comparison_type(op: &Operation) -> Result<ComparisonType, Error> {
    let Some(attribute) = get(op, "compare_type") else { return Ok(ComparisonType::NoType) };
    let kind = case_name(attribute).and_then(ComparisonType::from_name);
    kind.ok_or_else(|| unexpected("compare_type", "a comparison type", attribute))
}
