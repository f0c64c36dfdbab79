//! How the arrays of `main` are split among the partitions of a program in the global view.

use super::error::{CompileError, Result};
use super::hlo_sharding::{self, HloSharding};
use super::lower::mesh_of;
use super::options::CompileOptions;
use super::propagate::{Said, Split, propagate};
use crate::graph::{Graph, ValueId};
use crate::plan::Sharding;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Attribute, AxisRef, Function, Mesh, TensorSharding};

/// How parameters and results are split.
#[derive(Default)]
pub(super) struct OfMain {
    pub(super) parameters: Vec<Option<Sharding>>,
    pub(super) results: Vec<Option<Sharding>>,
    /// The arrays whose split the program asks to see.
    pub(super) inspected: Vec<(String, Option<Sharding>)>,
    /// How every value of the graph is split, where that was asked for.
    pub(super) values: Vec<Option<Sharding>>,
}

/// An attribute of one of a function's parameters or results.
type Lookup = for<'f> fn(&'f Function, usize, &str) -> Option<&'f Attribute>;

/// What an attribute says of an array.
struct Attributed {
    sharding: Option<Sharding>,
    /// Dimensions whose split is not the last word.
    open: Vec<bool>,
}

impl Attributed {
    fn split(&self) -> Split {
        let closed: Vec<bool> = self.open.iter().map(|open| !open).collect();
        match &self.sharding {
            Some(sharding) => Split::new(sharding, closed),
            None => Split::unsplit(closed),
        }
    }
}

/// How the parameters and results of `main` are split: as their attributes say, otherwise, where the options allow it, as
/// suits the arrays that they are computed with or from.
///
/// `said` is what operations say. `results` are the values of `graph` that are to be its results, `asked` how those are to be
/// split that constraints give. With `of_all_values`, how all other values are split is found too.
///
/// # Errors
/// If a sharding is of a form that is not supported, or does not fit the array.
#[allow(clippy::too_many_arguments, reason = "the one caller has all of them in its hands")]
pub(super) fn of_main(
    module: &Module,
    main: &Function,
    options: &CompileOptions,
    graph: &Graph,
    results: &[ValueId],
    asked: &[Option<Split>],
    mut said: Said,
    of_all_values: bool,
) -> Result<OfMain> {
    let parameters = graph.parameters();
    let none = OfMain {
        parameters: vec![None; parameters.len()],
        results: vec![None; results.len()],
        inspected: vec![],
        values: vec![None; if of_all_values { graph.num_values() } else { 0 }],
    };
    let partitions = if options.use_spmd_partitioning { options.num_partitions } else { 1 };
    if partitions == 1 {
        return Ok(none);
    }
    // Attributes are by argument; where tuples were flattened they say nothing about the parts.
    let by_attribute = |values: &[ValueId], attribute: Lookup| {
        let one = |(i, value): (usize, &ValueId)| {
            let dims = &graph.shape(*value).dims;
            attributed(module, |name: &str| attribute(main, i, name), dims, partitions)
        };
        values.iter().enumerate().map(one).collect::<Result<Vec<_>>>()
    };
    let of_parameters = if main.argument_types().len() == parameters.len() {
        by_attribute(parameters, Function::argument_attribute)?
    } else {
        parameters.iter().map(|_| None).collect()
    };
    let of_results = if main.result_types().len() == results.len() {
        by_attribute(results, Function::result_attribute)?
    } else {
        results.iter().map(|_| None).collect()
    };
    let may = |allowed: &[bool], i: usize| match allowed {
        [all] => *all,
        each => each.get(i).copied().unwrap_or(false),
    };
    let free = |attributed: &Option<Attributed>, allowed: &[bool], i| match attributed {
        Some(attributed) => attributed.open.contains(&true),
        None => may(allowed, i),
    };
    let mut splits = Vec::new();
    for (i, (value, attributed)) in parameters.iter().zip(&of_parameters).enumerate() {
        let split = match attributed {
            Some(attributed) => attributed.split(),
            // What an operation says of it counts.
            None if may(&options.propagate_to_parameters, i) => continue,
            None => Split::whole(graph.shape(*value).rank()),
        };
        splits.push((*value, split));
    }
    splits.append(&mut said.splits);
    for (value, attributed) in results.iter().zip(&of_results) {
        splits.extend(attributed.as_ref().map(|attributed| (*value, attributed.split())));
    }
    said.splits = splits;
    let inspected = std::mem::take(&mut said.inspected);
    let any_free = |of: &[Option<Attributed>], allowed| (0..of.len()).any(|i| free(&of[i], allowed, i));
    let propagated = if any_free(&of_parameters, &options.propagate_to_parameters)
        || any_free(&of_results, &options.propagate_to_results)
        || !inspected.is_empty()
        || of_all_values
    {
        propagate(graph, said, partitions)
    } else {
        vec![None; graph.num_values()]
    };
    let inspected =
        inspected.into_iter().map(|(key, value)| (key, propagated[value.index()].clone())).collect();
    let chosen = |values: &[ValueId], of: Vec<Option<Attributed>>, allowed: &[bool]| {
        let one = |(i, (value, attributed)): (usize, (&ValueId, Option<Attributed>))| {
            let found = if free(&attributed, allowed, i) { propagated[value.index()].clone() } else { None };
            match attributed.and_then(|attributed| attributed.sharding) {
                Some(sharding) => {
                    let finer = found.filter(|found| refines(found, &sharding));
                    let finer = finer.map(|found| Sharding { summed: sharding.summed, ..found });
                    finer.or(Some(sharding))
                }
                None => found,
            }
        };
        values.iter().zip(of).enumerate().map(one).collect()
    };
    let is_free = |i: usize| of_results[i].is_none() && may(&options.propagate_to_results, i);
    let of_constraints: Vec<Option<&Split>> = (0..results.len())
        .map(|i| asked.get(i).and_then(Option::as_ref).filter(|_| asked.len() == results.len() && is_free(i)))
        .collect();
    let mut of_results: Vec<Option<Sharding>> = chosen(results, of_results, &options.propagate_to_results);
    for (result, split) in of_results.iter_mut().zip(of_constraints) {
        if let Some(split) = split {
            *result = split.settled(result.take(), partitions);
        }
    }
    Ok(OfMain {
        parameters: chosen(parameters, of_parameters, &options.propagate_to_parameters),
        results: of_results,
        inspected,
        values: if of_all_values { propagated } else { vec![] },
    })
}

/// True if one sharding splits as another does, and perhaps other dimensions too.
fn refines(fine: &Sharding, coarse: &Sharding) -> bool {
    let same = |d: usize| fine.position.iter().zip(&coarse.position).all(|(a, b)| a[d] == b[d]);
    fine.parts.len() == coarse.parts.len()
        && (0..coarse.parts.len())
            .all(|d| coarse.parts[d] == 1 || coarse.parts[d] == fine.parts[d] && same(d))
}

/// What the attributes of a parameter or result say; None if nothing.
///
/// # Errors
/// If the sharding is of a form that is not supported, or does not fit the array.
fn attributed<'m>(
    module: &'m Module,
    attribute: impl Fn(&str) -> Option<&'m Attribute>,
    dims: &[usize],
    partitions: usize,
) -> Result<Option<Attributed>> {
    if let Some(Attribute::Sharding(sharding)) = attribute("sdy.sharding") {
        let summed = unreduced(module, sharding, partitions)?.is_some();
        let dims = &dims[usize::from(summed)..];
        let mut open = open_dims(sharding, dims);
        if summed {
            open.insert(0, false);
        }
        return Ok(Some(Attributed { sharding: with_addends(module, sharding, dims, partitions)?, open }));
    }
    attribute("mhlo.sharding")
        .and_then(Attribute::as_str)
        .map(|text| of_hlo(text, dims, partitions))
        .transpose()
}

/// What the text of a sharding says of an array.
///
/// # Errors
/// If the sharding is of a form that is not supported, or does not fit the array.
fn of_hlo(text: &str, dims: &[usize], partitions: usize) -> Result<Attributed> {
    Ok(match hlo_sharding::parse(text, dims, partitions)? {
        HloSharding::Unknown => Attributed { sharding: None, open: vec![true; dims.len()] },
        HloSharding::Replicated => Attributed { sharding: None, open: vec![false; dims.len()] },
        HloSharding::Tiled(sharding) => {
            Attributed { sharding: Some(sharding), open: vec![false; dims.len()] }
        }
    })
}

/// The split that a call of `Sharding` asks for by its text, but not of the dimensions that are left open; None if the array
/// cannot be split so.
pub(super) fn annotation(text: &str, open: &[usize], dims: &[usize], partitions: usize) -> Option<Split> {
    let mut said = of_hlo(text, dims, partitions).ok()?;
    for dim in open {
        *said.open.get_mut(*dim)? = true;
    }
    Some(said.split())
}

/// The split that an operation asks for; None if the array cannot be split so.
pub(super) fn constraint(
    module: &Module,
    sharding: &TensorSharding,
    dims: &[usize],
    partitions: usize,
) -> Option<Split> {
    let open = open_dims(sharding, dims);
    let sharding = of_shardy(module, sharding, dims, partitions).ok()?;
    Some(Attributed { sharding, open }.split())
}

fn open_dims(sharding: &TensorSharding, dims: &[usize]) -> Vec<bool> {
    (0..dims.len()).map(|d| sharding.dim_shardings.get(d).is_some_and(|dim| !dim.is_closed)).collect()
}

/// For an array that is still to be summed over axes of the mesh: how many addends there are, and which each partition has.
struct Addends {
    count: usize,
    of_partition: Vec<usize>,
}

fn unreduced(module: &Module, sharding: &TensorSharding, partitions: usize) -> Result<Option<Addends>> {
    if sharding.unreduced_axes.is_empty() {
        return Ok(None);
    }
    if !sharding.reduction.eq_ignore_ascii_case("sum") {
        return Err(CompileError::unimplemented(format!(
            "an array that is still to be reduced otherwise than to its sum: {}",
            &*sharding.reduction
        )));
    }
    let mesh = Positions::new(mesh_of(module, sharding)?, partitions)?;
    let axes: Vec<Axis> =
        sharding.unreduced_axes.iter().map(|axis| mesh.axis(axis)).collect::<Result<_>>()?;
    let count: usize = axes.iter().map(|axis| axis.size).product();
    let addend = |partition: usize| {
        axes.iter().fold(0, |index, axis| index * axis.size + mesh.coordinate(partition, axis))
    };
    Ok((count > 1).then(|| Addends { count, of_partition: (0..partitions).map(addend).collect() }))
}

/// How many addends an argument or result of `main` has with these attributes; None if it is no sum that is to be made.
///
/// # Errors
/// If the sharding is of a form that is not supported.
pub(super) fn addends(
    module: &Module,
    sharding: Option<&Attribute>,
    options: &CompileOptions,
) -> Result<Option<usize>> {
    let Some(Attribute::Sharding(sharding)) = sharding.filter(|_| options.use_spmd_partitioning) else {
        return Ok(None);
    };
    if options.num_partitions == 1 {
        return Ok(None);
    }
    Ok(unreduced(module, sharding, options.num_partitions)?.map(|addends| addends.count))
}

/// What a sharding of Shardy says of an array that has these sizes in the program; None if it is not split. The array has
/// one more dimension here, the first, if it is still to be summed.
///
/// # Errors
/// If the sharding is of a form that is not supported, or does not fit the array.
pub(super) fn with_addends(
    module: &Module,
    sharding: &TensorSharding,
    dims: &[usize],
    partitions: usize,
) -> Result<Option<Sharding>> {
    let split = of_shardy(module, sharding, dims, partitions)?;
    let Some(addends) = unreduced(module, sharding, partitions)? else { return Ok(split) };
    let Sharding { mut parts, mut position, .. } = split.unwrap_or_else(|| Sharding {
        parts: vec![1; dims.len()],
        position: vec![vec![0; dims.len()]; partitions],
        summed: false,
    });
    parts.insert(0, addends.count);
    for (position, addend) in position.iter_mut().zip(addends.of_partition) {
        position.insert(0, addend);
    }
    Ok(Some(Sharding { parts, position, summed: true }))
}

/// What a sharding of Shardy says of how an array is split, whether or not it is still to be summed; None if it is not split.
///
/// # Errors
/// If the sharding is of a form that is not supported, or does not fit the array.
pub(super) fn of_shardy(
    module: &Module,
    sharding: &TensorSharding,
    dims: &[usize],
    partitions: usize,
) -> Result<Option<Sharding>> {
    if sharding.dim_shardings.iter().all(|d| d.axes.is_empty()) {
        return Ok(None);
    }
    if sharding.dim_shardings.len() != dims.len() {
        return Err(CompileError::invalid(format!(
            "a sharding of {} dimensions on an array {dims:?}",
            sharding.dim_shardings.len()
        )));
    }
    let mesh = Positions::new(mesh_of(module, sharding)?, partitions)?;
    let mut parts = Vec::with_capacity(dims.len());
    let mut position = vec![Vec::with_capacity(dims.len()); partitions];
    for (d, (size, cut)) in dims.iter().zip(&sharding.dim_shardings).enumerate() {
        let axes: Vec<Axis> = cut.axes.iter().map(|axis| mesh.axis(axis)).collect::<Result<_>>()?;
        let count: usize = axes.iter().map(|axis| axis.size).product();
        if !size.is_multiple_of(count) {
            return Err(CompileError::unimplemented(format!(
                "dimension {d} of an array {dims:?} cannot be cut into {count} equal parts"
            )));
        }
        parts.push(count);
        for (partition, position) in position.iter_mut().enumerate() {
            position.push(
                axes.iter().fold(0, |index, axis| index * axis.size + mesh.coordinate(partition, axis)),
            );
        }
    }
    Ok(Some(Sharding { parts, position, summed: false }))
}

/// Where partitions are in a mesh.
struct Positions<'a> {
    mesh: &'a Mesh,
    sizes: Vec<usize>,
    /// The position of each partition, row-major over the axes.
    of_partition: Vec<usize>,
}

/// An axis of the mesh, or a part of one.
struct Axis {
    size: usize,
    /// By how much the position grows from one coordinate to the next.
    stride: usize,
}

impl<'a> Positions<'a> {
    fn new(mesh: &'a Mesh, partitions: usize) -> Result<Self> {
        let wrong =
            |what: &str| CompileError::invalid(format!("{what}: {mesh:?} for {partitions} partitions"));
        let size =
            |axis: &pjrt_stablehlo::ir::MeshAxis| usize::try_from(axis.size).ok().filter(|size| *size > 0);
        let sizes: Vec<usize> = mesh
            .axes
            .iter()
            .map(size)
            .collect::<Option<_>>()
            .ok_or_else(|| wrong("a mesh with an empty axis"))?;
        let total = sizes.iter().try_fold(1usize, |n, size| n.checked_mul(*size));
        if total != Some(partitions) {
            return Err(wrong("a mesh of another size"));
        }
        let of_partition = if mesh.device_ids.is_empty() {
            (0..partitions).collect()
        } else {
            let position = |p: usize| mesh.device_ids.iter().position(|id| usize::try_from(*id) == Ok(p));
            (0..partitions)
                .map(position)
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("a mesh without a device"))?
        };
        Ok(Self { mesh, sizes, of_partition })
    }

    fn axis(&self, axis: &AxisRef) -> Result<Axis> {
        let index = self.mesh.axes.iter().position(|a| a.name == axis.name);
        let index =
            index.ok_or_else(|| CompileError::invalid(format!("the mesh has no axis {}", &*axis.name)))?;
        let stride: usize = self.sizes[index + 1..].iter().product();
        let Some(part) = axis.sub_axis else { return Ok(Axis { size: self.sizes[index], stride }) };
        let whole = self.sizes[index];
        let taken = (usize::try_from(part.pre_size).ok()).zip(usize::try_from(part.size).ok());
        match taken.and_then(|(before, size)| Some((size, before.checked_mul(size)?))) {
            Some((size, taken)) if taken > 0 && whole.is_multiple_of(taken) => {
                Ok(Axis { size, stride: stride * (whole / taken) })
            }
            _ => Err(CompileError::invalid(format!(
                "axis {} of {whole} positions has no part {part:?}",
                &*axis.name
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
    use pjrt_stablehlo::ir::{DimensionSharding, MeshAxis, MeshReference, SubAxis};

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
            reduction: "SUM".into(),
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
        assert!(cut(mesh(&[("x", 4)], &[]), &[6], &[&[("x", None)]]).is_err());
        assert!(cut(mesh(&[("x", 4)], &[]), &[8], &[&[("z", None)]]).is_err());
        let part = SubAxis { pre_size: 3, size: 2 };
        assert!(cut(mesh(&[("x", 4)], &[]), &[8], &[&[("x", Some(part))]]).is_err());
        assert!(cut(mesh(&[("x", 0)], &[]), &[8], &[&[("x", None)]]).is_err());
    }
}
