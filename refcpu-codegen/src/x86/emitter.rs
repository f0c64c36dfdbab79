//! The list of instructions under construction, and the moves between registers and memory.

use super::allocate::{Allocation, Place};
use super::{avx512_codes, codes};
use crate::ir::{Access, Error, Function, InstructionSet, Reg, Scalar, Type};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, IcedError, Instruction, InstructionBlock, MemoryOperand,
    Register,
};

/// A position in the code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(u64);

impl Label {
    /// Returns the address that stands for the position until the code is encoded.
    pub(super) fn address(self) -> u64 {
        self.0
    }
}

/// The general-purpose registers that hold no values between instructions of the function.
pub(super) const RAX: u8 = 0;
pub(super) const RCX: u8 = 1;
pub(super) const RDX: u8 = 2;
/// The stack pointer.
pub(super) const RSP: u8 = 4;
/// The address of the first array.
pub(super) const FIRST_BASE: u8 = 14;
/// The address of the table of all arrays' addresses.
pub(super) const BASES: u8 = 15;
/// The vector registers that hold no values between instructions of the function.
pub(super) const V12: u8 = 12;
pub(super) const V13: u8 = 13;
pub(super) const V14: u8 = 14;
pub(super) const V15: u8 = 15;
/// The masks that hold no values between instructions of the function.
pub(super) const K6: u8 = 6;
pub(super) const K7: u8 = 7;

/// Returns a 64-bit register.
pub(super) fn r64(n: u8) -> Register {
    Register::RAX + u32::from(n)
}

/// Returns the lower half of a 64-bit register.
pub(super) fn r32(n: u8) -> Register {
    Register::EAX + u32::from(n)
}

/// Returns the lowest two bytes of a 64-bit register.
pub(super) fn r16(n: u8) -> Register {
    Register::AX + u32::from(n)
}

/// Returns the lowest byte of a 64-bit register.
pub(super) fn r8(n: u8) -> Register {
    match n {
        0..4 => Register::AL + u32::from(n),
        4..8 => Register::SPL + u32::from(n - 4),
        _ => Register::R8L + u32::from(n - 8),
    }
}

/// Returns the vector register of the width that a type needs.
pub(super) fn v(ty: Type, n: u8) -> Register {
    match ty.size() {
        64 => Register::ZMM0 + u32::from(n),
        32 => Register::YMM0 + u32::from(n),
        _ => xmm(n),
    }
}

/// Returns a mask register.
pub(super) fn mask(n: u8) -> Register {
    Register::K0 + u32::from(n)
}

/// Returns a vector register of 16 bytes.
pub(super) fn xmm(n: u8) -> Register {
    Register::XMM0 + u32::from(n)
}

/// Returns the operand for the memory at a register plus an offset.
pub(super) fn memory(base: u8, offset: i64) -> MemoryOperand {
    MemoryOperand::new(r64(base), Register::None, 1, offset, u32::from(offset != 0), false, Register::None)
}

/// Returns the operand for the memory at a register plus an index, which counts steps, plus an offset.
fn indexed(base: u8, index: u8, step: u64, offset: u64) -> MemoryOperand {
    let size = u32::from(offset != 0);
    MemoryOperand::new(r64(base), r64(index), step as u32, offset as i64, size, false, Register::None)
}

/// Returns whether values of the type have 64-bit operations.
pub(super) fn is_wide(ty: Type) -> bool {
    ty.scalar == Scalar::I64
}

/// The instructions of a function before they are encoded. Their addresses are labels, or zero.
pub(super) struct Emitted {
    pub(super) code: Vec<Instruction>,
    /// For each instruction of the function, and the end of each block, the number of machine instructions before it.
    pub(super) starts: Vec<usize>,
    /// The constants that follow the code.
    pub(super) constants: Vec<(Label, Vec<u8>)>,
}

fn encoding(error: IcedError) -> Error {
    Error::Encoding(error.to_string())
}

pub(super) struct Emitter<'a> {
    pub(super) f: &'a Function,
    pub(super) allocation: &'a Allocation,
    /// The largest value of each register for which it is known.
    largest: Vec<Option<u64>>,
    /// The bits of each register that is a constant.
    pub(super) constants: Vec<Option<u64>>,
    code: Vec<Instruction>,
    labels: u64,
    bound: Option<Label>,
    /// The constants that follow the code.
    pool: Vec<(Label, Vec<u8>)>,
    /// For each instruction of the function, and the end of each block, the number of machine instructions before it.
    starts: Vec<usize>,
    error: Option<IcedError>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(f: &'a Function, allocation: &'a Allocation) -> Self {
        Self {
            f,
            allocation,
            largest: f.largest(),
            constants: f.constants(),
            code: Vec::new(),
            labels: 0,
            bound: None,
            pool: Vec::new(),
            starts: Vec::new(),
            error: None,
        }
    }

    /// Adds an instruction.
    pub(super) fn add(&mut self, instruction: Result<Instruction, IcedError>) {
        match instruction {
            Ok(mut i) => {
                if let Some(label) = self.bound.take() {
                    i.set_ip(label.0);
                }
                self.code.push(i);
            }
            Err(e) => self.error = Some(self.error.take().unwrap_or(e)),
        }
    }

    pub(super) fn plain(&mut self, code: Code) {
        self.add(Ok(Instruction::with(code)));
    }

    pub(super) fn op1(&mut self, code: Code, a: Register) {
        self.add(Instruction::with1(code, a));
    }

    pub(super) fn op2(&mut self, code: Code, a: Register, b: Register) {
        self.add(Instruction::with2(code, a, b));
    }

    pub(super) fn op3(&mut self, code: Code, a: Register, b: Register, c: Register) {
        self.add(Instruction::with3(code, a, b, c));
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    /// Binds a label to the next instruction.
    pub(super) fn bind(&mut self, label: Label) {
        if self.bound.is_some() {
            self.plain(Code::Nopd);
        }
        self.bound = Some(label);
    }

    pub(super) fn jump(&mut self, code: Code, to: Label) {
        self.add(Instruction::with_branch(code, to.0));
    }

    /// Returns the operand for constant bytes, which follow the code.
    pub(super) fn pooled(&mut self, bytes: &[u8]) -> MemoryOperand {
        let label = match self.pool.iter().find(|(_, b)| b == bytes) {
            Some((label, _)) => *label,
            None => {
                let label = self.label();
                self.pool.push((label, bytes.to_vec()));
                label
            }
        };
        MemoryOperand::with_base_displ(Register::RIP, label.0 as i64)
    }

    /// Returns the machine code, without the gaps of unencodable instructions.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, Error> {
        for (label, bytes) in std::mem::take(&mut self.pool) {
            self.bind(label);
            bytes.chunks(16).for_each(|part| self.add(Instruction::with_declare_byte(part)));
        }
        if let Some(e) = self.error {
            return Err(encoding(e));
        }
        // Displacements are relative, so the code runs at any address.
        let block = InstructionBlock::new(&self.code, 0);
        let result = BlockEncoder::encode(64, block, BlockEncoderOptions::NONE).map_err(encoding)?;
        Ok(result.code_buffer)
    }

    /// Notes that an instruction of the function, or the end of a block, begins.
    pub(super) fn begin(&mut self) {
        self.starts.push(self.code.len());
    }

    /// Returns what was emitted, before it is encoded.
    pub(super) fn emitted(self) -> Result<Emitted, Error> {
        let Self { code, starts, pool, error, .. } = self;
        error.map_or(Ok(Emitted { code, starts, constants: pool }), |error| Err(encoding(error)))
    }

    pub(super) fn ty(&self, r: Reg) -> Type {
        self.f.type_of(r)
    }

    /// Returns whether a register is a constant float that is neither zero nor NaN.
    pub(super) fn is_ordinary(&self, r: Reg) -> bool {
        let Some(bits) = self.constants[r.0 as usize] else { return false };
        let size = match self.ty(r).scalar {
            Scalar::F32 => f64::from(f32::from_bits(bits as u32)).abs(),
            _ => f64::from_bits(bits).abs(),
        };
        size > 0.0
    }

    fn place(&self, r: Reg) -> Place {
        self.allocation.places[r.0 as usize]
    }

    /// Returns a machine register with the value of a general register: its own, or `scratch` after loading the value.
    pub(super) fn general(&mut self, r: Reg, scratch: u8) -> u8 {
        match self.place(r) {
            Place::Machine(n) => n,
            Place::Frame(at) => {
                self.add(Instruction::with2(Code::Mov_r64_rm64, r64(scratch), memory(RSP, i64::from(at))));
                scratch
            }
            Place::Repeated(_) => unreachable!("only vectors are repeated"),
        }
    }

    /// Loads the value of a general register into a certain machine register.
    pub(super) fn general_into(&mut self, r: Reg, to: u8) {
        let n = self.general(r, to);
        self.move_general(n, to);
    }

    pub(super) fn move_general(&mut self, from: u8, to: u8) {
        if from != to {
            self.op2(Code::Mov_r64_rm64, r64(to), r64(from));
        }
    }

    /// Assigns the value in a machine register to a general register.
    pub(super) fn set_general(&mut self, r: Reg, n: u8) {
        match self.place(r) {
            Place::Machine(own) => self.move_general(n, own),
            Place::Frame(at) => {
                self.add(Instruction::with2(Code::Mov_rm64_r64, memory(RSP, i64::from(at)), r64(n)))
            }
            Place::Repeated(_) => unreachable!("only vectors are repeated"),
        }
    }

    /// Returns the machine register in which to compute the value of a register: its own, or `scratch`.
    pub(super) fn target(&self, r: Reg, scratch: u8) -> u8 {
        match self.place(r) {
            Place::Machine(n) => n,
            Place::Frame(_) | Place::Repeated(_) => scratch,
        }
    }

    /// Returns a machine register with the value of a vector register: its own, or `scratch` after loading the value.
    pub(super) fn vector(&mut self, r: Reg, scratch: u8) -> u8 {
        match self.place(r) {
            Place::Machine(n) => n,
            Place::Frame(at) => {
                let ty = self.ty(r);
                self.load_vector(ty, scratch, memory(RSP, i64::from(at)));
                scratch
            }
            Place::Repeated(at) => {
                let ty = self.ty(r);
                let code = avx512_codes::broadcast(ty);
                self.add(Instruction::with2(code, v(ty, scratch), memory(RSP, i64::from(at))));
                scratch
            }
        }
    }

    /// Loads booleans to [`V15`].
    pub(super) fn load_bytes(&mut self, ty: Type, from: MemoryOperand) {
        if ty.size() == 2 {
            return self.load_pair(V15, from);
        }
        self.add(Instruction::with2(codes::moves(ty).0, xmm(V15), from));
    }

    /// Stores booleans from [`V15`].
    pub(super) fn store_bytes(&mut self, ty: Type, to: MemoryOperand) {
        if ty.size() == 2 {
            return self.store_pair(V15, to);
        }
        self.add(Instruction::with2(codes::moves(ty).1, to, xmm(V15)));
    }

    pub(super) fn load_vector(&mut self, ty: Type, n: u8, from: MemoryOperand) {
        if ty.size() == 2 {
            return self.load_pair(n, from);
        }
        self.add(Instruction::with2(self.moves(ty).0, v(ty, n), from));
    }

    pub(super) fn store_vector(&mut self, ty: Type, n: u8, to: MemoryOperand) {
        if ty.size() == 2 {
            return self.store_pair(n, to);
        }
        self.add(Instruction::with2(self.moves(ty).1, to, v(ty, n)));
    }

    /// Assigns the value in a machine register to a vector register.
    pub(super) fn set_vector(&mut self, r: Reg, n: u8) {
        let ty = self.ty(r);
        match self.place(r) {
            Place::Machine(own) if own == n => {}
            Place::Machine(own) => self.op2(self.moves(ty).2, v(ty, own), v(ty, n)),
            Place::Frame(at) => self.store_vector(ty, n, memory(RSP, i64::from(at))),
            Place::Repeated(_) => unreachable!("only constants are repeated"),
        }
    }

    /// Returns the operand for the value of a vector of AVX-512 that is in memory.
    pub(super) fn in_memory(&self, r: Reg) -> Option<MemoryOperand> {
        let (at, is_repeated) = match self.place(r) {
            Place::Machine(_) => return None,
            Place::Frame(at) => (at, false),
            Place::Repeated(at) => (at, true),
        };
        let size = u32::from(at != 0);
        Some(MemoryOperand::new(
            r64(RSP),
            Register::None,
            1,
            i64::from(at),
            size,
            is_repeated,
            Register::None,
        ))
    }

    /// Writes the element of a constant vector that is in memory. Returns `false` if it is in a machine register.
    pub(super) fn set_repeated(&mut self, r: Reg, bits: u64) -> bool {
        let Place::Repeated(at) = self.place(r) else { return false };
        self.set(RAX, bits);
        self.add(Instruction::with2(Code::Mov_rm64_r64, memory(RSP, i64::from(at)), r64(RAX)));
        true
    }

    /// Returns the load, the store and the move between registers for vector registers of this type.
    fn moves(&self, ty: Type) -> (Code, Code, Code) {
        if self.is_avx512(ty) { avx512_codes::moves(ty) } else { codes::moves(ty) }
    }

    /// Returns whether values of the type are vectors of AVX-512, or masks.
    pub(super) fn is_avx512(&self, ty: Type) -> bool {
        self.f.set == InstructionSet::Avx512 && ty.lanes > 1
    }

    /// Returns whether a register is in a mask.
    pub(super) fn is_mask(&self, r: Reg) -> bool {
        let ty = self.ty(r);
        ty.scalar == Scalar::Bool && self.is_avx512(ty)
    }

    /// Returns a mask with the value of a register: its own, or `scratch` after loading the value.
    pub(super) fn mask(&mut self, r: Reg, scratch: u8) -> u8 {
        match self.place(r) {
            Place::Machine(n) => n,
            Place::Frame(at) => {
                let from = memory(RSP, i64::from(at));
                self.add(Instruction::with2(Code::VEX_Kmovw_kr_km16, mask(scratch), from));
                scratch
            }
            Place::Repeated(_) => unreachable!("only vectors of numbers are repeated"),
        }
    }

    /// Returns the mask in which to compute the value of a register: its own, or [`K6`].
    pub(super) fn mask_target(&self, r: Reg) -> u8 {
        self.target(r, K6)
    }

    /// Assigns the value in a mask to a register.
    pub(super) fn set_mask(&mut self, r: Reg, n: u8) {
        match self.place(r) {
            Place::Machine(own) if own == n => {}
            Place::Machine(own) => self.op2(Code::VEX_Kmovw_kr_km16, mask(own), mask(n)),
            Place::Frame(at) => {
                self.add(Instruction::with2(Code::VEX_Kmovw_m16_kr, memory(RSP, i64::from(at)), mask(n)));
            }
            Place::Repeated(_) => unreachable!("only vectors of numbers are repeated"),
        }
    }

    /// Sets a machine register to a constant.
    pub(super) fn set(&mut self, n: u8, bits: u64) {
        match u32::try_from(bits) {
            Ok(0) => self.op2(Code::Xor_r32_rm32, r32(n), r32(n)),
            Ok(low) => self.add(Instruction::with2(Code::Mov_r32_imm32, r32(n), low)),
            Err(_) => self.add(Instruction::with2(Code::Mov_r64_imm64, r64(n), bits)),
        }
    }

    /// Returns the operand for a location. Uses RAX, RCX and RDX; the operand reads RAX and RCX.
    pub(super) fn address(&mut self, at: &Access) -> MemoryOperand {
        let mut base = FIRST_BASE;
        if at.array.0 != 0 {
            base = RAX;
            self.add(Instruction::with2(
                Code::Mov_r64_rm64,
                r64(RAX),
                memory(BASES, i64::from(at.array.0) * 8),
            ));
        }
        let mut offset = at.offset;
        if i32::try_from(offset).is_err() {
            self.set(RDX, offset);
            self.add_to_address(&mut base, RDX);
            offset = 0;
        }
        let moving: Vec<_> = at.indices.iter().filter(|i| i.limit != 0 && i.step != 0).collect();
        for i in &moving {
            if self.largest[i.reg.0 as usize].is_some_and(|n| n <= i.limit) {
                let index = self.general(i.reg, RCX);
                if moving.len() == 1 && matches!(i.step, 1 | 2 | 4 | 8) {
                    return indexed(base, index, i.step, offset);
                }
                self.move_general(index, RCX);
                self.advance(&mut base, i.step);
                continue;
            }
            self.general_into(i.reg, RCX);
            if !is_wide(self.ty(i.reg)) {
                self.op2(Code::Movsxd_r64_rm32, r64(RCX), r32(RCX));
            }
            self.limit_index(i.limit);
            if moving.len() == 1 && matches!(i.step, 1 | 2 | 4 | 8) {
                return indexed(base, RCX, i.step, offset);
            }
            self.advance(&mut base, i.step);
        }
        memory(base, offset as i64)
    }

    /// Replaces an index in RCX that is beyond its limits. Most are not, so a jump, which is predicted, costs less than the
    /// replacements.
    fn limit_index(&mut self, limit: u64) {
        let inside = self.label();
        match i32::try_from(limit) {
            Ok(limit) => self.add(Instruction::with2(Code::Cmp_rm64_imm32, r64(RCX), limit)),
            Err(_) => {
                self.set(RDX, limit);
                self.op2(Code::Cmp_r64_rm64, r64(RCX), r64(RDX));
            }
        }
        self.jump(Code::Jbe_rel32_64, inside);
        self.op2(Code::Xor_r32_rm32, r32(RDX), r32(RDX));
        self.op2(Code::Test_rm64_r64, r64(RCX), r64(RCX));
        self.op2(Code::Cmovs_r64_rm64, r64(RCX), r64(RDX));
        self.set(RDX, limit);
        self.op2(Code::Cmp_r64_rm64, r64(RCX), r64(RDX));
        self.op2(Code::Cmovg_r64_rm64, r64(RCX), r64(RDX));
        self.bind(inside);
    }

    /// Adds RCX times a step to the address.
    fn advance(&mut self, base: &mut u8, step: u64) {
        match i32::try_from(step) {
            Ok(step) => self.add(Instruction::with3(Code::Imul_r64_rm64_imm32, r64(RCX), r64(RCX), step)),
            Err(_) => {
                self.set(RDX, step);
                self.op2(Code::Imul_r64_rm64, r64(RCX), r64(RDX));
            }
        }
        self.add_to_address(base, RCX);
    }

    fn add_to_address(&mut self, base: &mut u8, n: u8) {
        self.move_general(*base, RAX);
        *base = RAX;
        self.op2(Code::Add_r64_rm64, r64(RAX), r64(n));
    }
}
