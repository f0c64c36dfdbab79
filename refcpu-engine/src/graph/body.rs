//! The bodies of operations.

use super::check::{Check, need};
use super::{Graph, Shape};
use refcpu_kernels::ReduceOp;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The body of an operation: a closed graph. Bodies are compared by identity.
#[derive(Clone)]
pub struct Body(pub Arc<Graph>);

impl Body {
    /// Creates a body.
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

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "body of {} nodes", self.nodes().len())
    }
}

/// The function that combines elements in a reduction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reducer {
    /// One operation that the kernels implement.
    Op(ReduceOp),
    /// A graph over scalars. Its parameters are the accumulators and then the elements; its results are the new accumulators.
    Body(Body),
}

impl Reducer {
    /// Returns the graph; `None` for a single operation.
    pub(crate) fn body(&self) -> Option<&Body> {
        match self {
            Reducer::Op(_) => None,
            Reducer::Body(body) => Some(body),
        }
    }

    /// Returns the operation of a reducer that has a kernel.
    pub(super) fn op(&self) -> ReduceOp {
        match self {
            Reducer::Op(op) => *op,
            Reducer::Body(_) => unreachable!("a reduction by a body runs in a different kernel"),
        }
    }

    /// Checks that the reducer produces results of these types.
    pub(super) fn verify(&self, y: &[&Shape]) -> Check {
        match self {
            Reducer::Op(op) => need(
                y.len() == 1 && op.supports(y[0].dtype),
                "the reduction is not defined for this element type",
            ),
            Reducer::Body(b) => {
                let scalars = Shape::scalars(y);
                check_body(b, &[&scalars[..], &scalars].concat(), &scalars)
            }
        }
    }
}

/// Checks the types of a body's parameters and results. The nodes of the body are checked separately.
pub(crate) fn check_body(b: &Body, parameters: &[Shape], results: &[Shape]) -> Check {
    let takes = b.parameters().iter().map(|v| b.shape(*v)).eq(parameters);
    let gives = b.results().iter().map(|v| b.shape(*v)).eq(results);
    need(takes && gives, "the types of the body's parameters or results do not fit the operation")
}
