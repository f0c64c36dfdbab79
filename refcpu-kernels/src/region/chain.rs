//! Chains: operations of a region that run as one piece of machine code, whose values stay in registers.

use super::node::Node;
use crate::ComputeType;
use crate::native::{Arithmetic, compile, compute_scalar, is_swapped, narrow_operation, tile_operation};
use crate::tile::Opcode;
use refcpu_codegen::{
    Access, Array, BinaryOp, Block, Compiled, End, Error, Function, Index, Inst, InstructionSet, Reg, Scalar,
    Type, UnaryOp,
};
use std::collections::HashMap;

/// The source of a value that a chain reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    /// An element for each element of the tile, at the address in a slot. Rows are `row` bytes apart.
    Tile { slot: u16, row: usize },
    /// The same, but the first element of a row has the highest address, and the slot has the address of the last one.
    Reversed { slot: u16, row: usize },
    /// One element for each row of the tile, at the address in a slot. Those of rows are `row` bytes apart.
    Row { slot: u16, row: usize },
    /// One element for the whole tile, at the address in this slot.
    Single(u16),
    /// These bits.
    Constant(u64),
}

/// A value that a chain writes to the address in a slot. Rows are `row` bytes apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) id: u32,
    pub(super) slot: u16,
    pub(super) row: usize,
}

/// The parts of a chain.
pub(super) struct Chain<'a> {
    pub(super) nodes: &'a [Node],
    /// The operations whose values do not vary within a row: operands precede their users.
    pub(super) single: &'a [u32],
    /// The operations on elements: operands precede their users.
    pub(super) ids: &'a [u32],
    /// The operands that are not in the chain.
    pub(super) sources: HashMap<u32, Source>,
    /// The values that are written.
    pub(super) results: Vec<Output>,
}

/// The machine code of a chain: a function for each size of a tile, over the slots of the region.
#[derive(Debug)]
pub(super) struct ChainCode {
    functions: Vec<((usize, usize), Compiled)>,
    /// The number of slots, of which the functions do not access all.
    slots: usize,
}

/// Returns the operation of the code generator for a node, if it has it on vectors.
pub(super) fn operation(nodes: &[Node], node: &Node, set: InstructionSet) -> Option<Arithmetic> {
    let Node::Op { opcode, ty, .. } = *node else { return None };
    let types: Vec<_> = node.args().iter().map(|a| nodes[*a as usize].ty()).collect();
    let op = match opcode {
        Opcode::Reinterpret => {
            let (from, to) = (compute_scalar(types[0])?, compute_scalar(ty)?);
            let op = if from == to { UnaryOp::Copy } else { UnaryOp::Reinterpret };
            Arithmetic::Unary(op, from, to)
        }
        _ => narrow_operation(opcode, ty, types[0]).or_else(|| tile_operation(opcode, ty, types[0]))?,
    };
    let is_typed = types.iter().enumerate().all(|(k, t)| scalar(*t) == Some(op.operand(k)));
    let is_defined = [1, 4].iter().all(|lanes| op.is_defined(*lanes, set));
    (is_typed && is_defined && scalar(ty) == Some(op.result())).then_some(op)
}

/// Returns the type of a register for elements of this type in a tile.
pub(super) fn scalar(ty: ComputeType) -> Option<Scalar> {
    match ty {
        ComputeType::S8 | ComputeType::U8 => Some(Scalar::I8),
        ComputeType::S16 | ComputeType::U16 => Some(Scalar::I16),
        _ => compute_scalar(ty),
    }
}

impl Chain<'_> {
    /// Compiles the chain for tiles of these numbers of rows and lengths.
    ///
    /// # Errors
    /// Returns an error if the code is too large or the system refuses executable memory.
    pub(super) fn compile(&self, sizes: &[(usize, usize)], set: InstructionSet) -> Result<ChainCode, Error> {
        let sources = self.sources.values().filter_map(|s| match s {
            Source::Tile { slot, .. } | Source::Reversed { slot, .. } | Source::Row { slot, .. } => {
                Some(*slot)
            }
            Source::Single(slot) => Some(*slot),
            Source::Constant(_) => None,
        });
        let last = sources.chain(self.results.iter().map(|output| output.slot)).max().unwrap_or(0);
        let slots = usize::from(last) + 1;
        let functions = sizes.iter().map(|size| {
            let f = Generator::new(self, *size, slots, set).function();
            Ok((*size, compile(&f, &format!("chain_of_{}", self.ids.len()))?))
        });
        Ok(ChainCode { functions: functions.collect::<Result<_, Error>>()?, slots })
    }

    fn scalar(&self, id: u32) -> Scalar {
        scalar(self.nodes[id as usize].ty()).expect("a chain has only types of the code generator")
    }
}

impl ChainCode {
    /// Executes the chain on a tile of `rows` rows of `n` elements.
    ///
    /// # Safety
    /// `table` must have the address of each slot, and the slots that the chain names must refer to `n` elements of their
    /// types in each row, or to one element if they are single.
    pub(super) unsafe fn run(&self, table: *const *mut u8, rows: usize, n: usize) {
        let (_, code) =
            self.functions.iter().find(|(size, _)| *size == (rows, n)).expect("tiles have known sizes");
        // SAFETY: the table has at least `slots` entries. The functions were declared with the sizes that the caller
        // guarantees, and with no bytes for other slots; they make no calls.
        unsafe {
            let bases = std::slice::from_raw_parts(table, self.slots);
            code.call_at(bases, &mut |_| unreachable!("chains make no calls"));
        }
    }
}

/// The number of vectors that an iteration computes at the same time, because an operation takes several cycles.
const VECTORS: usize = 2;

/// The construction of the function for one size.
struct Generator<'a> {
    chain: &'a Chain<'a>,
    set: InstructionSet,
    rows: usize,
    length: usize,
    f: Function,
    arrays: Vec<Array>,
    /// The block that runs before all loops.
    start: Block,
    /// The block that runs before the loops of each row.
    top: Block,
    /// The block of the loop.
    body: Block,
    /// The number of the row, and the number of elements in front of it.
    row: Reg,
    before: Reg,
    /// Values that do not vary within a tile, by slot or bits.
    singles: HashMap<(Type, Single), Reg>,
    /// Values that do not vary within a row, by node.
    of_rows: HashMap<(Type, u32), Reg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Single {
    Slot(u16),
    Bits(u64),
}

/// The elements that an iteration of a loop computes.
#[derive(Clone, Copy)]
struct Elements {
    first: usize,
    counter: Reg,
    limit: usize,
    lanes: usize,
    /// The number of elements in front of these, with those of other rows.
    flat: Reg,
}

impl<'a> Generator<'a> {
    fn new(chain: &'a Chain<'a>, (rows, length): (usize, usize), slots: usize, set: InstructionSet) -> Self {
        let mut sizes = vec![0; slots];
        let mut grow = |slot: u16, size: usize| {
            let old = &mut sizes[usize::from(slot)];
            *old = size.max(*old);
        };
        for (id, source) in &chain.sources {
            let size = chain.scalar(*id).size();
            match *source {
                Source::Tile { slot, row } | Source::Reversed { slot, row } => {
                    grow(slot, (rows - 1) * row + length * size)
                }
                Source::Row { slot, row } => grow(slot, (rows - 1) * row + size),
                Source::Single(slot) => grow(slot, size),
                Source::Constant(_) => {}
            }
        }
        for Output { id, slot, row } in &chain.results {
            grow(*slot, (rows - 1) * row + length * chain.scalar(*id).size());
        }
        let mut f = Function::with_instruction_set(set);
        let arrays = sizes.into_iter().map(|size| f.array(size)).collect();
        let (start, top) = (f.block(), f.block());
        let [row, before] = [(); 2].map(|()| f.reg(Type::one(Scalar::I64)));
        let (singles, of_rows) = (HashMap::new(), HashMap::new());
        Self { chain, set, rows, length, f, arrays, start, top, body: top, row, before, singles, of_rows }
    }

    /// Returns the function: a loop over rows, and in it one over vectors, and one over the remaining elements.
    fn function(mut self) -> Function {
        let own = self.chain.single.iter().chain(self.chain.ids).chain(self.chain.sources.keys());
        let largest = own.map(|id| self.chain.scalar(*id).size()).max().unwrap_or(8).max(4);
        let lanes = self.set.vector() / largest;
        let vectors = self.length / lanes * lanes;
        let together = self.length / (VECTORS * lanes) * (VECTORS * lanes);
        self.begin_row();
        let loops =
            [(0, together, lanes, VECTORS), (together, vectors, lanes, 1), (vectors, self.length, 1, 1)];
        let mut before = self.top;
        for (first, end, lanes, count) in loops.into_iter().filter(|l| l.0 < l.1) {
            let (body, after) = (self.f.block(), self.f.block());
            let [counter, flat] = [(); 2].map(|()| self.f.reg(Type::one(Scalar::I64)));
            self.f.select(self.start);
            self.f.push(Inst::Constant { dst: counter, bits: 0 });
            self.f.select(before);
            self.f.end(End::Jump(body));
            let limit = end - first - count * lanes;
            self.body = body;
            self.f.select(body);
            self.f.push(Inst::Binary { op: BinaryOp::Add, dst: flat, a: self.before, b: counter });
            let parts = (0..count).map(|k| {
                self.elements(Elements { first: first + k * lanes, counter, limit, lanes, flat });
                self.f.take()
            });
            let parts = parts.collect();
            self.f.interleave(parts);
            let (step, limit) = ((count * lanes) as u32, limit as u32);
            self.f.end(End::Count { counter, step, limit, then: body, otherwise: after });
            before = after;
        }
        self.end_row(before);
        self.f.remove_unused();
        self.f
    }

    /// Adds the instructions in front of the loops of a row.
    fn begin_row(&mut self) {
        let length = self.f.reg(Type::one(Scalar::I64));
        self.f.select(self.start);
        self.f.push(Inst::Constant { dst: self.row, bits: 0 });
        self.f.push(Inst::Constant { dst: length, bits: self.length as u64 });
        self.f.end(End::Jump(self.top));
        self.f.select(self.top);
        self.f.push(Inst::Binary { op: BinaryOp::Multiply, dst: self.before, a: self.row, b: length });
        for id in self.chain.single {
            let operands = self.chain.nodes[*id as usize].args().iter();
            let args = operands.map(|a| self.of_row(*a, Type::one(self.chain.scalar(*a)))).collect();
            let dst = self.operation(*id, 1, args);
            self.of_rows.insert((self.f.type_of(dst), *id), dst);
        }
    }

    /// Ends the loop over rows, whose last block is `block`.
    fn end_row(&mut self, block: Block) {
        self.f.select(block);
        if self.rows > 1 {
            let after = self.f.block();
            let (counter, limit) = (self.row, self.rows as u32 - 1);
            self.f.end(End::Count { counter, step: 1, limit, then: self.top, otherwise: after });
            self.f.select(after);
        }
        self.f.end(End::Return(0));
    }

    /// Computes the chain for some elements.
    fn elements(&mut self, e: Elements) {
        let mut values: HashMap<u32, Reg> = HashMap::new();
        for id in self.chain.ids {
            let operands = self.chain.nodes[*id as usize].args().iter();
            let args = operands.map(|a| self.value(*a, e, &mut values)).collect();
            let dst = self.operation(*id, e.lanes, args);
            values.insert(*id, dst);
        }
        for Output { id, slot, row } in &self.chain.results {
            let at = self.at(e, *slot, *row, self.chain.scalar(*id));
            self.f.push(Inst::Store { src: values[id], at });
        }
    }

    /// Adds the operation of a node, and returns its value.
    fn operation(&mut self, id: u32, lanes: usize, mut args: Vec<Reg>) -> Reg {
        let node = &self.chain.nodes[id as usize];
        let op = operation(self.chain.nodes, node, self.set).expect("only such nodes are in a chain");
        if let Node::Op { opcode, .. } = node
            && is_swapped(*opcode)
        {
            args.swap(0, 1);
        }
        args.resize(3, args[0]);
        let dst = self.f.reg(Type::vector(op.result(), lanes as u8));
        self.emit(op, dst, [args[0], args[1], args[2]]);
        dst
    }

    /// Adds an operation to the loop, whose constants do not vary.
    fn emit(&mut self, op: Arithmetic, dst: Reg, args: [Reg; 3]) {
        let ty = self.f.type_of(dst);
        if let Arithmetic::Unary(op @ (UnaryOp::Negate | UnaryOp::Abs), scalar, _) = op
            && scalar.is_float()
        {
            let sign = 1u64 << (8 * scalar.size() - 1);
            let (op, bits) =
                if op == UnaryOp::Negate { (BinaryOp::Xor, sign) } else { (BinaryOp::And, sign - 1) };
            let b = self.single(ty, Single::Bits(bits));
            return self.f.push(Inst::Binary { op, dst, a: args[0], b });
        }
        let Self { f, singles, start, body, .. } = self;
        op.emit(f, dst, args, |f, ty, bits| {
            *singles.entry((ty, Single::Bits(bits))).or_insert_with(|| {
                f.select(*start);
                let dst = f.reg(ty);
                f.push(Inst::Constant { dst, bits });
                f.select(*body);
                dst
            })
        });
    }

    /// Returns the value of an operand.
    fn value(&mut self, id: u32, e: Elements, values: &mut HashMap<u32, Reg>) -> Reg {
        if let Some(reg) = values.get(&id) {
            return *reg;
        }
        let scalar = self.chain.scalar(id);
        let ty = Type::vector(scalar, e.lanes as u8);
        match self.chain.sources.get(&id) {
            Some(Source::Tile { slot, row }) => {
                let (dst, at) = (self.f.reg(ty), self.at(e, *slot, *row, scalar));
                self.f.push(Inst::Load { dst, at });
                values.insert(id, dst);
                dst
            }
            Some(Source::Reversed { slot, row }) => {
                let dst = self.reversed(e, *slot, *row, ty);
                values.insert(id, dst);
                dst
            }
            _ => self.of_row(id, ty),
        }
    }

    /// Loads elements from the end of a row.
    fn reversed(&mut self, e: Elements, slot: u16, row: usize, ty: Type) -> Reg {
        let one = Type::one(Scalar::I64);
        let last = (self.length - e.first - e.lanes) as u64;
        let a = self.single(one, Single::Bits(last));
        let (place, loaded) = (self.f.reg(one), self.f.reg(ty));
        self.f.push(Inst::Binary { op: BinaryOp::Subtract, dst: place, a, b: e.counter });
        let column = Index { reg: place, limit: last, step: ty.scalar.size() as u64 };
        let row = Index { reg: self.row, limit: self.rows as u64 - 1, step: row as u64 };
        let at = Access { indices: vec![row, column], ..Access::fixed(self.arrays[usize::from(slot)], 0) };
        self.f.push(Inst::Load { dst: loaded, at });
        if e.lanes == 1 {
            return loaded;
        }
        let dst = self.f.reg(ty);
        let mut lanes = [0; 16];
        lanes[..e.lanes].iter_mut().rev().zip(0..).for_each(|(lane, k)| *lane = k);
        self.f.push(Inst::Shuffle { dst, a: loaded, b: loaded, lanes });
        dst
    }

    /// Returns a register with a value that does not vary within a row.
    fn of_row(&mut self, id: u32, ty: Type) -> Reg {
        let (slot, row) = match self.chain.sources.get(&id) {
            Some(Source::Constant(bits)) => return self.single(ty, Single::Bits(*bits)),
            Some(Source::Single(slot)) => return self.single(ty, Single::Slot(*slot)),
            Some(Source::Row { slot, row }) => (*slot, *row),
            _ => (0, 0),
        };
        if let Some(reg) = self.of_rows.get(&(ty, id)) {
            return *reg;
        }
        let one = Type::one(ty.scalar);
        let a = if ty == one { None } else { Some(self.of_row(id, one)) };
        self.f.select(self.top);
        let dst = self.f.reg(ty);
        match a {
            Some(a) => self.f.push(Inst::Unary { op: UnaryOp::Splat, dst, a }),
            None => {
                let index = Index { reg: self.row, limit: self.rows as u64 - 1, step: row as u64 };
                let at = Access { indices: vec![index], ..Access::fixed(self.arrays[usize::from(slot)], 0) };
                self.f.push(Inst::Load { dst, at });
            }
        }
        self.f.select(self.body);
        self.of_rows.insert((ty, id), dst);
        dst
    }

    /// Returns a register with a value that does not vary.
    fn single(&mut self, ty: Type, single: Single) -> Reg {
        if let Some(reg) = self.singles.get(&(ty, single)) {
            return *reg;
        }
        self.f.select(self.start);
        let dst = self.f.reg(ty);
        match single {
            Single::Bits(bits) => self.f.push(Inst::Constant { dst, bits }),
            Single::Slot(slot) => {
                let one = Type::one(ty.scalar);
                let a = if ty == one { dst } else { self.f.reg(one) };
                let at = Access::fixed(self.arrays[usize::from(slot)], 0);
                self.f.push(Inst::Load { dst: a, at });
                if ty != one {
                    self.f.push(Inst::Unary { op: UnaryOp::Splat, dst, a });
                }
            }
        }
        self.f.select(self.body);
        self.singles.insert((ty, single), dst);
        dst
    }

    /// Returns the location of elements in an array whose rows are `row` bytes apart.
    fn at(&self, e: Elements, slot: u16, row: usize, scalar: Scalar) -> Access {
        let size = scalar.size() as u64;
        let (rows, length) = (self.rows as u64, self.length as u64);
        let index = |reg: Reg, limit: u64, step: u64| Index { reg, limit, step };
        let indices = if rows == 1 || row == 0 {
            vec![index(e.counter, e.limit as u64, size)]
        } else if row as u64 == length * size {
            vec![index(e.flat, (rows - 1) * length + e.limit as u64, size)]
        } else {
            vec![index(self.row, rows - 1, row as u64), index(e.counter, e.limit as u64, size)]
        };
        Access { array: self.arrays[usize::from(slot)], offset: e.first as u64 * size, indices }
    }
}
