//! The attributes and types of the `stablehlo` dialect, and the encodings that they share with VHLO.

use super::entries::Decoder;
use crate::Error;
use crate::ir::{
    Attribute, AxisRef, ChannelHandle, ComparisonDirection, ComparisonType, ConvDimensionNumbers,
    DotAlgorithm, DotDimensionNumbers, EnumValue, FftType, GatherDimensionNumbers, Ints, Mesh, MeshAxis,
    MeshReference, OutputOperandAlias, Precision, ReplicaGroupMeshAxes, ResultAccuracy, ResultAccuracyMode,
    RngAlgorithm, RngDistribution, ScatterDimensionNumbers, SubAxis, TransposeKind, Type,
};

/// Decodes an attribute. The codes are those of StableHLO's `StablehloBytecode.cpp`.
pub(super) fn attribute(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        1 => Attribute::ChannelHandle(ChannelHandle {
            handle: decoder.cursor.signed()?,
            channel_type: decoder.cursor.signed()?,
        }),
        2 => case(decoder, ComparisonDirection::from_code)?,
        3 => case(decoder, ComparisonType::from_code)?,
        4 => Attribute::ConvDimensionNumbers(convolution_numbers(decoder)?.into()),
        5 => Attribute::DotDimensionNumbers(dot_numbers(decoder)?.into()),
        6 => case(decoder, FftType::from_code)?,
        7 => Attribute::GatherDimensionNumbers(gather_numbers(decoder)?.into()),
        8 => case(decoder, Precision::from_code)?,
        9 => case(decoder, RngAlgorithm::from_code)?,
        10 => case(decoder, RngDistribution::from_code)?,
        11 => Attribute::ScatterDimensionNumbers(scatter_numbers(decoder)?.into()),
        12 => case(decoder, TransposeKind::from_code)?,
        13 => Attribute::Bounds(decoder.cursor.signed_list()?.into()),
        14 => output_operand_alias(decoder)?,
        15 => Attribute::DotAlgorithm(dot_algorithm(decoder)?.into()),
        16 => case(decoder, ResultAccuracyMode::from_code)?,
        17 => result_accuracy(decoder)?,
        18 => {
            let mesh = mesh_reference(decoder)?.unwrap_or(MeshReference::Symbol("".into()));
            let axes = decoder.list(axis_ref)?.into_iter().flatten().collect();
            Attribute::ReplicaGroupMeshAxes(ReplicaGroupMeshAxes { mesh, axes }.into())
        }
        19 => {
            Attribute::SubAxis(SubAxis { pre_size: decoder.cursor.signed()?, size: decoder.cursor.signed()? })
        }
        20 => {
            let name = decoder.text()?;
            let sub_axis = if decoder.cursor.byte()? != 0 { sub_axis(decoder)? } else { None };
            Attribute::AxisRef(AxisRef { name, sub_axis }.into())
        }
        21 => {
            let name = decoder.text()?;
            Attribute::MeshAxis(MeshAxis { name, size: decoder.cursor.signed()? }.into())
        }
        22 => {
            let axes = mesh_axes(decoder)?;
            let device_ids = if decoder.cursor.byte()? != 0 { Some(decoder.attribute()?) } else { None };
            mesh(decoder, axes, device_ids)?
        }
        code => {
            return Err(start.error(format!("attribute code {code} of dialect 'stablehlo' is not supported")));
        }
    })
}

fn convolution_numbers(decoder: &mut Decoder<'_>) -> Result<ConvDimensionNumbers, Error> {
    Ok(ConvDimensionNumbers {
        input_batch_dimension: decoder.cursor.signed()?,
        input_feature_dimension: decoder.cursor.signed()?,
        input_spatial_dimensions: ints(decoder)?,
        kernel_input_feature_dimension: decoder.cursor.signed()?,
        kernel_output_feature_dimension: decoder.cursor.signed()?,
        kernel_spatial_dimensions: ints(decoder)?,
        output_batch_dimension: decoder.cursor.signed()?,
        output_feature_dimension: decoder.cursor.signed()?,
        output_spatial_dimensions: ints(decoder)?,
    })
}

fn dot_numbers(decoder: &mut Decoder<'_>) -> Result<DotDimensionNumbers, Error> {
    Ok(DotDimensionNumbers {
        lhs_batching_dimensions: ints(decoder)?,
        rhs_batching_dimensions: ints(decoder)?,
        lhs_contracting_dimensions: ints(decoder)?,
        rhs_contracting_dimensions: ints(decoder)?,
    })
}

fn dot_algorithm(decoder: &mut Decoder<'_>) -> Result<DotAlgorithm, Error> {
    Ok(DotAlgorithm {
        lhs_precision_type: decoder.ty()?,
        rhs_precision_type: decoder.ty()?,
        accumulation_type: decoder.ty()?,
        lhs_component_count: decoder.cursor.signed()?,
        rhs_component_count: decoder.cursor.signed()?,
        num_primitive_operations: decoder.cursor.signed()?,
        allow_imprecise_accumulation: decoder.cursor.byte()? != 0,
    })
}

fn gather_numbers(decoder: &mut Decoder<'_>) -> Result<GatherDimensionNumbers, Error> {
    Ok(GatherDimensionNumbers {
        offset_dims: ints(decoder)?,
        collapsed_slice_dims: ints(decoder)?,
        operand_batching_dims: ints(decoder)?,
        start_indices_batching_dims: ints(decoder)?,
        start_index_map: ints(decoder)?,
        index_vector_dim: decoder.cursor.signed()?,
    })
}

fn scatter_numbers(decoder: &mut Decoder<'_>) -> Result<ScatterDimensionNumbers, Error> {
    Ok(ScatterDimensionNumbers {
        update_window_dims: ints(decoder)?,
        inserted_window_dims: ints(decoder)?,
        input_batching_dims: ints(decoder)?,
        scatter_indices_batching_dims: ints(decoder)?,
        scatter_dims_to_operand_dims: ints(decoder)?,
        index_vector_dim: decoder.cursor.signed()?,
    })
}

/// Decodes a type. The codes are those of StableHLO's `StablehloBytecode.cpp`.
pub(super) fn ty(decoder: &mut Decoder<'_>) -> Result<Type, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        0 => Type::Token,
        1 => Type::Future(decoder.types()?.into()),
        code => return Err(start.error(format!("type code {code} of dialect 'stablehlo' is not supported"))),
    })
}

fn ints(decoder: &mut Decoder<'_>) -> Result<Ints, Error> {
    decoder.cursor.signed_list().map(Into::into)
}

/// Reads a case of an enumeration.
pub(super) fn case<T: Into<EnumValue>>(
    decoder: &mut Decoder<'_>,
    from_code: impl FnOnce(u64) -> Option<T>,
) -> Result<Attribute, Error> {
    let start = decoder.cursor;
    let code = decoder.cursor.varint()?;
    match from_code(code) {
        Some(value) => Ok(Attribute::Enum(value.into())),
        None => Err(start.error(format!("expected a case of {}, found {code}", std::any::type_name::<T>()))),
    }
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
