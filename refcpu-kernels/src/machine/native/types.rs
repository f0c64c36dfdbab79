//! The cells that become registers, and their types.
//!
//! Cells have no types of their own, so they are inferred from the instructions that access them. Cells that are copied to each
//! other have one type. A cell stays in memory if it is part of an array, or if its accesses have different types.

use super::scalar::arithmetic;
use crate::machine::program::instr::{Instr, Op};
use crate::machine::program::{Base, Cell, Program};
use crate::native::{scalar_of, tile_operation};
use refcpu_codegen::Scalar;

/// The storage of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Storage {
    /// Its memory.
    Memory,
    /// Its memory, which is never written.
    Constant,
    /// A register.
    Register(Scalar),
}

/// Sets of cells with one type.
struct Classes {
    parent: Vec<u32>,
    /// For the cell that represents a set: its type, or `Err` if it must be in memory.
    ty: Vec<Result<Option<Scalar>, ()>>,
}

impl Classes {
    fn root(&mut self, cell: usize) -> usize {
        let mut at = cell;
        while self.parent[at] as usize != at {
            self.parent[at] = self.parent[self.parent[at] as usize];
            at = self.parent[at] as usize;
        }
        at
    }

    fn set(&mut self, cell: Cell, ty: Scalar) {
        let root = self.root(usize::from(cell));
        self.ty[root] = merge(self.ty[root], Ok(Some(ty)));
    }

    fn set_memory(&mut self, cells: std::ops::Range<usize>) {
        for cell in cells {
            let root = self.root(cell);
            self.ty[root] = Err(());
        }
    }

    fn unite(&mut self, a: Cell, b: Cell) {
        let (a, b) = (self.root(usize::from(a)), self.root(usize::from(b)));
        if a != b {
            self.parent[a] = b as u32;
            self.ty[b] = merge(self.ty[a], self.ty[b]);
        }
    }
}

fn merge(a: Result<Option<Scalar>, ()>, b: Result<Option<Scalar>, ()>) -> Result<Option<Scalar>, ()> {
    match (a?, b?) {
        (None, ty) | (ty, None) => Ok(ty),
        (Some(x), Some(y)) if x == y => Ok(Some(x)),
        _ => Err(()),
    }
}

/// Returns the storage of each cell of a program.
pub(super) fn storage(code: &Program) -> Vec<Storage> {
    let n = code.cells.len();
    let mut written = vec![false; n];
    for range in code.instrs.iter().filter_map(|i| code.writes_of(i)) {
        written[range].fill(true);
    }
    let in_cells = |array: usize| matches!(code.arrays[array].base, Base::Cells(_));
    for i in &code.instrs {
        let counts = matches!(i.op, Op::AddJumpLtS32 | Op::AddJumpLtS64);
        written[usize::from(i.dst)] |= counts;
        for array in arrays_of(code, i).into_iter().filter(|a| in_cells(*a)) {
            written[code.array_cells(array).expect("an array in cells")].fill(true);
        }
    }
    let mut classes = Classes { parent: (0..n as u32).collect(), ty: vec![Ok(None); n] };
    for i in &code.instrs {
        constrain(code, i, &mut classes, &written);
    }
    (0..n)
        .map(|cell| {
            let root = classes.root(cell);
            match classes.ty[root] {
                _ if !written[cell] => Storage::Constant,
                Err(()) => Storage::Memory,
                Ok(ty) => Storage::Register(ty.unwrap_or(Scalar::I64)),
            }
        })
        .collect()
}

/// Returns the arrays that an instruction accesses.
fn arrays_of(code: &Program, i: &Instr) -> Vec<usize> {
    let x = usize::from(i.x);
    match i.op {
        Op::Load | Op::Store => vec![usize::from(code.windows[x].array.0)],
        Op::Call => {
            let c = &code.calls[x];
            c.reads.iter().chain(&c.writes).map(|o| usize::from(o.array.0)).collect()
        }
        _ => Vec::new(),
    }
}

/// Adds what an instruction says about the types of cells.
fn constrain(code: &Program, i: &Instr, classes: &mut Classes, written: &[bool]) {
    let x = usize::from(i.x);
    let operands = [i.a, i.b, i.c];
    for array in arrays_of(code, i) {
        if let Some(cells) = code.array_cells(array) {
            classes.set_memory(cells);
        }
    }
    let op = match i.op {
        Op::Kernel => {
            let k = &code.kernels[x];
            tile_operation(k.opcode, k.to, k.from)
        }
        op => arithmetic(op),
    };
    if let Some(op) = op {
        operands[..op.arity()].iter().enumerate().for_each(|(k, c)| classes.set(*c, op.operand(k)));
        if !i.op.is_compare_jump() {
            classes.set(i.dst, op.result());
        }
        return;
    }
    // A constant can have several types.
    let mut same = |a: Cell, b: Cell| {
        if written[usize::from(a)] && written[usize::from(b)] {
            classes.unite(a, b);
        }
    };
    match i.op {
        Op::Mov => same(i.a, i.dst),
        Op::Select => {
            same(i.b, i.dst);
            same(i.c, i.dst);
            classes.set(i.a, Scalar::Bool);
        }
        Op::JumpIf | Op::JumpIfNot => classes.set(i.a, Scalar::Bool),
        Op::Switch => classes.set(i.a, Scalar::I32),
        Op::AddJumpLtS32 => [i.dst, i.a, i.b].iter().for_each(|c| classes.set(*c, Scalar::I32)),
        Op::AddJumpLtS64 => [i.dst, i.a, i.b].iter().for_each(|c| classes.set(*c, Scalar::I64)),
        Op::Load | Op::Store => window(code, i, classes),
        Op::Vector => {
            let v = &code.vectors[x];
            v.src.iter().chain([&v.dst]).filter(|p| p.len > 1).for_each(|p| classes.set_memory(p.cells()));
        }
        Op::Copy => {
            let (to, from) = &code.copies[x];
            [to, from].iter().for_each(|p| classes.set_memory(p.cells()));
        }
        Op::Splat => classes.set_memory(code.splats[x].0.cells()),
        _ => {}
    }
}

/// Adds what a load or store says about the types of cells.
fn window(code: &Program, i: &Instr, classes: &mut Classes) {
    let w = &code.windows[usize::from(i.x)];
    for (cell, dtype, ..) in &w.starts {
        if let Some(ty) = scalar_of(*dtype) {
            classes.set(*cell, ty);
        }
    }
    let dtype = code.arrays[usize::from(w.array.0)].dtype;
    match scalar_of(dtype) {
        Some(ty) if w.runs.len() * w.run == ty.size() => classes.set(i.dst, ty),
        _ if w.runs.len() * w.run == dtype.size() && dtype.size() <= 8 => {}
        _ => classes.set_memory(code.moved(i)),
    }
}
