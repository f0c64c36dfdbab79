//! Operations and regions that are being read.

use crate::ir::{Attribute, BlockId, DictionaryAttribute, Location, OpCode, OpId, RegionId, Str, Type};

/// A name of results, and its position: `%0` or `%0:2`.
pub(super) struct ResultName<'a> {
    pub(super) name: &'a str,
    pub(super) at: usize,
    pub(super) count: u32,
}

/// An operation that is being read. Its operands have been read; its regions and types may follow.
pub(super) struct Pending<'a> {
    /// The byte at which the operation begins.
    pub(super) start: usize,
    pub(super) op: OpId,
    pub(super) names: Vec<ResultName<'a>>,
    /// The full name.
    pub(super) name: &'a str,
    /// The entry of the op table.
    pub(super) code: Option<OpCode>,
    /// The attributes that are known to be inherent.
    pub(super) properties: Vec<(Str, Attribute)>,
    /// The attributes that may be inherent or discardable.
    pub(super) dictionary: DictionaryAttribute,
    /// The types, if they have been read.
    pub(super) types: Option<Types>,
    pub(super) tail: Tail,
    /// The arguments of a loop's second region.
    pub(super) loop_arguments: Vec<BlockArgument<'a>>,
}

/// The syntax after a region of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// `, {region}` or `)`, followed by attributes and types.
    Generic,
    /// `do {region}`: the current region is a loop's condition.
    Do,
    /// Attributes and types.
    Types,
    /// The types of a scan with this number of carries.
    ScanTypes { carries: i64 },
    /// Nothing.
    Nothing,
}

/// The types of an operation's operands and results.
#[derive(Default)]
pub(super) struct Types {
    /// The types of the operands; `None` if the text does not contain them.
    pub(super) operands: Option<Vec<Type>>,
    pub(super) results: Vec<Type>,
}

impl<'a> Pending<'a> {
    /// Sets an inherent attribute.
    pub(super) fn set(&mut self, name: &str, value: Attribute) {
        self.properties.push((name.into(), value));
    }
}

/// A region that is being read.
pub(super) struct Frame<'a> {
    /// The operation that the region belongs to; `None` for the function's own region.
    pub(super) pending: Option<Pending<'a>>,
    pub(super) region: RegionId,
    /// The block to which operations are added.
    pub(super) block: Option<BlockId>,
}

/// An argument of a block.
#[derive(Clone)]
pub(super) struct BlockArgument<'a> {
    pub(super) name: &'a str,
    /// The position of the name.
    pub(super) at: usize,
    pub(super) ty: Type,
    pub(super) location: Location,
}
