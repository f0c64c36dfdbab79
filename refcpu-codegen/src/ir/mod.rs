//! The intermediate representation: its parts, rules, liveness and interpreter.

mod error;
mod function;
mod interpret;
mod live;
mod passes;
mod verify;

pub use error::Error;
pub use function::{
    Access, Array, BinaryOp, Block, End, Function, Index, Inst, InstructionSet, Reg, Relation, Scalar, Type,
    UnaryOp,
};
pub use interpret::interpret;
pub(crate) use live::{Interval, Liveness};
pub(crate) use verify::verify;
#[cfg(test)]
pub(crate) use verify::{can_choose, is_type};
