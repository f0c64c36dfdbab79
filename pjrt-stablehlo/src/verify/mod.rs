//! Checks that a module is what consumers rely on.

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

/// Checks a module; [`parse`](crate::parse) has done so with what it gives.
///
/// What is checked:
/// * structure: every operation has the operands, results and regions of its entry in the op table, values are defined
///   before they are used and are in scope, blocks end with the right terminator, functions take and return what their
///   type says, called functions exist, take these operands, and do not call themselves;
/// * types: bounds, quantization parameters, and that numbers of elements fit into 63 bits;
/// * operations: every constraint of the StableHLO specification that can be decided before run time, and the types that
///   it lists for inputs and outputs. Declared result types have to agree with what
///   [`infer_result_types`](crate::infer_result_types) gives;
/// * CHLO's operations: elements, shapes and attributes as its verifier in MLIR has them;
/// * shardings of Shardy: their meshes and axes exist, no axis is used twice, and they have the value's rank.
///
/// Sizes that are not known before run time agree with every size up to their bound, also those of values that are handed to
/// functions and back, which rewriting makes known on one side first. In programs that are read these types are equal. What MLIR's verifier accepts beyond
/// the specification, and frameworks write, is accepted: element types of different widths in products, floats of any width
/// in the regions of reductions, reductions that start from more than a scalar, and attributes that are left out.
///
/// # Errors
/// The first rule that is broken, with the operation, the [`Constraint`](crate::Constraint) where it is one of the
/// specification's, the operand or attribute, what was expected and found, and the operation's source location.
pub fn verify(module: &Module) -> Result<(), Error> {
    check(module, HandedOn::Compatible)
}

/// What the types are that values have before and after calls, barriers and returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandedOn {
    /// The same, as programs have them.
    Equal,
    /// Compatible: sizes have become known on one side.
    Compatible,
}

/// Checks a module, as [`verify`] does; what is read has equal types on both sides of calls, as MLIR's verifier demands.
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

/// Checks the types of a function, and of all values in it.
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

/// Checks one operation whose operands, results and regions are as many as they have to be.
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

/// Checks that operations which hand values on or collect them do not change their types, not even to compatible ones.
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
            // The inferred type: that of what the region's one operation gives.
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

/// Checks the declared types of results against the inferred ones.
fn declared_types(cx: &Context<'_>, rules: &[ResultRule]) -> Result<(), Error> {
    // Numbers of results that the specification has a constraint of their own for.
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
            // Text writes quantized constants as what they store.
            continue;
        }
        rule.check(found).map_err(|(constraint, expected)| {
            cx.error(constraint, format!("result {index}: expected {expected}, found {found}"))
        })?;
    }
    Ok(())
}

/// An error about a function rather than one of its operations.
fn invalid_function(function: &Function, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, format!("function '{}': {}", function.name, message.into()))
        .in_op("func.func", &function.location)
}
