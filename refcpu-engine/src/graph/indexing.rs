//! Operations on windows of arrays at computed indices.

use super::Shape;
use super::body::{Body, Reducer};
use super::check::{Check, counts, is_index, need, need_dims, same, same_type};
use super::operation::{Cost, Device, Operation, elements};
use refcpu_kernels::index::{self, Combiner, GatherSpec, ScatterSpec};
use refcpu_kernels::{DType, Dst, Src};

/// The dimension numbers of a gather, with the names of StableHLO.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GatherDims {
    /// The dimensions of the result that index into a window.
    pub offset_dims: Vec<usize>,
    /// The operand dimensions of window size 1 that the result does not have.
    pub collapsed_slice_dims: Vec<usize>,
    /// The batching dimensions of the operand.
    pub operand_batching_dims: Vec<usize>,
    /// The corresponding batching dimensions of the indices.
    pub start_indices_batching_dims: Vec<usize>,
    /// The operand dimension of each component of an index vector.
    pub start_index_map: Vec<usize>,
    /// The dimension of the indices that contains the index vectors; equal to their rank if each element is an index vector.
    pub index_vector_dim: usize,
    /// The size of the window in each operand dimension.
    pub slice_sizes: Vec<usize>,
}

/// The operands are the array and the start indices.
impl Operation for GatherDims {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 2, 1)?;
        same_type(x[0], y[0])?;
        let (rank, sizes) = (x[0].rank(), &self.slice_sizes);
        need(
            sizes.len() == rank && is_index(&Shape::scalar(x[1].dtype)),
            "slice_sizes does not have one entry for each dimension, or the indices are not integers",
        )?;
        need_dims(
            &self.collapsed_slice_dims,
            rank,
            "collapsed_slice_dims is not a list of distinct dimensions",
        )?;
        need_dims(
            &self.operand_batching_dims,
            rank,
            "operand_batching_dims is not a list of distinct dimensions",
        )?;
        need_dims(&self.start_index_map, rank, "start_index_map is not a list of distinct dimensions")?;
        need_dims(&self.offset_dims, y[0].rank(), "offset_dims is not a list of distinct dimensions")?;
        need(sizes.iter().zip(&*x[0].dims).all(|(s, n)| s <= n), "the slice is larger than the array")
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        let spec = GatherSpec {
            offset_dims: &self.offset_dims,
            collapsed_slice_dims: &self.collapsed_slice_dims,
            operand_batching_dims: &self.operand_batching_dims,
            start_indices_batching_dims: &self.start_indices_batching_dims,
            start_index_map: &self.start_index_map,
            index_vector_dim: self.index_vector_dim,
            slice_sizes: &self.slice_sizes,
        };
        index::gather(device.pool, r[0], r[1], w[0].reborrow(), &spec);
    }
}

/// The dimension numbers of a scatter, with the names of StableHLO.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScatterDims {
    /// The dimensions of the updates that index into a window.
    pub update_window_dims: Vec<usize>,
    /// The operand dimensions of window size 1 that the updates do not have.
    pub inserted_window_dims: Vec<usize>,
    /// The batching dimensions of the operand.
    pub input_batching_dims: Vec<usize>,
    /// The corresponding batching dimensions of the indices.
    pub scatter_indices_batching_dims: Vec<usize>,
    /// The operand dimension of each component of an index vector.
    pub scatter_dims_to_operand_dims: Vec<usize>,
    /// The dimension of the indices that contains the index vectors; equal to the rank if each element is an index vector.
    pub index_vector_dim: usize,
    /// `true` if the program guarantees that the index vectors are sorted.
    pub indices_are_sorted: bool,
    /// `true` if the program guarantees that no two updates have the same index.
    pub unique_indices: bool,
}

impl ScatterDims {
    /// Returns the dimension numbers in the form of the kernels.
    pub fn spec(&self) -> ScatterSpec<'_> {
        ScatterSpec {
            update_window_dims: &self.update_window_dims,
            inserted_window_dims: &self.inserted_window_dims,
            input_batching_dims: &self.input_batching_dims,
            scatter_indices_batching_dims: &self.scatter_indices_batching_dims,
            scatter_dims_to_operand_dims: &self.scatter_dims_to_operand_dims,
            index_vector_dim: self.index_vector_dim,
            indices_are_sorted: self.indices_are_sorted,
            unique_indices: self.unique_indices,
        }
    }
}

/// A scatter. The operands are the arrays, the indices, and one array of updates for each array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scatter {
    /// The dimension numbers.
    pub dims: Box<ScatterDims>,
    /// The function that combines an update with an element; `None` if the update replaces the element.
    pub combiner: Option<Reducer>,
}

impl Scatter {
    /// Returns the combiner of the kernels; `None` if a body combines updates.
    pub fn combiner(&self) -> Option<Combiner> {
        match &self.combiner {
            None => Some(Combiner::Replace),
            Some(Reducer::Body(_)) => None,
            Some(Reducer::Op(op)) => Some(Combiner::Reduce(*op)),
        }
    }
}

impl Operation for Scatter {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        let (n, dims) = (y.len(), &self.dims);
        need(n > 0 && x.len() == 2 * n + 1, "the number of updates is not the number of operands")?;
        let (operands, indices, updates) = (&x[..n], x[n], &x[n + 1..]);
        for ((operand, update), result) in operands.iter().zip(updates).zip(y) {
            same(operand, result)?;
            need(
                operand.dims == operands[0].dims && update.dims == updates[0].dims,
                "the operands, or the updates, differ in dimensions",
            )?;
            same_type(update, result)?;
        }
        need_dims(
            &dims.update_window_dims,
            updates[0].rank(),
            "update_window_dims is not a list of distinct dimensions",
        )?;
        need_dims(
            &dims.inserted_window_dims,
            operands[0].rank(),
            "inserted_window_dims is not a list of distinct dimensions",
        )?;
        need_dims(
            &dims.scatter_dims_to_operand_dims,
            operands[0].rank(),
            "scatter_dims_to_operand_dims is not a list of distinct dimensions",
        )?;
        need(is_index(&Shape::scalar(indices.dtype)), "the indices are not integers")?;
        self.combiner.as_ref().map_or(Ok(()), |r| r.verify(y))
    }

    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        Cost::flops(elements(x, x.len() - 1))
    }

    fn bodies(&self) -> Vec<&Body> {
        self.combiner.iter().filter_map(Reducer::body).collect()
    }

    fn works_in_place(&self) -> bool {
        true
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        let combiner = self.combiner().expect("a scatter by a body runs in a different kernel");
        index::scatter(device.pool, combiner, r[0], r[1], r[2], w[0].reborrow(), &self.dims.spec());
    }
}

/// A slice at computed indices. The operands are the array, then one start index for each dimension.
#[derive(Debug)]
pub struct DynamicSlice;

impl Operation for DynamicSlice {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        let starts = 1 + x.first().map_or(0, |s| s.rank());
        need(x.len() == starts && y.len() == 1, "the number of start indices is not the rank")?;
        same_type(x[0], y[0])?;
        need(x[1..].iter().all(|s| is_index(s)), "the start indices are not integer scalars")?;
        need(fits_into(y[0], x[0]), "the slice is larger than the array")
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        let mut starts: Vec<i64> = r[1..].iter().map(index_of).collect();
        index::clamp_starts(&mut starts, r[0].dims(), w[0].dims());
        index::dynamic_slice(device.pool, r[0], &starts, w[0].reborrow());
    }
}

/// An update of a slice at computed indices. The operands are the array, the update, then one start index for each dimension.
#[derive(Debug)]
pub struct DynamicUpdateSlice;

impl Operation for DynamicUpdateSlice {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        let starts = 2 + x.first().map_or(0, |s| s.rank());
        need(x.len() == starts && y.len() == 1, "the number of start indices is not the rank")?;
        same(x[0], y[0])?;
        same_type(x[1], y[0])?;
        need(x[2..].iter().all(|s| is_index(s)), "the start indices are not integer scalars")?;
        need(fits_into(x[1], x[0]), "the update is larger than the array")
    }

    fn works_in_place(&self) -> bool {
        true
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        let mut starts: Vec<i64> = r[2..].iter().map(index_of).collect();
        index::clamp_starts(&mut starts, r[0].dims(), r[1].dims());
        index::dynamic_update_slice(device.pool, r[0], r[1], &starts, w[0].reborrow());
    }
}

/// Returns whether an array is no larger than another of the same rank in any dimension.
fn fits_into(part: &Shape, whole: &Shape) -> bool {
    part.rank() == whole.rank() && part.dims.iter().zip(&*whole.dims).all(|(a, b)| a <= b)
}

/// Returns the value of an integer scalar. Values above the range of `i64` saturate.
fn index_of(s: &Src<'_>) -> i64 {
    let bytes = s.bytes();
    match s.dtype() {
        DType::S64 => i64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        DType::U64 => {
            i64::try_from(u64::from_le_bytes(bytes.try_into().expect("eight bytes"))).unwrap_or(i64::MAX)
        }
        DType::S32 => i64::from(i32::from_le_bytes(bytes.try_into().expect("four bytes"))),
        DType::U32 => i64::from(u32::from_le_bytes(bytes.try_into().expect("four bytes"))),
        DType::S16 => i64::from(i16::from_le_bytes(bytes.try_into().expect("two bytes"))),
        DType::U16 => i64::from(u16::from_le_bytes(bytes.try_into().expect("two bytes"))),
        DType::S8 | DType::S4 | DType::S2 => i64::from(bytes[0] as i8),
        _ => i64::from(bytes[0]),
    }
}
