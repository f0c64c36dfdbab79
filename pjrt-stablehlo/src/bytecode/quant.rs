//! The types of MLIR's `quant` dialect, and the encodings that they share with VHLO.

use super::encoder::{Encoder, Home};
use super::entries::Decoder;
use super::output::Output;
use crate::ir::{
    Attribute, ElementKind, ElementType, Literal, LiteralData, QuantizationBlocks, QuantizedType, TensorType,
    Type, float_bits,
};
use crate::limits::{MAX_ATTRIBUTE_ELEMENTS, MAX_EQUAL_BLOCKS};
use crate::{Error, ErrorKind};

/// The name of the dialect.
pub(super) const NAME: &str = "quant";

/// The codes of the types, from MLIR's `QuantDialectBytecode.td`.
mod code {
    pub(super) const UNIFORM: u64 = 4;
    pub(super) const UNIFORM_PER_AXIS: u64 = 5;
    pub(super) const UNIFORM_BLOCKS: u64 = 6;
}

/// Decodes a type.
pub(super) fn ty(decoder: &mut Decoder<'_>) -> Result<Type, Error> {
    let start = decoder.cursor;
    match decoder.cursor.varint()? {
        code::UNIFORM => uniform(decoder),
        code::UNIFORM_PER_AXIS => uniform_per_axis(decoder),
        code::UNIFORM_BLOCKS => uniform_blocks(decoder),
        code => Err(start.error(format!("type code {code} of dialect 'quant' is not supported"))),
    }
}

/// Encodes a type; `None` if the dialect does not have it.
pub(super) fn encode_type(encoder: &mut Encoder, ty: &Type) -> Result<Option<Output>, Error> {
    let Type::Quantized(ty) = ty else { return Ok(None) };
    let home = Home::Native;
    Ok(Some(match (&ty.blocks, ty.axis) {
        (Some(blocks), _) => encode_blocks(encoder, ty, blocks)?,
        (None, Some(axis)) => encode_per_axis(encoder, home, code::UNIFORM_PER_AXIS, ty, axis)?,
        (None, None) => encode_uniform(encoder, home, code::UNIFORM, ty)?,
    }))
}

/// Returns the storage type as MLIR has it: a signless integer.
fn signless(ty: &QuantizedType) -> ElementType {
    ElementType::from_name(ty.storage_type.name().trim_start_matches('u')).unwrap_or(ty.storage_type)
}

/// Writes the part that [`Head`] reads.
fn encode_head(encoder: &mut Encoder, home: Home, code: u64, ty: &QuantizedType) -> Result<Output, Error> {
    let mut out = Output::with_code(code);
    out.varint(if ty.storage_type.kind() == ElementKind::SignedInteger { SIGNED } else { 0 });
    out.varint(encoder.ty(home, &Type::Scalar(signless(ty)))?);
    out.varint(encoder.ty(home, &Type::Scalar(ty.expressed_type))?);
    Ok(out)
}

/// Writes the part that [`Range`] reads.
fn encode_range(out: &mut Output, ty: &QuantizedType) {
    out.signed(ty.storage_min);
    out.signed(ty.storage_max);
}

/// Writes a type with a single scale, the inverse of [`uniform`].
pub(super) fn encode_uniform(
    encoder: &mut Encoder,
    home: Home,
    code: u64,
    ty: &QuantizedType,
) -> Result<Output, Error> {
    let mut out = encode_head(encoder, home, code, ty)?;
    out.double(ty.scales.first().copied().unwrap_or_default());
    out.signed(ty.zero_points.first().copied().unwrap_or_default());
    encode_range(&mut out, ty);
    Ok(out)
}

/// Writes a type with a scale for each index of a dimension, the inverse of [`uniform_per_axis`].
pub(super) fn encode_per_axis(
    encoder: &mut Encoder,
    home: Home,
    code: u64,
    ty: &QuantizedType,
    axis: u32,
) -> Result<Output, Error> {
    let mut out = encode_head(encoder, home, code, ty)?;
    out.varint(axis.into());
    encode_range(&mut out, ty);
    out.count(ty.scales.len());
    ty.scales.iter().for_each(|&scale| out.double(scale));
    out.signed_list(&ty.zero_points);
    Ok(out)
}

/// Writes a type with a scale for each block, the inverse of [`uniform_blocks`].
fn encode_blocks(
    encoder: &mut Encoder,
    ty: &QuantizedType,
    blocks: &QuantizationBlocks,
) -> Result<Output, Error> {
    let mut out = encode_head(encoder, Home::Native, code::UNIFORM_BLOCKS, ty)?;
    encode_range(&mut out, ty);
    let dimensions: Vec<i64> = blocks.sizes.iter().map(|&(dimension, _)| dimension.into()).collect();
    let sizes: Vec<i64> = blocks.sizes.iter().map(|&(_, size)| size).collect();
    out.signed_list(&dimensions);
    out.signed_list(&sizes);
    let scales = ty.scales.iter().map(|&scale| float_bits(ty.expressed_type, scale));
    let zero_points = ty.zero_points.iter().map(|&zero_point| zero_point as u64);
    let scales = grid(blocks, ty.expressed_type, scales)?;
    let zero_points = grid(blocks, signless(ty), zero_points)?;
    out.varint(encoder.attribute(Home::Native, &scales)?);
    out.varint(encoder.attribute(Home::Native, &zero_points)?);
    Ok(out)
}

/// Returns one number for each block as dense elements.
fn grid(
    blocks: &QuantizationBlocks,
    ty: ElementType,
    raws: impl Iterator<Item = u64>,
) -> Result<Attribute, Error> {
    let bytes: Vec<u8> = raws.flat_map(|raw| raw.to_le_bytes().into_iter().take(ty.byte_width())).collect();
    Literal::new(TensorType::new(ty, &*blocks.grid), LiteralData::Dense(bytes.into()))
        .map(Attribute::Elements)
        .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
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

/// The flag of types whose stored integers are signed.
const SIGNED: u64 = 1;

/// The common first part of quantized types.
struct Head {
    signed: bool,
    storage: Type,
    expressed: Type,
}

impl Head {
    fn read(decoder: &mut Decoder<'_>) -> Result<Head, Error> {
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
