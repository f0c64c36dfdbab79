//! Arrays that are split into unequal parts where they enter and leave the program.
//!
//! Their shards are equally large, as XLA's are: the last ones reach beyond the array. Inside of the program, a dimension that has
//! no equal parts is not split.

use super::{Part, Partitioner, ints};
use crate::error::Result;
use crate::layout::Layout;
use pjrt_stablehlo::ir::ValueId;

impl Partitioner<'_> {
    /// Adds a parameter of the partitioned program whose shards lie so. Its part inside of the program is joined from them along
    /// dimensions of unequal parts.
    pub(super) fn parameter(&mut self, value: ValueId, layout: &Layout) -> Result<()> {
        let Some(sizes) = self.unequal_sizes(value, layout) else {
            return self.arguments(&[value], std::slice::from_ref(layout));
        };
        let even = layout.evenly(&sizes);
        let padded = layout.padded(&sizes);
        let shard: Vec<usize> = layout.parts_of(&padded);
        let ty = self.function.body.ty(value).as_tensor().map(|ty| ty.with_dims(ints(&shard)));
        let ty = ty.map_or_else(|| self.function.body.ty(value).clone(), Into::into);
        let argument = self.emit.body.add_argument(self.emit.block, ty);
        let joined = self.emit.reshard(argument, layout, &even)?;
        let value_of_part = self.emit.trimmed(joined, &even.parts_of(&sizes))?;
        self.parts.insert(value, Part { value: value_of_part, layout: even });
        Ok(())
    }

    /// Returns the shard of a result that is to lie so.
    pub(super) fn result(&mut self, value: ValueId, layout: &Layout) -> Result<ValueId> {
        let Some(sizes) = self.unequal_sizes(value, layout) else { return self.moved(value, layout) };
        let even = layout.evenly(&sizes);
        let part = self.moved(value, &even)?;
        let padded = self.emit.padded(part, &even.parts_of(&layout.padded(&sizes)))?;
        self.emit.reshard(padded, &even, layout)
    }

    /// The sizes of a value of the whole program if it has no equal parts in this layout.
    fn unequal_sizes(&self, value: ValueId, layout: &Layout) -> Option<Vec<usize>> {
        self.dims(value).filter(|sizes| layout.evenly(sizes) != *layout)
    }
}
