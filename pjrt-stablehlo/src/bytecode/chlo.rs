//! Attributes of the `chlo` dialect, which are represented by their text.

use super::entries::Decoder;
use crate::Error;
use crate::ir::{Attribute, ComparisonDirection, ComparisonType, EnumValue};

/// Decodes an attribute. The codes are those of StableHLO's `ChloBytecode.cpp`.
pub(super) fn attribute(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let start = decoder.cursor;
    let code = decoder.cursor.varint()?;
    let case = decoder.cursor.varint()?;
    let value: Option<EnumValue> = match code {
        0 => ComparisonDirection::from_code(case).map(Into::into),
        1 => ComparisonType::from_code(case).map(Into::into),
        code => return Err(start.error(format!("attribute code {code} of dialect 'chlo' is not supported"))),
    };
    let Some(value) = value else {
        return Err(start.error(format!("expected a case of an enumeration, found {case}")));
    };
    let (name, case) = value.names();
    Ok(Attribute::Opaque(format!("chlo<{name} {case}>").into()))
}
