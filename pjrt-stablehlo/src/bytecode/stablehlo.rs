//! The attributes and types of the `stablehlo` dialect, and the encodings that they share with VHLO.

use super::builtin;
use super::encoder::{Encoder, Home};
use super::entries::Decoder;
use super::output::Output;
use crate::ir::{
    Attribute, AxisRef, ChannelHandle, ComparisonDirection, ComparisonType, ConvDimensionNumbers,
    DotAlgorithm, DotDimensionNumbers, ElementType, EnumValue, FftType, FieldWriter, Fields,
    GatherDimensionNumbers, Ints, Literal, LiteralData, Mesh, MeshAxis, MeshReference, OutputOperandAlias,
    Precision, ReplicaGroupMeshAxes, ResultAccuracy, ResultAccuracyMode, RngAlgorithm, RngDistribution,
    ScatterDimensionNumbers, SubAxis, TensorType, TransposeKind, Type,
};
use crate::{Error, ErrorKind};

/// The name of the dialect.
pub(super) const NAME: &str = "stablehlo";

/// The codes of the attributes other than enumerations, from StableHLO's `StablehloBytecode.cpp`.
mod code {
    pub(super) const CHANNEL_HANDLE: u64 = 1;
    pub(super) const CONV_DIMENSION_NUMBERS: u64 = 4;
    pub(super) const DOT_DIMENSION_NUMBERS: u64 = 5;
    pub(super) const GATHER_DIMENSION_NUMBERS: u64 = 7;
    pub(super) const SCATTER_DIMENSION_NUMBERS: u64 = 11;
    pub(super) const BOUNDS: u64 = 13;
    pub(super) const OUTPUT_OPERAND_ALIAS: u64 = 14;
    pub(super) const DOT_ALGORITHM: u64 = 15;
    pub(super) const RESULT_ACCURACY: u64 = 17;
    pub(super) const REPLICA_GROUP_MESH_AXES: u64 = 18;
    pub(super) const SUB_AXIS: u64 = 19;
    pub(super) const AXIS_REF: u64 = 20;
    pub(super) const MESH_AXIS: u64 = 21;
    pub(super) const MESH: u64 = 22;
    /// The codes of the types.
    pub(super) const TOKEN: u64 = 0;
    pub(super) const FUTURE: u64 = 1;
}

/// The codes of the enumerations.
const CASES: &[(u64, &str)] = &[
    (2, ComparisonDirection::MLIR_NAME),
    (3, ComparisonType::MLIR_NAME),
    (6, FftType::MLIR_NAME),
    (8, Precision::MLIR_NAME),
    (9, RngAlgorithm::MLIR_NAME),
    (10, RngDistribution::MLIR_NAME),
    (12, TransposeKind::MLIR_NAME),
    (16, ResultAccuracyMode::MLIR_NAME),
];

/// Decodes an attribute.
pub(super) fn attribute(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        code::CHANNEL_HANDLE => Attribute::ChannelHandle(ChannelHandle {
            handle: decoder.cursor.signed()?,
            channel_type: decoder.cursor.signed()?,
        }),
        code::CONV_DIMENSION_NUMBERS => {
            Attribute::ConvDimensionNumbers(ConvDimensionNumbers::read_fields(decoder)?.into())
        }
        code::DOT_DIMENSION_NUMBERS => {
            Attribute::DotDimensionNumbers(DotDimensionNumbers::read_fields(decoder)?.into())
        }
        code::GATHER_DIMENSION_NUMBERS => {
            Attribute::GatherDimensionNumbers(GatherDimensionNumbers::read_fields(decoder)?.into())
        }
        code::SCATTER_DIMENSION_NUMBERS => {
            Attribute::ScatterDimensionNumbers(ScatterDimensionNumbers::read_fields(decoder)?.into())
        }
        code::BOUNDS => Attribute::Bounds(decoder.cursor.signed_list()?.into()),
        code::OUTPUT_OPERAND_ALIAS => output_operand_alias(decoder)?,
        code::DOT_ALGORITHM => Attribute::DotAlgorithm(DotAlgorithm::read_fields(decoder)?.into()),
        code::RESULT_ACCURACY => result_accuracy(decoder)?,
        code::REPLICA_GROUP_MESH_AXES => {
            let mesh = mesh_reference(decoder)?.unwrap_or(MeshReference::Symbol("".into()));
            let axes = decoder.list(axis_ref)?.into_iter().flatten().collect();
            Attribute::ReplicaGroupMeshAxes(ReplicaGroupMeshAxes { mesh, axes }.into())
        }
        code::SUB_AXIS => {
            Attribute::SubAxis(SubAxis { pre_size: decoder.cursor.signed()?, size: decoder.cursor.signed()? })
        }
        code::AXIS_REF => {
            let name = decoder.text()?;
            let sub_axis = if decoder.cursor.byte()? != 0 { sub_axis(decoder)? } else { None };
            Attribute::AxisRef(AxisRef { name, sub_axis }.into())
        }
        code::MESH_AXIS => {
            let name = decoder.text()?;
            Attribute::MeshAxis(MeshAxis { name, size: decoder.cursor.signed()? }.into())
        }
        code::MESH => {
            let axes = mesh_axes(decoder)?;
            let device_ids = if decoder.cursor.byte()? != 0 { Some(decoder.attribute()?) } else { None };
            mesh(decoder, axes, device_ids)?
        }
        code => match CASES.iter().find(|(known, _)| *known == code) {
            Some((_, name)) => case(decoder, name)?,
            None => {
                let message = format!("attribute code {code} of dialect 'stablehlo' is not supported");
                return Err(start.error(message));
            }
        },
    })
}

/// Encodes an attribute; `None` if the dialect does not have it.
pub(super) fn encode_attribute(
    encoder: &mut Encoder,
    attribute: &Attribute,
) -> Result<Option<Output>, Error> {
    let mut out;
    match attribute {
        Attribute::ChannelHandle(channel) => {
            out = Output::with_code(code::CHANNEL_HANDLE);
            out.signed(channel.handle);
            out.signed(channel.channel_type);
        }
        Attribute::ConvDimensionNumbers(numbers) => {
            out = encode_fields(encoder, code::CONV_DIMENSION_NUMBERS, &**numbers)?;
        }
        Attribute::DotDimensionNumbers(numbers) => {
            out = encode_fields(encoder, code::DOT_DIMENSION_NUMBERS, &**numbers)?;
        }
        Attribute::GatherDimensionNumbers(numbers) => {
            out = encode_fields(encoder, code::GATHER_DIMENSION_NUMBERS, &**numbers)?;
        }
        Attribute::ScatterDimensionNumbers(numbers) => {
            out = encode_fields(encoder, code::SCATTER_DIMENSION_NUMBERS, &**numbers)?;
        }
        Attribute::DotAlgorithm(algorithm) => {
            out = encode_fields(encoder, code::DOT_ALGORITHM, &**algorithm)?;
        }
        Attribute::Bounds(bounds) => {
            out = Output::with_code(code::BOUNDS);
            out.signed_list(bounds);
        }
        Attribute::OutputOperandAlias(alias) => {
            out = encode_alias(code::OUTPUT_OPERAND_ALIAS, alias);
        }
        Attribute::ResultAccuracy(accuracy) => {
            out = encode_accuracy(encoder, Home::Native, code::RESULT_ACCURACY, accuracy)?;
        }
        Attribute::Enum(value) => match CASES.iter().find(|(_, name)| *name == value.names().0) {
            Some((code, _)) => {
                out = Output::with_code(*code);
                out.varint(value.code());
            }
            None => return Ok(None),
        },
        mesh => return encode_mesh_attribute(encoder, mesh),
    }
    Ok(Some(out))
}

/// Encodes replica groups, a mesh or a part of one; `None` for other attributes.
fn encode_mesh_attribute(encoder: &mut Encoder, attribute: &Attribute) -> Result<Option<Output>, Error> {
    let native = Home::Native;
    let mut out;
    match attribute {
        Attribute::ReplicaGroupMeshAxes(groups) => {
            out = Output::with_code(code::REPLICA_GROUP_MESH_AXES);
            let mesh = match &groups.mesh {
                MeshReference::Symbol(name) => {
                    encoder.attribute(native, &Attribute::Symbol([name.clone()].into()))?
                }
                MeshReference::Mesh(mesh) => {
                    encoder.attribute_of(NAME, &Attribute::Mesh(mesh.clone().into()))?
                }
            };
            out.varint(mesh);
            out.count(groups.axes.len());
            for axis in &groups.axes {
                out.varint(encoder.attribute_of(NAME, &Attribute::AxisRef(axis.clone().into()))?);
            }
        }
        Attribute::SubAxis(sub) => {
            out = Output::with_code(code::SUB_AXIS);
            out.signed(sub.pre_size);
            out.signed(sub.size);
        }
        Attribute::AxisRef(axis) => {
            out = Output::with_code(code::AXIS_REF);
            out.varint(encoder.string(axis.name.as_bytes()));
            out.byte(axis.sub_axis.is_some().into());
            if let Some(sub) = axis.sub_axis {
                out.varint(encoder.attribute_of(NAME, &Attribute::SubAxis(sub))?);
            }
        }
        Attribute::MeshAxis(axis) => {
            out = Output::with_code(code::MESH_AXIS);
            out.varint(encoder.string(axis.name.as_bytes()));
            out.signed(axis.size);
        }
        Attribute::Mesh(mesh) => {
            out = Output::with_code(code::MESH);
            let axes = encoder.attributes_of(NAME, mesh.axes.iter().cloned().map(mesh_axis_attribute))?;
            out.varint(builtin::encode_array(encoder, &axes));
            out.byte((!mesh.device_ids.is_empty()).into());
            if let Some(ids) = device_ids(mesh)? {
                out.varint(encoder.attribute(native, &ids)?);
            }
        }
        _ => return Ok(None),
    }
    Ok(Some(out))
}

/// Decodes a type.
pub(super) fn ty(decoder: &mut Decoder<'_>) -> Result<Type, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        code::TOKEN => Type::Token,
        code::FUTURE => Type::Future(decoder.types()?.into()),
        code => return Err(start.error(format!("type code {code} of dialect 'stablehlo' is not supported"))),
    })
}

/// Encodes a type; `None` if the dialect does not have it.
pub(super) fn encode_type(encoder: &mut Encoder, ty: &Type) -> Result<Option<Output>, Error> {
    Ok(match ty {
        Type::Token => Some(Output::with_code(code::TOKEN)),
        Type::Future(types) => {
            let mut out = Output::with_code(code::FUTURE);
            encoder.types(Home::Native, &mut out, types)?;
            Some(out)
        }
        _ => None,
    })
}

fn ints(decoder: &mut Decoder<'_>) -> Result<Ints, Error> {
    decoder.cursor.signed_list().map(Into::into)
}

/// Reads a case of the enumeration with this name.
pub(super) fn case(decoder: &mut Decoder<'_>, name: &str) -> Result<Attribute, Error> {
    let start = decoder.cursor;
    let code = decoder.cursor.varint()?;
    match EnumValue::from_code(name, code) {
        Some(value) => Ok(Attribute::Enum(value)),
        None => Err(start.error(format!("expected a case of the enumeration '{name}', found {code}"))),
    }
}

/// Writes the fields of a structured attribute in order.
struct Sink<'a>(&'a mut Encoder, Output);

impl FieldWriter for Sink<'_> {
    type Error = Error;

    fn integer(&mut self, _name: &'static str, value: &i64) -> Result<(), Error> {
        self.1.signed(*value);
        Ok(())
    }

    fn integers(&mut self, _name: &'static str, values: &Ints) -> Result<(), Error> {
        self.1.signed_list(values);
        Ok(())
    }

    fn ty(&mut self, _name: &'static str, ty: &Type) -> Result<(), Error> {
        self.1.varint(self.0.ty(Home::Native, ty)?);
        Ok(())
    }

    fn boolean(&mut self, _name: &'static str, value: &bool) -> Result<(), Error> {
        self.1.byte((*value).into());
        Ok(())
    }
}

fn encode_fields(encoder: &mut Encoder, code: u64, attribute: &impl Fields) -> Result<Output, Error> {
    let mut sink = Sink(encoder, Output::with_code(code));
    attribute.write_fields(&mut sink)?;
    Ok(sink.1)
}

/// Writes an output operand alias, the inverse of [`output_operand_alias`].
pub(super) fn encode_alias(code: u64, alias: &OutputOperandAlias) -> Output {
    let mut out = Output::with_code(code);
    out.signed_list(&alias.output_tuple_indices);
    out.signed(alias.operand_index);
    out.signed_list(&alias.operand_tuple_indices);
    out
}

/// Writes a result accuracy, the inverse of [`result_accuracy`].
pub(super) fn encode_accuracy(
    encoder: &mut Encoder,
    home: Home,
    code: u64,
    accuracy: &ResultAccuracy,
) -> Result<Output, Error> {
    let mut out = Output::with_code(code);
    out.double(accuracy.atol);
    out.double(accuracy.rtol);
    out.signed(accuracy.ulps);
    out.varint(encoder.attribute(home, &Attribute::Enum(accuracy.mode.into()))?);
    Ok(out)
}

pub(super) fn mesh_axis_attribute(axis: MeshAxis) -> Attribute {
    Attribute::MeshAxis(axis.into())
}

/// Returns the device ids of a mesh as an attribute; `None` if the mesh does not list them.
pub(super) fn device_ids(mesh: &Mesh) -> Result<Option<Attribute>, Error> {
    if mesh.device_ids.is_empty() {
        return Ok(None);
    }
    vector(ElementType::I64, &mesh.device_ids).map(|ids| Some(Attribute::Elements(ids)))
}

/// Returns integers as a tensor with one dimension.
pub(super) fn vector(ty: ElementType, values: &[i64]) -> Result<Literal, Error> {
    let width = ty.byte_width();
    let bytes: Vec<u8> =
        values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(width)).collect();
    Literal::new(TensorType::new(ty, [values.len() as i64]), LiteralData::Dense(bytes.into()))
        .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
}

/// Reads the fields of an output operand alias.
pub(super) fn output_operand_alias(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let alias = OutputOperandAlias {
        output_tuple_indices: ints(decoder)?,
        operand_index: decoder.cursor.signed()?,
        operand_tuple_indices: ints(decoder)?,
    };
    Ok(Attribute::OutputOperandAlias(alias.into()))
}

/// Reads the fields of a result accuracy.
pub(super) fn result_accuracy(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let double = |raw| crate::ir::float_value(crate::ir::ElementType::F64, raw);
    let atol = double(decoder.cursor.integer(64)?);
    let rtol = double(decoder.cursor.integer(64)?);
    let ulps = decoder.cursor.signed()?;
    let mode = decoder.typed("a result accuracy mode", |attribute| match attribute {
        Attribute::Enum(EnumValue::ResultAccuracyMode(mode)) => Some(Some(mode)),
        _ => None,
    })?;
    let mode = mode.unwrap_or(ResultAccuracyMode::Default);
    Ok(Attribute::ResultAccuracy(ResultAccuracy { atol, rtol, ulps, mode }.into()))
}

/// Reads a reference to a part of an axis.
pub(super) fn sub_axis(decoder: &mut Decoder<'_>) -> Result<Option<SubAxis>, Error> {
    decoder.typed("a part of an axis", |attribute| match attribute {
        Attribute::SubAxis(sub_axis) => Some(Some(sub_axis)),
        _ => None,
    })
}

/// Returns the reference to a mesh axis that an attribute represents.
pub(super) fn as_axis_ref(attribute: &Attribute) -> Option<AxisRef> {
    match attribute {
        Attribute::AxisRef(axis) => Some((**axis).clone()),
        _ => None,
    }
}

/// Reads a reference to a mesh axis; `None` while entries are missing.
pub(super) fn axis_ref(decoder: &mut Decoder<'_>) -> Result<Option<AxisRef>, Error> {
    decoder.typed("a mesh axis", |attribute| as_axis_ref(&attribute).map(Some))
}

/// Reads a reference to a mesh or its symbol; `None` while entries are missing.
pub(super) fn mesh_reference(decoder: &mut Decoder<'_>) -> Result<Option<MeshReference>, Error> {
    decoder.typed("a mesh", |attribute| match attribute {
        Attribute::Symbol(path) => path.first().cloned().map(MeshReference::Symbol).map(Some),
        Attribute::String(name) => Some(Some(MeshReference::Symbol(name))),
        Attribute::Mesh(mesh) => Some(Some(MeshReference::Mesh((*mesh).clone()))),
        _ => None,
    })
}

/// Reads a reference to an array of mesh axes.
pub(super) fn mesh_axes(decoder: &mut Decoder<'_>) -> Result<Vec<MeshAxis>, Error> {
    decoder.typed("an array of mesh axes", |attribute| {
        let axes = attribute.as_array()?.iter();
        axes.map(|axis| match axis {
            Attribute::MeshAxis(axis) => Some((**axis).clone()),
            _ => None,
        })
        .collect()
    })
}

/// Creates a mesh from its axes and device ids.
pub(super) fn mesh(
    decoder: &Decoder<'_>,
    axes: Vec<MeshAxis>,
    device_ids: Option<Attribute>,
) -> Result<Attribute, Error> {
    let device_ids = match device_ids {
        None => Vec::new(),
        Some(_) if decoder.is_incomplete() => Vec::new(),
        Some(Attribute::Elements(literal)) => {
            let ids = literal.to_i64s(crate::limits::MAX_ATTRIBUTE_ELEMENTS);
            ids.ok_or_else(|| {
                decoder.cursor.error(format!("expected a list of device ids, found {}", literal.ty()))
            })?
        }
        Some(other) => {
            return Err(decoder
                .cursor
                .error(format!("expected a list of device ids, found {}", other.kind())));
        }
    };
    Ok(Attribute::Mesh(Mesh { axes: axes.into(), device_ids: device_ids.into() }.into()))
}
