//! The structure of functions: values, blocks, regions and attributes.

use std::collections::HashSet;

use super::{HandedOn, invalid_function};
use crate::infer::{self, types_compatible};
use crate::ir::{
    Block, Body, Function, Location, Module, Op, OpId, Operation, RegionId, Trait, Type, Visibility,
};
use crate::{Error, ErrorKind};

fn invalid(op: &Operation, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message).in_op(op.kind.name(), &op.location)
}

/// Checks a function's signature, numbers of operands, scopes and terminators.
pub(super) fn function(function: &Function, handed_on: HandedOn) -> Result<(), Error> {
    let body = &function.body;
    for (what, dictionaries) in
        [("argument", &function.argument_attributes), ("result", &function.result_attributes)]
    {
        for (index, dictionary) in dictionaries.iter().enumerate() {
            if let Some((name, _)) = dictionary.entries().iter().find(|(name, _)| !name.contains('.')) {
                let message = format!(
                    "{what} {index}: expected an attribute name with a dialect, such as 'mhlo.sharding', found '{name}'"
                );
                return Err(invalid_function(function, message));
            }
        }
    }
    for (_, op) in body.all_ops() {
        counts(body, op)?;
    }
    let Some(entry) = body.entry() else {
        if function.visibility == Some(Visibility::Private) {
            return Ok(());
        }
        return Err(invalid_function(function, "expected a body, because the function is not private"));
    };
    let arguments = &body.block(entry).arguments;
    let types = &function.ty.inputs;
    let mismatch = |index: usize| arguments.get(index).map(|&value| body.ty(value)) != types.get(index);
    if let Some(index) = (0..arguments.len().max(types.len())).find(|&index| mismatch(index)) {
        let found = arguments.get(index).map_or(&Type::None, |&value| body.ty(value));
        let expected = types.get(index).unwrap_or(&Type::None);
        return Err(invalid_function(
            function,
            format!("argument {index}: expected {expected}, found {found}"),
        ));
    }
    scopes(function, handed_on)
}

/// Checks an operation against its entry in the op table.
fn counts(body: &Body, op: &Operation) -> Result<(), Error> {
    let info = op.info();
    let groups = [
        ("operands", info.operands, op.operands.len()),
        ("results", info.results, op.results.len()),
        ("regions", info.regions, op.regions.len()),
    ];
    for (what, specs, found) in groups {
        infer::counts(op, what, specs, found)?;
    }
    for (index, &region) in op.regions.iter().enumerate() {
        let blocks = body.region(region).blocks.len();
        if blocks != 1 && !matches!(op.kind, Op::Other(_)) {
            return Err(invalid(op, format!("region {index}: expected one block, found {blocks}")));
        }
    }
    Ok(())
}

/// The remaining work of the traversal.
enum Work {
    /// A region.
    Region {
        region: RegionId,
        /// The number of regions that enclose its values.
        depth: u32,
        /// The least depth of the regions whose values can be used.
        isolation: u32,
        next_op: usize,
    },
    /// The results of an operation whose regions have been traversed.
    Results { op: OpId, depth: u32 },
}

/// Checks that values are defined before their uses and in scope, and that blocks end with their terminators.
fn scopes(function: &Function, handed_on: HandedOn) -> Result<(), Error> {
    let body = &function.body;
    // For each value that is in scope, the number of regions that enclose its definition; otherwise 0.
    let mut depths = vec![0u32; body.num_values()];
    let mut work = vec![Work::Region { region: Body::ROOT, depth: 1, isolation: 1, next_op: 0 }];
    while let Some(top) = work.last_mut() {
        let (region_id, depth, isolation, index) = match top {
            Work::Results { op, depth } => {
                let (op, depth) = (*op, *depth);
                body.op(op).results.for_each(|result| depths[result.index()] = depth);
                work.pop();
                continue;
            }
            Work::Region { region, depth, isolation, next_op } => {
                *next_op += 1;
                (*region, *depth, *isolation, *next_op - 1)
            }
        };
        let region = body.region(region_id);
        let block = match *region.blocks {
            [block] => body.block(block),
            [] => {
                work.pop();
                continue;
            }
            _ => return Err(invalid_function(function, "expected one block in each region, found several")),
        };
        if index == 0 {
            block.arguments.iter().for_each(|argument| depths[argument.index()] = depth);
            if block.ops.is_empty() {
                return Err(invalid_function(function, "expected a terminator, found an empty block"));
            }
        }
        let Some(&id) = block.ops.get(index) else {
            leave_scope(body, block, &mut depths);
            work.pop();
            continue;
        };
        let op = body.op(id);
        for &operand in &op.operands {
            if depths.get(operand.index()).copied().unwrap_or(0) < isolation {
                return Err(invalid(op, format!("the operand {operand:?} is not in scope")));
            }
        }
        let parent = region.parent.map(|parent| body.op(parent));
        terminator(function, parent, op, index + 1 == block.ops.len(), handed_on)?;
        if op.regions.is_empty() {
            op.results.for_each(|result| depths[result.index()] = depth);
            continue;
        }
        // The results are not in scope in the operation's own regions.
        work.push(Work::Results { op: id, depth });
        let isolation = if op.info().has(Trait::IsolatedFromAbove) { depth + 1 } else { isolation };
        let regions = op.regions.iter().rev();
        work.extend(regions.map(|&region| Work::Region { region, depth: depth + 1, isolation, next_op: 0 }));
    }
    Ok(())
}

/// Takes the values of a block out of scope, which is done when its region ends.
fn leave_scope(body: &Body, block: &Block, depths: &mut [u32]) {
    block.arguments.iter().for_each(|argument| depths[argument.index()] = 0);
    for &op in &block.ops {
        body.op(op).results.for_each(|result| depths[result.index()] = 0);
    }
}

/// Checks that the required terminator is the last operation of a block, and that no other operation is a terminator.
fn terminator(
    function: &Function,
    parent: Option<&Operation>,
    op: &Operation,
    is_last: bool,
    handed_on: HandedOn,
) -> Result<(), Error> {
    let is_terminator = op.info().has(Trait::Terminator);
    if !is_last {
        return if is_terminator {
            Err(invalid(op, "a terminator must be the last operation of its block"))
        } else {
            Ok(())
        };
    }
    let expected = match parent.map(|parent| &parent.kind) {
        None => "func.return",
        Some(Op::ManualComputation(_)) => "sdy.return",
        // Regions of other dialects' operations may have any terminator.
        Some(Op::Other(_)) => return Ok(()),
        Some(_) => "stablehlo.return",
    };
    if op.kind.name() != expected {
        return Err(invalid(
            op,
            format!("expected {expected} at the end of the block, found {}", op.kind.name()),
        ));
    }
    if parent.is_some() {
        return Ok(());
    }
    let body = &function.body;
    let types = &function.ty.results;
    if op.operands.len() != types.len() {
        return Err(invalid(op, format!("expected {} values, found {}", types.len(), op.operands.len())));
    }
    for (index, (&value, expected)) in op.operands.iter().zip(types).enumerate() {
        let found = body.ty(value);
        let fits =
            found == expected || handed_on == HandedOn::Compatible && types_compatible(found, expected);
        if !fits {
            return Err(invalid(op, format!("value {index}: expected {expected}, found {found}")));
        }
    }
    Ok(())
}

/// Checks the module's attributes and meshes.
pub(super) fn symbols(module: &Module) -> Result<(), Error> {
    let invalid = |message: String, location: &Location| {
        Err(Error::new(ErrorKind::Invalid, message).in_op("builtin.module", location))
    };
    let names = module.attributes.entries().iter().map(|(name, _)| name);
    if let Some(name) = names.into_iter().find(|&name| !name.contains('.') && *name != "sym_visibility") {
        let message = format!(
            "expected an attribute name with a dialect, such as 'mhlo.num_partitions', found '{name}'"
        );
        return invalid(message, &module.location);
    }
    let mut seen = HashSet::new();
    for declaration in module.meshes() {
        let name = &declaration.name;
        if !seen.insert(name) || module.function(name).is_some() {
            return invalid(format!("the symbol '{name}' is defined twice"), &declaration.location);
        }
        if let Some(problem) = declaration.mesh.problem() {
            return invalid(format!("mesh '{name}': {problem}"), &declaration.location);
        }
    }
    Ok(())
}

/// Checks that no function calls itself, directly or indirectly: StableHLO has no recursion.
pub(super) fn calls(module: &Module) -> Result<(), Error> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let callees = |function: &Function| -> Vec<usize> {
        let names = function.body.all_ops().filter_map(|(_, op)| match &op.kind {
            Op::FuncCall(call) => Some(&call.callee),
            Op::Composite(composite) => Some(&composite.decomposition),
            _ => None,
        });
        names.filter_map(|name| module.function_index(name)).collect()
    };
    let functions = module.functions();
    let mut states = vec![State::New; functions.len()];
    for start in 0..functions.len() {
        if states[start] != State::New {
            continue;
        }
        states[start] = State::Open;
        let mut path = vec![(start, callees(&functions[start]))];
        while let Some((index, rest)) = path.last_mut() {
            let Some(next) = rest.pop() else {
                states[*index] = State::Done;
                path.pop();
                continue;
            };
            match states[next] {
                State::Done => {}
                State::Open => {
                    return Err(invalid_function(
                        &functions[next],
                        "the function calls itself, but StableHLO does not allow recursion",
                    ));
                }
                State::New => {
                    states[next] = State::Open;
                    path.push((next, callees(&functions[next])));
                }
            }
        }
    }
    Ok(())
}
