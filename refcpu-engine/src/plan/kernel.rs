//! The kernels that steps call.

use crate::graph::{Op, ScatterDims};
use refcpu_kernels::machine::Code;
use refcpu_kernels::region::Region;
use refcpu_kernels::window::WindowSpec;

/// A kernel with its attributes, but without arrays: the kernel of an operation, or one that the compiler generates from
/// several. Unless documented otherwise, operands and results are in the order of the graph's operation.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// The kernel of an operation.
    Op(Op),
    /// Fused elementwise code.
    Region(Box<Region>),
    /// A copy. It does nothing if the operand and the result have the same memory.
    Copy,
    /// A broadcast of one element to all elements of the result.
    Fill,
    /// A reduction by a body.
    ReduceBy {
        /// The reduced dimensions.
        dims: Vec<usize>,
        /// Regions that combine rows 0 and 1, 2 and 3, and so on, until one row is left. Each row has one element for each
        /// element of a result.
        halvings: Vec<Region>,
        /// A region that combines the initial values, which are scalars, with the last row.
        last: Box<Region>,
    },
    /// A reduction over windows by a body.
    ReduceWindowBy {
        /// The windows.
        window: WindowSpec,
        /// A region that combines the present results with one element of each window, which is read from the padded inputs.
        combine: Box<Region>,
    },
    /// A scatter by a body, or of several operands. It works in place if an operand and its result have the same memory.
    ScatterBy {
        /// The dimension numbers.
        dims: Box<ScatterDims>,
        /// A region that combines elements and updates; `None` if updates replace elements.
        combine: Option<Box<Region>>,
    },
    /// A sort by a body.
    SortBy {
        /// The dimension.
        dim: usize,
        /// A region that computes whether the first of two elements precedes the second.
        less: Box<Region>,
    },
    /// A whole loop over small values. The operands are the values that it captures. The results are the carried values, which
    /// contain the initial values before the call.
    Loop(Box<SmallLoop>),
}

/// A loop as a program of the register machine.
#[derive(Clone, Debug)]
pub struct SmallLoop {
    /// The program.
    pub code: Code,
    /// The kernels that the program calls, by index.
    pub calls: Vec<Kernel>,
}

impl Kernel {
    /// Returns whether an operand may have the same memory as a result. A region determines this itself.
    pub fn may_alias(&self, operand: usize, result: usize) -> bool {
        match self {
            Kernel::Region(region) => region.may_alias(operand, result),
            Kernel::Copy => true,
            Kernel::ScatterBy { .. } => operand == result,
            Kernel::Op(op) => operand == 0 && result == 0 && op.operation().works_in_place(),
            _ => false,
        }
    }

    /// Returns whether any operand may have the same memory as a result.
    pub fn works_in_place(&self) -> bool {
        match self {
            Kernel::Region(_) | Kernel::Copy | Kernel::ScatterBy { .. } => true,
            Kernel::Op(op) => op.operation().works_in_place(),
            _ => false,
        }
    }
}
