//! Compiled functions.

use crate::ir::Error;
use crate::ir::Function;
use crate::ir::verify;
#[cfg(all(target_arch = "x86_64", unix))]
use crate::{
    ir::Liveness,
    memory::{self, CodeMemory},
    x86,
};
use std::ops::Range;

/// The number of bytes that the machine code of all functions of a process may occupy, in whole pages. Each function also is a
/// mapping of its own, of which Linux allows 65,530 by default.
pub const MAX_CODE_BYTES: usize = 128 << 20;

/// Returns the machine code of a function as text in Intel's syntax, with the function's instructions beside it.
///
/// ```
/// use refcpu_codegen::*;
/// let mut f = Function::new();
/// let (array, x) = (f.array(4), f.reg(Type::one(Scalar::F32)));
/// let start = f.block();
/// f.select(start);
/// f.push(Inst::Load { dst: x, at: Access::fixed(array, 0) });
/// f.push(Inst::Binary { op: BinaryOp::Add, dst: x, a: x, b: x });
/// f.push(Inst::Store { src: x, at: Access::fixed(array, 0) });
/// f.end(End::Return(0));
/// if let Ok(text) = disassemble(&f) {
///     assert!(text.contains("vaddss") && text.contains("; Binary { op: Add"), "{text}");
///     assert!(text.contains("mov eax,0"), "{text}");
/// }
/// ```
///
/// # Errors
/// Returns an error if the function is invalid, or if the system is not supported.
pub fn disassemble(f: &Function) -> Result<String, Error> {
    let liveness = verify(f)?;
    #[cfg(all(target_arch = "x86_64", unix))]
    return x86::disassemble(f, &liveness);
    #[cfg(not(all(target_arch = "x86_64", unix)))]
    {
        drop(liveness);
        Err(Error::Unsupported)
    }
}

/// A function as machine code.
#[derive(Debug)]
pub struct Compiled {
    #[cfg(all(target_arch = "x86_64", unix))]
    memory: CodeMemory,
    /// The sizes of the arrays in bytes.
    arrays: Vec<u64>,
    /// The size of the code in bytes.
    bytes: usize,
}

impl Compiled {
    /// Compiles a function.
    ///
    /// # Errors
    /// Returns an error if the function is invalid, if the processor or the system is not supported, if the system refuses
    /// executable memory, or if the machine code of the process already occupies [`MAX_CODE_BYTES`].
    pub fn new(f: &Function) -> Result<Self, Error> {
        let liveness = verify(f)?;
        #[cfg(all(target_arch = "x86_64", unix))]
        return Self::assemble(f, &liveness);
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        {
            drop(liveness);
            Err(Error::Unsupported)
        }
    }

    #[cfg(all(target_arch = "x86_64", unix))]
    fn assemble(f: &Function, liveness: &Liveness) -> Result<Self, Error> {
        if !x86::is_supported(f.set) {
            return Err(Error::Unsupported);
        }
        let code = x86::assemble(f, liveness)?;
        Ok(Self {
            memory: CodeMemory::new(&code, MAX_CODE_BYTES)?,
            arrays: f.arrays.clone(),
            bytes: code.len(),
        })
    }

    /// Returns the size of the code in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the addresses of the code, for profilers.
    pub fn addresses(&self) -> Range<usize> {
        #[cfg(all(target_arch = "x86_64", unix))]
        return self.memory.addresses();
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        unreachable!("nothing is compiled on this system")
    }

    /// Executes the code on distinct arrays. `call` answers the function's calls: it receives the number, and cannot access the
    /// arrays. Returns the value that the function returns.
    ///
    /// # Panics
    /// Panics if the number or the sizes of the arrays are not those that the function declares, and with a panic of `call`.
    pub fn call(&self, arrays: &mut [&mut [u8]], call: &mut dyn FnMut(u32) -> u64) -> u32 {
        let sizes: Vec<u64> = arrays.iter().map(|a| a.len() as u64).collect();
        assert_eq!(sizes, self.arrays, "the arrays of the function");
        #[cfg(all(target_arch = "x86_64", unix))]
        return memory::call_on_slices(&self.memory, arrays, call);
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        {
            let _ = call;
            unreachable!("nothing is compiled on this system")
        }
    }

    /// Executes the code on arrays at these addresses. `call` answers the function's calls, and may access the arrays. Returns
    /// the value that the function returns.
    ///
    /// # Safety
    /// Each address must be that of the declared number of bytes, which are readable, writable if the function stores to them,
    /// and used by nothing else except `call` during the execution. Arrays may overlap.
    ///
    /// # Panics
    /// Panics if the number of addresses is wrong, and with a panic of `call`.
    #[allow(unsafe_code, reason = "the caller knows the arrays")]
    pub unsafe fn call_at(&self, bases: &[*mut u8], call: &mut dyn FnMut(u32) -> u64) -> u32 {
        assert_eq!(bases.len(), self.arrays.len(), "the arrays of the function");
        #[cfg(all(target_arch = "x86_64", unix))]
        // SAFETY: guaranteed by the caller; the code is that of a verified function, and was compiled on this processor.
        return unsafe { memory::call_at(&self.memory, bases, call) };
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        {
            let _ = call;
            unreachable!("nothing is compiled on this system")
        }
    }
}
