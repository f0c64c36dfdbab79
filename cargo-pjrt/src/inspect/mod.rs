//! Reports a plugin's version, functions, extensions and devices.

mod child;
mod exports;
mod parent;
mod report;
mod stage;
mod text;

pub use child::child;
pub use parent::inspect;
pub use report::{Report, Slot, Step};
