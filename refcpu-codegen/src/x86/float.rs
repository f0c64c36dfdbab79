//! Operations on values in vector registers: floats and vectors.

use super::codes;
use super::emitter::{Emitter, Label, RAX, RCX, V12, V13, V14, V15, is_wide, r32, r64, v, xmm};
use crate::ir::{BinaryOp, Reg, Relation, Scalar, Type, UnaryOp};
use iced_x86::{Code, Instruction, MemoryOperand};

impl Emitter<'_> {
    pub(super) fn vector_constant(&mut self, dst: Reg, bits: u64) {
        let ty = self.ty(dst);
        let to = self.target(dst, V15);
        self.set_vector_bits(ty, to, bits);
        self.set_vector(dst, to);
    }

    /// Sets each element of a machine register to these bits.
    fn set_vector_bits(&mut self, ty: Type, to: u8, bits: u64) {
        if bits == 0 {
            self.op3(Code::VEX_Vpxor_xmm_xmm_xmmm128, xmm(to), xmm(to), xmm(to));
            return;
        }
        self.set(RAX, bits);
        if ty.scalar.size() == 8 {
            self.op2(Code::VEX_Vmovq_xmm_rm64, xmm(to), r64(RAX));
        } else {
            self.op2(Code::VEX_Vmovd_xmm_rm32, xmm(to), r32(RAX));
        }
        if ty.lanes > 1 {
            self.op2(codes::broadcast(ty), v(ty, to), xmm(to));
        }
    }

    pub(super) fn vector_binary(&mut self, op: BinaryOp, dst: Reg, a: Reg, b: Reg) {
        let ty = self.ty(dst);
        let code = codes::vector_binary(op, ty);
        let to = self.target(dst, V15);
        let limits =
            matches!(op, BinaryOp::Maximum | BinaryOp::Minimum | BinaryOp::Least | BinaryOp::Greatest);
        if !(limits && ty.scalar.is_float()) {
            let bitwise = matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor);
            let swaps = op.is_commutative() && self.operand_in_memory(a, !bitwise).is_some();
            let (a, b) = if swaps { (b, a) } else { (a, b) };
            let x = self.vector(a, V13);
            match self.operand_in_memory(b, !bitwise) {
                Some(b) => self.add(Instruction::with3(code, v(ty, to), v(ty, x), b)),
                None => {
                    let y = self.vector(b, V14);
                    self.op3(code, v(ty, to), v(ty, x), v(ty, y));
                }
            }
            return self.set_vector(dst, to);
        }
        let (x, y) = (self.vector(a, V13), self.vector(b, V14));
        if matches!(op, BinaryOp::Least | BinaryOp::Greatest) {
            // With its operands swapped, the instruction returns the first value if one is NaN or both are zero.
            self.op3(code, v(ty, V15), v(ty, y), v(ty, x));
            self.add(Instruction::with4(codes::float_compare(ty), v(ty, V12), v(ty, y), v(ty, y), 3u32));
            self.add(Instruction::with4(codes::blend(ty), v(ty, to), v(ty, V15), v(ty, y), v(ty, V12)));
            return self.set_vector(dst, to);
        }
        if self.is_ordinary(a) || self.is_ordinary(b) {
            // The instruction returns its second operand if that is NaN.
            let (x, y) = if self.is_ordinary(a) { (x, y) } else { (y, x) };
            self.op3(code, v(ty, to), v(ty, x), v(ty, y));
            return self.set_vector(dst, to);
        }
        // The instruction returns the second operand if one is NaN or both are zero.
        self.op3(code, v(ty, V15), v(ty, x), v(ty, y));
        let compare = codes::float_compare(ty);
        let blend = codes::blend(ty);
        self.add(Instruction::with4(compare, v(ty, V12), v(ty, x), v(ty, x), 3u32));
        self.add(Instruction::with4(blend, v(ty, V15), v(ty, V15), v(ty, x), v(ty, V12)));
        self.add(Instruction::with4(compare, v(ty, V12), v(ty, x), v(ty, y), 0u32));
        let bits = if op == BinaryOp::Maximum { BinaryOp::And } else { BinaryOp::Or };
        self.op3(codes::bitwise(bits, ty), v(ty, V14), v(ty, x), v(ty, y));
        self.add(Instruction::with4(blend, v(ty, to), v(ty, V15), v(ty, V14), v(ty, V12)));
        self.set_vector(dst, to);
    }

    /// Returns the operand for a value in memory if an instruction reads no more than the value: all instructions on vectors of 8
    /// bytes and all but arithmetic on single elements read 16 bytes.
    fn operand_in_memory(&self, r: Reg, is_arithmetic: bool) -> Option<MemoryOperand> {
        let ty = self.ty(r);
        let is_whole = if ty.lanes == 1 { is_arithmetic } else { ty.size() >= 16 };
        self.in_memory(r).filter(|_| is_whole)
    }

    pub(super) fn fma(&mut self, dst: Reg, a: Reg, b: Reg, c: Reg) {
        let ty = self.ty(dst);
        let (x, y) = (self.vector(a, V13), self.vector(b, V14));
        let own = self.target(dst, V15);
        if own == x || own == y {
            let other = if own == x { y } else { x };
            match self.operand_in_memory(c, true) {
                Some(c) => self.add(Instruction::with3(codes::fma_213(ty), v(ty, own), v(ty, other), c)),
                None => {
                    let z = self.vector(c, V15);
                    self.op3(codes::fma_213(ty), v(ty, own), v(ty, other), v(ty, z));
                }
            }
            return self.set_vector(dst, own);
        }
        let to = if own == x || own == y { V15 } else { own };
        let z = self.vector(c, to);
        if to != z {
            self.op2(codes::moves(ty).2, v(ty, to), v(ty, z));
        }
        self.op3(codes::fma(ty), v(ty, to), v(ty, x), v(ty, y));
        self.set_vector(dst, to);
    }

    pub(super) fn vector_unary(&mut self, op: UnaryOp, dst: Reg, a: Reg) {
        let ty = self.ty(dst);
        let to = self.target(dst, V15);
        match op {
            UnaryOp::Splat if self.ty(a).is_general() => {
                let x = self.general(a, RAX);
                if is_wide(ty) {
                    self.op2(Code::VEX_Vmovq_xmm_rm64, xmm(to), r64(x));
                } else {
                    self.op2(Code::VEX_Vmovd_xmm_rm32, xmm(to), r32(x));
                }
                self.op2(codes::broadcast(ty), v(ty, to), xmm(to));
            }
            UnaryOp::Splat => {
                let x = self.vector(a, V13);
                self.op2(codes::broadcast(ty), v(ty, to), xmm(x));
            }
            UnaryOp::Negate | UnaryOp::Abs => {
                let x = self.vector(a, V13);
                let sign = 1u64 << (8 * ty.scalar.size() - 1);
                let (bits, op) =
                    if op == UnaryOp::Negate { (sign, BinaryOp::Xor) } else { (sign - 1, BinaryOp::And) };
                self.set_vector_bits(ty, V14, bits);
                self.op3(codes::bitwise(op, ty), v(ty, to), v(ty, x), v(ty, V14));
            }
            UnaryOp::Copy => {
                let x = self.vector(a, V13);
                return self.set_vector(dst, x);
            }
            op => {
                let x = self.vector(a, V13);
                match codes::float_unary(op, ty) {
                    (code, None) => self.op2(code, v(ty, to), v(ty, x)),
                    (code, Some(mode)) => self.add(Instruction::with3(code, v(ty, to), v(ty, x), mode)),
                }
            }
        }
        self.set_vector(dst, to);
    }

    /// Assigns half of a vector.
    pub(super) fn half(&mut self, op: UnaryOp, dst: Reg, a: Reg) {
        let (from, ty) = (self.ty(a), self.ty(dst));
        let low = op == UnaryOp::Low;
        if from.scalar == Scalar::Bool {
            return self.half_of_booleans(low, dst, a);
        }
        let x = self.vector(a, V13);
        if ty.is_general() {
            let lane = u32::from(!low);
            if is_wide(ty) {
                self.add(Instruction::with3(Code::VEX_Vpextrq_rm64_xmm_imm8, r64(RAX), xmm(x), lane));
            } else {
                self.add(Instruction::with3(Code::VEX_Vpextrd_rm32_xmm_imm8, r32(RAX), xmm(x), lane));
            }
            return self.set_general(dst, RAX);
        }
        let to = self.target(dst, V15);
        match from.size() {
            _ if low => self.op2(Code::VEX_Vmovaps_xmm_xmmm128, xmm(to), xmm(x)),
            32 => {
                let high =
                    Instruction::with3(Code::VEX_Vextractf128_xmmm128_ymm_imm8, xmm(to), v(from, x), 1u32);
                self.add(high);
            }
            16 => self.op3(Code::VEX_Vmovhlps_xmm_xmm_xmm, xmm(to), xmm(x), xmm(x)),
            _ => self.op2(Code::VEX_Vmovshdup_xmm_xmmm128, xmm(to), xmm(x)),
        }
        self.set_vector(dst, to);
    }

    /// Assigns the bits of a value to a register of another type.
    pub(super) fn reinterpret(&mut self, dst: Reg, a: Reg) {
        let (from, to) = (self.ty(a), self.ty(dst));
        let double = from.scalar.size() == 8;
        match (from.is_general(), to.is_general()) {
            (true, false) => {
                let x = self.general(a, RAX);
                let n = self.target(dst, V15);
                if double {
                    self.op2(Code::VEX_Vmovq_xmm_rm64, xmm(n), r64(x));
                } else {
                    self.op2(Code::VEX_Vmovd_xmm_rm32, xmm(n), r32(x));
                }
                self.set_vector(dst, n);
            }
            (false, true) => {
                let x = self.vector(a, V13);
                let n = self.target(dst, RAX);
                if double {
                    self.op2(Code::VEX_Vmovq_rm64_xmm, r64(n), xmm(x));
                } else {
                    self.op2(Code::VEX_Vmovd_rm32_xmm, r32(n), xmm(x));
                }
                self.set_general(dst, n);
            }
            (true, true) => {
                let x = self.general(a, RAX);
                self.set_general(dst, x);
            }
            (false, false) => {
                let x = self.vector(a, V13);
                self.set_vector(dst, x);
            }
        }
    }

    /// Converts between integers and floats, and between floats.
    pub(super) fn convert(&mut self, dst: Reg, a: Reg) {
        let (from, to) = (self.ty(a), self.ty(dst));
        if from.lanes > 1 {
            return self.convert_vector(dst, a);
        }
        match (from.is_general(), to.is_general()) {
            (true, true) => self.integer_unary(UnaryOp::Convert, dst, a),
            (true, false) => {
                let x = self.general(a, RAX);
                let n = self.target(dst, V15);
                // The instruction keeps the upper bits of its first operand, and would wait for it.
                self.op3(Code::VEX_Vpxor_xmm_xmm_xmmm128, xmm(V14), xmm(V14), xmm(V14));
                let (code, x) = match (to.scalar, is_wide(from)) {
                    (Scalar::F32, false) => (Code::VEX_Vcvtsi2ss_xmm_xmm_rm32, r32(x)),
                    (Scalar::F32, true) => (Code::VEX_Vcvtsi2ss_xmm_xmm_rm64, r64(x)),
                    (_, false) => (Code::VEX_Vcvtsi2sd_xmm_xmm_rm32, r32(x)),
                    (_, true) => (Code::VEX_Vcvtsi2sd_xmm_xmm_rm64, r64(x)),
                };
                self.op3(code, xmm(n), xmm(V14), x);
                self.set_vector(dst, n);
            }
            (false, true) => self.truncate(dst, a),
            (false, false) => {
                let x = self.vector(a, V13);
                let n = self.target(dst, V15);
                let code = match from.scalar {
                    Scalar::F32 => Code::VEX_Vcvtss2sd_xmm_xmm_xmmm32,
                    _ => Code::VEX_Vcvtsd2ss_xmm_xmm_xmmm64,
                };
                self.op3(code, xmm(n), xmm(x), xmm(x));
                self.set_vector(dst, n);
            }
        }
    }

    /// Converts F32 to I32, or F64 to I64. The instruction returns the smallest integer for values that are out of range.
    fn truncate(&mut self, dst: Reg, a: Reg) {
        let double = self.ty(a).scalar == Scalar::F64;
        let x = self.vector(a, V13);
        let done = self.label();
        let smallest = if double { 1u64 << 63 } else { 1 << 31 };
        if double {
            self.op2(Code::VEX_Vcvttsd2si_r64_xmmm64, r64(RAX), xmm(x));
            self.set(RCX, smallest);
            self.op2(Code::Cmp_r64_rm64, r64(RAX), r64(RCX));
        } else {
            self.op2(Code::VEX_Vcvttss2si_r32_xmmm32, r32(RAX), xmm(x));
            self.add(Instruction::with2(Code::Cmp_rm32_imm32, r32(RAX), smallest as u32));
        }
        self.jump(Code::Jne_rel32_64, done);
        self.op3(Code::VEX_Vpxor_xmm_xmm_xmmm128, xmm(V14), xmm(V14), xmm(V14));
        let compare = if double { Code::VEX_Vucomisd_xmm_xmmm64 } else { Code::VEX_Vucomiss_xmm_xmmm32 };
        let number = self.label();
        self.op2(compare, xmm(x), xmm(V14));
        self.jump(Code::Jnp_rel32_64, number);
        self.add(Instruction::with2(Code::Mov_r32_imm32, r32(RAX), 0u32));
        self.jump(Code::Jmp_rel32_64, done);
        self.bind(number);
        self.jump(Code::Jb_rel32_64, done);
        self.set(RAX, smallest - 1);
        self.bind(done);
        self.set_general(dst, RAX);
    }

    /// Assigns whether two floats are in a relation.
    pub(super) fn float_relation(&mut self, relation: Relation, dst: Reg, a: Reg, b: Reg) {
        let ty = self.ty(a);
        let (x, y) = (self.vector(a, V13), self.vector(b, V14));
        let (code, predicate) = (codes::float_compare(ty), codes::float_predicate(relation));
        self.add(Instruction::with4(code, xmm(V15), xmm(x), xmm(y), predicate));
        self.op2(Code::VEX_Vmovd_rm32_xmm, r32(RAX), xmm(V15));
        self.add(Instruction::with2(Code::And_rm32_imm8, r32(RAX), 1));
        self.set_general(dst, RAX);
    }

    /// Jumps to `then` if two floats are in a relation, otherwise to `otherwise`; `next` is the label of the following code.
    pub(super) fn float_branch(
        &mut self,
        relation: Relation,
        [a, b]: [Reg; 2],
        then: Label,
        otherwise: Label,
        next: Option<Label>,
    ) {
        let compare = match self.ty(a).scalar {
            Scalar::F64 => Code::VEX_Vucomisd_xmm_xmmm64,
            _ => Code::VEX_Vucomiss_xmm_xmmm32,
        };
        let (x, y) = (self.vector(a, V13), self.vector(b, V14));
        match relation {
            Relation::Eq | Relation::Ne => {
                let (equal, different) =
                    if relation == Relation::Eq { (then, otherwise) } else { (otherwise, then) };
                self.op2(compare, xmm(x), xmm(y));
                self.jump(Code::Jne_rel32_64, different);
                self.jump(Code::Jp_rel32_64, different);
                if next != Some(equal) {
                    self.jump(Code::Jmp_rel32_64, equal);
                }
            }
            _ => {
                // Unordered values set the carry, so the operands are swapped.
                let (holds, fails) = match relation {
                    Relation::Lt => (Code::Ja_rel32_64, Code::Jbe_rel32_64),
                    _ => (Code::Jae_rel32_64, Code::Jb_rel32_64),
                };
                self.op2(compare, xmm(y), xmm(x));
                if next == Some(then) {
                    self.jump(fails, otherwise);
                } else {
                    self.jump(holds, then);
                    if next != Some(otherwise) {
                        self.jump(Code::Jmp_rel32_64, otherwise);
                    }
                }
            }
        }
    }

    pub(super) fn select_vector(&mut self, dst: Reg, condition: Reg, a: Reg, b: Reg) {
        let ty = self.ty(dst);
        let (x, y) = (self.vector(a, V13), self.vector(b, V14));
        let c = self.general(condition, RAX);
        // The mask has all bits if the condition is false.
        self.add(Instruction::with2(Code::Cmp_rm32_imm8, r32(c), 1));
        self.op2(Code::Sbb_r64_rm64, r64(RAX), r64(RAX));
        self.op2(Code::VEX_Vmovq_xmm_rm64, xmm(V15), r64(RAX));
        if ty.size() > 8 {
            let words = Type::vector(Scalar::I64, (ty.size() / 8) as u8);
            self.op2(codes::broadcast(words), v(ty, V15), xmm(V15));
        }
        let to = self.target(dst, V12);
        self.add(Instruction::with4(codes::blend(ty), v(ty, to), v(ty, x), v(ty, y), v(ty, V15)));
        self.set_vector(dst, to);
    }
}
