//! Shardings along the axes of a mesh, in Shardy's form (`sdy.sharding`).

use crate::cut::Cut;
use crate::error::{Error, Result};
use crate::layout::{Layout, Partial};
use crate::sharding::Sharding;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{AxisRef, Function, Mesh, MeshAxis, MeshReference, TensorSharding};

/// Returns the mesh that a sharding refers to, by name or inline.
///
/// ```
/// use pjrt_stablehlo::ir::Attribute;
///
/// let module = pjrt_stablehlo::parse(
///     r#"sdy.mesh @mesh = <["x"=2, "y"=4]>
///     func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<8xf32> {
///       return %a : tensor<8xf32>
///     }"#,
/// )?;
/// let Some(Attribute::Sharding(sharding)) = module.main().unwrap().argument_attribute(0, "sdy.sharding") else {
///     unreachable!()
/// };
/// assert_eq!(pjrt_sharding::mesh_of(&module, sharding)?.axes.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the module does not define the mesh.
pub fn mesh_of<'a>(module: &'a Module, sharding: &'a TensorSharding) -> Result<&'a Mesh> {
    sharding.mesh.mesh(module).ok_or_else(|| match &sharding.mesh {
        MeshReference::Symbol(name) => Error::invalid(format!(
            "the sharding refers to the mesh @{}, which the module does not define",
            &**name
        )),
        _ => Error::unsupported("the mesh of the sharding is neither a symbol nor an inline mesh"),
    })
}

/// Returns the partial results of an array that is unreduced along axes of the mesh; `None` if there is a single one.
fn partial(module: &Module, sharding: &TensorSharding, partitions: usize) -> Result<Option<Partial>> {
    if sharding.unreduced_axes.is_empty() {
        return Ok(None);
    }
    let mesh = Positions::new(mesh_of(module, sharding)?, partitions)?;
    let axes: Vec<Axis> =
        sharding.unreduced_axes.iter().map(|axis| mesh.axis(axis)).collect::<Result<_>>()?;
    let parts: usize = axes.iter().map(|axis| axis.size).product();
    let term = |partition: usize| {
        axes.iter().fold(0, |index, axis| index * axis.size + mesh.coordinate(partition, axis))
    };
    let terms = || Cut { parts, of_partition: (0..partitions).map(term).collect() };
    Ok((parts > 1).then(|| Partial { terms: terms(), reduction: sharding.reduction }))
}

/// Converts a sharding of Shardy for an array of these dimensions; `None` if the array is not split. If the sharding has
/// unreduced axes, the result has one more dimension, the first, which counts the partial results.
///
/// # Errors
/// Returns an error if the form of the sharding is not supported, or if the sharding does not fit the array.
pub(crate) fn with_partial(
    module: &Module,
    sharding: &TensorSharding,
    dims: &[usize],
    partitions: usize,
) -> Result<Option<Sharding>> {
    let split = of_shardy(module, sharding, dims, partitions)?;
    let Some(partial) = partial(module, sharding, partitions)? else { return Ok(split) };
    let layout = Layout { partial: Some(partial), ..Layout::of(split.as_ref(), dims.len()) };
    Ok(layout.sharding(partitions))
}

/// Converts the split of the dimensions of a sharding of Shardy, without its unreduced axes; `None` if no dimension is split.
///
/// # Errors
/// Returns an error if the form of the sharding is not supported, or if the sharding does not fit the array.
pub(crate) fn of_shardy(
    module: &Module,
    sharding: &TensorSharding,
    dims: &[usize],
    partitions: usize,
) -> Result<Option<Sharding>> {
    if sharding.dim_shardings.iter().all(|d| d.axes.is_empty()) {
        return Ok(None);
    }
    if sharding.dim_shardings.len() != dims.len() {
        return Err(Error::invalid(format!(
            "the sharding has {} dimensions, but the array {dims:?} has {}",
            sharding.dim_shardings.len(),
            dims.len()
        )));
    }
    let mesh = Positions::new(mesh_of(module, sharding)?, partitions)?;
    let mut parts = Vec::with_capacity(dims.len());
    let mut position = vec![Vec::with_capacity(dims.len()); partitions];
    for cut in &sharding.dim_shardings {
        let axes: Vec<Axis> = cut.axes.iter().map(|axis| mesh.axis(axis)).collect::<Result<_>>()?;
        let count: usize = axes.iter().map(|axis| axis.size).product();
        parts.push(count);
        for (partition, position) in position.iter_mut().enumerate() {
            position.push(
                axes.iter().fold(0, |index, axis| index * axis.size + mesh.coordinate(partition, axis)),
            );
        }
    }
    Ok(Some(Sharding { parts, position, reduction: None }))
}

/// Returns whether a program is for XLA's GSPMD partitioner: it declares no meshes, and its shardings refer to none.
pub(crate) fn is_for_gspmd(module: &Module) -> bool {
    let is_for_shardy = |main: &Function| {
        let mut attributes = main.argument_attributes.iter().chain(&main.result_attributes);
        attributes.any(|attributes| attributes.get("sdy.sharding").is_some())
    };
    module.meshes().is_empty() && !module.main().is_some_and(is_for_shardy)
}

/// Returns the splits along each of the axes of the meshes that the module declares for this number of partitions.
pub(crate) fn splits_along_axes(module: &Module, partitions: usize) -> Vec<Cut> {
    let mut splits = vec![];
    for declaration in module.meshes() {
        let Ok(mesh) = Positions::new(&declaration.mesh, partitions) else { continue };
        for axis in &declaration.mesh.axes {
            let Ok(axis) = mesh.axis(&AxisRef { name: axis.name.clone(), sub_axis: None }) else { continue };
            let of_partition = (0..partitions).map(|partition| mesh.coordinate(partition, &axis)).collect();
            splits.push(Cut { parts: axis.size, of_partition });
        }
    }
    splits
}

/// The positions of partitions in a mesh.
struct Positions<'a> {
    mesh: &'a Mesh,
    sizes: Vec<usize>,
    /// The position of each partition, row-major over the axes.
    of_partition: Vec<usize>,
}

/// An axis or sub-axis of the mesh.
struct Axis {
    size: usize,
    /// The distance in positions from one coordinate to the next.
    stride: usize,
}

impl<'a> Positions<'a> {
    fn new(mesh: &'a Mesh, partitions: usize) -> Result<Self> {
        let wrong = |what: &str| {
            Error::invalid(format!("the mesh {mesh} does not fit {partitions} partitions: {what}"))
        };
        let size = |axis: &MeshAxis| usize::try_from(axis.size).ok().filter(|size| *size > 0);
        let sizes: Vec<usize> = mesh
            .axes
            .iter()
            .map(size)
            .collect::<Option<_>>()
            .ok_or_else(|| wrong("every axis needs a positive size"))?;
        let total = sizes.iter().try_fold(1usize, |n, size| n.checked_mul(*size));
        if total != Some(partitions) {
            return Err(wrong("the product of the axis sizes must be the number of partitions"));
        }
        let of_partition = if mesh.device_ids.is_empty() {
            (0..partitions).collect()
        } else {
            let position = |p: usize| mesh.device_ids.iter().position(|id| usize::try_from(*id) == Ok(p));
            (0..partitions)
                .map(position)
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("the device ids must contain every partition"))?
        };
        Ok(Self { mesh, sizes, of_partition })
    }

    fn axis(&self, axis: &AxisRef) -> Result<Axis> {
        let index = self.mesh.axes.iter().position(|a| a.name == axis.name);
        let index = index.ok_or_else(|| {
            Error::invalid(format!(
                "the sharding refers to the axis {:?}, which its mesh does not have",
                &*axis.name
            ))
        })?;
        let stride: usize = self.sizes[index + 1..].iter().product();
        let Some(part) = axis.sub_axis else { return Ok(Axis { size: self.sizes[index], stride }) };
        let whole = self.sizes[index];
        let taken = (usize::try_from(part.pre_size).ok()).zip(usize::try_from(part.size).ok());
        match taken.and_then(|(before, size)| Some((size, before.checked_mul(size)?))) {
            Some((size, taken)) if taken > 0 && whole.is_multiple_of(taken) => {
                Ok(Axis { size, stride: stride * (whole / taken) })
            }
            _ => Err(Error::invalid(format!(
                "the axis {:?} of size {whole} has no sub-axis ({}){}",
                &*axis.name, part.pre_size, part.size
            ))),
        }
    }

    fn coordinate(&self, partition: usize, axis: &Axis) -> usize {
        self.of_partition[partition] / axis.stride % axis.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_stablehlo::ir::{DimensionSharding, Reduction, SubAxis};

    fn mesh(axes: &[(&str, i64)], device_ids: &[i64]) -> Mesh {
        let axis = |(name, size): &(&str, i64)| MeshAxis { name: (*name).into(), size: *size };
        Mesh { axes: axes.iter().map(axis).collect(), device_ids: device_ids.into() }
    }

    fn cut(mesh: Mesh, dims: &[usize], axes: &[&[(&str, Option<SubAxis>)]]) -> Result<Sharding> {
        let axis = |(name, part): &(&str, Option<SubAxis>)| AxisRef { name: (*name).into(), sub_axis: *part };
        let dim = |axes: &&[(&str, Option<SubAxis>)]| DimensionSharding {
            axes: axes.iter().map(axis).collect(),
            is_closed: true,
            priority: None,
        };
        let partitions = mesh.axes.iter().map(|a| a.size as usize).product();
        let sharding = TensorSharding {
            mesh: MeshReference::Mesh(mesh),
            dim_shardings: axes.iter().map(dim).collect(),
            replicated_axes: Box::default(),
            unreduced_axes: Box::default(),
            reduction: Reduction::Sum,
        };
        Ok(of_shardy(&Module::new(), &sharding, dims, partitions)?.expect("cut"))
    }

    #[test]
    fn axes_of_one_dimension_count_from_major_to_minor() {
        let got =
            cut(mesh(&[("x", 2), ("y", 2)], &[]), &[8, 3], &[&[("y", None), ("x", None)], &[]]).unwrap();
        assert_eq!(got.parts, [4, 1]);
        assert_eq!(got.position, [[0, 0], [2, 0], [1, 0], [3, 0]]);
    }

    #[test]
    fn the_order_of_devices_in_the_mesh_counts() {
        let got = cut(mesh(&[("x", 4)], &[3, 2, 1, 0]), &[4], &[&[("x", None)]]).unwrap();
        assert_eq!(got.position, [[3], [2], [1], [0]]);
    }

    #[test]
    fn a_part_of_an_axis_is_an_axis() {
        let minor = SubAxis { pre_size: 2, size: 2 };
        let major = SubAxis { pre_size: 1, size: 2 };
        let of = |part| cut(mesh(&[("x", 4)], &[]), &[2], &[&[("x", Some(part))]]).unwrap().position;
        assert_eq!(of(minor), [[0], [1], [0], [1]]);
        assert_eq!(of(major), [[0], [0], [1], [1]]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert!(cut(mesh(&[("x", 4)], &[]), &[8], &[&[("z", None)]]).is_err());
        let part = SubAxis { pre_size: 3, size: 2 };
        assert!(cut(mesh(&[("x", 4)], &[]), &[8], &[&[("x", Some(part))]]).is_err());
        assert!(cut(mesh(&[("x", 0)], &[]), &[8], &[&[("x", None)]]).is_err());
    }
}
