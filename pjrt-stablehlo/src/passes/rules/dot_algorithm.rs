//! The rule for `dot_general` with an algorithm: products without one, of the components of the operands.

use crate::Error;
use crate::build::Builder;
use crate::ir::ops::{DotGeneral, ReducePrecision};
use crate::ir::{DotAlgorithm, ElementType, Op, TensorType, Type, ValueId};
use crate::passes::rewrite::unsupported;

/// The maximum number of components of an operand. Known algorithms have at most three.
const MAX_COMPONENTS: i64 = 4;

/// Decomposes a `dot_general` with an algorithm into products of the operands' components, which have the precision types of the
/// algorithm, and the sum of these products in its accumulation type. Small products are added first.
pub(super) fn decompose(
    b: &mut Builder,
    dot: &DotGeneral,
    algorithm: &DotAlgorithm,
    [lhs, rhs]: [ValueId; 2],
    result: &TensorType,
) -> Result<ValueId, Error> {
    let pairs = pairs(algorithm)?;
    let accumulation = match element(&algorithm.accumulation_type)? {
        ElementType::Tf32 => ElementType::F32,
        element => element,
    };
    let lhs = components(b, lhs, element(&algorithm.lhs_precision_type)?, algorithm.lhs_component_count);
    let rhs = components(b, rhs, element(&algorithm.rhs_precision_type)?, algorithm.rhs_component_count);
    let kind = Op::DotGeneral(Box::new(DotGeneral { algorithm: None, ..dot.clone() }));
    let ty = TensorType::new(accumulation, result.dims());
    let mut product = |(i, j): (usize, usize)| b.op_of_type(kind.clone(), &[lhs[i], rhs[j]], ty.clone());
    let largest = product((0, 0));
    let small: Vec<ValueId> = pairs.into_iter().skip(1).rev().map(&mut product).collect();
    let sum = match small.into_iter().reduce(|sum, product| b.add(sum, product)) {
        Some(small) => {
            // Infinities have no meaningful smaller components. The largest product has their results.
            let (is_finite, zero) = (b.is_finite(small), b.zeros(ty));
            let small = b.select(is_finite, small, zero);
            b.add(largest, small)
        }
        None => largest,
    };
    Ok(b.convert(sum, result.element_type()))
}

/// Returns the pairs of components that are multiplied, those with the largest products first: component `i` is smaller than the
/// operand by the precision of `i` components.
fn pairs(algorithm: &DotAlgorithm) -> Result<Vec<(usize, usize)>, Error> {
    let (lhs, rhs) = (algorithm.lhs_component_count, algorithm.rhs_component_count);
    let products = algorithm.num_primitive_operations;
    if lhs.max(rhs) > MAX_COMPONENTS || products > lhs * rhs {
        return Err(unsupported(format!(
            "an algorithm with {products} products of {lhs} components and {rhs} components cannot be decomposed: expected at \
             most {MAX_COMPONENTS} components of an operand, and at most one product of each pair"
        )));
    }
    let mut pairs: Vec<_> = (0..lhs as usize).flat_map(|i| (0..rhs as usize).map(move |j| (i, j))).collect();
    pairs.sort_by_key(|&(i, j)| i + j);
    pairs.truncate(products as usize);
    Ok(pairs)
}

/// Returns the element type of a precision or of an accumulation.
fn element(ty: &Type) -> Result<ElementType, Error> {
    match ty {
        Type::Scalar(element) => Ok(*element),
        _ => Err(unsupported(format!(
            "a product with the precision {ty} cannot be decomposed, expected a float type"
        ))),
    }
}

/// Returns the components of an operand. Each is what the components before it leave, rounded to the precision.
fn components(b: &mut Builder, operand: ValueId, precision: ElementType, count: i64) -> Vec<ValueId> {
    let exact = b.element(operand);
    let mut components = vec![rounded(b, operand, precision)];
    let mut rest = operand;
    for index in 1..count as usize {
        let component = components[index - 1];
        let subtrahend = b.convert(component, exact);
        rest = b.subtract(rest, subtrahend);
        components.push(rounded(b, rest, precision));
    }
    components
}

/// Rounds to a precision. No array has elements of tf32, so values of this precision have the type f32.
fn rounded(b: &mut Builder, operand: ValueId, precision: ElementType) -> ValueId {
    if precision != ElementType::Tf32 {
        return b.convert(operand, precision);
    }
    let operand = b.convert(operand, ElementType::F32);
    b.op(ReducePrecision { exponent_bits: 8, mantissa_bits: 10 }, &[operand])
}
