//! Operations with regions, calls and tuples.

use super::context::{Check, element_of, elements_agree, predicate, shapes_agree, types_agree};
use crate::Error;
use crate::ir::ops::{Composite, CustomCall, FuncCall, ManualComputation};
use crate::ir::{ElementType, Function, TensorType, Type};

fn operand_types(check: &Check<'_>) -> Vec<Type> {
    (0..check.op.operands.len()).map(|index| check.operand_type(index).clone()).collect()
}

fn result_types(check: &Check<'_>) -> Vec<Type> {
    (0..check.op.results.len()).map(|index| check.result_type(index).clone()).collect()
}

/// `while`: condition and body take the operands, the body gives their successors.
pub(super) fn while_(check: &Check<'_>) -> Result<(), Error> {
    let types = operand_types(check);
    check.region_signature(0, &types, &[predicate()])?;
    check.region_signature(1, &types, &types)?;
    check.results_are_operands()
}

/// `if`: both branches give the results.
pub(super) fn if_(check: &Check<'_>) -> Result<(), Error> {
    let condition = check.scalar(0)?;
    check.require(condition.element_type() == ElementType::I1, || {
        format!("operand 'pred': expected tensor<i1>, found {condition}")
    })?;
    branches(check)
}

/// `case`: at least one branch, each gives the results.
pub(super) fn case(check: &Check<'_>) -> Result<(), Error> {
    let index = check.scalar(0)?;
    check.require(index.element_type() == ElementType::I32, || {
        format!("operand 'index': expected tensor<i32>, found {index}")
    })?;
    check.require(!check.op.regions.is_empty(), || "expected at least one branch".to_owned())?;
    branches(check)
}

fn branches(check: &Check<'_>) -> Result<(), Error> {
    let results = result_types(check);
    (0..check.op.regions.len()).try_for_each(|index| check.region_signature(index, &[], &results))
}

/// Checks that input, initial value and result of a reduction have elements that go together: StableHLO allows results
/// of more precision than the inputs.
pub(super) fn accumulated(check: &Check<'_>, index: usize, inputs: usize) -> Result<(), Error> {
    let (init, result) = (check.tensor(inputs + index)?, check.result_tensor(index)?);
    let input = check.tensor(index)?;
    let promotable =
        |from: ElementType, to: ElementType| from.kind() == to.kind() && from.bits() <= to.bits();
    let fits = elements_agree(input, result) || promotable(input.element_type(), result.element_type());
    let init_fits = elements_agree(init, result) || promotable(init.element_type(), result.element_type());
    check.require(fits && init_fits, || {
        format!("result {index}: expected elements that hold those of {input} and {init}, found {result}")
    })
}

/// The type that a reduction's region combines: elements of the result in the shape of the initial value, which is a
/// scalar but in programs of old.
fn accumulator(init: &TensorType, result: &TensorType) -> Type {
    match result.quantization() {
        Some(quantization) => Type::Tensor(TensorType::quantized(quantization.clone(), init.dims())),
        None => Type::Tensor(TensorType::new(result.element_type(), init.dims())),
    }
}

/// Checks a region that combines two elements of each result.
pub(super) fn reducer(check: &Check<'_>, region: usize, inputs: usize) -> Result<(), Error> {
    let elements: Vec<Type> = (0..inputs)
        .map(|index| Ok(accumulator(check.tensor(inputs + index)?, check.result_tensor(index)?)))
        .collect::<Result<_, Error>>()?;
    let arguments: Vec<Type> = elements.iter().chain(&elements).cloned().collect();
    check.region_signature(region, &arguments, &elements)
}

/// `reduce`: dimensions of the inputs go away.
pub(super) fn reduce(check: &Check<'_>, dimensions: &[i64]) -> Result<(), Error> {
    let inputs = check.op.operands.len() / 2;
    check.require(inputs > 0, || "expected at least one input".to_owned())?;
    check.length("results", check.op.results.len(), inputs)?;
    let first = check.tensor(0)?;
    check.unique_dimensions("dimensions", dimensions, first.rank())?;
    for index in 0..inputs {
        let input = check.tensor(index)?;
        check.require(shapes_agree(first.dims(), input.dims()), || {
            format!("operand {index}: expected the shape of {first}, found {input}")
        })?;
        let kept = input.dims().iter().enumerate();
        let kept = kept.filter(|(place, _)| !dimensions.contains(&(*place as i64))).map(|(_, &size)| size);
        check.result_shape(index, &kept.collect::<Vec<_>>())?;
        accumulated(check, index, inputs)?;
    }
    reducer(check, 0, inputs)
}

/// `map`: one element of each input gives one of the result.
pub(super) fn map(check: &Check<'_>, dimensions: &[i64]) -> Result<(), Error> {
    check.require(!check.op.operands.is_empty(), || "expected at least one input".to_owned())?;
    let first = check.tensor(0)?;
    let all: Vec<i64> = (0..first.rank() as i64).collect();
    check.require(dimensions == all, || format!("dimensions: expected {all:?}, found {dimensions:?}"))?;
    let mut elements = Vec::new();
    for index in 0..check.op.operands.len() {
        let input = check.tensor(index)?;
        check.require(shapes_agree(first.dims(), input.dims()), || {
            format!("operand {index}: expected the shape of {first}, found {input}")
        })?;
        elements.push(element_of(input));
    }
    check.result_shape(0, first.dims())?;
    check.region_signature(0, &elements, &[element_of(check.result_tensor(0)?)])
}

/// `sort`: inputs of one shape; the region compares two elements of each.
pub(super) fn sort(check: &Check<'_>, dimension: i64) -> Result<(), Error> {
    check.require(!check.op.operands.is_empty(), || "expected at least one input".to_owned())?;
    let first = check.tensor(0)?;
    let rank = first.rank() as i64;
    // A scalar is sorted as it is.
    let in_range = (-rank..rank).contains(&dimension) || rank == 0 && (-1..=0).contains(&dimension);
    check.require(in_range, || format!("dimension: expected one of {rank}, found {dimension}"))?;
    let mut arguments = Vec::new();
    for index in 0..check.op.operands.len() {
        let input = check.tensor(index)?;
        check.require(shapes_agree(first.dims(), input.dims()), || {
            format!("operand {index}: expected the shape of {first}, found {input}")
        })?;
        arguments.extend([element_of(input), element_of(input)]);
    }
    check.region_signature(0, &arguments, &[predicate()])?;
    check.results_are_operands()
}

/// Checks that a function takes an operation's operands and gives its results.
fn callee(check: &Check<'_>, attribute: &str, name: &str) -> Result<(), Error> {
    let function = check.module.function(name);
    let function: &Function =
        function.ok_or_else(|| check.error(format!("{attribute}: the module has no function '{name}'")))?;
    for (what, expected, found) in [
        ("operand", &function.ty.inputs, operand_types(check)),
        ("result", &function.ty.results, result_types(check)),
    ] {
        check.require(expected.len() == found.len(), || {
            format!(
                "{attribute}: expected {} {what}s of function '{name}', found {}",
                expected.len(),
                found.len()
            )
        })?;
        for (index, (expected, found)) in expected.iter().zip(&found).enumerate() {
            check.require(types_agree(expected, found), || {
                format!("{what} {index} of function '{name}': expected {expected}, found {found}")
            })?;
        }
    }
    Ok(())
}

/// `func.call`.
pub(super) fn call(check: &Check<'_>, op: &FuncCall) -> Result<(), Error> {
    callee(check, "callee", &op.callee)
}

/// `composite`: its decomposition does the same.
pub(super) fn composite(check: &Check<'_>, op: &Composite) -> Result<(), Error> {
    callee(check, "decomposition", &op.decomposition)
}

/// `custom_call`: layouts and aliases fit operands and results. Names of called functions mean something to the target
/// only.
pub(super) fn custom_call(check: &Check<'_>, op: &CustomCall) -> Result<(), Error> {
    for (what, layouts, count) in [
        ("operand_layouts", &op.operand_layouts, check.op.operands.len()),
        ("result_layouts", &op.result_layouts, flat_results(check)),
    ] {
        if let Some(layouts) = layouts {
            check.length(what, layouts.len(), count)?;
        }
    }
    for alias in &op.output_operand_aliases {
        let index = usize::try_from(alias.operand_index).ok();
        check.require(index.is_some_and(|index| index < check.op.operands.len()), || {
            format!("output_operand_aliases: expected an operand, found {}", alias.operand_index)
        })?;
    }
    Ok(())
}

/// Results of a `custom_call`, where one tuple counts as its elements.
fn flat_results(check: &Check<'_>) -> usize {
    match (check.op.results.len(), check.result_type(0)) {
        (1, Type::Tuple(elements)) => elements.len(),
        (count, _) => count,
    }
}

/// `tuple`: of its operands.
pub(super) fn tuple(check: &Check<'_>) -> Result<(), Error> {
    let expected = Type::Tuple(operand_types(check).into());
    let found = check.result_type(0);
    check.require(types_agree(&expected, found), || format!("result 0: expected {expected}, found {found}"))
}

/// `get_tuple_element`: an element that is there.
pub(super) fn get_tuple_element(check: &Check<'_>, index: i64) -> Result<(), Error> {
    let Type::Tuple(elements) = check.operand_type(0) else {
        return Err(
            check.error(format!("operand 'operand': expected a tuple, found {}", check.operand_type(0)))
        );
    };
    let element = usize::try_from(index).ok().and_then(|index| elements.get(index));
    let expected = element.ok_or_else(|| {
        check.error(format!("index: expected one of {} elements, found {index}", elements.len()))
    })?;
    let found = check.result_type(0);
    check.require(types_agree(expected, found), || format!("result 0: expected {expected}, found {found}"))
}

/// `sdy.manual_computation`: a sharding for each operand and result, which the region takes and gives.
pub(super) fn manual_computation(check: &Check<'_>, op: &ManualComputation) -> Result<(), Error> {
    check.length("in_shardings", op.in_shardings.len(), check.op.operands.len())?;
    check.length("out_shardings", op.out_shardings.len(), check.op.results.len())?;
    let (arguments, returned) = check.region(0)?;
    for (what, whole, parts) in
        [("argument", operand_types(check), arguments), ("returned value", result_types(check), returned)]
    {
        check.length(&format!("region 'body', {what}s"), parts.len(), whole.len())?;
        for (index, (whole, part)) in whole.iter().zip(parts).enumerate() {
            let fits = match (whole, part) {
                (Type::Tensor(whole), Type::Tensor(part)) => {
                    whole.rank() == part.rank() && elements_agree(whole, part)
                }
                (whole, part) => whole == part,
            };
            check.require(fits, || {
                format!("region 'body', {what} {index}: expected a part of {whole}, found {part}")
            })?;
        }
    }
    Ok(())
}
