//! The manual computations that take the place of calls.

use crate::axes::Axes;
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::mesh::mesh_of;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{DimensionSharding, MeshReference, Reduction, Str, TensorSharding, ops};

/// The part of the mesh that a manual computation leaves to the operations in it.
#[derive(Clone)]
pub(super) struct Within {
    mesh: MeshReference,
    /// The axes of the mesh that are manual neither in this computation nor in those around it.
    free: Vec<Str>,
}

impl Within {
    pub(super) fn new(
        module: &Module,
        manual: &ops::ManualComputation,
        outer: Option<&Self>,
    ) -> Result<Option<Self>> {
        let Some(first) = manual.in_shardings.iter().chain(&manual.out_shardings).next() else {
            return Ok(outer.cloned());
        };
        let axes: Vec<Str> = match outer {
            Some(outer) => outer.free.clone(),
            None => mesh_of(module, first)?.axes.iter().map(|axis| axis.name.clone()).collect(),
        };
        let free = axes.into_iter().filter(|axis| !manual.manual_axes.contains(axis)).collect();
        Ok(Some(Self { mesh: first.mesh.clone(), free }))
    }
}

/// Returns a manual computation along all axes of a mesh, for arrays with these layouts.
pub(super) fn computation(
    inputs: &[Layout],
    outputs: &[Layout],
    devices: &Devices,
) -> Result<ops::ManualComputation> {
    let cuts: Vec<_> = inputs.iter().chain(outputs).flat_map(Layout::cuts).collect();
    let no_mesh = || {
        Error::unsupported(
            "the shardings that the host states for this call are not along the axes of one mesh",
        )
    };
    let axes = Axes::of(&cuts, &[], devices.count()).ok_or_else(no_mesh)?;
    let shardings = |layouts: &[Layout]| -> Result<Box<[TensorSharding]>> {
        layouts.iter().map(|layout| axes.sharding(&layout.dims).ok_or_else(no_mesh)).collect()
    };
    Ok(ops::ManualComputation {
        in_shardings: shardings(inputs)?,
        out_shardings: shardings(outputs)?,
        manual_axes: axes.names(),
    })
}

/// Returns a manual computation along the axes that are not manual in the computation around it. It cannot split its arrays,
/// because the host does not know the manual axes.
pub(super) fn within_another(
    within: &Within,
    inputs: &[Layout],
    outputs: &[Layout],
) -> Result<ops::ManualComputation> {
    let whole = |layout: &Layout| {
        if !layout.is_whole() {
            let why = "the host's sharding splits arrays of this call, which is in a manual computation and \
                       operates on parts already";
            return Err(Error::unsupported(why));
        }
        let uncut = DimensionSharding { axes: Box::default(), is_closed: true, priority: None };
        Ok(TensorSharding {
            mesh: within.mesh.clone(),
            dim_shardings: vec![uncut; layout.dims.len()].into(),
            replicated_axes: Box::default(),
            unreduced_axes: Box::default(),
            reduction: Reduction::Sum,
        })
    };
    Ok(ops::ManualComputation {
        in_shardings: inputs.iter().map(whole).collect::<Result<_>>()?,
        out_shardings: outputs.iter().map(whole).collect::<Result<_>>()?,
        manual_axes: within.free.clone().into(),
    })
}
