//! The attributes and types of VHLO, which are converted to those of StableHLO.

use super::entries::Decoder;
use super::{builtin, quant, stablehlo, tensor};
use crate::Error;
use crate::ir::{
    Attribute, AxisRef, ComparisonDirection, ComparisonType, CustomCallApiVersion, ElementType, FftType,
    FunctionType, MeshAxis, MeshReference, Precision, ReplicaGroupMeshAxes, ResultAccuracyMode, RngAlgorithm,
    RngDistribution, SubAxis, TransposeKind, Type,
};

/// Decodes an attribute. The codes are those of StableHLO's `VhloBytecode.cpp`.
pub(super) fn attribute(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        1 => Attribute::Array(decoder.attributes()?.into()),
        2 => match decoder.cursor.varint()? {
            value @ (0 | 1) => Attribute::Bool(value == 1),
            value => return Err(start.error(format!("expected 0 or 1 as a boolean, found {value}"))),
        },
        3 => stablehlo::case(decoder, ComparisonDirection::from_code)?,
        4 => stablehlo::case(decoder, ComparisonType::from_code)?,
        5 => stablehlo::case(decoder, CustomCallApiVersion::from_code)?,
        6 => decoder.dictionary()?,
        7 => stablehlo::case(decoder, FftType::from_code)?,
        8 => builtin::float(decoder)?,
        9 => builtin::integer(decoder)?,
        10 => stablehlo::output_operand_alias(decoder)?,
        11 => stablehlo::case(decoder, Precision::from_code)?,
        12 => stablehlo::case(decoder, RngAlgorithm::from_code)?,
        13 => stablehlo::case(decoder, RngDistribution::from_code)?,
        14 => decoder.string()?,
        15 => {
            let ty = decoder.tensor_type()?;
            builtin::elements(decoder, ty)?
        }
        16 => stablehlo::case(decoder, TransposeKind::from_code)?,
        17 => Attribute::Type(decoder.ty()?),
        18 => Attribute::Bounds(decoder.cursor.signed_list()?.into()),
        19 => stablehlo::case(decoder, ResultAccuracyMode::from_code)?,
        20 => stablehlo::result_accuracy(decoder)?,
        21 => {
            Attribute::SubAxis(SubAxis { pre_size: decoder.cursor.signed()?, size: decoder.cursor.signed()? })
        }
        22 => {
            let name = decoder.string_attribute()?;
            let sub_axis = match decoder.cursor.varint()? {
                0 => None,
                _ => stablehlo::sub_axis(decoder)?,
            };
            Attribute::AxisRef(AxisRef { name, sub_axis }.into())
        }
        23 => {
            let mesh = stablehlo::mesh_reference(decoder)?;
            let axes: Vec<AxisRef> = decoder.typed("an array of mesh axes", |attribute| {
                attribute.as_array()?.iter().map(stablehlo::as_axis_ref).collect()
            })?;
            let mesh = mesh.unwrap_or(MeshReference::Symbol("".into()));
            Attribute::ReplicaGroupMeshAxes(ReplicaGroupMeshAxes { mesh, axes: axes.into() }.into())
        }
        24 => {
            let name = decoder.string_attribute()?;
            Attribute::MeshAxis(MeshAxis { name, size: decoder.cursor.signed()? }.into())
        }
        25 => {
            let axes = stablehlo::mesh_axes(decoder)?;
            let device_ids = decoder.optional_attribute()?;
            stablehlo::mesh(decoder, axes, device_ids)?
        }
        code => return Err(start.error(format!("attribute code {code} of dialect 'vhlo' is not supported"))),
    })
}

/// The codes of the types without parameters.
const SCALARS: &[(u64, ElementType)] = &[
    (0, ElementType::I1),
    (2, ElementType::BF16),
    (3, ElementType::F16),
    (4, ElementType::F32),
    (5, ElementType::F64),
    (6, ElementType::F8E4M3FN),
    (7, ElementType::F8E5M2),
    (9, ElementType::Index),
    (10, ElementType::I4),
    (11, ElementType::I8),
    (12, ElementType::I16),
    (13, ElementType::I32),
    (14, ElementType::I64),
    (15, ElementType::Ui4),
    (16, ElementType::Ui8),
    (17, ElementType::Ui16),
    (18, ElementType::Ui32),
    (19, ElementType::Ui64),
    (27, ElementType::F8E4M3FNUZ),
    (28, ElementType::F8E5M2FNUZ),
    (29, ElementType::F8E4M3B11FNUZ),
    (31, ElementType::I2),
    (32, ElementType::Ui2),
    (34, ElementType::Tf32),
    (35, ElementType::F8E4M3),
    (36, ElementType::F8E3M4),
    (37, ElementType::F4E2M1FN),
    (38, ElementType::F6E2M3FN),
    (39, ElementType::F6E3M2FN),
    (40, ElementType::F8E8M0FNU),
];

/// Decodes a type. The codes are those of StableHLO's `VhloBytecode.cpp`.
pub(super) fn ty(decoder: &mut Decoder<'_>) -> Result<Type, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        1 => {
            let part = decoder.ty()?;
            tensor::complex(decoder, part)?
        }
        8 => Type::Function(FunctionType { inputs: decoder.types()?, results: decoder.types()? }.into()),
        code @ (20 | 21) => {
            let encoding = if code == 21 { Some(decoder.attribute()?) } else { None };
            let shape = decoder.cursor.signed_list()?;
            let element = decoder.ty()?;
            tensor::ranked(decoder, shape, element, encoding)?
        }
        22 => Type::Token,
        23 => Type::Tuple(decoder.types()?.into()),
        24 => quant::uniform(decoder)?,
        25 => Type::UnrankedTensor(Box::new(decoder.ty()?)),
        26 => Type::Witness,
        30 => quant::uniform_per_axis(decoder)?,
        33 => Type::None,
        41 => {
            let shape = decoder.cursor.signed_list()?;
            let element = decoder.ty()?;
            match tensor::ranked(decoder, shape, element, None)? {
                Type::Tensor(buffer) => Type::Buffer(buffer),
                other => other,
            }
        }
        42 => Type::Future(decoder.types()?.into()),
        code => match SCALARS.iter().find(|(known, _)| *known == code) {
            Some((_, ty)) => Type::Scalar(*ty),
            None => return Err(start.error(format!("type code {code} of dialect 'vhlo' is not supported"))),
        },
    })
}
