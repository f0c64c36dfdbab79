//! The table of operations.

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

/// Defines the enum of operations, and the access to their properties.
macro_rules! operations {
    (plain: $($plain:ident)*; inline: $($inline:ident($value:ty))*; boxed: $($boxed:ident($spec:ty))*;) => {
        /// The operation of a node with its attributes, as in [`ops`]. The attributes are checked when the node is added.
        #[derive(Clone, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the types of the operations are documented")]
        pub enum Op {
            $($plain,)*
            $($inline($value),)*
            $($boxed(Box<$spec>),)*
        }

        impl Op {
            /// Returns the name of the operation.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Op::$plain => stringify!($plain),)*
                    $(Op::$inline(_) => stringify!($inline),)*
                    $(Op::$boxed(_) => stringify!($boxed),)*
                }
            }

            /// Returns the properties of the operation.
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
    /// Returns the bodies of the operation.
    pub fn bodies(&self) -> Vec<&Body> {
        self.operation().bodies()
    }

    /// Returns the operation with changed bodies if they run as programs, as in loops, branches and manual computations; `None`
    /// for other operations, whose bodies apply to single elements.
    ///
    /// # Errors
    /// Returns the errors of `change`.
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

    /// Returns whether two nodes of this operation with equal operands have equal results, so that they can be merged.
    pub fn is_pure(&self) -> bool {
        self.operation().is_pure() && self.bodies().iter().all(|b| b.nodes().iter().all(|n| n.op.is_pure()))
    }

    /// Returns whether nodes of this operation must be kept, in their order, even if their results are unused. This is the case
    /// for collectives and for communication with the host.
    pub fn has_effect(&self) -> bool {
        self.operation().has_effect()
            || self.bodies().iter().any(|b| b.nodes().iter().any(|n| n.op.has_effect()))
    }

    /// Returns whether a node of this operation computes each element of its result from the elements of its operands at the
    /// same index.
    pub(crate) fn is_elementwise(&self, operands: &[&Shape], result: &Shape) -> bool {
        self.operation().execution(operands, &[result]) == Execution::Elementwise
    }

    /// Adds an elementwise operation to a region.
    ///
    /// # Errors
    /// Returns an error if the kernels do not support the operation for these types.
    pub(crate) fn emit(&self, b: &mut Builder, args: &[Val], result: DType) -> Result<Val, RegionError> {
        self.operation().emit(b, args, result)
    }

    /// Returns whether the operation communicates with the host.
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
