//! The instructions of the machine that have an equivalent in the code generator.

use crate::machine::program::instr::{Op, with_ops};
use crate::native::{Arithmetic, binary, relation};
use crate::tile::{Direction, TileOp};
use refcpu_codegen::{BinaryOp, Scalar, UnaryOp};

/// The register type for a Rust type.
macro_rules! scalar {
    (f32) => {
        Scalar::F32
    };
    (f64) => {
        Scalar::F64
    };
    (u8) => {
        Scalar::Bool
    };
    (u32) => {
        Scalar::I32
    };
    (i32) => {
        Scalar::I32
    };
    (u64) => {
        Scalar::I64
    };
    (i64) => {
        Scalar::I64
    };
}

/// `true` for Rust types that are unsigned integers.
macro_rules! unsigned {
    (u32) => {
        true
    };
    (u64) => {
        true
    };
    ($other:ident) => {
        false
    };
}

macro_rules! table {
    (
        binary { $($bin:ident $bin_t:ident $bin_f:ident $tile_op:ident $($bin_ty:ident)|+;)* }
        compare { $($cmp:ident $jump:ident $cmp_t:ident $cmp_op:tt $relation:ident $($cmp_ty:ident)|+;)* }
        convert { $($cvt:ident $from:ident $to:ident $($from_ty:ident)|+ => $($to_ty:ident)|+;)* }
        fused { $($fused:ident $fused_t:ident |$a:ident, $b:ident, $c:ident| $fused_e:expr;)* }
    ) => {
        /// Returns the equivalent of an instruction; of a jump that compares, that of its comparison.
        pub(super) fn arithmetic(op: Op) -> Option<Arithmetic> {
            match op {
                Op::U32ToU64 => return Some(Arithmetic::Unary(UnaryOp::Extend, Scalar::I32, Scalar::I64)),
                Op::MulSubF32 | Op::MulSubF64 => {
                    return Some(Arithmetic::Fused(BinaryOp::Subtract, false, fused_scalar(op)));
                }
                Op::NegMulAddF32 | Op::NegMulAddF64 => {
                    return Some(Arithmetic::Fused(BinaryOp::Subtract, true, fused_scalar(op)));
                }
                _ => {}
            }
            Some(match op {
                $(Op::$bin => Arithmetic::Binary(binary(TileOp::$tile_op, unsigned!($bin_t))?, scalar!($bin_t)),)*
                $(Op::$cmp | Op::$jump => {
                    Arithmetic::Compare(relation(Direction::$relation, unsigned!($cmp_t)), scalar!($cmp_t))
                })*
                $(Op::$cvt => Arithmetic::Unary(UnaryOp::Convert, scalar!($from), scalar!($to)),)*
                $(Op::$fused => Arithmetic::Fused(BinaryOp::Add, false, scalar!($fused_t)),)*
                _ => return None,
            })
        }

        fn fused_scalar(op: Op) -> Scalar {
            match op {
                $(Op::$fused => scalar!($fused_t),)*
                _ => unreachable!("the operation is not fused"),
            }
        }
    };
}
with_ops!(table);
