//! The short arrays whose elements are in registers.
//!
//! An array has a home in registers if every instruction that accesses its cells treats them as this array, and if a loop writes
//! it. Other arrays stay in memory: those that loops only read are as fast there.

use super::pieces::padded_pieces;
use super::scalar::arithmetic;
use crate::DType;
use crate::machine::program::instr::{Instr, Op};
use crate::machine::program::{Base, Outside, Place, Program, Window};
use crate::native::{scalar_of, tile_operation};
use refcpu_codegen::{Scalar, Type};
use std::collections::HashMap;

/// The size of the longest array in registers in bytes.
const MAX_HOME: usize = 256;
/// The largest number of vectors of an array with elements that an index chooses.
const MAX_CHOSEN: usize = 4;

/// An array in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Home {
    /// The first cell.
    pub(super) cell: usize,
    pub(super) scalar: Scalar,
    pub(super) len: usize,
}

impl Home {
    /// Returns the vectors that hold the elements: the first element of each, and its type. The last one may have more elements
    /// than are left; cells are allocated so that there is memory for these.
    pub(super) fn vectors(&self) -> Vec<(usize, Type)> {
        padded_pieces(self.scalar, self.len)
    }

    pub(super) fn cells(&self) -> std::ops::Range<usize> {
        self.cell..self.cell + (self.len * self.scalar.size()).div_ceil(8)
    }
}

/// The arrays in registers, and for each cell the number of the array that it belongs to.
#[derive(Debug, Default)]
pub(super) struct Homes {
    pub(super) all: Vec<Home>,
    pub(super) of_cell: Vec<Option<usize>>,
}

impl Homes {
    /// Returns the arrays with elements in a range of cells.
    pub(super) fn within(&self, cells: std::ops::Range<usize>) -> Vec<usize> {
        let mut found: Vec<usize> = self.of_cell[cells].iter().copied().flatten().collect();
        found.dedup();
        found
    }
}

/// The accesses of a program that have been seen.
struct Candidates {
    numbers: HashMap<Home, usize>,
    all: Vec<Home>,
    /// `false` for arrays that must be in memory.
    fits: Vec<bool>,
    /// `true` for arrays that a loop writes.
    is_written: Vec<bool>,
    of_cell: Vec<Option<usize>>,
}

impl Candidates {
    /// Notes an access of cells as an array.
    fn add(&mut self, place: &Place, is_written: bool) {
        let scalar = scalar_of(place.dtype);
        let home =
            Home { cell: usize::from(place.cell), scalar: scalar.unwrap_or(Scalar::I8), len: place.len };
        let number = *self.numbers.entry(home).or_insert_with(|| {
            self.all.push(home);
            self.fits.push(scalar.is_some() && place.bytes() <= MAX_HOME);
            self.is_written.push(false);
            self.all.len() - 1
        });
        self.is_written[number] |= is_written;
        for cell in place.cells() {
            match self.of_cell[cell] {
                Some(other) if other != number => {
                    self.fits[other] = false;
                    self.fits[number] = false;
                }
                _ => self.of_cell[cell] = Some(number),
            }
        }
    }

    fn refuse(&mut self, cells: std::ops::Range<usize>) {
        for cell in cells {
            if let Some(number) = self.of_cell[cell] {
                self.fits[number] = false;
            }
        }
    }
}

/// Returns the arrays of a program that are in registers. `register` returns the types of the cells that are registers
/// by themselves.
pub(super) fn homes(code: &Program, register: impl Fn(usize) -> Option<Scalar>) -> Homes {
    let n = code.cells.len();
    let mut found = Candidates {
        numbers: HashMap::new(),
        all: Vec::new(),
        fits: Vec::new(),
        is_written: Vec::new(),
        of_cell: vec![None; n],
    };
    let in_loop = in_loops(code);
    for (i, in_loop) in code.instrs.iter().zip(&in_loop) {
        arrays(code, i, *in_loop, &mut found);
    }
    for i in &code.instrs {
        single_cells(code, i, &mut found, &register);
    }
    let mut homes = Homes { all: Vec::new(), of_cell: vec![None; n] };
    for (number, home) in found.all.iter().enumerate() {
        let free = home.cells().all(|c| found.of_cell[c] == Some(number) && register(c).is_none());
        if found.fits[number] && found.is_written[number] && free {
            homes.of_cell[home.cells()].fill(Some(homes.all.len()));
            homes.all.push(*home);
        }
    }
    homes
}

/// Returns which instructions are in loops.
fn in_loops(code: &Program) -> Vec<bool> {
    let mut inside = vec![false; code.instrs.len()];
    for (at, i) in code.instrs.iter().enumerate() {
        let back = matches!(i.op, Op::JumpIf | Op::AddJumpLtS32 | Op::AddJumpLtS64) || i.op.is_compare_jump();
        if back && usize::from(i.x) <= at {
            inside[usize::from(i.x)..=at].fill(true);
        }
    }
    inside
}

/// Notes the arrays that an instruction accesses.
fn arrays(code: &Program, i: &Instr, in_loop: bool, found: &mut Candidates) {
    let x = usize::from(i.x);
    let in_cells = |array: usize| {
        let spec = code.arrays[array];
        match spec.base {
            Base::Cells(cell) => Some(Place { cell, dtype: spec.dtype, len: spec.len }),
            _ => None,
        }
    };
    match i.op {
        Op::Vector => {
            let v = &code.vectors[x];
            v.src.iter().filter(|p| p.len > 1).for_each(|p| found.add(p, false));
            found.add(&v.dst, in_loop);
        }
        Op::Copy => {
            let (to, from) = &code.copies[x];
            found.add(to, in_loop);
            found.add(from, false);
        }
        Op::Splat => found.add(&code.splats[x].0, in_loop),
        Op::Load | Op::Store => {
            let w = &code.windows[x];
            let dtype = code.arrays[usize::from(w.array.0)].dtype;
            let value = Place { cell: i.dst, dtype, len: w.runs.len() * w.run / dtype.size() };
            if value.len > 1 {
                found.add(&value, in_loop && i.op == Op::Load);
            }
            if let Some(array) = in_cells(usize::from(w.array.0)) {
                found.add(&array, in_loop && i.op == Op::Store);
                if !w.starts.is_empty() && i.op == Op::Store && !chooses_element(w, &array) {
                    found.refuse(array.cells());
                }
            }
        }
        Op::Call => {
            let c = &code.calls[x];
            let places = |all: &[crate::machine::program::Operand]| -> Vec<Place> {
                all.iter().filter_map(|o| in_cells(usize::from(o.array.0))).collect()
            };
            places(&c.reads).iter().for_each(|p| found.add(p, false));
            places(&c.writes).iter().for_each(|p| found.add(p, in_loop));
        }
        _ => {}
    }
}

/// Returns whether a window is one element, which a single index chooses from all elements of an array in cells.
pub(super) fn chooses_element(w: &Window, array: &Place) -> bool {
    let size = array.dtype.size();
    let index = |d: DType| matches!(d, DType::S32 | DType::S64 | DType::U32);
    let Some(scalar) = scalar_of(array.dtype).filter(|s| *s != Scalar::Bool) else { return false };
    padded_pieces(scalar, array.len).len() <= MAX_CHOSEN
        && matches!((&*w.starts, &*w.runs), ([(_, dtype, limit, step)], [0])
            if index(*dtype) && *limit as usize + 1 == array.len && *step == size && w.run == size)
        && matches!(w.outside, Outside::Clamp | Outside::Skip)
}

/// Refuses the arrays of which an instruction accesses a cell as an element of another type.
fn single_cells(
    code: &Program,
    i: &Instr,
    found: &mut Candidates,
    register: &impl Fn(usize) -> Option<Scalar>,
) {
    let x = usize::from(i.x);
    let op = match i.op {
        Op::Kernel => {
            let k = &code.kernels[x];
            tile_operation(k.opcode, k.to, k.from)
        }
        op => arithmetic(op),
    };
    let mut accesses: Vec<(usize, Option<Scalar>)> = Vec::new();
    let cells = [i.a, i.b, i.c].map(usize::from);
    match (op, i.op) {
        (Some(op), _) => {
            accesses.extend(cells[..op.arity()].iter().enumerate().map(|(k, c)| (*c, Some(op.operand(k)))));
            if !i.op.is_compare_jump() {
                accesses.push((usize::from(i.dst), Some(op.result())));
            }
        }
        (None, Op::Load | Op::Store) => {
            let w = &code.windows[x];
            accesses.extend(w.starts.iter().map(|(cell, dtype, ..)| (usize::from(*cell), scalar_of(*dtype))));
            let dtype = code.arrays[usize::from(w.array.0)].dtype;
            if w.runs.len() * w.run == dtype.size() {
                accesses.push((usize::from(i.dst), scalar_of(dtype)));
            }
        }
        (None, Op::Splat) => {
            let (to, from) = &code.splats[x];
            accesses.push((usize::from(from.cell), scalar_of(to.dtype)));
        }
        (None, Op::Vector) => {
            let v = &code.vectors[x];
            let singles = v.src.iter().filter(|p| p.len == 1);
            accesses.extend(singles.map(|p| (usize::from(p.cell), scalar_of(p.dtype))));
        }
        (None, Op::JumpIf | Op::JumpIfNot) => accesses.push((cells[0], Some(Scalar::Bool))),
        (None, Op::Switch) => accesses.push((cells[0], Some(Scalar::I32))),
        (None, Op::AddJumpLtS32 | Op::AddJumpLtS64) => {
            let ty = if i.op == Op::AddJumpLtS32 { Scalar::I32 } else { Scalar::I64 };
            accesses.extend([cells[0], cells[1], usize::from(i.dst)].map(|c| (c, Some(ty))));
        }
        (None, op) if op.scalar_reads().is_some() => {
            // Whole cells are moved, in the type of the register among them.
            let all = cells[..op.scalar_reads().unwrap_or(0)].iter().copied().chain([usize::from(i.dst)]);
            let moved = all.clone().find_map(register);
            accesses.extend(all.map(|c| (c, moved)));
        }
        _ => {}
    }
    for (cell, scalar) in accesses {
        if let Some(number) = found.of_cell[cell] {
            found.fits[number] &= scalar == Some(found.all[number].scalar);
        }
    }
}
