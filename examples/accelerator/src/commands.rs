//! The commands of the device's processor: the language that programs are lowered to.
//!
//! There are few: StableHLO's operations that move elements, from `broadcast` to the patches of a convolution, are all
//! [`Command::Move`], and all elementwise operations are [`Command::Compute`].

use pjrt_stablehlo::ir::{ElementType, Literal};

use crate::array::Rows;
use crate::indexing::Windows;
use crate::kernel::Kernel;
use crate::movement::Axis;

/// The number of a value in [`Program::values`].
pub(crate) type Id = usize;

/// A program for the processor.
pub(crate) struct Program {
    pub(crate) values: Vec<Value>,
    /// The values of the arguments.
    pub(crate) arguments: Vec<Id>,
    pub(crate) main: Block,
    /// The size in bytes of the memory that an execution needs in addition to arguments and results.
    pub(crate) scratch_size: usize,
}

/// A value of a program: an array.
#[derive(Clone)]
pub(crate) struct Value {
    pub(crate) ty: ElementType,
    pub(crate) dims: Box<[i64]>,
    pub(crate) rows: Rows,
    pub(crate) location: Location,
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

/// A command, which reads values and writes others.
pub(crate) enum Command {
    Constant {
        literal: Literal,
        to: Id,
    },
    /// Writes the index along a dimension to each element.
    Iota {
        dimension: usize,
        to: Id,
    },
    /// Copies the elements in row-major order, to an array of the same or of other dimensions.
    Copy {
        from: Id,
        to: Id,
    },
    /// Computes each element of the result from one element of each captured value.
    Compute {
        kernel: Kernel,
        to: Id,
    },
    /// Copies an element to each element of the result: from the coordinates that the axes and the starts specify, or from
    /// `outside` if these are out of bounds.
    Move {
        from: Id,
        axes: Vec<Axis>,
        starts: Vec<Id>,
        outside: Option<Id>,
        to: Id,
    },
    /// Copies blocks into an array, which has the elements of `base` elsewhere. The blocks begin at constant coordinates, to
    /// which the values `starts` are added.
    Insert {
        base: Option<Id>,
        blocks: Vec<(Id, Vec<i64>)>,
        starts: Vec<Id>,
        to: Id,
    },
    /// Multiplies matrices: `[batch, row, depth]` and `[batch, column, depth]` to `[batch, row, column]`.
    Product {
        lhs: Id,
        rhs: Id,
        batches: usize,
        rows: usize,
        columns: usize,
        depth: usize,
        to: Id,
    },
    /// Reduces arrays of `width` elements per element of the result together.
    Reduce {
        arrays: Vec<Id>,
        init: Vec<Id>,
        width: usize,
        kernel: Kernel,
        to: Vec<Id>,
    },
    /// Copies slices that begin at the coordinates in `indices`.
    Gather {
        from: Id,
        indices: Id,
        windows: Windows,
        to: Id,
    },
    /// Combines elements of the arrays with those of the updates, at the coordinates in `indices`.
    Scatter {
        arrays: Vec<Id>,
        indices: Id,
        updates: Vec<Id>,
        windows: Windows,
        kernel: Kernel,
        to: Vec<Id>,
    },
    If {
        condition: Id,
        branches: [Block; 2],
        to: Vec<Id>,
    },
    /// Repeats `body` while `condition` holds. The state is in the memory of the results.
    While {
        init: Vec<Id>,
        condition: Block,
        body: Block,
        to: Vec<Id>,
    },
}

impl Command {
    /// Returns the values that the command itself reads, without those that its blocks read.
    pub(crate) fn reads(&self) -> Vec<Id> {
        match self {
            Self::Constant { .. } | Self::Iota { .. } => Vec::new(),
            Self::Copy { from, .. } => vec![*from],
            Self::Compute { kernel, .. } => kernel.captured.clone(),
            Self::Move { from, starts, outside, .. } => [&[*from], &**starts, outside.as_slice()].concat(),
            Self::Insert { base, blocks, starts, .. } => {
                let blocks: Vec<Id> = blocks.iter().map(|(block, _)| *block).collect();
                [base.as_slice(), &blocks, starts].concat()
            }
            Self::Product { lhs, rhs, .. } => vec![*lhs, *rhs],
            Self::Reduce { arrays, init, kernel, .. } => [&**arrays, init, &kernel.captured].concat(),
            Self::Gather { from, indices, .. } => vec![*from, *indices],
            Self::Scatter { arrays, indices, updates, kernel, .. } => {
                [&**arrays, &[*indices], updates, &kernel.captured].concat()
            }
            Self::If { condition, .. } => vec![*condition],
            Self::While { init, .. } => init.clone(),
        }
    }

    /// Returns the values that the command writes.
    pub(crate) fn writes(&self) -> &[Id] {
        match self {
            Self::Constant { to, .. } | Self::Iota { to, .. } | Self::Copy { to, .. } => {
                std::slice::from_ref(to)
            }
            Self::Compute { to, .. } | Self::Move { to, .. } | Self::Insert { to, .. } => {
                std::slice::from_ref(to)
            }
            Self::Product { to, .. } | Self::Gather { to, .. } => std::slice::from_ref(to),
            Self::Reduce { to, .. } | Self::Scatter { to, .. } => to,
            Self::If { to, .. } | Self::While { to, .. } => to,
        }
    }

    /// Returns the blocks of the command.
    pub(crate) fn blocks(&self) -> Vec<&Block> {
        match self {
            Self::If { branches: [then, otherwise], .. } => vec![then, otherwise],
            Self::While { condition, body, .. } => vec![condition, body],
            _ => Vec::new(),
        }
    }
}
