//! The tables of AVX-512 instructions on vectors, by operation and type.

use crate::ir::{BinaryOp, Relation, Scalar, Type, UnaryOp};
use iced_x86::Code;

/// The forms of an instruction: for elements of 4 bytes in 16, 32 and 64 bytes, and for elements of 8 bytes.
type Forms = [Code; 6];

macro_rules! forms {
    ($($code:ident)*) => { [$(Code::$code),*] };
}

const ADD: Forms = forms!(EVEX_Vaddps_xmm_k1z_xmm_xmmm128b32 EVEX_Vaddps_ymm_k1z_ymm_ymmm256b32
    EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vaddpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vaddpd_ymm_k1z_ymm_ymmm256b64
    EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er);
const SUBTRACT: Forms = forms!(EVEX_Vsubps_xmm_k1z_xmm_xmmm128b32 EVEX_Vsubps_ymm_k1z_ymm_ymmm256b32
    EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vsubpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vsubpd_ymm_k1z_ymm_ymmm256b64
    EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er);
const MULTIPLY: Forms = forms!(EVEX_Vmulps_xmm_k1z_xmm_xmmm128b32 EVEX_Vmulps_ymm_k1z_ymm_ymmm256b32
    EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vmulpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vmulpd_ymm_k1z_ymm_ymmm256b64
    EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er);
const DIVIDE: Forms = forms!(EVEX_Vdivps_xmm_k1z_xmm_xmmm128b32 EVEX_Vdivps_ymm_k1z_ymm_ymmm256b32
    EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vdivpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vdivpd_ymm_k1z_ymm_ymmm256b64
    EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er);
const MAXIMUM: Forms = forms!(EVEX_Vmaxps_xmm_k1z_xmm_xmmm128b32 EVEX_Vmaxps_ymm_k1z_ymm_ymmm256b32
    EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae EVEX_Vmaxpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vmaxpd_ymm_k1z_ymm_ymmm256b64
    EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae);
const MINIMUM: Forms = forms!(EVEX_Vminps_xmm_k1z_xmm_xmmm128b32 EVEX_Vminps_ymm_k1z_ymm_ymmm256b32
    EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae EVEX_Vminpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vminpd_ymm_k1z_ymm_ymmm256b64
    EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae);
const FMA: Forms = forms!(EVEX_Vfmadd231ps_xmm_k1z_xmm_xmmm128b32 EVEX_Vfmadd231ps_ymm_k1z_ymm_ymmm256b32
    EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vfmadd231pd_xmm_k1z_xmm_xmmm128b64 EVEX_Vfmadd231pd_ymm_k1z_ymm_ymmm256b64
    EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er);
const FMA_213: Forms = forms!(EVEX_Vfmadd213ps_xmm_k1z_xmm_xmmm128b32 EVEX_Vfmadd213ps_ymm_k1z_ymm_ymmm256b32
    EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vfmadd213pd_xmm_k1z_xmm_xmmm128b64 EVEX_Vfmadd213pd_ymm_k1z_ymm_ymmm256b64
    EVEX_Vfmadd213pd_zmm_k1z_zmm_zmmm512b64_er);
const BLEND: Forms = forms!(EVEX_Vblendmps_xmm_k1z_xmm_xmmm128b32 EVEX_Vblendmps_ymm_k1z_ymm_ymmm256b32
    EVEX_Vblendmps_zmm_k1z_zmm_zmmm512b32 EVEX_Vblendmpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vblendmpd_ymm_k1z_ymm_ymmm256b64
    EVEX_Vblendmpd_zmm_k1z_zmm_zmmm512b64);
const INTEGER_ADD: Forms = forms!(EVEX_Vpaddd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpaddd_ymm_k1z_ymm_ymmm256b32
    EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32 EVEX_Vpaddq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpaddq_ymm_k1z_ymm_ymmm256b64
    EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64);
const INTEGER_SUBTRACT: Forms = forms!(EVEX_Vpsubd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpsubd_ymm_k1z_ymm_ymmm256b32
    EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32 EVEX_Vpsubq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpsubq_ymm_k1z_ymm_ymmm256b64
    EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64);
const INTEGER_MULTIPLY: Forms = forms!(EVEX_Vpmulld_xmm_k1z_xmm_xmmm128b32 EVEX_Vpmulld_ymm_k1z_ymm_ymmm256b32
    EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32 EVEX_Vpmullq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpmullq_ymm_k1z_ymm_ymmm256b64
    EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64);
const INTEGER_MAXIMUM: Forms = forms!(EVEX_Vpmaxsd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpmaxsd_ymm_k1z_ymm_ymmm256b32
    EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32 EVEX_Vpmaxsq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpmaxsq_ymm_k1z_ymm_ymmm256b64
    EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64);
const INTEGER_MINIMUM: Forms = forms!(EVEX_Vpminsd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpminsd_ymm_k1z_ymm_ymmm256b32
    EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32 EVEX_Vpminsq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpminsq_ymm_k1z_ymm_ymmm256b64
    EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64);
const AND: Forms = forms!(EVEX_Vpandd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpandd_ymm_k1z_ymm_ymmm256b32
    EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32 EVEX_Vpandq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpandq_ymm_k1z_ymm_ymmm256b64
    EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64);
const OR: Forms = forms!(EVEX_Vpord_xmm_k1z_xmm_xmmm128b32 EVEX_Vpord_ymm_k1z_ymm_ymmm256b32 EVEX_Vpord_zmm_k1z_zmm_zmmm512b32
    EVEX_Vporq_xmm_k1z_xmm_xmmm128b64 EVEX_Vporq_ymm_k1z_ymm_ymmm256b64 EVEX_Vporq_zmm_k1z_zmm_zmmm512b64);
const XOR: Forms = forms!(EVEX_Vpxord_xmm_k1z_xmm_xmmm128b32 EVEX_Vpxord_ymm_k1z_ymm_ymmm256b32
    EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32 EVEX_Vpxorq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpxorq_ymm_k1z_ymm_ymmm256b64
    EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64);
const SHIFT_LEFT: Forms = forms!(EVEX_Vpsllvd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpsllvd_ymm_k1z_ymm_ymmm256b32
    EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32 EVEX_Vpsllvq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpsllvq_ymm_k1z_ymm_ymmm256b64
    EVEX_Vpsllvq_zmm_k1z_zmm_zmmm512b64);
const SHIFT_RIGHT: Forms = forms!(EVEX_Vpsrlvd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpsrlvd_ymm_k1z_ymm_ymmm256b32
    EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32 EVEX_Vpsrlvq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpsrlvq_ymm_k1z_ymm_ymmm256b64
    EVEX_Vpsrlvq_zmm_k1z_zmm_zmmm512b64);
const SHIFT_RIGHT_SIGNED: Forms = forms!(EVEX_Vpsravd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpsravd_ymm_k1z_ymm_ymmm256b32
    EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32 EVEX_Vpsravq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpsravq_ymm_k1z_ymm_ymmm256b64
    EVEX_Vpsravq_zmm_k1z_zmm_zmmm512b64);
const SQRT: Forms = forms!(EVEX_Vsqrtps_xmm_k1z_xmmm128b32 EVEX_Vsqrtps_ymm_k1z_ymmm256b32 EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er
    EVEX_Vsqrtpd_xmm_k1z_xmmm128b64 EVEX_Vsqrtpd_ymm_k1z_ymmm256b64 EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er);
const ROUND: Forms = forms!(EVEX_Vrndscaleps_xmm_k1z_xmmm128b32_imm8 EVEX_Vrndscaleps_ymm_k1z_ymmm256b32_imm8
    EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae EVEX_Vrndscalepd_xmm_k1z_xmmm128b64_imm8
    EVEX_Vrndscalepd_ymm_k1z_ymmm256b64_imm8 EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae);
const COMPARE: Forms = forms!(EVEX_Vcmpps_kr_k1_xmm_xmmm128b32_imm8 EVEX_Vcmpps_kr_k1_ymm_ymmm256b32_imm8
    EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae EVEX_Vcmppd_kr_k1_xmm_xmmm128b64_imm8 EVEX_Vcmppd_kr_k1_ymm_ymmm256b64_imm8
    EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae);
const COMPARE_SIGNED: Forms = forms!(EVEX_Vpcmpd_kr_k1_xmm_xmmm128b32_imm8 EVEX_Vpcmpd_kr_k1_ymm_ymmm256b32_imm8
    EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8 EVEX_Vpcmpq_kr_k1_xmm_xmmm128b64_imm8 EVEX_Vpcmpq_kr_k1_ymm_ymmm256b64_imm8
    EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8);
const COMPARE_UNSIGNED: Forms = forms!(EVEX_Vpcmpud_kr_k1_xmm_xmmm128b32_imm8 EVEX_Vpcmpud_kr_k1_ymm_ymmm256b32_imm8
    EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8 EVEX_Vpcmpuq_kr_k1_xmm_xmmm128b64_imm8 EVEX_Vpcmpuq_kr_k1_ymm_ymmm256b64_imm8
    EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8);
const BROADCAST: Forms = forms!(EVEX_Vpbroadcastd_xmm_k1z_xmmm32 EVEX_Vpbroadcastd_ymm_k1z_xmmm32
    EVEX_Vpbroadcastd_zmm_k1z_xmmm32 EVEX_Vpbroadcastq_xmm_k1z_xmmm64 EVEX_Vpbroadcastq_ymm_k1z_xmmm64
    EVEX_Vpbroadcastq_zmm_k1z_xmmm64);
const BROADCAST_GENERAL: Forms = forms!(EVEX_Vpbroadcastd_xmm_k1z_r32 EVEX_Vpbroadcastd_ymm_k1z_r32
    EVEX_Vpbroadcastd_zmm_k1z_r32 EVEX_Vpbroadcastq_xmm_k1z_r64 EVEX_Vpbroadcastq_ymm_k1z_r64 EVEX_Vpbroadcastq_zmm_k1z_r64);
const RANGE: Forms = forms!(EVEX_Vrangeps_xmm_k1z_xmm_xmmm128b32_imm8 EVEX_Vrangeps_ymm_k1z_ymm_ymmm256b32_imm8
    EVEX_Vrangeps_zmm_k1z_zmm_zmmm512b32_imm8_sae EVEX_Vrangepd_xmm_k1z_xmm_xmmm128b64_imm8
    EVEX_Vrangepd_ymm_k1z_ymm_ymmm256b64_imm8 EVEX_Vrangepd_zmm_k1z_zmm_zmmm512b64_imm8_sae);

/// Returns the number of the width of a vector: 16, 32 or 64 bytes. Shorter vectors use the first part of 16 bytes.
fn width(ty: Type) -> usize {
    match ty.size() {
        64 => 2,
        32 => 1,
        _ => 0,
    }
}

fn form(forms: &Forms, ty: Type) -> Code {
    debug_assert!(!ty.scalar.is_narrow(), "narrow integers have only moves and conversions");
    forms[width(ty) + if ty.scalar.size() == 8 { 3 } else { 0 }]
}

/// Returns the instruction for an operation on two vectors.
pub(super) fn binary(op: BinaryOp, ty: Type) -> Code {
    let float = ty.scalar.is_float();
    let forms = match op {
        BinaryOp::Add if float => &ADD,
        BinaryOp::Add => &INTEGER_ADD,
        BinaryOp::Subtract if float => &SUBTRACT,
        BinaryOp::Subtract => &INTEGER_SUBTRACT,
        BinaryOp::Multiply if float => &MULTIPLY,
        BinaryOp::Multiply => &INTEGER_MULTIPLY,
        BinaryOp::Divide => &DIVIDE,
        BinaryOp::Maximum if !float => &INTEGER_MAXIMUM,
        BinaryOp::Maximum | BinaryOp::Greatest => &MAXIMUM,
        BinaryOp::Minimum if !float => &INTEGER_MINIMUM,
        BinaryOp::Minimum | BinaryOp::Least => &MINIMUM,
        BinaryOp::And => &AND,
        BinaryOp::Or => &OR,
        BinaryOp::Xor => &XOR,
        BinaryOp::ShiftLeft => &SHIFT_LEFT,
        BinaryOp::ShiftRight => &SHIFT_RIGHT,
        BinaryOp::ShiftRightSigned => &SHIFT_RIGHT_SIGNED,
        BinaryOp::DivideUnsigned | BinaryOp::Remainder | BinaryOp::RemainderUnsigned => return Code::INVALID,
    };
    form(forms, ty)
}

/// Returns the instruction that combines two masks.
pub(super) fn mask_binary(op: BinaryOp) -> Code {
    match op {
        BinaryOp::And => Code::VEX_Kandw_kr_kr_kr,
        BinaryOp::Or => Code::VEX_Korw_kr_kr_kr,
        BinaryOp::Xor => Code::VEX_Kxorw_kr_kr_kr,
        _ => Code::INVALID,
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

/// Returns the instruction that selects elements by a mask.
pub(super) fn blend(ty: Type) -> Code {
    form(&BLEND, ty)
}

/// Returns the instruction that repeats the first element of a register.
pub(super) fn broadcast(ty: Type) -> Code {
    form(&BROADCAST, ty)
}

/// Returns the instruction that repeats a general-purpose register.
pub(super) fn broadcast_general(ty: Type) -> Code {
    let wide = width(ty) == 1;
    match ty.scalar {
        Scalar::I8 if wide => Code::EVEX_Vpbroadcastb_ymm_k1z_r32,
        Scalar::I8 => Code::EVEX_Vpbroadcastb_xmm_k1z_r32,
        Scalar::I16 if wide => Code::EVEX_Vpbroadcastw_ymm_k1z_r32,
        Scalar::I16 => Code::EVEX_Vpbroadcastw_xmm_k1z_r32,
        _ => form(&BROADCAST_GENERAL, ty),
    }
}

/// Returns the instruction for the larger or smaller one of two floats, by an immediate.
pub(super) fn range(ty: Type) -> Code {
    form(&RANGE, ty)
}

/// Returns the instruction that compares two vectors, and the predicate of a relation.
pub(super) fn compare(relation: Relation, ty: Type) -> (Code, u32) {
    let unsigned = matches!(relation, Relation::LtUnsigned | Relation::LeUnsigned);
    let forms = match ty.scalar.is_float() {
        true => &COMPARE,
        false if unsigned => &COMPARE_UNSIGNED,
        false => &COMPARE_SIGNED,
    };
    let predicate = match relation {
        Relation::Eq => 0,
        Relation::Lt | Relation::LtUnsigned => 1,
        Relation::Le | Relation::LeUnsigned => 2,
        Relation::Ne => 4,
    };
    (form(forms, ty), predicate)
}

/// Returns the instruction of a unary operation on floats, and its immediate.
pub(super) fn float_unary(op: UnaryOp, ty: Type) -> (Code, Option<u32>) {
    match op {
        UnaryOp::Sqrt => (form(&SQRT, ty), None),
        UnaryOp::Floor => (form(&ROUND, ty), Some(9)),
        UnaryOp::Ceil => (form(&ROUND, ty), Some(10)),
        UnaryOp::RoundEven => (form(&ROUND, ty), Some(8)),
        _ => (Code::INVALID, None),
    }
}

/// Returns the instruction that converts vectors of one element type to those of another, which has the type `to`.
pub(super) fn convert(from: Scalar, to: Type, unsigned: bool) -> Code {
    use Scalar::{F32, F64, I8, I16, I32, I64};
    // The width of a conversion is that of its longer side.
    let longer = if from.size() > to.scalar.size() { Type { scalar: from, ..to } } else { to };
    let forms = match (from, to.scalar) {
        (I8, I32) if unsigned => forms!(EVEX_Vpmovzxbd_xmm_k1z_xmmm32 EVEX_Vpmovzxbd_ymm_k1z_xmmm64
            EVEX_Vpmovzxbd_zmm_k1z_xmmm128),
        (I8, I32) => forms!(EVEX_Vpmovsxbd_xmm_k1z_xmmm32 EVEX_Vpmovsxbd_ymm_k1z_xmmm64
            EVEX_Vpmovsxbd_zmm_k1z_xmmm128),
        (I16, I32) if unsigned => forms!(EVEX_Vpmovzxwd_xmm_k1z_xmmm64 EVEX_Vpmovzxwd_ymm_k1z_xmmm128
            EVEX_Vpmovzxwd_zmm_k1z_ymmm256),
        (I16, I32) => forms!(EVEX_Vpmovsxwd_xmm_k1z_xmmm64 EVEX_Vpmovsxwd_ymm_k1z_xmmm128
            EVEX_Vpmovsxwd_zmm_k1z_ymmm256),
        (I32, I8) => {
            forms!(EVEX_Vpmovdb_xmmm32_k1z_xmm EVEX_Vpmovdb_xmmm64_k1z_ymm EVEX_Vpmovdb_xmmm128_k1z_zmm)
        }
        (I32, I16) => {
            forms!(EVEX_Vpmovdw_xmmm64_k1z_xmm EVEX_Vpmovdw_xmmm128_k1z_ymm EVEX_Vpmovdw_ymmm256_k1z_zmm)
        }
        (I32, F32) => forms!(EVEX_Vcvtdq2ps_xmm_k1z_xmmm128b32 EVEX_Vcvtdq2ps_ymm_k1z_ymmm256b32
            EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er),
        (I32, F64) => forms!(EVEX_Vcvtdq2pd_xmm_k1z_xmmm64b32 EVEX_Vcvtdq2pd_ymm_k1z_xmmm128b32
            EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er),
        (I64, F64) => forms!(EVEX_Vcvtqq2pd_xmm_k1z_xmmm128b64 EVEX_Vcvtqq2pd_ymm_k1z_ymmm256b64
            EVEX_Vcvtqq2pd_zmm_k1z_zmmm512b64_er),
        (I32, I64) if unsigned => forms!(EVEX_Vpmovzxdq_xmm_k1z_xmmm64 EVEX_Vpmovzxdq_ymm_k1z_xmmm128
            EVEX_Vpmovzxdq_zmm_k1z_ymmm256),
        (I32, I64) => forms!(EVEX_Vpmovsxdq_xmm_k1z_xmmm64 EVEX_Vpmovsxdq_ymm_k1z_xmmm128
            EVEX_Vpmovsxdq_zmm_k1z_ymmm256),
        (I64, I32) => {
            forms!(EVEX_Vpmovqd_xmmm64_k1z_xmm EVEX_Vpmovqd_xmmm128_k1z_ymm EVEX_Vpmovqd_ymmm256_k1z_zmm)
        }
        (F32, F64) => forms!(EVEX_Vcvtps2pd_xmm_k1z_xmmm64b32 EVEX_Vcvtps2pd_ymm_k1z_xmmm128b32
            EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae),
        (F64, F32) => forms!(EVEX_Vcvtpd2ps_xmm_k1z_xmmm128b64 EVEX_Vcvtpd2ps_xmm_k1z_ymmm256b64
            EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er),
        (F32, I32) => forms!(EVEX_Vcvttps2dq_xmm_k1z_xmmm128b32 EVEX_Vcvttps2dq_ymm_k1z_ymmm256b32
            EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae),
        (F64, I64) => forms!(EVEX_Vcvttpd2qq_xmm_k1z_xmmm128b64 EVEX_Vcvttpd2qq_ymm_k1z_ymmm256b64
            EVEX_Vcvttpd2qq_zmm_k1z_zmmm512b64_sae),
        _ => return Code::INVALID,
    };
    forms[width(longer)]
}

/// Returns the load, the store and the move between registers for vectors and floats of this type.
pub(super) fn moves(ty: Type) -> (Code, Code, Code) {
    match ty.size() {
        0..=4 => {
            (Code::EVEX_Vmovss_xmm_k1z_m32, Code::EVEX_Vmovss_m32_k1_xmm, Code::EVEX_Vmovups_xmm_k1z_xmmm128)
        }
        8 => {
            (Code::EVEX_Vmovsd_xmm_k1z_m64, Code::EVEX_Vmovsd_m64_k1_xmm, Code::EVEX_Vmovups_xmm_k1z_xmmm128)
        }
        16 => (
            Code::EVEX_Vmovups_xmm_k1z_xmmm128,
            Code::EVEX_Vmovups_xmmm128_k1z_xmm,
            Code::EVEX_Vmovups_xmm_k1z_xmmm128,
        ),
        32 => (
            Code::EVEX_Vmovups_ymm_k1z_ymmm256,
            Code::EVEX_Vmovups_ymmm256_k1z_ymm,
            Code::EVEX_Vmovups_ymm_k1z_ymmm256,
        ),
        _ => (
            Code::EVEX_Vmovups_zmm_k1z_zmmm512,
            Code::EVEX_Vmovups_zmmm512_k1z_zmm,
            Code::EVEX_Vmovups_zmm_k1z_zmmm512,
        ),
    }
}
