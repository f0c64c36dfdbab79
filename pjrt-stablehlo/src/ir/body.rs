//! The arena that a function's operations live in.

use super::{
    BlockId, DictionaryAttribute, Location, Op, OpId, Operation, RegionId, Type, ValueId, ValueRange,
};

/// All values, operations, blocks and regions of one function.
///
/// Everything is addressed by ids; nothing is nested, so walking or dropping a body takes no recursion. The
/// function's own code is the entry block of [`Body::ROOT`]. Operations in nested regions may use values of all
/// enclosing regions (bodies of `while` and `if` capture), except where the operation is
/// [`Trait::IsolatedFromAbove`](super::Trait::IsolatedFromAbove).
#[derive(Clone, Debug)]
pub struct Body {
    values: Vec<Value>,
    ops: Vec<Operation>,
    blocks: Vec<Block>,
    regions: Vec<Region>,
}

/// A value: its type and where it comes from.
#[derive(Clone, Debug)]
pub struct Value {
    /// Type.
    pub ty: Type,
    /// Where the value comes from.
    pub definition: Definition,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// Argument `index` of a block.
    Argument {
        /// The block.
        block: BlockId,
        /// Position among the block's arguments.
        index: u32,
    },
    /// Result `index` of an operation.
    Result {
        /// The operation.
        op: OpId,
        /// Position among the operation's results.
        index: u32,
    },
}

/// A sequence of operations, the last of which is a terminator.
#[derive(Clone, Debug)]
pub struct Block {
    /// The region that the block belongs to.
    pub region: RegionId,
    /// Arguments.
    pub arguments: Vec<ValueId>,
    /// Operations in the order in which they run.
    pub ops: Vec<OpId>,
    /// Locations of the arguments: empty when nothing is known, otherwise one each.
    pub argument_locations: Vec<Location>,
}

/// A list of blocks. Regions of StableHLO have exactly one.
#[derive(Clone, Debug)]
pub struct Region {
    /// The operation that the region belongs to; `None` for the function's own.
    pub parent: Option<OpId>,
    /// Blocks.
    pub blocks: Vec<BlockId>,
}

impl Body {
    /// The function's own region.
    pub const ROOT: RegionId = RegionId(0);

    /// A body with an empty root region.
    pub fn new() -> Self {
        let root = Region { parent: None, blocks: Vec::new() };
        Body { values: Vec::new(), ops: Vec::new(), blocks: Vec::new(), regions: vec![root] }
    }

    /// The block in which the function starts; `None` in a declaration.
    pub fn entry(&self) -> Option<BlockId> {
        self.regions.first()?.blocks.first().copied()
    }

    /// The operation.
    pub fn op(&self, id: OpId) -> &Operation {
        &self.ops[id.index()]
    }

    /// The operation, to change it.
    pub fn op_mut(&mut self, id: OpId) -> &mut Operation {
        &mut self.ops[id.index()]
    }

    /// The value.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// The type of the value.
    pub fn ty(&self, id: ValueId) -> &Type {
        &self.values[id.index()].ty
    }

    /// Gives a value another type. Nothing is checked.
    pub fn set_type(&mut self, id: ValueId, ty: Type) {
        self.values[id.index()].ty = ty;
    }

    /// The block.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// The region.
    pub fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.index()]
    }

    /// Region `index` of an operation as its single block, which is what all StableHLO operations have.
    pub fn region_block(&self, op: OpId, index: usize) -> Option<&Block> {
        let region = *self.op(op).regions.get(index)?;
        self.region(region).blocks.first().map(|&block| self.block(block))
    }

    /// Number of operations, nested ones included.
    pub fn num_ops(&self) -> usize {
        self.ops.len()
    }

    /// Number of values.
    pub fn num_values(&self) -> usize {
        self.values.len()
    }

    /// Number of blocks.
    pub fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Number of regions.
    pub fn num_regions(&self) -> usize {
        self.regions.len()
    }

    /// All operations, those of nested regions included, in the order in which they were added: an operation comes
    /// before those of its regions in what readers make. [`Function::ops`](super::Function::ops) has the function's own.
    pub fn all_ops(&self) -> impl ExactSizeIterator<Item = (OpId, &Operation)> {
        self.ops.iter().enumerate().map(|(index, op)| (OpId(index as u32), op))
    }

    /// The operations of a block in the order in which they run, without those of nested regions.
    pub fn block_ops(
        &self,
        block: BlockId,
    ) -> impl DoubleEndedIterator<Item = (OpId, &Operation)> + ExactSizeIterator {
        self.block(block).ops.iter().map(|&op| (op, self.op(op)))
    }

    /// All values, in the order of their ids.
    pub fn values(&self) -> impl ExactSizeIterator<Item = (ValueId, &Value)> {
        self.values.iter().enumerate().map(|(index, value)| (ValueId(index as u32), value))
    }

    /// The operation that a value is a result of; `None` for block arguments.
    pub fn defining_op(&self, value: ValueId) -> Option<OpId> {
        match self.value(value).definition {
            Definition::Result { op, .. } => Some(op),
            Definition::Argument { .. } => None,
        }
    }

    /// Adds a region to an operation (or a further region of the function, for `None`).
    pub fn add_region(&mut self, parent: Option<OpId>) -> RegionId {
        let id = RegionId(arena_id(self.regions.len()));
        self.regions.push(Region { parent, blocks: Vec::new() });
        if let Some(parent) = parent {
            self.ops[parent.index()].regions.push(id);
        }
        id
    }

    /// Adds an empty block at the end of a region.
    pub fn add_block(&mut self, region: RegionId) -> BlockId {
        let id = BlockId(arena_id(self.blocks.len()));
        self.blocks.push(Block {
            region,
            arguments: Vec::new(),
            ops: Vec::new(),
            argument_locations: Vec::new(),
        });
        self.regions[region.index()].blocks.push(id);
        id
    }

    /// Adds an argument to a block.
    pub fn add_argument(&mut self, block: BlockId, ty: Type) -> ValueId {
        let id = ValueId(arena_id(self.values.len()));
        let arguments = &mut self.blocks[block.index()].arguments;
        self.values
            .push(Value { ty, definition: Definition::Argument { block, index: arguments.len() as u32 } });
        arguments.push(id);
        id
    }

    /// Says where a block argument comes from.
    pub fn set_argument_location(&mut self, argument: ValueId, location: Location) {
        let Definition::Argument { block, index } = self.value(argument).definition else { return };
        let block = &mut self.blocks[block.index()];
        if location.is_unknown() && block.argument_locations.is_empty() {
            return;
        }
        block.argument_locations.resize(block.arguments.len(), Location::UNKNOWN);
        block.argument_locations[index as usize] = location;
    }

    /// Adds an operation without regions at the end of a block. Nothing is checked.
    pub fn add_op(
        &mut self,
        block: BlockId,
        kind: Op,
        operands: impl Into<Box<[ValueId]>>,
        result_types: impl IntoIterator<Item = Type>,
        location: Location,
    ) -> OpId {
        let op = OpId(arena_id(self.ops.len()));
        let start = arena_id(self.values.len());
        for (index, ty) in result_types.into_iter().enumerate() {
            self.values.push(Value { ty, definition: Definition::Result { op, index: index as u32 } });
        }
        let results = ValueRange { start, end: arena_id(self.values.len()) };
        self.ops.push(Operation {
            kind,
            operands: operands.into(),
            results,
            regions: Vec::new(),
            attributes: DictionaryAttribute::default(),
            block,
            location,
        });
        self.blocks[block.index()].ops.push(op);
        op
    }

    /// Makes room for so many further operations and values, for readers that know how many follow.
    pub(crate) fn reserve(&mut self, ops: usize, values: usize) {
        self.ops.reserve(ops);
        self.values.reserve(values);
    }

    /// Gives results to an operation that was added without any, for readers that learn their types after the
    /// operation's regions.
    pub(crate) fn add_results(&mut self, op: OpId, types: impl IntoIterator<Item = Type>) {
        let start = arena_id(self.values.len());
        for (index, ty) in types.into_iter().enumerate() {
            self.values.push(Value { ty, definition: Definition::Result { op, index: index as u32 } });
        }
        self.ops[op.index()].results = ValueRange { start, end: arena_id(self.values.len()) };
    }
}

impl Default for Body {
    /// A body with an empty root region, as [`Body::new`] makes it.
    fn default() -> Self {
        Body::new()
    }
}

/// An id for the next element of an arena.
///
/// # Panics
/// With more than `u32::MAX` elements, which takes more memory than any reader's limits allow.
fn arena_id(len: usize) -> u32 {
    u32::try_from(len).expect("an arena holds at most u32::MAX elements")
}
