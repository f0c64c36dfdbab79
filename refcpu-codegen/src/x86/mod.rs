//! Machine code for x86-64 with AVX2, FMA and BMI2.
//!
//! Values are in the places that the allocator chose. An instruction loads operands from the frame into scratch registers, and
//! stores results there. The code of the function:
//!
//! * saves the registers that belong to its caller, and keeps the table of the arrays' addresses and the first of them in
//!   registers;
//! * runs its blocks in their order, without jumps between a block and the next one.

mod allocate;
mod avx512;
mod avx512_codes;
mod booleans;
mod codes;
mod emitter;
mod float;
mod integer;
mod listing;
mod shuffle;

use crate::ir::{
    Access, Block, End, Error, Function, Inst, InstructionSet, Liveness, Reg, Scalar, Type, UnaryOp,
};
use allocate::{Kind, Pool, allocate};
use emitter::{BASES, Emitter, FIRST_BASE, Label, RAX, RCX, RDX, RSP, memory, r8, r16, r32, r64};
use iced_x86::{Code, Instruction, Register};
use listing::listing;

/// The general-purpose registers of values: those that a call keeps, and others.
const GENERAL: Pool<'static> =
    Pool { kind: Kind::General, kept: &[3, 5, 12, 13], lost: &[6, 7, 8, 9, 10, 11] };
/// The vector registers of values.
const VECTOR: Pool<'static> =
    Pool { kind: Kind::Vector, kept: &[], lost: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] };
/// The vector registers of vectors in functions that need AVX-512. Instructions on single floats have only the first 16
/// registers.
const VECTOR_OF_AVX512: Pool<'static> = Pool {
    kind: Kind::Vector,
    kept: &[],
    lost: &[
        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
    ],
};
/// The masks of values.
const MASK: Pool<'static> = Pool { kind: Kind::Mask, kept: &[], lost: &[1, 2, 3, 4, 5] };
/// The registers that a function must restore.
const SAVED: [u8; 6] = [3, 5, 12, 13, 14, 15];
/// The largest frame. Larger ones would need a check of the stack's size.
const MAX_FRAME: u32 = 1 << 16;
/// The distance of accesses that keep the stack's guard page in front of the frame.
const PAGE: u32 = 4096;

/// Returns whether this processor executes the instructions of a set.
pub(crate) fn is_supported(set: InstructionSet) -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2")
        && has!("fma")
        && has!("bmi2")
        && (set == InstructionSet::Avx2
            || has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512bw"))
}

/// Returns the machine registers for values of a type.
fn pool(set: InstructionSet, ty: Type) -> Pool<'static> {
    match (set, ty.scalar) {
        _ if ty.is_general() => GENERAL,
        (InstructionSet::Avx512, Scalar::Bool) => MASK,
        (InstructionSet::Avx512, _) if ty.lanes > 1 => VECTOR_OF_AVX512,
        _ => VECTOR,
    }
}

/// Returns the machine code of a verified function.
pub(crate) fn assemble(f: &Function, liveness: &Liveness) -> Result<Vec<u8>, Error> {
    emit(f, liveness, |e| e.finish())
}

/// Returns the machine code of a verified function as text, with the function beside it.
pub(crate) fn disassemble(f: &Function, liveness: &Liveness) -> Result<String, Error> {
    emit(f, liveness, |e| Ok(listing(f, e.emitted()?)))
}

/// Emits the instructions of a verified function, and returns what `finish` makes of them.
fn emit<T>(
    f: &Function,
    liveness: &Liveness,
    finish: impl FnOnce(Emitter<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let allocation = allocate(f, liveness, |ty| pool(f.set, ty));
    if allocation.frame > MAX_FRAME {
        return Err(Error::Encoding(format!("the values need a frame of {} bytes", allocation.frame)));
    }
    let wide = f.regs.iter().any(|ty| ty.size() >= 32);
    let aligned = f.regs.iter().any(|ty| ty.size() == 64);
    let frame = Frame { state: allocation.frame.next_multiple_of(8), wide, aligned };
    let mut e = Emitter::new(f, &allocation);
    let labels: Vec<Label> = f.blocks.iter().map(|_| e.label()).collect();
    frame.begin(&mut e);
    for (b, block) in f.blocks.iter().enumerate() {
        e.bind(labels[b]);
        for inst in &block.insts {
            e.begin();
            match inst {
                Inst::Call { dst, number } => frame.call(&mut e, *dst, *number),
                inst => instruction(&mut e, inst),
            }
        }
        e.begin();
        let end = block.end.as_ref().expect("verified");
        match end {
            End::Return(value) => frame.finish(&mut e, *value),
            end => branch(&mut e, end, &labels, labels.get(b + 1).copied()),
        }
    }
    finish(e)
}

/// The layout of the stack frame: spilled values, the state of calls, the function that answers them, the stack pointer of the
/// caller.
struct Frame {
    /// The offset of the state; the function and the stack pointer follow.
    state: u32,
    /// `true` if the code uses registers of 32 bytes or more.
    wide: bool,
    /// `true` if the frame begins at a cache line, because values of 64 bytes would otherwise be in two of them.
    aligned: bool,
}

impl Frame {
    /// Returns the number of bytes by which the stack pointer moves: after the return address and six registers, it becomes a
    /// multiple of 16.
    fn size(&self) -> u32 {
        let size = (self.state + 24).next_multiple_of(16) + 8;
        if self.aligned { size + 64 } else { size }
    }

    fn begin(&self, e: &mut Emitter<'_>) {
        for n in SAVED {
            e.op1(Code::Push_r64, r64(n));
        }
        if self.aligned {
            e.op2(Code::Mov_r64_rm64, r64(RAX), r64(RSP));
        }
        let mut left = self.size();
        while left > PAGE {
            e.add(Instruction::with2(Code::Sub_rm64_imm32, r64(RSP), PAGE as i32));
            e.add(Instruction::with2(Code::Mov_rm64_r64, memory(RSP, 0), r64(RAX)));
            left -= PAGE;
        }
        e.add(Instruction::with2(Code::Sub_rm64_imm32, r64(RSP), left as i32));
        if self.aligned {
            e.add(Instruction::with2(Code::And_rm64_imm8, r64(RSP), -64));
            e.add(Instruction::with2(Code::Mov_rm64_r64, memory(RSP, i64::from(self.state) + 16), r64(RAX)));
        }
        e.add(Instruction::with2(Code::Mov_rm64_r64, memory(RSP, i64::from(self.state)), Register::RSI));
        e.add(Instruction::with2(Code::Mov_rm64_r64, memory(RSP, i64::from(self.state) + 8), Register::RDX));
        e.op2(Code::Mov_r64_rm64, r64(BASES), Register::RDI);
        if !e.f.arrays.is_empty() {
            e.add(Instruction::with2(Code::Mov_r64_rm64, r64(FIRST_BASE), memory(BASES, 0)));
        }
    }

    fn finish(&self, e: &mut Emitter<'_>, value: u32) {
        if self.wide {
            e.plain(Code::VEX_Vzeroupper);
        }
        e.add(Instruction::with2(Code::Mov_r32_imm32, r32(RAX), value));
        if self.aligned {
            e.add(Instruction::with2(Code::Mov_r64_rm64, r64(RSP), memory(RSP, i64::from(self.state) + 16)));
        } else {
            e.add(Instruction::with2(Code::Add_rm64_imm32, r64(RSP), self.size() as i32));
        }
        for n in SAVED.iter().rev() {
            e.op1(Code::Pop_r64, r64(*n));
        }
        e.plain(Code::Retnq);
    }

    fn call(&self, e: &mut Emitter<'_>, dst: Reg, number: u32) {
        if self.wide {
            e.plain(Code::VEX_Vzeroupper);
        }
        e.add(Instruction::with2(Code::Mov_r64_rm64, Register::RDI, memory(RSP, i64::from(self.state))));
        e.add(Instruction::with2(Code::Mov_r32_imm32, Register::ESI, number));
        e.add(Instruction::with1(Code::Call_rm64, memory(RSP, i64::from(self.state) + 8)));
        e.set_general(dst, RAX);
    }
}

fn instruction(e: &mut Emitter<'_>, inst: &Inst) {
    match inst {
        Inst::Load { dst, at } => return load(e, *dst, at),
        Inst::Store { src, at } => return store(e, *src, at),
        Inst::Sequence { dst, first } => return e.sequence(*dst, *first),
        Inst::Choose { relation, dst, x, y, a, b } => return e.choose(*relation, *dst, [*x, *y], [*a, *b]),
        Inst::Shuffle { dst, a, b, lanes } => return e.shuffle(*dst, [*a, *b], lanes),
        _ => {}
    }
    let mut vectors = inst.def().is_some_and(|r| e.is_avx512(e.ty(r)));
    inst.uses(|r| vectors |= e.is_avx512(e.ty(r)));
    if vectors {
        return e.avx512(inst);
    }
    match inst {
        Inst::Constant { dst, bits } if e.ty(*dst).is_general() => {
            let to = e.target(*dst, RAX);
            e.set(to, *bits);
            e.set_general(*dst, to);
        }
        Inst::Constant { dst, bits } => e.vector_constant(*dst, *bits),
        Inst::Unary { op: UnaryOp::Convert, dst, a } => e.convert(*dst, *a),
        Inst::Unary { op: UnaryOp::Reinterpret, dst, a } => e.reinterpret(*dst, *a),
        Inst::Unary { op: op @ (UnaryOp::Low | UnaryOp::High), dst, a } => e.half(*op, *dst, *a),
        Inst::Unary { op, dst, a } if e.ty(*dst).is_general() => e.integer_unary(*op, *dst, *a),
        Inst::Unary { op, dst, a } => e.vector_unary(*op, *dst, *a),
        Inst::Binary { op, dst, a, b } if e.ty(*dst).is_general() => e.integer_binary(*op, *dst, *a, *b),
        Inst::Binary { op, dst, a, b } => e.vector_binary(*op, *dst, *a, *b),
        Inst::Fma { dst, a, b, c } => e.fma(*dst, *a, *b, *c),
        Inst::Compare { relation, dst, a, b } if e.ty(*a).is_general() => {
            e.integer_relation(*relation, *dst, *a, *b)
        }
        Inst::Compare { relation, dst, a, b } if e.ty(*a).lanes > 1 => {
            e.vector_relation(*relation, *dst, *a, *b);
        }
        Inst::Compare { relation, dst, a, b } => e.float_relation(*relation, *dst, *a, *b),
        Inst::Select { dst, condition, a, b } if e.ty(*dst).is_general() => {
            e.select_general(*dst, *condition, *a, *b);
        }
        Inst::Select { dst, condition, a, b } if e.ty(*condition).lanes > 1 => {
            e.select_elements(*dst, *condition, *a, *b);
        }
        Inst::Select { dst, condition, a, b } => e.select_vector(*dst, *condition, *a, *b),
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

fn load(e: &mut Emitter<'_>, dst: Reg, at: &Access) {
    let ty = e.ty(dst);
    let from = e.address(at);
    if e.is_mask(dst) {
        e.load_bytes(ty, from);
        return e.mask_from_bytes(dst);
    }
    let to = e.target(dst, if ty.is_general() { RDX } else { emitter::V15 });
    if !ty.is_general() {
        e.load_vector(ty, to, from);
        return e.set_vector(dst, to);
    }
    e.add(match ty.scalar {
        Scalar::Bool | Scalar::I8 => Instruction::with2(Code::Movzx_r32_rm8, r32(to), from),
        Scalar::I16 => Instruction::with2(Code::Movzx_r32_rm16, r32(to), from),
        Scalar::I64 => Instruction::with2(Code::Mov_r64_rm64, r64(to), from),
        _ => Instruction::with2(Code::Mov_r32_rm32, r32(to), from),
    });
    e.set_general(dst, to);
}

fn store(e: &mut Emitter<'_>, src: Reg, at: &Access) {
    let ty = e.ty(src);
    let to = e.address(at);
    if e.is_mask(src) {
        e.mask_to_bytes(src);
        return e.store_bytes(ty, to);
    }
    if !ty.is_general() {
        let n = e.vector(src, emitter::V15);
        return e.store_vector(ty, n, to);
    }
    let n = e.general(src, RDX);
    e.add(match ty.scalar {
        Scalar::Bool | Scalar::I8 => Instruction::with2(Code::Mov_rm8_r8, to, r8(n)),
        Scalar::I16 => Instruction::with2(Code::Mov_rm16_r16, to, r16(n)),
        Scalar::I64 => Instruction::with2(Code::Mov_rm64_r64, to, r64(n)),
        _ => Instruction::with2(Code::Mov_rm32_r32, to, r32(n)),
    });
}

/// Adds a step to a counter, and jumps to `then` if it is within its limit.
fn count(
    e: &mut Emitter<'_>,
    counter: Reg,
    [step, limit]: [u32; 2],
    then: Label,
    otherwise: Label,
    next: Option<Label>,
) {
    let n = e.general(counter, RCX);
    let (step, limit) = (Instruction::with2(Code::Add_rm64_imm32, r64(n), step as i32), limit as i32);
    e.add(step);
    e.set_general(counter, n);
    e.add(Instruction::with2(Code::Cmp_rm64_imm32, r64(n), limit));
    e.jump(Code::Jbe_rel32_64, then);
    e.op2(Code::Xor_r32_rm32, r32(RAX), r32(RAX));
    e.set_general(counter, RAX);
    if next != Some(otherwise) {
        e.jump(Code::Jmp_rel32_64, otherwise);
    }
}

fn branch(e: &mut Emitter<'_>, end: &End, labels: &[Label], next: Option<Label>) {
    let label = |b: &Block| labels[b.0 as usize];
    let (holds, fails, then, otherwise) = match end {
        End::Jump(to) => {
            if next != Some(label(to)) {
                e.jump(Code::Jmp_rel32_64, label(to));
            }
            return;
        }
        End::Compare { relation, a, b, then, otherwise } if !e.ty(*a).is_general() => {
            return e.float_branch(*relation, [*a, *b], label(then), label(otherwise), next);
        }
        End::Compare { relation, a, b, then, otherwise } => {
            e.compare_integers(*a, *b);
            let (holds, fails, _) = codes::integer_relation(*relation);
            (holds, fails, label(then), label(otherwise))
        }
        End::If { condition, then, otherwise } => {
            let c = e.general(*condition, RAX);
            e.op2(Code::Test_rm32_r32, r32(c), r32(c));
            (Code::Jne_rel32_64, Code::Je_rel32_64, label(then), label(otherwise))
        }
        End::Count { counter, step, limit, then, otherwise } => {
            return count(e, *counter, [*step, *limit], label(then), label(otherwise), next);
        }
        End::Return(_) => unreachable!("the frame ends the function"),
    };
    if next == Some(then) {
        e.jump(fails, otherwise);
    } else {
        e.jump(holds, then);
        if next != Some(otherwise) {
            e.jump(Code::Jmp_rel32_64, otherwise);
        }
    }
}
