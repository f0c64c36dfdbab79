//! The executable form of a region: loads, kernels and stores over slots.

use super::chain::ChainCode;
use super::loop_nest::LoopNest;
use crate::ComputeType;
use crate::tile::Kernel;
use crate::tile::reduce::Reducer;
use std::sync::Arc;

/// The loading of an input to registers.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) input: u32,
    pub(super) size: usize,
    pub(super) offset: usize,
    /// The strides along the outer dimensions.
    pub(super) outer: Vec<isize>,
    /// The sizes of the inner dimensions. Those that the load traverses as one are merged.
    pub(super) dims: Vec<usize>,
    /// The strides along the inner dimensions.
    pub(super) inner: Vec<isize>,
    pub(super) kind: LoadKind,
    /// The slot with the pointer to the elements.
    pub(super) slot: u16,
}

/// The way in which a load's elements are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadKind {
    /// One element for the whole iteration space, read in memory.
    Once,
    /// One element for each row, read in memory.
    PerRow,
    /// Consecutive elements, read in memory.
    InPlace,
    /// Consecutive elements, read in memory from the last one to the first one.
    Reversed,
    /// Elements that are copied to a register tile first.
    Gather,
}

/// The memory that a slot of the pointer table points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// A register tile. Its offset is this number of bytes per element of a tile.
    Tile(u32),
    /// A 16-byte cell for a value that does not vary within a row, or at all.
    Cell(u32),
    /// A constant.
    Const(u32),
    /// The memory of an input (index in `loads`).
    Memory(u32),
    /// The memory of an output, or of its stand-in.
    Output(u32),
}

/// A step of a tile.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Calls a kernel on slots.
    Kernel { kernel: Kernel, dst: u16, src: [u16; 3] },
    /// Runs chain `chain`.
    Chain { chain: u16 },
    /// Copies load `load` to its register tile.
    Gather { load: u16 },
    /// Computes the coordinates along an inner dimension.
    Iota { dst: u16, dim: u16, ty: ComputeType },
    /// Computes the coordinate along an outer dimension.
    RowIota { dst: u16, dim: u16, ty: ComputeType },
    /// Repeats one element over a whole tile.
    Splat { dst: u16, src: u16, size: u8 },
    /// Copies a tile (for an output that is a plain copy).
    Copy { dst: u16, src: u16, size: u8 },
}

/// A reduction of a tile slot to one value per row.
#[derive(Clone, Debug)]
pub(super) struct Reduction {
    pub(super) reducer: Reducer,
    /// The size of a result in memory, in bytes.
    pub(super) size: usize,
    pub(super) src: u16,
    /// A register for results of short runs that must be encoded.
    pub(super) tile: u16,
    pub(super) output: u32,
    /// The kernel that converts the register value to the representation in memory.
    pub(super) encode: Option<Kernel>,
}

/// A store to an array with the shape of the region.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) output: u32,
    pub(super) size: usize,
    pub(super) slot: u16,
    /// The loads that must not have the address of this output, because they are read when or after it is
    /// written.
    pub(super) late_loads: Vec<u16>,
    /// The offset of the stand-in, in bytes per element of a tile.
    pub(super) stand_in: u32,
}

/// The executable form of a region.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) loops: LoopNest,
    pub(super) loads: Vec<Load>,
    pub(super) slots: Vec<Slot>,
    pub(super) constants: Vec<u128>,
    pub(super) chains: Vec<Arc<ChainCode>>,
    /// The code that runs once.
    pub(super) once_code: Vec<Step>,
    /// The code that runs at the start of each row.
    pub(super) row_code: Vec<Step>,
    /// The code that runs for each tile.
    pub(super) tile_code: Vec<Step>,
    pub(super) stores: Vec<Store>,
    pub(super) reductions: Vec<Reduction>,
    pub(super) cells: u32,
    /// The number of register bytes per element of a tile.
    pub(super) tile_bytes: u32,
    pub(super) ns_per_tile: f64,
}

impl Program {
    /// Creates a program without steps.
    pub(super) fn new(loops: LoopNest) -> Self {
        Self {
            loops,
            loads: vec![],
            slots: vec![],
            constants: vec![],
            chains: vec![],
            once_code: vec![],
            row_code: vec![],
            tile_code: vec![],
            stores: vec![],
            reductions: vec![],
            cells: 0,
            tile_bytes: 0,
            ns_per_tile: 0.0,
        }
    }

    /// Returns the estimated time of a run on one thread with all arrays in cache, in nanoseconds.
    pub(super) fn estimated_ns(&self) -> f64 {
        self.ns_per_tile * self.loops.tiles() as f64
    }
}
