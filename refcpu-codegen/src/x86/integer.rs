//! Operations on values in general-purpose registers.

use super::codes;
use super::emitter::{Emitter, RAX, RCX, RDX, is_wide, r8, r16, r32, r64};
use crate::ir::{BinaryOp, Reg, Relation, Scalar, Type, UnaryOp};
use iced_x86::{Code, Instruction, Register};

/// Returns the register of the width of a type.
fn r(ty: Type, n: u8) -> Register {
    if is_wide(ty) { r64(n) } else { r32(n) }
}

/// Chooses the instruction for a type by width.
fn wide(ty: Type, narrow: Code, wide: Code) -> Code {
    if is_wide(ty) { wide } else { narrow }
}

impl Emitter<'_> {
    pub(super) fn integer_binary(&mut self, op: BinaryOp, dst: Reg, a: Reg, b: Reg) {
        let ty = self.ty(dst);
        let simple = match op {
            BinaryOp::Add => wide(ty, Code::Add_r32_rm32, Code::Add_r64_rm64),
            BinaryOp::Subtract => wide(ty, Code::Sub_r32_rm32, Code::Sub_r64_rm64),
            BinaryOp::Multiply => wide(ty, Code::Imul_r32_rm32, Code::Imul_r64_rm64),
            BinaryOp::And => wide(ty, Code::And_r32_rm32, Code::And_r64_rm64),
            BinaryOp::Or => wide(ty, Code::Or_r32_rm32, Code::Or_r64_rm64),
            BinaryOp::Xor => wide(ty, Code::Xor_r32_rm32, Code::Xor_r64_rm64),
            BinaryOp::Maximum | BinaryOp::Minimum => return self.integer_limit(op, dst, a, b),
            BinaryOp::Least | BinaryOp::Greatest => unreachable!("the operation is not defined on integers"),
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight | BinaryOp::ShiftRightSigned => {
                return self.shift(op, dst, a, b);
            }
            BinaryOp::Divide | BinaryOp::Remainder => return self.divide_signed(op, dst, a, b),
            BinaryOp::DivideUnsigned | BinaryOp::RemainderUnsigned => {
                return self.divide_unsigned(op, dst, a, b);
            }
        };
        let y = self.general(b, RCX);
        let own = self.target(dst, RAX);
        let to = if own == y { RAX } else { own };
        self.general_into(a, to);
        self.op2(simple, r(ty, to), r(ty, y));
        self.set_general(dst, to);
    }

    fn integer_limit(&mut self, op: BinaryOp, dst: Reg, a: Reg, b: Reg) {
        let ty = self.ty(dst);
        let y = self.general(b, RCX);
        self.general_into(a, RAX);
        self.op2(wide(ty, Code::Cmp_r32_rm32, Code::Cmp_r64_rm64), r(ty, RAX), r(ty, y));
        let replace = if op == BinaryOp::Maximum {
            wide(ty, Code::Cmovl_r32_rm32, Code::Cmovl_r64_rm64)
        } else {
            wide(ty, Code::Cmovg_r32_rm32, Code::Cmovg_r64_rm64)
        };
        self.op2(replace, r(ty, RAX), r(ty, y));
        self.set_general(dst, RAX);
    }

    fn shift(&mut self, op: BinaryOp, dst: Reg, a: Reg, b: Reg) {
        let ty = self.ty(dst);
        let width = 8 * ty.size() as u32;
        if let Some(distance) = self.constants[b.0 as usize].filter(|d| *d < u64::from(width)) {
            let code = match op {
                BinaryOp::ShiftLeft => wide(ty, Code::Shl_rm32_imm8, Code::Shl_rm64_imm8),
                BinaryOp::ShiftRight => wide(ty, Code::Shr_rm32_imm8, Code::Shr_rm64_imm8),
                _ => wide(ty, Code::Sar_rm32_imm8, Code::Sar_rm64_imm8),
            };
            let to = self.target(dst, RAX);
            self.general_into(a, to);
            self.add(Instruction::with2(code, r(ty, to), distance as i32));
            return self.set_general(dst, to);
        }
        let x = self.general(a, RAX);
        self.general_into(b, RCX);
        let compare = wide(ty, Code::Cmp_rm32_imm32, Code::Cmp_rm64_imm32);
        if op == BinaryOp::ShiftRightSigned {
            self.set(RDX, u64::from(width - 1));
            self.add(Instruction::with2(compare, r(ty, RCX), width as i32 - 1));
            self.op2(wide(ty, Code::Cmova_r32_rm32, Code::Cmova_r64_rm64), r(ty, RCX), r(ty, RDX));
            let code = wide(ty, Code::VEX_Sarx_r32_rm32_r32, Code::VEX_Sarx_r64_rm64_r64);
            self.op3(code, r(ty, RAX), r(ty, x), r(ty, RCX));
        } else {
            let code = if op == BinaryOp::ShiftLeft {
                wide(ty, Code::VEX_Shlx_r32_rm32_r32, Code::VEX_Shlx_r64_rm64_r64)
            } else {
                wide(ty, Code::VEX_Shrx_r32_rm32_r32, Code::VEX_Shrx_r64_rm64_r64)
            };
            self.op3(code, r(ty, RAX), r(ty, x), r(ty, RCX));
            self.set(RDX, 0);
            self.add(Instruction::with2(compare, r(ty, RCX), width as i32));
            self.op2(wide(ty, Code::Cmovae_r32_rm32, Code::Cmovae_r64_rm64), r(ty, RAX), r(ty, RDX));
        }
        self.set_general(dst, RAX);
    }

    fn divide_signed(&mut self, op: BinaryOp, dst: Reg, a: Reg, b: Reg) {
        let ty = self.ty(dst);
        let quotient = op == BinaryOp::Divide;
        let (zero, minus, done) = (self.label(), self.label(), self.label());
        self.general_into(a, RAX);
        self.general_into(b, RCX);
        self.op2(wide(ty, Code::Test_rm32_r32, Code::Test_rm64_r64), r(ty, RCX), r(ty, RCX));
        self.jump(Code::Je_rel32_64, zero);
        self.add(Instruction::with2(wide(ty, Code::Cmp_rm32_imm8, Code::Cmp_rm64_imm8), r(ty, RCX), -1));
        self.jump(Code::Je_rel32_64, minus);
        self.plain(wide(ty, Code::Cdq, Code::Cqo));
        self.op1(wide(ty, Code::Idiv_rm32, Code::Idiv_rm64), r(ty, RCX));
        self.jump(Code::Jmp_rel32_64, done);
        self.bind(zero);
        if quotient {
            self.add(Instruction::with2(Code::Mov_rm64_imm32, r64(RAX), -1));
        } else {
            self.move_general(RAX, RDX);
        }
        self.jump(Code::Jmp_rel32_64, done);
        self.bind(minus);
        if quotient {
            self.op1(wide(ty, Code::Neg_rm32, Code::Neg_rm64), r(ty, RAX));
        } else {
            self.set(RDX, 0);
        }
        self.bind(done);
        self.set_quotient(quotient, dst);
    }

    fn divide_unsigned(&mut self, op: BinaryOp, dst: Reg, a: Reg, b: Reg) {
        let ty = self.ty(dst);
        let quotient = op == BinaryOp::DivideUnsigned;
        let (zero, done) = (self.label(), self.label());
        self.general_into(a, RAX);
        self.general_into(b, RCX);
        self.op2(wide(ty, Code::Test_rm32_r32, Code::Test_rm64_r64), r(ty, RCX), r(ty, RCX));
        self.jump(Code::Je_rel32_64, zero);
        self.set(RDX, 0);
        self.op1(wide(ty, Code::Div_rm32, Code::Div_rm64), r(ty, RCX));
        self.jump(Code::Jmp_rel32_64, done);
        self.bind(zero);
        if quotient {
            self.add(Instruction::with2(Code::Mov_rm64_imm32, r64(RAX), -1));
        } else {
            self.move_general(RAX, RDX);
        }
        self.bind(done);
        self.set_quotient(quotient, dst);
    }

    /// Assigns the result of a division. The first instruction is one to which a label can be bound.
    fn set_quotient(&mut self, quotient: bool, dst: Reg) {
        self.set_general(dst, if quotient { RAX } else { RDX });
    }

    pub(super) fn integer_unary(&mut self, op: UnaryOp, dst: Reg, a: Reg) {
        let (from, ty) = (self.ty(a), self.ty(dst));
        let x = self.general(a, RAX);
        let to = self.target(dst, RAX);
        match op {
            UnaryOp::Negate => {
                self.move_general(x, to);
                self.op1(wide(ty, Code::Neg_rm32, Code::Neg_rm64), r(ty, to));
            }
            UnaryOp::Convert => match (from.scalar, ty.scalar) {
                (Scalar::I32, Scalar::I64) => self.op2(Code::Movsxd_r64_rm32, r64(to), r32(x)),
                (Scalar::I8, _) => self.op2(Code::Movsx_r32_rm8, r32(to), r8(x)),
                (Scalar::I16, _) => self.op2(Code::Movsx_r32_rm16, r32(to), r16(x)),
                // Narrow values have zeros in the upper bits of their registers.
                (_, Scalar::I8) => self.op2(Code::Movzx_r32_rm8, r32(to), r8(x)),
                (_, Scalar::I16) => self.op2(Code::Movzx_r32_rm16, r32(to), r16(x)),
                _ => self.move_general(x, to),
            },
            UnaryOp::Extend => self.op2(Code::Mov_r32_rm32, r32(to), r32(x)),
            _ => self.move_general(x, to),
        }
        self.set_general(dst, to);
    }

    /// Compares two integers.
    pub(super) fn compare_integers(&mut self, a: Reg, b: Reg) {
        let ty = self.ty(a);
        let (x, y) = (self.general(a, RAX), self.general(b, RCX));
        self.op2(wide(ty, Code::Cmp_r32_rm32, Code::Cmp_r64_rm64), r(ty, x), r(ty, y));
    }

    pub(super) fn integer_relation(&mut self, relation: Relation, dst: Reg, a: Reg, b: Reg) {
        self.compare_integers(a, b);
        self.op1(codes::integer_relation(relation).2, r8(RAX));
        self.op2(Code::Movzx_r32_rm8, r32(RAX), r8(RAX));
        self.set_general(dst, RAX);
    }

    pub(super) fn select_general(&mut self, dst: Reg, condition: Reg, a: Reg, b: Reg) {
        let x = self.general(a, RCX);
        self.general_into(b, RAX);
        let c = self.general(condition, RDX);
        self.op2(Code::Test_rm32_r32, r32(c), r32(c));
        self.op2(Code::Cmovne_r64_rm64, r64(RAX), r64(x));
        self.set_general(dst, RAX);
    }
}
