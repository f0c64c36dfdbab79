//! The graphs that operations run.

use super::check::{Check, need};
use super::{Graph, Shape};
use refcpu_kernels::reduce::ReduceOp;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A closed graph that an operation runs. Equal only to itself.
#[derive(Clone)]
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

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "body of {} nodes", self.nodes().len())
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

impl Reducer {
    /// The graph, if it is one.
    pub(crate) fn body(&self) -> Option<&Body> {
        match self {
            Reducer::Op(_) => None,
            Reducer::Body(body) => Some(body),
        }
    }

    /// The operation of a reducer that has a kernel.
    pub(super) fn op(&self) -> ReduceOp {
        match self {
            Reducer::Op(op) => *op,
            Reducer::Body(_) => unreachable!("a reduction by a body has a kernel of its own"),
        }
    }

    /// Checks that it gives these results.
    pub(super) fn verify(&self, y: &[&Shape]) -> Check {
        match self {
            Reducer::Op(op) => need(y.len() == 1 && op.supports(y[0].dtype), "not for this type"),
            Reducer::Body(b) => {
                let scalars = Shape::scalars(y);
                check_body(b, &[&scalars[..], &scalars].concat(), &scalars)
            }
        }
    }
}

/// Checks what a body takes and gives; what it does is checked by itself.
pub(crate) fn check_body(b: &Body, parameters: &[Shape], results: &[Shape]) -> Check {
    let takes = b.parameters().iter().map(|v| b.shape(*v)).eq(parameters);
    let gives = b.results().iter().map(|v| b.shape(*v)).eq(results);
    need(takes && gives, "a body that takes or gives other types")
}
