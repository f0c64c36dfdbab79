//! Fused elementwise code: a small program that runs tile by tile over an iteration space.
//!
//! A [`Builder`] takes operations on whole arrays of one shape (the iteration space). [`Builder::finish`]
//! removes dead code, moves invariant values out of the loops, and assigns registers. A [`Region`] is
//! immutable plain data. [`run`] executes it: each tile of up to 512 elements passes through all operations
//! while it is in the first-level cache, with one precompiled loop per operation.
//!
//! ```
//! use refcpu_kernels::region::{Builder, run};
//! use refcpu_kernels::tile::TileOp;
//! use refcpu_kernels::{DType, Dst, Pool, Src};
//!
//! let dims = [2, 3];
//! let mut b = Builder::new(&dims);
//! let x = b.linear_input(DType::F32)?;
//! let s = b.scalar_input(DType::F32)?;
//! let y = b.op(TileOp::Multiply, &[x, s])?;
//! b.output(y)?;
//! let region = b.finish()?;
//!
//! let x: Vec<u8> = (1..=6u8).flat_map(|v| f32::from(v).to_le_bytes()).collect();
//! let two = 2f32.to_le_bytes();
//! let mut y = vec![0u8; 24];
//! # // Arrays must be aligned for their elements, which is not guaranteed for these.
//! # if x.as_ptr().addr() % 4 + two.as_ptr().addr() % 4 + y.as_ptr().addr() % 4 != 0 { return Ok(()); }
//! run(
//!     &Pool::inline(),
//!     &region,
//!     &[Src::new(&x, DType::F32, &dims), Src::new(&two, DType::F32, &[])],
//!     &mut [Dst::new(&mut y, DType::F32, &dims)],
//! );
//! assert_eq!(y[20..], 12f32.to_le_bytes());
//! # Ok::<(), refcpu_kernels::region::RegionError>(())
//! ```

mod builder;
mod chain;
#[cfg(test)]
mod chain_tests;
mod display;
mod exec;
mod gather;
mod loop_nest;
mod lower;
mod native;
pub(crate) mod node;
mod program;
mod row_tiles;
mod rows;
mod schedule;
mod simplify;
#[cfg(test)]
mod tests;

pub use builder::{Builder, MAX_NODES, Val};
pub use exec::{run, run_scalar};
pub(crate) use gather::splat;
pub use rows::RowAccess;

pub use crate::tile::{Direction, Order};

use crate::{DType, ReduceOp};
use node::Node;

/// The reason why a region could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RegionError(pub(crate) String);

/// The element of an input that each point of the iteration space reads: an affine function of the
/// coordinates.
///
/// The point reads element `offset + sum(coordinate[i] * strides[i])` of the input, whose elements are
/// numbered in memory order. A broadcast has stride 0, a transpose permuted strides, a slice an offset, and a
/// reversal a negative stride.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The element at the origin.
    pub offset: usize,
    /// The distance between elements along each dimension of the iteration space, in elements.
    pub strides: Vec<isize>,
}

impl Access {
    /// Returns the access to a dense array with the shape of the iteration space.
    pub fn linear(dims: &[usize]) -> Self {
        let mut strides = vec![0isize; dims.len()];
        let mut step = 1usize;
        for (s, d) in strides.iter_mut().zip(dims).rev() {
            *s = step as isize;
            step = step.saturating_mul(*d);
        }
        Self { offset: 0, strides }
    }

    /// Returns the access to the same element from every point.
    pub fn scalar(rank: usize) -> Self {
        Self { offset: 0, strides: vec![0; rank] }
    }

    /// Returns the access to a dense array of shape `input_dims` that is broadcast: its dimension `i`
    /// corresponds to dimension `dimensions[i]` of the iteration space (StableHLO `broadcast_in_dim`; size 1
    /// is expanded).
    pub fn broadcast(rank: usize, input_dims: &[usize], dimensions: &[usize]) -> Self {
        let mut strides = vec![0isize; rank];
        let mut step = 1usize;
        for (d, to) in input_dims.iter().zip(dimensions).rev() {
            if *d != 1 {
                strides[*to] = step as isize;
            }
            step = step.saturating_mul(*d);
        }
        Self { offset: 0, strides }
    }

    /// Returns the smallest and the largest element number that is read, or `None` if one is negative or
    /// overflows. For an empty iteration space, returns (0, 0).
    fn bounds(&self, dims: &[usize]) -> Option<(usize, usize)> {
        if dims.contains(&0) {
            return Some((0, 0));
        }
        let mut low = i128::try_from(self.offset).ok()?;
        let mut high = low;
        for (s, d) in self.strides.iter().zip(dims) {
            let span = (*s as i128).checked_mul(i128::try_from(d - 1).ok()?)?;
            let end = if span < 0 { &mut low } else { &mut high };
            *end = end.checked_add(span)?;
        }
        let limit = isize::MAX as i128;
        (low >= 0 && high <= limit).then_some((low as usize, high as usize))
    }
}

/// An input of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputSpec {
    /// The element type.
    pub dtype: DType,
    /// The element that each point reads.
    pub access: Access,
}

/// An output of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSpec {
    /// The element type.
    pub dtype: DType,
    /// The reduction over the trailing dimensions, if the output is one.
    pub reduce: Option<ReduceOp>,
    pub(crate) node: u32,
}

/// A finished region: see the [module](self).
#[derive(Clone, Debug)]
pub struct Region {
    dims: Vec<usize>,
    inputs: Vec<InputSpec>,
    outputs: Vec<OutputSpec>,
    /// The number of trailing dimensions that reductions remove.
    trailing: Option<usize>,
    nodes: Vec<Node>,
    program: program::Program,
    native: std::sync::Arc<native::Native>,
    /// The largest element number that is read from each input, plus one.
    input_lens: Vec<usize>,
}

impl Region {
    /// Returns the dimensions of the iteration space.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Returns the inputs, in the order of their declarations.
    pub fn inputs(&self) -> &[InputSpec] {
        &self.inputs
    }

    /// Returns the outputs, in the order of their declarations.
    pub fn outputs(&self) -> &[OutputSpec] {
        &self.outputs
    }

    /// Returns the dimensions of output `index`.
    ///
    /// # Panics
    /// Panics if there is no such output.
    pub fn output_dims(&self, index: usize) -> &[usize] {
        match self.outputs[index].reduce {
            Some(_) => &self.dims[..self.dims.len() - self.trailing.unwrap_or(0)],
            None => &self.dims,
        }
    }

    /// Returns the number of operations that run for every element, after simplification.
    pub fn ops(&self) -> usize {
        self.program.tile_code.len()
    }

    /// Returns the estimated time of a run on one thread with all arrays in cache, in nanoseconds.
    pub fn estimated_ns(&self) -> f64 {
        self.program.estimated_ns()
    }

    /// Returns the program for the next run: with machine code, if there is any.
    fn program(&self) -> &program::Program {
        self.native.program(self).unwrap_or(&self.program)
    }

    /// Returns `true` if the array of input `input` can have the address of output `output`, because each
    /// element is read before it is written.
    pub fn may_alias(&self, input: usize, output: usize) -> bool {
        let (Some(i), Some(o)) = (self.inputs.get(input), self.outputs.get(output)) else { return false };
        o.reduce.is_none() && i.dtype.size() == o.dtype.size() && is_identity(&i.access, &self.dims)
    }
}

/// Returns `true` if the access visits a dense array of shape `dims` in order.
fn is_identity(access: &Access, dims: &[usize]) -> bool {
    let linear = Access::linear(dims);
    access.offset == 0
        && dims.iter().zip(access.strides.iter().zip(&linear.strides)).all(|(d, (a, b))| *d == 1 || a == b)
}
