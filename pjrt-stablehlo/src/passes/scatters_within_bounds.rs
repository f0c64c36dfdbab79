//! Keeps scattered slices within the operand.

use super::rewrite::{Origins, Pass, Replacement, Rewriter, definite, rewrite};
use crate::Error;
use crate::build::Builder;
use crate::ir::indexing::slice_sizes;
use crate::ir::ops::{Pad, Scatter};
use crate::ir::{ComparisonDirection as Cmp, ElementType, Module, Op, OpCode, Operation, Type, ValueId};

/// Gives each `stablehlo.scatter` a place for the slices that are not entirely within its operand.
///
/// XLA skips such slices, and hosts rely on it. Many compilers lower `scatter` to stores without a check, which write other
/// memory. The operand is extended by one slice, which receives them, and is removed from the result. Starts that are constants
/// within bounds are not changed.
///
/// ```
/// use pjrt_stablehlo::passes::scatters_within_bounds;
///
/// let text = r#"func.func @main(%x: tensor<3xf32>, %rows: tensor<2x1xi32>, %y: tensor<2xf32>) -> tensor<3xf32> {
///     %0 = "stablehlo.scatter"(%x, %rows, %y) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
///         scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
///     ^bb0(%a: tensor<f32>, %b: tensor<f32>):
///         stablehlo.return %b : tensor<f32>
///     }) : (tensor<3xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<3xf32>
///     return %0 : tensor<3xf32>
/// }"#;
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// assert_eq!(scatters_within_bounds(&module)?.op_counts()["stablehlo.pad"], 1);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`verify`](crate::verify), which the result satisfies, or an error if the sizes of a `scatter` are
/// dynamic.
pub fn scatters_within_bounds(module: &Module) -> Result<Module, Error> {
    crate::verify(module)?;
    let checked = rewrite(module, &ScattersWithinBounds, |_| true, &mut Origins::default())?;
    crate::verify(&checked)?;
    Ok(checked)
}

struct ScattersWithinBounds;

impl Pass for ScattersWithinBounds {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        let Op::Scatter(scatter) = &op.kind else { return Ok(Replacement::Copy) };
        let mut operands = r.tensors(op)?;
        for operand in &operands {
            definite(&r.b.tensor(*operand))?;
        }
        let count = op.results.len();
        let (input, update) = (r.b.tensor(operands[0]), r.b.tensor(operands[count + 1]));
        let sizes = slice_sizes(scatter, update.dims());
        let indexed = &scatter.scatter_dimension_numbers.scatter_dims_to_operand_dims;
        let last = |at: &i64| input.dims()[*at as usize] - sizes[*at as usize];
        let limits: Vec<i64> = indexed.iter().map(last).collect();
        let Some(least) = limits.iter().copied().min() else { return Ok(Replacement::Copy) };
        let known = r.known(operands[count]);
        if known.is_some_and(|known| known.iter().all(|start| (0..=least).contains(start))) {
            return Ok(Replacement::Copy);
        }
        let first = indexed[0] as usize;
        operands[count] = redirected(&mut r.b, scatter, operands[count], &limits, input.dims()[first]);
        for operand in &mut operands[..count] {
            *operand = extended(&mut r.b, *operand, first, sizes[first]);
        }
        let types: Vec<Type> = operands[..count].iter().map(|operand| r.b.ty(*operand).clone()).collect();
        let id = r.b.add_op(op.kind.clone(), &operands, types);
        r.b.body.op_mut(id).attributes = op.attributes.clone();
        r.copy_region(op.regions[0], id);
        let results = r.b.all_results(id).into_iter();
        let results = results.map(|result| r.b.slice_in_dim(result, first, 0, input.dims()[first])).collect();
        r.bind(op, results);
        Ok(Replacement::Blocks)
    }
}

/// Replaces the index vectors of slices that are not within bounds by that of the slice after the end of the first indexed
/// dimension.
fn redirected(b: &mut Builder, scatter: &Scatter, starts: ValueId, limits: &[i64], end: i64) -> ValueId {
    // The end may not be a number of the type of the starts.
    let is_wide = b.element(starts).bits() >= 64 || b.element(starts) == ElementType::Ui32;
    let starts = b.convert(starts, if is_wide { ElementType::I64 } else { ElementType::I32 });
    let ty = b.tensor(starts);
    let dimension = scatter.scatter_dimension_numbers.index_vector_dim;
    let is_vector = dimension < ty.rank() as i64;
    let mut spread = |numbers: &[i64]| {
        let vector = b.integers(numbers, ty.element_type());
        let vector = if is_vector { vector } else { b.reshape(vector, &[]) };
        b.broadcast(vector, if is_vector { std::slice::from_ref(&dimension) } else { &[] }, ty.dims())
    };
    let last = spread(limits);
    let mut ends = vec![0; limits.len()];
    ends[0] = end;
    let ends = spread(&ends);
    let not_after = b.compare(Cmp::Le, starts, last);
    let not_before = b.compare_with(Cmp::Ge, starts, 0.0);
    let mut is_within = b.and(not_after, not_before);
    if is_vector && limits.len() > 1 {
        let all = b.reduce(is_within, &[dimension], OpCode::And, 1.0);
        let others: Vec<i64> = (0..ty.rank() as i64).filter(|other| *other != dimension).collect();
        is_within = b.broadcast(all, &others, ty.dims());
    }
    b.select(is_within, starts, ends)
}

/// Extends an operand at the end of a dimension.
fn extended(b: &mut Builder, x: ValueId, dimension: usize, size: i64) -> ValueId {
    let ty = b.tensor(x);
    let none = vec![0; ty.rank()];
    let mut high = none.clone();
    high[dimension] = size;
    let zero = b.zeros(ty.with_dims([]));
    let kind = Pad {
        edge_padding_low: none.clone().into(),
        edge_padding_high: high.into(),
        interior_padding: none.into(),
    };
    b.op(kind, &[x, zero])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scatter of rows into a matrix of 3x4, with these starts.
    fn checked(starts: &str) -> Module {
        let text = format!(
            "func.func @main(%x: tensor<3x4xf32>, %s: tensor<2x1xi8>, %y: tensor<2x4xf32>) -> tensor<3x4xf32> {{
                {starts}
                %0 = \"stablehlo.scatter\"(%x, %s1, %y) <{{scatter_dimension_numbers = #stablehlo.scatter<
                    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
                    index_vector_dim = 1>}}> ({{
                ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                    %1 = stablehlo.add %a, %b : tensor<f32>
                    stablehlo.return %1 : tensor<f32>
                }}) : (tensor<3x4xf32>, tensor<2x1xi8>, tensor<2x4xf32>) -> tensor<3x4xf32>
                return %0 : tensor<3x4xf32>
            }}"
        );
        scatters_within_bounds(&crate::parse(text.into_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn the_operand_is_extended_by_one_slice() {
        let text = checked("%s1 = stablehlo.negate %s : tensor<2x1xi8>").to_string();
        assert!(text.contains("tensor<4x4xf32>") && text.contains("tensor<2x1xi32>"), "{text}");
    }

    #[test]
    fn constant_starts_within_bounds_are_not_changed() {
        for (starts, is_changed) in [("[[0], [2]]", false), ("[[0], [3]]", true), ("[[-1], [0]]", true)] {
            let module = checked(&format!("%s1 = stablehlo.constant dense<{starts}> : tensor<2x1xi8>"));
            assert_eq!(module.op_counts().contains_key("stablehlo.pad"), is_changed, "{module}");
        }
    }
}
