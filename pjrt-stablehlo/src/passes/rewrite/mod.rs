//! The rewriting of a module's functions, operation by operation, as a pass directs.

mod errors;
mod known;
mod live;
mod narrow;
mod origins;
mod regions;
mod rewriter;
mod values;

pub(super) use errors::{definite, mismatch, part_of, unsupported};
pub(super) use known::constant_splat;
pub(super) use narrow::{is_dynamic, meet};
pub(super) use origins::Origins;
pub(super) use rewriter::{Pass, Replacement, Rewriter, rewrite};
