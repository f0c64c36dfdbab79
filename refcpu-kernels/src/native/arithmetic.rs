//! The operations of tiles that have an equivalent in the code generator.

use super::functions;
use crate::tile::{Direction, Opcode, Order, TileOp};
use crate::{ComputeType, DType};
use refcpu_codegen::{BinaryOp, Function, Inst, InstructionSet, Reg, Relation, Scalar, Type, UnaryOp};

/// An operation on elements or vectors. Its operands have one type, except the condition of a selection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arithmetic {
    /// An operation on one value of the first type; the result has the second.
    Unary(UnaryOp, Scalar, Scalar),
    /// An operation on two values.
    Binary(BinaryOp, Scalar),
    /// The product of two values, and another operation on it and the third value. If `true`, the third value is its first
    /// operand.
    Fused(BinaryOp, bool, Scalar),
    /// The second value, limited to the range from the first to the third.
    Clamp(Scalar),
    /// A relation of two values.
    Compare(Relation, Scalar),
    /// The other value of a boolean, or all other bits of an integer.
    Not(Scalar),
    /// `true` for floats that are neither infinite nor NaN.
    IsFinite(Scalar),
    /// `true` for NaN.
    IsNan(Scalar),
    /// 1 with the sign of a float; zeros and NaN unchanged.
    Sign(Scalar),
    /// An F32 rounded to a value of BF16.
    RoundToBf16,
    /// A function of an F32.
    Function(TileOp),
    /// The bits of the BF16 to which an F32 is rounded, as an I16.
    EncodeBf16,
    /// The F32 of the bits of a BF16.
    DecodeBf16,
    /// An integer of the first type, signed if `true`, as an I32 or F32.
    Widen(Scalar, bool, Scalar),
    /// The low bits of an I32 as a narrower integer.
    Narrow(Scalar),
    /// The second value if the first one, a boolean, is true, otherwise the third.
    Select(Scalar),
}

impl Arithmetic {
    /// Returns the type of an operand.
    pub(crate) fn operand(self, number: usize) -> Scalar {
        match self {
            Self::Select(_) if number == 0 => Scalar::Bool,
            Self::Unary(_, s, _)
            | Self::Binary(_, s)
            | Self::Fused(_, _, s)
            | Self::Clamp(s)
            | Self::Compare(_, s)
            | Self::Not(s)
            | Self::IsFinite(s)
            | Self::IsNan(s)
            | Self::Sign(s)
            | Self::Select(s) => s,
            Self::RoundToBf16 | Self::EncodeBf16 | Self::Function(_) => Scalar::F32,
            Self::DecodeBf16 => Scalar::I16,
            Self::Widen(from, ..) => from,
            Self::Narrow(_) => Scalar::I32,
        }
    }

    /// Returns the type of the result.
    pub(crate) fn result(self) -> Scalar {
        match self {
            Self::Unary(_, _, s)
            | Self::Binary(_, s)
            | Self::Fused(_, _, s)
            | Self::Clamp(s)
            | Self::Not(s)
            | Self::Sign(s)
            | Self::Select(s) => s,
            Self::RoundToBf16 | Self::DecodeBf16 | Self::Function(_) => Scalar::F32,
            Self::EncodeBf16 => Scalar::I16,
            Self::Widen(.., to) | Self::Narrow(to) => to,
            Self::Compare(..) | Self::IsFinite(_) | Self::IsNan(_) => Scalar::Bool,
        }
    }

    /// Returns whether the operation is defined on vectors of a number of elements, or on single elements.
    pub(crate) fn is_defined(self, lanes: u8, set: InstructionSet) -> bool {
        let of = |scalar| Type::vector(scalar, lanes);
        match self {
            Self::Unary(op, from, to) => op.is_defined(of(from), of(to), set),
            Self::Binary(op, s) => op.is_defined(of(s), set),
            Self::Fused(op, _, s) => op.is_defined(of(s), set) && BinaryOp::Multiply.is_defined(of(s), set),
            Self::Clamp(s) => BinaryOp::Maximum.is_defined(of(s), set),
            Self::Compare(relation, s) => relation.is_defined(of(s), set),
            Self::Not(s) => BinaryOp::Xor.is_defined(of(s), set),
            Self::IsFinite(_)
            | Self::IsNan(_)
            | Self::Sign(_)
            | Self::RoundToBf16
            | Self::Function(_)
            | Self::Select(_) => true,
            Self::EncodeBf16 | Self::DecodeBf16 | Self::Widen(..) | Self::Narrow(_) => {
                lanes == 1 || set == InstructionSet::Avx512
            }
        }
    }

    /// Adds the instructions of the operation to a function. `constant` returns a register with the bits in each element.
    pub(crate) fn emit(
        self,
        f: &mut Function,
        dst: Reg,
        [a, b, c]: [Reg; 3],
        mut constant: impl FnMut(&mut Function, Type, u64) -> Reg,
    ) {
        let ty = f.type_of(a);
        match self {
            Self::Unary(op, ..) => f.push(Inst::Unary { op, dst, a }),
            Self::Binary(op, _) => f.push(Inst::Binary { op, dst, a, b }),
            Self::Compare(relation, _) => f.push(Inst::Compare { relation, dst, a, b }),
            Self::Select(_) => f.push(Inst::Select { dst, condition: a, a: b, b: c }),
            Self::Not(scalar) => {
                let bits = if scalar == Scalar::Bool { 1 } else { u64::MAX >> (64 - 8 * scalar.size()) };
                let b = constant(f, ty, bits);
                f.push(Inst::Binary { op: BinaryOp::Xor, dst, a, b });
            }
            Self::IsFinite(scalar) => {
                let size = f.reg(ty);
                f.push(Inst::Unary { op: UnaryOp::Abs, dst: size, a });
                let infinity = match scalar {
                    Scalar::F32 => u64::from(f32::INFINITY.to_bits()),
                    _ => f64::INFINITY.to_bits(),
                };
                let b = constant(f, ty, infinity);
                f.push(Inst::Compare { relation: Relation::Lt, dst, a: size, b });
            }
            Self::IsNan(_) => f.push(Inst::Compare { relation: Relation::Ne, dst, a, b: a }),
            Self::Sign(scalar) => sign(f, dst, a, scalar, constant),
            Self::Function(op) => functions::emit(op, f, dst, a, &mut constant),
            Self::RoundToBf16 | Self::EncodeBf16 | Self::DecodeBf16 | Self::Widen(..) | Self::Narrow(_) => {
                self.emit_conversion(f, dst, a, constant);
            }
            Self::Fused(op, reversed, _) => {
                let product = f.reg(ty);
                f.push(Inst::Binary { op: BinaryOp::Multiply, dst: product, a, b });
                let (a, b) = if reversed { (c, product) } else { (product, c) };
                f.push(Inst::Binary { op, dst, a, b });
            }
            Self::Clamp(_) => {
                let low = f.reg(ty);
                f.push(Inst::Binary { op: BinaryOp::Maximum, dst: low, a: b, b: a });
                f.push(Inst::Binary { op: BinaryOp::Minimum, dst, a: low, b: c });
            }
        }
    }

    /// Adds the instructions of a conversion from or to a type that has no arithmetic in machine code.
    fn emit_conversion(
        self,
        f: &mut Function,
        dst: Reg,
        a: Reg,
        mut constant: impl FnMut(&mut Function, Type, u64) -> Reg,
    ) {
        let ty = f.type_of(a);
        match self {
            Self::RoundToBf16 => {
                let a = bits_of_bf16(f, a, constant);
                f.push(Inst::Unary { op: UnaryOp::Reinterpret, dst, a });
            }
            Self::EncodeBf16 => {
                let distance = constant(f, Type { scalar: Scalar::I32, ..ty }, 16);
                let a = bits_of_bf16(f, a, constant);
                let upper = f.reg(f.type_of(a));
                f.push(Inst::Binary { op: BinaryOp::ShiftRight, dst: upper, a, b: distance });
                f.push(Inst::Unary { op: UnaryOp::Convert, dst, a: upper });
            }
            Self::DecodeBf16 => {
                let integer = Type { scalar: Scalar::I32, ..ty };
                let (wide, bits, distance) = (f.reg(integer), f.reg(integer), constant(f, integer, 16));
                f.push(Inst::Unary { op: UnaryOp::Extend, dst: wide, a });
                f.push(Inst::Binary { op: BinaryOp::ShiftLeft, dst: bits, a: wide, b: distance });
                f.push(Inst::Unary { op: UnaryOp::Reinterpret, dst, a: bits });
            }
            Self::Widen(_, signed, to) => {
                let op = if signed { UnaryOp::Convert } else { UnaryOp::Extend };
                let is_float = to.is_float();
                let wide = if is_float { f.reg(Type { scalar: Scalar::I32, ..ty }) } else { dst };
                f.push(Inst::Unary { op, dst: wide, a });
                if is_float {
                    f.push(Inst::Unary { op: UnaryOp::Convert, dst, a: wide });
                }
            }
            Self::Narrow(_) => f.push(Inst::Unary { op: UnaryOp::Convert, dst, a }),
            other => unreachable!("{other:?} is no conversion"),
        }
    }

    /// Returns the number of operands.
    pub(crate) fn arity(self) -> usize {
        match self {
            Self::Unary(..)
            | Self::Not(_)
            | Self::IsFinite(_)
            | Self::IsNan(_)
            | Self::Sign(_)
            | Self::RoundToBf16
            | Self::EncodeBf16
            | Self::DecodeBf16
            | Self::Function(_)
            | Self::Widen(..)
            | Self::Narrow(_) => 1,
            Self::Binary(..) | Self::Compare(..) => 2,
            Self::Fused(..) | Self::Clamp(..) | Self::Select(_) => 3,
        }
    }
}

/// Adds the sign of a float.
fn sign(
    f: &mut Function,
    dst: Reg,
    a: Reg,
    scalar: Scalar,
    mut constant: impl FnMut(&mut Function, Type, u64) -> Reg,
) {
    let ty = f.type_of(a);
    let one = if scalar == Scalar::F32 { u64::from(1f32.to_bits()) } else { 1f64.to_bits() };
    let [sign, one, zero] = [1 << (8 * scalar.size() - 1), one, 0].map(|bits| constant(f, ty, bits));
    let [bit, signed] = [(); 2].map(|()| f.reg(ty));
    f.push(Inst::Binary { op: BinaryOp::And, dst: bit, a, b: sign });
    f.push(Inst::Binary { op: BinaryOp::Or, dst: signed, a: bit, b: one });
    let boolean = Type { scalar: Scalar::Bool, ..ty };
    let [is_zero, is_nan, unchanged] = [(); 3].map(|()| f.reg(boolean));
    f.push(Inst::Compare { relation: Relation::Eq, dst: is_zero, a, b: zero });
    f.push(Inst::Compare { relation: Relation::Ne, dst: is_nan, a, b: a });
    f.push(Inst::Binary { op: BinaryOp::Or, dst: unchanged, a: is_zero, b: is_nan });
    f.push(Inst::Select { dst, condition: unchanged, a, b: signed });
}

/// Adds the rounding of F32 to the nearest value of BF16, the even one of two. Returns its bits as an F32.
fn bits_of_bf16(f: &mut Function, a: Reg, mut constant: impl FnMut(&mut Function, Type, u64) -> Reg) -> Reg {
    let ty = f.type_of(a);
    let integer = Type { scalar: Scalar::I32, ..ty };
    let constants = [16, 1, 0x7fff, 0xffff_0000, 0x40_0000].map(|bits| constant(f, integer, bits));
    let [distance, one, half, upper, quiet] = constants;
    let [bits, shifted, last, addend, sum, nan, chosen, rounded] = [(); 8].map(|()| f.reg(integer));
    let is_nan = f.reg(Type { scalar: Scalar::Bool, ..ty });
    f.push(Inst::Unary { op: UnaryOp::Reinterpret, dst: bits, a });
    f.push(Inst::Binary { op: BinaryOp::ShiftRight, dst: shifted, a: bits, b: distance });
    f.push(Inst::Binary { op: BinaryOp::And, dst: last, a: shifted, b: one });
    f.push(Inst::Binary { op: BinaryOp::Add, dst: addend, a: last, b: half });
    f.push(Inst::Binary { op: BinaryOp::Add, dst: sum, a: bits, b: addend });
    f.push(Inst::Binary { op: BinaryOp::Or, dst: nan, a: bits, b: quiet });
    f.push(Inst::Compare { relation: Relation::Ne, dst: is_nan, a, b: a });
    f.push(Inst::Select { dst: chosen, condition: is_nan, a: nan, b: sum });
    f.push(Inst::Binary { op: BinaryOp::And, dst: rounded, a: chosen, b: upper });
    rounded
}

/// Returns the type of a register for elements of this type in memory, if there is one.
pub(crate) fn scalar_of(dtype: DType) -> Option<Scalar> {
    Some(match dtype {
        DType::Pred => Scalar::Bool,
        DType::S32 | DType::U32 => Scalar::I32,
        DType::S64 | DType::U64 => Scalar::I64,
        DType::F32 => Scalar::F32,
        DType::F64 => Scalar::F64,
        _ => return None,
    })
}

/// Returns the type of a register for elements of this type in a tile, if there is one.
pub(crate) fn compute_scalar(ty: ComputeType) -> Option<Scalar> {
    Some(match ty {
        ComputeType::Pred => Scalar::Bool,
        ComputeType::S32 | ComputeType::U32 => Scalar::I32,
        ComputeType::S64 | ComputeType::U64 => Scalar::I64,
        ComputeType::F32 => Scalar::F32,
        ComputeType::F64 => Scalar::F64,
        _ => return None,
    })
}

/// Returns the equivalent of an operation on two numbers.
pub(crate) fn binary(op: TileOp, unsigned: bool) -> Option<BinaryOp> {
    Some(match op {
        TileOp::Add => BinaryOp::Add,
        TileOp::Subtract => BinaryOp::Subtract,
        TileOp::Multiply => BinaryOp::Multiply,
        TileOp::Divide if unsigned => BinaryOp::DivideUnsigned,
        TileOp::Divide => BinaryOp::Divide,
        TileOp::Remainder if unsigned => BinaryOp::RemainderUnsigned,
        TileOp::Remainder => BinaryOp::Remainder,
        TileOp::Maximum if !unsigned => BinaryOp::Maximum,
        TileOp::Minimum if !unsigned => BinaryOp::Minimum,
        TileOp::And => BinaryOp::And,
        TileOp::Or => BinaryOp::Or,
        TileOp::Xor => BinaryOp::Xor,
        TileOp::ShiftLeft => BinaryOp::ShiftLeft,
        TileOp::ShiftRightLogical => BinaryOp::ShiftRight,
        TileOp::ShiftRightArithmetic => BinaryOp::ShiftRightSigned,
        _ => return None,
    })
}

/// Returns the equivalent of an operation on two booleans.
fn logic(op: TileOp) -> Option<BinaryOp> {
    Some(match op {
        TileOp::And | TileOp::Multiply | TileOp::Minimum => BinaryOp::And,
        TileOp::Or | TileOp::Add | TileOp::Maximum => BinaryOp::Or,
        TileOp::Xor => BinaryOp::Xor,
        _ => return None,
    })
}

fn unary(op: TileOp, scalar: Scalar) -> Option<UnaryOp> {
    Some(match op {
        TileOp::Negate if scalar != Scalar::Bool => UnaryOp::Negate,
        TileOp::Abs if scalar.is_float() => UnaryOp::Abs,
        TileOp::Sqrt if scalar.is_float() => UnaryOp::Sqrt,
        TileOp::Floor if scalar.is_float() => UnaryOp::Floor,
        TileOp::Ceil if scalar.is_float() => UnaryOp::Ceil,
        TileOp::RoundNearestEven if scalar.is_float() => UnaryOp::RoundEven,
        _ => return None,
    })
}

/// Returns the relation for a direction; for the directions that [`is_swapped`], that of the operands in the other order.
pub(crate) fn relation(direction: Direction, unsigned: bool) -> Relation {
    match direction {
        Direction::Eq => Relation::Eq,
        Direction::Ne => Relation::Ne,
        Direction::Lt | Direction::Gt if unsigned => Relation::LtUnsigned,
        Direction::Le | Direction::Ge if unsigned => Relation::LeUnsigned,
        Direction::Lt | Direction::Gt => Relation::Lt,
        Direction::Le | Direction::Ge => Relation::Le,
    }
}

/// Returns whether the equivalent of an operation has its first two operands in the other order.
pub(crate) fn is_swapped(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Compare(Direction::Gt | Direction::Ge, _))
}

/// Returns the equivalent of a conversion from or to a type that has no arithmetic in machine code.
pub(crate) fn narrow_operation(opcode: Opcode, to: ComputeType, from: ComputeType) -> Option<Arithmetic> {
    use ComputeType::{F32, S8, S16, S32, U8, U16, U32};
    let narrow = |ty: ComputeType| match ty {
        S8 | U8 => Some(Scalar::I8),
        S16 | U16 => Some(Scalar::I16),
        _ => None,
    };
    match (opcode, from, to) {
        (Opcode::FromBits(DType::BF16), U16, F32) => Some(Arithmetic::DecodeBf16),
        (Opcode::ToBits(DType::BF16), F32, U16) => Some(Arithmetic::EncodeBf16),
        (Opcode::Convert, _, S32 | U32) => {
            narrow(from).map(|scalar| Arithmetic::Widen(scalar, from.is_signed_integer(), Scalar::I32))
        }
        (Opcode::Convert, _, F32) => {
            narrow(from).map(|scalar| Arithmetic::Widen(scalar, from.is_signed_integer(), Scalar::F32))
        }
        (Opcode::Convert, S32 | U32, _) => narrow(to).map(Arithmetic::Narrow),
        _ => None,
    }
}

/// Returns the equivalent of an operation of tiles on operands of type `from` with a result of type `to`.
pub(crate) fn tile_operation(opcode: Opcode, to: ComputeType, from: ComputeType) -> Option<Arithmetic> {
    let scalar = compute_scalar(from)?;
    let result = compute_scalar(to)?;
    let unsigned = matches!(from, ComputeType::U32 | ComputeType::U64);
    match opcode {
        Opcode::Tile(TileOp::Not) if from == to => Some(Arithmetic::Not(scalar)),
        Opcode::Tile(TileOp::IsFinite) => Some(Arithmetic::IsFinite(scalar)),
        Opcode::Tile(TileOp::IsNan) => Some(Arithmetic::IsNan(scalar)),
        Opcode::Tile(TileOp::Sign) if scalar.is_float() => Some(Arithmetic::Sign(scalar)),
        Opcode::Round(DType::BF16) if [from, to] == [ComputeType::F32; 2] => Some(Arithmetic::RoundToBf16),
        Opcode::Tile(op) if from == to && from == ComputeType::Pred => {
            logic(op).map(|op| Arithmetic::Binary(op, scalar))
        }
        Opcode::Tile(op) if from == to => match op.arity() {
            1 if functions::is_function(op) => (from == ComputeType::F32).then_some(Arithmetic::Function(op)),
            1 => unary(op, scalar).map(|op| Arithmetic::Unary(op, scalar, result)),
            _ if op == TileOp::Remainder && scalar.is_float() => None,
            _ => binary(op, unsigned).map(|op| Arithmetic::Binary(op, scalar)),
        },
        Opcode::Clamp if from == to && !unsigned && from != ComputeType::Pred => {
            Some(Arithmetic::Clamp(scalar))
        }
        Opcode::Compare(Direction::Ne, Order::Partial) if from == ComputeType::Pred => {
            Some(Arithmetic::Binary(BinaryOp::Xor, scalar))
        }
        Opcode::Compare(direction, Order::Partial) if from != ComputeType::Pred => {
            Some(Arithmetic::Compare(relation(direction, unsigned), scalar))
        }
        Opcode::Select if from == ComputeType::Pred => Some(Arithmetic::Select(result)),
        Opcode::Convert if scalar == result => Some(Arithmetic::Unary(UnaryOp::Copy, scalar, result)),
        // Floats are converted to signed integers only.
        Opcode::Convert
            if !unsigned && (!scalar.is_float() || matches!(to, ComputeType::S32 | ComputeType::S64)) =>
        {
            let set = InstructionSet::Avx2;
            let is_defined = UnaryOp::Convert.is_defined(Type::one(scalar), Type::one(result), set);
            is_defined.then_some(Arithmetic::Unary(UnaryOp::Convert, scalar, result))
        }
        Opcode::MulAdd if from == to => Some(Arithmetic::Fused(BinaryOp::Add, false, scalar)),
        Opcode::MulSub if from == to => Some(Arithmetic::Fused(BinaryOp::Subtract, false, scalar)),
        Opcode::NegMulAdd if from == to => Some(Arithmetic::Fused(BinaryOp::Subtract, true, scalar)),
        _ => None,
    }
}
