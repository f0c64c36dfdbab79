//! The tables of instructions by operation and type.

use crate::ir::{BinaryOp, Relation, Scalar, Type, UnaryOp};
use iced_x86::Code;

/// The forms of an instruction on floats: single F32, single F64, F32 and F64 in 16 bytes, F32 and F64 in 32 bytes.
type Forms = [Code; 6];

fn form(forms: &Forms, ty: Type) -> Code {
    let width = match (ty.lanes, ty.size()) {
        (1, _) => 0,
        (_, 32) => 4,
        _ => 2,
    };
    forms[width + usize::from(matches!(ty.scalar, Scalar::F64 | Scalar::I64))]
}

/// The six forms of a VEX instruction by the middle of its name.
macro_rules! forms {
    ($ss:ident $sd:ident $ps:ident $pd:ident $ps_ymm:ident $pd_ymm:ident) => {
        [Code::$ss, Code::$sd, Code::$ps, Code::$pd, Code::$ps_ymm, Code::$pd_ymm]
    };
}

const ADD: Forms = forms!(VEX_Vaddss_xmm_xmm_xmmm32 VEX_Vaddsd_xmm_xmm_xmmm64
    VEX_Vaddps_xmm_xmm_xmmm128 VEX_Vaddpd_xmm_xmm_xmmm128 VEX_Vaddps_ymm_ymm_ymmm256 VEX_Vaddpd_ymm_ymm_ymmm256);
const SUBTRACT: Forms = forms!(VEX_Vsubss_xmm_xmm_xmmm32 VEX_Vsubsd_xmm_xmm_xmmm64
    VEX_Vsubps_xmm_xmm_xmmm128 VEX_Vsubpd_xmm_xmm_xmmm128 VEX_Vsubps_ymm_ymm_ymmm256 VEX_Vsubpd_ymm_ymm_ymmm256);
const MULTIPLY: Forms = forms!(VEX_Vmulss_xmm_xmm_xmmm32 VEX_Vmulsd_xmm_xmm_xmmm64
    VEX_Vmulps_xmm_xmm_xmmm128 VEX_Vmulpd_xmm_xmm_xmmm128 VEX_Vmulps_ymm_ymm_ymmm256 VEX_Vmulpd_ymm_ymm_ymmm256);
const DIVIDE: Forms = forms!(VEX_Vdivss_xmm_xmm_xmmm32 VEX_Vdivsd_xmm_xmm_xmmm64
    VEX_Vdivps_xmm_xmm_xmmm128 VEX_Vdivpd_xmm_xmm_xmmm128 VEX_Vdivps_ymm_ymm_ymmm256 VEX_Vdivpd_ymm_ymm_ymmm256);
const MAXIMUM: Forms = forms!(VEX_Vmaxss_xmm_xmm_xmmm32 VEX_Vmaxsd_xmm_xmm_xmmm64
    VEX_Vmaxps_xmm_xmm_xmmm128 VEX_Vmaxpd_xmm_xmm_xmmm128 VEX_Vmaxps_ymm_ymm_ymmm256 VEX_Vmaxpd_ymm_ymm_ymmm256);
const MINIMUM: Forms = forms!(VEX_Vminss_xmm_xmm_xmmm32 VEX_Vminsd_xmm_xmm_xmmm64
    VEX_Vminps_xmm_xmm_xmmm128 VEX_Vminpd_xmm_xmm_xmmm128 VEX_Vminps_ymm_ymm_ymmm256 VEX_Vminpd_ymm_ymm_ymmm256);
const FMA: Forms = forms!(VEX_Vfmadd231ss_xmm_xmm_xmmm32 VEX_Vfmadd231sd_xmm_xmm_xmmm64
    VEX_Vfmadd231ps_xmm_xmm_xmmm128 VEX_Vfmadd231pd_xmm_xmm_xmmm128
    VEX_Vfmadd231ps_ymm_ymm_ymmm256 VEX_Vfmadd231pd_ymm_ymm_ymmm256);
const FMA_213: Forms = forms!(VEX_Vfmadd213ss_xmm_xmm_xmmm32 VEX_Vfmadd213sd_xmm_xmm_xmmm64
    VEX_Vfmadd213ps_xmm_xmm_xmmm128 VEX_Vfmadd213pd_xmm_xmm_xmmm128
    VEX_Vfmadd213ps_ymm_ymm_ymmm256 VEX_Vfmadd213pd_ymm_ymm_ymmm256);
/// On the low elements of registers, these instructions give the same results as on single elements.
const COMPARE: Forms = forms!(VEX_Vcmpps_xmm_xmm_xmmm128_imm8 VEX_Vcmppd_xmm_xmm_xmmm128_imm8
    VEX_Vcmpps_xmm_xmm_xmmm128_imm8 VEX_Vcmppd_xmm_xmm_xmmm128_imm8
    VEX_Vcmpps_ymm_ymm_ymmm256_imm8 VEX_Vcmppd_ymm_ymm_ymmm256_imm8);
const BLEND: Forms = forms!(VEX_Vblendvps_xmm_xmm_xmmm128_xmm VEX_Vblendvpd_xmm_xmm_xmmm128_xmm
    VEX_Vblendvps_xmm_xmm_xmmm128_xmm VEX_Vblendvpd_xmm_xmm_xmmm128_xmm
    VEX_Vblendvps_ymm_ymm_ymmm256_ymm VEX_Vblendvpd_ymm_ymm_ymmm256_ymm);
const AND: Forms = forms!(VEX_Vpand_xmm_xmm_xmmm128 VEX_Vpand_xmm_xmm_xmmm128
    VEX_Vpand_xmm_xmm_xmmm128 VEX_Vpand_xmm_xmm_xmmm128 VEX_Vpand_ymm_ymm_ymmm256 VEX_Vpand_ymm_ymm_ymmm256);
const OR: Forms = forms!(VEX_Vpor_xmm_xmm_xmmm128 VEX_Vpor_xmm_xmm_xmmm128
    VEX_Vpor_xmm_xmm_xmmm128 VEX_Vpor_xmm_xmm_xmmm128 VEX_Vpor_ymm_ymm_ymmm256 VEX_Vpor_ymm_ymm_ymmm256);
const XOR: Forms = forms!(VEX_Vpxor_xmm_xmm_xmmm128 VEX_Vpxor_xmm_xmm_xmmm128
    VEX_Vpxor_xmm_xmm_xmmm128 VEX_Vpxor_xmm_xmm_xmmm128 VEX_Vpxor_ymm_ymm_ymmm256 VEX_Vpxor_ymm_ymm_ymmm256);
const SQRT: Forms = forms!(VEX_Vsqrtps_xmm_xmmm128 VEX_Vsqrtpd_xmm_xmmm128
    VEX_Vsqrtps_xmm_xmmm128 VEX_Vsqrtpd_xmm_xmmm128 VEX_Vsqrtps_ymm_ymmm256 VEX_Vsqrtpd_ymm_ymmm256);
const ROUND: Forms = forms!(VEX_Vroundps_xmm_xmmm128_imm8 VEX_Vroundpd_xmm_xmmm128_imm8
    VEX_Vroundps_xmm_xmmm128_imm8 VEX_Vroundpd_xmm_xmmm128_imm8
    VEX_Vroundps_ymm_ymmm256_imm8 VEX_Vroundpd_ymm_ymmm256_imm8);
const BROADCAST: Forms = forms!(VEX_Vpbroadcastd_xmm_xmmm32 VEX_Vpbroadcastq_xmm_xmmm64
    VEX_Vpbroadcastd_xmm_xmmm32 VEX_Vpbroadcastq_xmm_xmmm64
    VEX_Vpbroadcastd_ymm_xmmm32 VEX_Vpbroadcastq_ymm_xmmm64);

/// The forms of an instruction on vectors of integers: I32 and I64 in 16 bytes, I32 and I64 in 32 bytes. `INVALID` if there is none.
type IntegerForms = [Code; 4];

const INTEGERS: &[(BinaryOp, IntegerForms)] = &[
    (
        BinaryOp::Add,
        [
            Code::VEX_Vpaddd_xmm_xmm_xmmm128,
            Code::VEX_Vpaddq_xmm_xmm_xmmm128,
            Code::VEX_Vpaddd_ymm_ymm_ymmm256,
            Code::VEX_Vpaddq_ymm_ymm_ymmm256,
        ],
    ),
    (
        BinaryOp::Subtract,
        [
            Code::VEX_Vpsubd_xmm_xmm_xmmm128,
            Code::VEX_Vpsubq_xmm_xmm_xmmm128,
            Code::VEX_Vpsubd_ymm_ymm_ymmm256,
            Code::VEX_Vpsubq_ymm_ymm_ymmm256,
        ],
    ),
    (
        BinaryOp::Multiply,
        [Code::VEX_Vpmulld_xmm_xmm_xmmm128, Code::INVALID, Code::VEX_Vpmulld_ymm_ymm_ymmm256, Code::INVALID],
    ),
    (
        BinaryOp::Maximum,
        [Code::VEX_Vpmaxsd_xmm_xmm_xmmm128, Code::INVALID, Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, Code::INVALID],
    ),
    (
        BinaryOp::Minimum,
        [Code::VEX_Vpminsd_xmm_xmm_xmmm128, Code::INVALID, Code::VEX_Vpminsd_ymm_ymm_ymmm256, Code::INVALID],
    ),
    (
        BinaryOp::ShiftLeft,
        [
            Code::VEX_Vpsllvd_xmm_xmm_xmmm128,
            Code::VEX_Vpsllvq_xmm_xmm_xmmm128,
            Code::VEX_Vpsllvd_ymm_ymm_ymmm256,
            Code::VEX_Vpsllvq_ymm_ymm_ymmm256,
        ],
    ),
    (
        BinaryOp::ShiftRight,
        [
            Code::VEX_Vpsrlvd_xmm_xmm_xmmm128,
            Code::VEX_Vpsrlvq_xmm_xmm_xmmm128,
            Code::VEX_Vpsrlvd_ymm_ymm_ymmm256,
            Code::VEX_Vpsrlvq_ymm_ymm_ymmm256,
        ],
    ),
    (
        BinaryOp::ShiftRightSigned,
        [Code::VEX_Vpsravd_xmm_xmm_xmmm128, Code::INVALID, Code::VEX_Vpsravd_ymm_ymm_ymmm256, Code::INVALID],
    ),
];

/// Returns the instruction for an operation on values in vector registers.
pub(super) fn vector_binary(op: BinaryOp, ty: Type) -> Code {
    match op {
        BinaryOp::And => form(&AND, ty),
        BinaryOp::Or => form(&OR, ty),
        BinaryOp::Xor => form(&XOR, ty),
        BinaryOp::Add if ty.scalar.is_float() => form(&ADD, ty),
        BinaryOp::Subtract if ty.scalar.is_float() => form(&SUBTRACT, ty),
        BinaryOp::Multiply if ty.scalar.is_float() => form(&MULTIPLY, ty),
        BinaryOp::Divide => form(&DIVIDE, ty),
        BinaryOp::Maximum | BinaryOp::Greatest if ty.scalar.is_float() => form(&MAXIMUM, ty),
        BinaryOp::Minimum | BinaryOp::Least if ty.scalar.is_float() => form(&MINIMUM, ty),
        _ => {
            let width = if ty.size() == 32 { 2 } else { 0 };
            let forms = INTEGERS.iter().find(|(o, _)| *o == op);
            forms.map_or(Code::INVALID, |(_, f)| f[width + usize::from(ty.scalar == Scalar::I64)])
        }
    }
}

/// Returns the instruction for `dst = dst + a * b`.
pub(super) fn fma(ty: Type) -> Code {
    form(&FMA, ty)
}

/// Returns the instruction for `dst = dst * a + b`.
pub(super) fn fma_213(ty: Type) -> Code {
    form(&FMA_213, ty)
}

/// Returns the instruction that compares elements of floats, with a predicate as immediate.
pub(super) fn float_compare(ty: Type) -> Code {
    form(&COMPARE, ty)
}

/// Returns the instruction that selects elements by the signs of a mask.
pub(super) fn blend(ty: Type) -> Code {
    form(&BLEND, ty)
}

/// Returns the instruction that combines bits.
pub(super) fn bitwise(op: BinaryOp, ty: Type) -> Code {
    vector_binary(op, ty)
}

/// Returns the instruction that repeats the first element of a register.
pub(super) fn broadcast(ty: Type) -> Code {
    if ty.scalar == Scalar::Bool { Code::VEX_Vpbroadcastb_xmm_xmmm8 } else { form(&BROADCAST, ty) }
}

/// Returns the instructions that compare vectors of integers: equal, and greater.
pub(super) fn integer_compares(ty: Type) -> (Code, Code) {
    match (ty.scalar, ty.size()) {
        (Scalar::I64, 32) => (Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256, Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256),
        (Scalar::I64, _) => (Code::VEX_Vpcmpeqq_xmm_xmm_xmmm128, Code::VEX_Vpcmpgtq_xmm_xmm_xmmm128),
        (_, 32) => (Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256),
        _ => (Code::VEX_Vpcmpeqd_xmm_xmm_xmmm128, Code::VEX_Vpcmpgtd_xmm_xmm_xmmm128),
    }
}

/// Returns the instruction that shifts the lowest bit of each element to its sign, and the distance.
pub(super) fn shift_to_sign(ty: Type) -> (Code, u32) {
    match (ty.scalar.size(), ty.size()) {
        (8, 32) => (Code::VEX_Vpsllq_ymm_ymm_imm8, 63),
        (8, _) => (Code::VEX_Vpsllq_xmm_xmm_imm8, 63),
        (_, 32) => (Code::VEX_Vpslld_ymm_ymm_imm8, 31),
        _ => (Code::VEX_Vpslld_xmm_xmm_imm8, 31),
    }
}

/// Returns the instruction of a unary operation on floats, and its immediate. The upper elements of a register with a single
/// element are computed too, and ignored.
pub(super) fn float_unary(op: UnaryOp, ty: Type) -> (Code, Option<u32>) {
    match op {
        UnaryOp::Sqrt => (form(&SQRT, ty), None),
        UnaryOp::Floor => (form(&ROUND, ty), Some(9)),
        UnaryOp::Ceil => (form(&ROUND, ty), Some(10)),
        UnaryOp::RoundEven => (form(&ROUND, ty), Some(8)),
        _ => (Code::INVALID, None),
    }
}

/// Returns the predicate of the comparison of floats.
pub(super) fn float_predicate(relation: Relation) -> u32 {
    match relation {
        Relation::Eq => 0,
        Relation::Lt | Relation::LtUnsigned => 1,
        Relation::Le | Relation::LeUnsigned => 2,
        Relation::Ne => 4,
    }
}

/// Returns the load, the store and the move between registers for vector registers of this type. Pairs of booleans have loads and
/// stores of their own.
pub(super) fn moves(ty: Type) -> (Code, Code, Code) {
    match ty.size() {
        0..=4 => (Code::VEX_Vmovss_xmm_m32, Code::VEX_Vmovss_m32_xmm, Code::VEX_Vmovaps_xmm_xmmm128),
        8 => (Code::VEX_Vmovsd_xmm_m64, Code::VEX_Vmovsd_m64_xmm, Code::VEX_Vmovaps_xmm_xmmm128),
        16 => (Code::VEX_Vmovups_xmm_xmmm128, Code::VEX_Vmovups_xmmm128_xmm, Code::VEX_Vmovaps_xmm_xmmm128),
        _ => (Code::VEX_Vmovups_ymm_ymmm256, Code::VEX_Vmovups_ymmm256_ymm, Code::VEX_Vmovaps_ymm_ymmm256),
    }
}

/// Returns the jump, the inverse jump and the instruction that sets a byte, for a relation of integers.
pub(super) fn integer_relation(relation: Relation) -> (Code, Code, Code) {
    match relation {
        Relation::Eq => (Code::Je_rel32_64, Code::Jne_rel32_64, Code::Sete_rm8),
        Relation::Ne => (Code::Jne_rel32_64, Code::Je_rel32_64, Code::Setne_rm8),
        Relation::Lt => (Code::Jl_rel32_64, Code::Jge_rel32_64, Code::Setl_rm8),
        Relation::Le => (Code::Jle_rel32_64, Code::Jg_rel32_64, Code::Setle_rm8),
        Relation::LtUnsigned => (Code::Jb_rel32_64, Code::Jae_rel32_64, Code::Setb_rm8),
        Relation::LeUnsigned => (Code::Jbe_rel32_64, Code::Ja_rel32_64, Code::Setbe_rm8),
    }
}
