//! The rules for operations that are not in the set of core operations: tables of rules, and the rules that are not
//! formulas.

mod batch_norm;
mod chlo;
mod dot_algorithm;
mod dynamic;
mod einsum;
mod elementwise;
mod indexing;
mod legacy;
mod linear_algebra;
mod movement;
mod order;
mod products;
mod ragged_all_to_all;
mod reductions;
mod rule;
mod scan;
mod select_and_scatter;
mod selection;
mod sorting;
mod table;

pub(super) use chlo::RULES as CHLO_RULES;
pub(super) use dynamic::of_known_sizes;
pub(super) use order::{is_before, with_positions};
pub(super) use scan::{composite as scan_composite, overrides_decomposition};
pub(super) use table::{RULES, function_of_call, is_core_by_default, rewrite_of};
