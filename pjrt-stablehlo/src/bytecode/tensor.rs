//! What the dialects' encodings of tensors, numbers and constants have in common.

use super::entries::Decoder;
use crate::ir::{
    Attribute, DYNAMIC, ElementKind, ElementType, Literal, LiteralData, LiteralError, TensorType, Type,
};
use crate::limits::MAX_RANK;
use crate::{Bytes, Error, ErrorKind};

/// A ranked tensor type. While entries are missing, some type.
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
        let message =
            format!("a tensor of {} dimensions has more than the supported {MAX_RANK}", shape.len());
        return Err(Error::new(ErrorKind::TooLarge, message).at_offset(decoder.cursor.position()));
    }
    if let Some(size) = shape.iter().find(|&&size| size < 0 && size != DYNAMIC) {
        return Err(decoder.cursor.error(format!("expected a dimension's size, found {size}")));
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
                let message =
                    "expected a bound or nothing for each dynamic dimension and nothing for the others";
                return Err(decoder.cursor.error(message));
            }
            ((*bounds).into(), None)
        }
        Some(other) => (Box::default(), Some(other.to_string().into())),
    };
    Ok(Type::Tensor(TensorType::from_parts(shape.into(), bounds, element_type, quantization, encoding)))
}

/// The complex type of a part's type.
pub(super) fn complex(decoder: &Decoder<'_>, part: Type) -> Result<Type, Error> {
    match part {
        Type::Scalar(ElementType::F32) => Ok(Type::Scalar(ElementType::ComplexF32)),
        Type::Scalar(ElementType::F64) => Ok(Type::Scalar(ElementType::ComplexF64)),
        _ if decoder.is_incomplete() => Ok(Type::None),
        other => Err(decoder.cursor.error(format!("expected f32 or f64 in a complex type, found {other}"))),
    }
}

/// The constant of a blob in MLIR's form: all elements, or one for all. Booleans are bits or bytes.
pub(crate) fn literal(ty: TensorType, blob: Bytes) -> Result<Literal, LiteralError> {
    let elements = ty.num_elements().ok_or_else(|| LiteralError::Unsized(ty.clone()))?;
    if ty.element_type() == ElementType::I1 {
        return boolean_literal(ty, blob, elements);
    }
    let data = if elements != 1 && blob.len() == ty.storage_type().byte_width() {
        LiteralData::Splat(blob)
    } else {
        LiteralData::Dense(blob)
    };
    Literal::new(ty, data)
}

fn boolean_literal(ty: TensorType, blob: Bytes, elements: u64) -> Result<Literal, LiteralError> {
    let len = blob.len() as u64;
    let data = match *blob {
        // Writers mark a splat of true with all ones, because one byte can be eight elements as well.
        [0xff] => LiteralData::Splat([1].as_slice().into()),
        // MLIR wrote bits until 2026.
        _ if len == elements.div_ceil(8) && len != elements => {
            let unused = (len * 8 - elements) as u32;
            if blob.last().is_some_and(|last| last.leading_zeros() < unused) {
                return Err(LiteralError::Bits(ty));
            }
            LiteralData::Bits(blob)
        }
        [byte] if elements == 1 => LiteralData::Dense([byte & 1].as_slice().into()),
        [byte] => LiteralData::Splat([u8::from(byte != 0)].as_slice().into()),
        _ if blob.iter().all(|&byte| byte <= 1) => LiteralData::Dense(blob),
        _ => LiteralData::Dense(blob.iter().map(|&byte| u8::from(byte != 0)).collect::<Vec<u8>>().into()),
    };
    Literal::new(ty, data)
}

/// The value of an integer from its bits.
pub(super) fn signed_value(ty: ElementType, raw: u64) -> i64 {
    let unused = 64 - ty.bits().clamp(1, 64);
    if ty.kind() == ElementKind::SignedInteger {
        (raw << unused) as i64 >> unused
    } else {
        (raw << unused >> unused) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_bits_bytes_or_splats() {
        let read = |len: i64, blob: &[u8]| {
            let literal = literal(TensorType::new(ElementType::I1, [len]), blob.into()).unwrap();
            literal.to_i64s(100).unwrap()
        };
        assert_eq!(read(3, &[0xff]), [1, 1, 1]);
        assert_eq!(read(3, &[0b101]), [1, 0, 1]);
        assert_eq!(read(10, &[0]), [0; 10]);
        assert_eq!(read(10, &[0b11, 0b10]), [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(read(1, &[1]), [1]);
        assert_eq!(read(2, &[1, 0]), [1, 0]);
        assert_eq!(read(0, &[]), [0; 0]);
    }
}
