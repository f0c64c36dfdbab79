//! Runs plans.
//!
//! A run is synchronous and happens on the calling thread, which kernels may have helped by the pool. Each device of a
//! run is a lane with its own frame; lanes take turns, each going on until it meets the others in a collective. So no
//! thread ever waits for another in one. In communication with the host the thread waits for the host.

mod collective;
mod foreign;
mod generic;
mod host;
mod kernels;
mod lane;
mod manual;
mod process;

pub use foreign::ForeignHandlers;
pub use host::HostTransfer;
pub use process::Process;

use crate::plan::{Plan, Program};
use crate::storage::{Allocator, Array, OutOfMemory};
use lane::Lane;
use refcpu_kernels::Pool;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What runs share: threads and memory.
pub struct Runtime {
    /// The threads that kernels run on.
    pub pool: Pool,
    /// Where arrays and arenas come from.
    pub allocator: Allocator,
    /// Counts the random operations that have no seed of their own.
    pub(crate) random: AtomicU64,
}

impl Runtime {
    /// A runtime on these threads and this memory.
    pub fn new(pool: Pool, allocator: Allocator) -> Self {
        Self { pool, allocator, random: AtomicU64::new(0x5eed) }
    }
}

/// An argument of a run.
#[derive(Clone, Debug)]
pub struct Input {
    /// The array; a window is cut out first.
    pub array: Array,
    /// True if its memory may become that of a result, should this be its only holder.
    pub donatable: bool,
}

/// How to run.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// Ends the run soon after this becomes true.
    pub cancel: Option<&'a AtomicBool>,
    /// The host, for programs that communicate with it.
    pub host: Option<&'a dyn HostTransfer>,
    /// The handlers of the program's custom calls.
    pub foreign: Option<&'a dyn ForeignHandlers>,
}

/// What kind of failure it is; PJRT's error codes follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunErrorKind {
    /// The arguments do not fit the program.
    InvalidArgument,
    /// There is not enough memory.
    ResourceExhausted,
    /// The run was asked to end.
    Cancelled,
    /// Devices did not meet in the same collective, or the program needs a host and there is none.
    FailedPrecondition,
    /// The program does what runs do not.
    Unimplemented,
    /// The host failed in communication with the program.
    Host,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    /// What kind of failure it is.
    pub kind: RunErrorKind,
    /// What happened.
    pub message: String,
}

impl RunError {
    /// A failure.
    pub fn new(kind: RunErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    fn cancelled() -> Self {
        Self::new(RunErrorKind::Cancelled, "the run was cancelled")
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(RunErrorKind::InvalidArgument, message)
    }
}

impl From<OutOfMemory> for RunError {
    fn from(e: OutOfMemory) -> Self {
        Self::new(RunErrorKind::ResourceExhausted, e.to_string())
    }
}

type Result<T, E = RunError> = std::result::Result<T, E>;

/// What a run needs besides its arrays.
struct Cx<'a> {
    runtime: &'a Runtime,
    cancel: Option<&'a AtomicBool>,
    host: Option<&'a dyn HostTransfer>,
    foreign: Option<&'a dyn ForeignHandlers>,
}

/// Runs a plan: one list of arguments for each lane of the plan ([`Plan::lanes`]), one list of results for each.
///
/// Arguments are taken; a donatable one that nobody else holds may give its memory to a result. Results are never in
/// memory that another run may write to.
///
/// # Errors
/// If the arguments do not fit the program, or memory does not suffice.
///
/// # Panics
/// On a mistake in the plan or in a kernel.
pub fn run(
    plan: &Plan,
    runtime: &Runtime,
    inputs: Vec<Vec<Input>>,
    options: &RunOptions<'_>,
) -> Result<Vec<Vec<Array>>> {
    if inputs.len() != plan.lanes() {
        return Err(RunError::invalid(format!(
            "arguments for {} devices, the program has {}",
            inputs.len(),
            plan.lanes()
        )));
    }
    let cx = Cx { runtime, cancel: options.cancel, host: options.host, foreign: options.foreign };
    let partitions = (plan.lanes() / plan.num_replicas.max(1)).max(1);
    let process = |lane: usize| Process { replica: lane / partitions, partition: lane % partitions };
    run_program(&plan.program, inputs, &process, &cx)
}

/// Runs a program on as many lanes as there are lists of arguments; `process` gives the device of a lane.
fn run_program(
    program: &Program,
    inputs: Vec<Vec<Input>>,
    process: &dyn Fn(usize) -> Process,
    cx: &Cx<'_>,
) -> Result<Vec<Vec<Array>>> {
    let mut lanes = Vec::with_capacity(inputs.len());
    for (i, inputs) in inputs.into_iter().enumerate() {
        lanes.push(Lane::start(program, inputs, process(i), cx)?);
    }
    collective::drive(program, &mut lanes, cx)?;
    lanes.into_iter().map(|lane| lane.finish(program, cx)).collect()
}
