//! A small register machine for loops whose iterations take less time than the call of a kernel.
//!
//! A program operates on numbered cells of eight bytes, and on external arrays. A value is one element in a
//! cell, or a short array in consecutive cells. Arithmetic on single elements is one instruction. Arithmetic
//! on short arrays calls the loop that regions use too, so its results are those of a
//! [`crate::region::Region`], bit by bit. Windows of arrays are read and written in place. The caller
//! performs operations for which there is no instruction; it receives the arrays.
//!
//! An [`Assembler`] creates programs. Straight-line arithmetic uses the `Builder` of regions, one for each
//! block. An operation becomes an instruction when its result is first needed in a cell.

mod assembler;
mod exec;
mod instr;
mod native;
mod optimise;
#[cfg(test)]
mod tests;

pub use assembler::{Assembler, Label};
pub use exec::run;

use crate::tile::{Kernel, Opcode};
use crate::{ComputeType, DType};
use instr::Instr;
use native::Native;
use std::sync::Arc;

/// The number of a cell.
type Cell = u16;

/// The maximum number of cells of a program: 256 KiB, which fit into the second-level cache.
const MAX_CELLS: usize = 1 << 15;

/// The cells that hold the elements of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    cell: Cell,
    dtype: DType,
    len: usize,
}

impl Place {
    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the number of elements.
    #[allow(clippy::len_without_is_empty, reason = "a place has at least one element")]
    pub fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> usize {
        self.len * self.dtype.size()
    }

    /// Returns the cells that the value occupies.
    fn cells(&self) -> std::ops::Range<usize> {
        let start = usize::from(self.cell);
        start..start + self.bytes().div_ceil(8)
    }
}

/// An array that windows and calls access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayId(u16);

/// The description of an array.
#[derive(Clone, Copy, Debug)]
struct ArraySpec {
    base: Base,
    dtype: DType,
    len: usize,
}

/// The memory of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// The operand with this number.
    Read(usize),
    /// The result with this number, which holds its initial value when the program begins.
    Write(usize),
    /// Cells, beginning with this one.
    Cells(Cell),
}

/// A dimension along which a window is shifted.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The index, which is a single integer.
    pub index: Place,
    /// The largest index for which the window lies inside the array.
    pub limit: usize,
    /// The number of elements by which the window is shifted per unit of the index.
    pub step: usize,
}

/// The treatment of a window that is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// The window is shifted inside, as by `dynamic_slice`.
    Clamp,
    /// The window is not written, as by `scatter`.
    Skip,
}

/// A part of an array: `runs` of consecutive elements, which are shifted by the same indices.
#[derive(Clone, Debug)]
struct Window {
    array: ArrayId,
    /// For each dimension along which the window is shifted: the cell of the index, its type, the largest
    /// index, and the number of bytes per unit.
    starts: Vec<(Cell, DType, i64, usize)>,
    /// The offset of each run in bytes.
    runs: Vec<usize>,
    /// The size of a run in bytes.
    run: usize,
    outside: Outside,
}

/// A kernel for single elements.
#[derive(Clone, Copy, Debug)]
struct ScalarKernel {
    kernel: Kernel,
    opcode: Opcode,
    /// The type of the result.
    to: ComputeType,
    /// The type of the first operand.
    from: ComputeType,
}

/// A vector operation on short arrays.
#[derive(Clone, Copy, Debug)]
struct Vector {
    kernel: Kernel,
    opcode: Opcode,
    /// The type of the result.
    to: ComputeType,
    /// The type of the first operand.
    from: ComputeType,
    dst: Place,
    src: [Place; 3],
    n: usize,
}

/// An array of a call.
#[derive(Clone, Debug)]
struct Operand {
    array: ArrayId,
    dtype: DType,
    dims: Box<[usize]>,
}

/// An action of the caller.
#[derive(Clone, Debug)]
struct Call {
    what: usize,
    reads: Vec<Operand>,
    writes: Vec<Operand>,
}

/// A finished program, which is immutable.
#[derive(Clone)]
pub struct Code {
    instrs: Vec<Instr>,
    /// The initial contents of the cells.
    cells: Vec<u64>,
    arrays: Vec<ArraySpec>,
    windows: Vec<Window>,
    /// The kernels for single elements.
    kernels: Vec<ScalarKernel>,
    vectors: Vec<Vector>,
    /// The copies: destination and source.
    copies: Vec<(Place, Place)>,
    /// The splats: array and element.
    splats: Vec<(Place, Place)>,
    calls: Vec<Call>,
    switches: Vec<Vec<u16>>,
    reads: usize,
    writes: usize,
    /// The machine code, which copies of the program share.
    native: Arc<Native>,
}

impl Code {
    /// Returns the number of instructions.
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

/// Returns the number of cells for `len` elements of a type in its representation in memory.
fn cells_of(dtype: DType, len: usize) -> usize {
    debug_assert_eq!(dtype.raw_type().size(), dtype.size());
    (len * dtype.size()).div_ceil(8)
}
