//! A small code generator: functions over typed registers and byte arrays, as x86-64 machine code.
//!
//! A [`Function`] consists of blocks of instructions. [`interpret`] executes it; [`Compiled::new`] translates it to machine code
//! that has the same results, bit for bit. Both verify the function first: types match, no register is read before it is
//! assigned, and no access can leave its array. Machine code is therefore as safe as the interpreter.
//!
//! ```
//! use refcpu_codegen::*;
//! // Adds the first and the second float of an array, and writes the third.
//! let mut f = Function::new();
//! let array = f.array(12);
//! let [a, b, sum] = [(); 3].map(|()| f.reg(Type::one(Scalar::F32)));
//! let start = f.block();
//! f.select(start);
//! f.push(Inst::Load { dst: a, at: Access::fixed(array, 0) });
//! f.push(Inst::Load { dst: b, at: Access::fixed(array, 4) });
//! f.push(Inst::Binary { op: BinaryOp::Add, dst: sum, a, b });
//! f.push(Inst::Store { src: sum, at: Access::fixed(array, 8) });
//! f.end(End::Return(0));
//!
//! let mut memory: Vec<u8> = [1.5f32, 2.25, 0.0].iter().flat_map(|x| x.to_le_bytes()).collect();
//! assert_eq!(interpret(&f, &mut [&mut memory], &mut |_, _| 0), Ok(0));
//! assert_eq!(memory[8..], 3.75f32.to_le_bytes());
//!
//! # memory[8..].fill(0);
//! if let Ok(code) = Compiled::new(&f) {
//!     assert_eq!(code.call(&mut [&mut memory], &mut |_| 0), 0);
//!     assert_eq!(memory[8..], 3.75f32.to_le_bytes());
//! }
//! ```
#![deny(unsafe_code)]

mod compiled;
mod ir;
#[cfg(all(target_arch = "x86_64", unix))]
mod memory;
#[cfg(test)]
mod tests;
#[cfg(all(target_arch = "x86_64", unix))]
mod x86;

pub use compiled::{Compiled, MAX_CODE_BYTES, disassemble};
pub use ir::{
    Access, Array, BinaryOp, Block, End, Error, Function, Index, Inst, InstructionSet, Reg, Relation, Scalar,
    Type, UnaryOp, interpret,
};
