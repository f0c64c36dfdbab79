//! Passes that rewrite programs.
//!
//! StableHLO has about 120 operations, to which CHLO and composites add more. [`decompose`] reduces them to those that
//! a device implements: it takes a program and a set of operations ([`CoreOps`]), and returns an equivalent program
//! with operations of the set only.
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
//! # Dynamic sizes
//!
//! Decompositions need to know the sizes of tensors. A program with symbolic shapes (`tensor<?x4xf32>`, as `jax.export`
//! creates) is first given the shapes of its arguments by [`refine_shapes`]. Sizes that depend on data remain dynamic; the
//! decomposition of an operation that needs to know one is an error.
//!
//! Sizes that depend on data and have a bound (`tensor<?xf32, #stablehlo.bounds<8>>`, as `set_dimension_size` creates)
//! can be replaced by tensors of the bound's size and scalars with the number of valid indices; see
//! [`CoreOps::without_bounded_sizes`].
//!
//! # What is preserved
//!
//! * Values: decompositions follow the formulas of the StableHLO specification. The decomposition of an accurate
//!   function is as accurate as the function, up to a few units in the last place; for example, `log_plus_one` does not
//!   become the `log` of a sum.
//! * Locations: the operations of a decomposition have the location of the decomposed operation. Inlined operations
//!   have their own location inside that of the call.
//! * Attributes of operations, such as shardings: the operation that computes the result of the decomposition has them.
//!
//! # What changes
//!
//! * Signatures with types that the set does not keep: each element of a tuple becomes a value, futures become their
//!   contents, and quantized types become their storage types. If the sizes of a function's results become known, its
//!   signature states them, unless the function is called.
//! * Operations without effects whose results are unused are removed, as are private functions whose calls are inlined.

mod annotations;
mod bounded_moves;
mod carried_loop_values;
mod clamp_gather_starts;
mod core_ops;
mod dynamic_calls;
mod functions;
mod insert_barriers;
mod integer_ranges;
mod isolate;
mod missing;
mod narrow_integers;
mod quantized;
mod quantized_flow;
mod real_interface;
mod refine_shapes;
mod replace_ops;
mod replace_sizes;
mod replace_types;
mod rewrite;
mod rules;
mod scatters_within_bounds;
mod separate_widening;
mod sized;
mod split_complex;
mod split_elementwise;
mod split_reductions;
mod stable_sorts;
mod widen;

pub use annotations::without_annotations;
pub use carried_loop_values::carried_loop_values;
pub use clamp_gather_starts::clamp_gather_starts;
pub use core_ops::{Condition, CoreOps};
pub use insert_barriers::{NeedsBarrier, insert_barriers};
pub use isolate::isolate;
pub use missing::{Missing, MissingOp, Replaced, missing};
pub use refine_shapes::{Argument, refine_shapes};
pub use scatters_within_bounds::scatters_within_bounds;
pub use separate_widening::separate_widening;
pub use split_elementwise::split_elementwise;
pub use split_reductions::split_reductions;
pub use stable_sorts::stable_sorts;

use crate::ir::{Function, Module, OpCode, OpId, Operation, TensorType};
use crate::{Error, ErrorKind};
use narrow_integers::narrow_integers;
use real_interface::real_interface;
use replace_ops::ReplaceOps;
use replace_sizes::ReplaceSizes;
use replace_types::ReplaceTypes;
use rewrite::{Origins, part_of, unsupported};
use split_complex::SplitComplex;

/// Rewrites a program to the operations of `core`.
///
/// Operations on dynamic sizes can be decomposed after [`refine_shapes`] has made the sizes known.
///
/// # Errors
/// * [`ErrorKind::Invalid`], with the constraint, if the program violates a rule of StableHLO
///   ([`verify`](crate::verify)).
/// * [`ErrorKind::Unsupported`] if an operation is not in the set and cannot be expressed in it. The error contains the
///   operation's name and location, and the operation of the program that was decomposed into it.
/// * [`ErrorKind::TooLarge`] if a function would have more operations than
///   [`limits::MAX_DECOMPOSED_OPS`](crate::limits::MAX_DECOMPOSED_OPS), or, by inlining calls, than
///   [`limits::MAX_INLINED_OPS`](crate::limits::MAX_INLINED_OPS).
pub fn decompose(module: &Module, core: &CoreOps) -> Result<Module, Error> {
    crate::verify(module)?;
    run(module, core).map_err(|error| {
        if error.kind != ErrorKind::Unsupported || !has_unknown_arguments(module) {
            return error;
        }
        let message = format!(
            "{}; 'main' has arguments of dynamic sizes: call passes::refine_shapes first",
            error.message
        );
        Error { message, ..error }
    })
}

/// Returns `true` if arguments of `main` have dynamic sizes.
fn has_unknown_arguments(module: &Module) -> bool {
    let mut types = module.main().into_iter().flat_map(Function::argument_types);
    types.any(|ty| ty.as_tensor().is_some_and(TensorType::is_dynamic))
}

/// Implements [`decompose`] for a valid program.
fn run(module: &Module, core: &CoreOps) -> Result<Module, Error> {
    let mut origins = Origins::default();
    // Sizes are values next to their tensors, which tuples cannot contain, so tuples are flattened first.
    let flat;
    let core = if ReplaceSizes::is_needed(module, core) {
        flat = core.clone().without(OpCode::Tuple).without(OpCode::GetTupleElement);
        &flat
    } else {
        core
    };
    let mut module = match narrow_integers(module, core, &mut origins)? {
        Some(narrow) => narrow,
        None => module.clone(),
    };
    if ReplaceTypes::is_needed(&module, core) {
        module = rewrite::rewrite(&module, &ReplaceTypes::new(&module, core)?, |_| true, &mut origins)?;
    }
    if ReplaceSizes::is_needed(&module, core) {
        module = rewrite::rewrite(&module, &ReplaceSizes::new(&module)?, |_| true, &mut origins)?;
    }
    if !core.keeps_complex_numbers() && SplitComplex::is_needed(&module) {
        if let Some(real) = real_interface(&module)? {
            // The numbers of functions and operations differ.
            (module, origins) = (real, Origins::default());
        }
        module = replace_ops(module, core, &mut origins)?;
        // What cannot be decomposed is reported below.
        if first_foreign_op(&module, core).is_none() {
            module = rewrite::rewrite(&module, &SplitComplex, |_| true, &mut origins)?;
        }
    }
    module = replace_ops(module, core, &mut origins)?;
    if let Some((function, id, op)) = first_foreign_op(&module, core) {
        let refusal = core.refusal(&module.functions()[function].body, op).unwrap_or_default();
        let error = unsupported(format!(
            "{refusal}, and its decomposition contains operations that {} does not support either",
            core.name()
        ));
        let error = part_of(error, origins.name(function, id));
        return Err(error.in_op(op.kind.name(), &op.location));
    }
    crate::verify(&module)?;
    Ok(module)
}

/// Replaces the operations that are not in the set until none is left, or no rule applies.
fn replace_ops(mut module: Module, core: &CoreOps, origins: &mut Origins) -> Result<Module, Error> {
    // Decompositions may contain operations that are decomposed in turn. No chain of rules is cyclic, so the loop ends
    // before its limit.
    for _ in 0..=rules::RULES.len() {
        if first_foreign_op(&module, core).is_none() {
            break;
        }
        let pass = ReplaceOps::new(&module, core);
        module = rewrite::rewrite(&module, &pass, |function| pass.keeps(function), origins)?;
    }
    Ok(module)
}

/// Returns `true` if a program has only operations and types of `core`, so that [`decompose`] would not change it.
pub fn is_core(module: &Module, core: &CoreOps) -> bool {
    !ReplaceTypes::is_needed(module, core)
        && !ReplaceSizes::is_needed(module, core)
        && (core.keeps_complex_numbers() || !SplitComplex::is_needed(module))
        && first_foreign_op(module, core).is_none()
}

/// Returns the operations that can be decomposed, for documentation.
///
/// The operations of the op table come first, in the order of the table, followed by those of CHLO.
///
/// ```
/// use pjrt_stablehlo::passes::decompositions;
///
/// let cbrt = decompositions().find(|decomposition| decomposition.op == "stablehlo.cbrt").unwrap();
/// assert!(!cbrt.by_default);
/// assert!(cbrt.into.contains("`power`"));
/// ```
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

/// An operation that can be decomposed, as [`decompositions`] lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decomposition {
    /// The full name, such as `stablehlo.batch_norm_training`.
    pub op: &'static str,
    /// `true` if [`CoreOps::default`] does not contain the operation.
    pub by_default: bool,
    /// A description of the decomposition.
    pub into: &'static str,
}

/// Returns the first operation that is not in the set, with the index of its function.
fn first_foreign_op<'m>(module: &'m Module, core: &CoreOps) -> Option<(usize, OpId, &'m Operation)> {
    module.functions().iter().enumerate().find_map(|(index, function)| {
        let mut ops = function.body.all_ops();
        let (id, op) = ops.find(|(_, op)| !core.supports(&function.body, op))?;
        Some((index, id, op))
    })
}
