//! The commands of the device's processor: the language that programs are lowered to.
//!
//! There are few: StableHLO's operations that move elements, from `broadcast` to the patches of a convolution, are all
//! [`Kind::Move`], and all elementwise operations are [`Kind::Compute`].

use pjrt_stablehlo::ir::indexing::Windows;
use pjrt_stablehlo::ir::{ElementType, Literal};

use crate::kernel::{Id, Kernel};
use crate::movement::Axis;

/// A program for the processor.
pub(crate) struct Program {
    pub(crate) values: Vec<Value>,
    pub(crate) main: Block,
    /// The size in bytes of the memory that an execution needs in addition to arguments and results.
    pub(crate) scratch_size: usize,
}

/// A value of a program: an array.
pub(crate) struct Value {
    pub(crate) ty: ElementType,
    pub(crate) dims: Box<[i64]>,
    pub(crate) location: Location,
}

impl Value {
    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        self.dims.iter().product::<i64>() as usize
    }

    /// Returns the size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.len() * self.ty.byte_width()
    }
}

/// The location of a value during an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// The value is an argument of the program.
    Argument(usize),
    /// The value is in the scratch memory, at this offset.
    Scratch(usize),
    /// The value is never in memory, because it only exists inside a kernel.
    None,
}

/// Commands, which are executed in order, with the values that they receive and return.
#[derive(Default)]
pub(crate) struct Block {
    pub(crate) arguments: Vec<Id>,
    pub(crate) commands: Vec<Command>,
    pub(crate) results: Vec<Id>,
}

/// A command, with the values that it reads and writes, and the blocks that it executes.
pub(crate) struct Command {
    pub(crate) kind: Kind,
    pub(crate) reads: Vec<Id>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) writes: Vec<Id>,
}

/// The kinds of commands. Lists of values are those that a command reads, in order.
pub(crate) enum Kind {
    Constant(Literal),
    /// Writes the index along a dimension to each element.
    Iota(usize),
    /// Copies the elements of an array in row-major order, to an array of the same or of other dimensions.
    Copy,
    /// Computes each element of the result from one element of each captured value.
    Compute(Kernel),
    /// Copies to each element of the result the element of an array at the coordinates that the axes specify, or zero if these
    /// are out of bounds. Reads the array, for `is_padded` an element instead of zero, and coordinates to which the others are
    /// relative.
    Move {
        axes: Vec<Axis>,
        is_padded: bool,
    },
    /// Joins arrays along a dimension.
    Join(usize),
    /// Copies an array, and replaces a block of it. Reads the array, the block, and the coordinates of the block's start.
    Update,
    /// Multiplies matrices: `[batch, row, depth]` and `[batch, column, depth]` to `[batch, row, column]`.
    Product {
        batches: usize,
        depth: usize,
    },
    /// Reduces `width` consecutive elements at a time. Reads the arrays, their initial values, and what the kernel captures.
    Reduce {
        width: usize,
        kernel: Kernel,
    },
    /// Copies slices. Reads the array, and the coordinates of the slices' starts.
    Gather(Windows),
    /// Combines elements of arrays with updates. Reads the arrays, the coordinates of the updates' starts, the updates, and what
    /// the kernel captures.
    Scatter(Windows, Kernel),
    /// Executes the first block if the condition holds, and otherwise the second.
    If,
    /// Executes the second block while the result of the first one is true. Reads the initial state.
    While,
}
