//! Operations with regions, calls, tuples, tokens and transfers.

use super::collectives::source_target_pairs;
use super::context::Context;
use super::reductions::{predicate, signature};
use super::result::{ResultRule, Results};
use super::shape::{Shape, types_compatible};
use super::shapes::{same_types, token};
use crate::Constraint::{self, C};
use crate::Error;
use crate::ir::ops::{Composite, CustomCall, FuncCall, ManualComputation, Recv, Send};
use crate::ir::{BackendConfig, CustomCallApiVersion, Function, Ints, Op, OpCode, Type};

/// Returns the results of control flow, tuples and transfers; `None` for other operations.
pub(super) fn results(cx: &Context<'_>) -> Option<Results> {
    Some(match &cx.op.kind {
        Op::AfterAll(_) | Op::CreateToken(_) | Op::Outfeed(_) => token(),
        Op::AsyncStart(_) => async_start(cx),
        Op::AsyncDone(_) => async_done(cx),
        Op::Case(_) => case(cx),
        Op::Composite(op) => composite(cx, op),
        Op::FuncCall(op) => call(cx, op),
        Op::GetTupleElement(op) => get_tuple_element(cx, op.index),
        Op::If(_) => branches(cx, C(1), C(2), C(3)),
        Op::Infeed(_) => Ok(received(cx, Some(C(3)))),
        Op::Recv(op) => recv(cx, op),
        Op::Send(op) => send(cx, op),
        Op::Tuple(_) => tuple(cx),
        Op::While(_) => while_(cx),
        _ => return None,
    })
}

/// `while`: the regions take the operands, and the body returns values of their types.
fn while_(cx: &Context<'_>) -> Results {
    let types = cx.operand_types();
    signature(cx, 0, &types, &[predicate()], C(1))?;
    signature(cx, 1, &types, &types, C(2))?;
    same_types(cx, C(3))
}

/// `if`, `case`: the branches have no arguments, and return values of compatible types.
fn branches(cx: &Context<'_>, arguments: Constraint, returned: Constraint, results: Constraint) -> Results {
    let (_, first) = cx.region(0)?;
    let mut types: Vec<Type> = first.iter().map(|&ty| ty.clone()).collect();
    for region in 0..cx.op.regions.len() {
        let (found_arguments, found) = cx.region(region)?;
        cx.require(arguments, found_arguments.is_empty(), || {
            format!("{}: expected no arguments, found {}", cx.region_name(region), found_arguments.len())
        })?;
        cx.require(returned, found.len() == first.len(), || {
            format!("{}: expected {} values, found {}", cx.region_name(region), first.len(), found.len())
        })?;
        for (place, found) in found.into_iter().enumerate() {
            cx.require(returned, types_compatible(first[place], found), || {
                format!("{}, value {place}: expected {}, found {found}", cx.region_name(region), first[place])
            })?;
            if let (Type::Tensor(united), Type::Tensor(found)) = (&types[place], found) {
                let mut shape = Shape::of(united);
                if !shape.unite(found) {
                    let message = format!(
                        "{}, value {place}: expected {united}, found {found}",
                        cx.region_name(region)
                    );
                    return Err(cx.error(returned, message));
                }
                types[place] = shape.like(united).into();
            }
        }
    }
    Ok(types.into_iter().map(|ty| ResultRule::of(ty, results)).collect())
}

/// `case`: there is at least one branch.
fn case(cx: &Context<'_>) -> Results {
    cx.require(C(1), !cx.op.regions.is_empty(), || "expected at least one branch".to_owned())?;
    branches(cx, C(2), C(3), C(4))
}

/// Checks that a function accepts an operation's operands, and returns the types of the function's results.
fn callee(
    cx: &Context<'_>,
    attribute: &str,
    name: &str,
    [exists, takes, gives]: [Option<Constraint>; 3],
) -> Results {
    let function = cx.module.function(name);
    let function: &Function = function
        .ok_or_else(|| cx.error(exists, format!("{attribute}: the module has no function '{name}'")))?;
    let (expected, found) = (&function.ty.inputs, cx.operand_types());
    cx.require(takes, expected.len() == found.len(), || {
        format!("{attribute}: function '{name}' takes {} operands, found {}", expected.len(), found.len())
    })?;
    for (index, (expected, found)) in expected.iter().zip(&found).enumerate() {
        cx.require(takes, types_compatible(expected, found), || {
            format!("operand {index} of function '{name}': expected {expected}, found {found}")
        })?;
    }
    Ok(function.ty.results.iter().map(|ty| ResultRule::of(ty.clone(), gives)).collect())
}

/// `func.call`.
fn call(cx: &Context<'_>, op: &FuncCall) -> Results {
    callee(cx, "callee", &op.callee, [None; 3])
}

/// `composite`: the decomposition has the same operands and results.
fn composite(cx: &Context<'_>, op: &Composite) -> Results {
    cx.require(C(1), is_namespaced(&op.name), || {
        format!("name: expected a namespace and a name, such as \"my.op\", found \"{}\"", op.name)
    })?;
    callee(cx, "decomposition", &op.decomposition, [Some(C(2)), Some(C(3)), Some(C(4))])
}

/// Returns `true` if a name consists of a namespace and a name: words of letters, digits, `_` and, after the first
/// word, `$`, separated by dots.
fn is_namespaced(name: &str) -> bool {
    let mut words = name.split('.');
    let is_word = |word: &str, also: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || also.contains(c))
    };
    let first = words.next().unwrap_or_default();
    let mut further = 0;
    is_word(first, "")
        && first.starts_with(|c: char| c.is_ascii_alphabetic())
        && words.inspect(|_| further += 1).all(|word| is_word(word, "$"))
        && further > 0
}

/// Returns the part of a type at a path through nested tuples.
fn part<'t>(ty: &'t Type, path: &[i64]) -> Option<&'t Type> {
    path.iter().try_fold(ty, |ty, &index| match ty {
        Type::Tuple(elements) => elements.get(usize::try_from(index).ok()?),
        _ => None,
    })
}

/// Checks the layouts of a `custom_call`'s operands or results, each of which is a permutation of the dimensions.
pub(crate) fn layouts(cx: &Context<'_>, what: &str, layouts: &[Ints], types: &[Type]) -> Result<(), Error> {
    cx.length(None, what, layouts.len(), types.len())?;
    for (index, (layout, ty)) in layouts.iter().zip(types).enumerate() {
        let rank = match ty {
            Type::Tensor(tensor) | Type::Buffer(tensor) => tensor.rank(),
            Type::UnrankedTensor(_) => continue,
            Type::Tuple(_) => {
                return Err(
                    cx.error(None, format!("{what}: a nested tuple cannot have a layout, found {ty}"))
                );
            }
            _ => 0,
        };
        let mut sorted = layout.to_vec();
        sorted.sort_unstable();
        cx.require(None, sorted.into_iter().eq(0..rank as i64), || {
            format!("{what} {index}: expected a permutation of the dimensions of {ty}, found {layout:?}")
        })?;
    }
    Ok(())
}

/// Checks the attributes of a `custom_call` against its operands and results. The names of called functions are not
/// checked, because only the target interprets them.
pub(crate) fn custom_call(cx: &Context<'_>, op: &CustomCall, results: &[Type]) -> Result<(), Error> {
    let elements = match results {
        [Type::Tuple(elements)] => elements,
        results => results,
    };
    cx.require(None, op.operand_layouts.is_some() == op.result_layouts.is_some(), || {
        "expected layouts of both operands and results, or neither".to_owned()
    })?;
    if let (Some(of_operands), Some(of_results)) = (&op.operand_layouts, &op.result_layouts) {
        layouts(cx, "operand_layouts", of_operands, &cx.operand_types())?;
        layouts(cx, "result_layouts", of_results, elements)?;
    }
    let whole = match results {
        [result] => result.clone(),
        results => Type::Tuple(results.into()),
    };
    for alias in &op.output_operand_aliases {
        let index = usize::try_from(alias.operand_index).ok().filter(|&index| index < cx.op.operands.len());
        let index = index.ok_or_else(|| {
            let message = format!(
                "output_operand_aliases: expected the index of an operand, found {}",
                alias.operand_index
            );
            cx.error(None, message)
        })?;
        let operand = part(cx.operand_type(index), &alias.operand_tuple_indices);
        let output = part(&whole, &alias.output_tuple_indices);
        let (Some(operand), Some(output)) = (operand, output) else {
            let message =
                "output_operand_aliases: expected indices of elements of the operand's and result's tuples";
            return Err(cx.error(None, message));
        };
        cx.require(None, operand == output, || {
            format!("output_operand_aliases: expected equal types, found {operand} in the operand and {output} in the result")
        })?;
    }
    let is_typed = op.api_version == CustomCallApiVersion::TypedFfi;
    let fits = match &op.backend_config {
        BackendConfig::Bytes(bytes) => !is_typed || bytes.is_empty(),
        BackendConfig::Dictionary(_) => is_typed,
    };
    cx.require(None, fits, || {
        format!(
            "backend_config: expected a {} for {}",
            if is_typed { "dictionary" } else { "string" },
            op.api_version
        )
    })
}

/// `tuple`: the result is a tuple of the operands' types.
fn tuple(cx: &Context<'_>) -> Results {
    Ok(vec![ResultRule::of(Type::Tuple(cx.operand_types().into()), C(1))])
}

/// `get_tuple_element`: the result has the type of the element.
fn get_tuple_element(cx: &Context<'_>, index: i64) -> Results {
    let Type::Tuple(elements) = cx.operand_type(0) else {
        let message = format!("operand 'operand': expected a tuple, found {}", cx.operand_type(0));
        return Err(cx.error(Constraint::I(1), message));
    };
    let element = usize::try_from(index).ok().and_then(|index| elements.get(index));
    let element = element.ok_or_else(|| {
        cx.error(C(1), format!("index: expected an index below {}, found {index}", elements.len()))
    })?;
    Ok(vec![ResultRule::of(element.clone(), C(2))])
}

/// `async_start`: the result is a future of the results of the region's single operation.
fn async_start(cx: &Context<'_>) -> Results {
    let block = cx.block(0)?;
    let [inner, _] = *block.ops else {
        let message =
            format!("region 'body': expected one operation and a return, found {}", block.ops.len());
        return Err(cx.error(C(1), message));
    };
    let inner = cx.body.op(inner);
    let allowed = matches!(
        inner.kind.code(),
        OpCode::AllReduce
            | OpCode::AllGather
            | OpCode::AllToAll
            | OpCode::CollectivePermute
            | OpCode::ReduceScatter
            | OpCode::CollectiveBroadcast
            | OpCode::Slice
            | OpCode::DynamicSlice
            | OpCode::DynamicUpdateSlice
    );
    cx.require(C(2), allowed, || {
        format!("region 'body': expected a collective or a slice, found {}", inner.kind.name())
    })?;
    let arguments: Vec<Type> = block.arguments.iter().map(|&value| cx.body.ty(value).clone()).collect();
    let operands = cx.operand_types();
    let same = *inner.operands == *block.arguments
        && arguments.len() == operands.len()
        && arguments.iter().zip(&operands).all(|(argument, operand)| types_compatible(argument, operand));
    cx.require(C(3), same, || {
        "region 'body': expected arguments with the operands' types, which are passed to its operation"
            .to_owned()
    })?;
    let types: Vec<Type> = inner.results.map(|value| cx.body.ty(value).clone()).collect();
    Ok(vec![ResultRule::of(Type::Future(types.into()), C(4))])
}

/// `async_done`: the results have the types in the future.
fn async_done(cx: &Context<'_>) -> Results {
    let Type::Future(types) = cx.operand_type(0) else {
        let message = format!("operand 'operand': expected a future, found {}", cx.operand_type(0));
        return Err(cx.error(Constraint::I(1), message));
    };
    Ok(types.iter().map(|ty| ResultRule::of(ty.clone(), C(1))).collect())
}

/// `sdy.manual_computation`: each operand and result has a sharding, and the region has a part of it as argument or
/// returned value.
pub(crate) fn manual_computation(
    cx: &Context<'_>,
    op: &ManualComputation,
    results: &[Type],
) -> Result<(), Error> {
    let operands = cx.operand_types();
    cx.length(None, "in_shardings", op.in_shardings.len(), operands.len())?;
    cx.length(None, "out_shardings", op.out_shardings.len(), results.len())?;
    let (arguments, returned) = cx.region(0)?;
    for (what, whole, parts) in [("argument", &*operands, arguments), ("returned value", results, returned)] {
        cx.length(None, &format!("region 'body', {what}s"), parts.len(), whole.len())?;
        for (index, (whole, part)) in whole.iter().zip(parts).enumerate() {
            let fits = match (whole, part) {
                (Type::Tensor(whole), Type::Tensor(part)) => {
                    whole.rank() == part.rank() && super::shape::elements_compatible(whole, part)
                }
                (whole, part) => whole == part,
            };
            cx.require(None, fits, || {
                format!("region 'body', {what} {index}: expected a part of {whole}, found {part}")
            })?;
        }
    }
    Ok(())
}

/// The channel types of transfers.
const DEVICE_TO_DEVICE: i64 = 1;
const DEVICE_TO_HOST: i64 = 2;
const HOST_TO_DEVICE: i64 = 3;

/// `recv`.
fn recv(cx: &Context<'_>, op: &Recv) -> Results {
    transfer(cx, op.channel_handle.channel_type, op.is_host_transfer, &op.source_target_pairs)?;
    Ok(received(cx, None))
}

/// `send`.
fn send(cx: &Context<'_>, op: &Send) -> Results {
    transfer(cx, op.channel_handle.channel_type, op.is_host_transfer, &op.source_target_pairs)?;
    token()
}

/// `send`, `recv`: checks the channel and the pairs of processes.
fn transfer(
    cx: &Context<'_>,
    channel_type: i64,
    is_host_transfer: bool,
    pairs: &[[i64; 2]],
) -> Result<(), Error> {
    source_target_pairs(cx, pairs)?;
    let host = if cx.op.kind.code() == OpCode::Recv { HOST_TO_DEVICE } else { DEVICE_TO_HOST };
    let expected = if is_host_transfer { host } else { DEVICE_TO_DEVICE };
    cx.require(C(5), channel_type == expected, || {
        format!("channel_handle: expected channel type {expected}, found {channel_type}")
    })
}

/// Returns the rules for the results of `infeed` and `recv`: any number, the last of which is a token.
fn received(cx: &Context<'_>, token: Option<Constraint>) -> Vec<ResultRule> {
    let last = cx.op.results.len().saturating_sub(1);
    let mut results: Vec<ResultRule> = (0..last).map(|_| ResultRule::declared()).collect();
    results.push(ResultRule::of(Type::Token, token));
    results
}
