//! Partitions manual computations, whose bodies operate on parts along some axes of a mesh.

use super::{Part, Partitioner};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::mesh::{mesh_of, of_shardy, with_partial};
use pjrt_stablehlo::ir::{AxisRef, DimensionSharding, OpId, Operation, Str, TensorSharding, ValueId, ops};

impl<'m> Partitioner<'m> {
    /// Inlines the body of a manual computation. Its arrays are the parts along the manual axes. Along the other axes they are
    /// partitioned in the same way as the arrays outside.
    pub(super) fn manual(
        &mut self,
        id: OpId,
        op: &'m Operation,
        manual: &'m ops::ManualComputation,
    ) -> Result<()> {
        let (id, block) = self.region_block(id, 0)?;
        for ((argument, operand), sharding) in
            block.arguments.iter().zip(&op.operands).zip(&manual.in_shardings)
        {
            let part = match self.sharding_of(*operand, sharding)? {
                Some(outside) => {
                    let value = self.moved(*operand, &outside)?;
                    let inside = self.inside(*argument, sharding, &manual.manual_axes)?;
                    Part { value, layout: inside }
                }
                None => self.part(*operand)?,
            };
            self.parts.insert(*argument, part);
        }
        let inner = self.positions(manual)?;
        let outer = std::mem::replace(&mut self.emit.devices.array, inner);
        let results = self.block(id);
        let parts = results.and_then(|results| {
            let all = results.iter().zip(op.results).zip(&manual.out_shardings);
            all.map(|((value, result), sharding)| {
                let Some(outside) = self.sharding_of(result, sharding)? else { return self.part(*value) };
                let inside = self.inside(*value, sharding, &manual.manual_axes)?;
                Ok(Part { value: self.moved(*value, &inside)?, layout: outside })
            })
            .collect::<Result<Vec<_>>>()
        });
        self.emit.devices.array = outer;
        self.bind(op, parts?);
        Ok(())
    }

    /// Returns the layout of a value with this sharding; `None` if the value is not a tensor.
    fn sharding_of(&self, value: ValueId, sharding: &TensorSharding) -> Result<Option<Layout>> {
        let Some(dims) = self.dims(value) else { return Ok(None) };
        let said = with_partial(self.module, sharding, &dims, self.emit.devices.count())?;
        if let Some(said) = said.as_ref().filter(|said| !said.is_even(&dims)) {
            return Err(Error::unsupported(format!(
                "the sharding {said} splits an array {dims:?} of a manual computation into unequal parts",
                said = said.tiles()
            )));
        }
        Ok(Some(Layout::of(said.as_ref(), dims.len())))
    }

    /// Returns the layout of a value in the body along the axes that are not manual.
    fn inside(&self, value: ValueId, sharding: &TensorSharding, manual: &[Str]) -> Result<Layout> {
        let free =
            |axes: &[AxisRef]| axes.iter().filter(|axis| !manual.contains(&axis.name)).cloned().collect();
        let dim_shardings = sharding.dim_shardings.iter();
        let rest = TensorSharding {
            dim_shardings: dim_shardings
                .map(|dim| DimensionSharding { axes: free(&dim.axes), ..dim.clone() })
                .collect(),
            unreduced_axes: free(&sharding.unreduced_axes),
            ..sharding.clone()
        };
        let whole = self.sharding_of(value, &rest)?;
        Ok(whole.unwrap_or_else(|| Layout::whole(0)))
    }

    /// Returns, for each partition, the number of its position along the manual axes, combined with the number of its array
    /// outside.
    fn positions(&self, manual: &ops::ManualComputation) -> Result<Vec<usize>> {
        let outer = &self.emit.devices.array;
        let Some(first) = manual.in_shardings.iter().chain(&manual.out_shardings).next() else {
            return Ok(outer.clone());
        };
        let mesh = mesh_of(self.module, first)?;
        let axes: Box<[AxisRef]> =
            manual.manual_axes.iter().map(|name| AxisRef { name: name.clone(), sub_axis: None }).collect();
        let size = |axis: &AxisRef| mesh.axes.iter().find(|a| a.name == axis.name).map_or(1, |a| a.size);
        let size = axes.iter().map(size).product::<i64>();
        let size = usize::try_from(size)
            .map_err(|_| Error::invalid("the sizes of the manual axes are not positive"))?;
        let along = TensorSharding {
            dim_shardings: Box::new([DimensionSharding { axes, is_closed: true, priority: None }]),
            replicated_axes: Box::default(),
            unreduced_axes: Box::default(),
            ..first.clone()
        };
        let Some(sharding) = of_shardy(self.module, &along, &[size], outer.len())? else {
            return Ok(outer.clone());
        };
        Ok(outer.iter().zip(&sharding.position).map(|(array, position)| array * size + position[0]).collect())
    }
}
