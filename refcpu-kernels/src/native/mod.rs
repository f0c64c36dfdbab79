//! Machine code for kernels: the operations that the code generator has, and the decision to use it.

mod arithmetic;
mod functions;
mod listing;
mod perf_map;

pub(crate) use arithmetic::{
    Arithmetic, binary, compute_scalar, is_swapped, narrow_operation, relation, scalar_of, tile_operation,
};

use crate::isa::{Level, level};
use refcpu_codegen::{Compiled, Error, Function, InstructionSet};
use std::sync::{Once, OnceLock};

/// Returns the largest instruction set for machine code on this machine, or `None` if there is no machine code, as with
/// `REFCPU_CODEGEN=0`.
pub(crate) fn instruction_set() -> Option<InstructionSet> {
    static SET: OnceLock<Option<InstructionSet>> = OnceLock::new();
    *SET.get_or_init(|| {
        let is_enabled = std::env::var_os("REFCPU_CODEGEN").is_none_or(|value| value != "0");
        match level() {
            _ if !is_enabled => None,
            Level::Baseline => None,
            Level::Avx2 => Some(InstructionSet::Avx2),
            Level::Avx512 => Some(InstructionSet::Avx512),
        }
    })
}

/// Compiles a function, records its addresses for `perf` with this name, and writes its code to the folder of the dumps.
///
/// # Errors
/// Returns an error if the code is too large or has no memory.
pub(crate) fn compile(f: &Function, name: &str) -> Result<Compiled, Error> {
    let code = Compiled::new(f)?;
    perf_map::record(&code, name);
    listing::write(f, name);
    Ok(code)
}

/// Reports that there is no executable memory, once per process. Code that is too large stays interpreted without a
/// message.
pub(crate) fn report(error: &Error) {
    static REPORTED: Once = Once::new();
    if matches!(error, Error::Memory(_) | Error::Full { .. }) {
        REPORTED.call_once(|| eprintln!("refcpu: programs are interpreted from now on, because {error}"));
    }
}
