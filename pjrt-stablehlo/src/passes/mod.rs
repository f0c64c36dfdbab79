//! Rewriting programs to the operations that a device has.
//!
//! StableHLO has some 120 operations, and CHLO and composites add more. A device needs far fewer: [`decompose`] takes
//! a program and the set of operations that the device implements, [`CoreOps`], and gives a program of only those that
//! computes the same.
//!
//! ```
//! use pjrt_stablehlo::passes::{CoreOps, decompose};
//!
//! let program = "func.func @main(%x: tensor<2x3xf32>, %w: tensor<3xf32>) -> tensor<2x3xf32> {
//!     %0 = chlo.broadcast_add %x, %w : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
//!     %1 = chlo.square %0 : tensor<2x3xf32> -> tensor<2x3xf32>
//!     return %1 : tensor<2x3xf32>
//! }";
//! let module = pjrt_stablehlo::parse(program.as_bytes().to_vec())?;
//! let module = decompose(&module, &CoreOps::default())?;
//! let ops: Vec<_> = module.op_counts().into_keys().collect();
//! let expected =
//!     ["func.return", "stablehlo.add", "stablehlo.broadcast_in_dim", "stablehlo.multiply"];
//! assert_eq!(ops, expected);
//! # Ok::<(), pjrt_stablehlo::Error>(())
//! ```
//!
//! # Sizes that are not known
//!
//! Decompositions need to know how large tensors are. For a program with sizes that are not known before its arguments are
//! (`tensor<?x4xf32>`, as `jax.export` makes for symbolic shapes), [`refine_shapes`] comes first; what depends on data stays,
//! and is an error where an operation on it is to be decomposed.
//!
//! Sizes that depend on data and have a bound (`tensor<?xf32, #stablehlo.bounds<8>>`, as `set_dimension_size` makes) can be
//! replaced by tensors of the bound's size and scalars that say how much of them counts: see
//! [`CoreOps::without_bounded_sizes`].
//!
//! # What is kept
//!
//! * Values: decompositions follow the formulas of the StableHLO specification. What replaces an accurate function is as
//!   accurate, up to a few units in the last place: `log_plus_one` is no `log` of a sum.
//! * Locations: what replaces an operation has its location; what is inlined has the location of the callee at that of
//!   the call.
//! * Attributes of operations, such as shardings, are on the operation that computes the replaced one's result.
//!
//! # What changes
//!
//! * The signature, where it has tuples (each element becomes a value of its own), futures (they become what they hold) or
//!   quantized types (their storage types take their place), unless the set keeps them. Sizes of results that become known
//!   are known in the signature of a function that nothing calls; where one is called, they are known on one side only.
//! * Operations without effects whose results nothing uses go away, and so do private functions whose calls are inlined.

mod bounded_moves;
mod core_ops;
mod dynamic_calls;
mod functions;
mod quantized;
mod quantized_flow;
mod refine_shapes;
mod replace_ops;
mod replace_sizes;
mod replace_types;
mod rewrite;
mod rules;
mod sized;

pub use core_ops::CoreOps;
pub use refine_shapes::{Argument, refine_shapes};

use crate::ir::{Function, Module, OpCode, OpId, Operation, TensorType};
use crate::{Error, ErrorKind};
use replace_ops::ReplaceOps;
use replace_sizes::ReplaceSizes;
use replace_types::ReplaceTypes;
use rewrite::{Origins, part_of, unsupported};

/// Rewrites a program to the operations of `core`.
///
/// # Errors
/// When the program breaks a rule of StableHLO ([`verify`](crate::verify)); when an operation is not in the set and
/// cannot be expressed in it, with its name and location, and that of the program's operation that was to become it
/// ([`ErrorKind::Unsupported`]); when a function would become larger than
/// [`limits::MAX_DECOMPOSED_OPS`](crate::limits::MAX_DECOMPOSED_OPS), or by inlining calls than
/// [`limits::MAX_INLINED_OPS`](crate::limits::MAX_INLINED_OPS) ([`ErrorKind::TooLarge`]).
///
/// Operations on sizes that are not known can be decomposed once those of the arguments are: see [`refine_shapes`].
pub fn decompose(module: &Module, core: &CoreOps) -> Result<Module, Error> {
    crate::verify(module)?;
    run(module, core).map_err(|error| {
        if error.kind != ErrorKind::Unsupported || !has_unknown_arguments(module) {
            return error;
        }
        let message = format!(
            "{}; main has arguments of unknown sizes, which passes::refine_shapes makes known first",
            error.message
        );
        Error { message, ..error }
    })
}

/// Whether arguments of `main` have sizes that are not known.
fn has_unknown_arguments(module: &Module) -> bool {
    let mut types = module.main().into_iter().flat_map(Function::argument_types);
    types.any(|ty| ty.as_tensor().is_some_and(TensorType::is_dynamic))
}

/// What [`decompose`] does with a valid program.
fn run(module: &Module, core: &CoreOps) -> Result<Module, Error> {
    let mut origins = Origins::default();
    // Sizes go beside their tensors, for which a tuple has no place.
    let flat;
    let core = if ReplaceSizes::is_needed(module, core) {
        flat = core.clone().without(OpCode::Tuple).without(OpCode::GetTupleElement);
        &flat
    } else {
        core
    };
    let mut module = if ReplaceTypes::is_needed(module, core) {
        rewrite::rewrite(module, &ReplaceTypes::new(module, core)?, |_| true, &mut origins)?
    } else {
        module.clone()
    };
    if ReplaceSizes::is_needed(&module, core) {
        module = rewrite::rewrite(&module, &ReplaceSizes::new(&module)?, |_| true, &mut origins)?;
    }
    // A decomposition may use operations that are decomposed themselves; none leads back to what it came from, so this
    // ends long before.
    for _ in 0..=rules::RULES.len() {
        if first_foreign_op(&module, core).is_none() {
            break;
        }
        let pass = ReplaceOps::new(&module, core);
        module = rewrite::rewrite(&module, &pass, |function| pass.keeps(function), &mut origins)?;
    }
    if let Some((function, id, op)) = first_foreign_op(&module, core) {
        let error =
            unsupported("not one of the core operations, and neither are those that it is expressed in");
        let error = part_of(error, origins.name(function, id));
        return Err(error.in_op(op.kind.name(), &op.location));
    }
    crate::verify(&module)?;
    Ok(module)
}

/// Whether a program has only operations and types of `core`, so that [`decompose`] has nothing to do.
pub fn is_core(module: &Module, core: &CoreOps) -> bool {
    !ReplaceTypes::is_needed(module, core)
        && !ReplaceSizes::is_needed(module, core)
        && first_foreign_op(module, core).is_none()
}

/// How operations are decomposed, for documentation: name, whether [`CoreOps::default`] lacks the operation, and what
/// becomes of it.
///
/// Operations of the table come first, in its order; CHLO's follow.
pub fn decompositions() -> impl Iterator<Item = Decomposition> {
    let mut rules: Vec<_> = rules::RULES.iter().collect();
    rules.sort_by_key(|rule| rule.op);
    let table = rules.into_iter().map(|rule| Decomposition {
        op: rule.op.info().name,
        by_default: rule.by_default,
        into: rule.into,
    });
    let chlo = rules::CHLO_RULES.iter().map(|rule| Decomposition {
        op: rule.name,
        by_default: true,
        into: rule.into,
    });
    table.chain(chlo)
}

/// An operation that can be decomposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decomposition {
    /// Full name, such as `stablehlo.batch_norm_training`.
    pub op: &'static str,
    /// Whether [`CoreOps::default`] does without the operation.
    pub by_default: bool,
    /// What it becomes.
    pub into: &'static str,
}

/// The first operation that is not in the set.
fn first_foreign_op<'m>(module: &'m Module, core: &CoreOps) -> Option<(usize, OpId, &'m Operation)> {
    let functions = module.functions().iter().enumerate();
    let mut ops =
        functions.flat_map(|(index, function)| function.body.all_ops().map(move |(id, op)| (index, id, op)));
    ops.find(|(_, _, op)| !core.contains_op(&op.kind))
}
