//! What the engine knows about each operation.

use super::Shape;
use super::body::Body;
use super::check::Check;
use refcpu_kernels::region::{Builder, RegionError, Val};
use refcpu_kernels::{DType, Dst, Pool, Src};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// An operation of graphs. Where methods take types, `x` are those of the operands, `y` those of the results.
pub(crate) trait Operation: Debug {
    /// Checks the operands' number and types, and that the results' types follow. Bodies are checked by themselves.
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check;

    /// What a run costs; None for what costs nothing, and for what only runs its bodies.
    fn cost(&self, x: &[&Shape], y: &[&Shape]) -> Option<Cost> {
        if self.execution(x, y) == Execution::Elementwise {
            Cost::flops(elements(y, 0))
        } else {
            Some(Cost::default())
        }
    }

    /// The closed graphs that the operation runs.
    fn bodies(&self) -> Vec<&Body> {
        vec![]
    }

    /// The bodies that run as programs, and how often in one run; those that kernels apply to elements are not among them.
    fn runs(&self, _y: &[&Shape]) -> Vec<(f64, &Body)> {
        vec![]
    }

    /// True if equal operands give equal results, as long as bodies do.
    fn is_pure(&self) -> bool {
        true
    }

    /// True if a run does something beyond computing results, bodies aside.
    fn has_effect(&self) -> bool {
        false
    }

    /// How the operation runs.
    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Kernel
    }

    /// Adds an elementwise operation to a region.
    ///
    /// # Errors
    /// If kernels lack the operation for its types.
    fn emit(&self, _b: &mut Builder, _args: &[Val], _result: DType) -> Result<Val, RegionError> {
        unreachable!("{self:?} is not elementwise")
    }

    /// True if the first operand may be the same memory as the result.
    fn works_in_place(&self) -> bool {
        false
    }

    /// Runs the kernel of an operation that has one.
    fn run(&self, _device: &Device<'_>, _r: &[Src<'_>], _w: &mut [Dst<'_>]) {
        unreachable!("{self:?} has no kernel of its own")
    }
}

/// How an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    /// By a kernel of its own.
    Kernel,
    /// In regions: each element of the result is computed from the operands' elements at the same place.
    Elementwise,
    /// As what the compiler makes of it: steps, names for arrays that are there, kernels with regions.
    Compiled,
}

/// The cost of one run, besides the bytes of operands and results.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Elementwise arithmetic.
    pub(crate) flops: f64,
    /// Arithmetic of products, which is faster.
    pub(crate) products: f64,
    /// Evaluations of transcendental functions.
    pub(crate) transcendentals: f64,
}

impl Cost {
    /// So many operations of elementwise arithmetic.
    pub(crate) fn flops(flops: f64) -> Option<Self> {
        Some(Self { flops, ..Self::default() })
    }
}

/// Where a kernel runs: the threads it may use, and which device of the run this is.
pub(crate) struct Device<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) replica: usize,
    pub(crate) partition: usize,
    /// Counts the random operations that have no seed of their own.
    pub(crate) random: &'a AtomicU64,
}

impl Device<'_> {
    /// A seed that no other operation gets.
    pub(crate) fn seed(&self) -> u64 {
        self.random.fetch_add(1, Ordering::Relaxed)
    }
}

/// Number of elements, as a cost.
pub(crate) fn elements(shapes: &[&Shape], index: usize) -> f64 {
    shapes.get(index).map_or(0.0, |s| s.len() as f64)
}

/// The two results of a kernel that has two.
pub(crate) fn two<'a>(w: &'a mut [Dst<'_>]) -> (Dst<'a>, Dst<'a>) {
    let [a, b] = w else { panic!("two results, not {}", w.len()) };
    (a.reborrow(), b.reborrow())
}
