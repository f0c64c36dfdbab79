//! The compiler, which checks that the device supports a program, and assigns memory to its values.

use std::collections::HashMap;

use pjrt_plugin::{Error, Result};
use pjrt_stablehlo::ir::{
    Block, BlockId, Body, Definition, ElementType, Function, Op, OpCode, OpId, Operation, Type, ValueId,
};

use crate::address_space::AddressSpace;
use crate::arithmetic::scalar;
use crate::array::Rows;
use crate::element_type::to_pjrt;

/// The operations that the device supports. [`pjrt_stablehlo::passes`] expresses other operations in terms
/// of these.
pub(crate) const OPERATIONS: &[OpCode] = &[
    // Elementwise.
    OpCode::Abs,
    OpCode::Add,
    OpCode::And,
    OpCode::Atan2,
    OpCode::BitcastConvert,
    OpCode::Ceil,
    OpCode::Compare,
    OpCode::Convert,
    OpCode::Cosine,
    OpCode::Divide,
    OpCode::Exponential,
    OpCode::ExponentialMinusOne,
    OpCode::Floor,
    OpCode::Log,
    OpCode::LogPlusOne,
    OpCode::Maximum,
    OpCode::Minimum,
    OpCode::Multiply,
    OpCode::Negate,
    OpCode::Not,
    OpCode::Or,
    OpCode::Power,
    OpCode::Remainder,
    OpCode::Select,
    OpCode::ShiftLeft,
    OpCode::ShiftRightArithmetic,
    OpCode::ShiftRightLogical,
    OpCode::Sine,
    OpCode::Sqrt,
    OpCode::Subtract,
    OpCode::Tanh,
    OpCode::Xor,
    // Movement.
    OpCode::BroadcastInDim,
    OpCode::Concatenate,
    OpCode::Constant,
    OpCode::DynamicSlice,
    OpCode::DynamicUpdateSlice,
    OpCode::Iota,
    OpCode::Pad,
    OpCode::Reshape,
    OpCode::Reverse,
    OpCode::Slice,
    OpCode::Transpose,
    // Combination.
    OpCode::DotGeneral,
    OpCode::Reduce,
    // Control.
    OpCode::If,
    OpCode::While,
    // Only to specify the memory of a value, as JAX does.
    OpCode::CustomCall,
];

/// The custom call by which JAX specifies the memory of a value. It returns its operand.
const PLACEMENT: &str = "annotate_device_placement";

/// The hint of errors about operations and types.
const TYPES: &str = "it computes with f32, booleans and integers of whole bytes";

/// The maximum nesting depth of loops and branches.
const MAX_DEPTH: usize = 64;

/// A function that the device can execute.
pub(crate) struct Program {
    pub(crate) main: Function,
    /// The values, by number.
    pub(crate) values: Vec<Value>,
    /// The size in bytes of the memory that an execution needs in addition to arguments and results.
    pub(crate) scratch_size: usize,
}

/// A value of a program.
pub(crate) struct Value {
    pub(crate) ty: ElementType,
    pub(crate) dims: Box<[i64]>,
    pub(crate) rows: Rows,
    pub(crate) location: Location,
}

/// The location of a value during an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// The value is an argument of the program.
    Argument(usize),
    /// The value is in the scratch memory, at this offset.
    Scratch(usize),
    /// The value is not in memory, because it belongs to the body of a reduction.
    Register,
}

impl Program {
    /// Compiles a function that contains only [`OPERATIONS`].
    ///
    /// # Errors
    ///
    /// Returns UNIMPLEMENTED if the device does not support an operation, with the operation, its types and
    /// its location in the user's program. Returns RESOURCE_EXHAUSTED if an array does not fit into any
    /// memory.
    pub(crate) fn new(main: Function) -> Result<Self> {
        let body = &main.body;
        for (_, op) in body.all_ops() {
            check(body, op)?;
        }
        let values = body.values().map(|(id, _)| value(body, id)).collect::<Result<_>>()?;
        let mut planner = Planner {
            body,
            values,
            space: AddressSpace::new(isize::MAX as usize),
            last_uses: last_uses(body),
        };
        for (index, argument) in main.arguments().iter().enumerate() {
            planner.values[argument.index()].location = Location::Argument(index);
        }
        if let Some(entry) = body.entry() {
            planner.place_block(body.block(entry), 0)?;
        }
        let Planner { values, space, .. } = planner;
        Ok(Self { scratch_size: space.highest(), values, main })
    }
}

fn value(body: &Body, id: ValueId) -> Result<Value> {
    let ty = body.ty(id);
    // `check` reports values of other types with their location, unless they are unused.
    let (element, dims) = array_type(ty).ok_or_else(|| {
        Error::unimplemented(format!("the accelerator does not support values of type {ty}"))
    })?;
    let rows = Rows::of(dims, element.byte_width()).ok_or_else(|| {
        Error::resource_exhausted(format!("the size of an array of type {ty} overflows the address space"))
    })?;
    Ok(Value { ty: element, dims: dims.into(), rows, location: Location::Register })
}

/// Returns the element type and the dimensions of a type that the device supports.
fn array_type(ty: &Type) -> Option<(ElementType, &[i64])> {
    let tensor = ty.as_tensor()?;
    to_pjrt(tensor.element_type())?;
    Some((tensor.element_type(), tensor.static_dims()?))
}

/// Checks that the device supports an operation.
fn check(body: &Body, op: &Operation) -> Result<()> {
    let (name, place) = (op.kind.name(), op.location.brief());
    let values = || op.operands.iter().copied().chain(op.results).map(|value| body.ty(value));
    let mut types = Vec::new();
    for ty in values() {
        let Some((element, _)) = array_type(ty) else {
            let message = format!("the accelerator does not support the type {ty} of {name}, at {place}");
            return Err(Error::unimplemented(message).with_hint(TYPES));
        };
        types.push(element);
    }
    let is_possible = match &op.kind {
        Op::BroadcastInDim(_) | Op::Concatenate(_) | Op::Constant(_) | Op::DynamicSlice(_) => true,
        Op::DynamicUpdateSlice(_) | Op::Iota(_) | Op::Pad(_) | Op::Reshape(_) | Op::Reverse(_) => true,
        Op::Slice(_) | Op::Transpose(_) | Op::If(_) | Op::While(_) => true,
        Op::FuncReturn(_) | Op::Return(_) => true,
        Op::DotGeneral(_) => {
            !types.contains(&ElementType::I1) && types.iter().all(|ty| ty.is_float() == types[0].is_float())
        }
        Op::Reduce(_) => body_ops(body, op).all(|op| is_lanewise(body, op)),
        Op::CustomCall(call) => &*call.call_target_name == PLACEMENT && types.len() == 2,
        _ => is_lanewise(body, op),
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

/// Returns `true` if an operation treats all elements alike, as the operations in the body of a reduction
/// must.
fn is_lanewise(body: &Body, op: &Operation) -> bool {
    let element = |value: ValueId| Some(body.ty(value).as_tensor()?.element_type());
    match &op.kind {
        Op::Constant(_) | Op::Return(_) => true,
        kind => {
            let operand = op.operands.last().and_then(|operand| element(*operand));
            let result = op.results.get(0).and_then(element);
            operand.zip(result).is_some_and(|(operand, result)| scalar(kind, operand, result).is_some())
        }
    }
}

fn body_ops<'a>(body: &'a Body, op: &'a Operation) -> impl Iterator<Item = &'a Operation> {
    let blocks = op.regions.iter().flat_map(move |region| &body.region(*region).blocks);
    blocks.flat_map(move |block| &body.block(*block).ops).map(move |id| body.op(*id))
}

/// Assigns scratch memory to values. The memory of a value is free after the last operation that reads the
/// value.
struct Planner<'a> {
    body: &'a Body,
    values: Vec<Value>,
    space: AddressSpace,
    last_uses: HashMap<OpId, Vec<ValueId>>,
}

impl Planner<'_> {
    fn place_block(&mut self, block: &Block, depth: usize) -> Result<()> {
        let body = self.body;
        for id in &block.ops {
            let op = body.op(*id);
            for result in op.results {
                self.place(result, op)?;
            }
            if matches!(op.kind, Op::If(_) | Op::While(_)) {
                if depth == MAX_DEPTH {
                    let place = op.location.brief();
                    return Err(Error::unimplemented(format!(
                        "the accelerator supports at most {MAX_DEPTH} nested loops and branches, exceeded at {place}"
                    )));
                }
                for index in 0..op.regions.len() {
                    let Some(region) = body.region_block(*id, index) else { continue };
                    // The state of a loop is in the memory of its results.
                    for (argument, result) in region.arguments.iter().zip(op.results) {
                        self.values[argument.index()].location = self.values[result.index()].location;
                    }
                    self.place_block(region, depth + 1)?;
                }
            }
            for value in self.last_uses.remove(id).unwrap_or_default() {
                if let Location::Scratch(address) = self.values[value.index()].location {
                    self.space.free(address);
                }
            }
        }
        Ok(())
    }

    fn place(&mut self, value: ValueId, op: &Operation) -> Result<()> {
        let size = self.values[value.index()].rows.padded_size();
        let address = self.space.allocate(size, String::new()).ok_or_else(|| {
            let (name, place) = (op.kind.name(), op.location.brief());
            Error::resource_exhausted(format!(
                "the scratch memory for the result of {name} overflows the address space, at {place}"
            ))
        })?;
        self.values[value.index()].location = Location::Scratch(address);
        Ok(())
    }
}

/// Returns the results of operations, by the last operation of their block that reads them or contains an
/// operation that does. Unused results are listed under the operation itself.
fn last_uses(body: &Body) -> HashMap<OpId, Vec<ValueId>> {
    let mut last: HashMap<ValueId, OpId> = HashMap::new();
    for (id, op) in body.all_ops() {
        last.extend(op.results.map(|result| (result, id)));
    }
    for (id, op) in body.all_ops() {
        for operand in &op.operands {
            let Definition::Result { op: maker, .. } = body.value(*operand).definition else { continue };
            let user = ancestor(body, id, body.op(maker).block);
            if let (Some(user), Some(last)) = (user, last.get_mut(operand)) {
                // The operations of a block are numbered in order.
                *last = user.max(*last);
            }
        }
    }
    let mut by_op: HashMap<OpId, Vec<ValueId>> = HashMap::new();
    for (value, op) in last {
        by_op.entry(op).or_default().push(value);
    }
    by_op
}

/// Returns the operation of a block that is, or contains, the given operation.
fn ancestor(body: &Body, mut op: OpId, block: BlockId) -> Option<OpId> {
    while body.op(op).block != block {
        op = body.region(body.block(body.op(op).block).region).parent?;
    }
    Some(op)
}
