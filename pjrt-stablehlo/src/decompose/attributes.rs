//! Attributes of CHLO operations, which are not in the op table, and of composites and custom calls in place
//! of them.

use super::unsupported;
use crate::Error;
use crate::ir::{Attribute, ComparisonDirection, ComparisonType, EnumValue, Op, Operation};

/// An attribute of an operation outside of the table, or of a composite or a custom call for one.
pub(crate) fn get<'a>(op: &'a Operation, name: &str) -> Option<&'a Attribute> {
    match &op.kind {
        Op::Other(other) => other.properties.get(name).or_else(|| op.attributes.get(name)),
        Op::Composite(composite) => composite.composite_attributes.get(name),
        Op::CustomCall(_) => op.attributes.get("mhlo.attributes")?.as_dictionary()?.get(name),
        _ => None,
    }
}

/// An attribute that has to be there.
pub(super) fn require<'a>(op: &'a Operation, name: &str) -> Result<&'a Attribute, Error> {
    get(op, name).ok_or_else(|| unsupported(format!("expected an attribute '{name}', found none")))
}

fn unexpected(name: &str, expected: &str, found: &Attribute) -> Error {
    unsupported(format!("attribute '{name}': expected {expected}, found {}", found.kind()))
}

/// An integer.
pub(super) fn integer(op: &Operation, name: &str) -> Result<i64, Error> {
    let attribute = require(op, name)?;
    attribute.as_i64().ok_or_else(|| unexpected(name, "an integer", attribute))
}

/// A boolean, false where there is none.
pub(super) fn boolean(op: &Operation, name: &str) -> Result<bool, Error> {
    match get(op, name) {
        None => Ok(false),
        Some(Attribute::Bool(value)) => Ok(*value),
        Some(other) => Err(unexpected(name, "a boolean", other)),
    }
}

/// A list of integers, in any of the forms that MLIR has for it.
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

/// The name of an enumeration's case: `GT` of `#chlo<comparison_direction GT>`, which is not one of the attributes that
/// this crate knows, or of StableHLO's form.
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

/// The direction of a comparison.
pub(super) fn comparison_direction(op: &Operation) -> Result<ComparisonDirection, Error> {
    let attribute = require(op, "comparison_direction")?;
    let direction = case_name(attribute).and_then(ComparisonDirection::from_name);
    direction.ok_or_else(|| unexpected("comparison_direction", "a direction of comparison", attribute))
}

/// The order of a comparison, the natural one where none is given.
pub(super) fn comparison_type(op: &Operation) -> Result<ComparisonType, Error> {
    let Some(attribute) = get(op, "compare_type") else { return Ok(ComparisonType::NoType) };
    let kind = case_name(attribute).and_then(ComparisonType::from_name);
    kind.ok_or_else(|| unexpected("compare_type", "a type of comparison", attribute))
}
