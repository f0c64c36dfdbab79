//! The types of operands and results that operations accept: the specification's tables of inputs and outputs.

use std::ops::BitOr;

use crate::Constraint::{I, O};
use crate::Error;
use crate::infer::Context;
use crate::ir::{DYNAMIC, ElementKind, ElementType, OpCode, TensorType, Type};

/// A set of types.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Set(u32);

impl BitOr for Set {
    type Output = Set;

    fn bitor(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }
}

macro_rules! sets {
    ($($name:ident = $bit:literal $text:literal,)*) => {
        $(const $name: Set = Set(1 << $bit);)*
        const NAMES: &[(Set, &str)] = &[$(($name, $text)),*];
    };
}

sets! {
    BOOL = 0 "booleans",
    SIGNED = 1 "signed integers",
    UNSIGNED = 2 "unsigned integers",
    FLOAT = 3 "floats",
    COMPLEX = 4 "complex numbers",
    QUANTIZED = 5 "per-tensor quantized numbers",
    PER_AXIS = 6 "per-axis quantized numbers",
    INDEX = 7 "index",
    I32 = 8 "i32",
    F32_F64 = 10 "f32 or f64",
    TOKEN = 11 "a token",
    TUPLE = 12 "a tuple",
    BUFFER = 13 "a buffer",
    FUTURE = 14 "a future",
}

/// Further properties of the tensors in a set: rank 0, rank 1, static sizes, and static sizes except for at most one
/// dimension with a bound.
const SCALAR: Set = Set(1 << 28);
const VECTOR: Set = Set(1 << 29);
const STATIC: Set = Set(1 << 30);
const BOUNDED: Set = Set(1 << 31);

macro_rules! unions {
    ($($name:ident = $($set:ident)|+;)*) => {
        $(const $name: Set = Set($($set.0)|+);)*
    };
}

unions! {
    INTEGER = SIGNED | UNSIGNED;
    LOGICAL = BOOL | INTEGER;
    // The specification's "floating-point or complex or quantized" and similar sets.
    REAL = FLOAT | QUANTIZED;
    FUNCTION = FLOAT | COMPLEX | QUANTIZED;
    ARITHMETIC = INTEGER | FUNCTION;
    SIGNED_ARITHMETIC = SIGNED | FUNCTION;
    NUMBERS = LOGICAL | FLOAT | COMPLEX;
    TENSOR = NUMBERS | QUANTIZED;
    ANY_TENSOR = TENSOR | PER_AXIS;
    MAGNITUDE = SIGNED | REAL;
    PLAIN_REAL = LOGICAL | FLOAT;
    INTEGER_OR_FLOAT = INTEGER | FLOAT;
    FLOAT_OR_COMPLEX = FLOAT | COMPLEX;
    ANY_QUANTIZED = QUANTIZED | PER_AXIS;
    FLOAT_OR_QUANTIZED = FLOAT | ANY_QUANTIZED;
    INDICES = INTEGER | INDEX;
    SHAPE = INDICES | VECTOR;
    SCALAR_TENSOR = TENSOR | SCALAR;
    SCALAR_INTEGER = INTEGER | SCALAR;
    SCALAR_REAL = PLAIN_REAL | SCALAR;
    SCALAR_BOOL = BOOL | SCALAR;
    SCALAR_I32 = I32 | SCALAR;
    SCALAR_UNSIGNED = UNSIGNED | SCALAR;
    VECTOR_INTEGER = INTEGER | VECTOR;
    VECTOR_REAL = REAL | VECTOR;
    STATIC_ARITHMETIC = ARITHMETIC | STATIC;
    STATIC_WORDS = INTEGER_OR_FLOAT | STATIC;
    BOUNDED_TENSOR = ANY_TENSOR | BOUNDED;
    STATE = ANY_TENSOR | TOKEN;
    STATE_OR_BUFFER = STATE | BUFFER;
    STATIC_STATE = STATE | STATIC;
    VALUE = STATE_OR_BUFFER | TUPLE;
}

/// Every type.
const ANYTHING: Set = Set(u32::MAX);

/// The table of [`interface`]: the sets of each operation's operand groups, and those of its results.
macro_rules! interfaces {
    ($($($code:ident)|+: [$($operand:ident),*] -> [$($result:ident),*],)*) => {
        /// Returns the sets of types of an operation's operand groups and result groups.
        fn interface(code: OpCode) -> (&'static [Set], &'static [Set]) {
            match code {
                $($(OpCode::$code)|+ => (&[$($operand),*], &[$($result),*]),)*
            }
        }
    };
}

interfaces! {
    Abs: [SIGNED_ARITHMETIC] -> [MAGNITUDE],
    Add: [ANY_TENSOR, ANY_TENSOR] -> [ANY_TENSOR],
    AfterAll: [TOKEN] -> [TOKEN],
    AllGather | AllReduce | AllToAll | CollectiveBroadcast | CollectivePermute | CollectiveReduce
    | CrossReplicaSum | ReduceScatter: [TENSOR] -> [TENSOR],
    And | Or | Xor: [LOGICAL, LOGICAL] -> [LOGICAL],
    AsyncStart: [TENSOR] -> [FUTURE],
    AsyncDone: [FUTURE] -> [TENSOR],
    Atan2: [FUNCTION, FUNCTION] -> [FUNCTION],
    BatchNormGrad: [REAL, VECTOR_REAL, VECTOR_REAL, VECTOR_REAL, REAL] -> [REAL, VECTOR_REAL, VECTOR_REAL],
    BatchNormInference: [REAL, VECTOR_REAL, VECTOR_REAL, VECTOR_REAL, VECTOR_REAL] -> [REAL],
    BatchNormTraining: [REAL, VECTOR_REAL, VECTOR_REAL] -> [REAL, VECTOR_REAL, VECTOR_REAL],
    BitcastConvert | Transpose: [ANY_TENSOR] -> [ANY_TENSOR],
    BroadcastInDim | Reshape: [ANY_TENSOR] -> [BOUNDED_TENSOR],
    Broadcast: [TENSOR] -> [ANY_TENSOR],
    Case: [SCALAR_I32] -> [STATE],
    Cbrt | Cosine | Exponential | ExponentialMinusOne | Log | LogPlusOne | Logistic | Rsqrt | Sine | Sqrt
    | Tan | Tanh | Cholesky | TriangularSolve: [FUNCTION, FUNCTION] -> [FUNCTION],
    Ceil | Floor | RoundNearestAfz | RoundNearestEven | ReducePrecision: [REAL] -> [REAL],
    Clamp: [TENSOR, TENSOR, TENSOR] -> [TENSOR],
    Compare: [TENSOR, TENSOR] -> [BOOL],
    Complex: [F32_F64, F32_F64] -> [COMPLEX],
    Composite | CustomCall | FuncCall | FuncReturn | Return | SdyReturn | ShardingConstraint
    | ShardingGroup | Reshard | ManualComputation | Other: [ANYTHING] -> [ANYTHING],
    Concatenate | Map | Reverse | Slice: [TENSOR] -> [TENSOR],
    Constant: [] -> [ANY_TENSOR],
    Convert: [NUMBERS] -> [NUMBERS],
    Convolution | DotGeneral | Dot: [TENSOR, ANY_TENSOR] -> [ANY_TENSOR],
    CountLeadingZeros | PopulationCount: [INTEGER] -> [INTEGER],
    CreateToken: [] -> [TOKEN],
    Divide | Power | Remainder | Subtract: [ARITHMETIC, ARITHMETIC] -> [ARITHMETIC],
    DynamicBroadcastInDim | DynamicReshape: [ANY_TENSOR, SHAPE] -> [ANY_TENSOR],
    DynamicConv: [TENSOR, ANY_TENSOR, INTEGER] -> [ANY_TENSOR],
    DynamicGather: [TENSOR, INTEGER, VECTOR_INTEGER] -> [TENSOR],
    DynamicIota: [SHAPE] -> [TENSOR],
    DynamicPad: [TENSOR, SCALAR_TENSOR, SHAPE, SHAPE, SHAPE] -> [TENSOR],
    DynamicSlice: [TENSOR, SCALAR_INTEGER] -> [TENSOR],
    DynamicUpdateSlice: [TENSOR, TENSOR, SCALAR_INTEGER] -> [TENSOR],
    Einsum: [TENSOR, TENSOR] -> [TENSOR],
    Fft: [FLOAT_OR_COMPLEX] -> [FLOAT_OR_COMPLEX],
    Gather: [TENSOR, INTEGER] -> [TENSOR],
    GetDimensionSize: [ANY_TENSOR] -> [SCALAR_I32],
    GetTupleElement: [TUPLE] -> [VALUE],
    If: [SCALAR_BOOL] -> [STATE],
    Imag | Real: [FLOAT_OR_COMPLEX] -> [FLOAT],
    Infeed | Recv: [TOKEN] -> [STATIC_STATE],
    Iota: [] -> [STATIC_ARITHMETIC],
    IsFinite: [REAL] -> [BOOL],
    Maximum | Minimum | Multiply: [TENSOR, TENSOR] -> [TENSOR],
    Negate: [ARITHMETIC] -> [ARITHMETIC],
    Not: [LOGICAL] -> [LOGICAL],
    OptimizationBarrier: [STATE] -> [STATE],
    Outfeed | Send: [ANY_TENSOR, TOKEN] -> [TOKEN],
    Pad: [TENSOR, SCALAR_TENSOR] -> [TENSOR],
    PartitionId | ReplicaId: [] -> [SCALAR_UNSIGNED],
    RealDynamicSlice: [TENSOR, SHAPE, SHAPE, SHAPE] -> [TENSOR],
    // MLIR's verifier accepts initial values of higher rank if the region's arguments have that rank too.
    Reduce | ReduceWindow: [TENSOR, TENSOR] -> [TENSOR],
    Rng: [SCALAR_REAL, SCALAR_REAL, SHAPE] -> [PLAIN_REAL],
    RngBitGenerator: [INTEGER_OR_FLOAT] -> [INTEGER_OR_FLOAT, STATIC_WORDS],
    Scatter: [TENSOR, INDICES, TENSOR] -> [TENSOR],
    Select: [BOOL, TENSOR, TENSOR] -> [TENSOR],
    SelectAndScatter: [TENSOR, TENSOR, SCALAR_TENSOR] -> [TENSOR],
    SetDimensionSize: [TENSOR, SCALAR_I32] -> [TENSOR],
    ShiftLeft | ShiftRightArithmetic | ShiftRightLogical: [INTEGER, INTEGER] -> [INTEGER],
    Sign: [SIGNED_ARITHMETIC] -> [SIGNED_ARITHMETIC],
    Sort: [TENSOR] -> [TENSOR],
    TorchIndexSelect: [TENSOR, INTEGER] -> [TENSOR],
    Tuple: [VALUE] -> [TUPLE],
    UnaryEinsum: [TENSOR] -> [TENSOR],
    UniformDequantize: [ANY_QUANTIZED] -> [FLOAT],
    UniformQuantize: [FLOAT_OR_QUANTIZED] -> [ANY_QUANTIZED],
    While: [STATE_OR_BUFFER] -> [STATE_OR_BUFFER],
}

/// Returns `true` if all sizes are static, except for at most one that has a bound.
fn is_bounded(tensor: &TensorType) -> bool {
    let unknown = tensor.dims().iter().filter(|&&size| size == DYNAMIC).count();
    let bounded = tensor.bounds().iter().filter(|&&bound| bound != DYNAMIC).count();
    !tensor.is_dynamic() || unknown == 1 && bounded == 1
}

impl Set {
    fn has(self, other: Set) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the sets that contain a tensor's elements.
    fn of_elements(tensor: &TensorType) -> Set {
        if let Some(quantization) = tensor.quantization() {
            return if quantization.axis.is_some() { PER_AXIS } else { QUANTIZED };
        }
        match (tensor.element_type(), tensor.element_type().kind()) {
            // A precision, and integers of a width that StableHLO does not have, are not types of elements.
            (ElementType::Tf32 | ElementType::Si1 | ElementType::Ui1, _) => Set(0),
            (ElementType::Index, _) => INDEX,
            (ElementType::I32, _) => SIGNED | I32,
            (ElementType::F32 | ElementType::F64, _) => FLOAT | F32_F64,
            (_, ElementKind::Boolean) => BOOL,
            (_, ElementKind::SignedInteger) => SIGNED,
            (_, ElementKind::UnsignedInteger) => UNSIGNED,
            (_, ElementKind::Float) => FLOAT,
            (_, ElementKind::Complex) => COMPLEX,
            (_, ElementKind::Quantized) => Set(0),
        }
    }

    fn contains(self, ty: &Type) -> bool {
        if self == ANYTHING {
            return true;
        }
        match ty {
            Type::Tensor(tensor) => {
                self.has(Set::of_elements(tensor))
                    && (!self.has(SCALAR) || tensor.rank() == 0)
                    && (!self.has(VECTOR) || tensor.rank() == 1)
                    && (!self.has(STATIC) || !tensor.is_dynamic())
                    && (!self.has(BOUNDED) || is_bounded(tensor))
            }
            Type::Token => self.has(TOKEN),
            Type::Tuple(_) => self.has(TUPLE),
            Type::Buffer(_) => self.has(BUFFER),
            Type::Future(_) => self.has(FUTURE),
            _ => false,
        }
    }

    /// Returns a description of the set, for messages.
    fn text(self) -> String {
        let is_element = |set: Set| set.0 < TOKEN.0;
        let names = |elements: bool| {
            NAMES
                .iter()
                .filter(move |(set, _)| self.has(*set) && is_element(*set) == elements)
                .map(|(_, name)| *name)
        };
        let elements: Vec<&str> = names(true).collect();
        let mut alternatives = Vec::new();
        if !elements.is_empty() {
            let modifiers = [
                (SCALAR, "a tensor of rank 0"),
                (VECTOR, "a tensor of rank 1"),
                (STATIC, "a tensor of static shape"),
                (BOUNDED, "a tensor of static shape, or with one bounded dimension,"),
            ];
            let modifier = modifiers.into_iter().find(|(set, _)| self.has(*set));
            let tensor = modifier.map_or("a tensor", |(_, text)| text);
            alternatives.push(format!("{tensor} of {}", elements.join(", ")));
        }
        alternatives.extend(names(false).map(str::to_owned));
        alternatives.join(", or ")
    }
}

/// Checks the types of an operation's operands.
pub(super) fn operands(cx: &Context<'_>) -> Result<(), Error> {
    let code = cx.op.kind.code();
    let (sets, _) = interface(code);
    let mut index = 0;
    for (group, &set) in cx.op.info().operands.iter().zip(sets).map(|(_, set)| set).enumerate() {
        // The specification counts the algorithm as an input.
        let number = if code == OpCode::RngBitGenerator { 2 } else { group + 1 };
        for _ in cx.op.operand_group(group) {
            let found = cx.operand_type(index);
            cx.require(I(number as u8), set.contains(found), || {
                format!("{}: expected {}, found {found}", cx.operand_name(index), set.text())
            })?;
            index += 1;
        }
    }
    Ok(())
}

/// Checks the types of an operation's results.
pub(super) fn results(cx: &Context<'_>) -> Result<(), Error> {
    let (_, sets) = interface(cx.op.kind.code());
    for (index, value) in cx.op.results.enumerate() {
        let Some(&set) = sets.get(index).or(sets.last()) else { continue };
        let found = cx.body.ty(value);
        cx.require(O(index.min(sets.len() - 1) as u8 + 1), set.contains(found), || {
            format!("result {index}: expected {}, found {found}", set.text())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operand_and_result_of_the_op_table_has_a_set() {
        for &code in OpCode::ALL {
            let (operands, results) = interface(code);
            let info = code.info();
            assert!(operands.len() >= info.operands.len(), "{}", info.name);
            assert_eq!(results.is_empty(), results.len() < info.results.len(), "{}", info.name);
        }
    }
}
