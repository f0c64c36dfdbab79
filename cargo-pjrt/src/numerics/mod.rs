//! Numerics: programs with known results, operation by operation and as whole models.
//!
//! The suites are part of this program. Each case is a program as JAX sends it, with its inputs and expected results, and with
//! the distance that a result may have and its reason. `cargo xtask numerics-suites` makes them.

mod child;
mod comparison;
mod elements;
mod features;
mod identity;
mod joined;
mod lengths;
mod message;
mod operation;
mod options;
mod order;
mod parent;
mod pattern;
mod record;
mod report;
mod suite;

pub use child::child;
pub(crate) use joined::{Tried, joined};
pub(crate) use lengths::lengths;
pub(crate) use operation::Operation;
pub use options::{ChildOptions, Options};
pub(crate) use order::Order;
pub use parent::numerics;
pub use record::record;
pub use report::{Report, Row, Status};
