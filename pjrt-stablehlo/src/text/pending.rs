//! Operations and regions that are being read.

use crate::ir::{Attribute, BlockId, DictionaryAttribute, Location, OpCode, OpId, RegionId, Str, Type};

/// A name of results, and where it is: `%0` or `%0:2`.
pub(super) struct ResultName<'a> {
    pub(super) name: &'a str,
    pub(super) at: usize,
    pub(super) count: u32,
}

/// An operation that has been begun: its operands are known, its regions and types may follow.
pub(super) struct Pending<'a> {
    /// Where the operation begins.
    pub(super) start: usize,
    pub(super) op: OpId,
    pub(super) names: Vec<ResultName<'a>>,
    /// Full name.
    pub(super) name: &'a str,
    /// The entry of the op table.
    pub(super) code: Option<OpCode>,
    /// Attributes that are the operation's own.
    pub(super) properties: Vec<(Str, Attribute)>,
    /// Attributes that may be its own or not.
    pub(super) dictionary: DictionaryAttribute,
    /// Types, where they have been read.
    pub(super) types: Option<Types>,
    pub(super) tail: Tail,
    /// Arguments of a loop's second region.
    pub(super) loop_arguments: Vec<BlockArgument<'a>>,
}

/// What follows a region of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// `, {region}` or `)`, then attributes and types.
    Generic,
    /// `do {region}`: the region is a loop's condition.
    Do,
    /// Attributes and types.
    Types,
    /// Types of a scan with so many carries.
    ScanTypes { carries: i64 },
    /// Nothing.
    Nothing,
}

/// Types of an operation's operands and results.
#[derive(Default)]
pub(super) struct Types {
    /// `None` where the text does not say them.
    pub(super) operands: Option<Vec<Type>>,
    pub(super) results: Vec<Type>,
}

impl<'a> Pending<'a> {
    /// Sets an attribute that is the operation's own.
    pub(super) fn set(&mut self, name: &str, value: Attribute) {
        self.properties.push((name.into(), value));
    }
}

/// A region that is being read.
pub(super) struct Frame<'a> {
    /// The operation that the region belongs to; `None` for the function's own.
    pub(super) pending: Option<Pending<'a>>,
    pub(super) region: RegionId,
    /// The block that operations are added to.
    pub(super) block: Option<BlockId>,
}

/// An argument of a block.
#[derive(Clone)]
pub(super) struct BlockArgument<'a> {
    pub(super) name: &'a str,
    /// Where the name is.
    pub(super) at: usize,
    pub(super) ty: Type,
    pub(super) location: Location,
}
