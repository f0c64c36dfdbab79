//! Recognition of the computations of reductions.

use super::{Body, OpCode, RegionId};

/// The operation by which a region combines its two arguments, such as that of a sum.
///
/// Devices that reduce with certain operations only limit `reduce` to them:
///
/// ```
/// use pjrt_stablehlo::ir::{OpCode, Reducer};
/// use pjrt_stablehlo::passes::{CoreOps, decompose};
///
/// // Adds, and computes maxima.
/// let core = CoreOps::default().with_condition(OpCode::Reduce, |body, op| {
///     matches!(Reducer::of(body, op.regions[0]), Some(Reducer::Add | Reducer::Maximum))
/// });
/// # let text = |code: &str| format!("func.func @main(%x: tensor<4xf32>, %y: tensor<f32>) -> tensor<f32> {{
/// #     %0 = stablehlo.reduce(%x init: %y) applies stablehlo.{code} across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
/// #     return %0 : tensor<f32>
/// # }}");
/// # let reduces = |code: &str| {
/// #     let module = pjrt_stablehlo::parse(text(code)).unwrap();
/// #     let main = module.main().unwrap();
/// #     core.supports(&main.body, main.ops().next().unwrap().1)
/// # };
/// # assert!(reduces("add") && reduces("maximum") && !reduces("multiply"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reducer {
    /// The sum; for booleans, logical OR.
    Add,
    /// Logical or bitwise AND.
    And,
    /// The maximum.
    Maximum,
    /// The minimum.
    Minimum,
    /// The product; for booleans, logical AND.
    Multiply,
    /// Logical or bitwise OR.
    Or,
    /// Logical or bitwise XOR.
    Xor,
}

impl Reducer {
    /// All reducers.
    pub const ALL: &'static [Self] =
        &[Self::Add, Self::And, Self::Maximum, Self::Minimum, Self::Multiply, Self::Or, Self::Xor];

    /// Returns the operation of a region that applies it to its two arguments, in either order, and returns the result. Returns
    /// `None` for all other regions, such as those that use an argument twice or a value from outside, or that have more
    /// than two arguments, as a reduction of several arrays has.
    pub fn of(body: &Body, region: RegionId) -> Option<Self> {
        let [block] = body.region(region).blocks[..] else { return None };
        let block = body.block(block);
        let ([a, b], [combine, end]) = (&block.arguments[..], &block.ops[..]) else { return None };
        let (combine, end) = (body.op(*combine), body.op(*end));
        let combines_both = *combine.operands == [*a, *b] || *combine.operands == [*b, *a];
        let is_returned = *end.operands == [combine.results.get(0)?];
        let reducer = Self::ALL.iter().find(|reducer| reducer.code() == combine.kind.code());
        reducer.filter(|_| combines_both && is_returned).copied()
    }

    /// Returns the operation of the op table.
    pub fn code(self) -> OpCode {
        match self {
            Self::Add => OpCode::Add,
            Self::And => OpCode::And,
            Self::Maximum => OpCode::Maximum,
            Self::Minimum => OpCode::Minimum,
            Self::Multiply => OpCode::Multiply,
            Self::Or => OpCode::Or,
            Self::Xor => OpCode::Xor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the reducer of a region with the arguments `%a` and `%b`, and `%c` from outside.
    fn reducer(element: &str, region: &str) -> Option<Reducer> {
        let text = format!(
            "func.func @main(%x: tensor<4x{element}>, %c: tensor<{element}>) -> tensor<{element}> {{
                %0 = stablehlo.reduce(%x init: %c) across dimensions = [0]
                    : (tensor<4x{element}>, tensor<{element}>) -> tensor<{element}>
                    reducer(%a: tensor<{element}>, %b: tensor<{element}>) {{ {region} : tensor<{element}> }}
                return %0 : tensor<{element}>
            }}"
        );
        let module = crate::parse(text.into_bytes()).unwrap();
        let main = module.main().unwrap();
        Reducer::of(&main.body, main.ops().next().unwrap().1.regions[0])
    }

    #[test]
    fn every_reducer_is_recognized_with_its_arguments_in_either_order() {
        for expected in Reducer::ALL {
            let name = expected.code().info().name;
            for operands in ["%a, %b", "%b, %a"] {
                let region = format!("%r = {name} {operands} : tensor<i32> stablehlo.return %r");
                assert_eq!(reducer("i32", &region), Some(*expected));
            }
        }
    }

    #[test]
    fn a_region_that_computes_anything_else_is_no_reducer() {
        for region in [
            "%r = stablehlo.add %a, %a : tensor<f32> stablehlo.return %r",
            "%r = stablehlo.add %a, %c : tensor<f32> stablehlo.return %r",
            "%r = stablehlo.add %a, %b : tensor<f32> stablehlo.return %b",
            "%r = stablehlo.subtract %a, %b : tensor<f32> stablehlo.return %r",
            "%s = stablehlo.negate %a : tensor<f32> %r = stablehlo.add %s, %b : tensor<f32> stablehlo.return %r",
            "stablehlo.return %b",
        ] {
            assert_eq!(reducer("f32", region), None, "{region}");
        }
    }
}
