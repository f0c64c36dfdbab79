//! What an instruction does.

use crate::graph::{Op, ScatterDims};
use refcpu_kernels::machine::Code;
use refcpu_kernels::region::Region;
use refcpu_kernels::window::WindowSpec;

/// A kernel with everything but its arrays: that of an operation, or what the compiler has made of some. Operands and
/// results are in the order of the graph's operation, unless said otherwise.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// The kernel of an operation.
    Op(Op),
    /// Fused elementwise code.
    Region(Box<Region>),
    /// The same bytes; nothing to do where operand and result are the same memory.
    Copy,
    /// One element to all places.
    Fill,
    /// A reduction by a body.
    ReduceBy {
        /// The dimensions that go.
        dims: Vec<usize>,
        /// Combine rows 0 and 1, 2 and 3, ... of the array that is left, until one row is; each row has one element for
        /// each element of a result.
        halvings: Vec<Region>,
        /// Combines the initial values (single elements) with the last row.
        last: Box<Region>,
    },
    /// A reduction of windows by a body.
    ReduceWindowBy {
        /// The windows.
        window: WindowSpec,
        /// Combines the results so far with one element of each window, read from the padded inputs.
        combine: Box<Region>,
    },
    /// A scatter by a body, or of several operands; in place where operand and result are the same memory.
    ScatterBy {
        /// Dimension numbers.
        dims: Box<ScatterDims>,
        /// Combines elements and updates; None replaces.
        combine: Option<Box<Region>>,
    },
    /// A sort by a body.
    SortBy {
        /// The dimension.
        dim: usize,
        /// Whether the first of two comes before the second.
        less: Box<Region>,
    },
    /// A whole loop over small values. Operands are what it captures; results are the carried values, which hold the
    /// initial ones before.
    Loop(Box<SmallLoop>),
}

/// A loop as a program of the register machine.
#[derive(Clone, Debug)]
pub struct SmallLoop {
    /// The program.
    pub code: Code,
    /// The kernels that it calls, by number.
    pub calls: Vec<Kernel>,
}

impl Kernel {
    /// True if operand `operand` may be the same memory as result `result`. Regions say so themselves.
    pub fn may_alias(&self, operand: usize, result: usize) -> bool {
        match self {
            Kernel::Region(region) => region.may_alias(operand, result),
            Kernel::Copy => true,
            Kernel::ScatterBy { .. } => operand == result,
            Kernel::Op(op) => operand == 0 && result == 0 && op.operation().works_in_place(),
            _ => false,
        }
    }

    /// True if an operand may be the same memory as a result at all.
    pub fn works_in_place(&self) -> bool {
        match self {
            Kernel::Region(_) | Kernel::Copy | Kernel::ScatterBy { .. } => true,
            Kernel::Op(op) => op.operation().works_in_place(),
            _ => false,
        }
    }
}
