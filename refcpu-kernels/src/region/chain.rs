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
    /// An element for each element of the tile, at the address in this slot.
    Tile(u16),
    /// One element for the whole tile, at the address in this slot.
    Single(u16),
    /// These bits.
    Constant(u64),
}

/// The parts of a chain.
pub(super) struct Chain<'a> {
    pub(super) nodes: &'a [Node],
    /// The operations of the chain: operands precede their users.
    pub(super) ids: &'a [u32],
    /// The operands that are not in the chain.
    pub(super) sources: HashMap<u32, Source>,
    /// The operations whose values are written, and the slots with the addresses.
    pub(super) results: Vec<(u32, u16)>,
}

/// The machine code of a chain: a function for each length of a tile, over the slots of the region.
#[derive(Debug)]
pub(super) struct ChainCode {
    functions: Vec<(usize, Compiled)>,
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
fn scalar(ty: ComputeType) -> Option<Scalar> {
    match ty {
        ComputeType::S8 | ComputeType::U8 => Some(Scalar::I8),
        ComputeType::S16 | ComputeType::U16 => Some(Scalar::I16),
        _ => compute_scalar(ty),
    }
}

impl Chain<'_> {
    /// Compiles the chain for tiles of these lengths.
    ///
    /// # Errors
    /// Returns an error if the code is too large or the system refuses executable memory.
    pub(super) fn compile(&self, lengths: &[usize], set: InstructionSet) -> Result<ChainCode, Error> {
        let sources = self.sources.values().filter_map(|s| match s {
            Source::Tile(slot) | Source::Single(slot) => Some(*slot),
            Source::Constant(_) => None,
        });
        let last = sources.chain(self.results.iter().map(|(_, slot)| *slot)).max().unwrap_or(0);
        let slots = usize::from(last) + 1;
        let functions = lengths.iter().map(|length| {
            let f = Generator::new(self, *length, slots, set).function();
            Ok((*length, compile(&f, &format!("chain_of_{}", self.ids.len()))?))
        });
        Ok(ChainCode { functions: functions.collect::<Result<_, Error>>()?, slots })
    }

    fn scalar(&self, id: u32) -> Scalar {
        scalar(self.nodes[id as usize].ty()).expect("a chain has only types of the code generator")
    }
}

impl ChainCode {
    /// Executes the chain on a tile of `n` elements.
    ///
    /// # Safety
    /// `table` must have the address of each slot, and the slots that the chain names must refer to `n` elements of their
    /// types, or to one element if they are single.
    pub(super) unsafe fn run(&self, table: *const *mut u8, n: usize) {
        let (_, code) =
            self.functions.iter().find(|(length, _)| *length == n).expect("tiles have known lengths");
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

/// The construction of the function for one length.
struct Generator<'a> {
    chain: &'a Chain<'a>,
    set: InstructionSet,
    length: usize,
    f: Function,
    arrays: Vec<Array>,
    /// The block that runs before all loops.
    start: Block,
    /// The block of the loop.
    body: Block,
    /// Values that do not vary within a tile, by node or bits.
    singles: HashMap<(Type, Single), Reg>,
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
}

impl<'a> Generator<'a> {
    fn new(chain: &'a Chain<'a>, length: usize, slots: usize, set: InstructionSet) -> Self {
        let mut sizes = vec![0; slots];
        for (id, source) in &chain.sources {
            match source {
                Source::Tile(slot) => sizes[usize::from(*slot)] = length * chain.scalar(*id).size(),
                Source::Single(slot) => {
                    let size = &mut sizes[usize::from(*slot)];
                    *size = chain.scalar(*id).size().max(*size);
                }
                Source::Constant(_) => {}
            }
        }
        for (id, slot) in &chain.results {
            sizes[usize::from(*slot)] = length * chain.scalar(*id).size();
        }
        let mut f = Function::with_instruction_set(set);
        let arrays = sizes.into_iter().map(|size| f.array(size)).collect();
        let start = f.block();
        Self { chain, set, length, f, arrays, start, body: start, singles: HashMap::new() }
    }

    /// Returns the function: a loop over vectors, and one over the remaining elements.
    fn function(mut self) -> Function {
        let own = self.chain.ids.iter().chain(self.chain.sources.keys());
        let largest = own.map(|id| self.chain.scalar(*id).size()).max().unwrap_or(8).max(4);
        let lanes = self.set.vector() / largest;
        let vectors = self.length / lanes * lanes;
        let together = self.length / (VECTORS * lanes) * (VECTORS * lanes);
        let loops =
            [(0, together, lanes, VECTORS), (together, vectors, lanes, 1), (vectors, self.length, 1, 1)];
        let mut before = self.start;
        for (first, end, lanes, count) in loops.into_iter().filter(|l| l.0 < l.1) {
            let (body, after) = (self.f.block(), self.f.block());
            let counter = self.f.reg(Type::one(Scalar::I64));
            self.f.select(self.start);
            self.f.push(Inst::Constant { dst: counter, bits: 0 });
            self.f.select(before);
            self.f.end(End::Jump(body));
            let limit = end - first - count * lanes;
            self.body = body;
            self.f.select(body);
            let parts = (0..count).map(|k| {
                self.elements(Elements { first: first + k * lanes, counter, limit, lanes });
                self.f.take()
            });
            let parts = parts.collect();
            self.f.interleave(parts);
            let (step, limit) = ((count * lanes) as u32, limit as u32);
            self.f.end(End::Count { counter, step, limit, then: body, otherwise: after });
            before = after;
        }
        self.f.select(before);
        self.f.end(End::Return(0));
        self.f
    }

    /// Computes the chain for some elements.
    fn elements(&mut self, e: Elements) {
        let mut values: HashMap<u32, Reg> = HashMap::new();
        for id in self.chain.ids {
            let node = &self.chain.nodes[*id as usize];
            let op = operation(self.chain.nodes, node, self.set).expect("only such nodes are in a chain");
            let mut args: Vec<Reg> = node.args().iter().map(|a| self.value(*a, e, &mut values)).collect();
            if let Node::Op { opcode, .. } = node
                && is_swapped(*opcode)
            {
                args.swap(0, 1);
            }
            args.resize(3, args[0]);
            let dst = self.f.reg(Type::vector(op.result(), e.lanes as u8));
            self.emit(op, dst, [args[0], args[1], args[2]]);
            values.insert(*id, dst);
        }
        for (id, slot) in &self.chain.results {
            let at = self.at(e, *slot, self.chain.scalar(*id));
            self.f.push(Inst::Store { src: values[id], at });
        }
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
        match self.chain.sources[&id] {
            Source::Constant(bits) => self.single(ty, Single::Bits(bits)),
            Source::Single(slot) => self.single(ty, Single::Slot(slot)),
            Source::Tile(slot) => {
                let (dst, at) = (self.f.reg(ty), self.at(e, slot, scalar));
                self.f.push(Inst::Load { dst, at });
                values.insert(id, dst);
                dst
            }
        }
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

    fn at(&self, e: Elements, slot: u16, scalar: Scalar) -> Access {
        let size = scalar.size() as u64;
        let index = Index { reg: e.counter, limit: e.limit as u64, step: size };
        Access { array: self.arrays[usize::from(slot)], offset: e.first as u64 * size, indices: vec![index] }
    }
}
