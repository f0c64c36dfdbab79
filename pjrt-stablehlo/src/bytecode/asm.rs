//! Attributes and types that are stored as text, because their dialect has no bytecode encoding.

use crate::ir::{Attribute, ElementType, Type};

/// Returns the attribute with a text such as `#dialect.name<...>`.
pub(super) fn attribute(text: &[u8]) -> Attribute {
    let Ok(text) = std::str::from_utf8(text) else { return Attribute::Bytes(text.into()) };
    match text.strip_prefix('#') {
        Some(text) => crate::text::sharding::parse(text).unwrap_or_else(|| Attribute::Opaque(text.into())),
        None if text == "unit" => Attribute::Unit,
        None => Attribute::Opaque(text.into()),
    }
}

/// Returns the type with a text such as `!dialect.name<...>` or `f8E4M3FN`.
pub(super) fn ty(text: &[u8]) -> Type {
    let text = String::from_utf8_lossy(text);
    match &*text {
        "!stablehlo.token" | "!mhlo.token" => Type::Token,
        text => match ElementType::from_name(text) {
            Some(element) => Type::Scalar(element),
            None => Type::Opaque(text.trim_start_matches('!').into()),
        },
    }
}
