//! The verifier.

mod chlo;
mod declared;
mod interface;
mod ragged_dot;
mod scan;
mod sharding;
mod structure;
mod types;

use crate::Constraint::C;
use crate::infer::{Context, ResultRule, results};
use crate::ir::{Definition, Function, Module, Op, OpCode, Type};
use crate::{Error, ErrorKind};

pub(crate) use scan::check as check_scan;

/// Verifies a module. The readers, such as [`parse`](crate::parse), verify the modules that they return.
///
/// The verifier checks:
/// * Structure: each operation has the operands, results and regions of its entry in the op table; values are defined
///   before their uses and are in scope; each block ends with its terminator; functions have the arguments and results
///   of their types; called functions exist, accept the operands, and are not recursive.
/// * Types: bounds, quantization parameters, and that the number of elements fits in 63 bits.
/// * Operations: every constraint of the StableHLO specification that can be decided at compile time, and the types of
///   inputs and outputs. Declared result types must be compatible with those that
///   [`infer_result_types`](crate::infer_result_types) returns.
/// * CHLO's operations: their element types, shapes and attributes, according to MLIR's verifier.
/// * Shardings of Shardy: their meshes and axes exist, no axis is used twice, and the rank is that of the value.
///
/// Dynamic sizes are compatible with every size up to their bound. Where values are passed to functions and returned,
/// the types of programs that are read must be equal; in rewritten programs, sizes may be known on one side only.
///
/// The verifier also accepts some programs that the specification forbids, but that frameworks write and MLIR's
/// verifier accepts: products of element types of different widths, floats of any width in the regions of reductions,
/// reductions whose initial values are not scalars, and omitted attributes.
///
/// # Errors
/// Returns an error for the first violated rule, with the operation, the [`Constraint`](crate::Constraint) if it is one
/// of the specification's, the operand or attribute, the expected and found values, and the operation's source
/// location.
///
/// ```
/// use pjrt_stablehlo::{Constraint, parse, verify};
///
/// let program = "func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
///     %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
///     return %0 : tensor<3x2xf32>
/// }";
/// verify(&parse(program)?)?;
///
/// let invalid = program.replace("dims = [1, 0]", "dims = [1, 1]");
/// assert_eq!(parse(invalid).unwrap_err().constraint, Some(Constraint::C(2)));
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
pub fn verify(module: &Module) -> Result<(), Error> {
    check(module, HandedOn::Compatible)
}

/// The required agreement of types where values are passed to calls and regions, and returned from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandedOn {
    /// Equal types, as in programs that are read.
    Equal,
    /// Compatible types. Rewriting may have made sizes known on one side.
    Compatible,
}

/// Verifies a module as [`verify`] does. Modules that are read must have equal types on both sides of calls, as MLIR's
/// verifier requires.
pub(crate) fn check(module: &Module, handed_on: HandedOn) -> Result<(), Error> {
    structure::symbols(module)?;
    for function in module.functions() {
        structure::function(function, handed_on)?;
        types(function)?;
        for (_, op) in function.body.all_ops() {
            let cx = Context { module, body: &function.body, op };
            operation(&cx)?;
            if handed_on == HandedOn::Equal {
                equal_types(&cx)?;
            }
        }
    }
    sharding::check(module)?;
    structure::calls(module)
}

/// Checks the types of a function and of all its values.
fn types(function: &Function) -> Result<(), Error> {
    let body = &function.body;
    let signature = function.ty.inputs.iter().chain(&function.ty.results);
    if let Some(problem) = signature.filter_map(types::problem).next() {
        return Err(invalid_function(function, problem));
    }
    for (_, value) in body.values() {
        let Some(problem) = types::problem(&value.ty) else { continue };
        let error = Error::new(ErrorKind::Invalid, problem);
        return Err(match value.definition {
            Definition::Result { op, .. } => {
                let op = body.op(op);
                error.in_op(op.kind.name(), &op.location)
            }
            Definition::Argument { .. } => error.in_op("func.func", &function.location),
        });
    }
    Ok(())
}

/// Checks an operation with the right numbers of operands, results and regions.
fn operation(cx: &Context<'_>) -> Result<(), Error> {
    interface::operands(cx)?;
    if let Op::Other(op) = &cx.op.kind {
        return chlo::check(cx, op);
    }
    let rules = results(cx)?;
    declared::check(cx)?;
    declared_types(cx, &rules)?;
    interface::results(cx)
}

/// Checks that operations that pass values on do not change their types, not even to compatible ones.
fn equal_types(cx: &Context<'_>) -> Result<(), Error> {
    if !matches!(
        cx.op.kind,
        Op::AsyncStart(_) | Op::Composite(_) | Op::FuncCall(_) | Op::OptimizationBarrier(_) | Op::Tuple(_)
    ) {
        return Ok(());
    }
    let operands = cx.operand_types();
    let collected: Vec<Type> = match &cx.op.kind {
        Op::Tuple(_) => vec![Type::Tuple(operands.clone().into())],
        Op::AsyncStart(_) => {
            // The inferred type is that of the results of the region's single operation.
            let given = cx.block(0)?.ops.first().map(|&inner| cx.body.op(inner).results);
            let types = given.into_iter().flatten().map(|value| cx.body.ty(value).clone());
            vec![Type::Future(types.collect())]
        }
        _ => Vec::new(),
    };
    let signature = |name: &str| {
        let function = cx.module.function(name);
        function.map_or((&*operands, &[][..]), |function| (&*function.ty.inputs, &*function.ty.results))
    };
    let (takes, gives) = match &cx.op.kind {
        Op::OptimizationBarrier(_) => (&*operands, &*operands),
        Op::FuncCall(op) => signature(&op.callee),
        Op::Composite(op) => signature(&op.decomposition),
        _ => (&*operands, &*collected),
    };
    let constraints = match cx.op.kind {
        Op::Tuple(_) => [None, Some(C(1))],
        Op::AsyncStart(_) => [None, Some(C(4))],
        Op::Composite(_) => [Some(C(3)), Some(C(4))],
        Op::OptimizationBarrier(_) => [None, Some(C(1))],
        _ => [None; 2],
    };
    let results: Vec<Type> = cx.op.results.map(|value| cx.body.ty(value).clone()).collect();
    for (what, constraint, expected, found) in
        [("operand", constraints[0], takes, &*operands), ("result", constraints[1], gives, &*results)]
    {
        for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
            cx.require(constraint, expected == found, || {
                format!("{what} {index}: expected {expected}, found {found}")
            })?;
        }
    }
    Ok(())
}

/// Compares the declared types of results with the inferred ones.
fn declared_types(cx: &Context<'_>, rules: &[ResultRule]) -> Result<(), Error> {
    // The specification has constraints for the numbers of these results.
    let count = match cx.op.kind.code() {
        OpCode::Reduce => Some(C(3)),
        OpCode::ReduceWindow => Some(C(1)),
        OpCode::CollectiveBroadcast => Some(C(5)),
        _ => rules.first().and_then(|rule| rule.shape),
    };
    cx.length(count, "results", cx.op.results.len(), rules.len())?;
    for (index, (rule, value)) in rules.iter().zip(cx.op.results).enumerate() {
        let found = cx.body.ty(value);
        if let (Op::Constant(op), Type::Tensor(found)) = (&cx.op.kind, found)
            && op.value.ty().dims() == found.dims()
            && op.value.ty().element_type() == found.storage_type()
        {
            // Text contains the storage types of quantized constants.
            continue;
        }
        rule.check(found).map_err(|(constraint, expected)| {
            cx.error(constraint, format!("result {index}: expected {expected}, found {found}"))
        })?;
    }
    Ok(())
}

/// Returns an error about a function rather than one of its operations.
fn invalid_function(function: &Function, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, format!("function '{}': {}", function.name, message.into()))
        .in_op("func.func", &function.location)
}
