//! Attributes and types of MLIR's `builtin` dialect.

use super::entries::Decoder;
use super::tensor::{self, signed_value};
use crate::Error;
use crate::ir::float_value;
use crate::ir::{
    Attribute, ElementType, FunctionType, Literal, LiteralData, Location, LocationKind, TensorType, Type,
};

/// Decodes an attribute. The codes are those of MLIR's `BuiltinDialectBytecode.td`.
pub(super) fn attribute(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        0 => Attribute::Array(decoder.attributes()?.into()),
        1 => decoder.dictionary()?,
        2 => decoder.string()?,
        3 => {
            let text = decoder.string()?;
            decoder.ty()?;
            text
        }
        4 => Attribute::Symbol([decoder.string_attribute()?].into()),
        5 => nested_symbol(decoder)?,
        6 => Attribute::Type(decoder.ty()?),
        7 => Attribute::Unit,
        8 => integer(decoder)?,
        9 => float(decoder)?,
        10 => {
            let (callee, caller) = (decoder.location()?, decoder.location()?);
            location(decoder, LocationKind::CallSite { callee, caller })
        }
        11 => {
            let file = decoder.location_name()?;
            let line = position(decoder)?;
            let column = position(decoder)?;
            location(decoder, LocationKind::File { file, line, column, end_line: line, end_column: column })
        }
        code @ (12 | 13) => {
            let parts = decoder.list(Decoder::location)?;
            let metadata = if code == 13 { Some(decoder.attribute()?) } else { None };
            location(decoder, LocationKind::Fused { parts, metadata })
        }
        14 => {
            let (name, child) = (decoder.location_name()?, decoder.location()?);
            location(decoder, LocationKind::Name { name, child })
        }
        15 => Attribute::Location(Location::UNKNOWN),
        16 => resource(decoder)?,
        17 => dense_array(decoder)?,
        18 => {
            let ty = decoder.tensor_type()?;
            elements(decoder, ty)?
        }
        22 => file_range(decoder)?,
        code => {
            return Err(start.error(format!("attribute code {code} of dialect 'builtin' is not supported")));
        }
    })
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

/// Decodes a type. The codes are those of MLIR's `BuiltinDialectBytecode.td`.
pub(super) fn ty(decoder: &mut Decoder<'_>) -> Result<Type, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        0 => {
            let packed = decoder.cursor.varint()?;
            let name = format!("{}i{}", ["", "s", "u", "?"][(packed & 3) as usize], packed >> 2);
            // Signless integers are signed in StableHLO, so `si8` and `i8` are represented by the same type.
            let plain = if packed >> 2 == 1 { &*name } else { name.trim_start_matches('s') };
            match ElementType::from_name(plain) {
                Some(ty) => Type::Scalar(ty),
                None => return Err(start.error(format!("integer type {name} is not supported"))),
            }
        }
        1 => Type::Scalar(ElementType::Index),
        2 => Type::Function(FunctionType { inputs: decoder.types()?, results: decoder.types()? }.into()),
        9 => {
            let part = decoder.ty()?;
            tensor::complex(decoder, part)?
        }
        10 => {
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
        12 => Type::None,
        13 => {
            let shape = decoder.cursor.signed_list()?;
            let element = decoder.ty()?;
            tensor::ranked(decoder, shape, element, None)?
        }
        14 => {
            let encoding = decoder.attribute()?;
            let shape = decoder.cursor.signed_list()?;
            let element = decoder.ty()?;
            tensor::ranked(decoder, shape, element, Some(encoding))?
        }
        15 => Type::Tuple(decoder.types()?.into()),
        18 => Type::UnrankedTensor(Box::new(decoder.ty()?)),
        code => match FLOATS.iter().find(|(known, _)| *known == code) {
            Some((_, ty)) => Type::Scalar(*ty),
            None => {
                return Err(start.error(format!("type code {code} of dialect 'builtin' is not supported")));
            }
        },
    })
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
