//! A small register machine, for loops whose steps do less than it takes to call a kernel.
//!
//! A program works on numbered cells of eight bytes, and on arrays outside. A value is one element in a cell, or a short
//! array in a row of cells; arithmetic on single elements is one instruction, and on short arrays one call of the loop
//! that regions use too, so results are those of a [`crate::region::Region`], bit by bit. Windows of arrays are read and
//! written in place. What the machine has no instruction for is done by the caller, who gets the arrays.
//!
//! An [`Assembler`] makes programs. Straight-line arithmetic goes through the `Builder` of regions, one for each block;
//! an operation becomes an instruction when its result is first wanted in a cell.

mod assembler;
mod exec;
mod instr;
mod optimise;
#[cfg(test)]
mod tests;

pub use assembler::{Assembler, Label};
pub use exec::run;

use crate::DType;
use crate::region::node::raw_type;
use crate::tile::Kernel;
use instr::Instr;

/// Number of a cell.
type Cell = u16;

/// Most cells of a program: 256 KiB, what a second-level cache holds.
const MAX_CELLS: usize = 1 << 15;

/// Elements of a value in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    cell: Cell,
    dtype: DType,
    len: usize,
}

impl Place {
    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    #[allow(clippy::len_without_is_empty, reason = "a place has at least one element")]
    pub fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> usize {
        self.len * self.dtype.size()
    }

    /// The cells that the value takes.
    fn cells(&self) -> std::ops::Range<usize> {
        let start = usize::from(self.cell);
        start..start + self.bytes().div_ceil(8)
    }
}

/// An array that windows are cut from and calls work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Array(u16);

/// What an array is.
#[derive(Clone, Copy, Debug)]
struct ArraySpec {
    base: Base,
    dtype: DType,
    len: usize,
}

/// Where an array lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// Operand of this number.
    Read(usize),
    /// Result of this number, which holds its initial value when the program begins.
    Write(usize),
    /// Cells.
    Cells(Cell),
}

/// A dimension along which a window moves.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The index, a single integer.
    pub index: Place,
    /// The largest index at which the window is inside of the array.
    pub limit: usize,
    /// Elements to advance per step of the index.
    pub step: usize,
}

/// What happens to a window outside of its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// It is moved inside, as `dynamic_slice` does.
    Clamp,
    /// It is not written, as by `scatter`.
    Skip,
}

/// Part of an array: `runs` of consecutive elements, all moved by the same indices.
#[derive(Clone, Debug)]
struct Window {
    array: Array,
    /// Per moving dimension: the cell of the index, its type, the largest index, bytes per step.
    starts: Vec<(Cell, DType, i64, usize)>,
    /// First byte of each run.
    runs: Vec<usize>,
    /// Bytes of a run.
    run: usize,
    outside: Outside,
}

/// A loop over short arrays.
#[derive(Clone, Copy, Debug)]
struct Vector {
    kernel: Kernel,
    dst: Place,
    src: [Place; 3],
    n: usize,
}

/// An array as a call gets it.
#[derive(Clone, Debug)]
struct Operand {
    array: Array,
    dtype: DType,
    dims: Box<[usize]>,
}

/// Something that the caller does.
#[derive(Clone, Debug)]
struct Call {
    what: usize,
    reads: Vec<Operand>,
    writes: Vec<Operand>,
}

/// A finished program. Immutable plain data.
#[derive(Clone)]
pub struct Code {
    instrs: Vec<Instr>,
    /// What cells hold at the start.
    cells: Vec<u64>,
    arrays: Vec<ArraySpec>,
    windows: Vec<Window>,
    /// Kernels on single elements.
    kernels: Vec<Kernel>,
    vectors: Vec<Vector>,
    /// To, from.
    copies: Vec<(Place, Place)>,
    /// Array, element.
    splats: Vec<(Place, Place)>,
    calls: Vec<Call>,
    switches: Vec<Vec<u16>>,
    reads: usize,
    writes: usize,
}

impl Code {
    /// Number of instructions.
    pub fn instructions(&self) -> usize {
        self.instrs.len()
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "code of {} cells:", self.cells.len())?;
        for (at, i) in self.instrs.iter().enumerate() {
            writeln!(f, "  {at:4}: {:?} {} <- {} {} {} x {}", i.op, i.dst, i.a, i.b, i.c, i.x)?;
        }
        Ok(())
    }
}

/// Cells for so many elements of a type in its memory form.
fn cells_of(dtype: DType, len: usize) -> usize {
    debug_assert_eq!(raw_type(dtype).size(), dtype.size());
    (len * dtype.size()).div_ceil(8)
}
