//! Derives the shardings and manual axes of a manual region.

use super::Border;
use super::level::{Level, stated, text};
use super::region::ManualRegion;
use crate::axes::Axes;
use crate::cut::Cut;
use crate::error::{Error, Result};
use crate::hlo_sharding::{self, HloSharding};
use crate::layout::Layout;
use pjrt_stablehlo::ir::{
    AxisRef, Body, DimensionSharding, Function, MeshReference, Op, OpId, Operation, Str, TensorSharding,
    Type, ValueId, ops,
};

/// The manual computation for a region.
pub(super) struct Computation {
    pub(super) op: ops::ManualComputation,
    /// The level of the operations in the region.
    pub(super) level: Level,
    /// For each array at the border into the region, its dimensions with padding, such that the parts are equal.
    pub(super) inputs: Vec<Vec<usize>>,
    /// For each array at the border out of the region, its dimensions with padding.
    pub(super) outputs: Vec<Vec<usize>>,
}

/// Returns the manual computation for a region at a level, with the axes that [`axes`] returns for the outermost region.
///
/// # Errors
/// Returns an error if the shardings are malformed, contradict each other or the shapes of the parts, or are not along the axes.
pub(super) fn computation(
    function: &Function,
    region: &ManualRegion,
    outer: &Level,
    axes: &Axes,
) -> Result<Computation> {
    let body = &function.body;
    let level = level_of(function, region, outer)?;
    let no_mesh = || no_mesh(body, region);
    let names = |level: &Level| axes.names_of_groups(level.groups()).ok_or_else(no_mesh);
    let around = names(outer)?;
    let manual_axes: Box<[Str]> = names(&level)?.into_iter().filter(|name| !around.contains(name)).collect();
    let arrays = |ids: &[OpId]| -> Result<(Vec<TensorSharding>, Vec<Vec<usize>>)> {
        let one = |id: &OpId| {
            let array = BorderArray::of(function, *id, outer.partitions())?;
            let sharding = along(axes.sharding(&array.layout.dims).ok_or_else(no_mesh)?, &manual_axes);
            let op = body.op(*id);
            let padded =
                array.padded(&sharding).map_err(|error| error.in_op(op.kind.name(), &op.location))?;
            Ok((sharding, padded))
        };
        Ok(ids.iter().map(one).collect::<Result<Vec<_>>>()?.into_iter().unzip())
    };
    let unsplit = |rank: usize| axes.sharding(&vec![None; rank]).ok_or_else(no_mesh);
    let is_token = |value: &ValueId| body.ty(*value).is_token();
    let rank =
        |value: &ValueId| if is_token(value) { Ok(0) } else { dims(body, *value).map(|dims| dims.len()) };
    let wholes = region.wholes.iter().map(|value| unsplit(rank(value)?));
    let exchanged = |values: &[ValueId]| -> Result<Vec<TensorSharding>> {
        let one = |value: &ValueId| match is_token(value) {
            true => unsplit(0),
            false => Ok(of_positions(unsplit(1 + rank(value)?)?, &manual_axes)),
        };
        values.iter().map(one).collect()
    };
    let ((in_shardings, inputs), (out_shardings, outputs)) =
        (arrays(&region.inputs)?, arrays(&region.outputs)?);
    let wholes = wholes.collect::<Result<Vec<_>>>()?;
    let in_shardings = in_shardings.into_iter().chain(wholes).chain(exchanged(&region.taken)?).collect();
    let out_shardings = out_shardings.into_iter().chain(exchanged(&region.given)?).collect();
    let op = ops::ManualComputation { in_shardings, out_shardings, manual_axes };
    Ok(Computation { op, level, inputs, outputs })
}

/// Returns the axes along which the arrays at the borders of a region and of those in it are split.
///
/// # Errors
/// Returns an error if a sharding is malformed, or if there are no such axes.
pub(super) fn axes(function: &Function, region: &ManualRegion, outer: &Level) -> Result<Axes> {
    let body = &function.body;
    let mut layouts = vec![];
    let mut levels = vec![level_of(function, region, outer)?];
    let mut work: Vec<OpId> = [&region.inputs[..], &region.ops, &region.outputs].concat();
    work.reverse();
    while let Some(id) = work.pop() {
        let op = body.op(id);
        if let Some(border) = Border::of(op) {
            layouts.push(BorderArray::of(function, id, outer.partitions())?.layout);
            let part = if border == Border::ToShard { text(op) } else { stated(function, op.operand(0)) };
            levels.extend(outer.stated_by(part, op)?);
        }
        let blocks = op.regions.iter().flat_map(|region| &body.region(*region).blocks);
        work.extend(blocks.flat_map(|block| &body.block(*block).ops));
    }
    let cuts: Vec<&Cut> = layouts.iter().flat_map(Layout::cuts).collect();
    let groups: Vec<&Cut> = levels.iter().map(Level::groups).collect();
    Axes::of(&cuts, &groups, outer.partitions()).ok_or_else(|| no_mesh(body, region))
}

fn no_mesh(body: &Body, region: &ManualRegion) -> Error {
    let why = "the shardings at the borders of this manual region are not along the axes of one mesh";
    let first = region.inputs.iter().chain(&region.outputs).chain(&region.ops).next();
    match first.map(|op| body.op(*op)) {
        Some(op) => Error::unsupported(why).in_op(op.kind.name(), &op.location),
        None => Error::unsupported(why),
    }
}

/// An array at the border of a manual region.
struct BorderArray {
    whole: Vec<usize>,
    part: Vec<usize>,
    layout: Layout,
}

impl BorderArray {
    fn of(function: &Function, id: OpId, partitions: usize) -> Result<Self> {
        let op = function.body.op(id);
        Self::of_op(function, op, partitions).map_err(|error| error.in_op(op.kind.name(), &op.location))
    }

    fn of_op(function: &Function, op: &Operation, partitions: usize) -> Result<Self> {
        let body = &function.body;
        let is_input = Border::of(op) == Some(Border::ToShard);
        let (whole, part) =
            if is_input { (op.operand(0), op.result()) } else { (op.result(), op.operand(0)) };
        let (whole, part) = (dims(body, whole)?, dims(body, part)?);
        let text = if is_input { stated(function, op.operand(0)) } else { text(op) };
        let parse = |text| hlo_sharding::parse_in_region(text, &whole, partitions);
        let sharding = match text.map(parse).transpose()? {
            Some(HloSharding::Tiled(sharding)) => Some(sharding),
            Some(HloSharding::Replicated) => None,
            None | Some(HloSharding::Unknown) if whole == part => None,
            None | Some(HloSharding::Unknown) => {
                return Err(Error::unsupported(format!(
                    "the sharding by which arrays {whole:?} have parts {part:?} is unknown: expected an mhlo.sharding on \
                     the operation or the argument that is the whole array"
                )));
            }
        };
        let layout = Layout::of(sharding.as_ref(), whole.len());
        Ok(Self { whole, part, layout })
    }

    /// Returns the dimensions of the array with the padding that makes its parts equal.
    ///
    /// # Errors
    /// Returns an error if the part does not have the shape that this sharding along the manual axes describes.
    fn padded(&self, sharding: &TensorSharding) -> Result<Vec<usize>> {
        let MeshReference::Mesh(mesh) = &sharding.mesh else {
            return Err(Error::internal("the mesh of a manual region has a name"));
        };
        let size = |axis: &AxisRef| mesh.axes.iter().find(|a| a.name == axis.name).map_or(1, |a| a.size);
        let parts = |dim: &DimensionSharding| dim.axes.iter().map(size).product::<i64>() as usize;
        let parts: Vec<usize> = sharding.dim_shardings.iter().map(parts).collect();
        let fits = |(whole, (part, parts)): (&usize, (&usize, &usize))| *part == whole.div_ceil(*parts);
        if self.whole.len() == self.part.len()
            && self.whole.iter().zip(self.part.iter().zip(&parts)).all(fits)
        {
            return Ok(self.part.iter().zip(parts).map(|(part, parts)| part * parts).collect());
        }
        Err(Error::invalid(format!(
            "the manual axes divide the dimensions {:?} of an array into {parts:?} parts, but the manual region uses parts with \
             the dimensions {:?}",
            self.whole, self.part
        )))
    }
}

/// Returns the sharding along the manual axes only. The others are left to propagation.
fn along(sharding: TensorSharding, manual: &[Str]) -> TensorSharding {
    let dim = |dim: &DimensionSharding| DimensionSharding {
        axes: dim.axes.iter().filter(|axis| manual.contains(&axis.name)).cloned().collect(),
        is_closed: dim.is_closed && dim.axes.iter().all(|axis| manual.contains(&axis.name)),
        priority: None,
    };
    TensorSharding { dim_shardings: sharding.dim_shardings.iter().map(dim).collect(), ..sharding }
}

/// Returns the sharding of an array that has one more dimension, the first, along which each position along the manual axes has a
/// part of its own. Splits along the other axes are left to propagation.
fn of_positions(sharding: TensorSharding, manual: &[Str]) -> TensorSharding {
    let axis = |name: &Str| AxisRef { name: name.clone(), sub_axis: None };
    let mut dim_shardings = sharding.dim_shardings;
    dim_shardings.iter_mut().for_each(|dim| dim.is_closed = false);
    dim_shardings[0] =
        DimensionSharding { axes: manual.iter().map(axis).collect(), is_closed: true, priority: None };
    TensorSharding { dim_shardings, ..sharding }
}

/// Returns the level of a region, as its inputs and the annotations of its outputs state it. It is manual along all axes if they
/// do not state anything.
fn level_of(function: &Function, region: &ManualRegion, outer: &Level) -> Result<Level> {
    let body = &function.body;
    let mut found: Option<Level> = None;
    for id in region.inputs.iter().chain(&region.outputs) {
        let op = body.op(*id);
        let text = if region.inputs.contains(id) { text(op) } else { stated(function, op.operand(0)) };
        let level = outer.stated_by(text, op)?;
        match (&found, level) {
            (_, None) => {}
            (None, level) => found = level,
            (Some(found), Some(level)) if *found == level => {}
            (Some(_), Some(_)) => {
                let why = "the part of this custom call is manual along other axes than another part of the same region";
                return Err(Error::unsupported(why).in_op(op.kind.name(), &op.location));
            }
        }
    }
    Ok(found.unwrap_or_else(|| outer.of_single_partitions()))
}

/// Returns whether an operation annotates a part of an array as manual, which has no effect in a manual computation.
pub(super) fn annotates_part(op: &Operation, level: &Level) -> Result<bool> {
    let Op::CustomCall(call) = &op.kind else { return Ok(false) };
    if &*call.call_target_name != "Sharding" || op.operands.len() != 1 || op.results.len() != 1 {
        return Ok(false);
    }
    Ok(level.stated_by(text(op), op)?.is_some())
}

/// Returns the dimensions of a tensor of static shape.
fn dims(body: &Body, value: ValueId) -> Result<Vec<usize>> {
    let ty = body.ty(value);
    crate::partition::dims(body, value).filter(|_| matches!(ty, Type::Tensor(_))).ok_or_else(|| {
        Error::unsupported(format!("only tensors of static shape can be divided into parts, found {ty}"))
    })
}
