//! Makes the results of stable sorts independent of the algorithm.

use super::rewrite::{Origins, Pass, Replacement, Rewriter, definite, rewrite};
use super::rules::{is_before, with_positions};
use crate::Error;
use crate::ir::{Module, Op, Operation, TensorType, Type, ops};

/// Adds the positions of the elements as the last key of each stable `stablehlo.sort`, which then needs not be stable.
///
/// StableHLO's hosts ask for stable sorts, and many devices have only others. After the pass, no two elements are equal for the
/// comparison, so that every algorithm has the same result, and `is_stable` is `false`. The positions are those of an operand
/// that is an `iota` along the sorted dimension, if there is one, as in the decomposition of `chlo.top_k`; otherwise they are one
/// more operand. Elements that are equal take two comparisons.
///
/// ```
/// use pjrt_stablehlo::passes::stable_sorts;
///
/// let text = r#"func.func @main(%x: tensor<9xf32>) -> tensor<9xf32> {
///     %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
///     ^bb0(%a: tensor<f32>, %b: tensor<f32>):
///         %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
///         stablehlo.return %1 : tensor<i1>
///     }) : (tensor<9xf32>) -> tensor<9xf32>
///     return %0 : tensor<9xf32>
/// }"#;
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// assert_eq!(stable_sorts(&module)?.op_counts()["stablehlo.iota"], 1);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`verify`](crate::verify), which the result satisfies, or an error if the sizes of a stable sort are
/// dynamic, or if an operation of its comparison is not elementwise.
pub fn stable_sorts(module: &Module) -> Result<Module, Error> {
    crate::verify(module)?;
    let stable = rewrite(module, &StableSorts, |_| true, &mut Origins::default())?;
    crate::verify(&stable)?;
    Ok(stable)
}

struct StableSorts;

impl Pass for StableSorts {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        let Op::Sort(sort) = &op.kind else { return Ok(Replacement::Copy) };
        let ty = r.any_result(op)?;
        let dimension = if sort.dimension < 0 { sort.dimension + ty.rank() as i64 } else { sort.dimension };
        let size = ty.dims().get(dimension as usize).copied().unwrap_or(1);
        if !sort.is_stable || (0..2).contains(&size) {
            return Ok(Replacement::Copy);
        }
        definite(&ty)?;
        let count = op.results.len();
        let mut operands = r.tensors(op)?;
        let positions = with_positions(r, &mut operands, dimension as usize);
        let types: Vec<TensorType> = operands.iter().map(|operand| r.b.tensor(*operand)).collect();
        let results: Vec<Type> = types.iter().cloned().map(Type::from).collect();
        let id = r.b.add_op(ops::Sort { is_stable: false, ..sort.clone() }, &operands, results);
        let scalars = types.iter().flat_map(|ty| [ty.with_dims([]), ty.with_dims([])]).map(Type::from);
        let outer = r.b.begin_region(id, scalars.collect::<Vec<_>>());
        let arguments = r.b.arguments();
        let is_before = is_before(r, op, &arguments, Some(positions))?;
        r.b.end_region(outer, &[is_before]);
        let mut sorted = r.b.all_results(id);
        sorted.truncate(count);
        Ok(Replacement::Values(sorted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sort of rows, with more operands and attributes, whose comparison is of the first operand.
    fn sort(operands: &str, types: &str, is_stable: bool) -> Module {
        let types: Vec<&str> = types.split(", ").collect();
        let arguments = types.iter().enumerate().flat_map(|(index, ty)| {
            let element = &ty[ty.find("xi").or(ty.find("xf")).unwrap() + 1..];
            [format!("%a{index}: tensor<{element}"), format!("%b{index}: tensor<{element}")]
        });
        let text = format!(
            "func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xi32>) -> {first} {{
                %i = stablehlo.iota dim = 1 : tensor<2x3xi32>
                %j = stablehlo.iota dim = 0 : tensor<2x3xi32>
                %k = stablehlo.iota dim = 1 : tensor<2x3xi8>
                %0:{count} = \"stablehlo.sort\"({operands}) <{{dimension = 1 : i64, is_stable = {is_stable}}}> ({{
                ^bb0({arguments}):
                    %1 = stablehlo.compare LT, %a0, %b0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
                    stablehlo.return %1 : tensor<i1>
                }}) : ({types}) -> ({types})
                return %0#0 : {first}
            }}",
            first = types[0],
            count = types.len(),
            arguments = arguments.collect::<Vec<_>>().join(", "),
            types = types.join(", "),
        );
        crate::parse(text.into_bytes()).unwrap()
    }

    fn operands_of_the_sort(module: &Module) -> usize {
        let mut ops = module.functions()[0].ops();
        ops.find(|(_, op)| matches!(op.kind, Op::Sort(_))).unwrap().1.operands.len()
    }

    #[test]
    fn positions_are_added_unless_an_operand_has_them() {
        for (operands, types, expected) in [
            ("%x", "tensor<2x3xf32>", 2),
            ("%x, %y", "tensor<2x3xf32>, tensor<2x3xi32>", 3),
            ("%x, %i", "tensor<2x3xf32>, tensor<2x3xi32>", 2),
            ("%x, %j", "tensor<2x3xf32>, tensor<2x3xi32>", 3),
            ("%x, %k", "tensor<2x3xf32>, tensor<2x3xi8>", 3),
        ] {
            let module = stable_sorts(&sort(operands, types, true)).unwrap();
            assert_eq!(operands_of_the_sort(&module), expected, "{module}");
            assert_eq!(module.op_counts()["stablehlo.compare"], 3, "{module}");
            assert!(!module.to_string().contains("is_stable = true"), "{module}");
        }
    }

    #[test]
    fn other_sorts_are_not_changed() {
        let module = stable_sorts(&sort("%x", "tensor<2x3xf32>", false)).unwrap();
        assert_eq!(operands_of_the_sort(&module), 1);
        assert_eq!(module.op_counts()["stablehlo.compare"], 1);
    }

    #[test]
    fn a_second_pass_changes_nothing() {
        let once = stable_sorts(&sort("%x", "tensor<2x3xf32>", true)).unwrap();
        assert_eq!(stable_sorts(&once).unwrap().to_string(), once.to_string());
    }
}
