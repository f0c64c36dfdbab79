//! Programs of one operation.

use std::collections::{HashMap, VecDeque};

use super::functions::called_from;
use crate::Error;
use crate::ir::ops::FuncReturn;
use crate::ir::{
    BlockId, Body, Function, FunctionType, Location, Module, Op, OpCode, OpId, Operation, ValueId,
};

/// The maximum number of operations that compute the shapes of an isolated operation.
const MAX_SHAPE_OPS: usize = 256;

/// Returns a program of one operation of a program: `main` takes the operation's operands, and returns its results.
///
/// The operation keeps its attributes, its location, its regions, and the functions that it calls. Values that its regions
/// use are arguments, too. Operands that determine shapes, such as that of `dynamic_reshape`, are computed as in the program
/// if that takes only constants.
///
/// ```
/// use pjrt_stablehlo::passes::isolate;
///
/// let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
///     %0 = stablehlo.sine %x : tensor<4xf32>
///     %1 = stablehlo.add %0, %0 : tensor<4xf32>
///     return %1 : tensor<4xf32>
/// }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// let main = module.main().unwrap();
/// let (add, _) = main.ops().nth(1).unwrap();
/// let alone = isolate(&module, main, add)?;
/// let ops: Vec<_> = alone.main().unwrap().ops().map(|(_, op)| op.kind.name()).collect();
/// assert_eq!(ops, ["stablehlo.add", "func.return"]);
/// assert_eq!(alone.main().unwrap().arguments().len(), 1);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
///
/// # Errors
/// Returns the error of [`verify`](crate::verify) if the operation is not valid on its own, such as a terminator.
pub fn isolate(module: &Module, function: &Function, op: OpId) -> Result<Module, Error> {
    let old = &function.body;
    let mut copy = Copy { old, new: Body::new(), values: HashMap::new() };
    let block = copy.new.add_block(Body::ROOT);
    let mut before = Vec::new();
    let is_shaped = needs_constants(old.op(op));
    for value in used_values(old, op) {
        let computed = if is_shaped { constant_slice(old, value) } else { None };
        match computed {
            Some(ops) => before.extend(ops),
            None => {
                copy.values.insert(value, copy.new.add_argument(block, old.ty(value).clone()));
            }
        }
    }
    before.sort_unstable();
    before.dedup();
    for id in before {
        copy.op(block, id);
    }
    let new = copy.op(block, op);
    copy.regions(op, new);
    let results: Vec<ValueId> = copy.new.op(new).results.collect();
    let types = |values: &[ValueId]| values.iter().map(|&value| copy.new.ty(value).clone()).collect();
    let ty = FunctionType { inputs: types(&copy.new.block(block).arguments), results: types(&results) };
    copy.new.add_op(block, FuncReturn {}.into(), results, [], Location::UNKNOWN);
    let main = Function { name: "main".into(), ty, body: copy.new, ..Function::default() };
    let alone = with_callees(module, main);
    crate::verify(&alone)?;
    Ok(alone)
}

/// A function's operations, copied into a new body.
struct Copy<'m> {
    old: &'m Body,
    new: Body,
    values: HashMap<ValueId, ValueId>,
}

impl Copy<'_> {
    /// Copies an operation without its regions.
    fn op(&mut self, block: BlockId, id: OpId) -> OpId {
        let op = self.old.op(id);
        let operands: Vec<ValueId> = op.operands.iter().map(|value| self.values[value]).collect();
        let types: Vec<_> = op.results.map(|result| self.old.ty(result).clone()).collect();
        let new = self.new.add_op(block, op.kind.clone(), operands, types, op.location.clone());
        self.new.op_mut(new).attributes = op.attributes.clone();
        self.values.extend(op.results.zip(self.new.op(new).results));
        new
    }

    /// Copies the regions of an operation, and those in them. Outer blocks come first, because inner ones use their values.
    fn regions(&mut self, op: OpId, new: OpId) {
        let mut work = VecDeque::from([(op, new)]);
        while let Some((op, new)) = work.pop_front() {
            for &region in &self.old.op(op).regions {
                let target = self.new.add_region(Some(new));
                for &block in &self.old.region(region).blocks {
                    let new_block = self.new.add_block(target);
                    for &argument in &self.old.block(block).arguments {
                        let ty = self.old.ty(argument).clone();
                        let value = self.new.add_argument(new_block, ty);
                        self.values.insert(argument, value);
                    }
                    for &inner in &self.old.block(block).ops {
                        work.push_back((inner, self.op(new_block, inner)));
                    }
                }
            }
        }
    }
}

/// Returns the values that an operation uses, or that its regions use and do not define, each once, in the order of their uses.
fn used_values(body: &Body, id: OpId) -> Vec<ValueId> {
    let (mut used, mut defined) = (Vec::new(), std::collections::HashSet::new());
    let mut seen = std::collections::HashSet::new();
    let mut work = VecDeque::from([id]);
    while let Some(id) = work.pop_front() {
        let op = body.op(id);
        used.extend(op.operands.iter().copied().filter(|&value| seen.insert(value)));
        for &block in op.regions.iter().flat_map(|&region| &body.region(region).blocks) {
            defined.extend(body.block(block).arguments.iter().copied());
            for (inner, op) in body.block_ops(block) {
                defined.extend(op.results);
                work.push_back(inner);
            }
        }
    }
    used.retain(|value| !defined.contains(value));
    used
}

/// Returns `true` if the values of operands determine the types of an operation's results.
fn needs_constants(op: &Operation) -> bool {
    use OpCode as O;
    matches!(
        op.kind.code(),
        O::DynamicBroadcastInDim
            | O::DynamicConv
            | O::DynamicGather
            | O::DynamicIota
            | O::DynamicPad
            | O::DynamicReshape
            | O::RealDynamicSlice
            | O::SetDimensionSize
    )
}

/// Returns the operations that compute a tensor of integers from constants; `None` if it depends on arguments, or takes many
/// operations.
fn constant_slice(body: &Body, value: ValueId) -> Option<Vec<OpId>> {
    let mut ops = Vec::new();
    let mut work = vec![value];
    while let Some(value) = work.pop() {
        let ty = body.ty(value).as_tensor()?;
        if !ty.element_type().is_integer() && ty.element_type() != crate::ir::ElementType::I1 {
            return None;
        }
        let id = body.defining_op(value)?;
        if ops.contains(&id) {
            continue;
        }
        let op = body.op(id);
        let is_source = op.operands.is_empty() && !matches!(op.kind, Op::Constant(_) | Op::Iota(_));
        if !op.regions.is_empty() || is_source || ops.len() == MAX_SHAPE_OPS {
            return None;
        }
        ops.push(id);
        work.extend(&op.operands);
    }
    Some(ops)
}

/// Returns a module like another with this function, and with the functions that it calls.
fn with_callees(module: &Module, main: Function) -> Module {
    let mut alone = module.without_functions();
    let mut work = called_from(module, &main);
    let mut needed = vec![false; module.functions().len()];
    while let Some(index) = work.pop() {
        if !std::mem::replace(&mut needed[index], true) {
            work.extend(called_from(module, &module.functions()[index]));
        }
    }
    let _ = alone.add_function(main);
    for (function, _) in module.functions().iter().zip(needed).filter(|(_, needed)| *needed) {
        // A function that calls `main` makes the module invalid, which the verifier reports.
        let _ = alone.add_function(function.clone());
    }
    alone
}
