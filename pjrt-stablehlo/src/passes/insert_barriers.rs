//! Keeps operands of operations apart from what computes them.

use super::rewrite::{Origins, Pass, Replacement, Rewriter, rewrite};
use crate::Error;
use crate::ir::{Body, Module, Op, Operation, ops};

/// A function that returns `true` if an operand of an operation, given by its number, needs a barrier.
pub type NeedsBarrier = fn(&Body, &Operation, usize) -> bool;

/// Inserts `stablehlo.optimization_barrier` before the operands for which a function returns `true`.
///
/// Compilers that fuse an operation with those before it sometimes fuse what they cannot compile, or compile wrong. The compiler
/// must not move operations across the barriers.
///
/// ```
/// use pjrt_stablehlo::ir::Op;
/// use pjrt_stablehlo::passes::insert_barriers;
///
/// let text = "func.func @main(%x: tensor<4xi8>, %y: tensor<4xi32>) -> tensor<i32> {
///     %0 = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xi32>
///     %1 = stablehlo.dot_general %0, %y, contracting_dims = [0] x [0] : (tensor<4xi32>, tensor<4xi32>) -> tensor<i32>
///     return %1 : tensor<i32>
/// }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// // Conversions stay out of products.
/// let module = insert_barriers(&module, |body, op, at| {
///     let defining = body.defining_op(op.operands[at]).map(|id| &body.op(id).kind);
///     matches!((&op.kind, defining), (Op::DotGeneral(_), Some(Op::Convert(_))))
/// })?;
/// assert_eq!(module.op_counts()["stablehlo.optimization_barrier"], 1);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`verify`](crate::verify), which the result satisfies.
pub fn insert_barriers(module: &Module, needs_barrier: NeedsBarrier) -> Result<Module, Error> {
    crate::verify(module)?;
    let separated = rewrite(module, &InsertBarriers { needs_barrier }, |_| true, &mut Origins::default())?;
    crate::verify(&separated)?;
    Ok(separated)
}

struct InsertBarriers {
    needs_barrier: NeedsBarrier,
}

impl Pass for InsertBarriers {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        let (body, mut operands) = (r.old_body(), r.flat(&op.operands));
        let separate: Vec<usize> =
            (0..operands.len()).filter(|at| (self.needs_barrier)(body, op, *at)).collect();
        if separate.is_empty() {
            return Ok(Replacement::Copy);
        }
        for at in separate {
            let ty = r.b.body.ty(operands[at]).clone();
            let barrier = Op::OptimizationBarrier(ops::OptimizationBarrier {});
            let barrier = r.b.add_op(barrier, &[operands[at]], [ty]);
            operands[at] = r.b.all_results(barrier)[0];
        }
        let types = r.result_types(op);
        let id = r.b.add_op(op.kind.clone(), &operands, types);
        r.copy_regions(op, id);
        Ok(Replacement::Values(r.b.all_results(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_with_regions_keep_them() {
        let text = "func.func @main(%x: tensor<4xf32>, %s: tensor<1xi32>, %y: tensor<f32>) -> tensor<4xf32> {
            %0 = \"stablehlo.scatter\"(%x, %s, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
                inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                %1 = stablehlo.subtract %a, %b : tensor<f32>
                stablehlo.return %1 : tensor<f32>
            }) {note = 1 : i32} : (tensor<4xf32>, tensor<1xi32>, tensor<f32>) -> tensor<4xf32>
            return %0 : tensor<4xf32>
        }";
        let module = crate::parse(text.as_bytes().to_vec()).unwrap();
        let separated =
            insert_barriers(&module, |_, op, at| matches!(op.kind, Op::Scatter(_)) && at != 1).unwrap();
        let counts = separated.op_counts();
        assert_eq!(
            (counts["stablehlo.optimization_barrier"], counts["stablehlo.subtract"]),
            (2, 1),
            "{separated}"
        );
        assert!(separated.to_string().contains("note = 1"), "{separated}");
    }
}
