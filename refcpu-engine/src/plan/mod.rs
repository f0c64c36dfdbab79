//! The compiled form of a program: a list of steps over numbered slots.

mod check;
mod display;
mod kernel;
mod row_blocks;
mod stats;

pub use kernel::{Kernel, SmallLoop};
pub use row_blocks::RowBlocks;
pub use stats::Stats;

use crate::graph::{Collective, Constant, Graph, ManualSpec, Shape};
use crate::storage::{Allocator, Array, ForeignBytes, Frame, OutOfMemory, View};
use pjrt_sharding::Sharding;
use pjrt_stablehlo::ir::Location;
use std::sync::{Arc, Mutex, PoisonError};

/// A compiled program. It is immutable, and any number of runs may use it at the same time.
pub struct Plan {
    /// The program of one lane.
    pub program: Program,
    /// The parameters of the program.
    pub parameters: Vec<Parameter>,
    /// The results of the program.
    pub results: Vec<ResultInfo>,
    /// The number of replicas in a run.
    pub num_replicas: usize,
    /// The number of partitions that each replica is split into.
    pub num_partitions: usize,
    /// `true` if the program runs on whole arrays, so that the caller splits and assembles them.
    pub global_view: bool,
    /// The graph that the program was compiled from.
    pub(crate) graph: Arc<Graph>,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The type.
    pub shape: Shape,
    /// The results that may use the memory of the argument.
    pub donation: Donation,
    /// The sharding; `None` if every partition holds the whole array.
    pub sharding: Option<Sharding>,
}

/// The properties of parameters and results other than their types.
pub(crate) struct Interface {
    pub(crate) donations: Vec<Donation>,
    pub(crate) parameters: Vec<Option<Sharding>>,
    pub(crate) results: Vec<Option<Sharding>>,
}

/// The donation of a parameter: whether a result may use its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Donation {
    /// No result may use the memory.
    None,
    /// Any result may use the memory.
    Any,
    /// Only the result with this index may use the memory (`tf.aliasing_output`).
    Result(usize),
}

/// A result.
#[derive(Clone, Debug)]
pub struct ResultInfo {
    /// The type.
    pub shape: Shape,
    /// The sharding; `None` if every partition receives the whole array.
    pub sharding: Option<Sharding>,
}

/// The program of one device: a list of steps with jumps.
#[derive(Default)]
pub struct Program {
    /// The memory of each slot at the start of a run.
    pub slots: Vec<Slot>,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The location of each step in the source program.
    pub locations: Vec<Location>,
    /// The size of the arena in bytes.
    pub arena: usize,
    /// The constants.
    pub constants: Vec<Constant>,
    /// The types of the parameters.
    pub parameters: Vec<Shape>,
    /// The source of each result.
    pub results: Vec<ResultSource>,
    /// The types of the results.
    pub result_shapes: Vec<Shape>,
    /// For each result, the parameter whose memory it may use.
    pub donors: Vec<Option<usize>>,
    /// The constants as arrays, which the first run creates.
    pub(crate) constant_arrays: std::sync::OnceLock<Vec<Array>>,
    /// Frames of past runs, for reuse.
    pub(crate) frames: FramePool,
}

/// The memory of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The size in bytes.
    pub bytes: usize,
    /// The location of the memory.
    pub home: Home,
}

/// The location of a slot's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The parameter with this index.
    Parameter(u32),
    /// The constant with this index.
    Constant(u32),
    /// The result with this index.
    Result(u32),
    /// The arena, at this offset in bytes.
    Arena(usize),
}

/// The source of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultSource {
    /// Steps write the result to a slot.
    Computed {
        /// The slot.
        slot: u32,
    },
    /// The parameter with this index.
    Parameter(u32),
    /// The constant with this index.
    Constant(u32),
    /// The earlier result with this index.
    Same(u32),
}

/// A step of a program.
#[derive(Debug)]
pub enum Step {
    /// Runs a kernel.
    Run(Box<Call>),
    /// Runs kernels on blocks of rows.
    RowBlocks(Box<RowBlocks>),
    /// Continues at another step.
    Jump(usize),
    /// Continues at another step if a predicate is false.
    JumpIfNot {
        /// The predicate.
        predicate: View,
        /// The index of the step.
        to: usize,
    },
    /// Continues at one of several steps, which is the last if the index is out of range.
    Branch {
        /// The index (i32).
        index: View,
        /// The indices of the steps.
        to: Vec<usize>,
    },
    /// Exchanges the memory of two slots.
    Swap(u32, u32),
    /// Moves the contents of a slot back to its own memory after swaps.
    Settle(u32),
    /// Runs a collective together with other devices.
    Collective(Box<CollectiveStep>),
    /// Runs a program on parts of arrays.
    Manual(Box<ManualStep>),
    /// Sends an array to the host.
    Send {
        /// The channel, which identifies the callback of the host.
        channel: i64,
        /// The array.
        read: View,
    },
    /// Receives an array from the host.
    Receive {
        /// The channel, which identifies the callback of the host.
        channel: i64,
        /// The array.
        write: View,
    },
}

/// A kernel with its arrays.
#[derive(Debug)]
pub struct Call {
    /// The kernel.
    pub kernel: Kernel,
    /// The operands.
    pub reads: Vec<View>,
    /// The results.
    pub writes: Vec<View>,
}

/// The number of elements of a block of [`CollectiveStep::combine_block`].
pub const REDUCTION_BLOCK: usize = 16 << 10;

/// A collective with its arrays.
#[derive(Debug)]
pub struct CollectiveStep {
    /// The collective.
    pub collective: Collective,
    /// The region that combines two operands, for a reduction.
    pub combine: Option<Box<refcpu_kernels::region::Region>>,
    /// The same for blocks of [`REDUCTION_BLOCK`] elements, of which reductions of parts of the operands consist.
    pub combine_block: Option<Box<refcpu_kernels::region::Region>>,
    /// The operand.
    pub read: View,
    /// The result.
    pub write: View,
}

/// A manual computation with its arrays.
pub struct ManualStep {
    /// The split of operands and results.
    pub spec: ManualSpec,
    /// The program that runs on the parts.
    pub program: Program,
    /// The operands.
    pub reads: Vec<View>,
    /// The results.
    pub writes: Vec<View>,
}

impl std::fmt::Debug for ManualStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Manual {:?} reads {:?} writes {:?}", self.spec, self.reads, self.writes)
    }
}

impl Plan {
    /// Returns the number of lists of arguments that a run takes: one for each replica if the program runs on whole arrays,
    /// otherwise one for each partition of each replica.
    pub fn lanes(&self) -> usize {
        if self.global_view { self.num_replicas } else { self.num_replicas * self.num_partitions }
    }

    /// Returns whether a run communicates with the host or calls its handlers.
    pub fn uses_host(&self) -> bool {
        self.graph.uses_host()
    }

    /// Returns whether each lane runs on one device. Otherwise, the partitions of a replica share a lane.
    pub fn lanes_are_devices(&self) -> bool {
        !self.global_view || self.num_partitions == 1
    }

    /// Returns whether the lanes of a run communicate with each other.
    pub fn lanes_communicate(&self) -> bool {
        self.graph.communicates()
    }
}

impl Program {
    /// Returns the largest array that a kernel writes, with the name and source location of the kernel, for error messages
    /// about memory.
    pub fn largest_write(&self) -> Option<(&View, String, &Location)> {
        let writes = self.steps.iter().zip(&self.locations).filter_map(|(step, location)| match step {
            Step::Run(call) => {
                Some((call.writes.iter().max_by_key(|view| view.byte_len())?, &call.kernel, location))
            }
            _ => None,
        });
        let (view, kernel, location) = writes.max_by_key(|(view, ..)| view.byte_len())?;
        Some((view, display::name(kernel), location))
    }

    /// Returns the constants as arrays.
    pub(crate) fn constant_arrays(&self, allocator: &Allocator) -> Result<&[Array], OutOfMemory> {
        if let Some(arrays) = self.constant_arrays.get() {
            return Ok(arrays);
        }
        let arrays = self
            .constants
            .iter()
            .map(|c| {
                let memory = Box::new(ConstantBytes(c.clone()));
                let shared =
                    if c.splat { None } else { Array::foreign(memory, c.shape.dtype, &c.shape.dims).ok() };
                shared.map_or_else(
                    || Array::from_bytes(allocator, c.shape.dtype, &c.shape.dims, &c.to_dense()),
                    Ok,
                )
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(self.constant_arrays.get_or_init(|| arrays))
    }
}

/// The bytes of a constant, as they are stored in the program.
struct ConstantBytes(Constant);

impl ForeignBytes for ConstantBytes {
    fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }
}

/// Frames of finished runs, for reuse.
#[derive(Default)]
pub(crate) struct FramePool(Mutex<Vec<Frame>>);

/// The maximum number of frames that are kept for each program.
const FRAMES_KEPT: usize = 16;

impl FramePool {
    pub(crate) fn take(&self) -> Frame {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(crate) fn give(&self, mut frame: Frame) {
        frame.end();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < FRAMES_KEPT {
            kept.push(frame);
        }
    }
}
