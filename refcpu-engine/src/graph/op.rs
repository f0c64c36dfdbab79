//! What nodes compute: the table of operations.

use super::body::Body;
use super::constant::Constant;
use super::operation::{Execution, Operation};
use super::{Graph, Shape, ops};
use refcpu_kernels::DType;
use refcpu_kernels::conv::ConvSpec;
use refcpu_kernels::dot::DotDims;
use refcpu_kernels::linalg::{LinalgOp, TriangularSolve};
use refcpu_kernels::region::{Builder, RegionError, Val};
use refcpu_kernels::rng::RngAlgorithm;
use refcpu_kernels::tile::TileOp;
use std::fmt;

/// Makes the enum of operations and finds what is known of each.
macro_rules! operations {
    (plain: $($plain:ident)*; inline: $($inline:ident($value:ty))*; boxed: $($boxed:ident($spec:ty))*;) => {
        /// What a node computes: an operation of [`ops`] with its attributes, which are checked when a node is made.
        #[derive(Clone, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the operations' own types say what they are")]
        pub enum Op {
            $($plain,)*
            $($inline($value),)*
            $($boxed(Box<$spec>),)*
        }

        impl Op {
            /// The operation's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Op::$plain => stringify!($plain),)*
                    $(Op::$inline(_) => stringify!($inline),)*
                    $(Op::$boxed(_) => stringify!($boxed),)*
                }
            }

            /// What the engine knows about the operation.
            pub(crate) fn operation(&self) -> &dyn Operation {
                match self {
                    $(Op::$plain => &ops::$plain,)*
                    $(Op::$inline(op) => op,)*
                    $(Op::$boxed(op) => &**op,)*
                }
            }
        }
    };
}

operations! {
    plain:
        Select Clamp Convert Bitcast Reshape DynamicSlice DynamicUpdateSlice RngUniform RngNormal
        QrFactor QrProduct PartitionId ReplicaId Barrier;
    inline:
        Constant(Constant)
        Tile(TileOp)
        Compare(ops::Compare)
        ReducePrecision(ops::ReducePrecision)
        Map(Body)
        Iota(ops::Iota)
        Broadcast(ops::Broadcast)
        Transpose(ops::Transpose)
        Slice(ops::Slice)
        Reverse(ops::Reverse)
        Pad(ops::Pad)
        Concatenate(ops::Concatenate)
        Reduce(ops::Reduce)
        ArgReduce(ops::ArgReduce)
        ReduceWindow(ops::ReduceWindow)
        SelectAndScatter(ops::SelectAndScatter)
        Dot(DotDims)
        Scatter(ops::Scatter)
        Sort(ops::Sort)
        SortBy(ops::SortBy)
        TopK(ops::TopK)
        While(ops::While)
        Case(ops::Case)
        Manual(ops::Manual)
        RngBits(RngAlgorithm)
        Fft(ops::Fft)
        Cholesky(ops::Cholesky)
        TriangularSolve(TriangularSolve)
        Linalg(LinalgOp)
        HostSend(ops::HostSend)
        HostReceive(ops::HostReceive);
    boxed:
        Convolution(ConvSpec)
        Gather(ops::GatherDims)
        Collective(ops::Collective)
        Foreign(ops::ForeignCall);
}

impl Op {
    /// The bodies of the operation.
    pub fn bodies(&self) -> Vec<&Body> {
        self.operation().bodies()
    }

    /// The same operation with its bodies changed, if they run as programs: those of loops, branches and manual
    /// computations. None for others, whose bodies, if any, are about single elements.
    ///
    /// # Errors
    /// As `change`.
    pub fn with_programs<E>(&self, change: impl Fn(&Graph) -> Result<Graph, E>) -> Result<Option<Op>, E> {
        let changed = |body: &Body| change(body).map(Body::new);
        Ok(Some(match self {
            Op::While(ops::While { carried, condition, body }) => {
                let (condition, body) = (changed(condition)?, changed(body)?);
                Op::While(ops::While { carried: *carried, condition, body })
            }
            Op::Case(ops::Case { branches }) => {
                Op::Case(ops::Case { branches: branches.iter().map(changed).collect::<Result<_, _>>()? })
            }
            Op::Manual(ops::Manual { spec, body }) => {
                Op::Manual(ops::Manual { spec: spec.clone(), body: changed(body)? })
            }
            _ => return Ok(None),
        }))
    }

    /// True if two nodes with equal operands compute the same, so that one will do.
    pub fn is_pure(&self) -> bool {
        self.operation().is_pure() && self.bodies().iter().all(|b| b.nodes().iter().all(|n| n.op.is_pure()))
    }

    /// True if the node must stay although nobody uses its results, and in its order among such nodes: devices wait for each
    /// other, or communicate with the host in it.
    pub fn has_effect(&self) -> bool {
        self.operation().has_effect()
            || self.bodies().iter().any(|b| b.nodes().iter().any(|n| n.op.has_effect()))
    }

    /// True if a node of this operation computes each element of its result from the operands' elements at the same place.
    pub(crate) fn is_elementwise(&self, operands: &[&Shape], result: &Shape) -> bool {
        self.operation().execution(operands, &[result]) == Execution::Elementwise
    }

    /// Adds an elementwise operation to a region.
    ///
    /// # Errors
    /// If kernels lack the operation for its types.
    pub(crate) fn emit(&self, b: &mut Builder, args: &[Val], result: DType) -> Result<Val, RegionError> {
        self.operation().emit(b, args, result)
    }

    /// True if the operation communicates with the host.
    pub fn is_host_transfer(&self) -> bool {
        matches!(self, Op::HostSend(_) | Op::HostReceive(_))
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attributes = format!("{:?}", self.operation());
        if attributes.starts_with(self.name()) {
            f.write_str(&attributes)
        } else {
            write!(f, "{}({attributes})", self.name())
        }
    }
}
