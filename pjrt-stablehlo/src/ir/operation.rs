//! An operation of a body.

use super::{BlockId, DictionaryAttribute, Location, Op, OpInfo, RegionId, ValueId, ValueRange, Variadicity};

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What the operation does, with its typed attributes.
    pub kind: Op,
    /// Values that the operation uses.
    pub operands: Box<[ValueId]>,
    /// Values that the operation defines.
    pub results: ValueRange,
    /// Regions that the operation has.
    pub regions: Vec<RegionId>,
    /// Attributes beyond those that the operation's definition has, such as `mhlo.sharding` or `sdy.sharding`.
    pub attributes: DictionaryAttribute,
    /// The block that the operation is in.
    pub block: BlockId,
    /// Where in the source program the operation comes from.
    pub location: Location,
}

impl Operation {
    /// The table's entry for the operation: name, operands, traits, ...
    pub fn info(&self) -> &'static OpInfo {
        self.kind.info()
    }

    /// Operand `index`.
    ///
    /// # Panics
    /// When the operation has fewer operands; the verifier has checked the number against the table.
    pub fn operand(&self, index: usize) -> ValueId {
        self.operands[index]
    }

    /// The first result.
    ///
    /// # Panics
    /// When the operation has none; the verifier has checked the number against the table.
    pub fn result(&self) -> ValueId {
        self.results.get(0).expect("the operation has a result")
    }

    /// The operands of group `group` of the table's entry, such as `inputs` (0) or `init_values` (1) of `reduce`.
    ///
    /// Where several groups are variadic, they are equally long.
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
