//! Programs as machine code.
//!
//! A program is interpreted until its loops have run for some iterations. It is then translated to a function of
//! [`refcpu_codegen`], whose registers hold the cells that only single elements use, and compiled. Whenever the code pauses, the
//! cells contain these values again, so that interpreter and machine code can continue each other's work.

mod arrays;
mod elements;
mod formula;
mod homes;
mod memory;
mod pieces;
mod products;
mod reductions;
mod scalar;
#[cfg(test)]
mod tests;
mod translate;
mod types;

use super::program::Program;
use crate::native::{instruction_set, report};
use refcpu_codegen::{Compiled, InstructionSet};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The instruction set of the code: short arrays in loops have at most a few vectors.
const SET: InstructionSet = InstructionSet::Avx2;

/// The number of iterations after which a program is compiled: interpreting them takes about as long as compiling.
const WARM: u32 = 512;

/// The number of iterations between two pauses of machine code.
const STEPS: u32 = 1 << 14;

/// The number of iterations between two pauses of machine code that calls kernels, which can take long.
const STEPS_WITH_CALLS: u32 = 1 << 10;

/// The longest program that is compiled, so that compiling takes milliseconds at most.
const MAX_INSTRUCTIONS: usize = 3000;

/// The machine code of a program, and the decision to compile it.
#[derive(Debug, Default)]
pub(super) struct Native {
    /// The iterations that were interpreted.
    iterations: AtomicU32,
    program: OnceLock<Option<MachineCode>>,
}

/// A compiled program.
#[derive(Debug)]
pub(super) struct MachineCode {
    code: Compiled,
    /// The instructions at which the code can start.
    entries: Vec<u16>,
    /// The arrays of the program that the code accesses, by number; cells are not among them.
    arrays: Vec<usize>,
}

/// The end of a run of machine code.
pub(super) enum Outcome {
    /// The program has ended.
    Ended,
    /// The program can continue at this instruction.
    Paused(u16),
    /// A call failed.
    Failed,
}

/// The value that the code returns if the program has ended.
const ENDED: u32 = 0;
/// The value that the code returns if a call failed. Other values are one more than the number of an entry.
const FAILED: u32 = u32::MAX;

impl Native {
    /// Returns the machine code of a program if there is any, after `iterations` more that were interpreted.
    pub(super) fn after(&self, code: &Program, iterations: u32) -> Option<&MachineCode> {
        if let Some(program) = self.program.get() {
            return program.as_ref();
        }
        let before = self.iterations.fetch_add(iterations, Ordering::Relaxed);
        if before.saturating_add(iterations) < WARM {
            return None;
        }
        self.compiled(code)
    }

    /// Returns the machine code of a program, after compiling it if necessary; `None` if it is not compiled.
    pub(super) fn compiled(&self, code: &Program) -> Option<&MachineCode> {
        let compile = || {
            let compiles = instruction_set().is_some() && code.instrs.len() <= MAX_INSTRUCTIONS;
            if compiles { translate::program(code).map_err(|e| report(&e)).ok() } else { None }
        };
        self.program.get_or_init(compile).as_ref()
    }
}

impl MachineCode {
    /// Executes the code from an instruction at which it can start. `call` executes the instruction of a number on the cells
    /// and the arrays, and returns 0 if it succeeded.
    ///
    /// # Safety
    /// `cells` and `bases` must point to the cells and arrays that the program was created for, which nothing else uses but
    /// `call`.
    pub(super) unsafe fn run(
        &self,
        cells: *mut u64,
        bases: &[*mut u8],
        start: u16,
        call: &mut dyn FnMut(u32) -> u64,
    ) -> Outcome {
        let entry = self.entries.iter().position(|e| *e == start).expect("programs pause at entries");
        let mut control = (entry as u64).to_le_bytes();
        let mut addresses = vec![cells.cast(), control.as_mut_ptr()];
        addresses.extend(self.arrays.iter().map(|a| bases[*a]));
        // SAFETY: guaranteed by the caller; the function was declared with the sizes of the cells and arrays, and `control` has
        // eight bytes.
        match unsafe { self.code.call_at(&addresses, call) } {
            ENDED => Outcome::Ended,
            FAILED => Outcome::Failed,
            entry => Outcome::Paused(self.entries[entry as usize - 1]),
        }
    }
}
