//! An operation of a body.

use super::{BlockId, DictionaryAttribute, Location, Op, OpInfo, RegionId, ValueId, ValueRange, Variadicity};

/// An operation of a [`Body`](super::Body).
#[derive(Clone, Debug)]
pub struct Operation {
    /// The kind of operation, with its typed attributes.
    pub kind: Op,
    /// The values that the operation uses.
    pub operands: Box<[ValueId]>,
    /// The values that the operation defines.
    pub results: ValueRange,
    /// The regions of the operation.
    pub regions: Vec<RegionId>,
    /// The discardable attributes, such as `mhlo.sharding` or `sdy.sharding`. [`Operation::kind`] contains the
    /// attributes of the operation's definition.
    pub attributes: DictionaryAttribute,
    /// The block that contains the operation.
    pub block: BlockId,
    /// The place in the source program that the operation comes from.
    pub location: Location,
}

impl Operation {
    /// Returns the op table's entry for the operation: its name, operands, traits and so on.
    pub fn info(&self) -> &'static OpInfo {
        self.kind.info()
    }

    /// Returns the operand at position `index`, counted over all operand groups.
    ///
    /// # Panics
    /// Panics if the operation has fewer operands. The verifier checks their number against the op table.
    pub fn operand(&self, index: usize) -> ValueId {
        self.operands[index]
    }

    /// Returns the first result.
    ///
    /// # Panics
    /// Panics if the operation has no result. The verifier checks the number of results against the op table.
    pub fn result(&self) -> ValueId {
        self.results.get(0).expect("operations on which `result` is called have a result")
    }

    /// Returns the operands of group number `group` in the op table, such as 0 (`inputs`) or 1 (`init_values`) for
    /// `reduce`.
    ///
    /// If several groups are variadic, they have equal lengths.
    ///
    /// # Panics
    /// Panics if the op table has no such group.
    pub fn operand_group(&self, group: usize) -> &[ValueId] {
        let groups = self.info().operands;
        let variadic = groups.iter().filter(|spec| spec.variadicity == Variadicity::Variadic).count();
        let fixed = groups.len() - variadic;
        let each = self.operands.len().saturating_sub(fixed).checked_div(variadic).unwrap_or(0);
        let len = |variadicity| if variadicity == Variadicity::Variadic { each } else { 1 };
        let start: usize = groups[..group].iter().map(|spec| len(spec.variadicity)).sum();
        self.operands.get(start..start + len(groups[group].variadicity)).unwrap_or_default()
    }
}
