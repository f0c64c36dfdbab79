//! Limits the number of arrays that an elementwise expression reads.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use super::rewrite::{Origins, Pass, Replacement, Rewriter, rewrite};
use crate::Error;
use crate::ir::{Function, Module, Op, OpCode, OpId, Operation, Trait, ValueId, ops};

/// Inserts `stablehlo.optimization_barrier` so that no expression of elementwise operations reads more than `max_arrays` arrays.
///
/// A compiler that fuses an expression into one kernel passes each array to it as an argument, and devices limit their number:
/// Vulkan guarantees 4 storage buffers for each stage, and IREE has 32 bindings for each dispatch. The expression consists of
/// elementwise operations, and of the broadcasts, reshapes and transposes between them. The compiler must not move operations
/// across the barriers.
///
/// ```
/// use pjrt_stablehlo::passes::split_elementwise;
///
/// let text = "func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
///     %0 = stablehlo.add %a, %b : tensor<4xf32>
///     %1 = stablehlo.add %0, %c : tensor<4xf32>
///     return %1 : tensor<4xf32>
/// }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// assert_eq!(split_elementwise(&module, 3)?.op_counts().get("stablehlo.optimization_barrier"), None);
/// assert_eq!(split_elementwise(&module, 2)?.op_counts()["stablehlo.optimization_barrier"], 1);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`verify`](crate::verify), which the result satisfies.
pub fn split_elementwise(module: &Module, max_arrays: usize) -> Result<Module, Error> {
    crate::verify(module)?;
    let pass = SplitElementwise { max_arrays, arrays: RefCell::default() };
    let split = rewrite(module, &pass, |_| true, &mut Origins::default())?;
    crate::verify(&split)?;
    Ok(split)
}

struct SplitElementwise {
    max_arrays: usize,
    /// For each result of an expression, the arrays that the expression reads.
    arrays: RefCell<HashMap<ValueId, BTreeSet<ValueId>>>,
}

impl SplitElementwise {
    /// Returns the arrays that the expression of a value reads: itself, if it is not the result of an expression.
    fn of(&self, value: ValueId) -> BTreeSet<ValueId> {
        self.arrays.borrow().get(&value).cloned().unwrap_or_else(|| BTreeSet::from([value]))
    }

    fn of_all(&self, values: &[ValueId]) -> BTreeSet<ValueId> {
        values.iter().flat_map(|value| self.of(*value)).collect()
    }

    /// Records the arrays of an operation's results.
    fn record(&self, r: &Rewriter<'_>, id: OpId, operands: &[ValueId]) {
        let arrays = self.of_all(operands);
        let results = r.b.all_results(id).into_iter().map(|result| (result, arrays.clone()));
        self.arrays.borrow_mut().extend(results);
    }
}

/// Returns `true` if an operation is part of the expression of its result. Constants and `iota` are, and read no arrays.
pub(super) fn is_part(op: &Op) -> bool {
    let code = op.code();
    code.info().has(Trait::Elementwise)
        || matches!(
            code,
            OpCode::BroadcastInDim | OpCode::Constant | OpCode::Iota | OpCode::Reshape | OpCode::Transpose
        )
}

impl Pass for SplitElementwise {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        if !is_part(&op.kind) {
            return Ok(Replacement::Copy);
        }
        let mut operands = r.flat(&op.operands);
        while self.of_all(&operands).len() > self.max_arrays {
            let largest = operands.iter_mut().max_by_key(|operand| self.of(**operand).len());
            let Some(largest) = largest.filter(|operand| self.of(**operand).len() > 1) else { break };
            let ty = r.b.body.ty(*largest).clone();
            let barrier =
                r.b.add_op(Op::OptimizationBarrier(ops::OptimizationBarrier {}), &[*largest], vec![ty]);
            *largest = r.b.all_results(barrier)[0];
        }
        let types = r.result_types(op);
        let id = r.b.add_op(op.kind.clone(), &operands, types);
        self.record(r, id, &operands);
        Ok(Replacement::Values(r.b.all_results(id)))
    }

    fn end_function(&self, _: &mut Function) {
        self.arrays.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that adds this many arguments, and one that adds its sums again.
    fn sum(arguments: usize) -> Module {
        let parameters: Vec<String> = (0..arguments).map(|i| format!("%a{i}: tensor<4xf32>")).collect();
        let mut text = format!("func.func @main({}) -> tensor<4xf32> {{\n", parameters.join(", "));
        text += "%s0 = stablehlo.negate %a0 : tensor<4xf32>\n";
        for i in 1..arguments {
            text += &format!("%s{i} = stablehlo.add %s{}, %a{i} : tensor<4xf32>\n", i - 1);
        }
        text += &format!("return %s{} : tensor<4xf32> }}", arguments - 1);
        crate::parse(text.into_bytes()).unwrap()
    }

    fn barriers(module: &Module) -> usize {
        module.op_counts().get("stablehlo.optimization_barrier").copied().unwrap_or(0)
    }

    #[test]
    fn barriers_are_as_rare_as_the_limit_permits() {
        // Each expression reads 10 arrays: the first 10 arguments, then the barrier and 9 arguments.
        for (arguments, expected) in [(1, 0), (10, 0), (11, 1), (19, 1), (20, 2), (100, 10)] {
            assert_eq!(barriers(&split_elementwise(&sum(arguments), 10).unwrap()), expected, "{arguments}");
        }
    }

    #[test]
    fn an_operation_that_reads_more_arrays_than_the_limit_remains() {
        assert_eq!(barriers(&split_elementwise(&sum(2), 1).unwrap()), 0);
    }

    #[test]
    fn broadcasts_belong_to_expressions_and_reductions_do_not() {
        let text = "func.func @main(%x: tensor<4xf32>, %y: tensor<f32>) -> tensor<4xf32> {
            %0 = stablehlo.multiply %x, %x : tensor<4xf32>
            %1 = stablehlo.reduce(%0 init: %y) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
            %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
            %3 = stablehlo.add %0, %2 : tensor<4xf32>
            return %3 : tensor<4xf32>
        }";
        let module = crate::parse(text.as_bytes().to_vec()).unwrap();
        assert_eq!(barriers(&split_elementwise(&module, 2).unwrap()), 0);
    }
}
