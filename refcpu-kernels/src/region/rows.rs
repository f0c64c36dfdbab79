//! Parts of regions: blocks of rows, where a row is a point of the leading dimensions.

use super::lower::lower;
use super::native::Native;
use super::node::Node;
use super::{Access, InputSpec, Region};

/// The elements of an input that the rows of a region read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowAccess {
    /// The distance between two rows in elements; 0 if all rows read the same elements.
    pub stride: usize,
    /// The largest element number that the first row reads, plus one.
    pub end: usize,
}

impl Region {
    /// Returns the region for `block` of `rows` rows, which is the same for all blocks. The leading dimensions with `rows` points
    /// become one dimension, the first.
    ///
    /// Returns `None` if no leading dimensions have this number of points, if a reduction is over one of them, or if the rows
    /// do not have the same code and equal distances in all inputs.
    pub fn row_block(&self, rows: usize, block: usize) -> Option<Region> {
        let leading = self.leading(rows)?;
        let inputs: Option<Vec<InputSpec>> = self
            .inputs
            .iter()
            .map(|input| {
                let (leading_strides, rest) = input.access.strides.split_at(leading);
                let row = row_stride(&self.dims[..leading], leading_strides)?;
                let strides = std::iter::once(row as isize).chain(rest.iter().copied()).collect();
                Some(InputSpec {
                    access: Access { offset: input.access.offset, strides },
                    dtype: input.dtype,
                })
            })
            .collect();
        let inputs = inputs?;
        let dims: Vec<usize> = std::iter::once(block).chain(self.dims[leading..].iter().copied()).collect();
        let mut nodes = self.nodes.clone();
        for node in &mut nodes {
            if let Node::Iota { dim, .. } = node {
                *dim = (*dim + 1).checked_sub(leading as u32).filter(|dim| *dim > 0)?;
            }
        }
        let lens: Option<Vec<usize>> =
            inputs.iter().map(|input| Some(input.access.bounds(&dims)?.1 + 1)).collect();
        let program = lower(&dims, self.trailing, &inputs, nodes.clone(), &self.outputs, None).ok()?;
        Some(Region {
            dims,
            inputs,
            outputs: self.outputs.clone(),
            trailing: self.trailing,
            native: std::sync::Arc::new(Native::new(&nodes)),
            nodes,
            program,
            input_lens: lens?,
        })
    }

    /// Returns the elements that each of `rows` rows reads of each input, or `None` in the same cases as [`Self::row_block`].
    pub fn row_accesses(&self, rows: usize) -> Option<Vec<RowAccess>> {
        let leading = self.leading(rows)?;
        let (outer, inner) = self.dims.split_at(leading);
        let reads_row_number = |n: &Node| matches!(n, Node::Iota { dim, .. } if (*dim as usize) < leading);
        if self.nodes.iter().any(reads_row_number) {
            return None;
        }
        let access = |input: &InputSpec| {
            let (strides, rest) = input.access.strides.split_at(leading);
            let row = Access { offset: input.access.offset, strides: rest.to_vec() };
            Some(RowAccess { stride: row_stride(outer, strides)?, end: row.bounds(inner)?.1 + 1 })
        };
        self.inputs.iter().map(access).collect()
    }

    /// Returns the number of elements that input `index` must have.
    ///
    /// # Panics
    /// Panics if there is no such input.
    pub fn input_len(&self, index: usize) -> usize {
        self.input_lens[index]
    }

    /// Returns the number of leading dimensions that have `rows` points, none of which is reduced.
    fn leading(&self, rows: usize) -> Option<usize> {
        let kept = self.dims.len() - self.trailing.unwrap_or(0);
        (1..=kept).find(|k| self.dims[..*k].iter().product::<usize>() == rows)
    }
}

/// Returns the distance between two points of dimensions that follow each other in row-major order, if all are equal.
fn row_stride(dims: &[usize], strides: &[isize]) -> Option<usize> {
    let mut moving = dims.iter().zip(strides).filter(|(size, _)| **size != 1).rev();
    let Some((size, stride)) = moving.next() else { return Some(0) };
    let mut next = stride.checked_mul(isize::try_from(*size).ok()?)?;
    for (size, outer) in moving {
        if *outer != next {
            return None;
        }
        next = outer.checked_mul(isize::try_from(*size).ok()?)?;
    }
    usize::try_from(*stride).ok()
}
