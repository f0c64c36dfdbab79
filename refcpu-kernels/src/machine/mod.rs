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
mod native;
mod program;
#[cfg(test)]
mod tests;

pub use assembler::{Assembler, Label};
pub use exec::run;
pub use program::{ArrayId, Formula, Matrices, Outside, Place, Start};

use native::Native;
use program::Program;
use std::sync::Arc;

/// A finished program, which is immutable.
#[derive(Clone)]
pub struct Code {
    program: Program,
    /// The machine code, which copies of the program share.
    native: Arc<Native>,
}

impl Code {
    /// Returns the number of instructions.
    pub fn instructions(&self) -> usize {
        self.program.instrs.len()
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.program.fmt(f)
    }
}
