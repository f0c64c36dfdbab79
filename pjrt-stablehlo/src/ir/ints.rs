//! Lists of integers in attributes.

/// Integers of an attribute: dimensions, sizes, strides.
pub type Ints = Box<[i64]>;

/// Pairs of integers: low and high padding for each dimension, or source and target of transfers.
pub type IntPairs = Box<[[i64; 2]]>;
