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

/// The value of a float from its bits. Exact.
pub(crate) fn float_value(ty: ElementType, raw: u64) -> f64 {
    match ty {
        ElementType::F64 => return f64::from_bits(raw),
        ElementType::F32 => return f64::from(f32::from_bits(raw as u32)),
        _ => {}
    }
    let (exponent_bits, mantissa_bits) = (ty.exponent_bits(), ty.mantissa_bits());
    let mantissa = raw & ((1 << mantissa_bits) - 1);
    let exponent = raw >> mantissa_bits & ((1 << exponent_bits) - 1);
    if ty == ElementType::F8E8M0FNU {
        return if exponent == 0xff { f64::NAN } else { 2f64.powi(exponent as i32 - 127) };
    }
    let sign = raw >> (exponent_bits + mantissa_bits) & 1;
    let magnitude_bits = raw & ((1 << (exponent_bits + mantissa_bits)) - 1);
    let all_ones = (1 << exponent_bits) - 1;
    use ElementType as T;
    let (bias, special) = match ty {
        T::F8E4M3FNUZ => (8, sign == 1 && magnitude_bits == 0),
        T::F8E4M3B11FNUZ => (11, sign == 1 && magnitude_bits == 0),
        T::F8E5M2FNUZ => (16, sign == 1 && magnitude_bits == 0),
        T::F8E4M3FN => (7, exponent == all_ones && mantissa == 7),
        T::F4E2M1FN | T::F6E2M3FN | T::F6E3M2FN => ((1 << (exponent_bits - 1)) - 1, false),
        _ => ((1 << (exponent_bits - 1)) - 1, exponent == all_ones),
    };
    let has_infinity = matches!(ty, T::F8E3M4 | T::F8E4M3 | T::F8E5M2 | T::F16 | T::BF16 | T::Tf32);
    let magnitude = if special {
        if has_infinity && mantissa == 0 { f64::INFINITY } else { f64::NAN }
    } else if exponent == 0 {
        mantissa as f64 * 2f64.powi(1 - bias - mantissa_bits as i32)
    } else {
        (mantissa | 1 << mantissa_bits) as f64 * 2f64.powi(exponent as i32 - bias - mantissa_bits as i32)
    };
    if sign == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_every_kind() {
        for (ty, raw, value) in [
            (ElementType::F16, 0x3c00, 1.0),
            (ElementType::F16, 0x0001, 5.960464477539063e-8),
            (ElementType::F16, 0xfc00, f64::NEG_INFINITY),
            (ElementType::BF16, 0x3fc0, 1.5),
            (ElementType::F8E4M3FN, 0x7e, 448.0),
            (ElementType::F8E5M2, 0x7b, 57344.0),
            (ElementType::F8E4M3FNUZ, 0x7f, 240.0),
            (ElementType::F8E8M0FNU, 0x80, 2.0),
            (ElementType::F4E2M1FN, 0x7, 6.0),
            (ElementType::F6E3M2FN, 0x1f, 28.0),
        ] {
            assert_eq!(float_value(ty, raw), value, "{ty} {raw:#x}");
        }
        assert!(float_value(ElementType::F8E4M3FNUZ, 0x80).is_nan());
        assert!(float_value(ElementType::F8E4M3FN, 0x7f).is_nan());
    }

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
