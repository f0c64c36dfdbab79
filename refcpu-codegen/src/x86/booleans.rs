//! Vectors of booleans, which have one byte for each element: comparisons of vectors, and their uses.

use super::codes;
use super::emitter::{Emitter, V12, V13, V14, V15, r32, v, xmm};
use crate::ir::{BinaryOp, Reg, Relation, Scalar, Type};
use iced_x86::{Code, Instruction, MemoryOperand, Register};

/// Returns the instruction that extends bytes to the elements of a vector.
fn extend_bytes(ty: Type) -> Code {
    match (ty.scalar.size(), ty.size()) {
        (4, 32) => Code::VEX_Vpmovzxbd_ymm_xmmm64,
        (4, _) => Code::VEX_Vpmovzxbd_xmm_xmmm32,
        (_, 32) => Code::VEX_Vpmovzxbq_ymm_xmmm32,
        _ => Code::VEX_Vpmovzxbq_xmm_xmmm16,
    }
}

/// Returns the instruction that a choice between the two values that it compares is, and its operands. That instruction is `x` if
/// it is less (or greater) than `y`, and otherwise `y`, also if one of them is NaN.
pub(super) fn as_limit(
    relation: Relation,
    ty: Type,
    [x, y]: [Reg; 2],
    [a, b]: [Reg; 2],
) -> Option<(BinaryOp, Reg, Reg)> {
    match () {
        () if relation != Relation::Lt || !ty.scalar.is_float() => None,
        () if [a, b] == [x, y] => Some((BinaryOp::Minimum, x, y)),
        () if [a, b] == [y, x] => Some((BinaryOp::Maximum, y, x)),
        () => None,
    }
}

impl Emitter<'_> {
    /// Loads two bytes.
    pub(super) fn load_pair(&mut self, n: u8, from: MemoryOperand) {
        self.op3(Code::VEX_Vpxor_xmm_xmm_xmmm128, xmm(n), xmm(n), xmm(n));
        self.add(Instruction::with4(Code::VEX_Vpinsrw_xmm_xmm_r32m16_imm8, xmm(n), xmm(n), from, 0u32));
    }

    /// Stores two bytes.
    pub(super) fn store_pair(&mut self, n: u8, to: MemoryOperand) {
        self.add(Instruction::with3(Code::VEX_Vpextrw_r32m16_xmm_imm8, to, xmm(n), 0u32));
    }

    /// Sets the elements of a machine register to -1 where two values are in a relation and to 0 elsewhere, or the reverse.
    /// Returns whether it is the reverse.
    fn relation_to(&mut self, to: u8, relation: Relation, a: Reg, b: Reg) -> bool {
        let ty = self.ty(a);
        let (x, y) = (self.vector(a, V13), self.vector(b, V14));
        let mut inverted = false;
        if ty.scalar.is_float() {
            let (code, predicate) = (codes::float_compare(ty), codes::float_predicate(relation));
            self.add(Instruction::with4(code, v(ty, to), v(ty, x), v(ty, y), predicate));
        } else {
            let (equal, greater) = codes::integer_compares(ty);
            let (code, x, y) = match relation {
                Relation::Eq | Relation::Ne => (equal, x, y),
                Relation::Lt | Relation::LtUnsigned => (greater, y, x),
                Relation::Le | Relation::LeUnsigned => (greater, x, y),
            };
            inverted = !matches!(relation, Relation::Eq | Relation::Lt);
            self.op3(code, v(ty, to), v(ty, x), v(ty, y));
        }
        inverted
    }

    /// Assigns the elements of `a` where `x` and `y` are in a relation, and those of `b` elsewhere.
    pub(super) fn choose(&mut self, relation: Relation, dst: Reg, [x, y]: [Reg; 2], [a, b]: [Reg; 2]) {
        let ty = self.ty(dst);
        if self.is_avx512(ty) {
            return self.wide_choose(relation, dst, [x, y], [a, b]);
        }
        if let Some((op, first, second)) = as_limit(relation, ty, [x, y], [a, b]) {
            let (first, second) = (self.vector(first, V13), self.vector(second, V14));
            let to = self.target(dst, V15);
            self.op3(codes::vector_binary(op, ty), v(ty, to), v(ty, first), v(ty, second));
            return self.set_vector(dst, to);
        }
        let inverted = self.relation_to(V12, relation, x, y);
        let (a, b) = if inverted { (b, a) } else { (a, b) };
        let (a, b) = (self.vector(a, V13), self.vector(b, V14));
        let to = self.target(dst, V15);
        self.add(Instruction::with4(codes::blend(ty), v(ty, to), v(ty, b), v(ty, a), v(ty, V12)));
        self.set_vector(dst, to);
    }

    /// Assigns whether the elements of two vectors are in a relation.
    pub(super) fn vector_relation(&mut self, relation: Relation, dst: Reg, a: Reg, b: Reg) {
        let ty = self.ty(a);
        let inverted = self.relation_to(V15, relation, a, b);
        self.narrow_mask(ty);
        let to = self.target(dst, V15);
        if inverted {
            // The bytes of the mask are 0 or -1, so that 1 is added.
            self.op3(Code::VEX_Vpcmpeqd_xmm_xmm_xmmm128, xmm(V12), xmm(V12), xmm(V12));
            self.op3(Code::VEX_Vpsubb_xmm_xmm_xmmm128, xmm(to), xmm(V15), xmm(V12));
        } else {
            self.op2(Code::VEX_Vpabsb_xmm_xmmm128, xmm(to), xmm(V15));
        }
        self.set_vector(dst, to);
    }

    /// Replaces the mask in V15, whose elements have the size of those of `ty`, with one of bytes.
    fn narrow_mask(&mut self, ty: Type) {
        let mut high = V15;
        if ty.size() == 32 {
            high = V12;
            let upper = Register::YMM0 + u32::from(V15);
            self.add(Instruction::with3(Code::VEX_Vextracti128_xmmm128_ymm_imm8, xmm(high), upper, 1u32));
        }
        if ty.scalar.size() == 8 {
            let even = Instruction::with4(
                Code::VEX_Vshufps_xmm_xmm_xmmm128_imm8,
                xmm(V15),
                xmm(V15),
                xmm(high),
                0x88u32,
            );
            self.add(even);
            high = V15;
        }
        self.op3(Code::VEX_Vpackssdw_xmm_xmm_xmmm128, xmm(V15), xmm(V15), xmm(high));
        self.op3(Code::VEX_Vpacksswb_xmm_xmm_xmmm128, xmm(V15), xmm(V15), xmm(V15));
    }

    /// Assigns the elements of `a` where the condition is true, and those of `b` elsewhere.
    pub(super) fn select_elements(&mut self, dst: Reg, condition: Reg, a: Reg, b: Reg) {
        let ty = self.ty(dst);
        let (x, y, c) = (self.vector(a, V13), self.vector(b, V14), self.vector(condition, V12));
        // The sign of each element of the mask is the condition.
        let blend = if ty.scalar == Scalar::Bool {
            self.add(Instruction::with3(Code::VEX_Vpsllw_xmm_xmm_imm8, xmm(V12), xmm(c), 7u32));
            Code::VEX_Vpblendvb_xmm_xmm_xmmm128_xmm
        } else {
            self.op2(extend_bytes(ty), v(ty, V12), xmm(c));
            let (code, distance) = codes::shift_to_sign(ty);
            self.add(Instruction::with3(code, v(ty, V12), v(ty, V12), distance));
            codes::blend(ty)
        };
        let to = self.target(dst, V15);
        self.add(Instruction::with4(blend, v(ty, to), v(ty, y), v(ty, x), v(ty, V12)));
        self.set_vector(dst, to);
    }

    /// Converts a vector of booleans, or of I32 to one of F32.
    pub(super) fn convert_vector(&mut self, dst: Reg, a: Reg) {
        let (from, ty) = (self.ty(a), self.ty(dst));
        let x = self.vector(a, V13);
        let to = self.target(dst, V15);
        let wide = ty.size() == 32;
        match (from.scalar, ty.scalar) {
            (Scalar::Bool, Scalar::F64) => {
                self.op2(Code::VEX_Vpmovzxbd_xmm_xmmm32, xmm(V14), xmm(x));
                let code =
                    if wide { Code::VEX_Vcvtdq2pd_ymm_xmmm128 } else { Code::VEX_Vcvtdq2pd_xmm_xmmm64 };
                self.op2(code, v(ty, to), xmm(V14));
            }
            (Scalar::Bool, Scalar::I32 | Scalar::I64) => self.op2(extend_bytes(ty), v(ty, to), xmm(x)),
            (from, _) => {
                let mut integers = x;
                if from == Scalar::Bool {
                    integers = V14;
                    self.op2(extend_bytes(ty), v(ty, V14), xmm(x));
                }
                let code =
                    if wide { Code::VEX_Vcvtdq2ps_ymm_ymmm256 } else { Code::VEX_Vcvtdq2ps_xmm_xmmm128 };
                self.op2(code, v(ty, to), v(ty, integers));
            }
        }
        self.set_vector(dst, to);
    }

    /// Assigns half of a vector of booleans.
    pub(super) fn half_of_booleans(&mut self, low: bool, dst: Reg, a: Reg) {
        let (ty, x) = (self.ty(dst), self.vector(a, V13));
        let first = if low { 0 } else { u32::from(ty.lanes) };
        if ty.is_general() {
            let to = self.target(dst, super::emitter::RAX);
            self.add(Instruction::with3(Code::VEX_Vpextrb_r32m8_xmm_imm8, r32(to), xmm(x), first));
            return self.set_general(dst, to);
        }
        let to = self.target(dst, V15);
        self.add(Instruction::with3(Code::VEX_Vpsrldq_xmm_xmm_imm8, xmm(to), xmm(x), first));
        self.set_vector(dst, to);
    }
}
