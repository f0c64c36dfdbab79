//! Runs plans.
//!
//! A run is synchronous. It uses the calling thread, and kernels use the threads of the pool in addition. Each device of a run
//! is a lane with its own frame. The lanes run in turn: each runs until it reaches a collective, and continues after all
//! members of its group have reached it. No thread therefore waits for another in a collective. Two kinds of programs block
//! the thread: those that communicate with the host, and those of which each device is run by itself, which wait for the runs
//! on the other devices ([`Rendezvous`]).

mod across;
mod collective;
mod foreign;
mod generic;
mod groups;
mod host;
mod kernels;
mod lane;
mod manual;
mod nodes;
mod process;
mod rendezvous;
mod row_blocks;

pub use foreign::ForeignHandlers;
pub use host::HostTransfer;
pub use nodes::{Bytes, Nodes, Transfer, Transport};
pub use process::Process;
pub use rendezvous::{Peers, Rendezvous};

use crate::plan::{Plan, Program};
use crate::storage::{Allocator, Array, OutOfMemory};
use lane::Lane;
use nodes::Places;
use refcpu_kernels::Pool;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The resources that runs share: threads and memory.
pub struct Runtime {
    /// The threads that kernels use.
    pub pool: Pool,
    /// The allocator of arrays and arenas.
    pub allocator: Allocator,
    /// Seeds the random operations that have no seed.
    pub(crate) random: AtomicU64,
}

impl Runtime {
    /// Creates a runtime with these threads and this allocator.
    pub fn new(pool: Pool, allocator: Allocator) -> Self {
        Self { pool, allocator, random: AtomicU64::new(0x5eed) }
    }
}

/// An argument of a run.
#[derive(Clone, Debug)]
pub struct Input {
    /// The array. A window of another array is copied to a dense array first.
    pub array: Array,
    /// `true` if a result may use the memory of the array, provided that nothing else holds the array.
    pub donatable: bool,
}

/// The options of a run.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// A flag that cancels the run when it becomes `true`. The run checks the flag at every iteration of a loop.
    pub cancel: Option<&'a AtomicBool>,
    /// The host, for programs that send data to it or receive data from it.
    pub host: Option<&'a dyn HostTransfer>,
    /// The handlers of the program's custom calls.
    pub foreign: Option<&'a dyn ForeignHandlers>,
    /// The lane to run; by default, all lanes run.
    pub lane: Option<usize>,
    /// The runs on the other devices, if the program of a single lane communicates with them.
    pub peers: Option<&'a Peers>,
    /// The nodes, if the lanes of the program run on several; this run then has the lanes of its own node.
    pub nodes: Option<Nodes<'a>>,
}

/// The kinds of [`RunError`], which determine PJRT's error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunErrorKind {
    /// The arguments do not fit the program.
    InvalidArgument,
    /// There is not enough memory.
    ResourceExhausted,
    /// The run was cancelled.
    Cancelled,
    /// The run waited too long for the runs on other devices.
    DeadlineExceeded,
    /// The devices did not reach the same collective, or the program needs a host or a handler and there is none.
    FailedPrecondition,
    /// Another node has failed.
    Unavailable,
    /// The program uses a feature that the executor does not implement.
    Unimplemented,
    /// The host or a handler returned an error.
    Host,
    /// The executor contains a bug.
    Internal,
}

/// An error in running a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    /// The kind of the error.
    pub kind: RunErrorKind,
    /// A description of the error.
    pub message: String,
}

impl RunError {
    /// Creates an error.
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

/// The context of a run, without its arrays.
struct Cx<'a> {
    runtime: &'a Runtime,
    cancel: Option<&'a AtomicBool>,
    host: Option<&'a dyn HostTransfer>,
    foreign: Option<&'a dyn ForeignHandlers>,
    peers: Option<&'a Peers>,
    places: Option<&'a Places<'a>>,
}

/// Runs a plan. `inputs` contains one list of arguments for each lane of the plan ([`Plan::lanes`]), or for the lanes that the
/// options select; the returned value contains one list of results for each.
///
/// The run takes ownership of the arguments. A result may use the memory of an argument that is donatable and has no other
/// holder. No other run writes to the memory of results.
///
/// # Errors
/// Returns an error if the arguments do not fit the program, if there is not enough memory, if the run is canceled, if the
/// host or a handler fails, or if the runs on the other devices of a collective fail or do not arrive in time.
///
/// # Panics
/// Panics if the plan or a kernel contains a bug.
pub fn run(
    plan: &Plan,
    runtime: &Runtime,
    inputs: Vec<Vec<Input>>,
    options: &RunOptions<'_>,
) -> Result<Vec<Vec<Array>>> {
    let places = options.nodes.map(|nodes| Places::new(plan, nodes)).transpose()?;
    let expected = match &places {
        Some(places) => places.own.len(),
        None if options.lane.is_some() => 1,
        None => plan.lanes(),
    };
    let can_run_alone = || plan.lanes_are_devices() && (options.peers.is_some() || !plan.lanes_communicate());
    if inputs.len() != expected || options.lane.is_some() && !can_run_alone() {
        return Err(RunError::invalid(format!(
            "the arguments are for {} devices, but the program runs on {} at once",
            inputs.len(),
            plan.lanes()
        )));
    }
    let (host, foreign) = (options.host, options.foreign);
    let peers = options.lane.and(options.peers);
    let cx = Cx { runtime, cancel: options.cancel, host, foreign, peers, places: places.as_ref() };
    let first = options.lane.unwrap_or(0);
    let lane = |i: usize| places.as_ref().map_or(first + i, |places| places.own[i]);
    run_program(&plan.program, inputs, &|i| Process::of_lane(plan, lane(i)), &cx)
}

/// Runs a program on one lane for each list of arguments. `ids` returns the replica and partition of a lane.
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
    match (cx.places, cx.peers, &mut lanes[..]) {
        (Some(places), _, lanes) => across::drive(program, lanes, places, cx)?,
        (None, Some(peers), [lane]) => collective::drive_with_peers(program, lane, peers, cx)?,
        (None, _, lanes) => collective::drive(program, lanes, cx)?,
    }
    lanes.into_iter().map(|lane| lane.finish(program, cx)).collect()
}
