//! The elementwise operations, and the types that each is defined for.

use crate::ComputeType;

macro_rules! tile_ops {
    ($($(#[doc = $doc:literal])* $name:ident $arity:literal $cost:literal;)*) => {
        /// An elementwise operation whose operands all have one type.
        ///
        /// Semantics are those of the StableHLO operation of the same name, for every type that the operation
        /// is defined on; see [`crate::region::Builder::op`] for the rounding of narrow types.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum TileOp {
            $($(#[doc = $doc])* $name,)*
        }

        impl TileOp {
            /// Every operation.
            pub const ALL: &'static [TileOp] = &[$(TileOp::$name,)*];

            /// Returns the number of operands.
            pub const fn arity(self) -> usize {
                match self { $(Self::$name => $arity,)* }
            }

            /// Returns the approximate cost of one 4-byte element, in hundredths of a nanosecond.
            pub(crate) const fn cost(self) -> u32 {
                match self { $(Self::$name => $cost,)* }
            }
        }
    };
}

tile_ops! {
    /// Sum; for booleans, logical or.
    Add 2 3;
    /// Difference.
    Subtract 2 3;
    /// Product; for booleans, logical and.
    Multiply 2 3;
    /// Quotient; integers truncate.
    Divide 2 10;
    /// Remainder with the sign of the dividend.
    Remainder 2 100;
    /// Larger of two; NaN if either is.
    Maximum 2 3;
    /// Smaller of two; NaN if either is.
    Minimum 2 3;
    /// Power.
    Power 2 60;
    /// Angle of the point (second, first).
    Atan2 2 40;
    /// Bitwise, or logical, and.
    And 2 3;
    /// Bitwise, or logical, or.
    Or 2 3;
    /// Bitwise, or logical, exclusive or.
    Xor 2 3;
    /// Left shift; zero from the width on.
    ShiftLeft 2 4;
    /// Right shift that copies the sign.
    ShiftRightArithmetic 2 4;
    /// Right shift that fills with zeros.
    ShiftRightLogical 2 4;
    /// Upper half of the double-width integer product.
    MulHi 2 10;
    /// The next representable value of the first operand towards the second.
    NextAfter 2 10;
    /// A complex number of its real and imaginary part.
    Complex 2 6;

    /// Absolute value; the modulus of a complex number (a real result).
    Abs 1 3;
    /// Bitwise, or logical, not.
    Not 1 3;
    /// Negation.
    Negate 1 3;
    /// The sign: -1, 0 or 1. NaN and -0 are unchanged. The result for a complex number is its unit vector.
    Sign 1 5;
    /// The number of one bits.
    Popcnt 1 6;
    /// The number of leading zero bits.
    CountLeadingZeros 1 6;
    /// Smallest integral value not below.
    Ceil 1 3;
    /// Largest integral value not above.
    Floor 1 3;
    /// Nearest integral value, halves away from zero.
    RoundNearestAfz 1 6;
    /// Nearest integral value, halves to even.
    RoundNearestEven 1 3;
    /// Square root.
    Sqrt 1 8;
    /// Reciprocal of the square root.
    Rsqrt 1 12;
    /// Cube root.
    Cbrt 1 20;
    /// e to the power.
    Exponential 1 12;
    /// e to the power, minus one.
    ExponentialMinusOne 1 20;
    /// Natural logarithm.
    Log 1 15;
    /// Natural logarithm of one plus the operand.
    LogPlusOne 1 20;
    /// 1 / (1 + exp(-x)).
    Logistic 1 16;
    /// Sine.
    Sine 1 15;
    /// Cosine.
    Cosine 1 15;
    /// Tangent.
    Tan 1 25;
    /// Hyperbolic tangent.
    Tanh 1 12;
    /// Arc sine.
    Asin 1 20;
    /// Arc cosine.
    Acos 1 20;
    /// Arc tangent.
    Atan 1 20;
    /// Hyperbolic sine.
    Sinh 1 25;
    /// Hyperbolic cosine.
    Cosh 1 25;
    /// Area hyperbolic sine.
    Asinh 1 30;
    /// Area hyperbolic cosine.
    Acosh 1 30;
    /// Area hyperbolic tangent.
    Atanh 1 30;
    /// Error function.
    Erf 1 15;
    /// Complementary error function.
    Erfc 1 30;
    /// Inverse error function.
    ErfInv 1 40;
    /// `true` unless infinite or NaN (a boolean).
    IsFinite 1 3;
    /// `true` if NaN (a boolean).
    IsNan 1 3;
    /// Real part (a real result). The real part of a real operand is the operand.
    Real 1 4;
    /// Imaginary part (a real result); zero of a real operand.
    Imag 1 4;
    /// Complex conjugate. The conjugate of a real operand is the operand.
    Conj 1 4;
}

impl TileOp {
    /// Returns the type of the result for operands of type `t`, or `None` if the operation is not defined
    /// there.
    pub(crate) fn result(self, t: ComputeType) -> Option<ComputeType> {
        use ComputeType as C;
        use TileOp::*;
        let float = t.is_float();
        let complex = t.is_complex();
        let integer = t.is_signed_integer() || t.is_unsigned_integer();
        let same = |ok: bool| ok.then_some(t);
        let part = match t {
            C::C64 => Some(C::F32),
            C::C128 => Some(C::F64),
            _ => None,
        };
        match self {
            Add | Multiply => Some(t),
            Subtract | Divide => same(t != C::Pred),
            Maximum | Minimum => Some(t),
            Power => same(t != C::Pred),
            Remainder => same(integer || float),
            Atan2 => same(float || complex),
            And | Or | Xor | Not => same(integer || t == C::Pred),
            ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | MulHi | Popcnt | CountLeadingZeros => {
                same(integer)
            }
            NextAfter => same(float),
            Complex => match t {
                C::F32 => Some(C::C64),
                C::F64 => Some(C::C128),
                _ => None,
            },
            Abs => part.or(same(float || t.is_signed_integer())),
            Negate => same(t != C::Pred),
            Sign => same(float || complex || t.is_signed_integer()),
            Ceil | Floor | RoundNearestAfz | RoundNearestEven => same(float),
            Erf | Erfc | ErfInv => same(float),
            Sqrt | Rsqrt | Cbrt | Exponential | ExponentialMinusOne | Log | LogPlusOne | Logistic | Sine
            | Cosine | Tan | Tanh | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh => {
                same(float || complex)
            }
            IsFinite | IsNan => float.then_some(C::Pred),
            Real | Imag => part,
            Conj => same(complex),
        }
    }

    /// Returns `true` if the result is representable in a narrow float type whenever its operands are.
    pub(crate) fn is_exact(self) -> bool {
        use TileOp::*;
        matches!(
            self,
            Maximum
                | Minimum
                | Abs
                | Negate
                | Sign
                | Ceil
                | Floor
                | RoundNearestAfz
                | RoundNearestEven
                | IsFinite
                | IsNan
        )
    }
}
