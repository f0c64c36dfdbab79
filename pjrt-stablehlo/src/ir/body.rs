//! The arena that stores a function's operations.

use super::{
    BlockId, DictionaryAttribute, ElementType, Location, Op, OpId, Operation, RegionId, Type, ValueId,
    ValueRange,
};

/// All values, operations, blocks and regions of one function.
///
/// Each item refers to others by id, and none contains another, so a body is walked or dropped without recursion. Methods
/// panic if an id is not one of this body's ids. The function's code is the entry block of [`Body::ROOT`]. Operations in a
/// nested region may use values of all enclosing regions (the regions of `while` and `if` do), unless the operation that has
/// the region is [`Trait::IsolatedFromAbove`](super::Trait::IsolatedFromAbove).
#[derive(Clone, Debug)]
pub struct Body {
    values: Vec<Value>,
    ops: Vec<Operation>,
    blocks: Vec<Block>,
    regions: Vec<Region>,
}

/// A value: its type and its definition.
#[derive(Clone, Debug)]
pub struct Value {
    /// The type.
    pub ty: Type,
    /// The block argument or result that defines the value.
    pub definition: Definition,
}

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// Argument `index` of a block.
    Argument {
        /// The block.
        block: BlockId,
        /// The position among the block's arguments.
        index: u32,
    },
    /// Result `index` of an operation.
    Result {
        /// The operation.
        op: OpId,
        /// The position among the operation's results.
        index: u32,
    },
}

/// A sequence of operations, the last of which is a terminator.
#[derive(Clone, Debug)]
pub struct Block {
    /// The region that the block belongs to.
    pub region: RegionId,
    /// The arguments.
    pub arguments: Vec<ValueId>,
    /// The operations, in execution order.
    pub ops: Vec<OpId>,
    /// The locations of the arguments: empty if none is known, otherwise one for each argument.
    pub argument_locations: Vec<Location>,
}

/// A list of blocks. Each region of a StableHLO operation has exactly one block.
#[derive(Clone, Debug)]
pub struct Region {
    /// The operation that the region belongs to; `None` for the region of the function.
    pub parent: Option<OpId>,
    /// The blocks.
    pub blocks: Vec<BlockId>,
}

impl Body {
    /// The region of the function.
    pub const ROOT: RegionId = RegionId(0);

    /// Creates a body with an empty root region and no blocks.
    pub fn new() -> Self {
        let root = Region { parent: None, blocks: Vec::new() };
        Body { values: Vec::new(), ops: Vec::new(), blocks: Vec::new(), regions: vec![root] }
    }

    /// Returns the block at which the function starts; `None` for a declaration.
    pub fn entry(&self) -> Option<BlockId> {
        self.regions.first()?.blocks.first().copied()
    }

    /// Returns the operation with this id.
    pub fn op(&self, id: OpId) -> &Operation {
        &self.ops[id.index()]
    }

    /// Returns the operation with this id, for modification.
    pub fn op_mut(&mut self, id: OpId) -> &mut Operation {
        &mut self.ops[id.index()]
    }

    /// Returns the value with this id.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// Returns the type of the value with this id.
    pub fn ty(&self, id: ValueId) -> &Type {
        &self.values[id.index()].ty
    }

    /// Returns the element types of an operation's operands and results that are tensors, each once, in the order of the
    /// operands and results.
    pub fn element_types(&self, op: &Operation) -> Vec<ElementType> {
        let mut found = Vec::new();
        for value in op.operands.iter().copied().chain(op.results) {
            if let Type::Tensor(ty) | Type::Buffer(ty) = self.ty(value)
                && !found.contains(&ty.element_type())
            {
                found.push(ty.element_type());
            }
        }
        found
    }

    /// Sets the type of a value. The program is not verified again.
    pub fn set_type(&mut self, id: ValueId, ty: Type) {
        self.values[id.index()].ty = ty;
    }

    /// Returns the block with this id.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// Returns the region with this id.
    pub fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.index()]
    }

    /// Returns the single block of region number `index` of an operation; `None` if there is no such region or it has
    /// no block.
    pub fn region_block(&self, op: &Operation, index: usize) -> Option<&Block> {
        let region = *op.regions.get(index)?;
        self.region(region).blocks.first().map(|&block| self.block(block))
    }

    /// Returns the number of operations, including those in nested regions.
    pub fn num_ops(&self) -> usize {
        self.ops.len()
    }

    /// Returns the number of values.
    pub fn num_values(&self) -> usize {
        self.values.len()
    }

    /// Returns the number of blocks.
    pub fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the number of regions.
    pub fn num_regions(&self) -> usize {
        self.regions.len()
    }

    /// Returns all operations, including those of nested regions, in the order in which they were added. Readers add an
    /// operation before those of its regions. [`Function::ops`](super::Function::ops) returns only the operations of the
    /// entry block.
    pub fn all_ops(&self) -> impl ExactSizeIterator<Item = (OpId, &Operation)> {
        self.ops.iter().enumerate().map(|(index, op)| (OpId(index as u32), op))
    }

    /// Returns the operations of a block in the order in which they run, without those of nested regions.
    pub fn block_ops(
        &self,
        block: BlockId,
    ) -> impl DoubleEndedIterator<Item = (OpId, &Operation)> + ExactSizeIterator {
        self.block(block).ops.iter().map(|&op| (op, self.op(op)))
    }

    /// Returns all blocks, including those of nested regions, in order of their ids.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = &Block> {
        self.blocks.iter()
    }

    /// Returns all values, in order of their ids.
    pub fn values(&self) -> impl ExactSizeIterator<Item = (ValueId, &Value)> {
        self.values.iter().enumerate().map(|(index, value)| (ValueId(index as u32), value))
    }

    /// Returns the operation that defines a value; `None` if the value is a block argument.
    pub fn defining_op(&self, value: ValueId) -> Option<OpId> {
        match self.value(value).definition {
            Definition::Result { op, .. } => Some(op),
            Definition::Argument { .. } => None,
        }
    }

    /// Adds a region to an operation, or to the function if `parent` is `None`.
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

    /// Sets the location of a block argument.
    pub fn set_argument_location(&mut self, argument: ValueId, location: Location) {
        let Definition::Argument { block, index } = self.value(argument).definition else { return };
        let block = &mut self.blocks[block.index()];
        if location.is_unknown() && block.argument_locations.is_empty() {
            return;
        }
        block.argument_locations.resize(block.arguments.len(), Location::UNKNOWN);
        block.argument_locations[index as usize] = location;
    }

    /// Adds an operation without regions at the end of a block. The operation is not verified.
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

    /// Reserves capacity for at least this many further operations and values.
    pub(crate) fn reserve(&mut self, ops: usize, values: usize) {
        self.ops.reserve(ops);
        self.values.reserve(values);
    }

    /// Adds results to an operation that was added without any. Readers use it for operations whose result types follow
    /// their regions.
    pub(crate) fn add_results(&mut self, op: OpId, types: impl IntoIterator<Item = Type>) {
        let start = arena_id(self.values.len());
        for (index, ty) in types.into_iter().enumerate() {
            self.values.push(Value { ty, definition: Definition::Result { op, index: index as u32 } });
        }
        self.ops[op.index()].results = ValueRange { start, end: arena_id(self.values.len()) };
    }
}

impl Default for Body {
    /// Creates a body with an empty root region, like [`Body::new`].
    fn default() -> Self {
        Body::new()
    }
}

/// Returns the id for the next element of an arena with `len` elements.
///
/// # Panics
/// Panics if the arena has more than `u32::MAX` elements, which takes more memory than the limits of the readers allow.
fn arena_id(len: usize) -> u32 {
    u32::try_from(len).expect("the limits of the readers keep arenas below u32::MAX elements")
}
