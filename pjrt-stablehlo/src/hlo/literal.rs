//! Constants.

use super::{proto, shape};
use crate::ir::{ElementType, Literal, LiteralData, TensorType};
use crate::{Error, ErrorKind};

/// Reads a constant array of type `ty`.
pub(super) fn read(literal: &proto::Literal, ty: &TensorType) -> Result<Literal, Error> {
    let missing = || Error::new(ErrorKind::Malformed, "a constant has no shape");
    let shape = literal.shape.as_ref().ok_or_else(missing)?;
    let fits = shape::element_type(shape.element_type)? == ty.element_type() && shape.dimensions == ty.dims();
    if !fits {
        let message = format!("expected a constant of {ty}, found the dimensions {:?}", shape.dimensions);
        return Err(Error::new(ErrorKind::Malformed, message));
    }
    let data = row_major(elements(literal, ty.element_type())?, shape, ty)?;
    Literal::new(ty.clone(), LiteralData::Dense(data.into()))
        .map_err(|error| Error::new(ErrorKind::Malformed, error.to_string()))
}

/// Returns the bytes of the elements, in the order of the message.
fn elements(literal: &proto::Literal, ty: ElementType) -> Result<Vec<u8>, Error> {
    Ok(match ty {
        ElementType::I1 => literal.preds.iter().map(|&value| u8::from(value)).collect(),
        ElementType::Si1 => literal.s1s.clone(),
        ElementType::I2 => literal.s2s.clone(),
        ElementType::I4 => literal.s4s.clone(),
        ElementType::I8 => literal.s8s.clone(),
        ElementType::I16 => literal.s16s.clone(),
        ElementType::I32 => literal.s32s.iter().flat_map(|value| value.to_le_bytes()).collect(),
        ElementType::I64 => literal.s64s.iter().flat_map(|value| value.to_le_bytes()).collect(),
        ElementType::Ui1 => literal.u1s.clone(),
        ElementType::Ui2 => literal.u2s.clone(),
        ElementType::Ui4 => literal.u4s.clone(),
        ElementType::Ui8 => literal.u8s.clone(),
        ElementType::Ui16 => literal.u16s.clone(),
        ElementType::Ui32 => literal.u32s.iter().flat_map(|value| value.to_le_bytes()).collect(),
        ElementType::Ui64 => literal.u64s.iter().flat_map(|value| value.to_le_bytes()).collect(),
        ElementType::F4E2M1FN => literal.f4e2m1fns.clone(),
        ElementType::F6E2M3FN => literal.f6e2m3fns.clone(),
        ElementType::F6E3M2FN => literal.f6e3m2fns.clone(),
        ElementType::F8E3M4 => literal.f8e3m4s.clone(),
        ElementType::F8E4M3 => literal.f8e4m3s.clone(),
        ElementType::F8E4M3FN => literal.f8e4m3fns.clone(),
        ElementType::F8E4M3FNUZ => literal.f8e4m3fnuzs.clone(),
        ElementType::F8E4M3B11FNUZ => literal.f8e4m3b11fnuzs.clone(),
        ElementType::F8E5M2 => literal.f8e5m2s.clone(),
        ElementType::F8E5M2FNUZ => literal.f8e5m2fnuzs.clone(),
        ElementType::F8E8M0FNU => literal.f8e8m0fnus.clone(),
        ElementType::F16 => literal.f16s.clone(),
        ElementType::BF16 => literal.bf16s.clone(),
        ElementType::F32 => literal.f32s.iter().flat_map(|value| value.to_le_bytes()).collect(),
        ElementType::F64 => literal.f64s.iter().flat_map(|value| value.to_le_bytes()).collect(),
        ElementType::ComplexF32 => literal.c64s.iter().flat_map(|value| value.to_le_bytes()).collect(),
        ElementType::ComplexF64 => literal.c128s.iter().flat_map(|value| value.to_le_bytes()).collect(),
        // XLA does not have these types.
        other @ (ElementType::Index | ElementType::Tf32 | ElementType::Quantized) => {
            let message = format!("constants with element type {other} are not supported");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    })
}

/// Returns the elements in row-major order, given in the order of the shape's layout.
fn row_major(data: Vec<u8>, shape: &proto::Shape, ty: &TensorType) -> Result<Vec<u8>, Error> {
    let order = shape::minor_to_major(shape);
    if order.iter().rev().copied().eq(0..order.len() as i64) {
        return Ok(data);
    }
    let width = ty.element_type().byte_width();
    let count = ty.num_elements().and_then(|count| usize::try_from(count).ok());
    let is_permutation = (0..order.len() as i64).all(|dimension| order.contains(&dimension));
    if !is_permutation || count.and_then(|count| count.checked_mul(width)) != Some(data.len()) {
        let message = format!("a constant's data or layout {order:?} does not fit its type {ty}");
        return Err(Error::new(ErrorKind::Malformed, message));
    }
    let sizes: Vec<usize> = ty.dims().iter().map(|&size| size as usize).collect();
    let mut strides = vec![0; sizes.len()];
    let mut stride = width;
    for &dimension in &order {
        strides[dimension as usize] = stride;
        stride *= sizes[dimension as usize];
    }
    let mut dense = Vec::with_capacity(data.len());
    let mut index = vec![0; sizes.len()];
    let mut place = 0;
    while dense.len() < data.len() {
        dense.extend_from_slice(&data[place..place + width]);
        for dimension in (0..sizes.len()).rev() {
            index[dimension] += 1;
            place += strides[dimension];
            if index[dimension] < sizes[dimension] {
                break;
            }
            place -= index[dimension] * strides[dimension];
            index[dimension] = 0;
        }
    }
    Ok(dense)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(code: i32, dimensions: &[i64], order: &[i64]) -> proto::Literal {
        proto::Literal {
            shape: Some(proto::Shape {
                element_type: code,
                dimensions: dimensions.into(),
                layout: Some(proto::Layout { minor_to_major: order.into() }),
                ..proto::Shape::default()
            }),
            ..proto::Literal::default()
        }
    }

    #[test]
    fn elements_are_put_in_row_major_order() {
        let mut column_major = literal(4, &[2, 3], &[0, 1]);
        column_major.s32s = vec![1, 4, 2, 5, 3, 6];
        let ty = TensorType::new(ElementType::I32, [2, 3]);
        let read = read(&column_major, &ty).unwrap();
        assert_eq!(read.to_i64s(6), Some(vec![1, 2, 3, 4, 5, 6]));
        column_major.s32s.pop();
        assert!(super::read(&column_major, &ty).is_err());
        column_major.s32s.push(6);
        column_major.shape.as_mut().unwrap().layout.as_mut().unwrap().minor_to_major = vec![0, 0];
        assert!(super::read(&column_major, &ty).is_err());
    }

    #[test]
    fn narrow_integers_take_a_byte_each() {
        let mut narrow = literal(21, &[3], &[0]);
        narrow.s4s = vec![1, 0x0e, 3];
        let ty = TensorType::new(ElementType::I4, [3]);
        assert_eq!(read(&narrow, &ty).unwrap().to_i64s(3), Some(vec![1, -2, 3]));
    }

    #[test]
    fn data_must_fit_the_type() {
        let mut short = literal(11, &[2], &[0]);
        short.f32s = vec![1.0];
        let error = read(&short, &TensorType::new(ElementType::F32, [2])).unwrap_err();
        assert_eq!(error.message, "tensor<2xf32> takes 8 bytes of data, found 4");
        assert!(read(&short, &TensorType::new(ElementType::F32, [1])).is_err());
        assert!(read(&short, &TensorType::new(ElementType::I32, [2])).is_err());
    }
}
