//! The compiler's intermediate representation: an arena of nodes in static single-assignment form.
//!
//! A graph contains a StableHLO program after inlining of functions and composites and flattening of tuples. All shapes are
//! static, and all values that a region captures are explicit operands. The nodes are in an order in which they can run. The
//! bodies of loops, branches and reductions are separate, closed graphs. Passes do not modify a graph; they build a new one
//! with a [`Builder`], which simplifies nodes as they are added.

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
pub(crate) use operation::{Cost, Device, Execution};
pub use ops::{
    Collective, CollectiveKind, ForeignAttribute, ForeignCall, GatherDims, Groups, ManualSpec, ScatterDims,
};
pub use verify::verify;
pub(crate) use verify::verify_node;

use crate::storage::byte_len;
use pjrt_stablehlo::ir::Location;
use refcpu_kernels::DType;
use std::sync::Arc;

/// The type of a value, which is a dense array.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The element type.
    pub dtype: DType,
    /// The sizes of the dimensions, outermost first. The size of the array in bytes fits in an `isize`.
    pub dims: Arc<[usize]>,
}

impl Shape {
    /// Creates an array type.
    ///
    /// # Panics
    /// Panics if the size in bytes is too large to address; see [`Shape::checked`].
    pub fn new(dtype: DType, dims: &[usize]) -> Self {
        Self::checked(dtype, dims).unwrap_or_else(|| {
            panic!("the size in bytes of an array of {dtype:?}{dims:?} is too large to address")
        })
    }

    /// Creates an array type; `None` if the size in bytes is too large to address.
    pub fn checked(dtype: DType, dims: &[usize]) -> Option<Self> {
        byte_len(dtype, dims)?;
        Some(Self { dtype, dims: dims.into() })
    }

    /// Creates the type of a scalar.
    pub fn scalar(dtype: DType) -> Self {
        Self::new(dtype, &[])
    }

    /// Returns the types of scalars with the element type of each array.
    pub(crate) fn scalars(shapes: &[&Shape]) -> Vec<Self> {
        shapes.iter().map(|s| Self::scalar(s.dtype)).collect()
    }

    /// Returns this type with another element type.
    pub fn with_dtype(&self, dtype: DType) -> Self {
        if dtype == self.dtype { self.clone() } else { Self::new(dtype, &self.dims) }
    }

    /// Returns this type with other dimensions.
    pub fn with_dims(&self, dims: &[usize]) -> Self {
        Self::new(self.dtype, dims)
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }

    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        byte_len(self.dtype, &self.dims).expect("the constructor checks that the size is addressable")
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

/// The index of a value of a [`Graph`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

impl ValueId {
    /// Returns the index in the graph's arena. The values of a graph have consecutive indices from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Debug for ValueId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// The parameter with this number.
    Parameter(u32),
    /// A result of a node.
    Result {
        /// The index of the node.
        node: u32,
        /// The index of the result among those of the node.
        index: u32,
    },
}

/// An operation with its operands and results.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// The operands.
    pub operands: Vec<ValueId>,
    /// The first result. The results of a node have consecutive ids.
    pub first_result: ValueId,
    /// The number of results.
    pub results: u32,
    /// The location in the source program.
    pub location: Location,
}

impl Node {
    /// Returns the results.
    pub fn results(&self) -> impl ExactSizeIterator<Item = ValueId> + use<> {
        let first = self.first_result.0;
        (0..self.results).map(move |i| ValueId(first + i))
    }

    /// Returns the result with this index.
    ///
    /// # Panics
    /// Panics if the node has no such result.
    pub fn result(&self, index: usize) -> ValueId {
        assert!(index < self.results as usize);
        ValueId(self.first_result.0 + index as u32)
    }
}

/// A program, or the body of an operation.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    parameters: Vec<ValueId>,
    nodes: Vec<Node>,
    values: Vec<(Shape, Definition)>,
    results: Vec<ValueId>,
}

impl Graph {
    /// Returns the parameters.
    pub fn parameters(&self) -> &[ValueId] {
        &self.parameters
    }

    /// Returns the nodes. Each node follows those whose results it uses.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the results.
    pub fn results(&self) -> &[ValueId] {
        &self.results
    }

    /// Returns the number of values.
    pub fn num_values(&self) -> usize {
        self.values.len()
    }

    /// Returns all values in the order of their indices.
    pub fn values(&self) -> impl Iterator<Item = ValueId> + use<> {
        (0..self.values.len() as u32).map(ValueId)
    }

    /// Returns the type of a value.
    pub fn shape(&self, value: ValueId) -> &Shape {
        &self.values[value.index()].0
    }

    /// Returns the definition of a value.
    pub fn definition(&self, value: ValueId) -> Definition {
        self.values[value.index()].1
    }

    /// Returns the node whose result a value is; `None` for a parameter.
    pub fn node_of(&self, value: ValueId) -> Option<&Node> {
        match self.definition(value) {
            Definition::Result { node, .. } => Some(&self.nodes[node as usize]),
            Definition::Parameter(_) => None,
        }
    }

    /// Returns the constant that defines a value; `None` if the value is not a constant.
    pub fn constant(&self, value: ValueId) -> Option<&Constant> {
        match &self.node_of(value)?.op {
            Op::Constant(c) => Some(c),
            _ => None,
        }
    }

    /// Computes the uses of all values.
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

    /// Returns whether the graph or one of its bodies communicates with the host or calls a handler of the host.
    pub fn uses_host(&self) -> bool {
        self.any(&|op| op.is_host_transfer() || matches!(op, Op::Foreign(_)))
    }

    /// Returns `true` if the devices communicate when the graph runs on several of them.
    pub fn communicates(&self) -> bool {
        self.any(&|op| matches!(op, Op::Collective(_) | Op::Manual(_)))
    }

    /// Returns true if `is` is true of an operation, those of bodies included.
    fn any(&self, is: &dyn Fn(&Op) -> bool) -> bool {
        self.nodes.iter().any(|n| is(&n.op) || n.op.bodies().iter().any(|b| b.any(is)))
    }

    /// Returns the number of nodes, including those of bodies.
    pub fn size(&self) -> usize {
        self.nodes.iter().map(|n| 1 + n.op.bodies().iter().map(|b| b.size()).sum::<usize>()).sum()
    }
}

/// The uses of each value of a graph.
pub struct Uses {
    starts: Vec<u32>,
    users: Vec<u32>,
    is_result: Vec<bool>,
}

impl Uses {
    /// Returns the indices of the nodes that use a value, in ascending order. A node that uses the value twice occurs twice.
    pub fn of(&self, value: ValueId) -> &[u32] {
        &self.users[self.starts[value.index()] as usize..self.starts[value.index() + 1] as usize]
    }

    /// Returns whether the value is a result of the graph.
    pub fn is_result(&self, value: ValueId) -> bool {
        self.is_result[value.index()]
    }

    /// Returns the number of uses. Being a result counts as one use.
    pub fn count(&self, value: ValueId) -> usize {
        self.of(value).len() + usize::from(self.is_result(value))
    }
}
