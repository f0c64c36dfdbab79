//! Shuffles: vectors of elements of two others.
//!
//! Elements of eight bytes are pairs of words of four bytes here, so that there is one set of instructions.

use super::avx512_codes;
use super::codes;
use super::emitter::{Emitter, RAX, V12, V13, V14, V15, is_wide, r32, r64, v, xmm};
use crate::ir::{InstructionSet, Reg, Scalar, Type};
use iced_x86::{Code, Instruction};

/// The wanted words of a register: for each position, the number of a word of the source, or `None` if any word will do.
type Words = Vec<Option<u8>>;

/// Returns the type of vectors of words.
fn words(size: usize) -> Type {
    Type::vector(Scalar::I32, (size.max(16) / 4) as u8)
}

/// Returns the order that `vpshufd` has for four words.
fn order(wanted: &[Option<u8>]) -> u32 {
    (0..4).map(|i| u32::from(wanted.get(i).copied().flatten().map_or(i as u8, |w| w % 4)) << (2 * i)).sum()
}

impl Emitter<'_> {
    pub(super) fn shuffle(&mut self, dst: Reg, [a, b]: [Reg; 2], lanes: &[u8; 16]) {
        let ty = self.ty(dst);
        let lanes = &lanes[..usize::from(ty.lanes)];
        let first = self.ty(a).lanes;
        if ty.scalar == Scalar::Bool {
            return self.shuffle_booleans(dst, [a, b], lanes);
        }
        let each = (ty.scalar.size() / 4) as u8;
        let wanted = |second: bool| -> Words {
            let word = |lane: u8, part: u8| {
                let of_second = lane >= first && a != b;
                let lane = if lane >= first { lane - first } else { lane };
                (of_second == second).then_some(lane * each + part)
            };
            lanes.iter().flat_map(|lane| (0..each).map(move |part| word(*lane, part))).collect()
        };
        let parts = [wanted(false), wanted(true)];
        let uses = parts.each_ref().map(|p| p.iter().any(Option::is_some));
        let used = [a, b].into_iter().zip(uses).filter(|(_, used)| *used);
        let size = used.map(|(r, _)| self.ty(r).size()).chain([ty.size()]).max().unwrap_or(16);
        let to = if ty.is_general() { V15 } else { self.target(dst, V15) };
        let found = match uses {
            [true, true] => {
                let (x, y) = (self.element_register(a, V13), self.element_register(b, V14));
                self.shuffle_two(to, words(size), [x, y], &parts);
                to
            }
            [first, _] => {
                let (r, part) = if first { (a, &parts[0]) } else { (b, &parts[1]) };
                let x = self.element_register(r, V13);
                self.shuffle_one(to, words(size), x, part)
            }
        };
        let found = if ty.lanes == 1 && found > V15 {
            // Instructions on single elements have only the first registers.
            self.op2(avx512_codes::moves(words(16)).2, xmm(V15), xmm(found));
            V15
        } else {
            found
        };
        if !ty.is_general() {
            self.set_vector(dst, found);
        } else {
            if is_wide(ty) {
                self.op2(Code::VEX_Vmovq_rm64_xmm, r64(RAX), xmm(found));
            } else {
                self.op2(Code::VEX_Vmovd_rm32_xmm, r32(RAX), xmm(found));
            }
            self.set_general(dst, RAX);
        }
    }

    pub(super) fn sequence(&mut self, dst: Reg, first: u32) {
        let ty = self.ty(dst);
        if ty.is_general() {
            let to = self.target(dst, RAX);
            self.set(to, u64::from(first));
            return self.set_general(dst, to);
        }
        let number = |i: u64| (u64::from(first) + i).to_le_bytes();
        let bytes: Vec<u8> =
            (0..u64::from(ty.lanes)).flat_map(|i| number(i)[..ty.scalar.size()].to_vec()).collect();
        let from = self.pooled(&bytes);
        let to = self.target(dst, V15);
        self.load_vector(ty, to, from);
        self.set_vector(dst, to);
    }

    /// Returns a vector register with the value of a register, which may be a general one.
    fn element_register(&mut self, r: Reg, scratch: u8) -> u8 {
        let ty = self.ty(r);
        if !ty.is_general() {
            return self.vector(r, scratch);
        }
        let x = self.general(r, RAX);
        if is_wide(ty) {
            self.op2(Code::VEX_Vmovq_xmm_rm64, xmm(scratch), r64(x));
        } else {
            self.op2(Code::VEX_Vmovd_xmm_rm32, xmm(scratch), r32(x));
        }
        scratch
    }

    fn has_evex(&self) -> bool {
        self.f.set == InstructionSet::Avx512
    }

    /// Puts words of a register at positions of another. Returns that, or the source if nothing has to move.
    fn shuffle_one(&mut self, to: u8, ty: Type, x: u8, wanted: &Words) -> u8 {
        if wanted.iter().enumerate().all(|(i, w)| w.is_none_or(|w| usize::from(w) == i)) {
            return x;
        }
        let evex = self.has_evex();
        let splat = |n: u8| wanted.iter().enumerate().all(|(i, w)| w.is_none_or(|w| w == i as u8 % n));
        if let Some(n) = [1, 2].into_iter().find(|n| splat(*n)) {
            let size = wanted.len() * 4;
            let scalar = if n == 1 { Scalar::I32 } else { Scalar::I64 };
            let repeated = Type::vector(scalar, (size.max(16) / scalar.size()) as u8);
            let code = if evex { avx512_codes::broadcast(repeated) } else { codes::broadcast(repeated) };
            self.op2(code, v(repeated, to), xmm(x));
            return to;
        }
        // The quarter of the source in which all wanted words are, if they fit into one.
        let mut quarters = wanted.iter().flatten().map(|w| w / 4);
        let quarter = quarters.next().filter(|q| wanted.len() <= 4 && quarters.all(|other| other == *q));
        if let Some(quarter) = quarter {
            let mut from = x;
            if quarter > 0 {
                let code = match (evex, ty.size()) {
                    (true, 64) => Code::EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8,
                    (true, _) => Code::EVEX_Vextracti32x4_xmmm128_k1z_ymm_imm8,
                    (false, _) => Code::VEX_Vextracti128_xmmm128_ymm_imm8,
                };
                self.add(Instruction::with3(code, xmm(to), v(ty, x), u32::from(quarter)));
                from = to;
            }
            if wanted.iter().enumerate().any(|(i, w)| w.is_some_and(|w| usize::from(w % 4) != i)) {
                self.order_words(to, words(16), from, order(wanted));
            }
            return to;
        }
        let in_quarters = |i: usize, w: u8| {
            let of_first = wanted.iter().skip(i % 4).step_by(4).flatten().all(|other| other % 4 == w % 4);
            usize::from(w / 4) == i / 4 && of_first
        };
        if wanted.iter().enumerate().all(|(i, w)| w.is_none_or(|w| in_quarters(i, w))) {
            let any = |i: usize| wanted.iter().skip(i).step_by(4).flatten().next().copied();
            let four: Vec<Option<u8>> = (0..4).map(any).collect();
            self.order_words(to, ty, x, order(&four));
            return to;
        }
        let index = self.index(ty, |i| wanted.get(i).copied().flatten().unwrap_or(0));
        self.load_words(ty, V15, index);
        let code = match (evex, ty.size()) {
            (true, 64) => Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32,
            (true, _) => Code::EVEX_Vpermd_ymm_k1z_ymm_ymmm256b32,
            (false, _) => Code::VEX_Vpermd_ymm_ymm_ymmm256,
        };
        self.op3(code, v(ty, to), v(ty, V15), v(ty, x));
        to
    }

    /// Puts words of two registers at positions of another.
    fn shuffle_two(&mut self, to: u8, ty: Type, [x, y]: [u8; 2], parts: &[Words; 2]) {
        let evex = self.has_evex();
        // The word at each position, where those of the second source follow all words of the first.
        let count = ty.lanes;
        let wanted = parts[0].iter().zip(&parts[1]);
        let wanted: Vec<u8> = wanted.map(|(a, b)| a.or(b.map(|b| count + b)).unwrap_or(0)).collect();
        let joined = |ty: Type, words: &[u8]| {
            let given = words.iter().map(|w| if *w >= 128 { count + w - 128 } else { *w });
            wanted.len() <= words.len()
                && ty.size() >= wanted.len() * 4
                && wanted.iter().copied().eq(given.take(wanted.len()))
        };
        // The numbers of words of the second source have the highest bit here.
        let code = if joined(words(16), &[0, 128, 1, 129]) {
            if evex {
                Code::EVEX_Vunpcklps_xmm_k1z_xmm_xmmm128b32
            } else {
                Code::VEX_Vunpcklps_xmm_xmm_xmmm128
            }
        } else if joined(words(16), &[0, 1, 128, 129]) {
            if evex { Code::EVEX_Vmovlhps_xmm_xmm_xmm } else { Code::VEX_Vmovlhps_xmm_xmm_xmm }
        } else {
            Code::INVALID
        };
        if code != Code::INVALID {
            return self.op3(code, xmm(to), xmm(x), xmm(y));
        }
        if joined(words(32), &[0, 1, 2, 3, 128, 129, 130, 131]) {
            let code = if evex {
                Code::EVEX_Vinserti32x4_ymm_k1z_ymm_xmmm128_imm8
            } else {
                Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8
            };
            let whole = words(32);
            return self.add(Instruction::with4(code, v(whole, to), v(whole, x), xmm(y), 1u32));
        }
        if evex {
            let index = self.index(ty, |i| wanted.get(i).copied().unwrap_or(0));
            self.load_words(ty, V15, index);
            let code = match ty.size() {
                64 => Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32,
                32 => Code::EVEX_Vpermi2d_ymm_k1z_ymm_ymmm256b32,
                _ => Code::EVEX_Vpermi2d_xmm_k1z_xmm_xmmm128b32,
            };
            self.op3(code, v(ty, V15), v(ty, x), v(ty, y));
            if to != V15 {
                self.op2(avx512_codes::moves(ty).2, v(ty, to), v(ty, V15));
            }
            return;
        }
        let p = self.shuffle_one(V12, ty, x, &parts[0]);
        let q = self.shuffle_one(V15, ty, y, &parts[1]);
        let second: u32 = parts[1].iter().enumerate().map(|(i, w)| u32::from(w.is_some()) << i).sum();
        let code = match ty.size() {
            32 => Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8,
            _ => Code::VEX_Vpblendd_xmm_xmm_xmmm128_imm8,
        };
        self.add(Instruction::with4(code, v(ty, to), v(ty, p), v(ty, q), second));
    }

    /// Orders the words of each 16 bytes.
    fn order_words(&mut self, to: u8, ty: Type, x: u8, order: u32) {
        let code = match (self.has_evex(), ty.size()) {
            (true, 64) => Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8,
            (true, 32) => Code::EVEX_Vpshufd_ymm_k1z_ymmm256b32_imm8,
            (true, _) => Code::EVEX_Vpshufd_xmm_k1z_xmmm128b32_imm8,
            (false, 32) => Code::VEX_Vpshufd_ymm_ymmm256_imm8,
            (false, _) => Code::VEX_Vpshufd_xmm_xmmm128_imm8,
        };
        self.add(Instruction::with3(code, v(ty, to), v(ty, x), order));
    }

    /// Returns a constant vector of the numbers of words.
    fn index(&mut self, ty: Type, word: impl Fn(usize) -> u8) -> iced_x86::MemoryOperand {
        let bytes: Vec<u8> =
            (0..usize::from(ty.lanes)).flat_map(|i| u32::from(word(i)).to_le_bytes()).collect();
        self.pooled(&bytes)
    }

    fn load_words(&mut self, ty: Type, to: u8, from: iced_x86::MemoryOperand) {
        let code = if self.has_evex() { avx512_codes::moves(ty).0 } else { codes::moves(ty).0 };
        self.add(Instruction::with2(code, v(ty, to), from));
    }

    fn shuffle_booleans(&mut self, dst: Reg, operands: [Reg; 2], lanes: &[u8]) {
        let ty = self.ty(dst);
        let first = self.ty(operands[0]).lanes;
        for (number, (r, to)) in operands.into_iter().zip([V12, V14]).enumerate() {
            let x = self.boolean_bytes(r, to);
            // A byte whose number has the highest bit becomes zero.
            let byte = |lane: Option<&u8>| match lane {
                Some(lane) if (*lane >= first) == (number == 1) => lane - if number == 1 { first } else { 0 },
                _ => 0x80,
            };
            let bytes: Vec<u8> = (0..16).map(|i| byte(lanes.get(i))).collect();
            let from = self.pooled(&bytes);
            self.add(Instruction::with3(Code::VEX_Vpshufb_xmm_xmm_xmmm128, xmm(to), xmm(x), from));
        }
        self.op3(Code::VEX_Vpor_xmm_xmm_xmmm128, xmm(V15), xmm(V12), xmm(V14));
        if ty.is_general() {
            self.op2(Code::VEX_Vmovd_rm32_xmm, r32(RAX), xmm(V15));
            self.set_general(dst, RAX);
        } else if self.is_mask(dst) {
            self.mask_from_bytes(dst);
        } else {
            self.set_vector(dst, V15);
        }
    }

    /// Returns a vector register with booleans as bytes.
    fn boolean_bytes(&mut self, r: Reg, scratch: u8) -> u8 {
        if self.ty(r).is_general() {
            let x = self.general(r, RAX);
            self.op2(Code::VEX_Vmovd_xmm_rm32, xmm(scratch), r32(x));
            return scratch;
        }
        if self.is_mask(r) {
            self.mask_to_bytes(r);
            return V15;
        }
        self.vector(r, scratch)
    }
}
