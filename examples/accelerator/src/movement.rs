//! Movement of elements: each element of the result is a copy of an element of the operand.

use pjrt_stablehlo::ir::indexing::{for_each_index, position};

/// The coordinate of an element along a dimension of an operand, as a function of its index in the result: the sum of an offset and
/// of multiples of coordinates of the index, divided by the dilation. If the sum is not divisible, there is no element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    terms: Vec<(usize, i64)>,
    offset: i64,
    dilation: i64,
}

impl Axis {
    /// Creates the sum of multiples of coordinates, given by their dimensions in the result and factors.
    pub(crate) fn sum(terms: impl Into<Vec<(usize, i64)>>) -> Self {
        Self { terms: terms.into(), offset: 0, dilation: 1 }
    }

    /// Creates the coordinate along a dimension of the result.
    pub(crate) fn along(dimension: usize) -> Self {
        Self::sum([(dimension, 1)])
    }

    pub(crate) fn offset(self, offset: i64) -> Self {
        Self { offset, ..self }
    }

    pub(crate) fn dilated(self, dilation: i64) -> Self {
        Self { dilation, ..self }
    }

    /// Returns the coordinate, or -1 if there is none.
    fn coordinate(&self, index: &[i64]) -> i64 {
        let add = |sum: i64, (dimension, factor): &(usize, i64)| {
            sum.saturating_add(index[*dimension].saturating_mul(*factor))
        };
        let sum = self.terms.iter().fold(self.offset, add);
        if sum % self.dilation == 0 { sum / self.dilation } else { -1 }
    }
}

/// Returns the axes of a transposed array, whose dimension `d` is dimension `permutation[d]` of the operand.
pub(crate) fn transposition(permutation: &[i64]) -> Vec<Axis> {
    let from = 0..permutation.len() as i64;
    let to = |dimension: i64| permutation.iter().position(|from| *from == dimension).unwrap_or(0);
    from.map(|dimension| Axis::along(to(dimension))).collect()
}

/// Creates an array of dimensions `to` from one of dimensions `from`, whose coordinates the axes specify, relative to `start`. An
/// element out of bounds is `outside`.
pub(crate) fn gather(
    elements: &[u64],
    from: &[i64],
    to: &[i64],
    axes: &[Axis],
    start: &[i64],
    outside: u64,
) -> Vec<u64> {
    let mut gathered = Vec::new();
    for_each_index(to, |index| {
        let at =
            position(from, |d| axes[d].coordinate(index).saturating_add(start.get(d).copied().unwrap_or(0)));
        gathered.push(at.map_or(outside, |at| elements[at]));
    });
    gathered
}

/// Copies a block into an array, with its first element at `start`. The block lies within the array.
pub(crate) fn insert(array: &mut [u64], dims: &[i64], block: &[u64], block_dims: &[i64], start: &[i64]) {
    let mut elements = block.iter();
    for_each_index(block_dims, |index| {
        if let (Some(at), Some(element)) = (position(dims, |d| start[d] + index[d]), elements.next()) {
            array[at] = *element;
        }
    });
}
