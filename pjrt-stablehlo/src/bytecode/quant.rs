//! The types of MLIR's `quant` dialect, and the encodings that they share with VHLO.

use super::entries::Decoder;
use crate::ir::{
    Attribute, ElementKind, ElementType, Literal, LiteralData, QuantizationBlocks, QuantizedType, Type,
};
use crate::limits::{MAX_ATTRIBUTE_ELEMENTS, MAX_EQUAL_BLOCKS};
use crate::{Error, ErrorKind};

/// Decodes a type. The codes are those of MLIR's `QuantDialectBytecode.td`.
pub(super) fn ty(decoder: &mut Decoder<'_>) -> Result<Type, Error> {
    let start = decoder.cursor;
    match decoder.cursor.varint()? {
        4 => uniform(decoder),
        5 => uniform_per_axis(decoder),
        6 => uniform_blocks(decoder),
        code => Err(start.error(format!("type code {code} of dialect 'quant' is not supported"))),
    }
}

/// Reads a type with a single scale.
pub(super) fn uniform(decoder: &mut Decoder<'_>) -> Result<Type, Error> {
    let head = Head::read(decoder)?;
    let scale = double(decoder)?;
    let zero_point = decoder.cursor.signed()?;
    let range = Range::read(decoder)?;
    finish(decoder, head, range, vec![scale], vec![zero_point], None, None)
}

/// Reads a type with a scale for each index of a dimension.
pub(super) fn uniform_per_axis(decoder: &mut Decoder<'_>) -> Result<Type, Error> {
    let head = Head::read(decoder)?;
    let axis = decoder.cursor.varint()?;
    let range = Range::read(decoder)?;
    let scales = decoder.list(double)?;
    let zero_points = decoder.cursor.signed_list()?;
    let Ok(axis) = u32::try_from(axis) else {
        return Err(decoder.cursor.error(format!("expected a dimension, found {axis}")));
    };
    finish(decoder, head, range, scales, zero_points, Some(axis), None)
}

/// Reads a type with a scale for each block.
fn uniform_blocks(decoder: &mut Decoder<'_>) -> Result<Type, Error> {
    let head = Head::read(decoder)?;
    let range = Range::read(decoder)?;
    let dimensions = decoder.cursor.signed_list()?;
    let sizes = decoder.cursor.signed_list()?;
    let scales = decoder.attribute()?;
    let zero_points = decoder.attribute()?;
    if decoder.is_incomplete() {
        return Ok(Type::None);
    }
    let (Attribute::Elements(scales), Attribute::Elements(zero_points)) = (scales, zero_points) else {
        return Err(decoder.cursor.error("expected dense elements as scales and zero points"));
    };
    for literal in [&scales, &zero_points] {
        if matches!(literal.data(), LiteralData::Splat(_)) && literal.num_elements() > MAX_EQUAL_BLOCKS {
            let message = format!(
                "a quantized type has more than {MAX_EQUAL_BLOCKS} blocks with a common scale or zero point"
            );
            return Err(Error::new(ErrorKind::TooLarge, message).at_offset(decoder.cursor.position()));
        }
    }
    if dimensions.len() != sizes.len() || scales.ty().dims() != zero_points.ty().dims() {
        return Err(decoder
            .cursor
            .error("expected a size for each dimension and a zero point for each scale"));
    }
    let sizes =
        dimensions.iter().zip(sizes).map(|(&dimension, size)| Some((u32::try_from(dimension).ok()?, size)));
    let sizes = sizes.collect::<Option<_>>();
    let (Some(sizes), Some(scale_values), Some(zero_points)) =
        (sizes, doubles(&scales), zero_points.to_i64s(MAX_ATTRIBUTE_ELEMENTS))
    else {
        return Err(decoder
            .cursor
            .error("expected dimensions, floats as scales and integers as zero points"));
    };
    let blocks = QuantizationBlocks { sizes, grid: scales.ty().dims().into() };
    finish(decoder, head, range, scale_values, zero_points, None, Some(blocks))
}

/// Returns the elements of a literal of floats.
fn doubles(literal: &Literal) -> Option<Vec<f64>> {
    let ty = literal.ty().element_type();
    if !ty.is_float() {
        return None;
    }
    let bytes = literal.dense_bytes().ok()?;
    let raw = |element: &[u8]| element.iter().rev().fold(0u64, |raw, &byte| raw << 8 | u64::from(byte));
    Some(
        bytes.chunks_exact(ty.byte_width()).map(|element| crate::ir::float_value(ty, raw(element))).collect(),
    )
}

fn double(decoder: &mut Decoder<'_>) -> Result<f64, Error> {
    decoder.cursor.integer(64).map(f64::from_bits)
}

/// The common first part of quantized types.
struct Head {
    signed: bool,
    storage: Type,
    expressed: Type,
}

impl Head {
    fn read(decoder: &mut Decoder<'_>) -> Result<Head, Error> {
        const SIGNED: u64 = 1;
        let flags = decoder.cursor.varint()?;
        Ok(Head { signed: flags & SIGNED != 0, storage: decoder.ty()?, expressed: decoder.ty()? })
    }
}

/// The minimum and maximum stored value.
struct Range {
    min: i64,
    max: i64,
}

impl Range {
    fn read(decoder: &mut Decoder<'_>) -> Result<Range, Error> {
        Ok(Range { min: decoder.cursor.signed()?, max: decoder.cursor.signed()? })
    }
}

fn finish(
    decoder: &Decoder<'_>,
    head: Head,
    range: Range,
    scales: Vec<f64>,
    zero_points: Vec<i64>,
    axis: Option<u32>,
    blocks: Option<QuantizationBlocks>,
) -> Result<Type, Error> {
    if decoder.is_incomplete() {
        return Ok(Type::None);
    }
    let (storage_type, expressed_type) = match (head.storage, head.expressed) {
        (Type::Scalar(storage), Type::Scalar(expressed)) if storage.is_integer() && expressed.is_float() => {
            (storage, expressed)
        }
        (storage, expressed) => {
            let message = format!(
                "expected an integer storage type and a float expressed type, found {storage} and {expressed}"
            );
            return Err(decoder.cursor.error(message));
        }
    };
    if scales.len() != zero_points.len() {
        let message = format!(
            "expected equal numbers of zero points and scales, found {} and {}",
            zero_points.len(),
            scales.len()
        );
        return Err(decoder.cursor.error(message));
    }
    let is_marked_unsigned = !head.signed && storage_type.kind() == ElementKind::SignedInteger;
    let unsigned = is_marked_unsigned.then(|| ElementType::from_name(&format!("u{storage_type}"))).flatten();
    let quantized = QuantizedType {
        storage_type: unsigned.unwrap_or(storage_type),
        expressed_type,
        storage_min: range.min,
        storage_max: range.max,
        scales: scales.into(),
        zero_points: zero_points.into(),
        axis,
        blocks,
    };
    Ok(Type::Quantized(quantized.into()))
}
