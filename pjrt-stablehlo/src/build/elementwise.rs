//! Methods of [`Builder`] that add elementwise operations, with the operations' StableHLO names.

use super::Builder;
use crate::ir::ops::{BitcastConvert, Compare, Convert};
use crate::ir::{ComparisonDirection, ComparisonType, ElementType, OpCode, TensorType, ValueId};

/// Defines methods for operations with single operands, whose result type is inferred from them.
macro_rules! elementwise {
    ($($name:ident($($operand:ident),+) = $code:ident;)*) => {
        impl Builder {
            $(
                #[doc = concat!("Adds `stablehlo.", stringify!($name), "`; see [`", stringify!($code), "`](crate::ir::ops::", stringify!($code), ").")]
                pub fn $name(&mut self, $($operand: ValueId),+) -> ValueId {
                    self.apply(OpCode::$code, &[$($operand),+])
                }
            )*
        }

        #[cfg(test)]
        const METHODS: &[(&str, OpCode, &[&str])] =
            &[$((stringify!($name), OpCode::$code, &[$(stringify!($operand)),+])),*];
    };
}

elementwise! {
    abs(operand) = Abs;
    add(lhs, rhs) = Add;
    and(lhs, rhs) = And;
    atan2(lhs, rhs) = Atan2;
    cbrt(operand) = Cbrt;
    ceil(operand) = Ceil;
    clamp(min, operand, max) = Clamp;
    complex(lhs, rhs) = Complex;
    cosine(operand) = Cosine;
    count_leading_zeros(operand) = CountLeadingZeros;
    divide(lhs, rhs) = Divide;
    exponential(operand) = Exponential;
    exponential_minus_one(operand) = ExponentialMinusOne;
    floor(operand) = Floor;
    imag(operand) = Imag;
    is_finite(x) = IsFinite;
    log(operand) = Log;
    log_plus_one(operand) = LogPlusOne;
    logistic(operand) = Logistic;
    maximum(lhs, rhs) = Maximum;
    minimum(lhs, rhs) = Minimum;
    multiply(lhs, rhs) = Multiply;
    negate(operand) = Negate;
    not(operand) = Not;
    or(lhs, rhs) = Or;
    popcnt(operand) = PopulationCount;
    power(lhs, rhs) = Power;
    real(operand) = Real;
    remainder(lhs, rhs) = Remainder;
    round_nearest_afz(operand) = RoundNearestAfz;
    round_nearest_even(operand) = RoundNearestEven;
    rsqrt(operand) = Rsqrt;
    select(pred, on_true, on_false) = Select;
    shift_left(lhs, rhs) = ShiftLeft;
    shift_right_arithmetic(lhs, rhs) = ShiftRightArithmetic;
    shift_right_logical(lhs, rhs) = ShiftRightLogical;
    sign(operand) = Sign;
    sine(operand) = Sine;
    sqrt(operand) = Sqrt;
    subtract(lhs, rhs) = Subtract;
    tan(operand) = Tan;
    tanh(operand) = Tanh;
    xor(lhs, rhs) = Xor;
}

impl Builder {
    /// Adds a `stablehlo.compare` with the default order of the elements, which for floats is the order of their
    /// values.
    pub fn compare(&mut self, direction: ComparisonDirection, lhs: ValueId, rhs: ValueId) -> ValueId {
        let compare_type = ComparisonType::NoType;
        self.op(Compare { comparison_direction: direction, compare_type }, &[lhs, rhs])
    }

    /// Adds a `stablehlo.compare` with a number.
    pub fn compare_with(&mut self, direction: ComparisonDirection, lhs: ValueId, number: f64) -> ValueId {
        let number = self.number(number, lhs);
        self.compare(direction, lhs, number)
    }

    /// Adds a `stablehlo.convert`. Returns the operand if it has the element type.
    pub fn convert(&mut self, operand: ValueId, element: ElementType) -> ValueId {
        let ty = self.tensor(operand);
        if ty.element_type() == element {
            return operand;
        }
        self.op_of_type(Convert {}, &[operand], TensorType::new(element, ty.dims()))
    }

    /// Adds a `stablehlo.bitcast_convert` to an element type of the same width. Returns the operand if it has the element
    /// type.
    pub fn bitcast_convert(&mut self, operand: ValueId, element: ElementType) -> ValueId {
        let ty = self.tensor(operand);
        if ty.element_type() == element {
            return operand;
        }
        self.op_of_type(BitcastConvert {}, &[operand], TensorType::new(element, ty.dims()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Trait, Variadicity};

    #[test]
    fn methods_are_those_of_the_op_table() {
        let methods = METHODS.iter().map(|&(name, code, operands)| (code, name, operands.to_vec()));
        // The methods of these operations have further parameters.
        let others = [OpCode::Compare, OpCode::Convert];
        let is_simple = |code: &OpCode| {
            let info = code.info();
            let groups = || info.operands.iter().chain(info.results);
            (info.has(Trait::Elementwise) || info.has(Trait::SameType))
                && groups().all(|group| group.variadicity == Variadicity::One)
                && info.attributes.iter().all(|attribute| !attribute.required)
                && !info.name.contains(".uniform_")
                && !others.contains(code)
        };
        let table = OpCode::ALL.iter().copied().filter(is_simple).map(|code| {
            let operands = code.info().operands.iter().map(|group| group.name).collect();
            (code, code.info().mnemonic(), operands)
        });
        assert_eq!(methods.collect::<Vec<_>>(), table.collect::<Vec<(OpCode, &str, Vec<&str>)>>());
    }
}
