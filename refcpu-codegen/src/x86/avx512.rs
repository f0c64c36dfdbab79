//! Vectors in functions that need AVX-512: instructions on all vectors, whose booleans are masks.

use super::avx512_codes as codes;
use super::booleans::as_limit;
use super::emitter::{Emitter, K6, K7, RAX, V12, V13, V14, V15, is_wide, mask, r32, r64, v, xmm};
use crate::ir::{BinaryOp, Inst, Reg, Relation, Scalar, Type, UnaryOp};
use iced_x86::{Code, Instruction, Register};

impl Emitter<'_> {
    /// Emits an instruction on vectors other than a load or a store.
    pub(super) fn avx512(&mut self, inst: &Inst) {
        match inst {
            Inst::Constant { dst, bits } => self.wide_constant(*dst, *bits),
            Inst::Unary { op, dst, a } => self.wide_unary(*op, *dst, *a),
            Inst::Binary { op, dst, a, b } if self.is_mask(*dst) => {
                let (x, y, to) = (self.mask(*a, K6), self.mask(*b, K7), self.mask_target(*dst));
                self.op3(codes::mask_binary(*op), mask(to), mask(x), mask(y));
                self.set_mask(*dst, to);
            }
            Inst::Binary { op, dst, a, b } => self.wide_binary(*op, *dst, *a, *b),
            Inst::Fma { dst, a, b, c } => self.wide_fma(*dst, [*a, *b, *c]),
            Inst::Compare { relation, dst, a, b } => {
                let ty = self.ty(*a);
                let (x, to) = (self.vector(*a, V13), self.mask_target(*dst));
                match self.in_memory(*b) {
                    Some(b) => {
                        let (code, predicate) = codes::compare(*relation, ty);
                        self.add(Instruction::with4(code, mask(to), v(ty, x), b, predicate));
                    }
                    None => {
                        let y = self.vector(*b, V14);
                        self.compare_to(to, *relation, ty, x, y);
                    }
                }
                self.set_mask(*dst, to);
            }
            Inst::Select { dst, condition, a, b } => self.wide_select(*dst, *condition, *a, *b),
            Inst::Load { .. }
            | Inst::Store { .. }
            | Inst::Sequence { .. }
            | Inst::Choose { .. }
            | Inst::Shuffle { .. }
            | Inst::Call { .. } => {
                unreachable!("other functions emit these")
            }
        }
    }

    fn compare_to(&mut self, to: u8, relation: Relation, ty: Type, x: u8, y: u8) {
        let (code, predicate) = codes::compare(relation, ty);
        self.add(Instruction::with4(code, mask(to), v(ty, x), v(ty, y), predicate));
    }

    /// Sets a mask where one of two elements is NaN.
    fn unordered(&mut self, to: u8, ty: Type, x: u8, y: u8) {
        let (code, _) = codes::compare(Relation::Eq, ty);
        self.add(Instruction::with4(code, mask(to), v(ty, x), v(ty, y), 3u32));
    }

    /// Adds an instruction that changes only the elements of a mask; the others become zero if `zero` is true.
    fn masked(&mut self, instruction: Result<Instruction, iced_x86::IcedError>, by: u8, zero: bool) {
        self.add(instruction.map(|mut i| {
            i.set_op_mask(mask(by));
            i.set_zeroing_masking(zero);
            i
        }));
    }

    fn wide_constant(&mut self, dst: Reg, bits: u64) {
        let ty = self.ty(dst);
        if self.is_mask(dst) {
            let to = self.mask_target(dst);
            let code = if bits == 0 { Code::VEX_Kxorw_kr_kr_kr } else { Code::VEX_Kxnorw_kr_kr_kr };
            self.op3(code, mask(to), mask(to), mask(to));
            return self.set_mask(dst, to);
        }
        if self.set_repeated(dst, bits) {
            return;
        }
        let to = self.target(dst, V15);
        self.repeat(ty, to, bits);
        self.set_vector(dst, to);
    }

    /// Sets each element of a machine register to these bits.
    fn repeat(&mut self, ty: Type, to: u8, bits: u64) {
        if bits == 0 {
            // This also clears the rest of a longer register.
            return self.op3(Code::EVEX_Vpxord_xmm_k1z_xmm_xmmm128b32, xmm(to), xmm(to), xmm(to));
        }
        self.set(RAX, bits);
        self.op2(codes::broadcast_general(ty), v(ty, to), self.general_of(ty, RAX));
    }

    /// Returns the general-purpose register of the size of an element.
    fn general_of(&self, ty: Type, n: u8) -> Register {
        if ty.scalar.size() == 8 { r64(n) } else { r32(n) }
    }

    fn wide_binary(&mut self, op: BinaryOp, dst: Reg, a: Reg, b: Reg) {
        let ty = self.ty(dst);
        let code = codes::binary(op, ty);
        let to = self.target(dst, V15);
        let mut limits = matches!(op, BinaryOp::Maximum | BinaryOp::Minimum) && ty.scalar.is_float();
        let (mut a, mut b) = (a, b);
        if limits && [a, b].iter().any(|r| self.is_ordinary(*r)) {
            // The instruction returns its second operand if that is NaN.
            (a, b) = if self.is_ordinary(a) { (a, b) } else { (b, a) };
            limits = false;
        }
        if !limits && !matches!(op, BinaryOp::Least | BinaryOp::Greatest) {
            // The second operand can be in memory.
            let swaps = op.is_commutative() && self.in_memory(a).is_some();
            let (a, b) = if swaps { (b, a) } else { (a, b) };
            let x = self.vector(a, V13);
            match self.in_memory(b) {
                Some(b) => self.add(Instruction::with3(code, v(ty, to), v(ty, x), b)),
                None => {
                    let y = self.vector(b, V14);
                    self.op3(code, v(ty, to), v(ty, x), v(ty, y));
                }
            }
            return self.set_vector(dst, to);
        }
        let (x, y) = (self.vector(a, V13), self.vector(b, V14));
        match op {
            BinaryOp::Least | BinaryOp::Greatest => {
                // With its operands swapped, the instruction returns the first value if one is NaN or both are zero.
                self.op3(code, v(ty, V15), v(ty, y), v(ty, x));
                self.unordered(K6, ty, y, y);
                self.masked(
                    Instruction::with3(codes::blend(ty), v(ty, V15), v(ty, V15), v(ty, y)),
                    K6,
                    false,
                );
                self.set_vector(dst, V15);
            }
            _ => {
                // The instruction orders zeros by their signs, and ignores NaN.
                let range = codes::range(ty);
                let largest = u32::from(op == BinaryOp::Maximum);
                self.add(Instruction::with4(range, v(ty, V15), v(ty, x), v(ty, y), 4 | largest));
                self.unordered(K6, ty, x, y);
                let sum = codes::binary(BinaryOp::Add, ty);
                self.masked(Instruction::with3(sum, v(ty, V15), v(ty, x), v(ty, y)), K6, false);
                self.set_vector(dst, V15);
            }
        }
    }

    fn wide_fma(&mut self, dst: Reg, [a, b, c]: [Reg; 3]) {
        let ty = self.ty(dst);
        let own = self.target(dst, V15);
        // The instruction replaces one of its operands, and reads another one from memory.
        let (a, b) = if self.in_memory(a).is_some() { (b, a) } else { (a, b) };
        let x = self.vector(a, V13);
        let summand = self.in_memory(c);
        if summand.is_none() && self.vector(c, V15) == own {
            match self.in_memory(b) {
                Some(b) => self.add(Instruction::with3(codes::fma(ty), v(ty, own), v(ty, x), b)),
                None => {
                    let y = self.vector(b, V14);
                    self.op3(codes::fma(ty), v(ty, own), v(ty, x), v(ty, y));
                }
            }
            return self.set_vector(dst, own);
        }
        let y = self.vector(b, V14);
        let z = if summand.is_some() { None } else { Some(self.vector(c, V15)) };
        let (kept, other) = if y == own { (y, x) } else { (x, y) };
        let to = if kept == own { own } else { V12 };
        if kept != to {
            self.op2(codes::moves(ty).2, v(ty, to), v(ty, kept));
        }
        match (summand, z) {
            (Some(c), _) => self.add(Instruction::with3(codes::fma_213(ty), v(ty, to), v(ty, other), c)),
            (None, Some(z)) => self.op3(codes::fma_213(ty), v(ty, to), v(ty, other), v(ty, z)),
            (None, None) => unreachable!("the summand is in memory or in a register"),
        }
        self.set_vector(dst, to);
    }

    fn wide_select(&mut self, dst: Reg, condition: Reg, a: Reg, b: Reg) {
        let ty = self.ty(dst);
        let c = if self.is_mask(condition) {
            self.mask(condition, K6)
        } else {
            self.boolean_to_mask(condition, K6);
            K6
        };
        if self.is_mask(dst) {
            // The frame's scratch register of an operand is free again after its use.
            let x = self.mask(a, K7);
            self.op3(Code::VEX_Kandw_kr_kr_kr, mask(K7), mask(c), mask(x));
            self.op2(Code::VEX_Knotw_kr_kr, mask(K6), mask(c));
            self.op2(Code::VEX_Kmovw_r32_kr, r32(RAX), mask(K7));
            let y = self.mask(b, K7);
            self.op3(Code::VEX_Kandw_kr_kr_kr, mask(K6), mask(K6), mask(y));
            self.op2(Code::VEX_Kmovw_kr_r32, mask(K7), r32(RAX));
            let to = self.mask_target(dst);
            self.op3(Code::VEX_Korw_kr_kr_kr, mask(to), mask(K6), mask(K7));
            return self.set_mask(dst, to);
        }
        let (x, y) = (self.vector(a, V13), self.vector(b, V14));
        let to = self.target(dst, V15);
        self.masked(Instruction::with3(codes::blend(ty), v(ty, to), v(ty, y), v(ty, x)), c, false);
        self.set_vector(dst, to);
    }

    pub(super) fn wide_choose(&mut self, relation: Relation, dst: Reg, [x, y]: [Reg; 2], [a, b]: [Reg; 2]) {
        let (compared, ty) = (self.ty(x), self.ty(dst));
        if let Some((op, first, second)) = as_limit(relation, ty, [x, y], [a, b]) {
            let (first, second) = (self.vector(first, V13), self.vector(second, V14));
            let to = self.target(dst, V15);
            self.op3(codes::binary(op, ty), v(ty, to), v(ty, first), v(ty, second));
            return self.set_vector(dst, to);
        }
        let (x, y) = (self.vector(x, V13), self.vector(y, V14));
        self.compare_to(K6, relation, compared, x, y);
        let (a, b) = (self.vector(a, V13), self.vector(b, V14));
        let to = self.target(dst, V15);
        self.masked(Instruction::with3(codes::blend(ty), v(ty, to), v(ty, b), v(ty, a)), K6, false);
        self.set_vector(dst, to);
    }

    /// Sets all elements of a mask to a single boolean.
    fn boolean_to_mask(&mut self, condition: Reg, to: u8) {
        self.general_into(condition, RAX);
        self.op1(Code::Neg_rm32, r32(RAX));
        self.op2(Code::VEX_Kmovw_kr_r32, mask(to), r32(RAX));
    }

    fn wide_unary(&mut self, op: UnaryOp, dst: Reg, a: Reg) {
        let (from, ty) = (self.ty(a), self.ty(dst));
        match op {
            UnaryOp::Low | UnaryOp::High => return self.wide_half(op == UnaryOp::Low, dst, a),
            UnaryOp::Splat => return self.wide_splat(dst, a),
            UnaryOp::Convert | UnaryOp::Extend => return self.wide_convert(op, dst, a),
            UnaryOp::Copy if self.is_mask(dst) => {
                let x = self.mask(a, K6);
                return self.set_mask(dst, x);
            }
            _ => {}
        }
        let x = self.vector(a, V13);
        let to = self.target(dst, V15);
        match op {
            UnaryOp::Copy | UnaryOp::Reinterpret => return self.set_vector(dst, x),
            UnaryOp::Negate | UnaryOp::Abs => {
                let sign = 1u64 << (8 * from.scalar.size() - 1);
                let (bits, op) =
                    if op == UnaryOp::Negate { (sign, BinaryOp::Xor) } else { (sign - 1, BinaryOp::And) };
                self.repeat(ty, V14, bits);
                self.op3(codes::binary(op, ty), v(ty, to), v(ty, x), v(ty, V14));
            }
            _ => match codes::float_unary(op, ty) {
                (code, None) => self.op2(code, v(ty, to), v(ty, x)),
                (code, Some(mode)) => self.add(Instruction::with3(code, v(ty, to), v(ty, x), mode)),
            },
        }
        self.set_vector(dst, to);
    }

    fn wide_splat(&mut self, dst: Reg, a: Reg) {
        let ty = self.ty(dst);
        if self.is_mask(dst) {
            self.boolean_to_mask(a, K6);
            return self.set_mask(dst, K6);
        }
        let to = self.target(dst, V15);
        if self.ty(a).is_general() {
            let x = self.general(a, RAX);
            self.op2(codes::broadcast_general(ty), v(ty, to), self.general_of(ty, x));
        } else {
            let x = self.vector(a, V13);
            self.op2(codes::broadcast(ty), v(ty, to), xmm(x));
        }
        self.set_vector(dst, to);
    }

    fn wide_convert(&mut self, op: UnaryOp, dst: Reg, a: Reg) {
        let (from, ty) = (self.ty(a), self.ty(dst));
        let to = self.target(dst, V15);
        if from.scalar == Scalar::Bool {
            let c = self.mask(a, K6);
            self.set(RAX, ty.scalar.one());
            let x = self.general_of(ty, RAX);
            self.masked(Instruction::with2(codes::broadcast_general(ty), v(ty, to), x), c, true);
            return self.set_vector(dst, to);
        }
        let x = self.vector(a, V13);
        let code = codes::convert(from.scalar, ty, op == UnaryOp::Extend);
        if from.scalar.is_float() && !ty.scalar.is_float() {
            self.op2(code, v(ty, V15), v(from, x));
            self.saturate(from, ty, x);
            return self.set_vector(dst, V15);
        }
        self.op2(code, v(ty, to), v(from, x));
        self.set_vector(dst, to);
    }

    /// Corrects V15, the float vector `x` as integers, where the instruction returned the smallest integer for NaN or for
    /// values that are too large.
    fn saturate(&mut self, from: Type, ty: Type, x: u8) {
        let (limit, largest) = match from.scalar {
            Scalar::F32 => (u64::from(2_147_483_648f32.to_bits()), u64::from(i32::MAX.cast_unsigned())),
            _ => (9_223_372_036_854_775_808f64.to_bits(), i64::MAX.cast_unsigned()),
        };
        self.repeat(from, V14, limit);
        self.compare_to(K6, Relation::Le, from, V14, x);
        self.set(RAX, largest);
        let value = self.general_of(ty, RAX);
        self.masked(Instruction::with2(codes::broadcast_general(ty), v(ty, V15), value), K6, false);
        self.unordered(K6, from, x, x);
        let zero = Instruction::with3(codes::binary(BinaryOp::Xor, ty), v(ty, V15), v(ty, V15), v(ty, V15));
        self.masked(zero, K6, false);
    }

    /// Assigns half of a vector.
    fn wide_half(&mut self, low: bool, dst: Reg, a: Reg) {
        let (from, ty) = (self.ty(a), self.ty(dst));
        if from.scalar == Scalar::Bool {
            let x = self.mask(a, K6);
            let first = if low { 0 } else { u32::from(ty.lanes) };
            self.add(Instruction::with3(Code::VEX_Kshiftrw_kr_kr_imm8, mask(K6), mask(x), first));
            if self.is_mask(dst) {
                return self.set_mask(dst, K6);
            }
            self.op2(Code::VEX_Kmovw_r32_kr, r32(RAX), mask(K6));
            self.add(Instruction::with2(Code::And_rm32_imm8, r32(RAX), 1));
            return self.set_general(dst, RAX);
        }
        let x = self.vector(a, V13);
        match (from.size(), low) {
            (_, true) => self.op2(codes::moves(ty).2, v(ty, V15), v(ty, x)),
            (64, _) => self.extract(Code::EVEX_Vextractf64x4_ymmm256_k1z_zmm_imm8, ty, from, x),
            (32, _) => self.extract(Code::EVEX_Vextractf32x4_xmmm128_k1z_ymm_imm8, ty, from, x),
            (size, _) => {
                let order = if size == 16 { 0x0e } else { 1 };
                let code = Code::EVEX_Vpshufd_xmm_k1z_xmmm128b32_imm8;
                self.add(Instruction::with3(code, xmm(V15), xmm(x), order));
            }
        }
        if !ty.is_general() {
            return self.set_vector(dst, V15);
        }
        if is_wide(ty) {
            self.op2(Code::VEX_Vmovq_rm64_xmm, r64(RAX), xmm(V15));
        } else {
            self.op2(Code::VEX_Vmovd_rm32_xmm, r32(RAX), xmm(V15));
        }
        self.set_general(dst, RAX);
    }

    fn extract(&mut self, code: Code, ty: Type, from: Type, x: u8) {
        self.add(Instruction::with3(code, v(ty, V15), v(from, x), 1u32));
    }

    /// Assigns the booleans in the first bytes of V15.
    pub(super) fn mask_from_bytes(&mut self, dst: Reg) {
        let to = self.mask_target(dst);
        self.op3(Code::EVEX_Vptestmb_kr_k1_xmm_xmmm128, mask(to), xmm(V15), xmm(V15));
        self.set_mask(dst, to);
    }

    /// Sets the first bytes of V15 to booleans.
    pub(super) fn mask_to_bytes(&mut self, src: Reg) {
        let x = self.mask(src, K6);
        self.op2(Code::EVEX_Vpmovm2b_xmm_kr, xmm(V15), mask(x));
        self.op2(Code::VEX_Vpabsb_xmm_xmmm128, xmm(V15), xmm(V15));
    }
}
