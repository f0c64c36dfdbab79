//! Derives the shardings and manual axes of a manual region.

use super::region::ManualRegion;
use crate::axes::Axes;
use crate::cut::Cut;
use crate::error::{Error, Result};
use crate::hlo_sharding::{self, HloSharding, ManualSharding};
use crate::layout::Layout;
use pjrt_stablehlo::ir::{
    Attribute, AxisRef, Body, DimensionSharding, Function, MeshReference, Op, OpId, Operation, Str,
    TensorSharding, Type, ValueId, ops,
};

/// Returns the manual computation for a region.
///
/// # Errors
/// Returns an error if the shardings are malformed, contradict each other or the shapes of the parts, or are not along the axes
/// of one mesh.
pub(super) fn computation(
    function: &Function,
    region: &ManualRegion,
    partitions: usize,
) -> Result<ops::ManualComputation> {
    let body = &function.body;
    let arrays = |ids: &[OpId], is_input: bool| -> Result<Vec<BorderArray>> {
        ids.iter()
            .map(|id| {
                let op = body.op(*id);
                BorderArray::of(function, *id, is_input, partitions)
                    .map_err(|error| error.in_op(op.kind.name(), &op.location))
            })
            .collect()
    };
    let (inputs, outputs) = (arrays(&region.inputs, true)?, arrays(&region.outputs, false)?);
    let manual = manual_sharding(function, region, partitions)?;
    let first = body.op(*region.inputs.first().unwrap_or_else(|| &region.outputs[0]));
    let no_mesh = || {
        let why = "the shardings at the borders of this manual region are not along the axes of one mesh";
        Error::unsupported(why).in_op(first.kind.name(), &first.location)
    };
    let mut cuts: Vec<&Cut> = inputs.iter().chain(&outputs).flat_map(|array| array.layout.cuts()).collect();
    if let ManualSharding::Subgroups(cut) = &manual {
        cuts.push(cut);
    }
    let axes = Axes::of(&cuts, partitions).ok_or_else(no_mesh)?;
    let manual_axes = match &manual {
        ManualSharding::All => axes.names(),
        ManualSharding::Subgroups(cut) => axes.names_along(cut).ok_or_else(no_mesh)?,
    };
    let shardings = |arrays: &[BorderArray]| -> Result<Box<[TensorSharding]>> {
        let one = |array: &BorderArray| {
            let sharding = axes.sharding(&array.layout.dims).ok_or_else(no_mesh)?;
            let sharding = along(sharding, &manual_axes);
            let op = body.op(array.op);
            array.check_part(&sharding).map_err(|error| error.in_op(op.kind.name(), &op.location))?;
            Ok(sharding)
        };
        arrays.iter().map(one).collect()
    };
    let wholes = region.wholes.iter().map(|value| {
        let dims = vec![None; dims(body, *value)?.len()];
        axes.sharding(&dims).ok_or_else(no_mesh)
    });
    let wholes = wholes.collect::<Result<Vec<_>>>()?;
    let (in_shardings, out_shardings) = (shardings(&inputs)?, shardings(&outputs)?);
    let in_shardings = in_shardings.into_iter().chain(wholes).collect();
    Ok(ops::ManualComputation { in_shardings, out_shardings, manual_axes })
}

/// An array at the border of a manual region.
struct BorderArray {
    op: OpId,
    whole: Vec<usize>,
    part: Vec<usize>,
    layout: Layout,
}

impl BorderArray {
    fn of(function: &Function, id: OpId, is_input: bool, partitions: usize) -> Result<Self> {
        let body = &function.body;
        let op = body.op(id);
        let (whole, part) =
            if is_input { (op.operand(0), op.result()) } else { (op.result(), op.operand(0)) };
        let (whole, part) = (dims(body, whole)?, dims(body, part)?);
        let text = if is_input { stated(function, op.operand(0)) } else { text(op) };
        let sharding = match text.map(|text| hlo_sharding::parse(text, &whole, partitions)).transpose()? {
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
        Ok(Self { op: id, whole, part, layout })
    }

    /// Checks that the part has the shape that this sharding along the manual axes describes.
    fn check_part(&self, sharding: &TensorSharding) -> Result<()> {
        let MeshReference::Mesh(mesh) = &sharding.mesh else {
            return Err(Error::internal("the mesh of a manual region has a name"));
        };
        let size = |axis: &AxisRef| mesh.axes.iter().find(|a| a.name == axis.name).map_or(1, |a| a.size);
        let parts = |dim: &DimensionSharding| dim.axes.iter().map(size).product::<i64>() as usize;
        let parts: Vec<usize> = sharding.dim_shardings.iter().map(parts).collect();
        let fits =
            |(whole, (part, parts)): (&usize, (&usize, &usize))| part.checked_mul(*parts) == Some(*whole);
        if self.whole.len() == self.part.len()
            && self.whole.iter().zip(self.part.iter().zip(&parts)).all(fits)
        {
            return Ok(());
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

/// Returns the partitions among which a region is manual, as its inputs and the annotations of its outputs state. It is manual
/// along all axes if they do not state anything.
fn manual_sharding(function: &Function, region: &ManualRegion, partitions: usize) -> Result<ManualSharding> {
    let mut found: Option<ManualSharding> = None;
    for id in region.inputs.iter().chain(&region.outputs) {
        let op = function.body.op(*id);
        let text = if region.inputs.contains(id) { text(op) } else { stated(function, op.operand(0)) };
        let manual = text.map(|text| hlo_sharding::parse_manual(text, partitions)).transpose();
        let manual = manual.map_err(|error| error.in_op(op.kind.name(), &op.location))?.flatten();
        match (&found, manual) {
            (_, None) => {}
            (None, manual) => found = manual,
            (Some(found), Some(manual)) if *found == manual => {}
            (Some(_), Some(_)) => {
                let why = "the part of this custom call is manual along other axes than another part of the same region";
                return Err(Error::unsupported(why).in_op(op.kind.name(), &op.location));
            }
        }
    }
    Ok(found.unwrap_or(ManualSharding::All))
}

/// Returns whether an operation annotates a part of an array as manual, which has no effect in a manual computation.
pub(super) fn annotates_part(op: &Operation, partitions: usize) -> Result<bool> {
    let Op::CustomCall(call) = &op.kind else { return Ok(false) };
    if &*call.call_target_name != "Sharding" || op.operands.len() != 1 || op.results.len() != 1 {
        return Ok(false);
    }
    let manual = text(op).map(|text| hlo_sharding::parse_manual(text, partitions)).transpose();
    let manual = manual.map_err(|error| error.in_op(op.kind.name(), &op.location))?;
    Ok(manual.flatten().is_some())
}

/// Returns the text of the sharding that the program states for a value: at the operation that makes it, or at the argument of
/// the function.
fn stated(function: &Function, value: ValueId) -> Option<&str> {
    let body = &function.body;
    if let Some(op) = body.defining_op(value) {
        return text(body.op(op));
    }
    let index = function.arguments().iter().position(|argument| *argument == value)?;
    function.argument_attribute(index, "mhlo.sharding").and_then(Attribute::as_str)
}

fn text(op: &Operation) -> Option<&str> {
    op.attributes.get("mhlo.sharding").and_then(Attribute::as_str)
}

/// Returns the dimensions of a tensor of static shape.
fn dims(body: &Body, value: ValueId) -> Result<Vec<usize>> {
    let ty = body.ty(value);
    crate::partition::dims(body, value).filter(|_| matches!(ty, Type::Tensor(_))).ok_or_else(|| {
        Error::unsupported(format!("only tensors of static shape can be divided into parts, found {ty}"))
    })
}
