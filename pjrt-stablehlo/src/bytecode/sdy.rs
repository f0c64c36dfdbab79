//! Attributes of Shardy's `sdy` dialect.

use std::fmt::Write;

use super::encoder::{Encoder, Home};
use super::entries::Decoder;
use super::output::Output;
use super::stablehlo;
use crate::Error;
use crate::ir::{
    Attribute, AxisRef, DimensionSharding, Ints, Mesh, MeshAxis, MeshReference, Reduction, Str, SubAxis,
    TensorSharding,
};

/// The name of the dialect.
pub(super) const NAME: &str = "sdy";

/// The codes of the attributes, from Shardy's `bytecode.td`.
mod code {
    pub(super) const MANUAL_AXES: u64 = 0;
    pub(super) const MESH_AXIS: u64 = 1;
    pub(super) const MESH: u64 = 2;
    pub(super) const SUB_AXIS: u64 = 3;
    pub(super) const AXIS_REF: u64 = 4;
    pub(super) const DIMENSION_SHARDING: u64 = 5;
    pub(super) const SHARDING: u64 = 6;
    pub(super) const SHARDING_PER_VALUE: u64 = 7;
    pub(super) const DIM_MAPPING: u64 = 8;
    pub(super) const TENSOR_MAPPING: u64 = 9;
    pub(super) const SHARDING_RULE: u64 = 10;
    pub(super) const AXIS_REF_LIST: u64 = 11;
    pub(super) const AXIS_REF_LISTS: u64 = 12;
    pub(super) const ALL_TO_ALL_PARAM: u64 = 13;
    pub(super) const ALL_TO_ALL_PARAMS: u64 = 14;
    pub(super) const UNREDUCED_SHARDING: u64 = 15;
    pub(super) const UNREDUCED_SHARDING_PER_VALUE: u64 = 16;
    pub(super) const SHARDING_WITH_REDUCTION: u64 = 17;
}

/// Decodes an attribute.
pub(super) fn attribute(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        code::MANUAL_AXES => Attribute::ManualAxes(decoder.list(Decoder::string_attribute)?.into()),
        code::MESH_AXIS => {
            let name = decoder.text()?;
            Attribute::MeshAxis(MeshAxis { name, size: decoder.cursor.signed()? }.into())
        }
        code::MESH => mesh(decoder)?,
        code::SUB_AXIS => {
            Attribute::SubAxis(SubAxis { pre_size: decoder.cursor.signed()?, size: decoder.cursor.signed()? })
        }
        code::AXIS_REF => {
            let name = decoder.text()?;
            let sub_axis = match decoder.optional_attribute()? {
                Some(Attribute::SubAxis(sub_axis)) => Some(sub_axis),
                Some(other) if !decoder.is_incomplete() => {
                    return Err(start.error(format!("expected a part of an axis, found {}", other.kind())));
                }
                _ => None,
            };
            Attribute::AxisRef(AxisRef { name, sub_axis }.into())
        }
        code::DIMENSION_SHARDING => dimension_sharding(decoder)?,
        code::SHARDING => tensor_sharding(decoder, 1)?,
        code::SHARDING_PER_VALUE | code::UNREDUCED_SHARDING_PER_VALUE => sharding_per_value(decoder)?,
        code::DIM_MAPPING => Attribute::IntegerArray {
            ty: crate::ir::ElementType::I64,
            values: decoder.cursor.signed_list()?.into(),
        },
        // Lists of axes are represented by their text, as in the text reader.
        code::AXIS_REF_LIST => {
            let axes = axis_refs(decoder)?;
            Attribute::Opaque(format!("{AXIS_REF_LIST}{}>", braces(&axes)).into())
        }
        code::AXIS_REF_LISTS => {
            let lists = decoder.attributes()?;
            let lists = lists.iter().filter_map(|list| match list {
                Attribute::Opaque(text) => text.strip_prefix(AXIS_REF_LIST)?.strip_suffix('>'),
                _ => None,
            });
            let lists = lists.collect::<Vec<_>>().join(", ");
            Attribute::Opaque(format!("sdy<list_of_axis_ref_lists[{lists}]>").into())
        }
        code::TENSOR_MAPPING | code::ALL_TO_ALL_PARAMS => Attribute::Array(decoder.attributes()?.into()),
        code::SHARDING_RULE => sharding_rule(decoder)?,
        code::ALL_TO_ALL_PARAM => {
            let axes = decoder.attributes()?;
            let (source, target) = (decoder.cursor.signed()?, decoder.cursor.signed()?);
            Attribute::Array([Attribute::Array(axes.into()), source.into(), target.into()].into())
        }
        code::UNREDUCED_SHARDING => tensor_sharding(decoder, 2)?,
        code::SHARDING_WITH_REDUCTION => tensor_sharding(decoder, 3)?,
        code => return Err(start.error(format!("attribute code {code} of dialect 'sdy' is not supported"))),
    })
}

/// Encodes an attribute in the oldest form that has all of its parts; `None` if the dialect does not have it.
pub(super) fn encode_attribute(
    encoder: &mut Encoder,
    attribute: &Attribute,
) -> Result<Option<Output>, Error> {
    let mut out;
    match attribute {
        Attribute::ManualAxes(axes) => {
            out = Output::with_code(code::MANUAL_AXES);
            let axes: Vec<_> = axes.iter().cloned().map(Attribute::String).collect();
            encoder.attributes(Home::Native, &mut out, &axes)?;
        }
        Attribute::MeshAxis(axis) => {
            out = Output::with_code(code::MESH_AXIS);
            out.varint(encoder.string(axis.name.as_bytes()));
            out.signed(axis.size);
        }
        Attribute::Mesh(mesh) => {
            out = Output::with_code(code::MESH);
            encode_list(encoder, &mut out, mesh.axes.iter().cloned().map(stablehlo::mesh_axis_attribute))?;
            out.signed_list(&mesh.device_ids);
        }
        Attribute::SubAxis(sub) => {
            out = Output::with_code(code::SUB_AXIS);
            out.signed(sub.pre_size);
            out.signed(sub.size);
        }
        Attribute::AxisRef(axis) => {
            out = Output::with_code(code::AXIS_REF);
            out.varint(encoder.string(axis.name.as_bytes()));
            match axis.sub_axis {
                Some(sub) => {
                    out.varint_with_flag(encoder.attribute_of(NAME, &Attribute::SubAxis(sub))?, true);
                }
                None => out.varint_with_flag(0, false),
            }
        }
        Attribute::DimensionSharding(dimension) => {
            out = Output::with_code(code::DIMENSION_SHARDING);
            encode_axes(encoder, &mut out, &dimension.axes)?;
            out.byte(dimension.is_closed.into());
            let priority = dimension.priority.and_then(|priority| u64::try_from(priority).ok());
            out.varint_with_flag(priority.unwrap_or(0), priority.is_some());
        }
        Attribute::Sharding(sharding) => out = encode_sharding(encoder, sharding)?,
        Attribute::ShardingPerValue(shardings) => {
            out = Output::with_code(match shardings.iter().all(|one| one.unreduced_axes.is_empty()) {
                true => code::SHARDING_PER_VALUE,
                false => code::UNREDUCED_SHARDING_PER_VALUE,
            });
            let shardings = shardings.iter().map(|sharding| Attribute::Sharding(sharding.clone().into()));
            encode_list(encoder, &mut out, shardings)?;
        }
        _ => return Ok(None),
    }
    Ok(Some(out))
}

/// Writes a list of attributes of this dialect.
fn encode_list(
    encoder: &mut Encoder,
    out: &mut Output,
    attributes: impl ExactSizeIterator<Item = Attribute>,
) -> Result<(), Error> {
    out.count(attributes.len());
    encoder.attributes_of(NAME, attributes)?.into_iter().for_each(|index| out.varint(index));
    Ok(())
}

fn encode_axes(encoder: &mut Encoder, out: &mut Output, axes: &[AxisRef]) -> Result<(), Error> {
    encode_list(encoder, out, axes.iter().map(|axis| Attribute::AxisRef(axis.clone().into())))
}

fn encode_sharding(encoder: &mut Encoder, sharding: &TensorSharding) -> Result<Output, Error> {
    let code = match (sharding.unreduced_axes.is_empty(), sharding.reduction) {
        (true, _) => code::SHARDING,
        (false, Reduction::Sum) => code::UNREDUCED_SHARDING,
        (false, _) => code::SHARDING_WITH_REDUCTION,
    };
    let mut out = Output::with_code(code);
    out.varint(match &sharding.mesh {
        MeshReference::Symbol(name) => {
            encoder.attribute(Home::Native, &Attribute::Symbol([name.clone()].into()))?
        }
        MeshReference::Mesh(mesh) => encoder.attribute_of(NAME, &Attribute::Mesh(mesh.clone().into()))?,
    });
    let dimensions = sharding.dim_shardings.iter();
    let dimensions = dimensions.map(|dimension| Attribute::DimensionSharding(dimension.clone().into()));
    encode_list(encoder, &mut out, dimensions)?;
    encode_axes(encoder, &mut out, &sharding.replicated_axes)?;
    if code != code::SHARDING {
        encode_axes(encoder, &mut out, &sharding.unreduced_axes)?;
    }
    if code == code::SHARDING_WITH_REDUCTION {
        let number = Reduction::ALL.iter().position(|&known| known == sharding.reduction);
        out.signed(number.unwrap_or(0) as i64);
    }
    Ok(out)
}

/// The start of the text of a list of axes.
const AXIS_REF_LIST: &str = "sdy<axis_ref_list";

/// Returns the text `{"x", "y":(1)2}`.
fn braces(axes: &[AxisRef]) -> String {
    let axes = axes.iter().map(|axis| {
        let text = Attribute::AxisRef(axis.clone().into()).to_string();
        text.trim_start_matches("#sdy.axis_ref<").trim_end_matches('>').to_owned()
    });
    format!("{{{}}}", axes.collect::<Vec<_>>().join(", "))
}

fn ints(decoder: &mut Decoder<'_>) -> Result<Ints, Error> {
    decoder.cursor.signed_list().map(Into::into)
}

fn axis_refs(decoder: &mut Decoder<'_>) -> Result<Box<[AxisRef]>, Error> {
    Ok(decoder.list(stablehlo::axis_ref)?.into_iter().flatten().collect())
}

fn mesh(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let axes = decoder.list(|decoder| {
        decoder.typed("an axis of a mesh", |attribute| match attribute {
            Attribute::MeshAxis(axis) => Some(Some((*axis).clone())),
            _ => None,
        })
    })?;
    let device_ids = ints(decoder)?;
    Ok(Attribute::Mesh(Mesh { axes: axes.into_iter().flatten().collect(), device_ids }.into()))
}

fn dimension_sharding(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let axes = axis_refs(decoder)?;
    let is_closed = decoder.cursor.byte()? != 0;
    let (priority, present) = decoder.cursor.varint_with_flag()?;
    let priority = if present { i64::try_from(priority).ok() } else { None };
    Ok(Attribute::DimensionSharding(DimensionSharding { axes, is_closed, priority }.into()))
}

fn sharding_per_value(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let shardings = decoder.list(|decoder| {
        decoder.typed("a sharding", |attribute| match attribute {
            Attribute::Sharding(sharding) => Some(Some((*sharding).clone())),
            _ => None,
        })
    })?;
    Ok(Attribute::ShardingPerValue(shardings.into_iter().flatten().collect()))
}

fn tensor_sharding(decoder: &mut Decoder<'_>, form: u32) -> Result<Attribute, Error> {
    let mesh = stablehlo::mesh_reference(decoder)?.unwrap_or(MeshReference::Symbol(Str::default()));
    let dim_shardings = decoder.list(|decoder| {
        decoder.typed("a dimension's sharding", |attribute| match attribute {
            Attribute::DimensionSharding(sharding) => Some(Some((*sharding).clone())),
            _ => None,
        })
    })?;
    let dim_shardings = dim_shardings.into_iter().flatten().collect();
    let replicated_axes = axis_refs(decoder)?;
    let unreduced_axes = if form >= 2 { axis_refs(decoder)? } else { Box::default() };
    let number = if form >= 3 { decoder.cursor.signed()? } else { 0 };
    let Some(&reduction) = usize::try_from(number).ok().and_then(|number| Reduction::ALL.get(number)) else {
        return Err(decoder.cursor.error(format!("expected a kind of reduction, found {number}")));
    };
    let sharding = TensorSharding { mesh, dim_shardings, replicated_axes, unreduced_axes, reduction };
    Ok(Attribute::Sharding(sharding.into()))
}

/// Reads a sharding rule, which is represented by its text because this crate does not interpret it.
fn sharding_rule(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let factor_sizes = decoder.cursor.signed_list()?;
    let operands = decoder.attributes()?;
    let results = decoder.attributes()?;
    let special = [
        ("reduction", decoder.cursor.signed_list()?),
        ("need_replication", decoder.cursor.signed_list()?),
        ("permutation", decoder.cursor.signed_list()?),
        ("blocked_propagation", decoder.cursor.signed_list()?),
    ];
    let is_custom = decoder.cursor.byte()? != 0;
    let mappings = |tensors: &[Attribute]| {
        let tensors = tensors.iter().map(|tensor| {
            let dims = tensor.as_array().unwrap_or_default().iter().map(|dim| match dim {
                Attribute::IntegerArray { values, .. } if values.is_empty() => "*".to_owned(),
                Attribute::IntegerArray { values, .. } => {
                    values.iter().map(|&factor| factor_name(factor)).collect()
                }
                _ => String::new(),
            });
            format!("[{}]", dims.collect::<Vec<_>>().join(", "))
        });
        tensors.collect::<Vec<_>>().join(", ")
    };
    let sizes = factor_sizes
        .iter()
        .enumerate()
        .map(|(factor, size)| format!("{}={size}", factor_name(factor as i64)));
    let mut text = format!(
        "sdy.op_sharding_rule<({})->({}) {{{}}}",
        mappings(&operands),
        mappings(&results),
        sizes.collect::<Vec<_>>().join(", ")
    );
    for (name, factors) in special {
        if !factors.is_empty() {
            let names = factors.iter().map(|&factor| factor_name(factor)).collect::<Vec<_>>().join(", ");
            // Writing to a string cannot fail.
            let _ = write!(text, " {name}={{{names}}}");
        }
    }
    text.push_str(if is_custom { ", custom>" } else { ">" });
    Ok(Attribute::Opaque(text.into()))
}

/// Returns the name of a factor: Shardy names them i, j, ..., z, z_1, z_2, ...
fn factor_name(factor: i64) -> String {
    match u8::try_from(factor) {
        Ok(factor @ 0..=17) => char::from(b'i' + factor).to_string(),
        _ => format!("z_{}", factor.saturating_sub(17)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_axes_are_the_text_that_shardy_reads() {
        let part = SubAxis { pre_size: 1, size: 2 };
        let axes = [
            AxisRef { name: "x".into(), sub_axis: None },
            AxisRef { name: "y".into(), sub_axis: Some(part) },
        ];
        assert_eq!(braces(&axes), "{\"x\", \"y\":(1)2}");
        assert_eq!(braces(&[]), "{}");
    }
}
