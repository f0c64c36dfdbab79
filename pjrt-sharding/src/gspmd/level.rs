//! The levels of operations of a program for XLA's GSPMD partitioner.

use crate::cut::Cut;
use crate::error::Result;
use crate::hlo_sharding;
use pjrt_stablehlo::ir::{Attribute, Function, Operation, ValueId};

/// The level of an operation: the partitions that share its arrays. Outside of manual regions, all partitions share whole arrays.
/// In a manual region, the partitions at each position along its manual axes share parts of their own. In a region in another one,
/// these have parts again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Level(Cut);

impl Level {
    /// Returns the level of operations on whole arrays.
    pub(super) fn whole(partitions: usize) -> Self {
        Self(Cut { parts: 1, of_partition: vec![0; partitions].into() })
    }

    /// Returns the level at which each partition has parts of its own.
    pub(super) fn of_single_partitions(&self) -> Self {
        Self(Cut::single_partitions(self.partitions()))
    }

    pub(super) fn is_whole(&self) -> bool {
        self.0.parts == 1
    }

    pub(super) fn partitions(&self) -> usize {
        self.0.of_partition.len()
    }

    /// Returns the partitions that share arrays: those in the same part of this split.
    pub(super) fn groups(&self) -> &Cut {
        &self.0
    }

    /// Returns the level that a sharding in the program states, which has the same number of partitions; `None` if it states none.
    /// An error is in the operation `op`.
    pub(super) fn stated_by(&self, text: Option<&str>, op: &Operation) -> Result<Option<Self>> {
        let manual = text.map(|text| hlo_sharding::parse_manual(text, self.partitions())).transpose();
        let manual = manual.map_err(|error| error.in_op(op.kind.name(), &op.location))?;
        Ok(manual.flatten().map(Self))
    }
}

/// Returns the text of the sharding that the program states for a value: at the operation that makes it, or at the argument of
/// the function.
pub(super) fn stated(function: &Function, value: ValueId) -> Option<&str> {
    let body = &function.body;
    if let Some(op) = body.defining_op(value) {
        return text(body.op(op));
    }
    let index = function.arguments().iter().position(|argument| *argument == value)?;
    function.argument_attribute(index, "mhlo.sharding").and_then(Attribute::as_str)
}

/// Returns the text of the sharding of an operation's result.
pub(super) fn text(op: &Operation) -> Option<&str> {
    op.attributes.get("mhlo.sharding").and_then(Attribute::as_str)
}
