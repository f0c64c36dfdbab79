//! Functions of f32 as machine code, from the same source as their loops.

use crate::math::single::{self, Bits, Single};
use crate::tile::TileOp;
use refcpu_codegen::{BinaryOp, Function, Inst, Reg, Relation, Scalar, Type, UnaryOp};
use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Returns whether a function of f32 has machine code.
pub(super) fn is_function(op: TileOp) -> bool {
    use TileOp::*;
    matches!(
        op,
        Exponential | ExponentialMinusOne | Log | LogPlusOne | Logistic | Tanh | Rsqrt | Erf | ErfInv
    )
}

/// Adds the instructions of a function. `constant` returns a register with the bits in each element.
///
/// # Panics
/// Panics if [`is_function`] is false.
pub(super) fn emit(
    op: TileOp,
    f: &mut Function,
    dst: Reg,
    a: Reg,
    constant: &mut dyn FnMut(&mut Function, Type, u64) -> Reg,
) {
    let emitter = RefCell::new(Emitter { f, constant });
    let x = Number { emitter: &emitter, reg: a };
    let value = match op {
        TileOp::Exponential => single::exp(x),
        TileOp::ExponentialMinusOne => single::exp_m1(x),
        TileOp::Log => single::log(x),
        TileOp::LogPlusOne => single::log_1p(x),
        TileOp::Logistic => single::logistic(x),
        TileOp::Tanh => single::tanh(x),
        TileOp::Rsqrt => single::rsqrt(x),
        TileOp::Erf => single::erf(x),
        TileOp::ErfInv => single::erf_inv(x),
        other => unreachable!("{other:?} has no machine code"),
    };
    let a = value.reg;
    emitter.borrow_mut().f.push(Inst::Unary { op: UnaryOp::Copy, dst, a });
}

/// The function under construction.
struct Emitter<'f> {
    f: &'f mut Function,
    constant: &'f mut dyn FnMut(&mut Function, Type, u64) -> Reg,
}

/// A register that holds floats.
#[derive(Clone, Copy)]
struct Number<'e, 'f> {
    emitter: &'e RefCell<Emitter<'f>>,
    reg: Reg,
}

/// A register that holds integers.
#[derive(Clone, Copy)]
struct Word<'e, 'f>(Number<'e, 'f>);

impl Number<'_, '_> {
    /// Adds an instruction that assigns a new register of a type, which has as many elements as this one.
    fn push(self, scalar: Scalar, inst: impl FnOnce(Reg) -> Inst) -> Self {
        let f = &mut *self.emitter.borrow_mut().f;
        let ty = Type { scalar, ..f.type_of(self.reg) };
        let reg = f.reg(ty);
        f.push(inst(reg));
        Self { reg, ..self }
    }

    fn unary(self, scalar: Scalar, op: UnaryOp) -> Self {
        let a = self.reg;
        self.push(scalar, |dst| Inst::Unary { op, dst, a })
    }

    fn binary(self, scalar: Scalar, op: BinaryOp, b: Self) -> Self {
        let (a, b) = (self.reg, b.reg);
        self.push(scalar, |dst| Inst::Binary { op, dst, a, b })
    }

    fn compare(self, relation: Relation, b: Self) -> Reg {
        let (a, b) = (self.reg, b.reg);
        self.push(Scalar::Bool, |dst| Inst::Compare { relation, dst, a, b }).reg
    }

    fn constant(self, scalar: Scalar, bits: u32) -> Self {
        let emitter = &mut *self.emitter.borrow_mut();
        let ty = Type { scalar, ..emitter.f.type_of(self.reg) };
        let reg = (emitter.constant)(emitter.f, ty, u64::from(bits));
        Self { reg, ..self }
    }

    /// Returns the bits that a constant has too.
    fn masked(self, bits: u32) -> Self {
        self.binary(Scalar::F32, BinaryOp::And, self.constant(Scalar::F32, bits))
    }
}

macro_rules! operator {
    ($trait:ident $f:ident $op:ident) => {
        impl $trait for Number<'_, '_> {
            type Output = Self;
            fn $f(self, b: Self) -> Self {
                self.binary(Scalar::F32, BinaryOp::$op, b)
            }
        }
    };
}
operator!(Add add Add);
operator!(Sub sub Subtract);
operator!(Mul mul Multiply);
operator!(Div div Divide);

impl Neg for Number<'_, '_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.binary(Scalar::F32, BinaryOp::Xor, self.constant(Scalar::F32, SIGN))
    }
}

const SIGN: u32 = 1 << 31;

impl<'e, 'f> Single for Number<'e, 'f> {
    type Bits = Word<'e, 'f>;
    type Truth = Reg;
    const FMA: bool = true;

    fn of(self, value: f32) -> Self {
        self.constant(Scalar::F32, value.to_bits())
    }
    fn fma(self, b: Self, c: Self) -> Self {
        let (a, b, c) = (self.reg, b.reg, c.reg);
        self.push(Scalar::F32, |dst| Inst::Fma { dst, a, b, c })
    }
    fn abs(self) -> Self {
        self.masked(!SIGN)
    }
    fn sqrt(self) -> Self {
        self.unary(Scalar::F32, UnaryOp::Sqrt)
    }
    fn copysign(self, sign: Self) -> Self {
        self.abs().binary(Scalar::F32, BinaryOp::Or, sign.masked(SIGN))
    }
    fn lt(self, b: Self) -> Reg {
        self.compare(Relation::Lt, b)
    }
    fn le(self, b: Self) -> Reg {
        self.compare(Relation::Le, b)
    }
    fn eq(self, b: Self) -> Reg {
        self.compare(Relation::Eq, b)
    }
    fn when(self, condition: Reg, b: Self) -> Self {
        let (a, b) = (self.reg, b.reg);
        self.push(Scalar::F32, |dst| Inst::Select { dst, condition, a, b })
    }
    fn bits(self) -> Self::Bits {
        Word(self.unary(Scalar::I32, UnaryOp::Reinterpret))
    }
    fn from_bits(bits: Self::Bits) -> Self {
        bits.0.unary(Scalar::F32, UnaryOp::Reinterpret)
    }
    fn from_integer(bits: Self::Bits) -> Self {
        bits.0.unary(Scalar::F32, UnaryOp::Convert)
    }
}

impl Word<'_, '_> {
    fn with(self, op: BinaryOp, bits: u32) -> Self {
        Self(self.0.binary(Scalar::I32, op, self.0.constant(Scalar::I32, bits)))
    }
}

impl Bits for Word<'_, '_> {
    fn plus(self, b: u32) -> Self {
        self.with(BinaryOp::Add, b)
    }
    fn minus(self, b: Self) -> Self {
        Self(self.0.binary(Scalar::I32, BinaryOp::Subtract, b.0))
    }
    fn and(self, b: u32) -> Self {
        self.with(BinaryOp::And, b)
    }
    fn left(self, distance: u32) -> Self {
        self.with(BinaryOp::ShiftLeft, distance)
    }
    fn right(self, distance: u32) -> Self {
        self.with(BinaryOp::ShiftRight, distance)
    }
    fn right_signed(self, distance: u32) -> Self {
        self.with(BinaryOp::ShiftRightSigned, distance)
    }
}
