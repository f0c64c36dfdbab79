//! What the engine knows about each operation.

use super::{Body, Shape};
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

/// Whether types fit; if not, what is wrong.
pub(crate) type Check = Result<(), String>;

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

/// An error unless something holds.
pub(crate) fn need(holds: bool, otherwise: &str) -> Check {
    if holds { Ok(()) } else { Err(otherwise.to_string()) }
}

/// So many operands and results.
pub(crate) fn counts(x: &[&Shape], y: &[&Shape], operands: usize, results: usize) -> Check {
    if (x.len(), y.len()) == (operands, results) {
        return Ok(());
    }
    Err(format!("{} operands and {} results instead of {operands} and {results}", x.len(), y.len()))
}

pub(crate) fn same(a: &Shape, b: &Shape) -> Check {
    need(a == b, "types differ")
}

pub(crate) fn same_type(a: &Shape, b: &Shape) -> Check {
    need(a.dtype == b.dtype, "element types differ")
}

/// Distinct dimensions of an array of this rank.
pub(crate) fn need_dims(dims: &[usize], rank: usize, otherwise: &str) -> Check {
    let distinct = dims.iter().enumerate().all(|(i, d)| *d < rank && !dims[..i].contains(d));
    need(distinct, otherwise)
}

/// A single integer.
pub(crate) fn is_index(s: &Shape) -> bool {
    s.rank() == 0 && !s.dtype.is_float() && !s.dtype.is_complex() && s.dtype != DType::Pred
}

/// Number of elements, as a cost.
pub(crate) fn elements(shapes: &[&Shape], index: usize) -> f64 {
    shapes.get(index).map_or(0.0, |s| s.len() as f64)
}

/// Checks what a body takes and gives; what it does is checked by itself.
pub(crate) fn check_body(b: &Body, parameters: &[Shape], results: &[Shape]) -> Check {
    let takes = b.parameters().iter().map(|v| b.shape(*v)).eq(parameters);
    let gives = b.results().iter().map(|v| b.shape(*v)).eq(results);
    need(takes && gives, "a body that takes or gives other types")
}

/// The two results of a kernel that has two.
pub(crate) fn two<'a>(w: &'a mut [Dst<'_>]) -> (Dst<'a>, Dst<'a>) {
    let [a, b] = w else { panic!("two results, not {}", w.len()) };
    (a.reborrow(), b.reborrow())
}
