//! Keeps the starts of gathered slices within the operand.

use super::rewrite::{Origins, Pass, Replacement, Rewriter, definite, rewrite};
use crate::Error;
use crate::ir::{ElementKind, ElementType, Module, Op, Operation, ops};

/// Inserts `stablehlo.clamp` so that no `stablehlo.gather` reads a slice that is not entirely within its operand.
///
/// StableHLO moves such a slice to the nearest one within the operand, and hosts rely on it. Many compilers lower `gather` to
/// loads without a check, which read other memory. Starts that are constants within bounds are not changed.
///
/// ```
/// use pjrt_stablehlo::passes::clamp_gather_starts;
///
/// let text = r#"func.func @main(%x: tensor<3x4xf32>, %rows: tensor<2x1xi32>) -> tensor<2x4xf32> {
///     %0 = "stablehlo.gather"(%x, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
///         start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>
///         : (tensor<3x4xf32>, tensor<2x1xi32>) -> tensor<2x4xf32>
///     return %0 : tensor<2x4xf32>
/// }"#;
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// assert_eq!(clamp_gather_starts(&module)?.op_counts()["stablehlo.clamp"], 1);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`verify`](crate::verify), which the result satisfies, or an error if the sizes of a `gather` are
/// dynamic.
pub fn clamp_gather_starts(module: &Module) -> Result<Module, Error> {
    crate::verify(module)?;
    let clamped = rewrite(module, &ClampGatherStarts, |_| true, &mut Origins::default())?;
    crate::verify(&clamped)?;
    Ok(clamped)
}

struct ClampGatherStarts;

/// Returns the largest number of an integer type, or of `i64` if that is less.
fn largest(element: ElementType) -> i64 {
    let sign = u32::from(element.kind() == ElementKind::SignedInteger);
    i64::MAX >> 63_u32.saturating_sub(element.bits() - sign)
}

impl Pass for ClampGatherStarts {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        let Op::Gather(gather) = &op.kind else { return Ok(Replacement::Copy) };
        let [operand, starts] = r.operands(op)?;
        definite(&r.b.tensor(operand))?;
        definite(&r.b.tensor(starts))?;
        let (dims, element) = (r.b.dims(operand), r.b.element(starts));
        let numbers = &gather.dimension_numbers;
        let last = |&at: &i64| dims[at as usize] - gather.slice_sizes[at as usize];
        let limits: Vec<i64> = numbers.start_index_map.iter().map(last).collect();
        // Each start is compared with the least limit, so that the place of the index vectors does not matter.
        let least = limits.iter().copied().min();
        let is_within = |known: &[i64], least| known.iter().all(|start| (0..=least).contains(start));
        let known = r.known(starts);
        if least.is_none_or(|least| known.is_some_and(|known| is_within(&known, least))) {
            return Ok(Replacement::Copy);
        }
        let b = &mut r.b;
        let ty = b.tensor(starts);
        let limits: Vec<i64> = limits.iter().map(|&limit| limit.min(largest(element))).collect();
        let vector = b.integers(&limits, element);
        let is_vector = numbers.index_vector_dim < ty.rank() as i64;
        let limit = if is_vector { vector } else { b.reshape(vector, &[]) };
        let dimension = [numbers.index_vector_dim];
        let starts_dims = b.dims(starts);
        let limit = b.broadcast(limit, if is_vector { &dimension } else { &[] }, &starts_dims);
        let zero = b.zeros(ty);
        let clamped = b.op(ops::Clamp {}, &[zero, starts, limit]);
        let types = r.result_types(op);
        let id = r.b.add_op(op.kind.clone(), &[operand, clamped], types);
        Ok(Replacement::Values(r.b.all_results(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of a program that gathers from eight rows of 300 numbers, after the pass.
    fn clamped(starts: &str, ty: &str, numbers: &str, result: &str) -> String {
        let text = format!(
            "func.func @main(%x: tensor<8x300xf32>, %s: {ty}) -> {result} {{
                {starts}
                %0 = \"stablehlo.gather\"(%x, %s1) <{{dimension_numbers = #stablehlo.gather<{numbers}>,
                    slice_sizes = array<i64: 1, 10>}}> : (tensor<8x300xf32>, {ty}) -> {result}
                return %0 : {result}
            }}"
        );
        clamp_gather_starts(&crate::parse(text.into_bytes()).unwrap()).unwrap().to_string()
    }

    const BOTH: &str =
        "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [1, 0], index_vector_dim = 1";

    #[test]
    fn each_start_has_the_limit_of_its_dimension() {
        let copy = "%s1 = stablehlo.optimization_barrier %s : tensor<2x2xi32>";
        let text = clamped(copy, "tensor<2x2xi32>", BOTH, "tensor<2x10xf32>");
        assert!(text.contains("stablehlo.clamp") && text.contains("dense<[290, 7]>"), "{text}");
    }

    #[test]
    fn limits_are_numbers_of_the_type_of_the_starts() {
        let copy = "%s1 = stablehlo.optimization_barrier %s : tensor<2x2xi8>";
        let text = clamped(copy, "tensor<2x2xi8>", BOTH, "tensor<2x10xf32>");
        assert!(text.contains("dense<[127, 7]>"), "{text}");
        assert_eq!((largest(ElementType::Ui8), largest(ElementType::Ui64)), (255, i64::MAX));
    }

    #[test]
    fn a_scalar_start_is_clamped() {
        let numbers =
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1";
        let copy = "%s1 = stablehlo.optimization_barrier %s : tensor<2xi32>";
        let text = clamped(copy, "tensor<2xi32>", numbers, "tensor<2x10xf32>");
        assert!(text.contains("stablehlo.clamp") && text.contains("dense<[7]>"), "{text}");
    }

    #[test]
    fn constant_starts_within_bounds_are_not_changed() {
        for (starts, is_clamped) in [("[[1, 2], [0, 7]]", false), ("[[1, 2], [0, 8]]", true)] {
            let constant = format!("%s1 = stablehlo.constant dense<{starts}> : tensor<2x2xi32>");
            let text = clamped(&constant, "tensor<2x2xi32>", BOTH, "tensor<2x10xf32>");
            assert_eq!(text.contains("stablehlo.clamp"), is_clamped, "{text}");
        }
    }
}
