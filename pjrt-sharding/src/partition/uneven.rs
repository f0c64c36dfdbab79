//! Arrays with unequal parts among the parameters and results of the program.
//!
//! Their shards have equal dimensions, as in XLA: the last shards reach beyond the array. Inside the program, a dimension
//! without equal parts is not split.

use super::emit::{padded, trimmed};
use super::{Part, Partitioner, ints};
use crate::error::Result;
use crate::layout::Layout;
use pjrt_stablehlo::ir::ValueId;

impl Partitioner<'_> {
    /// Adds a parameter of the partitioned program with shards of this layout. Along dimensions without equal parts, the shards
    /// are joined to the array.
    pub(super) fn parameter(&mut self, value: ValueId, layout: &Layout) -> Result<()> {
        let Some(dims) = self.unequal_dims(value, layout) else {
            return self.arguments(&[value], std::slice::from_ref(layout));
        };
        let even = layout.evenly(&dims);
        let shard = ints(&layout.parts_of(&layout.padded(&dims)));
        let ty = self.function.body.ty(value);
        let ty = ty.as_tensor().map_or_else(|| ty.clone(), |ty| ty.with_dims(shard).into());
        let block = self.emit.builder.block();
        let argument = self.emit.builder.body_mut().add_argument(block, ty);
        let joined = self.emit.reshard(argument, layout, &even)?;
        let part = trimmed(&mut self.emit.builder, joined, &even.parts_of(&dims));
        self.parts.insert(value, Part { value: part, layout: even });
        Ok(())
    }

    /// Returns the shard of a result in this layout.
    pub(super) fn result(&mut self, value: ValueId, layout: &Layout) -> Result<ValueId> {
        let Some(dims) = self.unequal_dims(value, layout) else { return self.moved(value, layout) };
        let even = layout.evenly(&dims);
        let part = self.moved(value, &even)?;
        let padded = padded(&mut self.emit.builder, part, &even.parts_of(&layout.padded(&dims)))?;
        self.emit.reshard(padded, &even, layout)
    }

    /// Returns the dimensions of a value of the whole program if this layout does not split it into equal parts.
    fn unequal_dims(&self, value: ValueId, layout: &Layout) -> Option<Vec<usize>> {
        self.dims(value).filter(|dims| layout.evenly(dims) != *layout)
    }
}
