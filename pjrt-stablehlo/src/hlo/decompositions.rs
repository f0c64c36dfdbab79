//! What composites that stand for operations of HLO consist of.
//!
//! A target that knows a composite by its name (`chlo.erf`) does not need its decomposition.

use super::emitter::Emitter;
use crate::ir::{
    ComparisonDirection, ComparisonType, ElementKind, ElementType, Op, OpCode, TensorType, Type, ValueId, ops,
};

/// A function of a real number in 32- or 64-bit floats.
type Function = fn(&mut Emitter, ValueId) -> ValueId;

const FUNCTIONS: &[(&str, Function)] = &[
    ("acos", acos),
    ("acosh", acosh),
    ("asin", asin),
    ("asinh", asinh),
    ("atanh", atanh),
    ("cosh", cosh),
    ("erf", erf),
    ("sinh", sinh),
];

/// Computes a function by its opcode: narrower floats than 32 bits in 32 bits.
pub(super) fn function(code: &mut Emitter, opcode: &str, x: ValueId) -> ValueId {
    let given = code.tensor(x).element_type();
    let computed = if given == ElementType::F64 { ElementType::F64 } else { ElementType::F32 };
    let x = if given == computed { x } else { code.convert(x, computed) };
    let function = FUNCTIONS.iter().find(|(name, _)| *name == opcode);
    let y = function.map_or(x, |(_, function)| function(code, x));
    if given == computed { y } else { code.convert(y, given) }
}

/// Arithmetic on values of one type.
impl Emitter {
    fn constant(&mut self, like: ValueId, value: f64) -> ValueId {
        let ty = self.tensor(like);
        self.number(&ty, value)
    }

    fn plus(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.apply(OpCode::Add, &[a, b])
    }

    fn minus(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.apply(OpCode::Subtract, &[a, b])
    }

    fn times(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.apply(OpCode::Multiply, &[a, b])
    }

    fn over(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.apply(OpCode::Divide, &[a, b])
    }

    fn of(&mut self, code: OpCode, x: ValueId) -> ValueId {
        self.apply(code, &[x])
    }

    /// A polynomial by its coefficients, that of the highest power first.
    fn polynomial(&mut self, x: ValueId, coefficients: &[f64]) -> ValueId {
        let mut sum = self.constant(x, coefficients[0]);
        for &coefficient in &coefficients[1..] {
            let term = self.times(sum, x);
            let coefficient = self.constant(x, coefficient);
            sum = self.plus(term, coefficient);
        }
        sum
    }
}

/// `2 atan2(sqrt(1 - x), sqrt(1 + x))`, which loses nothing near 1 and -1.
fn acos(code: &mut Emitter, x: ValueId) -> ValueId {
    let one = code.constant(x, 1.0);
    let (below, above) = (code.minus(one, x), code.plus(one, x));
    let (below, above) = (code.of(OpCode::Sqrt, below), code.of(OpCode::Sqrt, above));
    let half = code.apply(OpCode::Atan2, &[below, above]);
    code.plus(half, half)
}

/// `2 atan2(x, 1 + sqrt((1 - x) (1 + x)))`.
fn asin(code: &mut Emitter, x: ValueId) -> ValueId {
    let one = code.constant(x, 1.0);
    let (below, above) = (code.minus(one, x), code.plus(one, x));
    let product = code.times(below, above);
    let root = code.of(OpCode::Sqrt, product);
    let sum = code.plus(one, root);
    let half = code.apply(OpCode::Atan2, &[x, sum]);
    code.plus(half, half)
}

/// The least number whose square cannot be told from that plus or minus 1, and does not overflow by far.
fn large(code: &mut Emitter, like: ValueId) -> ValueId {
    let value = if code.tensor(like).element_type() == ElementType::F64 { 1e150 } else { 1e18 };
    code.constant(like, value)
}

/// `log(x + sqrt((x - 1) (x + 1)))`, near 1 as `log1p(d + sqrt(d (d + 2)))` of `d = x - 1`; for large x `log(x) + log(2)`.
fn acosh(code: &mut Emitter, x: ValueId) -> ValueId {
    let (one, two) = (code.constant(x, 1.0), code.constant(x, 2.0));
    let distance = code.minus(x, one);
    let sum = code.plus(distance, two);
    let product = code.times(distance, sum);
    let root = code.of(OpCode::Sqrt, product);
    let argument = code.plus(distance, root);
    let near = code.of(OpCode::LogPlusOne, argument);
    let log = code.of(OpCode::Log, x);
    let log_two = code.constant(x, std::f64::consts::LN_2);
    let far = code.plus(log, log_two);
    let large = large(code, x);
    let is_large = code.compare(ComparisonDirection::Gt, x, large);
    let result = code.select(is_large, far, near);
    let nan = code.constant(x, f64::NAN);
    let is_outside = code.compare(ComparisonDirection::Lt, x, one);
    code.select(is_outside, nan, result)
}

/// `sign(x) log1p(|x| + x^2 / (1 + sqrt(x^2 + 1)))`; for large x `sign(x) (log(|x|) + log(2))`.
fn asinh(code: &mut Emitter, x: ValueId) -> ValueId {
    let one = code.constant(x, 1.0);
    let magnitude = code.of(OpCode::Abs, x);
    let square = code.times(x, x);
    let sum = code.plus(square, one);
    let root = code.of(OpCode::Sqrt, sum);
    let denominator = code.plus(one, root);
    let quotient = code.over(square, denominator);
    let argument = code.plus(magnitude, quotient);
    let near = code.of(OpCode::LogPlusOne, argument);
    let log = code.of(OpCode::Log, magnitude);
    let log_two = code.constant(x, std::f64::consts::LN_2);
    let far = code.plus(log, log_two);
    let large = large(code, x);
    let is_large = code.compare(ComparisonDirection::Gt, magnitude, large);
    let result = code.select(is_large, far, near);
    let sign = code.of(OpCode::Sign, x);
    code.times(sign, result)
}

/// `(log1p(x) - log1p(-x)) / 2`.
fn atanh(code: &mut Emitter, x: ValueId) -> ValueId {
    let negative = code.of(OpCode::Negate, x);
    let (above, below) = (code.of(OpCode::LogPlusOne, x), code.of(OpCode::LogPlusOne, negative));
    let difference = code.minus(above, below);
    let half = code.constant(x, 0.5);
    code.times(half, difference)
}

/// `e^x / 2` and `e^-x / 2`, which do not overflow before their sum does.
fn half_exponentials(code: &mut Emitter, x: ValueId) -> (ValueId, ValueId) {
    let half = code.constant(x, 0.5);
    let halved = code.times(x, half);
    let negative = code.of(OpCode::Negate, halved);
    // The square of `e^(x / 2)`, one factor of which is halved.
    let mut square = |x: ValueId| {
        let root = code.of(OpCode::Exponential, x);
        let other = code.times(half, root);
        code.times(other, root)
    };
    (square(halved), square(negative))
}

fn cosh(code: &mut Emitter, x: ValueId) -> ValueId {
    let (growing, falling) = half_exponentials(code, x);
    code.plus(growing, falling)
}

/// `(e^x - e^-x) / 2`, near 0 as `(m + m / (m + 1)) / 2` of `m = expm1(x)`.
fn sinh(code: &mut Emitter, x: ValueId) -> ValueId {
    let (growing, falling) = half_exponentials(code, x);
    let far = code.minus(growing, falling);
    let (one, half) = (code.constant(x, 1.0), code.constant(x, 0.5));
    let less_one = code.of(OpCode::ExponentialMinusOne, x);
    let denominator = code.plus(less_one, one);
    let quotient = code.over(less_one, denominator);
    let sum = code.plus(less_one, quotient);
    let near = code.times(half, sum);
    let magnitude = code.of(OpCode::Abs, x);
    let is_near = code.compare(ComparisonDirection::Lt, magnitude, one);
    code.select(is_near, near, far)
}

fn erf(code: &mut Emitter, x: ValueId) -> ValueId {
    if code.tensor(x).element_type() == ElementType::F64 { erf_f64(code, x) } else { erf_f32(code, x) }
}

/// A quotient of polynomials of `x^2`, times `x`; beyond 4 the result is 1 or -1.
fn erf_f32(code: &mut Emitter, x: ValueId) -> ValueId {
    let (low, high) = (code.constant(x, -4.0), code.constant(x, 4.0));
    let bounded = code.apply(OpCode::Clamp, &[low, x, high]);
    let square = code.times(bounded, bounded);
    let above = code.polynomial(
        square,
        &[
            -2.726_142_4e-10,
            2.770_681_5e-8,
            -2.101_024e-6,
            -5.692_506_2e-5,
            -7.349_906_4e-4,
            -2.954_6e-3,
            -1.609_603_3e-2,
        ],
    );
    let below = code.polynomial(
        square,
        &[-1.456_607_2e-5, -2.133_740_5e-4, -1.682_827e-3, -7.373_329_3e-3, -1.426_473_9e-2],
    );
    let above = code.times(bounded, above);
    let quotient = code.over(above, below);
    let (low, high) = (code.constant(x, -1.0), code.constant(x, 1.0));
    code.apply(OpCode::Clamp, &[low, quotient, high])
}

/// The approximations of the Cephes library: a quotient of polynomials up to 1, and beyond that one minus the complement,
/// `e^(-x^2)` times such a quotient.
fn erf_f64(code: &mut Emitter, x: ValueId) -> ValueId {
    let square = code.times(x, x);
    let magnitude = code.of(OpCode::Abs, x);
    let quotient = |code: &mut Emitter, x: ValueId, above: &[f64], below: &[f64]| {
        let (above, below) = (code.polynomial(x, above), code.polynomial(x, below));
        code.over(above, below)
    };
    let ratio = quotient(
        code,
        square,
        &[9.604973739870516, 90.02601972038427, 2232.005345946843, 7003.325141128051, 55592.30130103949],
        &[
            1.0,
            33.56171416475031,
            521.3579497801527,
            4594.323829709801,
            22629.000061389095,
            49267.39426086359,
        ],
    );
    let near = code.times(x, ratio);
    let middle = quotient(
        code,
        magnitude,
        &[
            2.461_969_814_735_305e-10,
            0.5641895648310689,
            7.463210564422699,
            48.63719709856814,
            196.5208329560771,
            526.4451949954773,
            934.5285271719576,
            1027.5518868951572,
            557.5353353693994,
        ],
        &[
            1.0,
            13.228195115474499,
            86.70721408859897,
            354.9377788878199,
            975.7085017432055,
            1823.9091668790973,
            2246.3376081871097,
            1656.6630919416134,
            557.5353408177277,
        ],
    );
    let outer = quotient(
        code,
        magnitude,
        &[
            0.5641895835477551,
            1.275366707599781,
            5.019050422511805,
            6.160210979930536,
            7.4097426995044895,
            2.9788666537210022,
        ],
        &[
            1.0,
            2.2605286322011726,
            9.396035249380015,
            12.048953980809666,
            17.08144507475659,
            9.608968090632859,
            3.369076451000815,
        ],
    );
    let eight = code.constant(x, 8.0);
    let is_middle = code.compare(ComparisonDirection::Lt, magnitude, eight);
    let ratio = code.select(is_middle, middle, outer);
    let negative = code.of(OpCode::Negate, square);
    let exponential = code.of(OpCode::Exponential, negative);
    let complement = code.times(exponential, ratio);
    // Far out the complement is less than half a unit of 1, and the polynomials overflow.
    let (zero, one, far) = (code.constant(x, 0.0), code.constant(x, 1.0), code.constant(x, 20.0));
    let is_far = code.compare(ComparisonDirection::Gt, magnitude, far);
    let complement = code.select(is_far, zero, complement);
    let distance = code.minus(one, complement);
    let sign = code.of(OpCode::Sign, x);
    let beyond = code.times(sign, distance);
    let is_near = code.compare(ComparisonDirection::Lt, magnitude, one);
    code.select(is_near, near, beyond)
}

/// The upper half of a product of integers.
pub(super) fn mulhi(code: &mut Emitter, a: ValueId, b: ValueId) -> ValueId {
    let ty = code.tensor(a);
    let element_type = ty.element_type();
    let is_signed = element_type.kind() == ElementKind::SignedInteger;
    let wider = match (element_type.bits(), is_signed) {
        (0..=8, true) => ElementType::I16,
        (0..=8, false) => ElementType::Ui16,
        (9..=16, true) => ElementType::I32,
        (9..=16, false) => ElementType::Ui32,
        (17..=32, true) => ElementType::I64,
        (17..=32, false) => ElementType::Ui64,
        (_, true) => return mulhi_i64(code, a, b),
        (_, false) => return mulhi_ui64(code, a, b),
    };
    let (a, b) = (code.convert(a, wider), code.convert(b, wider));
    let product = code.times(a, b);
    let bits = code.integer(&TensorType::new(wider, ty.dims()), i128::from(element_type.bits()));
    let shift = if is_signed { OpCode::ShiftRightArithmetic } else { OpCode::ShiftRightLogical };
    let upper = code.apply(shift, &[product, bits]);
    code.convert(upper, element_type)
}

/// The sum of the partial products of 32-bit halves.
fn mulhi_ui64(code: &mut Emitter, a: ValueId, b: ValueId) -> ValueId {
    let ty = code.tensor(a);
    let (mask, bits) = (code.integer(&ty, 0xffff_ffff), code.integer(&ty, 32));
    let low = |code: &mut Emitter, x| code.apply(OpCode::And, &[x, mask]);
    let high = |code: &mut Emitter, x| code.apply(OpCode::ShiftRightLogical, &[x, bits]);
    let (a_low, a_high, b_low, b_high) = (low(code, a), high(code, a), low(code, b), high(code, b));
    let lowest = code.times(a_low, b_low);
    let carry = high(code, lowest);
    let product = code.times(a_high, b_low);
    let first = code.plus(product, carry);
    let rest = low(code, first);
    let product = code.times(a_low, b_high);
    let second = code.plus(product, rest);
    let highest = code.times(a_high, b_high);
    let (first, second) = (high(code, first), high(code, second));
    let sum = code.plus(highest, first);
    code.plus(sum, second)
}

/// That of the unsigned product, less what the signs stand for.
fn mulhi_i64(code: &mut Emitter, a: ValueId, b: ValueId) -> ValueId {
    let ty = code.tensor(a);
    let unsigned = TensorType::new(ElementType::Ui64, ty.dims());
    let cast = |code: &mut Emitter, x: ValueId, ty: &TensorType| {
        code.value(Op::BitcastConvert(ops::BitcastConvert {}), &[x], ty.clone())
    };
    let (a_bits, b_bits) = (cast(code, a, &unsigned), cast(code, b, &unsigned));
    let product = mulhi_ui64(code, a_bits, b_bits);
    let mut upper = cast(code, product, &ty);
    let zero = code.zeros(&ty);
    for (factor, other) in [(a, b), (b, a)] {
        let is_negative = code.compare(ComparisonDirection::Lt, factor, zero);
        let excess = code.select(is_negative, other, zero);
        upper = code.minus(upper, excess);
    }
    upper
}

/// The first `k` elements of the last dimension when they are sorted, and where they were.
pub(super) fn top_k(code: &mut Emitter, operand: ValueId, k: i64, is_largest: bool) -> Vec<ValueId> {
    let ty = code.tensor(operand);
    let last = ty.rank() - 1;
    let indices_ty = TensorType::new(ElementType::I32, ty.dims());
    let indices = code.iota(&indices_ty, last);
    let sort = ops::Sort { dimension: last as i64, is_stable: true };
    let sort = code.add(Op::Sort(sort), &[operand, indices], [ty.clone().into(), indices_ty.into()]);
    let sorted: Vec<ValueId> = code.body.op(sort).results.collect();
    let place = code.place;
    let element: Type = TensorType::new(ty.element_type(), []).into();
    let index: Type = TensorType::new(ElementType::I32, []).into();
    let arguments = code.enter_region(sort, [element.clone(), element, index.clone(), index]);
    let comparison_direction = if is_largest { ComparisonDirection::Gt } else { ComparisonDirection::Lt };
    let is_float = ty.element_type().is_float();
    let compare_type = if is_float { ComparisonType::TotalOrder } else { ComparisonType::NoType };
    let compare = Op::Compare(ops::Compare { comparison_direction, compare_type });
    let predicate = code.value(compare, &arguments[..2], TensorType::new(ElementType::I1, []));
    code.add(Op::Return(ops::Return {}), &[predicate], []);
    code.place = place;
    sorted.into_iter().map(|sorted| code.slice(sorted, last, 0, k)).collect()
}
