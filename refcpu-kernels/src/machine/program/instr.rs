//! The instructions of the register machine.

use super::Cell;
use crate::ComputeType;
use crate::tile::{Direction, Opcode, Order, TileOp};

/// An instruction. The meaning of the fields depends on the operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instr {
    pub(crate) op: Op,
    /// The cell to write.
    pub(crate) dst: Cell,
    pub(crate) a: Cell,
    pub(crate) b: Cell,
    pub(crate) c: Cell,
    /// The target of a jump, or an index in one of the program's tables.
    pub(crate) x: u16,
}

/// Calls a macro with the operations on cells, each with the operation of regions that it performs:
/// * `binary`: name, type, method of `Num` or `Int`, elementwise operation and the types of its operands;
/// * `compare`: name, the jump it becomes, type, operator, relation and the types of its operands;
/// * `convert`: name, from, to, the types of the operand and of the result;
/// * `fused`: name, type, the value of `a`, `b`, `c`.
macro_rules! with_ops {
    ($callback:ident) => {
        $callback! {
            binary {
                AddF32 f32 add Add F32; SubF32 f32 sub Subtract F32; MulF32 f32 mul Multiply F32;
                DivF32 f32 div Divide F32; MaxF32 f32 maximum Maximum F32; MinF32 f32 minimum Minimum F32;
                AddF64 f64 add Add F64; SubF64 f64 sub Subtract F64; MulF64 f64 mul Multiply F64;
                DivF64 f64 div Divide F64; MaxF64 f64 maximum Maximum F64; MinF64 f64 minimum Minimum F64;
                AddI32 u32 add Add S32|U32; SubI32 u32 sub Subtract S32|U32; MulI32 u32 mul Multiply S32|U32;
                AddI64 u64 add Add S64|U64; SubI64 u64 sub Subtract S64|U64; MulI64 u64 mul Multiply S64|U64;
                AndI32 u32 and And S32|U32; OrI32 u32 or Or S32|U32; XorI32 u32 xor Xor S32|U32;
                ShlI32 u32 shl ShiftLeft S32|U32; ShrU32 u32 shr_logical ShiftRightLogical S32|U32;
                AndI64 u64 and And S64|U64; OrI64 u64 or Or S64|U64; XorI64 u64 xor Xor S64|U64;
                ShlI64 u64 shl ShiftLeft S64|U64; ShrU64 u64 shr_logical ShiftRightLogical S64|U64;
                MaxS32 i32 maximum Maximum S32; MinS32 i32 minimum Minimum S32; DivS32 i32 div Divide S32;
                RemS32 i32 rem Remainder S32; ShrS32 i32 shr_arithmetic ShiftRightArithmetic S32;
                MaxS64 i64 maximum Maximum S64; MinS64 i64 minimum Minimum S64; DivS64 i64 div Divide S64;
                RemS64 i64 rem Remainder S64; ShrS64 i64 shr_arithmetic ShiftRightArithmetic S64;
                DivU32 u32 div Divide U32; RemU32 u32 rem Remainder U32;
                DivU64 u64 div Divide U64; RemU64 u64 rem Remainder U64;
                AndPred u8 and And Pred; OrPred u8 or Or Pred; XorPred u8 xor Xor Pred;
            }
            compare {
                EqF32 JumpEqF32 f32 == Eq F32; NeF32 JumpNeF32 f32 != Ne F32;
                LtF32 JumpLtF32 f32 < Lt F32; LeF32 JumpLeF32 f32 <= Le F32;
                EqF64 JumpEqF64 f64 == Eq F64; NeF64 JumpNeF64 f64 != Ne F64;
                LtF64 JumpLtF64 f64 < Lt F64; LeF64 JumpLeF64 f64 <= Le F64;
                EqI32 JumpEqI32 u32 == Eq S32|U32; NeI32 JumpNeI32 u32 != Ne S32|U32;
                LtS32 JumpLtS32 i32 < Lt S32; LeS32 JumpLeS32 i32 <= Le S32;
                LtU32 JumpLtU32 u32 < Lt U32; LeU32 JumpLeU32 u32 <= Le U32;
                EqI64 JumpEqI64 u64 == Eq S64|U64; NeI64 JumpNeI64 u64 != Ne S64|U64;
                LtS64 JumpLtS64 i64 < Lt S64; LeS64 JumpLeS64 i64 <= Le S64;
                LtU64 JumpLtU64 u64 < Lt U64; LeU64 JumpLeU64 u64 <= Le U64;
            }
            convert {
                S32ToF32 i32 f32 S32 => F32; S32ToF64 i32 f64 S32 => F64;
                S64ToF32 i64 f32 S64 => F32; S64ToF64 i64 f64 S64 => F64;
                F32ToF64 f32 f64 F32 => F64; F64ToF32 f64 f32 F64 => F32;
                F32ToS32 f32 i32 F32 => S32; F64ToS64 f64 i64 F64 => S64;
                S32ToS64 i32 i64 S32 => S64|U64; S64ToS32 i64 i32 S64|U64 => S32|U32;
                U32ToU64 u32 u64 U32 => U64|S64;
                PredToI32 u8 u32 Pred => S32|U32; PredToI64 u8 u64 Pred => S64|U64;
                PredToF32 u8 f32 Pred => F32; PredToF64 u8 f64 Pred => F64;
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
pub(crate) use with_ops;

macro_rules! define {
    (
        binary { $($bin:ident $bin_t:ident $bin_f:ident $tile_op:ident $($bin_ty:ident)|+;)* }
        compare { $($cmp:ident $jump:ident $cmp_t:ident $cmp_op:tt $relation:ident $($cmp_ty:ident)|+;)* }
        convert { $($cvt:ident $from:ident $to:ident $($from_ty:ident)|+ => $($to_ty:ident)|+;)* }
        fused { $($fused:ident $fused_t:ident |$a:ident, $b:ident, $c:ident| $fused_e:expr;)* }
    ) => {
        /// The operation of an instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum Op {
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
            pub(crate) fn jump(self) -> Option<Op> {
                match self {
                    $(Op::$cmp => Some(Op::$jump),)*
                    _ => None,
                }
            }

            /// Returns the number of cells among a, b, c that a scalar operation reads, or `None` for other
            /// operations.
            pub(crate) fn scalar_reads(self) -> Option<usize> {
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

            /// Returns the instruction for an elementwise operation on operands of type `ty`.
            fn elementwise(op: TileOp, ty: ComputeType) -> Option<Op> {
                match (op, ty) {
                    $((TileOp::$tile_op, $(ComputeType::$bin_ty)|+) => Some(Op::$bin),)*
                    _ => None,
                }
            }

            /// Returns the instruction for a comparison of operands of type `ty`.
            fn comparison(relation: Direction, ty: ComputeType) -> Option<Op> {
                match (relation, ty) {
                    $((Direction::$relation, $(ComputeType::$cmp_ty)|+) => Some(Op::$cmp),)*
                    _ => None,
                }
            }

            /// Returns the instruction for a conversion.
            fn conversion(from: ComputeType, to: ComputeType) -> Option<Op> {
                match (from, to) {
                    $(($(ComputeType::$from_ty)|+, $(ComputeType::$to_ty)|+) => Some(Op::$cvt),)*
                    _ => None,
                }
            }

            /// Returns `true` for a jump that compares a and b.
            pub(crate) fn is_compare_jump(self) -> bool {
                matches!(self, $(Op::$jump)|*)
            }
        }
    };
}
with_ops!(define);

/// Returns the instruction for a region's operation on single elements of type `from` with a result of type
/// `to`, and whether its first two operands are swapped.
pub(crate) fn scalar_op(opcode: Opcode, to: ComputeType, from: ComputeType) -> Option<(Op, bool)> {
    use ComputeType::{S32, S64, U32, U64};
    use Direction::{Ge, Gt, Le, Lt};
    let op = match opcode {
        Opcode::Tile(op) if from == to => Op::elementwise(op, from),
        Opcode::Compare(Gt, Order::Partial) => return Some((Op::comparison(Lt, from)?, true)),
        Opcode::Compare(Ge, Order::Partial) => return Some((Op::comparison(Le, from)?, true)),
        Opcode::Compare(relation, Order::Partial) => Op::comparison(relation, from),
        Opcode::Select if to.size() <= 8 => Some(Op::Select),
        Opcode::Convert if matches!((from, to), (S32, U32) | (U32, S32) | (S64, U64) | (U64, S64)) => {
            Some(Op::Mov)
        }
        Opcode::Convert => Op::conversion(from, to),
        _ => None,
    };
    op.map(|op| (op, false))
}
