//! The properties that the engine needs of each operation.

use super::{Body, Shape};
use refcpu_kernels::region::{Builder, RegionError, Val};
use refcpu_kernels::{DType, Dst, Pool, Src};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// An operation of graphs. In all methods, `x` are the types of the operands, and `y` those of the results.
pub(crate) trait Operation: Debug {
    /// Checks the number and types of the operands and results. Bodies are checked separately.
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check;

    /// Returns the cost of one run; `None` if the operation costs nothing or only runs its bodies.
    fn cost(&self, x: &[&Shape], y: &[&Shape]) -> Option<Cost> {
        if self.execution(x, y) == Execution::Elementwise {
            Cost::flops(elements(y, 0))
        } else {
            Some(Cost::default())
        }
    }

    /// Returns the bodies of the operation.
    fn bodies(&self) -> Vec<&Body> {
        vec![]
    }

    /// Returns the bodies that run as programs, with the number of times that each of them runs. Bodies that kernels apply to
    /// elements are excluded.
    fn runs(&self, _y: &[&Shape]) -> Vec<(f64, &Body)> {
        vec![]
    }

    /// Returns whether equal operands give equal results, provided that this holds for the bodies.
    fn is_pure(&self) -> bool {
        true
    }

    /// Returns whether a run has effects other than its results, not counting those of bodies.
    fn has_effect(&self) -> bool {
        false
    }

    /// Returns how the operation runs.
    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Kernel
    }

    /// Adds an elementwise operation to a region.
    ///
    /// # Errors
    /// If the kernels do not support the operation for these types.
    fn emit(&self, _b: &mut Builder, _args: &[Val], _result: DType) -> Result<Val, RegionError> {
        unreachable!("{self:?} is not elementwise")
    }

    /// Returns whether the result may use the memory of the first operand.
    fn works_in_place(&self) -> bool {
        false
    }

    /// Runs the kernel of the operation.
    fn run(&self, _device: &Device<'_>, _r: &[Src<'_>], _w: &mut [Dst<'_>]) {
        unreachable!("{self:?} has no kernel of its own")
    }
}

/// The way in which an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    /// A kernel of its own.
    Kernel,
    /// Regions: each element of the result is computed from the elements of the operands at the same index.
    Elementwise,
    /// Steps that the compiler emits: control flow, views of existing arrays, or kernels with regions.
    Compiled,
}

/// The result of checking types, with a message if they do not fit.
pub(crate) type Check = Result<(), String>;

/// The cost of one run, without the transfer of operands and results.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Number of elementwise arithmetic operations.
    pub(crate) flops: f64,
    /// Number of arithmetic operations in products, which run faster.
    pub(crate) products: f64,
    /// Number of evaluations of transcendental functions.
    pub(crate) transcendentals: f64,
}

impl Cost {
    /// Creates the cost of this number of elementwise arithmetic operations.
    pub(crate) fn flops(flops: f64) -> Option<Self> {
        Some(Self { flops, ..Self::default() })
    }
}

/// The context of a kernel: the threads that it may use, and its position among the devices of the run.
pub(crate) struct Device<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) replica: usize,
    pub(crate) partition: usize,
    /// Seeds the random operations that have no seed of their own.
    pub(crate) random: &'a AtomicU64,
}

impl Device<'_> {
    /// Returns a seed that no other operation uses.
    pub(crate) fn seed(&self) -> u64 {
        self.random.fetch_add(1, Ordering::Relaxed)
    }
}

/// Returns an error with this message unless the condition holds.
pub(crate) fn need(holds: bool, otherwise: &str) -> Check {
    if holds { Ok(()) } else { Err(otherwise.to_string()) }
}

/// Checks the numbers of operands and results.
pub(crate) fn counts(x: &[&Shape], y: &[&Shape], operands: usize, results: usize) -> Check {
    if (x.len(), y.len()) == (operands, results) {
        return Ok(());
    }
    Err(format!("found {} operands and {} results; expected {operands} and {results}", x.len(), y.len()))
}

pub(crate) fn same(a: &Shape, b: &Shape) -> Check {
    need(a == b, "the types differ")
}

pub(crate) fn same_type(a: &Shape, b: &Shape) -> Check {
    need(a.dtype == b.dtype, "the element types differ")
}

/// Checks that `dims` are distinct dimensions of an array of this rank.
pub(crate) fn need_dims(dims: &[usize], rank: usize, otherwise: &str) -> Check {
    let distinct = dims.iter().enumerate().all(|(i, d)| *d < rank && !dims[..i].contains(d));
    need(distinct, otherwise)
}

/// Returns whether the type is that of an integer scalar.
pub(crate) fn is_index(s: &Shape) -> bool {
    s.rank() == 0 && !s.dtype.is_float() && !s.dtype.is_complex() && s.dtype != DType::Pred
}

/// Returns the number of elements of an array, as a cost.
pub(crate) fn elements(shapes: &[&Shape], index: usize) -> f64 {
    shapes.get(index).map_or(0.0, |s| s.len() as f64)
}

/// Checks the types of a body's parameters and results. The nodes of the body are checked separately.
pub(crate) fn check_body(b: &Body, parameters: &[Shape], results: &[Shape]) -> Check {
    let takes = b.parameters().iter().map(|v| b.shape(*v)).eq(parameters);
    let gives = b.results().iter().map(|v| b.shape(*v)).eq(results);
    need(takes && gives, "the types of the body's parameters or results do not fit the operation")
}

/// Returns the two results of a kernel.
pub(crate) fn two<'a>(w: &'a mut [Dst<'_>]) -> (Dst<'a>, Dst<'a>) {
    let [a, b] = w else { panic!("expected two results, found {}", w.len()) };
    (a.reborrow(), b.reborrow())
}
