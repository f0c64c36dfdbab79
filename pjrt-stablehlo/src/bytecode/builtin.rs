//! Attributes and types of MLIR's `builtin` dialect.

use super::encoder::{Encoder, Home};
use super::entries::Decoder;
use super::output::Output;
use super::tensor::{self, signed_value};
use crate::Error;
use crate::ir::{
    Attribute, DictionaryAttribute, ElementKind, ElementType, FunctionType, Literal, LiteralData, Location,
    LocationKind, TensorType, Type,
};
use crate::ir::{float_bits, float_value};

/// The name of the dialect.
pub(super) const NAME: &str = "builtin";

/// The codes of attributes and types, from MLIR's `BuiltinDialectBytecode.td`.
mod code {
    pub(super) const ARRAY: u64 = 0;
    pub(super) const DICTIONARY: u64 = 1;
    pub(super) const STRING: u64 = 2;
    pub(super) const TYPED_STRING: u64 = 3;
    pub(super) const SYMBOL: u64 = 4;
    pub(super) const NESTED_SYMBOL: u64 = 5;
    pub(super) const TYPE: u64 = 6;
    pub(super) const UNIT: u64 = 7;
    pub(super) const INTEGER: u64 = 8;
    pub(super) const FLOAT: u64 = 9;
    pub(super) const CALL_SITE: u64 = 10;
    pub(super) const FILE: u64 = 11;
    pub(super) const FUSED: u64 = 12;
    pub(super) const FUSED_WITH_METADATA: u64 = 13;
    pub(super) const NAMED: u64 = 14;
    pub(super) const UNKNOWN: u64 = 15;
    pub(super) const RESOURCE: u64 = 16;
    pub(super) const DENSE_ARRAY: u64 = 17;
    pub(super) const ELEMENTS: u64 = 18;
    pub(super) const FILE_RANGE: u64 = 22;
    /// The codes of the types.
    pub(super) const INTEGER_TYPE: u64 = 0;
    pub(super) const INDEX: u64 = 1;
    pub(super) const FUNCTION: u64 = 2;
    pub(super) const COMPLEX: u64 = 9;
    pub(super) const BUFFER: u64 = 10;
    pub(super) const NONE: u64 = 12;
    pub(super) const TENSOR: u64 = 13;
    pub(super) const TENSOR_WITH_ENCODING: u64 = 14;
    pub(super) const TUPLE: u64 = 15;
    pub(super) const UNRANKED_TENSOR: u64 = 18;
}

/// Decodes an attribute.
pub(super) fn attribute(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        code::ARRAY => Attribute::Array(decoder.attributes()?.into()),
        code::DICTIONARY => decoder.dictionary()?,
        code::STRING => decoder.string()?,
        code::TYPED_STRING => {
            let text = decoder.string()?;
            decoder.ty()?;
            text
        }
        code::SYMBOL => Attribute::Symbol([decoder.string_attribute()?].into()),
        code::NESTED_SYMBOL => nested_symbol(decoder)?,
        code::TYPE => Attribute::Type(decoder.ty()?),
        code::UNIT => Attribute::Unit,
        code::INTEGER => integer(decoder)?,
        code::FLOAT => float(decoder)?,
        code::CALL_SITE => {
            let (callee, caller) = (decoder.location()?, decoder.location()?);
            location(decoder, LocationKind::CallSite { callee, caller })
        }
        code::FILE => {
            let file = decoder.location_name()?;
            let line = position(decoder)?;
            let column = position(decoder)?;
            location(decoder, LocationKind::File { file, line, column, end_line: line, end_column: column })
        }
        kind @ (code::FUSED | code::FUSED_WITH_METADATA) => {
            let parts = decoder.list(Decoder::location)?;
            let metadata = if kind == code::FUSED_WITH_METADATA { Some(decoder.attribute()?) } else { None };
            location(decoder, LocationKind::Fused { parts, metadata })
        }
        code::NAMED => {
            let (name, child) = (decoder.location_name()?, decoder.location()?);
            location(decoder, LocationKind::Name { name, child })
        }
        code::UNKNOWN => Attribute::Location(Location::UNKNOWN),
        code::RESOURCE => resource(decoder)?,
        code::DENSE_ARRAY => dense_array(decoder)?,
        code::ELEMENTS => {
            let ty = decoder.tensor_type()?;
            elements(decoder, ty)?
        }
        code::FILE_RANGE => file_range(decoder)?,
        code => {
            return Err(start.error(format!("attribute code {code} of dialect 'builtin' is not supported")));
        }
    })
}

/// Encodes an attribute; `None` if the dialect does not have it.
pub(super) fn encode_attribute(
    encoder: &mut Encoder,
    attribute: &Attribute,
) -> Result<Option<Output>, Error> {
    let home = Home::Native;
    let mut out;
    match attribute {
        Attribute::Unit => out = Output::with_code(code::UNIT),
        Attribute::Array(elements) => {
            out = Output::with_code(code::ARRAY);
            encoder.attributes(home, &mut out, elements)?;
        }
        Attribute::Dictionary(entries) => {
            out = Output::with_code(code::DICTIONARY);
            encoder.dictionary(home, &mut out, entries)?;
        }
        Attribute::String(text) => out = encode_string(encoder, code::STRING, text.as_bytes()),
        Attribute::Bytes(bytes) => out = encode_string(encoder, code::STRING, bytes),
        Attribute::Symbol(path) => out = encode_symbol(encoder, path)?,
        Attribute::Type(ty) => {
            out = Output::with_code(code::TYPE);
            out.varint(encoder.ty(home, ty)?);
        }
        Attribute::Bool(value) => {
            out = encode_integer(encoder, home, code::INTEGER, (*value).into(), ElementType::I1)?;
        }
        Attribute::Integer { value, ty } => {
            out = encode_integer(encoder, home, code::INTEGER, *value, *ty)?;
        }
        Attribute::Float { value, ty } => {
            out = encode_float(encoder, home, code::FLOAT, *value, *ty)?;
        }
        Attribute::IntegerArray { ty, values } => {
            let raws = values.iter().map(|&value| value as u64);
            out = encode_dense_array(encoder, *ty, values.len(), raws)?;
        }
        Attribute::FloatArray { ty, values } => {
            let raws = values.iter().map(|&value| float_bits(*ty, value));
            out = encode_dense_array(encoder, *ty, values.len(), raws)?;
        }
        Attribute::Elements(value) | Attribute::Resource { value, .. } => {
            out = encode_elements(encoder, home, code::ELEMENTS, value)?;
        }
        _ => return Ok(None),
    }
    Ok(Some(out))
}

/// Adds an array of attributes that have been added, and returns its index.
pub(super) fn encode_array(encoder: &mut Encoder, elements: &[u64]) -> u64 {
    let mut out = Output::with_code(code::ARRAY);
    out.count(elements.len());
    elements.iter().for_each(|&element| out.varint(element));
    encoder.add_attribute(NAME, out)
}

/// Adds the dictionary of an operation, whose values have the operation's encodings, and returns its index.
pub(super) fn encode_dictionary(
    encoder: &mut Encoder,
    home: Home,
    entries: &DictionaryAttribute,
) -> Result<u64, Error> {
    let mut out = Output::with_code(code::DICTIONARY);
    out.count(entries.len());
    for (name, value) in entries.entries() {
        out.varint(encoder.attribute(Home::Native, &Attribute::String(name.clone()))?);
        let value = encoder.attribute(home, value)?;
        out.varint(value);
    }
    Ok(encoder.add_attribute(NAME, out))
}

/// Encodes a location. Ranges of files become their first position if the target does not have ranges.
pub(super) fn encode_location(encoder: &mut Encoder, location: &Location) -> Result<Output, Error> {
    let name =
        |encoder: &mut Encoder, name: &str| encoder.attribute(Home::Native, &Attribute::String(name.into()));
    let mut out;
    match location.kind() {
        LocationKind::Unknown => out = Output::with_code(code::UNKNOWN),
        LocationKind::File { file, line, column, end_line, end_column } => {
            let is_range = (line, column) != (end_line, end_column) && encoder.has_file_ranges();
            out = Output::with_code(if is_range { code::FILE_RANGE } else { code::FILE });
            out.varint(name(encoder, file)?);
            let positions = [*line, *column, *end_line, *end_column];
            if is_range {
                out.count(positions.len());
            }
            let count = if is_range { 4 } else { 2 };
            positions[..count].iter().for_each(|&position| out.varint(position.into()));
        }
        LocationKind::Name { name: text, child } => {
            out = Output::with_code(code::NAMED);
            out.varint(name(encoder, text)?);
            out.varint(encoder.location(child)?);
        }
        LocationKind::CallSite { callee, caller } => {
            out = Output::with_code(code::CALL_SITE);
            out.varint(encoder.location(callee)?);
            out.varint(encoder.location(caller)?);
        }
        LocationKind::Fused { parts, metadata } => {
            out = Output::with_code(match metadata {
                Some(_) => code::FUSED_WITH_METADATA,
                None => code::FUSED,
            });
            out.count(parts.len());
            for part in parts {
                out.varint(encoder.location(part)?);
            }
            if let Some(metadata) = metadata {
                out.varint(encoder.attribute(Home::Native, metadata)?);
            }
        }
    }
    Ok(out)
}

/// Writes a string, which `builtin` and `vhlo` encode in the same way.
pub(super) fn encode_string(encoder: &mut Encoder, code: u64, text: &[u8]) -> Output {
    let mut out = Output::with_code(code);
    out.varint(encoder.string(text));
    out
}

fn encode_symbol(encoder: &mut Encoder, path: &[crate::ir::Str]) -> Result<Output, Error> {
    let [root, nested @ ..] = path else {
        return Err(Error::new(crate::ErrorKind::Invalid, "expected a symbol reference with a name"));
    };
    let mut out = Output::with_code(if nested.is_empty() { code::SYMBOL } else { code::NESTED_SYMBOL });
    out.varint(encoder.attribute(Home::Native, &Attribute::String(root.clone()))?);
    if !nested.is_empty() {
        let nested: Vec<_> = nested.iter().map(|name| Attribute::Symbol([name.clone()].into())).collect();
        encoder.attributes(Home::Native, &mut out, &nested)?;
    }
    Ok(out)
}

/// Writes an integer and its type, the inverse of [`integer`].
pub(super) fn encode_integer(
    encoder: &mut Encoder,
    home: Home,
    code: u64,
    value: i64,
    ty: ElementType,
) -> Result<Output, Error> {
    let mut out = Output::with_code(code);
    out.varint(encoder.ty(home, &Type::Scalar(ty))?);
    out.integer(ty.bits(), value as u64);
    Ok(out)
}

/// Writes a float and its type, the inverse of [`float`].
pub(super) fn encode_float(
    encoder: &mut Encoder,
    home: Home,
    code: u64,
    value: f64,
    ty: ElementType,
) -> Result<Output, Error> {
    let mut out = Output::with_code(code);
    out.varint(encoder.ty(home, &Type::Scalar(ty))?);
    out.integer(ty.bits(), float_bits(ty, value));
    Ok(out)
}

fn encode_dense_array(
    encoder: &mut Encoder,
    ty: ElementType,
    count: usize,
    raws: impl Iterator<Item = u64>,
) -> Result<Output, Error> {
    let mut out = Output::with_code(code::DENSE_ARRAY);
    out.varint(encoder.ty(Home::Native, &Type::Scalar(ty))?);
    out.count(count);
    let width = ty.byte_width().clamp(1, 8);
    let bytes: Vec<u8> = raws.flat_map(|raw| raw.to_le_bytes().into_iter().take(width)).collect();
    out.blob(&bytes);
    Ok(out)
}

/// Writes dense elements and their type, the inverse of [`elements`].
pub(super) fn encode_elements(
    encoder: &mut Encoder,
    home: Home,
    code: u64,
    literal: &Literal,
) -> Result<Output, Error> {
    let mut out = Output::with_code(code);
    out.varint(encoder.ty(home, &Type::Tensor(literal.storage_tensor_type()))?);
    out.blob(&literal.to_blob());
    Ok(out)
}

/// Reads a symbol reference of several names: `@outer::@inner`.
fn nested_symbol(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let mut path = vec![decoder.string_attribute()?];
    path.extend(decoder.list(|decoder| {
        decoder.typed("a symbol reference", |attribute| match attribute {
            Attribute::Symbol(path) => path.first().cloned(),
            _ => None,
        })
    })?);
    Ok(Attribute::Symbol(path.into()))
}

/// Reads the location of a range of a file, of which trailing positions may be absent.
fn file_range(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let file = decoder.location_name()?;
    let positions = decoder.list(position)?;
    let (line, column, end_line, end_column) = match *positions {
        [] => (0, 0, 0, 0),
        [line] => (line, 0, line, 0),
        [line, column] => (line, column, line, column),
        [line, column, end_column] => (line, column, line, end_column),
        [line, column, end_line, end_column] => (line, column, end_line, end_column),
        _ => return Err(decoder.cursor.error("expected at most 4 numbers in a file location")),
    };
    Ok(location(decoder, LocationKind::File { file, line, column, end_line, end_column }))
}

fn location(decoder: &Decoder<'_>, kind: LocationKind) -> Attribute {
    if decoder.is_incomplete() {
        return Attribute::Unit;
    }
    Attribute::Location(Location::new(kind))
}

fn position(decoder: &mut Decoder<'_>) -> Result<u32, Error> {
    let value = decoder.cursor.varint()?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// Reads an integer and its type, which `builtin` and `vhlo` encode in the same way.
pub(super) fn integer(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    match decoder.ty()? {
        Type::Scalar(ElementType::I1) => Ok(Attribute::Bool(decoder.cursor.integer(1)? & 1 == 1)),
        Type::Scalar(ty) if ty.is_integer() => {
            let raw = decoder.cursor.integer(ty.bits())?;
            Ok(Attribute::Integer { value: signed_value(ty, raw), ty })
        }
        _ if decoder.is_incomplete() => Ok(Attribute::Unit),
        other => Err(decoder.cursor.error(format!("expected an integer type, found {other}"))),
    }
}

/// Reads a float and its type, which `builtin` and `vhlo` encode in the same way.
pub(super) fn float(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    match decoder.ty()? {
        Type::Scalar(ty) if ty.is_float() => {
            let raw = decoder.cursor.integer(ty.bits())?;
            Ok(Attribute::Float { value: float_value(ty, raw), ty })
        }
        _ if decoder.is_incomplete() => Ok(Attribute::Unit),
        other => Err(decoder.cursor.error(format!("expected a float type, found {other}"))),
    }
}

fn dense_array(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let ty = decoder.ty()?;
    let count = decoder.cursor.varint()?;
    let size = decoder.cursor.varint()?;
    let range = decoder.cursor.take(size)?;
    let ty = match ty {
        Type::Scalar(ty) => ty,
        _ if decoder.is_incomplete() => return Ok(Attribute::Unit),
        other => return Err(decoder.cursor.error(format!("expected a numeric type, found {other}"))),
    };
    let width = ty.byte_width().max(1);
    if count.checked_mul(width as u64) != Some(size) {
        return Err(decoder.cursor.error(format!("expected {count} elements of {ty}, found {size} bytes")));
    }
    let chunks = decoder.cursor.bytes(range).chunks_exact(width);
    let raws = chunks.map(|chunk| chunk.iter().rev().fold(0u64, |raw, &byte| raw << 8 | u64::from(byte)));
    if ty.is_float() {
        return Ok(Attribute::FloatArray { ty, values: raws.map(|raw| float_value(ty, raw)).collect() });
    }
    if ty.is_complex() {
        return Err(decoder.cursor.error(format!("arrays of {ty} are not supported")));
    }
    Ok(Attribute::IntegerArray { ty, values: raws.map(|raw| signed_value(ty, raw)).collect() })
}

/// Reads the bytes of dense elements, which are shared with the input if possible.
pub(super) fn elements(decoder: &mut Decoder<'_>, ty: TensorType) -> Result<Attribute, Error> {
    let size = decoder.cursor.varint()?;
    let range = decoder.cursor.take(size)?;
    if decoder.is_incomplete() {
        return Ok(Attribute::Unit);
    }
    let offset = range.start;
    let blob = decoder.file.input.slice(range).unwrap_or_default();
    let literal =
        Literal::from_blob(ty, blob).map_err(|error| super::cursor::malformed(offset, error.to_string()))?;
    Ok(Attribute::Elements(literal))
}

fn resource(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let ty = decoder.tensor_type()?;
    let index = decoder.cursor.varint()?;
    if decoder.is_incomplete() {
        return Ok(Attribute::Unit);
    }
    let Some(resource) = usize::try_from(index).ok().and_then(|index| decoder.file.resources.get(index))
    else {
        return Err(decoder.cursor.error(format!("expected the index of a resource, found {index}")));
    };
    let Some(range) = resource.blob.clone() else {
        return Err(decoder
            .cursor
            .error(format!("the program has no contents of the resource '{}'", resource.key)));
    };
    let blob = decoder.file.input.slice(range).unwrap_or_default();
    let value = Literal::new(ty, LiteralData::Dense(blob))
        .map_err(|error| decoder.cursor.error(error.to_string()))?;
    Ok(Attribute::Resource { name: resource.key.clone(), value })
}

/// The codes of the float types.
const FLOATS: &[(u64, ElementType)] = &[
    (3, ElementType::BF16),
    (4, ElementType::F16),
    (5, ElementType::F32),
    (6, ElementType::F64),
    (21, ElementType::Tf32),
    (22, ElementType::F8E5M2),
    (23, ElementType::F8E4M3),
    (24, ElementType::F8E4M3FN),
    (25, ElementType::F8E5M2FNUZ),
    (26, ElementType::F8E4M3FNUZ),
    (27, ElementType::F8E4M3B11FNUZ),
    (28, ElementType::F8E3M4),
    (29, ElementType::F4E2M1FN),
    (30, ElementType::F6E2M3FN),
    (31, ElementType::F6E3M2FN),
    (32, ElementType::F8E8M0FNU),
];

/// Returns `true` if a buffer's layout is the default one: `affine_map<(d0, d1) -> (d0, d1)>`.
fn is_identity(layout: &Attribute) -> bool {
    let Attribute::Opaque(text) = layout else { return false };
    let sides = text.strip_prefix("affine_map<").and_then(|text| text.strip_suffix('>'));
    sides.and_then(|sides| sides.split_once(" -> ")).is_some_and(|(from, to)| from == to)
}

/// The spellings of the signedness of integer types, by number.
const SIGNS: [&str; 3] = ["", "s", "u"];

/// Decodes a type.
pub(super) fn ty(decoder: &mut Decoder<'_>) -> Result<Type, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        code::INTEGER_TYPE => {
            let packed = decoder.cursor.varint()?;
            let sign = SIGNS.get((packed & 3) as usize).copied().unwrap_or("?");
            let name = format!("{sign}i{}", packed >> 2);
            // Signless integers are signed in StableHLO, so `si8` and `i8` are represented by the same type.
            let plain = if packed >> 2 == 1 { &*name } else { name.trim_start_matches('s') };
            match ElementType::from_name(plain) {
                Some(ty) => Type::Scalar(ty),
                None => return Err(start.error(format!("integer type {name} is not supported"))),
            }
        }
        code::INDEX => Type::Scalar(ElementType::Index),
        code::FUNCTION => {
            Type::Function(FunctionType { inputs: decoder.types()?, results: decoder.types()? }.into())
        }
        code::COMPLEX => {
            let part = decoder.ty()?;
            tensor::complex(decoder, part)?
        }
        code::BUFFER => {
            let shape = decoder.cursor.signed_list()?;
            let element = decoder.ty()?;
            let layout = decoder.attribute()?;
            if !decoder.is_incomplete() && !is_identity(&layout) {
                return Err(start.error("buffers with a layout are not supported"));
            }
            match tensor::ranked(decoder, shape, element, None)? {
                Type::Tensor(buffer) => Type::Buffer(buffer),
                other => other,
            }
        }
        code::NONE => Type::None,
        code::TENSOR => {
            let shape = decoder.cursor.signed_list()?;
            let element = decoder.ty()?;
            tensor::ranked(decoder, shape, element, None)?
        }
        code::TENSOR_WITH_ENCODING => {
            let encoding = decoder.attribute()?;
            let shape = decoder.cursor.signed_list()?;
            let element = decoder.ty()?;
            tensor::ranked(decoder, shape, element, Some(encoding))?
        }
        code::TUPLE => Type::Tuple(decoder.types()?.into()),
        code::UNRANKED_TENSOR => Type::UnrankedTensor(Box::new(decoder.ty()?)),
        code => match FLOATS.iter().find(|(known, _)| *known == code) {
            Some((_, ty)) => Type::Scalar(*ty),
            None => {
                return Err(start.error(format!("type code {code} of dialect 'builtin' is not supported")));
            }
        },
    })
}

/// Encodes a type; `None` if the dialect does not have it.
pub(super) fn encode_type(encoder: &mut Encoder, ty: &Type) -> Result<Option<Output>, Error> {
    let home = Home::Native;
    let mut out;
    match ty {
        Type::Scalar(ElementType::Index) => out = Output::with_code(code::INDEX),
        Type::Scalar(ty) if ty.is_complex() => {
            out = Output::with_code(code::COMPLEX);
            let part = ty.complex_part().unwrap_or(ElementType::F32);
            out.varint(encoder.ty(home, &Type::Scalar(part))?);
        }
        Type::Scalar(ty) if ty.is_float() => match FLOATS.iter().find(|(_, known)| known == ty) {
            Some((code, _)) => out = Output::with_code(*code),
            None => return Ok(None),
        },
        Type::Scalar(ty) if ty.is_integer() || ty.kind() == ElementKind::Boolean => {
            let sign = ty.name().split_once('i').map_or("", |(sign, _)| sign);
            let sign = SIGNS.iter().position(|&known| known == sign).unwrap_or(0);
            out = Output::with_code(code::INTEGER_TYPE);
            out.varint(u64::from(ty.bits()) << 2 | sign as u64);
        }
        Type::Function(function) => {
            out = Output::with_code(code::FUNCTION);
            encoder.types(home, &mut out, &function.inputs)?;
            encoder.types(home, &mut out, &function.results)?;
        }
        Type::Tensor(tensor) => {
            let encoding = encoder.encoding(home, tensor)?;
            out = Output::with_code(encoding.map_or(code::TENSOR, |_| code::TENSOR_WITH_ENCODING));
            encoding.into_iter().for_each(|encoding| out.varint(encoding));
            tensor::encode_shape(encoder, home, &mut out, tensor)?;
        }
        Type::Buffer(buffer) => {
            out = Output::with_code(code::BUFFER);
            tensor::encode_shape(encoder, home, &mut out, buffer)?;
            let dims: Vec<String> = (0..buffer.rank()).map(|dim| format!("d{dim}")).collect();
            let dims = dims.join(", ");
            out.varint(encoder.text_attribute(NAME, &format!("affine_map<({dims}) -> ({dims})>")));
        }
        Type::UnrankedTensor(element) => {
            out = Output::with_code(code::UNRANKED_TENSOR);
            out.varint(encoder.ty(home, element)?);
        }
        Type::Tuple(types) => {
            out = Output::with_code(code::TUPLE);
            encoder.types(home, &mut out, types)?;
        }
        Type::None => out = Output::with_code(code::NONE),
        _ => return Ok(None),
    }
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_identity_is_the_layout_of_a_plain_buffer() {
        let is_plain = |text: &str| is_identity(&Attribute::Opaque(text.into()));
        assert!(is_plain("affine_map<(d0, d1) -> (d0, d1)>"));
        assert!(is_plain("affine_map<() -> ()>"));
        assert!(!is_plain("affine_map<(d0, d1) -> (d1, d0)>"));
        assert!(!is_plain("strided<[2]>"));
    }
}
