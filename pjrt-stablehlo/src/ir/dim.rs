//! Sizes of dimensions.

/// The size of a dimension that is not known before run time, where sizes are plain integers.
pub const DYNAMIC: i64 = i64::MIN;

/// The size of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// Known.
    Static(i64),
    /// Not known before run time, with an upper bound where there is one.
    Dynamic {
        /// The largest size that the dimension can have.
        bound: Option<i64>,
    },
}
