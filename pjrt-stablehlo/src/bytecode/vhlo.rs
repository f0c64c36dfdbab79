//! The attributes and types of VHLO, which are converted to those of StableHLO.

use super::encoder::{Encoder, Home};
use super::entries::Decoder;
use super::output::Output;
use super::{builtin, quant, stablehlo, tensor};
use crate::Error;
use crate::ir::{
    Attribute, AxisRef, ComparisonDirection, ComparisonType, CustomCallApiVersion, ElementType, FftType,
    FunctionType, MeshAxis, MeshReference, Precision, QuantizedType, ReplicaGroupMeshAxes,
    ResultAccuracyMode, RngAlgorithm, RngDistribution, Str, SubAxis, TransposeKind, Type,
};
use crate::versions::Version;

/// The name of the dialect.
pub(super) const NAME: &str = "vhlo";

/// The codes of attributes and types, from StableHLO's `VhloBytecode.cpp`.
mod code {
    pub(super) const ARRAY: u64 = 1;
    pub(super) const BOOLEAN: u64 = 2;
    pub(super) const DICTIONARY: u64 = 6;
    pub(super) const FLOAT: u64 = 8;
    pub(super) const INTEGER: u64 = 9;
    pub(super) const OUTPUT_OPERAND_ALIAS: u64 = 10;
    pub(super) const STRING: u64 = 14;
    pub(super) const TENSOR: u64 = 15;
    pub(super) const TYPE: u64 = 17;
    pub(super) const BOUNDS: u64 = 18;
    pub(super) const RESULT_ACCURACY: u64 = 20;
    pub(super) const SUB_AXIS: u64 = 21;
    pub(super) const AXIS_REF: u64 = 22;
    pub(super) const REPLICA_GROUP_MESH_AXES: u64 = 23;
    pub(super) const MESH_AXIS: u64 = 24;
    pub(super) const MESH: u64 = 25;
    /// The codes of the types.
    pub(super) const COMPLEX: u64 = 1;
    pub(super) const FUNCTION: u64 = 8;
    pub(super) const RANKED_TENSOR: u64 = 20;
    pub(super) const TENSOR_WITH_ENCODING: u64 = 21;
    pub(super) const TOKEN: u64 = 22;
    pub(super) const TUPLE: u64 = 23;
    pub(super) const QUANTIZED: u64 = 24;
    pub(super) const UNRANKED_TENSOR: u64 = 25;
    pub(super) const WITNESS: u64 = 26;
    pub(super) const QUANTIZED_PER_AXIS: u64 = 30;
    pub(super) const NONE: u64 = 33;
    pub(super) const BUFFER: u64 = 41;
    pub(super) const FUTURE: u64 = 42;
}

/// The codes of the enumerations, and the versions of VHLO that introduced them.
const CASES: &[(u64, &str, (u32, u32))] = &[
    (3, ComparisonDirection::MLIR_NAME, FIRST),
    (4, ComparisonType::MLIR_NAME, FIRST),
    (5, CustomCallApiVersion::MLIR_NAME, FIRST),
    (7, FftType::MLIR_NAME, FIRST),
    (11, Precision::MLIR_NAME, FIRST),
    (12, RngAlgorithm::MLIR_NAME, FIRST),
    (13, RngDistribution::MLIR_NAME, FIRST),
    (16, TransposeKind::MLIR_NAME, FIRST),
    (19, ResultAccuracyMode::MLIR_NAME, RESULT_ACCURACIES),
];

/// The first version of VHLO.
const FIRST: (u32, u32) = (0, 9);
/// The version that introduced result accuracies.
const RESULT_ACCURACIES: (u32, u32) = (1, 9);
/// The version that introduced quantization parameters for each index of a dimension.
const QUANTIZED_AXES: (u32, u32) = (0, 18);
/// The version that introduced meshes and replica groups along their axes.
const MESHES: (u32, u32) = (1, 16);

fn version((major, minor): (u32, u32)) -> Version {
    Version::new(major, minor, 0)
}

/// Decodes an attribute.
pub(super) fn attribute(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        code::ARRAY => Attribute::Array(decoder.attributes()?.into()),
        code::BOOLEAN => match decoder.cursor.varint()? {
            value @ (0 | 1) => Attribute::Bool(value == 1),
            value => return Err(start.error(format!("expected 0 or 1 as a boolean, found {value}"))),
        },
        code::DICTIONARY => decoder.dictionary()?,
        code::FLOAT => builtin::float(decoder)?,
        code::INTEGER => builtin::integer(decoder)?,
        code::OUTPUT_OPERAND_ALIAS => stablehlo::output_operand_alias(decoder)?,
        code::STRING => decoder.string()?,
        code::TENSOR => {
            let ty = decoder.tensor_type()?;
            builtin::elements(decoder, ty)?
        }
        code::TYPE => Attribute::Type(decoder.ty()?),
        code::BOUNDS => Attribute::Bounds(decoder.cursor.signed_list()?.into()),
        code::RESULT_ACCURACY => stablehlo::result_accuracy(decoder)?,
        code::SUB_AXIS => {
            Attribute::SubAxis(SubAxis { pre_size: decoder.cursor.signed()?, size: decoder.cursor.signed()? })
        }
        code::AXIS_REF => {
            let name = decoder.string_attribute()?;
            let sub_axis = match decoder.cursor.varint()? {
                0 => None,
                _ => stablehlo::sub_axis(decoder)?,
            };
            Attribute::AxisRef(AxisRef { name, sub_axis }.into())
        }
        code::REPLICA_GROUP_MESH_AXES => {
            let mesh = stablehlo::mesh_reference(decoder)?;
            let axes: Vec<AxisRef> = decoder.typed("an array of mesh axes", |attribute| {
                attribute.as_array()?.iter().map(stablehlo::as_axis_ref).collect()
            })?;
            let mesh = mesh.unwrap_or(MeshReference::Symbol("".into()));
            Attribute::ReplicaGroupMeshAxes(ReplicaGroupMeshAxes { mesh, axes: axes.into() }.into())
        }
        code::MESH_AXIS => {
            let name = decoder.string_attribute()?;
            Attribute::MeshAxis(MeshAxis { name, size: decoder.cursor.signed()? }.into())
        }
        code::MESH => {
            let axes = stablehlo::mesh_axes(decoder)?;
            let device_ids = decoder.optional_attribute()?;
            stablehlo::mesh(decoder, axes, device_ids)?
        }
        code => match CASES.iter().find(|(known, ..)| *known == code) {
            Some((_, name, _)) => stablehlo::case(decoder, name)?,
            None => {
                return Err(start.error(format!("attribute code {code} of dialect 'vhlo' is not supported")));
            }
        },
    })
}

/// Encodes an attribute; `None` if VHLO does not have it.
pub(super) fn encode_attribute(
    encoder: &mut Encoder,
    attribute: &Attribute,
) -> Result<Option<Output>, Error> {
    let home = Home::Vhlo;
    let mut out;
    match attribute {
        Attribute::Array(elements) => {
            out = Output::with_code(code::ARRAY);
            encoder.attributes(home, &mut out, elements)?;
        }
        Attribute::Bool(value) => {
            out = Output::with_code(code::BOOLEAN);
            out.varint((*value).into());
        }
        Attribute::Enum(value) => {
            let (name, case) = value.names();
            let Some((code, _, since)) = CASES.iter().find(|(_, known, _)| *known == name) else {
                return Ok(None);
            };
            encoder.require(version(*since), || format!("{name} {case}"))?;
            out = Output::with_code(*code);
            out.varint(value.code());
        }
        Attribute::Dictionary(entries) => {
            out = Output::with_code(code::DICTIONARY);
            encoder.dictionary(home, &mut out, entries)?;
        }
        Attribute::Float { value, ty } => {
            out = builtin::encode_float(encoder, home, code::FLOAT, *value, *ty)?;
        }
        Attribute::Integer { value, ty } => {
            out = builtin::encode_integer(encoder, home, code::INTEGER, *value, *ty)?;
        }
        Attribute::OutputOperandAlias(alias) => {
            out = stablehlo::encode_alias(code::OUTPUT_OPERAND_ALIAS, alias);
        }
        Attribute::String(_) | Attribute::Bytes(_) | Attribute::Symbol(_) => {
            return Ok(text_of(attribute).map(|text| builtin::encode_string(encoder, code::STRING, text)));
        }
        Attribute::IntegerArray { ty: ty @ (ElementType::I64 | ElementType::I1), values } => {
            let value = stablehlo::vector(*ty, values)?;
            out = builtin::encode_elements(encoder, home, code::TENSOR, &value)?;
        }
        Attribute::Elements(value) | Attribute::Resource { value, .. } => {
            out = builtin::encode_elements(encoder, home, code::TENSOR, value)?;
        }
        Attribute::Type(ty) => {
            out = Output::with_code(code::TYPE);
            out.varint(encoder.ty(home, ty)?);
        }
        Attribute::Bounds(bounds) => {
            out = Output::with_code(code::BOUNDS);
            out.signed_list(bounds);
        }
        Attribute::ResultAccuracy(accuracy) => {
            encoder.require(version(RESULT_ACCURACIES), || "a result accuracy".to_owned())?;
            out = stablehlo::encode_accuracy(encoder, home, code::RESULT_ACCURACY, accuracy)?;
        }
        mesh => return encode_mesh_attribute(encoder, mesh),
    }
    Ok(Some(out))
}

/// Returns the text of an attribute that VHLO represents by a string.
fn text_of(attribute: &Attribute) -> Option<&[u8]> {
    match attribute {
        Attribute::String(text) => Some(text.as_bytes()),
        Attribute::Bytes(bytes) => Some(bytes),
        Attribute::Symbol(path) if path.len() == 1 => Some(path[0].as_bytes()),
        _ => None,
    }
}

/// Encodes a mesh or a part of one; `None` for other attributes.
fn encode_mesh_attribute(encoder: &mut Encoder, attribute: &Attribute) -> Result<Option<Output>, Error> {
    let string =
        |encoder: &mut Encoder, text: &Str| encoder.attribute_of(NAME, &Attribute::String(text.clone()));
    let mut out;
    match attribute {
        Attribute::SubAxis(sub) => {
            out = Output::with_code(code::SUB_AXIS);
            out.signed(sub.pre_size);
            out.signed(sub.size);
        }
        Attribute::AxisRef(axis) => {
            out = Output::with_code(code::AXIS_REF);
            out.varint(string(encoder, &axis.name)?);
            out.varint(axis.sub_axis.is_some().into());
            if let Some(sub) = axis.sub_axis {
                out.varint(encoder.attribute_of(NAME, &Attribute::SubAxis(sub))?);
            }
        }
        Attribute::MeshAxis(axis) => {
            out = Output::with_code(code::MESH_AXIS);
            out.varint(string(encoder, &axis.name)?);
            out.signed(axis.size);
        }
        Attribute::Mesh(mesh) => {
            out = Output::with_code(code::MESH);
            let axes =
                encoder.attributes_of(NAME, mesh.axes.iter().cloned().map(stablehlo::mesh_axis_attribute))?;
            out.varint(encode_array(encoder, &axes));
            let ids = match stablehlo::device_ids(mesh)? {
                Some(ids) => Some(encoder.attribute_of(NAME, &ids)?),
                None => None,
            };
            out.varint_with_flag(ids.unwrap_or(0), ids.is_some());
        }
        Attribute::ReplicaGroupMeshAxes(groups) => {
            encoder.require(version(MESHES), || "replica groups along the axes of a mesh".to_owned())?;
            out = Output::with_code(code::REPLICA_GROUP_MESH_AXES);
            out.varint(match &groups.mesh {
                MeshReference::Symbol(name) => string(encoder, name)?,
                MeshReference::Mesh(mesh) => {
                    encoder.attribute_of(NAME, &Attribute::Mesh(mesh.clone().into()))?
                }
            });
            let axes = groups.axes.iter().map(|axis| Attribute::AxisRef(axis.clone().into()));
            let axes = encoder.attributes_of(NAME, axes)?;
            out.varint(encode_array(encoder, &axes));
        }
        _ => return Ok(None),
    }
    Ok(Some(out))
}

/// Adds an array of attributes that have been added, and returns its index.
fn encode_array(encoder: &mut Encoder, elements: &[u64]) -> u64 {
    let mut out = Output::with_code(code::ARRAY);
    out.count(elements.len());
    elements.iter().for_each(|&element| out.varint(element));
    encoder.add_attribute(NAME, out)
}

/// The codes of the types without parameters, and the versions of VHLO that introduced them.
const SCALARS: &[(u64, ElementType, (u32, u32))] = &[
    (0, ElementType::I1, FIRST),
    (2, ElementType::BF16, FIRST),
    (3, ElementType::F16, FIRST),
    (4, ElementType::F32, FIRST),
    (5, ElementType::F64, FIRST),
    (6, ElementType::F8E4M3FN, FIRST),
    (7, ElementType::F8E5M2, FIRST),
    (9, ElementType::Index, FIRST),
    (10, ElementType::I4, FIRST),
    (11, ElementType::I8, FIRST),
    (12, ElementType::I16, FIRST),
    (13, ElementType::I32, FIRST),
    (14, ElementType::I64, FIRST),
    (15, ElementType::Ui4, FIRST),
    (16, ElementType::Ui8, FIRST),
    (17, ElementType::Ui16, FIRST),
    (18, ElementType::Ui32, FIRST),
    (19, ElementType::Ui64, FIRST),
    (27, ElementType::F8E4M3FNUZ, (0, 10)),
    (28, ElementType::F8E5M2FNUZ, (0, 10)),
    (29, ElementType::F8E4M3B11FNUZ, (0, 11)),
    (31, ElementType::I2, (1, 2)),
    (32, ElementType::Ui2, (1, 2)),
    (34, ElementType::Tf32, (1, 6)),
    (35, ElementType::F8E4M3, (1, 7)),
    (36, ElementType::F8E3M4, (1, 7)),
    (37, ElementType::F4E2M1FN, (1, 8)),
    (38, ElementType::F6E2M3FN, (1, 8)),
    (39, ElementType::F6E3M2FN, (1, 8)),
    (40, ElementType::F8E8M0FNU, (1, 8)),
];

/// Decodes a type.
pub(super) fn ty(decoder: &mut Decoder<'_>) -> Result<Type, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        code::COMPLEX => {
            let part = decoder.ty()?;
            tensor::complex(decoder, part)?
        }
        code::FUNCTION => {
            Type::Function(FunctionType { inputs: decoder.types()?, results: decoder.types()? }.into())
        }
        kind @ (code::RANKED_TENSOR | code::TENSOR_WITH_ENCODING) => {
            let encoding = if kind == code::TENSOR_WITH_ENCODING { Some(decoder.attribute()?) } else { None };
            let shape = decoder.cursor.signed_list()?;
            let element = decoder.ty()?;
            tensor::ranked(decoder, shape, element, encoding)?
        }
        code::TOKEN => Type::Token,
        code::TUPLE => Type::Tuple(decoder.types()?.into()),
        code::QUANTIZED => quant::uniform(decoder)?,
        code::UNRANKED_TENSOR => Type::UnrankedTensor(Box::new(decoder.ty()?)),
        code::WITNESS => Type::Witness,
        code::QUANTIZED_PER_AXIS => quant::uniform_per_axis(decoder)?,
        code::NONE => Type::None,
        code::BUFFER => {
            let shape = decoder.cursor.signed_list()?;
            let element = decoder.ty()?;
            match tensor::ranked(decoder, shape, element, None)? {
                Type::Tensor(buffer) => Type::Buffer(buffer),
                other => other,
            }
        }
        code::FUTURE => Type::Future(decoder.types()?.into()),
        code => match SCALARS.iter().find(|(known, ..)| *known == code) {
            Some((_, ty, _)) => Type::Scalar(*ty),
            None => return Err(start.error(format!("type code {code} of dialect 'vhlo' is not supported"))),
        },
    })
}

/// Encodes a type; `None` if VHLO does not have it.
pub(super) fn encode_type(encoder: &mut Encoder, ty: &Type) -> Result<Option<Output>, Error> {
    let home = Home::Vhlo;
    let mut out;
    let since = |encoder: &Encoder, since| encoder.require(version(since), || format!("the type {ty}"));
    match ty {
        Type::Scalar(scalar) if scalar.is_complex() => {
            out = Output::with_code(code::COMPLEX);
            let part = scalar.complex_part().unwrap_or(ElementType::F32);
            out.varint(encoder.ty(home, &Type::Scalar(part))?);
        }
        Type::Scalar(scalar) => match SCALARS.iter().find(|(_, known, _)| known == scalar) {
            Some((code, _, introduced)) => {
                since(encoder, *introduced)?;
                out = Output::with_code(*code);
            }
            None => return Ok(None),
        },
        Type::Function(function) => {
            out = Output::with_code(code::FUNCTION);
            encoder.types(home, &mut out, &function.inputs)?;
            encoder.types(home, &mut out, &function.results)?;
        }
        Type::Tensor(tensor) => {
            let encoding = encoder.encoding(home, tensor)?;
            out = Output::with_code(encoding.map_or(code::RANKED_TENSOR, |_| code::TENSOR_WITH_ENCODING));
            encoding.into_iter().for_each(|encoding| out.varint(encoding));
            tensor::encode_shape(encoder, home, &mut out, tensor)?;
        }
        Type::Buffer(buffer) => {
            since(encoder, (1, 13))?;
            out = Output::with_code(code::BUFFER);
            tensor::encode_shape(encoder, home, &mut out, buffer)?;
        }
        Type::Quantized(quantized) => return encode_quantized(encoder, quantized),
        Type::Future(types) => {
            since(encoder, (1, 15))?;
            out = Output::with_code(code::FUTURE);
            encoder.types(home, &mut out, types)?;
        }
        Type::Tuple(types) => {
            out = Output::with_code(code::TUPLE);
            encoder.types(home, &mut out, types)?;
        }
        Type::UnrankedTensor(element) => {
            out = Output::with_code(code::UNRANKED_TENSOR);
            out.varint(encoder.ty(home, element)?);
        }
        Type::None => {
            since(encoder, (1, 6))?;
            out = Output::with_code(code::NONE);
        }
        Type::Token => out = Output::with_code(code::TOKEN),
        Type::Witness => out = Output::with_code(code::WITNESS),
        _ => return Ok(None),
    }
    Ok(Some(out))
}

/// Encodes a quantized type; `None` if it has parameters for blocks.
fn encode_quantized(encoder: &mut Encoder, ty: &QuantizedType) -> Result<Option<Output>, Error> {
    Ok(match (&ty.blocks, ty.axis) {
        (Some(_), _) => None,
        (None, None) => Some(quant::encode_uniform(encoder, Home::Vhlo, code::QUANTIZED, ty)?),
        (None, Some(axis)) => {
            encoder.require(version(QUANTIZED_AXES), || format!("the type {ty}"))?;
            Some(quant::encode_per_axis(encoder, Home::Vhlo, code::QUANTIZED_PER_AXIS, ty, axis)?)
        }
    })
}
