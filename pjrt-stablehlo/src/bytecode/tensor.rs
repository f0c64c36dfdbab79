//! The common parts of the dialects' encodings of tensors, numbers and constants.

use super::encoder::{Encoder, Home};
use super::entries::Decoder;
use super::output::Output;
use crate::ir::{Attribute, DYNAMIC, ElementKind, ElementType, TensorType, Type};
use crate::limits::MAX_RANK;
use crate::{Error, ErrorKind};

/// Creates a ranked tensor type. While entries are missing, the type is arbitrary.
pub(super) fn ranked(
    decoder: &Decoder<'_>,
    shape: Vec<i64>,
    element: Type,
    encoding: Option<Attribute>,
) -> Result<Type, Error> {
    if decoder.is_incomplete() {
        return Ok(Type::None);
    }
    if shape.len() > MAX_RANK {
        let message = format!("a tensor has {} dimensions, expected at most {MAX_RANK}", shape.len());
        return Err(Error::new(ErrorKind::TooLarge, message).at_offset(decoder.cursor.position()));
    }
    if let Some(size) = shape.iter().find(|&&size| size < 0 && size != DYNAMIC) {
        return Err(decoder.cursor.error(format!("expected the size of a dimension, found {size}")));
    }
    let (element_type, quantization) = match element {
        Type::Scalar(element_type) if element_type != ElementType::Tf32 => (element_type, None),
        Type::Quantized(quantization) => (ElementType::Quantized, Some(quantization)),
        other => return Err(decoder.cursor.error(format!("expected an element type, found {other}"))),
    };
    let (bounds, encoding) = match encoding {
        None => (Box::default(), None),
        Some(Attribute::Bounds(bounds)) => {
            let fits = bounds
                .iter()
                .zip(&shape)
                .all(|(&bound, &size)| bound == DYNAMIC || (size == DYNAMIC && bound >= 0));
            if bounds.len() != shape.len() || !fits {
                let message = "expected bounds only for dynamic dimensions";
                return Err(decoder.cursor.error(message));
            }
            ((*bounds).into(), None)
        }
        Some(other) => (Box::default(), Some(other.to_string().into())),
    };
    Ok(Type::Tensor(TensorType::from_parts(shape.into(), bounds, element_type, quantization, encoding)))
}

/// Writes the sizes and the element type of a tensor.
pub(super) fn encode_shape(
    encoder: &mut Encoder,
    home: Home,
    out: &mut Output,
    tensor: &TensorType,
) -> Result<(), Error> {
    out.signed_list(tensor.dims());
    let element = match tensor.quantization() {
        Some(quantization) => Type::Quantized(quantization.clone()),
        None => Type::Scalar(tensor.element_type()),
    };
    out.varint(encoder.ty(home, &element)?);
    Ok(())
}

/// Returns the complex type with parts of this type.
pub(super) fn complex(decoder: &Decoder<'_>, part: Type) -> Result<Type, Error> {
    match part {
        Type::Scalar(ElementType::F32) => Ok(Type::Scalar(ElementType::ComplexF32)),
        Type::Scalar(ElementType::F64) => Ok(Type::Scalar(ElementType::ComplexF64)),
        _ if decoder.is_incomplete() => Ok(Type::None),
        other => Err(decoder.cursor.error(format!("expected f32 or f64 in a complex type, found {other}"))),
    }
}

/// Returns the value of an integer with these bits.
pub(super) fn signed_value(ty: ElementType, raw: u64) -> i64 {
    let unused = 64 - ty.bits().clamp(1, 64);
    if ty.kind() == ElementKind::SignedInteger {
        (raw << unused) as i64 >> unused
    } else {
        (raw << unused >> unused) as i64
    }
}
