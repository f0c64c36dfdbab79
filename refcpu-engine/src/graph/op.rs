//! What nodes compute.

use super::{Collective, Constant, ForeignCall, GatherDims, Graph, ManualSpec, ScatterDims};
use refcpu_kernels::conv::ConvSpec;
use refcpu_kernels::dot::DotDims;
use refcpu_kernels::fft::FftKind;
use refcpu_kernels::linalg::{LinalgOp, TriangularSolve};
use refcpu_kernels::reduce::{ArgReduceOp, ReduceOp};
use refcpu_kernels::region::{Direction, Order};
use refcpu_kernels::rng::RngAlgorithm;
use refcpu_kernels::sort::SortKey;
use refcpu_kernels::tile::TileOp;
use refcpu_kernels::window::{SelectOp, WindowSpec};
use std::ops::Deref;
use std::sync::Arc;

/// A closed graph that an operation runs. Equal only to itself.
#[derive(Clone, Debug)]
pub struct Body(pub Arc<Graph>);

impl Body {
    /// A body.
    pub fn new(graph: Graph) -> Self {
        Self(Arc::new(graph))
    }
}

impl Deref for Body {
    type Target = Graph;
    fn deref(&self) -> &Graph {
        &self.0
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Body {}

impl std::hash::Hash for Body {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).addr().hash(state);
    }
}

/// How elements combine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reducer {
    /// By one operation that kernels know.
    Op(ReduceOp),
    /// By a graph over scalars: accumulators, then elements, to new accumulators.
    Body(Body),
}

/// What a node computes. Dimension numbers are checked when a node is made; result shapes are stored with the results.
///
/// Unless said otherwise there is one result, operands are in StableHLO's order, and the meaning is that of the StableHLO
/// operation of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A constant array.
    Constant(Constant),
    /// Each element's coordinate along a dimension.
    Iota {
        /// The dimension.
        dim: usize,
    },
    /// An elementwise operation; operands have the result's dimensions.
    Tile(TileOp),
    /// An elementwise comparison.
    Compare(Direction, Order),
    /// The second operand where the first is true, else the third; all of the result's dimensions.
    Select,
    /// The second operand, within the first and the third; all of the result's dimensions.
    Clamp,
    /// Elementwise conversion to the result's type.
    Convert,
    /// The same bits as another type. Where widths differ, the minor-most dimension makes up for it.
    Bitcast,
    /// Elementwise rounding to a format.
    ReducePrecision {
        /// Bits of the exponent.
        exponent: u32,
        /// Bits of the mantissa.
        mantissa: u32,
    },
    /// Dimension `i` of the operand becomes `dims[i]` of the result; others repeat.
    Broadcast {
        /// Where the operand's dimensions go.
        dims: Vec<usize>,
    },
    /// The same elements in the same order.
    Reshape,
    /// Dimension `i` of the result is `permutation[i]` of the operand.
    Transpose {
        /// The permutation.
        permutation: Vec<usize>,
    },
    /// Every `stride`-th element from `start` on, as many as the result has.
    Slice {
        /// First index.
        start: Vec<usize>,
        /// Step.
        stride: Vec<usize>,
    },
    /// The order along some dimensions reversed.
    Reverse {
        /// The dimensions.
        dims: Vec<usize>,
    },
    /// Operand, padding value.
    Pad {
        /// Elements added before each dimension (negative: removed).
        low: Vec<i64>,
        /// Elements added after each dimension.
        high: Vec<i64>,
        /// Elements added between neighbours.
        interior: Vec<i64>,
    },
    /// The operands one after the other along a dimension.
    Concatenate {
        /// The dimension.
        dim: usize,
    },
    /// Inputs, then initial values; as many results.
    Reduce {
        /// The dimensions that go.
        dims: Vec<usize>,
        /// How elements combine.
        reducer: Reducer,
    },
    /// The extreme value and its index: two results.
    ArgReduce {
        /// The dimension that goes.
        dim: usize,
        /// Which extreme.
        op: ArgReduceOp,
    },
    /// Inputs, then initial values; as many results.
    ReduceWindow {
        /// The windows.
        window: WindowSpec,
        /// How elements combine.
        reducer: Reducer,
    },
    /// Operand, source, initial value; selection and scatter that kernels know.
    SelectAndScatter {
        /// The windows.
        window: WindowSpec,
        /// Which element of a window is selected.
        select: SelectOp,
        /// How sources combine.
        scatter: ReduceOp,
    },
    /// A product.
    Dot(DotDims),
    /// A convolution.
    Convolution(Box<ConvSpec>),
    /// Operand, start indices.
    Gather(Box<GatherDims>),
    /// Operands, indices, updates; as many results as operands.
    Scatter {
        /// Dimension numbers.
        dims: Box<ScatterDims>,
        /// How an update combines with an element; None: it replaces it.
        combiner: Option<Reducer>,
    },
    /// Operand, then one start index per dimension.
    DynamicSlice,
    /// Operand, update, then one start index per dimension.
    DynamicUpdateSlice,
    /// As many results as operands, sorted together along a dimension, in a known order.
    Sort {
        /// The dimension.
        dim: usize,
        /// The order, most significant first.
        keys: Vec<SortKey>,
    },
    /// The same with any order: the body says of (a0, b0, a1, b1, ...) whether a comes before b.
    SortBy {
        /// The dimension.
        dim: usize,
        /// The order.
        comparator: Body,
    },
    /// The greatest (or smallest) elements of the last dimension, and their indices (i32): two results.
    TopK {
        /// Greatest, not smallest.
        largest: bool,
    },
    /// Carried values, then invariant ones; the carried ones are the results. Both bodies take all operands.
    While {
        /// Number of carried values.
        carried: usize,
        /// Whether to go on.
        condition: Body,
        /// The next carried values.
        body: Body,
    },
    /// Index (i32; out of range means the last), then what the branches take.
    Case {
        /// The branches.
        branches: Vec<Body>,
    },
    /// Initial state to next state and random bits: two results.
    RngBits(RngAlgorithm),
    /// Lower and upper bound: uniform values. Two nodes never give the same values.
    RngUniform,
    /// Mean and standard deviation: normal values. Two nodes never give the same values.
    RngNormal,
    /// A Fourier transform along the last dimensions.
    Fft {
        /// Which.
        kind: FftKind,
        /// Sizes of the dimensions that are transformed.
        lengths: Vec<usize>,
    },
    /// The triangular factor of positive definite matrices.
    Cholesky {
        /// True for the lower one.
        lower: bool,
    },
    /// Solves with triangular matrices.
    TriangularSolve(TriangularSolve),
    /// Factors a matrix into reflectors and their scales (LAPACK geqrf): two results.
    QrFactor,
    /// Multiplies reflectors out (LAPACK orgqr): reflectors, scales.
    QrProduct,
    /// What else there is of linear algebra; operands and results are the operation's.
    Linalg(LinalgOp),
    /// Elementwise over scalars' graph; any number of results. All operands have the results' dimensions.
    Map(Body),
    /// Operands of all devices of a run meet.
    Collective(Box<Collective>),
    /// Number of this device's partition.
    PartitionId,
    /// Number of this device's replica.
    ReplicaId,
    /// Runs a body for each position of a mesh on parts of the operands.
    Manual {
        /// How operands are cut and results joined.
        spec: Box<ManualSpec>,
        /// What runs.
        body: Body,
    },
    /// Results equal operands; nothing is moved across.
    Barrier,
    /// Sends an array to the host: array, token to token. Tokens are arrays without elements.
    HostSend {
        /// The number by which the host knows what to do with it.
        channel: i64,
    },
    /// Receives an array from the host: token to array, token.
    HostReceive {
        /// The number by which the host knows what to send.
        channel: i64,
    },
    /// Runs a handler that the host has registered; operands and results are the call's.
    Foreign(Box<ForeignCall>),
}

impl Op {
    /// The bodies of the operation.
    pub fn bodies(&self) -> Vec<&Body> {
        fn of_reducer(r: &Reducer) -> Vec<&Body> {
            match r {
                Reducer::Op(_) => vec![],
                Reducer::Body(b) => vec![b],
            }
        }
        match self {
            Op::Reduce { reducer, .. } | Op::ReduceWindow { reducer, .. } => of_reducer(reducer),
            Op::Scatter { combiner: Some(reducer), .. } => of_reducer(reducer),
            Op::SortBy { comparator, .. } => vec![comparator],
            Op::While { condition, body, .. } => vec![condition, body],
            Op::Case { branches } => branches.iter().collect(),
            Op::Map(body) | Op::Manual { body, .. } => vec![body],
            Op::Collective(c) => match &c.kind {
                super::CollectiveKind::AllReduce(r)
                | super::CollectiveKind::ReduceScatter { reducer: r, .. } => of_reducer(r),
                _ => vec![],
            },
            _ => vec![],
        }
    }

    /// The same operation with its bodies changed, if they run as programs: those of loops, branches and manual
    /// computations. None for others, whose bodies, if any, are about single elements.
    ///
    /// # Errors
    /// As `change`.
    pub fn with_programs<E>(&self, change: impl Fn(&Graph) -> Result<Graph, E>) -> Result<Option<Op>, E> {
        let changed = |body: &Body| change(body).map(Body::new);
        Ok(Some(match self {
            Op::While { carried, condition, body } => {
                Op::While { carried: *carried, condition: changed(condition)?, body: changed(body)? }
            }
            Op::Case { branches } => {
                Op::Case { branches: branches.iter().map(changed).collect::<Result<_, _>>()? }
            }
            Op::Manual { spec, body } => Op::Manual { spec: spec.clone(), body: changed(body)? },
            _ => return Ok(None),
        }))
    }

    /// True if two nodes with equal operands compute the same, so that one will do.
    pub fn is_pure(&self) -> bool {
        match self {
            Op::RngUniform | Op::RngNormal | Op::Collective(_) | Op::Manual { .. } => false,
            Op::HostSend { .. } | Op::HostReceive { .. } => false,
            Op::Foreign(call) => !call.has_side_effect,
            _ => self.bodies().iter().all(|b| b.nodes().iter().all(|n| n.op.is_pure())),
        }
    }

    /// True if the node must stay although nobody uses its results, and in its order among such nodes: devices wait for each
    /// other, or communicate with the host in it.
    pub fn has_effect(&self) -> bool {
        match self {
            Op::Collective(_) => true,
            Op::Foreign(call) => call.has_side_effect,
            _ if self.is_host_transfer() => true,
            _ => self.bodies().iter().any(|b| b.nodes().iter().any(|n| n.op.has_effect())),
        }
    }

    /// True if the operation communicates with the host.
    pub fn is_host_transfer(&self) -> bool {
        matches!(self, Op::HostSend { .. } | Op::HostReceive { .. })
    }
}
