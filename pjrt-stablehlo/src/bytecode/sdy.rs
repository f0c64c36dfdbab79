//! Attributes of Shardy's `sdy` dialect.

use std::fmt::Write;

use super::entries::Decoder;
use super::stablehlo;
use crate::Error;
use crate::ir::{
    Attribute, AxisRef, DimensionSharding, Ints, Mesh, MeshAxis, MeshReference, Reduction, Str, SubAxis,
    TensorSharding,
};

/// Decodes an attribute. The codes are those of Shardy's `bytecode.td`.
pub(super) fn attribute(decoder: &mut Decoder<'_>) -> Result<Attribute, Error> {
    let start = decoder.cursor;
    Ok(match decoder.cursor.varint()? {
        0 => Attribute::ManualAxes(decoder.list(Decoder::string_attribute)?.into()),
        1 => {
            let name = decoder.text()?;
            Attribute::MeshAxis(MeshAxis { name, size: decoder.cursor.signed()? }.into())
        }
        2 => mesh(decoder)?,
        3 => {
            Attribute::SubAxis(SubAxis { pre_size: decoder.cursor.signed()?, size: decoder.cursor.signed()? })
        }
        4 => {
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
        5 => dimension_sharding(decoder)?,
        6 => tensor_sharding(decoder, 1)?,
        7 | 16 => sharding_per_value(decoder)?,
        8 => Attribute::IntegerArray {
            ty: crate::ir::ElementType::I64,
            values: decoder.cursor.signed_list()?.into(),
        },
        // Lists of axes are represented by their text, as in the text reader.
        11 => {
            let axes = axis_refs(decoder)?;
            Attribute::Opaque(format!("{AXIS_REF_LIST}{}>", braces(&axes)).into())
        }
        12 => {
            let lists = decoder.attributes()?;
            let lists = lists.iter().filter_map(|list| match list {
                Attribute::Opaque(text) => text.strip_prefix(AXIS_REF_LIST)?.strip_suffix('>'),
                _ => None,
            });
            let lists = lists.collect::<Vec<_>>().join(", ");
            Attribute::Opaque(format!("sdy<list_of_axis_ref_lists[{lists}]>").into())
        }
        9 | 14 => Attribute::Array(decoder.attributes()?.into()),
        10 => sharding_rule(decoder)?,
        13 => {
            let axes = decoder.attributes()?;
            let (source, target) = (decoder.cursor.signed()?, decoder.cursor.signed()?);
            Attribute::Array([Attribute::Array(axes.into()), source.into(), target.into()].into())
        }
        15 => tensor_sharding(decoder, 2)?,
        17 => tensor_sharding(decoder, 3)?,
        code => return Err(start.error(format!("attribute code {code} of dialect 'sdy' is not supported"))),
    })
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
