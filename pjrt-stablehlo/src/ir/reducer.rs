//! Recognition of the computations of reductions.

use super::floats::{float_bits, float_value};
use super::{Body, ElementKind, ElementType, Literal, LiteralData, OpCode, RegionId, TensorType};

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

    /// Returns the scalar that changes no element that it is combined with, such as the greatest integer for the minimum. The
    /// identity of the sum of floats is `-0.0`, because `0.0` changes `-0.0`. Returns `None` if no element is an identity, as for
    /// the maximum of floats without infinity.
    ///
    /// ```
    /// use pjrt_stablehlo::ir::{ElementType, Reducer};
    ///
    /// let identity = Reducer::Minimum.identity(ElementType::I8).unwrap();
    /// assert_eq!(identity.to_i64s(1), Some(vec![127]));
    /// ```
    pub fn identity(self, element: ElementType) -> Option<Literal> {
        let integer = |value: i64| value.to_le_bytes()[..element.byte_width()].to_vec();
        let bytes = match element.kind() {
            ElementKind::Boolean => {
                integer(i64::from(matches!(self, Self::And | Self::Minimum | Self::Multiply)))
            }
            ElementKind::SignedInteger => integer(self.integer_identity(i64::MIN >> (64 - element.bits()))),
            ElementKind::UnsignedInteger => {
                let greatest = u64::MAX >> (64 - element.bits());
                integer(match self {
                    Self::Minimum | Self::And => greatest as i64,
                    _ => self.integer_identity(0),
                })
            }
            ElementKind::Float => float(element, self.float_identity()?)?,
            // Products of infinite complex numbers and 1 have parts that are NaN.
            ElementKind::Complex if self == Self::Add => {
                float(element.complex_part()?, self.float_identity()?)?.repeat(2)
            }
            ElementKind::Complex | ElementKind::Quantized => return None,
        };
        Literal::new(TensorType::new(element, []), LiteralData::Splat(bytes.into())).ok()
    }

    /// Returns the identity for integers in two's complement, of which `least` is the least.
    fn integer_identity(self, least: i64) -> i64 {
        match self {
            Self::Add | Self::Or | Self::Xor => 0,
            Self::And => -1,
            Self::Maximum => least,
            Self::Minimum => !least,
            Self::Multiply => 1,
        }
    }

    fn float_identity(self) -> Option<f64> {
        match self {
            Self::Add => Some(-0.0),
            Self::Maximum => Some(f64::NEG_INFINITY),
            Self::Minimum => Some(f64::INFINITY),
            Self::Multiply => Some(1.0),
            Self::And | Self::Or | Self::Xor => None,
        }
    }
}

/// Returns the stored bytes of a number, if it is one of the float type.
fn float(element: ElementType, number: f64) -> Option<Vec<u8>> {
    let bits = float_bits(element, number);
    let is_number = float_value(element, bits) == number;
    is_number.then(|| bits.to_le_bytes()[..element.byte_width()].to_vec())
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

    #[test]
    fn identities_are_the_elements_that_change_no_other() {
        use ElementType as T;
        for (reducer, element, bytes) in [
            (Reducer::Add, T::F32, Some(&[0, 0, 0, 0x80][..])),
            (Reducer::Add, T::I16, Some(&[0, 0])),
            (Reducer::Add, T::ComplexF32, Some(&[0, 0, 0, 0x80, 0, 0, 0, 0x80])),
            (Reducer::Add, T::F8E4M3FNUZ, Some(&[0])),
            (Reducer::Add, T::F8E8M0FNU, None),
            (Reducer::Maximum, T::F16, Some(&[0, 0xfc])),
            (Reducer::Maximum, T::F8E4M3FN, None),
            (Reducer::Maximum, T::I4, Some(&[8])),
            (Reducer::Maximum, T::Ui8, Some(&[0])),
            (Reducer::Minimum, T::BF16, Some(&[0x80, 0x7f])),
            (Reducer::Minimum, T::I64, Some(&[255, 255, 255, 255, 255, 255, 255, 0x7f])),
            (Reducer::Minimum, T::Ui4, Some(&[15])),
            (Reducer::Multiply, T::Ui16, Some(&[1, 0])),
            (Reducer::Multiply, T::ComplexF32, None),
            (Reducer::And, T::I16, Some(&[255, 255])),
            (Reducer::And, T::I1, Some(&[1])),
            (Reducer::Or, T::I1, Some(&[0])),
            (Reducer::Or, T::F32, None),
        ] {
            let identity = reducer.identity(element);
            let found = identity.as_ref().map(|identity| identity.splat().unwrap().into_owned());
            assert_eq!(found.as_deref(), bytes, "{reducer:?} of {element}");
        }
    }
}
