//! Sorting along a dimension, and the k largest or smallest.

mod by;
mod key;
mod radix;
mod rows;
mod top_k;

pub use by::sort_by;
pub use key::{KeyOrder, KeyPart, SortKey};
pub use rows::{sort, sort_keys};
pub use top_k::top_k;

#[cfg(test)]
mod tests;
