//! Types of results from operations and their operands.

mod collectives;
mod context;
mod control;
mod elementwise;
mod indexing;
mod products;
mod reductions;
mod result;
mod shape;
mod shapes;
mod windows;

pub(crate) use context::{Context, counts};
pub(crate) use control::{custom_call, manual_computation};
pub(crate) use elementwise::uniform_quantize;
pub use result::Inferred;
pub(crate) use result::{ResultRule, Results};
pub use shape::types_compatible;
pub(crate) use shape::{Shape, shapes_agree, sizes_agree};

use crate::Error;
use crate::ir::{Body, Module, OpId, Trait};

/// The types of an operation's results, as far as its operands, attributes and regions say them: what the declared types
/// are is not looked at.
///
/// Element for element the results of the operation; [`Inferred`] says what is known of each. Nothing is known of results
/// whose type is the program's choice: those of `custom_call`, `infeed`, `recv`, `iota`, `bitcast_convert`, `einsum`,
/// `unary_einsum`, the bits of `rng_bit_generator`, those of `sdy.manual_computation` and of operations that the table does
/// not have. Of `reshape` and `broadcast_in_dim` the elements are known, of `convert`, `uniform_quantize`, `dynamic_iota`,
/// `dot`, `dot_general`, `convolution` and `dynamic_conv` the shape.
///
/// # Inferred and declared
///
/// The declared type of a result has to be compatible with the inferred one ([`types_compatible`]), not equal to it:
/// either may know sizes that the other does not. A program declares `tensor<4xf32>` for what `dynamic_reshape` by an
/// argument gives, of which only the rank is inferred, and `tensor<?xf32>` where 4 follows. Who changes a program keeps
/// the sizes of both; [`refine_shapes`](crate::passes::refine_shapes) does.
///
/// StableHLO specification, the constraints of each operation and "Type inference" for sizes that are not known before run
/// time.
///
/// # Errors
/// The first constraint on operands, attributes and regions that is broken. Numbers of operands and regions have to fit the
/// op table, which [`verify`](crate::verify) checks.
///
/// ```
/// use pjrt_stablehlo::ir::Op;
/// use pjrt_stablehlo::{Inferred, infer_result_types};
///
/// let module = pjrt_stablehlo::parse(
///     r#"func.func @main(%a: tensor<?x3xf32>) -> tensor<3x?xf32> {
///       %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
///       return %0 : tensor<3x?xf32>
///     }"#
///     .as_bytes()
///     .to_vec(),
/// )?;
/// let body = &module.main().unwrap().body;
/// let (id, op) = body.all_ops().find(|(_, op)| matches!(op.kind, Op::Transpose(_))).unwrap();
/// let inferred = infer_result_types(&module, body, id)?;
/// assert_eq!(inferred, [Inferred::Type(body.ty(op.result()).clone())]);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
pub fn infer_result_types(module: &Module, body: &Body, op: OpId) -> Result<Vec<Inferred>, Error> {
    let rules = results(&Context { module, body, op: body.op(op) })?;
    Ok(rules.into_iter().map(|rule| rule.inferred).collect())
}

/// The families of operations with rules of their own: `None` where an operation is not of the family.
const FAMILIES: &[fn(&Context<'_>) -> Option<Results>] = &[
    elementwise::results,
    shapes::results,
    products::results,
    windows::results,
    indexing::results,
    reductions::results,
    control::results,
    collectives::results,
];

/// Checks an operation's operands, attributes and regions, and gives what follows for its results.
pub(crate) fn results(cx: &Context<'_>) -> Results {
    let found = FAMILIES.iter().find_map(|results| results(cx));
    found.unwrap_or_else(|| {
        if cx.op.info().has(Trait::SameType) {
            return elementwise::same_type(cx);
        }
        Ok(cx.op.results.map(|_| ResultRule::declared()).collect())
    })
}
