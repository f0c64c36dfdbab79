//! What an instruction does.

use crate::graph::{ForeignCall, GatherDims, ScatterDims};
use refcpu_kernels::conv::ConvSpec;
use refcpu_kernels::dot::DotDims;
use refcpu_kernels::fft::FftKind;
use refcpu_kernels::index::Combiner;
use refcpu_kernels::linalg::{LinalgOp, TriangularSolve};
use refcpu_kernels::machine::Code;
use refcpu_kernels::reduce::{ArgReduceOp, ReduceOp};
use refcpu_kernels::region::Region;
use refcpu_kernels::rng::RngAlgorithm;
use refcpu_kernels::sort::SortKey;
use refcpu_kernels::window::{SelectOp, WindowSpec};

/// A kernel with everything but its arrays. Operands and results are in the order of the graph's operation of the same
/// name, unless said otherwise.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// Fused elementwise code.
    Region(Box<Region>),
    /// The same bytes; nothing to do where operand and result are the same memory.
    Copy,
    /// One element to all places.
    Fill,
    /// Dimension `i` of the operand goes to dimension `dims[i]`.
    Broadcast {
        /// Where dimensions go.
        dims: Vec<usize>,
    },
    /// Permuted dimensions.
    Transpose {
        /// The permutation.
        permutation: Vec<usize>,
    },
    /// Every `stride`-th element from `start` on.
    Slice {
        /// First index.
        start: Vec<usize>,
        /// Step.
        stride: Vec<usize>,
    },
    /// Reversed order along dimensions.
    Reverse {
        /// The dimensions.
        dims: Vec<usize>,
    },
    /// Operand, padding value.
    Pad {
        /// Elements before.
        low: Vec<i64>,
        /// Elements after.
        high: Vec<i64>,
        /// Elements between.
        interior: Vec<i64>,
    },
    /// Arrays one after the other.
    Concatenate {
        /// The dimension.
        dim: usize,
    },
    /// Bits seen as a type of another width.
    Bitcast,
    /// Input, initial value.
    Reduce {
        /// The operation.
        op: ReduceOp,
        /// The dimensions that go.
        dims: Vec<usize>,
    },
    /// Inputs, initial values.
    ReduceBy {
        /// The dimensions that go.
        dims: Vec<usize>,
        /// Combine rows 0 and 1, 2 and 3, ... of the array that is left, until one row is; each row has one element for
        /// each element of a result.
        halvings: Vec<Region>,
        /// Combines the initial values (single elements) with the last row.
        last: Box<Region>,
    },
    /// Value and index of an extreme.
    ArgReduce {
        /// Which.
        op: ArgReduceOp,
        /// The dimension that goes.
        dim: usize,
    },
    /// Input, initial value.
    ReduceWindow {
        /// The operation.
        op: ReduceOp,
        /// The windows.
        window: WindowSpec,
    },
    /// Inputs, initial values.
    ReduceWindowBy {
        /// The windows.
        window: WindowSpec,
        /// Combines the results so far with one element of each window, read from the padded inputs.
        combine: Box<Region>,
    },
    /// Operand, source, initial value.
    SelectAndScatter {
        /// The windows.
        window: WindowSpec,
        /// Which element is selected.
        select: SelectOp,
        /// How sources combine.
        scatter: ReduceOp,
    },
    /// A product.
    Dot(DotDims),
    /// A convolution.
    Convolution(Box<ConvSpec>),
    /// Operand, indices.
    Gather(Box<GatherDims>),
    /// Operand, indices, updates; in place where operand and result are the same memory.
    Scatter {
        /// Dimension numbers.
        dims: Box<ScatterDims>,
        /// How updates combine.
        combiner: Combiner,
    },
    /// Operands, indices, updates; in place where operand and result are the same memory.
    ScatterBy {
        /// Dimension numbers.
        dims: Box<ScatterDims>,
        /// Combines elements and updates; None replaces.
        combine: Option<Box<Region>>,
    },
    /// Operand, start indices.
    DynamicSlice,
    /// Operand, update, start indices; in place where operand and result are the same memory.
    DynamicUpdateSlice,
    /// Sorted together.
    Sort {
        /// The dimension.
        dim: usize,
        /// The order.
        keys: Vec<SortKey>,
    },
    /// Sorted together.
    SortBy {
        /// The dimension.
        dim: usize,
        /// Whether the first of two comes before the second.
        less: Box<Region>,
    },
    /// The greatest or smallest elements of each row, and where they are.
    TopK {
        /// Greatest.
        largest: bool,
    },
    /// Random bits.
    RngBits(RngAlgorithm),
    /// Random numbers between two.
    RngUniform,
    /// Random numbers of a mean and standard deviation.
    RngNormal,
    /// A Fourier transform.
    Fft {
        /// Which.
        kind: FftKind,
        /// Sizes of the transformed dimensions.
        lengths: Vec<usize>,
    },
    /// A Cholesky factor.
    Cholesky {
        /// The lower one.
        lower: bool,
    },
    /// Triangular systems.
    TriangularSolve(TriangularSolve),
    /// Reflectors and scales.
    QrFactor,
    /// The product of reflectors.
    QrProduct,
    /// Other linear algebra.
    Linalg(LinalgOp),
    /// Number of this device's partition.
    PartitionId,
    /// Number of this device's replica.
    ReplicaId,
    /// A handler of the host's.
    Foreign(Box<ForeignCall>),
    /// A whole loop over small values. Operands are what it captures; results are the carried values, which hold the
    /// initial ones before.
    Loop(Box<SmallLoop>),
}

/// A loop as a program of the register machine.
#[derive(Clone, Debug)]
pub struct SmallLoop {
    /// The program.
    pub code: Code,
    /// The kernels that it calls, by number.
    pub calls: Vec<Kernel>,
}

impl Kernel {
    /// True if operand `operand` may be the same memory as result `result`. Regions say so themselves.
    pub fn may_alias(&self, operand: usize, result: usize) -> bool {
        match self {
            Kernel::Region(region) => region.may_alias(operand, result),
            Kernel::Copy => true,
            Kernel::Scatter { .. } | Kernel::DynamicUpdateSlice => operand == 0 && result == 0,
            Kernel::ScatterBy { .. } => operand == result,
            _ => false,
        }
    }

    /// True if an operand may be the same memory as a result at all.
    pub fn works_in_place(&self) -> bool {
        matches!(
            self,
            Kernel::Region(_)
                | Kernel::Copy
                | Kernel::Scatter { .. }
                | Kernel::ScatterBy { .. }
                | Kernel::DynamicUpdateSlice
        )
    }
}
