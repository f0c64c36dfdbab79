//! The instructions of the register machine.

use super::Cell;
use crate::ComputeType;
use crate::region::node::{Code as NodeCode, Direction, Order};
use crate::tile::TileOp;

/// An instruction. The meaning of the fields depends on the operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instr {
    pub(super) op: Op,
    /// The cell to write.
    pub(super) dst: Cell,
    pub(super) a: Cell,
    pub(super) b: Cell,
    pub(super) c: Cell,
    /// The target of a jump, or an index in one of the program's tables.
    pub(super) x: u16,
}

/// Calls a macro with the operations on cells: `binary` (name, type, method of `Num` or `Int`), `compare`
/// (name, the jump it becomes, type, operator), `convert` (name, from, to) and `fused` (name, type, the value
/// of `a`, `b`, `c`).
macro_rules! with_ops {
    ($callback:ident) => {
        $callback! {
            binary {
                AddF32 f32 add; SubF32 f32 sub; MulF32 f32 mul; DivF32 f32 div; MaxF32 f32 maximum; MinF32 f32 minimum;
                AddF64 f64 add; SubF64 f64 sub; MulF64 f64 mul; DivF64 f64 div; MaxF64 f64 maximum; MinF64 f64 minimum;
                AddI32 u32 add; SubI32 u32 sub; MulI32 u32 mul;
                AddI64 u64 add; SubI64 u64 sub; MulI64 u64 mul;
                AndI32 u32 and; OrI32 u32 or; XorI32 u32 xor; ShlI32 u32 shl; ShrU32 u32 shr_logical;
                AndI64 u64 and; OrI64 u64 or; XorI64 u64 xor; ShlI64 u64 shl; ShrU64 u64 shr_logical;
                MaxS32 i32 maximum; MinS32 i32 minimum; DivS32 i32 div; RemS32 i32 rem; ShrS32 i32 shr_arithmetic;
                MaxS64 i64 maximum; MinS64 i64 minimum; DivS64 i64 div; RemS64 i64 rem; ShrS64 i64 shr_arithmetic;
                DivU32 u32 div; RemU32 u32 rem; DivU64 u64 div; RemU64 u64 rem;
                AndPred u8 and; OrPred u8 or; XorPred u8 xor;
            }
            compare {
                EqF32 JumpEqF32 f32 ==; NeF32 JumpNeF32 f32 !=; LtF32 JumpLtF32 f32 <; LeF32 JumpLeF32 f32 <=;
                EqF64 JumpEqF64 f64 ==; NeF64 JumpNeF64 f64 !=; LtF64 JumpLtF64 f64 <; LeF64 JumpLeF64 f64 <=;
                EqI32 JumpEqI32 u32 ==; NeI32 JumpNeI32 u32 !=; LtS32 JumpLtS32 i32 <; LeS32 JumpLeS32 i32 <=;
                LtU32 JumpLtU32 u32 <; LeU32 JumpLeU32 u32 <=;
                EqI64 JumpEqI64 u64 ==; NeI64 JumpNeI64 u64 !=; LtS64 JumpLtS64 i64 <; LeS64 JumpLeS64 i64 <=;
                LtU64 JumpLtU64 u64 <; LeU64 JumpLeU64 u64 <=;
            }
            convert {
                S32ToF32 i32 f32; S32ToF64 i32 f64; S64ToF32 i64 f32; S64ToF64 i64 f64; F32ToF64 f32 f64; F64ToF32 f64 f32;
                F32ToS32 f32 i32; F64ToS64 f64 i64; S32ToS64 i32 i64; S64ToS32 i64 i32; U32ToU64 u32 u64;
                PredToI32 u8 u32; PredToI64 u8 u64; PredToF32 u8 f32; PredToF64 u8 f64;
            }
            fused {
                MulAddF32 f32 |a, b, c| a * b + c; MulSubF32 f32 |a, b, c| a * b - c; NegMulAddF32 f32 |a, b, c| c - a * b;
                MulAddF64 f64 |a, b, c| a * b + c; MulSubF64 f64 |a, b, c| a * b - c; NegMulAddF64 f64 |a, b, c| c - a * b;
                MulAddI32 u32 |a, b, c| a.wrapping_mul(b).wrapping_add(c);
                MulAddI64 u64 |a, b, c| a.wrapping_mul(b).wrapping_add(c);
            }
        }
    };
}
pub(super) use with_ops;

macro_rules! define {
    (
        binary { $($bin:ident $bin_t:ident $bin_f:ident;)* }
        compare { $($cmp:ident $jump:ident $cmp_t:ident $cmp_op:tt;)* }
        convert { $($cvt:ident $from:ident $to:ident;)* }
        fused { $($fused:ident $fused_t:ident |$a:ident, $b:ident, $c:ident| $fused_e:expr;)* }
    ) => {
        /// The operation of an instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(super) enum Op {
            $(#[doc = "dst = a op b"] $bin,)*
            $(#[doc = "dst = a op b, a boolean"] $cmp,)*
            $(#[doc = "jumps to `x` if a op b"] $jump,)*
            $(#[doc = "dst = a, converted"] $cvt,)*
            $(#[doc = "dst of a, b, c; both operations of floats round"] $fused,)*
            /// dst = a (a whole cell).
            Mov,
            /// dst = a ? b : c (whole cells).
            Select,
            /// Applies kernel `x` to single elements at a, b, c.
            Kernel,
            /// Performs entry `x` of the vector operations.
            Vector,
            /// Performs entry `x` of the copies.
            Copy,
            /// Performs entry `x` of the splats.
            Splat,
            /// dst = window `x`.
            Load,
            /// Window `x` = a.
            Store,
            /// Performs entry `x` of the calls.
            Call,
            /// Jumps to `x`.
            Jump,
            /// Jumps to `x` if a is true: the end of a loop's iteration.
            JumpIf,
            /// Jumps to `x` if a is false.
            JumpIfNot,
            /// Jumps to entry a (i32) of table `x`, or to the last one if there is no such entry.
            Switch,
            /// dst += a, then jumps to `x` if dst < b (i32).
            AddJumpLtS32,
            /// dst += a, then jumps to `x` if dst < b (i64).
            AddJumpLtS64,
            /// Ends the program.
            End,
            /// Does nothing; replaces instructions that an optimization removed.
            Nop,
        }

        impl Op {
            /// Returns the jump that is equivalent to this comparison followed by [`Op::JumpIf`].
            pub(super) fn jump(self) -> Option<Op> {
                match self {
                    $(Op::$cmp => Some(Op::$jump),)*
                    _ => None,
                }
            }

            /// Returns how many of a, b, c are cells that a scalar operation reads, or `None` for other
            /// operations.
            pub(super) fn scalar_reads(self) -> Option<usize> {
                match self {
                    $(Op::$bin => Some(2),)*
                    $(Op::$cmp => Some(2),)*
                    $(Op::$cvt => Some(1),)*
                    $(Op::$fused => Some(3),)*
                    Op::Mov => Some(1),
                    Op::Select | Op::Kernel => Some(3),
                    _ => None,
                }
            }

            /// Returns `true` for a jump that compares a and b.
            pub(super) fn is_compare_jump(self) -> bool {
                matches!(self, $(Op::$jump)|*)
            }
        }
    };
}
with_ops!(define);

/// Returns the instruction for a region's operation on single elements, and whether its first two operands
/// are swapped.
pub(super) fn scalar_op(code: NodeCode, ty: ComputeType, args: &[ComputeType]) -> Option<(Op, bool)> {
    use ComputeType::{F32, F64, Pred, S32, S64, U32, U64};
    let a = *args.first()?;
    let plain = |op| Some((op, false));
    match code {
        NodeCode::Tile(op) if a == ty => plain(match (op, a) {
            (TileOp::Add, F32) => Op::AddF32,
            (TileOp::Subtract, F32) => Op::SubF32,
            (TileOp::Multiply, F32) => Op::MulF32,
            (TileOp::Divide, F32) => Op::DivF32,
            (TileOp::Maximum, F32) => Op::MaxF32,
            (TileOp::Minimum, F32) => Op::MinF32,
            (TileOp::Add, F64) => Op::AddF64,
            (TileOp::Subtract, F64) => Op::SubF64,
            (TileOp::Multiply, F64) => Op::MulF64,
            (TileOp::Divide, F64) => Op::DivF64,
            (TileOp::Maximum, F64) => Op::MaxF64,
            (TileOp::Minimum, F64) => Op::MinF64,
            (TileOp::Add, S32 | U32) => Op::AddI32,
            (TileOp::Subtract, S32 | U32) => Op::SubI32,
            (TileOp::Multiply, S32 | U32) => Op::MulI32,
            (TileOp::Add, S64 | U64) => Op::AddI64,
            (TileOp::Subtract, S64 | U64) => Op::SubI64,
            (TileOp::Multiply, S64 | U64) => Op::MulI64,
            (TileOp::And, S32 | U32) => Op::AndI32,
            (TileOp::Or, S32 | U32) => Op::OrI32,
            (TileOp::Xor, S32 | U32) => Op::XorI32,
            (TileOp::ShiftLeft, S32 | U32) => Op::ShlI32,
            (TileOp::ShiftRightLogical, S32 | U32) => Op::ShrU32,
            (TileOp::And, S64 | U64) => Op::AndI64,
            (TileOp::Or, S64 | U64) => Op::OrI64,
            (TileOp::Xor, S64 | U64) => Op::XorI64,
            (TileOp::ShiftLeft, S64 | U64) => Op::ShlI64,
            (TileOp::ShiftRightLogical, S64 | U64) => Op::ShrU64,
            (TileOp::Maximum, S32) => Op::MaxS32,
            (TileOp::Minimum, S32) => Op::MinS32,
            (TileOp::Divide, S32) => Op::DivS32,
            (TileOp::Remainder, S32) => Op::RemS32,
            (TileOp::ShiftRightArithmetic, S32) => Op::ShrS32,
            (TileOp::Maximum, S64) => Op::MaxS64,
            (TileOp::Minimum, S64) => Op::MinS64,
            (TileOp::Divide, S64) => Op::DivS64,
            (TileOp::Remainder, S64) => Op::RemS64,
            (TileOp::ShiftRightArithmetic, S64) => Op::ShrS64,
            (TileOp::Divide, U32) => Op::DivU32,
            (TileOp::Remainder, U32) => Op::RemU32,
            (TileOp::Divide, U64) => Op::DivU64,
            (TileOp::Remainder, U64) => Op::RemU64,
            (TileOp::And, Pred) => Op::AndPred,
            (TileOp::Or, Pred) => Op::OrPred,
            (TileOp::Xor, Pred) => Op::XorPred,
            _ => return None,
        }),
        NodeCode::Compare(direction, Order::Partial) => {
            use Direction::{Eq, Ge, Gt, Le, Lt, Ne};
            let swapped = matches!(direction, Ge | Gt);
            let op = match (direction, a) {
                (Eq, F32) => Op::EqF32,
                (Ne, F32) => Op::NeF32,
                (Lt | Gt, F32) => Op::LtF32,
                (Le | Ge, F32) => Op::LeF32,
                (Eq, F64) => Op::EqF64,
                (Ne, F64) => Op::NeF64,
                (Lt | Gt, F64) => Op::LtF64,
                (Le | Ge, F64) => Op::LeF64,
                (Eq, S32 | U32) => Op::EqI32,
                (Ne, S32 | U32) => Op::NeI32,
                (Lt | Gt, S32) => Op::LtS32,
                (Le | Ge, S32) => Op::LeS32,
                (Lt | Gt, U32) => Op::LtU32,
                (Le | Ge, U32) => Op::LeU32,
                (Eq, S64 | U64) => Op::EqI64,
                (Ne, S64 | U64) => Op::NeI64,
                (Lt | Gt, S64) => Op::LtS64,
                (Le | Ge, S64) => Op::LeS64,
                (Lt | Gt, U64) => Op::LtU64,
                (Le | Ge, U64) => Op::LeU64,
                _ => return None,
            };
            Some((op, swapped))
        }
        NodeCode::Select if ty.size() <= 8 => plain(Op::Select),
        NodeCode::Convert => plain(match (a, ty) {
            (S32, F32) => Op::S32ToF32,
            (S32, F64) => Op::S32ToF64,
            (S64, F32) => Op::S64ToF32,
            (S64, F64) => Op::S64ToF64,
            (F32, F64) => Op::F32ToF64,
            (F64, F32) => Op::F64ToF32,
            (F32, S32) => Op::F32ToS32,
            (F64, S64) => Op::F64ToS64,
            (S32, S64 | U64) => Op::S32ToS64,
            (S64 | U64, S32 | U32) => Op::S64ToS32,
            (U32, U64 | S64) => Op::U32ToU64,
            (S32, U32) | (U32, S32) | (S64, U64) | (U64, S64) => Op::Mov,
            (Pred, S32 | U32) => Op::PredToI32,
            (Pred, S64 | U64) => Op::PredToI64,
            (Pred, F32) => Op::PredToF32,
            (Pred, F64) => Op::PredToF64,
            _ => return None,
        }),
        _ => None,
    }
}
