//! The compiler's own form of a program: an arena of nodes in single-assignment form.
//!
//! A graph is what StableHLO says without its surface: functions and composites inlined, tuples flattened, every shape
//! static, everything a region captures made an explicit operand. Nodes lie in an order in which they may run. Bodies
//! (of loops, branches, reductions) are closed graphs of their own. Passes do not change a graph; they build a new one
//! with a [`Builder`], which simplifies as it goes.

mod bitcast;
mod body;
mod build;
mod check;
mod collective;
mod constant;
mod control;
mod dump;
mod elementwise;
mod host;
mod indexing;
mod linalg;
mod movement;
mod op;
mod operation;
pub mod ops;
mod product;
mod random;
mod reduction;
mod sort;
mod verify;

pub use body::{Body, Reducer};
pub use build::{Builder, iota};
pub use constant::Constant;
pub use op::Op;
pub(crate) use operation::{Device, Execution};
pub use ops::{
    Collective, CollectiveKind, ForeignAttribute, ForeignCall, GatherDims, Groups, ManualSpec, ScatterDims,
};
pub use verify::verify;
pub(crate) use verify::verify_node;

use crate::storage::byte_len;
use pjrt_stablehlo::ir::Location;
use refcpu_kernels::DType;
use std::sync::Arc;

/// The type of a value: a dense array.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Element type.
    pub dtype: DType,
    /// Sizes of the dimensions, outermost first. The array's bytes can be addressed.
    pub dims: Arc<[usize]>,
}

impl Shape {
    /// An array type.
    ///
    /// # Panics
    /// If the array could not be addressed; see [`Shape::checked`].
    pub fn new(dtype: DType, dims: &[usize]) -> Self {
        Self::checked(dtype, dims)
            .unwrap_or_else(|| panic!("an array of {dtype:?}{dims:?} cannot be addressed"))
    }

    /// An array type, or None if its bytes could not be addressed.
    pub fn checked(dtype: DType, dims: &[usize]) -> Option<Self> {
        byte_len(dtype, dims)?;
        Some(Self { dtype, dims: dims.into() })
    }

    /// A single element.
    pub fn scalar(dtype: DType) -> Self {
        Self::new(dtype, &[])
    }

    /// A single element of the type of each array.
    pub(crate) fn scalars(shapes: &[&Shape]) -> Vec<Self> {
        shapes.iter().map(|s| Self::scalar(s.dtype)).collect()
    }

    /// The same dimensions with another element type.
    pub fn with_dtype(&self, dtype: DType) -> Self {
        if dtype == self.dtype { self.clone() } else { Self::new(dtype, &self.dims) }
    }

    /// The same element type with other dimensions.
    pub fn with_dims(&self, dims: &[usize]) -> Self {
        Self::new(self.dtype, dims)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Bytes of the array.
    pub fn bytes(&self) -> usize {
        byte_len(self.dtype, &self.dims).expect("checked when the shape was made")
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.dtype.mlir_name())?;
        f.write_str("[")?;
        for (i, d) in self.dims.iter().enumerate() {
            write!(f, "{}{d}", if i == 0 { "" } else { "," })?;
        }
        f.write_str("]")
    }
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// A value of a [`Graph`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

impl ValueId {
    /// Position in the graph's arena; values count from 0 without gaps.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Debug for ValueId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// Parameter of this number.
    Parameter(u32),
    /// Result of a node.
    Result {
        /// Position of the node.
        node: u32,
        /// Position among its results.
        index: u32,
    },
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it computes.
    pub op: Op,
    /// The values that it uses.
    pub operands: Vec<ValueId>,
    /// The first of its results, which have consecutive ids.
    pub first_result: ValueId,
    /// Number of results.
    pub results: u32,
    /// Where in the source program it comes from.
    pub location: Location,
}

impl Node {
    /// Its results.
    pub fn results(&self) -> impl ExactSizeIterator<Item = ValueId> + use<> {
        let first = self.first_result.0;
        (0..self.results).map(move |i| ValueId(first + i))
    }

    /// Result `index`.
    pub fn result(&self, index: usize) -> ValueId {
        assert!(index < self.results as usize);
        ValueId(self.first_result.0 + index as u32)
    }
}

/// A program or body.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    parameters: Vec<ValueId>,
    nodes: Vec<Node>,
    values: Vec<(Shape, Definition)>,
    results: Vec<ValueId>,
}

impl Graph {
    /// The parameters.
    pub fn parameters(&self) -> &[ValueId] {
        &self.parameters
    }

    /// The nodes, each after those whose results it uses.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The results.
    pub fn results(&self) -> &[ValueId] {
        &self.results
    }

    /// Number of values.
    pub fn num_values(&self) -> usize {
        self.values.len()
    }

    /// All values, in the arena's order.
    pub fn values(&self) -> impl Iterator<Item = ValueId> + use<> {
        (0..self.values.len() as u32).map(ValueId)
    }

    /// The type of a value.
    pub fn shape(&self, value: ValueId) -> &Shape {
        &self.values[value.index()].0
    }

    /// Where a value comes from.
    pub fn definition(&self, value: ValueId) -> Definition {
        self.values[value.index()].1
    }

    /// The node that a value is a result of; None for a parameter.
    pub fn node_of(&self, value: ValueId) -> Option<&Node> {
        match self.definition(value) {
            Definition::Result { node, .. } => Some(&self.nodes[node as usize]),
            Definition::Parameter(_) => None,
        }
    }

    /// The constant that a value is.
    pub fn constant(&self, value: ValueId) -> Option<&Constant> {
        match &self.node_of(value)?.op {
            Op::Constant(c) => Some(c),
            _ => None,
        }
    }

    /// For each value, the nodes that use it, in order (a node once per use), and whether it is a result.
    pub fn uses(&self) -> Uses {
        let mut starts = vec![0u32; self.values.len() + 1];
        for node in &self.nodes {
            for v in &node.operands {
                starts[v.index() + 1] += 1;
            }
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut users = vec![0u32; *starts.last().unwrap_or(&0) as usize];
        for (n, node) in self.nodes.iter().enumerate() {
            for v in &node.operands {
                users[next[v.index()] as usize] = n as u32;
                next[v.index()] += 1;
            }
        }
        let mut is_result = vec![false; self.values.len()];
        for v in &self.results {
            is_result[v.index()] = true;
        }
        Uses { starts, users, is_result }
    }

    /// True if the graph or one of its bodies communicates with the host, or runs code of the host's.
    pub fn uses_host(&self) -> bool {
        let uses = |op: &Op| op.is_host_transfer() || matches!(op, Op::Foreign(_));
        self.nodes.iter().any(|n| uses(&n.op) || n.op.bodies().iter().any(|b| b.uses_host()))
    }

    /// Number of nodes, those of bodies included.
    pub fn size(&self) -> usize {
        self.nodes.iter().map(|n| 1 + n.op.bodies().iter().map(|b| b.size()).sum::<usize>()).sum()
    }
}

/// Use lists of a graph.
pub struct Uses {
    starts: Vec<u32>,
    users: Vec<u32>,
    is_result: Vec<bool>,
}

impl Uses {
    /// Positions of the nodes that use a value, ascending; a node that uses it twice is there twice.
    pub fn of(&self, value: ValueId) -> &[u32] {
        &self.users[self.starts[value.index()] as usize..self.starts[value.index() + 1] as usize]
    }

    /// True if the value is a result of the graph.
    pub fn is_result(&self, value: ValueId) -> bool {
        self.is_result[value.index()]
    }

    /// Number of uses, being a result counted once.
    pub fn count(&self, value: ValueId) -> usize {
        self.of(value).len() + usize::from(self.is_result(value))
    }
}
