//! Elementwise operations. The operands have the dimensions of the result.

use crate::graph::Shape;
use crate::graph::operation::{Check, Cost, Execution, Operation, counts, elements, need, same};
use refcpu_kernels::DType;
use refcpu_kernels::region::{Builder, Direction, Order, RegionError, Val};
use refcpu_kernels::tile::TileOp;

impl Operation for TileOp {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, self.arity(), 1)?;
        need(
            x.iter().all(|s| *s == x[0] && s.dims == y[0].dims),
            "the operands differ in type, or their dimensions are not those of the result",
        )
    }

    fn cost(&self, _x: &[&Shape], y: &[&Shape]) -> Option<Cost> {
        if is_transcendental(*self) {
            return Some(Cost { transcendentals: elements(y, 0), ..Cost::default() });
        }
        Cost::flops(elements(y, 0))
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Elementwise
    }

    fn emit(&self, b: &mut Builder, args: &[Val], _result: DType) -> Result<Val, RegionError> {
        b.op(*self, args)
    }
}

/// Returns whether XLA's cost analysis counts the operation as a transcendental function.
fn is_transcendental(op: TileOp) -> bool {
    use TileOp::*;
    matches!(
        op,
        Power
            | Atan2
            | Sqrt
            | Rsqrt
            | Cbrt
            | Exponential
            | ExponentialMinusOne
            | Log
            | LogPlusOne
            | Logistic
            | Sine
            | Cosine
            | Tan
            | Tanh
            | Asin
            | Acos
            | Atan
            | Sinh
            | Cosh
            | Asinh
            | Acosh
            | Atanh
            | Erf
            | Erfc
            | ErfInv
    )
}

/// Compares two arrays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Compare(pub Direction, pub Order);

impl Operation for Compare {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 2, 1)?;
        same(x[0], x[1])?;
        same(&x[0].with_dtype(DType::Pred), y[0])
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Elementwise
    }

    fn emit(&self, b: &mut Builder, args: &[Val], _result: DType) -> Result<Val, RegionError> {
        b.compare(self.0, self.1, args[0], args[1])
    }
}

/// Selects the second operand where the first is true, otherwise the third.
#[derive(Debug)]
pub struct Select;

impl Operation for Select {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 3, 1)?;
        same(&y[0].with_dtype(DType::Pred), x[0])?;
        same(x[1], y[0])?;
        same(x[2], y[0])
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Elementwise
    }

    fn emit(&self, b: &mut Builder, args: &[Val], _result: DType) -> Result<Val, RegionError> {
        b.select(args[0], args[1], args[2])
    }
}

/// Limits the second operand to the range from the first to the third.
#[derive(Debug)]
pub struct Clamp;

impl Operation for Clamp {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 3, 1)?;
        x.iter().try_for_each(|s| same(s, y[0]))
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Elementwise
    }

    fn emit(&self, b: &mut Builder, args: &[Val], _result: DType) -> Result<Val, RegionError> {
        b.clamp(args[0], args[1], args[2])
    }
}

/// Converts to the element type of the result.
#[derive(Debug)]
pub struct Convert;

impl Operation for Convert {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        need(x[0].dims == y[0].dims, "the dimensions of the operand and the result differ")
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Elementwise
    }

    fn emit(&self, b: &mut Builder, args: &[Val], result: DType) -> Result<Val, RegionError> {
        b.convert(args[0], result)
    }
}

/// Rounds to a format of fewer bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReducePrecision {
    /// The number of bits of the exponent.
    pub exponent: u32,
    /// The number of bits of the mantissa.
    pub mantissa: u32,
}

impl Operation for ReducePrecision {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        Convert.verify(x, y)
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Elementwise
    }

    fn emit(&self, b: &mut Builder, args: &[Val], _result: DType) -> Result<Val, RegionError> {
        b.reduce_precision(args[0], self.exponent, self.mantissa)
    }
}
