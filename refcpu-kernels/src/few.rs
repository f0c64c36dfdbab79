//! Lists of dimensions.

use smallvec::SmallVec;

/// A list with an entry for some of an array's dimensions. Kernels create such lists on every call; no
/// allocation is needed for the number of dimensions that nearly all arrays have.
pub(crate) type Few<T> = SmallVec<[T; 6]>;
