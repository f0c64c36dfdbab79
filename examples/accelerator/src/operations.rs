//! The operations that the compiler translates, and the check of programs for others.

use pjrt_plugin::{Error, Result};
use pjrt_stablehlo::ir::scalar;
use pjrt_stablehlo::ir::{Body, ElementKind, ElementType, Op, OpCode, Operation, Trait, ValueId};

/// The operations that the compiler translates. [`pjrt_stablehlo::passes`] expresses other operations in terms of these.
#[rustfmt::skip]
pub(crate) const OPERATIONS: &[OpCode] = &[
    // Elementwise.
    OpCode::Abs, OpCode::Add, OpCode::And, OpCode::Atan2, OpCode::BitcastConvert, OpCode::Ceil, OpCode::Compare,
    OpCode::Convert, OpCode::Cosine, OpCode::Divide, OpCode::Exponential, OpCode::Floor, OpCode::Log, OpCode::Maximum,
    OpCode::Minimum, OpCode::Multiply, OpCode::Negate, OpCode::Not, OpCode::Or, OpCode::Power, OpCode::Remainder,
    OpCode::Select, OpCode::ShiftLeft, OpCode::ShiftRightArithmetic, OpCode::ShiftRightLogical, OpCode::Sine,
    OpCode::Sqrt, OpCode::Subtract, OpCode::Tanh, OpCode::Xor,
    // Movement.
    OpCode::BroadcastInDim, OpCode::Concatenate, OpCode::Constant, OpCode::DynamicSlice, OpCode::DynamicUpdateSlice,
    OpCode::Gather, OpCode::Iota, OpCode::Pad, OpCode::Reshape, OpCode::Reverse, OpCode::Scatter, OpCode::Slice,
    OpCode::Transpose,
    // Combination.
    OpCode::Convolution, OpCode::DotGeneral, OpCode::Reduce, OpCode::ReduceWindow,
    // Control.
    OpCode::If, OpCode::While,
    // Only to specify the memory of a value, as JAX does.
    OpCode::CustomCall,
];

/// The custom call by which JAX specifies the memory of a value. It returns its operand.
const PLACEMENT: &str = "annotate_device_placement";

/// The hint of errors about operations and types.
const TYPES: &str = "it computes with f32, booleans and integers of whole bytes; the only convolutions are those of one group";

/// Returns `true` if the device computes with a type.
pub(crate) fn is_supported(ty: ElementType) -> bool {
    match ty.kind() {
        ElementKind::Boolean => true,
        ElementKind::Float => ty == ElementType::F32,
        ElementKind::SignedInteger | ElementKind::UnsignedInteger => [8, 16, 32, 64].contains(&ty.bits()),
        _ => false,
    }
}

/// Returns `true` if an operation computes each element of its result from one element of each operand.
pub(crate) fn is_elementwise(op: &Op) -> bool {
    op.info().has(Trait::Elementwise)
        || matches!(op, Op::Select(_) | Op::BitcastConvert(_) | Op::Convert(_) | Op::Compare(_))
}

/// Checks that the device supports an operation.
pub(crate) fn check(body: &Body, op: &Operation) -> Result<()> {
    let (name, place) = (op.kind.name(), op.location.brief());
    let values = || op.operands.iter().copied().chain(op.results).map(|value| body.ty(value));
    let mut types = Vec::new();
    for ty in values() {
        let tensor = ty.as_tensor().filter(|tensor| tensor.static_dims().is_some());
        let Some(element) = tensor.map(|tensor| tensor.element_type()).filter(|ty| is_supported(*ty)) else {
            let message = format!("the accelerator does not support the type {ty} of {name}, at {place}");
            return Err(Error::unimplemented(message).with_hint(TYPES));
        };
        types.push(element);
    }
    let is_possible = match &op.kind {
        Op::DotGeneral(_) => can_multiply(&types),
        Op::Convolution(conv) => {
            conv.feature_group_count * conv.batch_group_count == 1 && can_multiply(&types)
        }
        Op::Reduce(_) | Op::ReduceWindow(_) | Op::Scatter(_) => {
            region_ops(body, op).all(|op| is_scalar(body, op))
        }
        Op::CustomCall(call) => &*call.call_target_name == PLACEMENT && types.len() == 2,
        kind if is_elementwise(kind) => is_scalar(body, op),
        kind => OPERATIONS.contains(&kind.code()) || matches!(kind, Op::FuncReturn(_) | Op::Return(_)),
    };
    if is_possible {
        return Ok(());
    }
    let target = match &op.kind {
        Op::CustomCall(call) => format!(" @{}", call.call_target_name),
        _ => String::new(),
    };
    let types: Vec<String> = values().map(ToString::to_string).collect();
    let types = types.join(", ");
    let message =
        format!("the accelerator does not support {name}{target} with the types {types}, at {place}");
    Err(Error::unimplemented(message).with_hint(TYPES))
}

/// Returns `true` if the processor can multiply arrays of these types.
fn can_multiply(types: &[ElementType]) -> bool {
    !types.contains(&ElementType::I1) && types.iter().all(|ty| ty.is_float() == types[0].is_float())
}

/// Returns `true` if a kernel can contain the operation.
fn is_scalar(body: &Body, op: &Operation) -> bool {
    let element = |value: ValueId| Some(body.ty(value).as_tensor()?.element_type());
    match &op.kind {
        Op::Constant(_) | Op::Return(_) => true,
        kind => {
            let operand = op.operands.last().and_then(|operand| element(*operand));
            let result = op.results.get(0).and_then(element);
            operand
                .zip(result)
                .is_some_and(|(operand, result)| scalar::function(kind, operand, result).is_some())
        }
    }
}

/// Returns the operations in the regions of an operation.
fn region_ops<'a>(body: &'a Body, op: &'a Operation) -> impl Iterator<Item = &'a Operation> {
    let blocks = op.regions.iter().flat_map(move |region| &body.region(*region).blocks);
    blocks.flat_map(move |block| &body.block(*block).ops).map(move |id| body.op(*id))
}
