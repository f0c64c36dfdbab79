//! Sizes of dimensions.

/// The size of a dynamic dimension in lists of sizes, as in MLIR.
pub const DYNAMIC: i64 = i64::MIN;

/// The size of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A size that is known at compile time.
    Static(i64),
    /// A size that is known at run time only.
    Dynamic {
        /// The upper bound of the size, if there is one.
        bound: Option<i64>,
    },
}
