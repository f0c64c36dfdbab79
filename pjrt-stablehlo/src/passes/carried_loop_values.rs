//! Keeps all values of a loop's state.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::rewrite::{Origins, Pass, Replacement, Rewriter, rewrite};
use crate::Error;
use crate::ir::{Block, Body, Module, Op, Operation, Type, ValueId, ops};

/// Inserts `stablehlo.optimization_barrier` so that every value of the state of a `stablehlo.while` is needed both to begin an
/// iteration and after it.
///
/// A compiler that removes unused values from loops may remove a value on one side only: one that is computed by an iteration
/// without the previous value, or one that only the condition reads, or one of two that are always equal. Some compilers then
/// fail; IREE's does. The compiler must not move operations across the barriers.
///
/// ```
/// use pjrt_stablehlo::passes::carried_loop_values;
///
/// let text = "func.func @main(%n: tensor<i32>, %x: tensor<i32>) -> tensor<i32> {
///     %c = stablehlo.constant dense<1> : tensor<i32>
///     %0:2 = stablehlo.while(%i = %n, %last = %x) : tensor<i32>, tensor<i32>
///     cond {
///         %1 = stablehlo.compare GT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
///         stablehlo.return %1 : tensor<i1>
///     } do {
///         %1 = stablehlo.subtract %i, %c : tensor<i32>
///         %2 = stablehlo.multiply %i, %i : tensor<i32>
///         stablehlo.return %1, %2 : tensor<i32>, tensor<i32>
///     }
///     return %0#1 : tensor<i32>
/// }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// // The barrier joins %2 and %last.
/// assert_eq!(carried_loop_values(&module)?.op_counts()["stablehlo.optimization_barrier"], 1);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`verify`](crate::verify), which the result satisfies.
pub fn carried_loop_values(module: &Module) -> Result<Module, Error> {
    crate::verify(module)?;
    let carried = rewrite(module, &CarriedLoopValues, |_| true, &mut Origins::default())?;
    crate::verify(&carried)?;
    Ok(carried)
}

struct CarriedLoopValues;

impl Pass for CarriedLoopValues {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        if !matches!(op.kind, Op::While(_)) {
            return Ok(Replacement::Copy);
        }
        let joined = removable(r.old_body(), op);
        if joined.is_empty() {
            return Ok(Replacement::Copy);
        }
        let (operands, types) = (r.flat(&op.operands), r.result_types(op));
        let id = r.b.add_op(op.kind.clone(), &operands, types.clone());
        r.b.body.op_mut(id).attributes = op.attributes.clone();
        r.bind(op, r.b.all_results(id));
        r.copy_region(op.regions[0], id);
        let region = r.b.body.add_region(Some(id));
        let block = r.b.body.add_block(region);
        let arguments: Vec<ValueId> = types.into_iter().map(|ty| r.b.body.add_argument(block, ty)).collect();
        let before = arguments.clone();
        let end = Box::new(move |b: &mut crate::build::Builder, mut returned: Vec<ValueId>| {
            let old = joined.iter().map(|slot| before[*slot]);
            let operands: Vec<ValueId> = joined.iter().map(|slot| returned[*slot]).chain(old).collect();
            let types: Vec<Type> = operands.iter().map(|operand| b.ty(*operand).clone()).collect();
            let values = b.op_of_types(ops::OptimizationBarrier {}, &operands, types);
            for (slot, value) in joined.iter().zip(values) {
                returned[*slot] = value;
            }
            b.return_values(&returned);
        });
        r.inline_region(op, 1, arguments, block, end)?;
        Ok(Replacement::Blocks)
    }
}

/// Returns the values of a loop's state that a compiler can remove on one side only.
fn removable(body: &Body, op: &Operation) -> Vec<usize> {
    let (Some(condition), Some(iteration)) = (body.region_block(op, 0), body.region_block(op, 1)) else {
        return Vec::new();
    };
    let returned = returned(body, iteration);
    let slots: HashMap<ValueId, usize> =
        iteration.arguments.iter().enumerate().map(|(slot, argument)| (*argument, slot)).collect();
    let reads: Vec<BTreeSet<usize>> = returned.iter().map(|value| slots_read(body, &slots, *value)).collect();
    let needed = needed(body, condition, &reads);
    let is_carried = |slot: usize| {
        let is_unique = returned.iter().filter(|value| **value == returned[slot]).count() == 1;
        // If nothing needs the value, it is removed on both sides, or kept because the next one depends on it.
        let is_read = match needed.contains(&slot) {
            true => needed.iter().any(|other| reads[*other].contains(&slot)),
            false => reads[slot].contains(&slot),
        };
        returned[slot] == iteration.arguments[slot] || is_unique && is_read && !reads[slot].is_empty()
    };
    let is_tensor = |slot: &usize| body.ty(returned[*slot]).as_tensor().is_some();
    (0..returned.len()).filter(|slot| !is_carried(*slot)).filter(is_tensor).collect()
}

/// Returns the values that a block returns.
fn returned<'m>(body: &'m Body, block: &Block) -> &'m [ValueId] {
    block.ops.last().map_or(&[], |id| &body.op(*id).operands)
}

/// Returns the values of the state that the condition reads, and those that the next ones of these depend on.
fn needed(body: &Body, condition: &Block, reads: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let slots: HashMap<ValueId, usize> =
        condition.arguments.iter().enumerate().map(|(slot, argument)| (*argument, slot)).collect();
    let mut needed = BTreeSet::new();
    for value in returned(body, condition) {
        needed.extend(slots_read(body, &slots, *value));
    }
    let mut work: Vec<usize> = needed.iter().copied().collect();
    while let Some(slot) = work.pop() {
        work.extend(reads[slot].iter().filter(|read| needed.insert(**read)));
    }
    needed
}

/// Returns the slots of the arguments that a value depends on.
fn slots_read(body: &Body, slots: &HashMap<ValueId, usize>, value: ValueId) -> BTreeSet<usize> {
    let first = slots.keys().min();
    let mut read = BTreeSet::new();
    let mut seen = HashSet::from([value]);
    let mut work = vec![value];
    while let Some(value) = work.pop() {
        read.extend(slots.get(&value));
        // Values from outside of the loop were defined before its arguments.
        let Some(id) = body.defining_op(value).filter(|_| first.is_some_and(|first| *first < value)) else {
            continue;
        };
        let mut inner = vec![body.op(id)];
        while let Some(op) = inner.pop() {
            work.extend(op.operands.iter().filter(|operand| seen.insert(**operand)));
            let blocks = op.regions.iter().flat_map(|region| &body.region(*region).blocks);
            inner.extend(blocks.flat_map(|block| body.block_ops(*block)).map(|(_, op)| op));
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_barrier(module: &Module) -> bool {
        module.op_counts().contains_key("stablehlo.optimization_barrier")
    }

    /// The slots with a barrier of a loop with the state `%a`, `%b` and `%c`, whose condition reads `%a` and `%b`.
    fn joined(iteration: &str) -> Vec<usize> {
        let text = format!(
            "func.func @main(%x: tensor<i32>) -> tensor<i32> {{
                %n = stablehlo.constant dense<9> : tensor<i32>
                %0:3 = stablehlo.while(%a = %x, %b = %n, %c = %x) : tensor<i32>, tensor<i32>, tensor<i32>
                cond {{
                    %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
                    stablehlo.return %1 : tensor<i1>
                }} do {{
                    %aa = stablehlo.add %a, %a : tensor<i32>
                    %ab = stablehlo.add %a, %b : tensor<i32>
                    %cc = stablehlo.add %c, %c : tensor<i32>
                    {iteration} : tensor<i32>, tensor<i32>, tensor<i32>
                }}
                return %0#2 : tensor<i32>
            }}"
        );
        let module = crate::parse(text.into_bytes()).unwrap();
        let body = &module.functions()[0].body;
        let (_, op) = body.all_ops().find(|(_, op)| matches!(op.kind, Op::While(_))).unwrap();
        let slots = removable(body, op);
        assert_eq!(has_barrier(&carried_loop_values(&module).unwrap()), !slots.is_empty());
        slots
    }

    #[test]
    fn values_that_depend_on_themselves_and_constant_ones_are_carried() {
        assert_eq!(joined("stablehlo.return %ab, %b, %cc"), []);
        assert_eq!(joined("stablehlo.return %aa, %b, %c"), []);
    }

    #[test]
    fn a_value_that_is_computed_without_the_previous_one_is_joined_with_it() {
        assert_eq!(joined("stablehlo.return %ab, %b, %aa"), [2]);
        // Nothing reads the previous %b but the condition, or but a result that may be unused.
        assert_eq!(joined("stablehlo.return %aa, %aa, %cc"), [0, 1]);
        assert_eq!(joined("stablehlo.return %aa, %a, %cc"), [1]);
        assert_eq!(joined("stablehlo.return %aa, %a, %ab"), [1, 2]);
    }

    #[test]
    fn equal_values_and_values_that_depend_on_no_state_are_joined() {
        assert_eq!(joined("stablehlo.return %ab, %ab, %cc"), [0, 1]);
        assert_eq!(joined("stablehlo.return %ab, %n, %cc"), [1]);
        assert_eq!(joined("stablehlo.return %ab, %b, %b"), [2]);
    }

    #[test]
    fn values_that_nested_regions_read_are_read() {
        let text = "func.func @main(%x: tensor<i32>) -> tensor<i32> {
            %0:2 = stablehlo.while(%a = %x, %b = %x) : tensor<i32>, tensor<i32>
            cond {
                %1 = stablehlo.compare LT, %a, %x : (tensor<i32>, tensor<i32>) -> tensor<i1>
                stablehlo.return %1 : tensor<i1>
            } do {
                %p = stablehlo.compare LT, %a, %x : (tensor<i32>, tensor<i32>) -> tensor<i1>
                %1 = \"stablehlo.if\"(%p) ({ stablehlo.return %b : tensor<i32> }, { stablehlo.return %a : tensor<i32> })
                    : (tensor<i1>) -> tensor<i32>
                stablehlo.return %a, %1 : tensor<i32>, tensor<i32>
            }
            return %0#1 : tensor<i32>
        }";
        let module = crate::parse(text.as_bytes().to_vec()).unwrap();
        assert!(!has_barrier(&carried_loop_values(&module).unwrap()));
    }
}
