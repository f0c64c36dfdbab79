//! The properties that the engine needs of each operation.

use super::Shape;
use super::body::Body;
use super::check::Check;
use refcpu_kernels::region::{Builder, RegionError, Val};
use refcpu_kernels::{DType, Dst, Pool, Src};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// An operation of a graph. In all methods, `x` contains the types of the operands, and `y` those of the results.
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

    /// Returns whether equal operands produce equal results, provided that this holds for the bodies.
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
    /// Returns an error if the kernels do not support the operation for these types.
    fn emit(&self, _b: &mut Builder, _args: &[Val], _result: DType) -> Result<Val, RegionError> {
        unreachable!("{self:?} is not elementwise")
    }

    /// Returns whether the result may use the memory of the first operand.
    fn works_in_place(&self) -> bool {
        false
    }

    /// Runs the kernel of the operation.
    fn run(&self, _device: &Device<'_>, _r: &[Src<'_>], _w: &mut [Dst<'_>]) {
        unreachable!("{self:?} has no kernel")
    }
}

/// The way in which an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    /// The operation's own kernel.
    Kernel,
    /// Regions: each element of the result is computed from the elements of the operands at the same index.
    Elementwise,
    /// Steps that the compiler emits: control flow, views of existing arrays, or kernels with regions.
    Compiled,
}

/// The cost of one run, without the transfer of operands and results.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// The number of elementwise arithmetic operations.
    pub(crate) flops: f64,
    /// The number of arithmetic operations in products, which run faster.
    pub(crate) products: f64,
    /// The number of evaluations of transcendental functions.
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
    /// Seeds the random operations that have no seed.
    pub(crate) random: &'a AtomicU64,
}

impl Device<'_> {
    /// Returns a seed that no other operation uses.
    pub(crate) fn seed(&self) -> u64 {
        self.random.fetch_add(1, Ordering::Relaxed)
    }
}

/// Returns the number of elements of an array, as a cost.
pub(crate) fn elements(shapes: &[&Shape], index: usize) -> f64 {
    shapes.get(index).map_or(0.0, |s| s.len() as f64)
}

/// Returns the two results of a kernel.
pub(crate) fn two<'a>(w: &'a mut [Dst<'_>]) -> (Dst<'a>, Dst<'a>) {
    let [a, b] = w else { panic!("expected two results, found {}", w.len()) };
    (a.reborrow(), b.reborrow())
}
