//! Shardings, in the form that programs of other formats contain.

use super::proto;
use crate::ir::{
    Attribute, AxisRef, DimensionSharding, Mesh, MeshAxis, MeshReference, Reduction, Str, SubAxis,
    TensorSharding,
};
use crate::{Error, ErrorKind};

const TUPLE: i32 = 2;
const OTHER: i32 = 3;

/// Returns a sharding as an attribute: `mhlo.sharding` with XLA's text, or `sdy.sharding`.
pub(super) fn attribute(sharding: &proto::Sharding) -> Result<(Str, Attribute), Error> {
    let Some(named) = &sharding.named_sharding else {
        return Ok(("mhlo.sharding".into(), Attribute::String(text(sharding)?.into())));
    };
    let attribute = if named.tuple_shardings.is_empty() {
        Attribute::Sharding(tensor_sharding(named)?.into())
    } else {
        let parts = named.tuple_shardings.iter().map(tensor_sharding).collect::<Result<Vec<_>, _>>()?;
        Attribute::ShardingPerValue(parts.into())
    };
    Ok(("sdy.sharding".into(), attribute))
}

/// Returns the sharding of each array of a value with `count` arrays.
pub(super) fn per_leaf(
    sharding: Option<&proto::Sharding>,
    count: usize,
) -> Result<Vec<Option<proto::Sharding>>, Error> {
    let Some(sharding) = sharding else { return Ok(vec![None; count]) };
    let parts: Vec<proto::Sharding> = match &sharding.named_sharding {
        Some(named) if !named.tuple_shardings.is_empty() => {
            let part = |part: &proto::NamedSharding| proto::Sharding {
                named_sharding: Some(part.clone()),
                ..proto::Sharding::default()
            };
            named.tuple_shardings.iter().map(part).collect()
        }
        None if sharding.r#type == TUPLE => sharding.tuple_shardings.clone(),
        _ => return Ok(vec![Some(sharding.clone()); count]),
    };
    // XLA gives an empty tuple a sharding with one part.
    if parts.len() != count && count != 0 {
        let message =
            format!("expected a sharding with {count} parts, one for each array, found {}", parts.len());
        return Err(Error::new(ErrorKind::Malformed, message));
    }
    Ok(parts.into_iter().take(count).map(Some).collect())
}

/// Returns XLA's text of a sharding.
fn text(sharding: &proto::Sharding) -> Result<String, Error> {
    let group = if sharding.is_shard_group {
        let name = if sharding.shard_group_type == 0 { "shard_as" } else { "shard_like" };
        format!(" {name} {}", sharding.shard_group_id)
    } else {
        String::new()
    };
    Ok(match sharding.r#type {
        TUPLE => {
            let parts = sharding.tuple_shardings.iter().map(text).collect::<Result<Vec<_>, _>>()?;
            format!("{{{}}}", parts.join(", "))
        }
        1 => {
            let device = sharding.tile_assignment_devices.first().copied().unwrap_or(0);
            format!("{{maximal device={device}{group}}}")
        }
        OTHER => format!("{{devices={}{group}}}", tiles(sharding)?),
        other => format!("{{{}{group}}}", kind(other)?),
    })
}

/// Returns XLA's name of a kind of sharding without dimensions.
fn kind(code: i32) -> Result<&'static str, Error> {
    match code {
        0 => Ok("replicated"),
        1 => Ok("maximal"),
        4 => Ok("manual"),
        5 => Ok("unknown"),
        6 => Ok("unreduced"),
        other => {
            let message = format!("the sharding type code {other} is not supported");
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}

/// Returns `[2,2]<=[4] last_tile_dim_replicate`.
fn tiles(sharding: &proto::Sharding) -> Result<String, Error> {
    let mut text = format!("[{}]", joined(&sharding.tile_assignment_dimensions));
    if sharding.iota_reshape_dims.is_empty() {
        text.push_str(&joined(&sharding.tile_assignment_devices));
    } else {
        text.push_str(&format!("<=[{}]", joined(&sharding.iota_reshape_dims)));
        if !sharding.iota_transpose_perm.iter().copied().eq(0..sharding.iota_transpose_perm.len() as i32) {
            text.push_str(&format!("T({})", joined(&sharding.iota_transpose_perm)));
        }
    }
    if sharding.replicate_on_last_tile_dim {
        text.push_str(" last_tile_dim_replicate");
    }
    if !sharding.last_tile_dims.is_empty() {
        let kinds = sharding.last_tile_dims.iter().map(|&code| kind(code)).collect::<Result<Vec<_>, _>>()?;
        text.push_str(&format!(" last_tile_dims={{{}}}", kinds.join(", ")));
    }
    Ok(text)
}

fn joined<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

fn tensor_sharding(named: &proto::NamedSharding) -> Result<TensorSharding, Error> {
    let mesh = mesh(named.mesh.as_ref());
    let axes = |axes: &[proto::AxisRef]| axis_refs(&mesh, axes);
    let dim_shardings = named.dim_shardings.iter().map(|dimension| {
        Ok(DimensionSharding { axes: axes(&dimension.axes)?, is_closed: dimension.is_closed, priority: None })
    });
    Ok(TensorSharding {
        dim_shardings: dim_shardings.collect::<Result<_, Error>>()?,
        replicated_axes: axes(&named.replicated_axes)?,
        unreduced_axes: axes(&named.unreduced_axes)?,
        reduction: Reduction::Sum,
        mesh: MeshReference::Mesh(mesh),
    })
}

pub(super) fn mesh(mesh: Option<&proto::Mesh>) -> Mesh {
    let Some(mesh) = mesh else { return Mesh::default() };
    let axes = mesh.axes.iter().map(|axis| MeshAxis { name: axis.name.as_str().into(), size: axis.size });
    Mesh { axes: axes.collect(), device_ids: mesh.device_ids.as_slice().into() }
}

/// Converts references to axes of a mesh.
pub(super) fn axis_refs(mesh: &Mesh, axes: &[proto::AxisRef]) -> Result<Box<[AxisRef]>, Error> {
    let references = axes.iter().map(|axis| {
        let found = usize::try_from(axis.mesh_axis_index).ok().and_then(|index| mesh.axes.get(index));
        let found = found.ok_or_else(|| {
            let message = format!("the mesh has no axis {}", axis.mesh_axis_index);
            Error::new(ErrorKind::Malformed, message)
        })?;
        let sub_axis = axis.sub_axis_info.as_ref();
        let sub_axis = sub_axis.map(|part| SubAxis { pre_size: part.pre_size, size: part.size });
        Ok(AxisRef { name: found.name.clone(), sub_axis })
    });
    references.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shardings_are_printed_as_xla_does() {
        let other = proto::Sharding { r#type: OTHER, ..proto::Sharding::default() };
        let devices = proto::Sharding {
            tile_assignment_dimensions: vec![2, 1],
            tile_assignment_devices: vec![1, 0],
            ..other.clone()
        };
        let iota = proto::Sharding {
            tile_assignment_dimensions: vec![2, 2],
            iota_reshape_dims: vec![2, 2],
            iota_transpose_perm: vec![1, 0],
            last_tile_dims: vec![4],
            is_shard_group: true,
            shard_group_id: 3,
            ..other.clone()
        };
        let replicate = proto::Sharding {
            tile_assignment_dimensions: vec![2, 2],
            iota_reshape_dims: vec![4],
            iota_transpose_perm: vec![0],
            replicate_on_last_tile_dim: true,
            ..other
        };
        let maximal =
            proto::Sharding { r#type: 1, tile_assignment_devices: vec![1], ..proto::Sharding::default() };
        let tuple = proto::Sharding {
            r#type: TUPLE,
            tuple_shardings: vec![proto::Sharding::default(), maximal],
            ..proto::Sharding::default()
        };
        for (sharding, expected) in [
            (&devices, "{devices=[2,1]1,0}"),
            (&iota, "{devices=[2,2]<=[2,2]T(1,0) last_tile_dims={manual} shard_as 3}"),
            (&replicate, "{devices=[2,2]<=[4] last_tile_dim_replicate}"),
            (&tuple, "{{replicated}, {maximal device=1}}"),
        ] {
            assert_eq!(attribute(sharding).unwrap().1.as_str(), Some(expected));
        }
        assert_eq!(per_leaf(Some(&tuple), 2).unwrap().len(), 2);
        assert!(per_leaf(Some(&tuple), 3).is_err());
        assert!(attribute(&proto::Sharding { r#type: 9, ..proto::Sharding::default() }).is_err());
    }

    #[test]
    fn named_shardings_become_shardings_of_shardy() {
        let axis = |name: &str, size| proto::MeshAxis { name: name.to_owned(), size };
        let axes = |index| vec![proto::AxisRef { mesh_axis_index: index, sub_axis_info: None }];
        let named = |index| proto::Sharding {
            named_sharding: Some(proto::NamedSharding {
                mesh: Some(proto::Mesh { axes: vec![axis("a", 2), axis("b", 2)], device_ids: Vec::new() }),
                dim_shardings: vec![proto::DimensionSharding { axes: axes(index), is_closed: true }],
                ..proto::NamedSharding::default()
            }),
            ..proto::Sharding::default()
        };
        let (name, sharding) = attribute(&named(1)).unwrap();
        assert_eq!(name, "sdy.sharding");
        assert_eq!(sharding.to_string(), r#"#sdy.sharding<mesh<["a"=2, "b"=2]>, [{"b"}]>"#);
        assert!(attribute(&named(2)).is_err());
    }
}
