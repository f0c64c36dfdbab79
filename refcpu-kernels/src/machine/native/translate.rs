//! The translation of a program to a function.

use super::elements::Elements;
use super::scalar::arithmetic;
use super::types::{Storage, storage};
use super::{ENDED, FAILED, MachineCode, STEPS, STEPS_WITH_CALLS};
use crate::machine::program::instr::{Instr, Op};
use crate::machine::program::{Base, Cell, Program};
use crate::native::{Arithmetic, compile, tile_operation};
use refcpu_codegen::{
    Access, Array, BinaryOp, Block, End, Error, Function, Inst, Reg, Relation, Scalar, Type, UnaryOp,
};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The number of instructions of the code from which operations on arrays become calls, so that compiling takes milliseconds.
const MAX_CODE: usize = 12_000;

/// Compiles a program.
pub(super) fn program(code: &Program) -> Result<MachineCode, Error> {
    let mut t = Translation::new(code);
    t.body();
    t.entries();
    Ok(MachineCode { code: compile(&t.f, "loop")?, entries: t.entries, arrays: t.outside })
}

pub(super) struct Translation<'a> {
    pub(super) code: &'a Program,
    pub(super) f: Function,
    pub(super) cells: Array,
    /// The entry at which the code starts.
    control: Array,
    /// The function's arrays, by number of the program's; `None` for cells.
    pub(super) arrays: Vec<Option<Array>>,
    outside: Vec<usize>,
    storage: Vec<Storage>,
    /// The registers by cell.
    registers: HashMap<Cell, Reg>,
    /// The registers of constants by type and bits, and the bits by register.
    constants: HashMap<(Type, u64), Reg>,
    constant_bits: HashMap<Reg, u64>,
    /// The iterations until the next pause.
    left: Reg,
    one: Reg,
    zero: Reg,
    /// The instructions at which the code can start, and for each the block that prepares it.
    entries: Vec<u16>,
    starts: Vec<Block>,
    /// The blocks of the instructions that are jumped to.
    blocks: HashMap<usize, Block>,
    /// The blocks, in the order of the code.
    order: Vec<Block>,
    /// The blocks in which the code pauses, and the entries at which it continues.
    pauses: Vec<(Block, usize)>,
    /// The registers of cells.
    pub(super) variables: HashSet<Reg>,
    /// The arrays in registers.
    pub(super) elements: Elements,
    /// The values of memory in cells that the present block knows, by offset and type.
    pub(super) known: HashMap<(usize, Type), Reg>,
}

/// Returns the register of a constant.
fn hoisted(
    f: &mut Function,
    constants: &mut HashMap<(Type, u64), Reg>,
    known: &mut HashMap<Reg, u64>,
    ty: Type,
    bits: u64,
) -> Reg {
    let r = *constants.entry((ty, bits)).or_insert_with(|| f.reg(ty));
    known.insert(r, bits);
    r
}

/// Returns whether a jump ends an iteration.
fn is_back_jump(op: Op) -> bool {
    matches!(op, Op::JumpIf | Op::AddJumpLtS32 | Op::AddJumpLtS64) || op.is_compare_jump()
}

impl<'a> Translation<'a> {
    fn new(code: &'a Program) -> Self {
        let mut f = Function::new();
        let cells = f.array(code.cells.len() * 8);
        let control = f.array(8);
        let mut outside = Vec::new();
        let mut arrays = Vec::new();
        for (number, spec) in code.arrays.iter().enumerate() {
            arrays.push(match spec.base {
                Base::Cells(_) => None,
                Base::Read(_) | Base::Write(_) => {
                    outside.push(number);
                    Some(f.array(spec.len * spec.dtype.size()))
                }
            });
        }
        let mut entries = vec![0];
        entries.extend(code.instrs.iter().filter(|i| is_back_jump(i.op)).map(|i| i.x));
        entries.sort_unstable();
        entries.dedup();
        let starts = entries.iter().map(|_| f.block()).collect();
        let storage = storage(code);
        let elements = Elements::new(code, &storage);
        let [left, one, zero] = [(); 3].map(|()| f.reg(Type::one(Scalar::I64)));
        Self {
            code,
            f,
            cells,
            control,
            arrays,
            outside,
            storage,
            elements,
            registers: HashMap::new(),
            constants: HashMap::new(),
            constant_bits: HashMap::new(),
            left,
            one,
            zero,
            entries,
            starts,
            blocks: HashMap::new(),
            order: Vec::new(),
            pauses: Vec::new(),
            variables: HashSet::new(),
            known: HashMap::new(),
        }
    }

    fn number(&self, entry: u16) -> usize {
        self.entries.iter().position(|e| *e == entry).expect("every target is an entry")
    }

    /// Begins a new block, and what is known about memory.
    pub(super) fn begin(&mut self, block: Block) {
        self.f.select(block);
        self.order.push(block);
        self.known.clear();
    }

    /// Translates the instructions.
    fn body(&mut self) {
        let code = self.code;
        let mut targets: Vec<usize> = self.entries.iter().map(|e| usize::from(*e)).collect();
        targets.extend(code.switches.iter().flatten().map(|t| usize::from(*t)));
        let jumps = code.instrs.iter().filter(|i| matches!(i.op, Op::Jump | Op::JumpIfNot));
        targets.extend(jumps.map(|i| usize::from(i.x)));
        targets.sort_unstable();
        targets.dedup();
        let mut open = false;
        for (at, i) in code.instrs.iter().enumerate() {
            if targets.binary_search(&at).is_ok() {
                let block = self.block_of(at);
                if open {
                    self.end(End::Jump(block));
                }
                self.begin(block);
            }
            open = self.instruction(at, i);
        }
    }

    fn block_of(&mut self, instruction: usize) -> Block {
        let f = &mut self.f;
        *self.blocks.entry(instruction).or_insert_with(|| f.block())
    }

    /// Translates an instruction. Returns whether the following one continues the block.
    fn instruction(&mut self, at: usize, i: &Instr) -> bool {
        let target = usize::from(i.x);
        match i.op {
            Op::Nop => {}
            Op::End => {
                self.end(End::Return(ENDED));
                return false;
            }
            Op::Jump => {
                let to = self.block_of(target);
                self.end(End::Jump(to));
                return false;
            }
            Op::JumpIfNot => {
                let condition = self.value(i.a, Scalar::Bool);
                let (then, otherwise) = (self.f.block(), self.block_of(target));
                self.end(End::If { condition, then, otherwise });
                self.begin(then);
            }
            Op::JumpIf => {
                let condition = self.value(i.a, Scalar::Bool);
                self.back_jump(target, |then, otherwise| End::If { condition, then, otherwise });
            }
            Op::AddJumpLtS32 => self.add_and_jump(i, Scalar::I32),
            Op::AddJumpLtS64 => self.add_and_jump(i, Scalar::I64),
            Op::Switch => return self.switch(i),
            Op::Load | Op::Store | Op::Vector | Op::Copy | Op::Splat | Op::Call if self.is_long() => {
                self.interpreted(at, i);
            }
            Op::Mov => self.mov(i),
            Op::Select => self.select(i),
            Op::Load => self.load(at, i),
            Op::Store => self.store(at, i),
            Op::Vector => self.vector(at, i),
            Op::Copy => self.copy(at, i),
            Op::Splat => self.splat(at, i),
            Op::Call if self.formula(&self.code.calls[target]) => {}
            Op::Call => self.interpreted(at, i),
            Op::Kernel => {
                let k = &self.code.kernels[target];
                match tile_operation(k.opcode, k.to, k.from) {
                    Some(op) => self.arithmetic(op, i),
                    None => self.interpreted(at, i),
                }
            }
            op => match arithmetic(op) {
                Some(Arithmetic::Compare(relation, ty)) if op.is_compare_jump() => {
                    let (a, b) = (self.value(i.a, ty), self.value(i.b, ty));
                    self.compare_and_jump(target, relation, a, b);
                }
                Some(op) => self.arithmetic(op, i),
                None => unreachable!("{op:?} has no equivalent"),
            },
        }
        true
    }

    /// Returns whether the code is so long that further operations on arrays become calls.
    fn is_long(&self) -> bool {
        self.f.instructions() > MAX_CODE
    }

    /// Adds to a counter, and jumps if it is less than its limit.
    fn add_and_jump(&mut self, i: &Instr, ty: Scalar) {
        let [x, step, limit] = [i.dst, i.a, i.b].map(|c| self.value(c, ty));
        let counter = self.target(i.dst, ty);
        self.f.push(Inst::Binary { op: BinaryOp::Add, dst: counter, a: x, b: step });
        self.assigned(i.dst, counter);
        self.compare_and_jump(usize::from(i.x), Relation::Lt, counter, limit);
    }

    fn compare_and_jump(&mut self, target: usize, relation: Relation, a: Reg, b: Reg) {
        self.back_jump(target, |then, otherwise| End::Compare { relation, a, b, then, otherwise });
    }

    /// Ends a block with a jump that ends an iteration, and counts the iterations.
    fn back_jump(&mut self, target: usize, end: impl FnOnce(Block, Block) -> End) {
        let to = self.block_of(target);
        let (edge, pause, after) = (self.f.block(), self.f.block(), self.f.block());
        let end = end(edge, after);
        self.end(end);
        self.begin(edge);
        self.order.push(pause);
        self.f.push(Inst::Binary { op: BinaryOp::Subtract, dst: self.left, a: self.left, b: self.one });
        let (a, b) = (self.left, self.zero);
        self.end(End::Compare { relation: Relation::Ne, a, b, then: to, otherwise: pause });
        self.pauses.push((pause, self.number(target as u16)));
        self.begin(after);
    }

    fn switch(&mut self, i: &Instr) -> bool {
        let to = &self.code.switches[usize::from(i.x)];
        let a = self.value(i.a, Scalar::I32);
        for (k, target) in to[..to.len() - 1].iter().enumerate() {
            let b = self.constant(Type::one(Scalar::I32), k as u64);
            let (then, otherwise) = (self.block_of(usize::from(*target)), self.f.block());
            self.end(End::Compare { relation: Relation::Eq, a, b, then, otherwise });
            self.begin(otherwise);
        }
        let last = self.block_of(usize::from(to[to.len() - 1]));
        self.end(End::Jump(last));
        false
    }

    /// Returns a register with a constant, which is assigned once before all other blocks.
    pub(super) fn constant(&mut self, ty: Type, bits: u64) -> Reg {
        hoisted(&mut self.f, &mut self.constants, &mut self.constant_bits, ty, bits)
    }

    /// Returns the bits of a register that is a constant.
    pub(super) fn constant_bits(&self, r: Reg) -> Option<u64> {
        self.constant_bits.get(&r).copied()
    }

    /// Ends a block, after assigning the variables of arrays that the block has changed.
    pub(super) fn end(&mut self, end: End) {
        self.assign_variables();
        self.f.end(end);
    }

    pub(super) fn storage(&self, cell: Cell) -> Storage {
        self.storage[usize::from(cell)]
    }

    fn register(&mut self, cell: Cell, ty: Scalar) -> Reg {
        if let Some(r) = self.registers.get(&cell) {
            return *r;
        }
        let r = self.f.reg(Type::one(ty));
        self.registers.insert(cell, r);
        self.variables.insert(r);
        r
    }

    /// Returns the value of a cell.
    pub(super) fn value(&mut self, cell: Cell, ty: Scalar) -> Reg {
        match self.storage(cell) {
            Storage::Register(own) => {
                debug_assert!(own == ty, "cell {cell} is {own:?}, not {ty:?}");
                self.register(cell, own)
            }
            Storage::Constant => {
                let bits = self.code.cells[usize::from(cell)] & (u64::MAX >> (64 - 8 * ty.size()));
                self.constant(Type::one(ty), bits)
            }
            Storage::Memory => self.read_cells(usize::from(cell) * 8, Type::one(ty)),
        }
    }

    /// Returns the register to which to assign the value of a cell; [`Self::assigned`] must follow the assignment.
    pub(super) fn target(&mut self, cell: Cell, ty: Scalar) -> Reg {
        match self.storage(cell) {
            Storage::Register(own) => self.register(cell, own),
            Storage::Constant | Storage::Memory => self.f.reg(Type::one(ty)),
        }
    }

    /// Completes the assignment of a cell.
    pub(super) fn assigned(&mut self, cell: Cell, value: Reg) {
        if self.storage(cell) == Storage::Memory {
            self.write_cells(usize::from(cell) * 8, value);
        }
    }

    fn arithmetic(&mut self, op: Arithmetic, i: &Instr) {
        let mut values = [self.zero; 3];
        for (k, cell) in [i.a, i.b, i.c].into_iter().enumerate().take(op.arity()) {
            values[k] = self.value(cell, op.operand(k));
        }
        let dst = self.target(i.dst, op.result());
        self.operation(op, dst, values);
        self.assigned(i.dst, dst);
    }

    /// Adds the instructions of an operation on elements or vectors.
    pub(super) fn operation(&mut self, op: Arithmetic, dst: Reg, values: [Reg; 3]) {
        let (constants, known) = (&mut self.constants, &mut self.constant_bits);
        op.emit(&mut self.f, dst, values, |f, ty, bits| hoisted(f, constants, known, ty, bits));
    }

    /// Returns the type in which whole cells are moved to a cell.
    fn moved_type(&self, dst: Cell, from: &[Cell]) -> Scalar {
        let all = std::iter::once(&dst).chain(from);
        let mut types = all.filter_map(|c| match self.storage(*c) {
            Storage::Register(ty) => Some(ty),
            _ => None,
        });
        let of_array = |c: &Cell| self.elements.scalar_of_cell(*c);
        types.next().or_else(|| std::iter::once(&dst).chain(from).find_map(of_array)).unwrap_or(Scalar::I64)
    }

    fn mov(&mut self, i: &Instr) {
        let ty = self.moved_type(i.dst, &[i.a]);
        let a = self.value(i.a, ty);
        let dst = self.target(i.dst, ty);
        self.f.push(Inst::Unary { op: UnaryOp::Copy, dst, a });
        self.assigned(i.dst, dst);
    }

    fn select(&mut self, i: &Instr) {
        let ty = self.moved_type(i.dst, &[i.b, i.c]);
        let condition = self.value(i.a, Scalar::Bool);
        let (a, b) = (self.value(i.b, ty), self.value(i.c, ty));
        let dst = self.target(i.dst, ty);
        self.f.push(Inst::Select { dst, condition, a, b });
        self.assigned(i.dst, dst);
    }

    /// Lets the interpreter execute an instruction.
    pub(super) fn interpreted(&mut self, at: usize, i: &Instr) {
        for range in self.code.reads_of(i) {
            for cell in range {
                if let Storage::Register(ty) = self.storage(cell as Cell) {
                    let src = self.register(cell as Cell, ty);
                    self.f.push(Inst::Store { src, at: Access::fixed(self.cells, cell * 8) });
                }
            }
        }
        self.store_read_arrays(i);
        self.known.clear();
        let a = self.f.reg(Type::one(Scalar::I64));
        self.f.push(Inst::Call { dst: a, number: at as u32 });
        if i.op == Op::Call {
            let (then, otherwise) = (self.f.block(), self.f.block());
            let (relation, b) = (Relation::Eq, self.zero);
            self.end(End::Compare { relation, a, b, then, otherwise });
            self.begin(otherwise);
            self.end(End::Return(FAILED));
            self.begin(then);
        }
        self.load_written_arrays(i);
        for cell in self.code.writes_of(i).unwrap_or(0..0) {
            let cell = cell as Cell;
            if let Storage::Register(ty) = self.storage(cell) {
                let dst = self.register(cell, ty);
                self.f.push(Inst::Load { dst, at: Access::fixed(self.cells, usize::from(cell) * 8) });
            }
        }
    }

    /// Adds the blocks that load registers where the code starts, and store them where it pauses.
    fn entries(&mut self) {
        self.f.remove_unused();
        self.f.join_selections();
        let bodies: Vec<Block> = self.entries.iter().map(|e| self.blocks[&usize::from(*e)]).collect();
        let needed = self.f.needed_at(&bodies);
        let cells: HashMap<Reg, usize> =
            (self.registers.iter().map(|(cell, r)| (*r, usize::from(*cell) * 8)))
                .chain(self.elements.variables())
                .collect();
        let at = |offset: usize| Access::fixed(self.cells, offset);
        for ((start, body), needed) in self.starts.iter().zip(&bodies).zip(&needed) {
            self.f.select(*start);
            for r in needed {
                if let Some(offset) = cells.get(r) {
                    self.f.push(Inst::Load { dst: *r, at: at(*offset) });
                }
            }
            self.f.end(End::Jump(*body));
        }
        for (block, entry) in &self.pauses {
            self.f.select(*block);
            for r in &needed[*entry] {
                if let Some(offset) = cells.get(r) {
                    self.f.push(Inst::Store { src: *r, at: at(*offset) });
                }
            }
            self.f.end(End::Return(*entry as u32 + 1));
        }
        self.dispatch(&needed);
        self.f.arrange(&self.order);
    }

    /// Adds the first blocks, which choose the entry.
    fn dispatch(&mut self, needed: &[Vec<Reg>]) {
        let body = std::mem::take(&mut self.order);
        let first = self.f.block();
        self.begin(first);
        let steps = if self.code.calls.is_empty() { STEPS } else { STEPS_WITH_CALLS };
        for (dst, bits) in [(self.left, u64::from(steps)), (self.one, 1), (self.zero, 0)] {
            self.f.push(Inst::Constant { dst, bits });
        }
        let constants: BTreeSet<Reg> = needed.iter().flatten().copied().collect();
        for dst in constants {
            if let Some(bits) = self.constant_bits(dst) {
                self.f.push(Inst::Constant { dst, bits });
            }
        }
        let a = self.f.reg(Type::one(Scalar::I64));
        self.f.push(Inst::Load { dst: a, at: Access::fixed(self.control, 0) });
        for (number, then) in self.starts.clone().into_iter().enumerate().skip(1) {
            let b = self.f.reg(Type::one(Scalar::I64));
            self.f.push(Inst::Constant { dst: b, bits: number as u64 });
            let otherwise = self.f.block();
            self.end(End::Compare { relation: Relation::Eq, a, b, then, otherwise });
            self.begin(otherwise);
        }
        self.end(End::Jump(self.starts[0]));
        self.order.extend(self.starts.iter().copied().chain(body));
    }

    /// Returns the value of memory in cells.
    pub(super) fn read_cells(&mut self, offset: usize, ty: Type) -> Reg {
        if let Some((home, first)) = self.elements.at(offset) {
            return self.read_elements(home, first, ty);
        }
        if let Some(r) = self.known.get(&(offset, ty)) {
            return *r;
        }
        let dst = self.f.reg(ty);
        self.f.push(Inst::Load { dst, at: Access::fixed(self.cells, offset) });
        self.known.insert((offset, ty), dst);
        dst
    }

    /// Writes a value to memory in cells.
    pub(super) fn write_cells(&mut self, offset: usize, src: Reg) {
        if let Some((home, first)) = self.elements.at(offset) {
            return self.write_elements(home, first, src);
        }
        let ty = self.f.type_of(src);
        self.f.push(Inst::Store { src, at: Access::fixed(self.cells, offset) });
        let end = offset + ty.size();
        self.known.retain(|(at, t), _| *at >= end || at + t.size() <= offset);
        // The register of a cell may be assigned again.
        if !self.variables.contains(&src) {
            self.known.insert((offset, ty), src);
        }
    }

    /// Forgets the values of memory in cells.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }
}
