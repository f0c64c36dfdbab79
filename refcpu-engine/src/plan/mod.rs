//! The compiled form of a program: a flat list of instructions over numbered slots.

mod check;
mod display;
mod kernel;
mod stats;

pub use kernel::{Kernel, SmallLoop};
pub use stats::Stats;

use crate::graph::{Collective, Constant, Graph, ManualSpec, Shape};
use crate::storage::{Allocator, Array, ForeignBytes, Frame, OutOfMemory, View};
use pjrt_sharding::Sharding;
use pjrt_stablehlo::ir::Location;
use std::sync::{Arc, Mutex, PoisonError};

/// A compiled program. Immutable; any number of runs may use it at once.
pub struct Plan {
    /// What runs.
    pub program: Program,
    /// The parameters of the program.
    pub parameters: Vec<Parameter>,
    /// The results of the program.
    pub results: Vec<ResultInfo>,
    /// Copies of the program that a run has.
    pub num_replicas: usize,
    /// Parts that each copy is split into.
    pub num_partitions: usize,
    /// True if the program is written for whole arrays, and partitions are the caller's matter.
    pub global_view: bool,
    /// What the program was compiled from.
    pub(crate) graph: Arc<Graph>,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its type.
    pub shape: Shape,
    /// Whether its memory may become that of a result.
    pub donation: Donation,
    /// How it is split among partitions; None: everyone has it whole.
    pub sharding: Option<Sharding>,
}

/// What a plan says about its parameters and results besides their types.
pub(crate) struct Interface {
    pub(crate) donations: Vec<Donation>,
    pub(crate) parameters: Vec<Option<Sharding>>,
    pub(crate) results: Vec<Option<Sharding>>,
}

/// Whether a parameter's memory may be re-used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Donation {
    /// No.
    None,
    /// For any result, or none.
    Any,
    /// For this result (`tf.aliasing_output`).
    Result(usize),
}

/// A result.
#[derive(Clone, Debug)]
pub struct ResultInfo {
    /// Its type.
    pub shape: Shape,
    /// How it is split among partitions; None: everyone gets it whole.
    pub sharding: Option<Sharding>,
}

/// Straight-line code with jumps for one device.
#[derive(Default)]
pub struct Program {
    /// Where the memory of each slot is at the start of a run.
    pub slots: Vec<Slot>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// Where each step comes from in the source program.
    pub locations: Vec<Location>,
    /// Bytes of the arena.
    pub arena: usize,
    /// Constant arrays.
    pub constants: Vec<Constant>,
    /// Types of the parameters.
    pub parameters: Vec<Shape>,
    /// Where results come from.
    pub results: Vec<ResultSource>,
    /// Types of the results.
    pub result_shapes: Vec<Shape>,
    /// For each result, the parameter whose memory it may take.
    pub donors: Vec<Option<usize>>,
    /// Constants as arrays, made at the first run.
    pub(crate) constant_arrays: std::sync::OnceLock<Vec<Array>>,
    /// Frames of past runs.
    pub(crate) frames: FramePool,
}

/// The memory of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Bytes.
    pub bytes: usize,
    /// Where they are.
    pub home: Home,
}

/// Where memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// A parameter.
    Parameter(u32),
    /// A constant.
    Constant(u32),
    /// A result.
    Result(u32),
    /// In the arena, at this byte.
    Arena(usize),
}

/// Where a result comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultSource {
    /// Steps write it to the slot whose home it is.
    Computed {
        /// The slot.
        slot: u32,
    },
    /// It is a parameter.
    Parameter(u32),
    /// It is a constant.
    Constant(u32),
    /// It is the same as an earlier result.
    Same(u32),
}

/// A step of a program.
#[derive(Debug)]
pub enum Step {
    /// Runs a kernel.
    Run(Box<Call>),
    /// Goes on elsewhere.
    Jump(usize),
    /// Goes on elsewhere if a truth value is false.
    JumpIfNot {
        /// The truth value.
        predicate: View,
        /// Where to.
        to: usize,
    },
    /// Goes on at one of several places; the last if the index is out of range.
    Branch {
        /// The index (i32).
        index: View,
        /// The places.
        to: Vec<usize>,
    },
    /// Exchanges the memory of two slots.
    Swap(u32, u32),
    /// Brings the contents of a slot back to its own memory, after swaps.
    Settle(u32),
    /// All devices meet.
    Collective(Box<CollectiveStep>),
    /// Runs a program on the parts of arrays.
    Manual(Box<ManualStep>),
    /// Sends an array to the host.
    Send {
        /// The number by which the host knows what to do with it.
        channel: i64,
        /// The array.
        read: View,
    },
    /// Receives an array from the host.
    Receive {
        /// The number by which the host knows what to send.
        channel: i64,
        /// The array.
        write: View,
    },
}

/// A kernel and its arrays.
#[derive(Debug)]
pub struct Call {
    /// The kernel.
    pub kernel: Kernel,
    /// Operands.
    pub reads: Vec<View>,
    /// Results.
    pub writes: Vec<View>,
}

/// A collective operation and its arrays.
#[derive(Debug)]
pub struct CollectiveStep {
    /// The operation.
    pub collective: Collective,
    /// For a reduction: combines two operands.
    pub combine: Option<Box<refcpu_kernels::region::Region>>,
    /// Operand.
    pub read: View,
    /// Result.
    pub write: View,
}

/// A manual computation and its arrays.
pub struct ManualStep {
    /// How operands are cut and results joined.
    pub spec: ManualSpec,
    /// What runs on the parts.
    pub program: Program,
    /// Operands.
    pub reads: Vec<View>,
    /// Results.
    pub writes: Vec<View>,
}

impl std::fmt::Debug for ManualStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Manual {:?} reads {:?} writes {:?}", self.spec, self.reads, self.writes)
    }
}

impl Plan {
    /// Lists of arguments that a run takes: one for each replica, and for each partition of it unless the program is in
    /// the global view, where a replica is one lane on whole arrays.
    pub fn lanes(&self) -> usize {
        if self.global_view { self.num_replicas } else { self.num_replicas * self.num_partitions }
    }

    /// True if a run communicates with the host.
    pub fn uses_host(&self) -> bool {
        self.graph.uses_host()
    }

    /// Returns true if the lanes of a run communicate with each other, or share arrays as the partitions of a program in the
    /// global view do, so that none can run alone.
    pub fn lanes_communicate(&self) -> bool {
        self.graph.communicates() || self.global_view && self.num_partitions > 1
    }
}

impl Program {
    /// For messages about memory: the largest array that a kernel writes, its kernel, and where that comes from.
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

    /// The constants as arrays.
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

/// A constant's bytes as they lie in the program.
struct ConstantBytes(Constant);

impl ForeignBytes for ConstantBytes {
    fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }
}

/// Frames that finished runs have left.
#[derive(Default)]
pub(crate) struct FramePool(Mutex<Vec<Frame>>);

/// Frames kept for each program.
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
