//! Lists of integers in attributes.

/// The integers of an attribute, such as dimensions, sizes or strides.
pub type Ints = Box<[i64]>;

/// Pairs of integers, such as low and high padding, or the source and target of transfers.
pub type IntPairs = Box<[[i64; 2]]>;
