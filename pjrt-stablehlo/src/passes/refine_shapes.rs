//! Refinement of a program's shapes to those of its arguments.
//!
//! The pass corresponds to the passes `stablehlo-refine-arguments`, `stablehlo-refine-shapes` and
//! `stablehlo-canonicalize-dynamism`, which hosts run on programs with symbolic shapes.

use super::dynamic_calls;
use super::functions::called_from;
use super::rewrite::{Pass, Replacement, Rewriter, is_dynamic, meet};
use super::rules::{CHLO_RULES, of_known_sizes, overrides_decomposition, rewrite_of, scan_composite};
use crate::build::Builder;
use crate::infer::types_compatible;
use crate::ir::{
    Attribute, BlockId, Body, DictionaryAttribute, Function, FunctionType, Literal, LiteralData, Location,
    Module, Op, OpId, Operation, TensorType, Type, ValueId, Visibility,
};
use crate::{Error, ErrorKind};

/// An argument of `main`, for [`refine_shapes`].
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// The type of the argument. The argument remains.
    Type(Type),
    /// The value of the argument, such as a size that the program takes as a number. The argument is removed.
    Value(Literal),
}

impl From<Type> for Argument {
    fn from(ty: Type) -> Self {
        Argument::Type(ty)
    }
}

impl From<TensorType> for Argument {
    fn from(ty: TensorType) -> Self {
        Argument::Type(ty.into())
    }
}

impl From<Literal> for Argument {
    fn from(value: Literal) -> Self {
        Argument::Value(value)
    }
}

/// Replaces the dynamic sizes of a program (`tensor<?x4xf32>`) by those that follow from the arguments of `main`.
/// `arguments` has one element for each argument.
///
/// Programs with symbolic shapes, such as those of `jax.export`, need this pass before [`decompose`](super::decompose),
/// or before a compiler that requires static shapes:
///
/// * The types of values are refined from those of operands, including in regions and called functions.
/// * Sizes, and small integers that are computed from them, become constants.
/// * The operations `dynamic_*`, `real_dynamic_slice` and `get_dimension_size` become equivalents with attributes.
/// * Custom calls `shape_assertion`, with which JAX checks shapes, are evaluated and removed.
/// * Custom calls `stablehlo.dynamic_reduce_window`, `stablehlo.dynamic_rng_bit_generator` and
///   `stablehlo.dynamic_top_k` become the operations that they name.
/// * Custom calls whose results have static shapes lose the operands with these shapes (`indices_of_shape_operands`).
/// * Calls of functions to which one of these changes applies are inlined.
///
/// Sizes that depend on the data of the arguments remain dynamic. Functions that `main` does not call are not changed.
///
/// # Errors
/// * [`ErrorKind::Invalid`] if the program violates a rule of StableHLO ([`verify`](crate::verify)), or violates one with
///   the types of `arguments`; if it has no function `main`; if `arguments` do not fit the number or the types of `main`'s
///   arguments; or if a `shape_assertion` does not hold, with its message.
/// * [`ErrorKind::TooLarge`] if inlining makes the program larger than
///   [`limits::MAX_INLINED_OPS`](crate::limits::MAX_INLINED_OPS).
///
/// ```
/// use pjrt_stablehlo::passes::{Argument, refine_shapes};
/// use pjrt_stablehlo::ir::{ElementType, TensorType};
///
/// let program = "func.func @main(%x: tensor<?x4xf32>) -> tensor<?xf32> {
///     %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
///     %four = stablehlo.constant dense<4> : tensor<i32>
///     %size = stablehlo.multiply %n, %four : tensor<i32>
///     %shape = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
///     %flat = stablehlo.dynamic_reshape %x, %shape : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>
///     return %flat : tensor<?xf32>
/// }";
/// let module = pjrt_stablehlo::parse(program.as_bytes().to_vec())?;
/// let ty = TensorType::new(ElementType::F32, [3, 4]);
/// let module = refine_shapes(&module, &[Argument::Type(ty.into())])?;
/// assert_eq!(module.main().unwrap().result_types()[0].to_string(), "tensor<12xf32>");
/// assert_eq!(module.op_counts().into_keys().collect::<Vec<_>>(), ["func.return", "stablehlo.reshape"]);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
pub fn refine_shapes(module: &Module, arguments: &[Argument]) -> Result<Module, Error> {
    crate::verify(module)?;
    let main = module.main().ok_or_else(|| invalid("the module has no function 'main'"))?;
    check_arguments(main, arguments)?;
    let mut refined_once = refined_main(module, main, arguments)?;
    drop_shape_operands(&mut refined_once.body);
    // The second run removes computations of shapes that the first has made unused.
    let refined = with_main(module, main, refined_once)?;
    let main = refined.main().ok_or_else(|| invalid("the module has no function 'main'"))?;
    let types: Vec<Argument> = main.argument_types().iter().cloned().map(Argument::Type).collect();
    let refined = with_main(&refined, main, refined_main(&refined, main, &types)?)?;
    crate::verify(&refined)?;
    Ok(refined)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

fn check_arguments(main: &Function, arguments: &[Argument]) -> Result<(), Error> {
    let declared = main.argument_types();
    if declared.len() != arguments.len() {
        let message = format!("expected {} arguments of 'main', found {}", declared.len(), arguments.len());
        return Err(invalid(message));
    }
    for (index, (declared, argument)) in declared.iter().zip(arguments).enumerate() {
        let ty = match argument {
            Argument::Type(ty) => ty.clone(),
            Argument::Value(value) => value.ty().clone().into(),
        };
        if !types_compatible(declared, &ty) {
            return Err(invalid(format!("argument {index} of 'main': expected {declared}, found {ty}")));
        }
    }
    Ok(())
}

/// Returns the module with `main` replaced, and without the private functions that only the old `main` called.
fn with_main(module: &Module, old: &Function, main: Function) -> Result<Module, Error> {
    let functions = module.functions();
    let called = |function: &Function| called_from(module, function);
    let before = reached(functions.len(), called(old), |index| called(&functions[index]));
    let after = reached(functions.len(), called(&main), |index| called(&functions[index]));
    let mut result = module.without_functions();
    let mut main = Some(main);
    for (index, function) in functions.iter().enumerate() {
        let is_private = function.visibility == Some(Visibility::Private);
        let function = match function.name == "main" {
            true => main.take(),
            false if is_private && before[index] && !after[index] => None,
            false => Some(function.clone()),
        };
        if let Some(function) = function {
            result
                .add_function(function)
                .map_err(|function| invalid(format!("there are two functions '{}'", function.name)))?;
        }
    }
    Ok(result)
}

/// Returns the functions that can be reached from `from`, as a flag for each index.
fn reached(count: usize, from: Vec<usize>, called: impl Fn(usize) -> Vec<usize>) -> Vec<bool> {
    let mut found = vec![false; count];
    let mut work = from;
    while let Some(index) = work.pop() {
        if !std::mem::replace(&mut found[index], true) {
            work.extend(called(index));
        }
    }
    found
}

fn refined_main(module: &Module, main: &Function, arguments: &[Argument]) -> Result<Function, Error> {
    let Some(entry) = main.body.entry() else { return Ok(main.clone()) };
    let pass = RefineShapes { inlined: inlined_functions(module) };
    let mut r = Rewriter::new(module, &pass);
    let index = module.function_index("main").expect("the module has a function 'main'");
    r.activate(index, main, Location::UNKNOWN);
    let block = main.body.block(entry);
    let mut values = Vec::with_capacity(arguments.len());
    let mut kept_arguments = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let location = block.argument_locations.get(index).cloned().unwrap_or_default();
        values.push(match argument {
            Argument::Type(ty) => {
                kept_arguments.push(index);
                let value = r.b.body.add_argument(r.b.block, ty.clone());
                r.b.body.set_argument_location(value, location);
                value
            }
            Argument::Value(value) => {
                r.b.location = location;
                r.b.constant(value.clone())
            }
        });
    }
    r.bind_arguments(0, &block.arguments, values)?;
    r.run_from(entry)?;
    let body = std::mem::take(&mut r.b).into_body()?;
    let types = |values: &[ValueId]| values.iter().map(|&value| body.ty(value).clone()).collect();
    let attributes = &main.argument_attributes;
    let function = Function {
        ty: FunctionType {
            inputs: body.entry().map(|entry| types(&body.block(entry).arguments)).unwrap_or_default(),
            results: Vec::new(),
        },
        argument_attributes: kept_arguments
            .iter()
            .filter_map(|&index| attributes.get(index).cloned())
            .collect(),
        body: Body::new(),
        ..main.clone()
    };
    let mut function = Function { body, ..function };
    function.ty.results = function.returned().iter().map(|&value| function.body.ty(value).clone()).collect();
    Ok(function)
}

/// Returns the functions that have something to refine, or call such a function, as a flag for each index.
fn inlined_functions(module: &Module) -> Vec<bool> {
    let functions = module.functions();
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); functions.len()];
    for (caller, function) in functions.iter().enumerate() {
        for callee in called_from(module, function) {
            callers[callee].push(caller);
        }
    }
    let mut found = vec![false; functions.len()];
    let mut work: Vec<usize> =
        (0..functions.len()).filter(|&index| is_refinable(&functions[index])).collect();
    while let Some(index) = work.pop() {
        if !std::mem::replace(&mut found[index], true) {
            work.append(&mut callers[index]);
        }
    }
    found
}

fn is_refinable(function: &Function) -> bool {
    let mut ops = function.body.all_ops();
    function.body.values().any(|(_, value)| is_dynamic(&value.ty))
        || ops.any(|(_, op)| of_known_sizes(op.kind.code()).is_some() || is_assertion(&op.kind))
}

fn is_assertion(op: &Op) -> bool {
    matches!(op, Op::CustomCall(call) if call.call_target_name == "shape_assertion")
}

/// The pass that sets the types of values to those that follow from the operands.
struct RefineShapes {
    /// For each function by index, `true` if its calls are inlined.
    inlined: Vec<bool>,
}

impl RefineShapes {
    /// Returns `true` if calls of the function with this name are inlined.
    fn inlines(&self, r: &Rewriter<'_>, name: &str) -> bool {
        r.module.function_index(name).is_some_and(|index| self.inlined[index])
    }
}

impl Pass for RefineShapes {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        match &op.kind {
            Op::FuncCall(call) if self.inlines(r, &call.callee) || computes_sizes(r, op) => {
                return Ok(Replacement::Inline(&call.callee));
            }
            Op::Composite(composite) if overrides_decomposition(r.module, op, composite)? => {
                return scan_composite(r, op).map(Replacement::Values);
            }
            Op::Composite(composite) if self.inlines(r, &composite.decomposition) => {
                return Ok(Replacement::Inline(&composite.decomposition));
            }
            Op::CustomCall(_) if is_assertion(&op.kind) => return assertion(r, op),
            Op::CustomCall(call) => {
                return Ok(dynamic_calls::replacement(r, op, call).unwrap_or(Replacement::Copy));
            }
            Op::Other(other) if other.name.starts_with("chlo.") => return Ok(of_chlo(r, op)),
            _ => {}
        }
        // If the sizes are not known, or are not those that the rule expects, the operation remains, and the verifier
        // reports an error.
        Ok(match of_known_sizes(op.kind.code()).and_then(|rule| rule(r, op).ok()) {
            Some(value) => {
                if let Some(id) = r.b.body.defining_op(value) {
                    narrow(r, id)?;
                }
                Replacement::Values(constants(r, vec![value]))
            }
            None => Replacement::Copy,
        })
    }

    fn copied(&self, r: &mut Rewriter<'_>, copy: OpId) -> Result<Vec<ValueId>, Error> {
        narrow(r, copy)?;
        let values = r.b.all_results(copy);
        Ok(constants(r, values))
    }

    fn begin_region(&self, b: &mut Builder, op: OpId, block: BlockId) {
        region_arguments(b, op, block);
    }

    fn end_region(&self, r: &mut Rewriter<'_>, block: BlockId) -> Result<(), Error> {
        end_region(r, block)
    }

    // The number of operations that inlining may create is limited.
    fn inlines_calls(&self) -> bool {
        true
    }
}

/// Returns `true` if all operands of a call are small known integers. JAX defines functions for the division of sizes.
fn computes_sizes(r: &Rewriter<'_>, op: &Operation) -> bool {
    let operands = r.flat(&op.operands);
    !operands.is_empty() && operands.iter().all(|&value| r.known(value).is_some())
}

/// Replaces `chlo.broadcast_add` and similar operations, whose result shape is known only after their decomposition.
fn of_chlo<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Replacement<'m> {
    let is_broadcast =
        op.kind.name().starts_with("chlo.broadcast_") || op.kind.name() == "chlo.constant_like";
    let is_unknown = op.results.clone().any(|value| is_dynamic(r.old_type(value)));
    let rule = if is_broadcast && is_unknown { rewrite_of(r.old_body(), op) } else { None };
    match rule.map(|rule| rule.apply(r, op)) {
        Some(Ok(Some(values))) => Replacement::Values(values),
        _ => Replacement::Copy,
    }
}

/// Evaluates a `shape_assertion`. The first operand is the condition; the others are values for the message.
fn assertion<'m>(r: &Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
    let values = r.flat(&op.operands);
    let holds = values.first().and_then(|&value| r.known(value));
    let Some(holds) = holds else { return Ok(Replacement::Copy) };
    if holds.iter().all(|&holds| holds != 0) {
        return Ok(Replacement::Values(Vec::new()));
    }
    let mut message = match op.attributes.get("error_message") {
        Some(Attribute::String(message)) => message.to_string(),
        _ => "a shape assertion failed".to_owned(),
    };
    for (index, &value) in values.iter().skip(1).enumerate() {
        if let Some(&[number]) = r.known(value).as_deref() {
            message = message.replace(&format!("{{{index}}}"), &number.to_string());
        }
    }
    Err(invalid(message))
}

/// Sets the types of region arguments to those of the corresponding operands.
fn region_arguments(b: &mut Builder, id: OpId, block: BlockId) {
    let op = b.body.op(id);
    if !matches!(op.kind, Op::While(_) | Op::AsyncStart(_)) {
        return;
    }
    let pairs = b.body.block(block).arguments.iter().zip(&op.operands);
    let types: Vec<_> = pairs.map(|(&argument, &operand)| (argument, b.body.ty(operand).clone())).collect();
    for (argument, ty) in types {
        if let (Type::Tensor(declared), Type::Tensor(found)) = (b.body.ty(argument), &ty)
            && let Some(ty) = meet(declared, found)
        {
            b.body.set_type(argument, ty.into());
        }
    }
}

/// Refines the results of an operation after the last of its regions.
fn end_region(r: &mut Rewriter<'_>, block: BlockId) -> Result<(), Error> {
    let region = r.b.body.block(block).region;
    match r.b.body.region(region).parent {
        Some(op) if r.b.body.op(op).regions.last() == Some(&region) => narrow(r, op),
        _ => Ok(()),
    }
}

/// Refines the types of an operation's results from its operands and regions.
fn narrow(r: &mut Rewriter<'_>, id: OpId) -> Result<(), Error> {
    r.narrow(id, shape_of_declared)
}

/// Returns the shape of a result with a declared type, if its sizes follow from the operands.
fn shape_of_declared(
    r: &Rewriter<'_>,
    op: &Operation,
    declared: &TensorType,
    index: usize,
) -> Option<TensorType> {
    let operand = op.operands.first().and_then(|&value| r.b.body.ty(value).as_tensor());
    match &op.kind {
        Op::BitcastConvert(_) => {
            let operand = operand?;
            let (from, to) = (operand.element_type().bits(), declared.element_type().bits());
            let mut dims = operand.dims().to_vec();
            match from.cmp(&to) {
                std::cmp::Ordering::Equal => {}
                std::cmp::Ordering::Less => {
                    dims.pop()?;
                }
                std::cmp::Ordering::Greater => dims.push(i64::from(from.checked_div(to)?)),
            }
            Some(declared.with_dims(dims))
        }
        Op::CustomCall(_) => {
            let shapes = shape_operands(op)?;
            let operand = *op.operands.get(usize::try_from(*shapes.get(index)?).ok()?)?;
            let dims = r.known(operand)?;
            dims.iter().all(|&size| size >= 0).then(|| declared.with_dims(&*dims))
        }
        Op::Other(other) => {
            let operand = operand?;
            match &*other.name {
                "chlo.top_k" => {
                    let mut dims = operand.dims().to_vec();
                    *dims.last_mut()? = *declared.dims().last()?;
                    Some(declared.with_dims(dims))
                }
                "chlo.scan" | "chlo.ragged_dot" | "chlo.constant" => None,
                name if CHLO_RULES.iter().any(|rule| rule.name == name) => {
                    Some(declared.with_dims(operand.dims()))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The attribute of JAX's custom calls that lists the operands with the shapes of the results.
const SHAPE_OPERANDS: &str = "indices_of_shape_operands";

/// Returns the indices of a custom call's operands with the shapes of its results.
fn shape_operands(op: &Operation) -> Option<Vec<i64>> {
    match op.attributes.get(SHAPE_OPERANDS)? {
        Attribute::Elements(indices) => indices.to_i64s(op.operands.len()),
        Attribute::IntegerArray { values, .. } => Some(values.to_vec()),
        _ => None,
    }
}

/// Removes the operands with the shapes of results from custom calls whose result types are static, because their
/// targets do not expect them.
fn drop_shape_operands(body: &mut Body) {
    let ids: Vec<OpId> = body.all_ops().map(|(id, _)| id).collect();
    for id in ids {
        let op = body.op(id);
        let Op::CustomCall(call) = &op.kind else { continue };
        let Some(shapes) = shape_operands(op) else { continue };
        if op.results.iter().any(|value| is_dynamic(body.ty(value))) {
            continue;
        }
        let stays = |index: &usize| !shapes.contains(&(*index as i64));
        let mut call = call.clone();
        if let Some(layouts) = &mut call.operand_layouts {
            let kept = std::mem::take(layouts).into_iter().enumerate();
            *layouts = kept.filter(|(index, _)| stays(index)).map(|(_, layout)| layout).collect();
        }
        let operands = (0..op.operands.len()).filter(stays).map(|index| op.operands[index]).collect();
        let attributes = op.attributes.entries().iter().filter(|(name, _)| &**name != SHAPE_OPERANDS);
        let attributes = DictionaryAttribute::new(attributes.cloned().collect());
        let op = body.op_mut(id);
        (op.kind, op.operands, op.attributes) = (Op::CustomCall(call), operands, attributes);
    }
}

/// Returns the values, with known values replaced by constants.
fn constants(r: &mut Rewriter<'_>, values: Vec<ValueId>) -> Vec<ValueId> {
    /// Longer lists cannot be shapes.
    const MAX_ELEMENTS: usize = crate::limits::MAX_RANK;
    let each = values.into_iter().map(|value| {
        let is_computed =
            r.b.body
                .defining_op(value)
                .is_some_and(|id| !matches!(r.b.body.op(id).kind, Op::Constant(_) | Op::Iota(_)));
        let elements = r.known(value).filter(|elements| is_computed && elements.len() <= MAX_ELEMENTS);
        let Some(elements) = elements else { return value };
        let ty = r.b.tensor(value);
        let width = ty.element_type().byte_width();
        let bytes: Vec<u8> =
            elements.iter().flat_map(|element| element.to_le_bytes().into_iter().take(width)).collect();
        match Literal::new(ty, LiteralData::Dense(bytes.into())) {
            Ok(literal) => r.b.constant(literal),
            Err(_) => value,
        }
    });
    each.collect()
}
