//! The vectors and elements that arrays are divided into.

use super::SET;
use refcpu_codegen::{Scalar, Type};

/// Returns the vectors and elements that `len` elements consist of: their offsets in bytes and types.
pub(super) fn pieces(scalar: Scalar, len: usize) -> Vec<(usize, Type)> {
    let size = scalar.size();
    let mut all = Vec::new();
    let mut at = 0;
    while at < len {
        let fits = |lanes: &usize| *lanes > 1 && *lanes <= len - at;
        let lanes = vector_lanes(scalar).into_iter().find(fits).unwrap_or(1);
        all.push((at * size, Type::vector(scalar, lanes as u8)));
        at += lanes;
    }
    all
}

/// Returns the vectors for `len` elements: the first element of each, and its type. The last one may have more elements than are
/// left.
pub(super) fn padded_pieces(scalar: Scalar, len: usize) -> Vec<(usize, Type)> {
    let longest = vector_lanes(scalar)[0];
    let shortest = vector_lanes(scalar)[2];
    let mut all = Vec::new();
    let mut at = 0;
    while at < len {
        let left = (len - at).min(longest);
        let lanes = if left == 1 { 1 } else { left.next_power_of_two().max(shortest) };
        all.push((at, Type::vector(scalar, lanes as u8)));
        at += left;
    }
    all
}

/// Returns the numbers of elements of vectors, the longest one first.
pub(super) fn vector_lanes(scalar: Scalar) -> [usize; 3] {
    match scalar {
        Scalar::Bool => [8, 4, 2],
        _ => [SET.vector() / scalar.size(), 16 / scalar.size(), 8 / scalar.size()],
    }
}
