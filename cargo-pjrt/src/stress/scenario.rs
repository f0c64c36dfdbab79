//! The scenarios.

/// A part of the stress test, as `--only` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Threads that upload, execute, read, donate, copy and destroy concurrently.
    Threads,
    /// Memory held over many rounds.
    Memory,
    /// Hosts that end while executions are in flight.
    Ending,
}

/// A scenario: its part, its name, and the number of processes that run it.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) part: Part,
    pub(super) name: &'static str,
    pub(super) times: u64,
}

/// The scenario in which the parent kills the child.
pub(super) const KILLED: &str = "ending/killed";
/// The scenario that runs after the parent killed a child.
pub(super) const AFTER_KILLED: &str = "ending/after_killed";

/// All scenarios, in the order in which they run.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { part: Part::Threads, name: "threads", times: 1 },
    Scenario { part: Part::Memory, name: "memory/transfers", times: 1 },
    Scenario { part: Part::Memory, name: "memory/executions", times: 1 },
    Scenario { part: Part::Memory, name: "memory/donations", times: 1 },
    Scenario { part: Part::Memory, name: "memory/copies", times: 1 },
    Scenario { part: Part::Memory, name: "memory/errors", times: 1 },
    Scenario { part: Part::Memory, name: "memory/programs", times: 1 },
    Scenario { part: Part::Ending, name: "ending/main_returns", times: 3 },
    Scenario { part: Part::Ending, name: "ending/main_returns_without_destroying", times: 3 },
    Scenario { part: Part::Ending, name: "ending/client_destroyed_first", times: 3 },
    Scenario { part: Part::Ending, name: "ending/exit_on_another_thread", times: 3 },
    Scenario { part: Part::Ending, name: KILLED, times: 3 },
    Scenario { part: Part::Ending, name: AFTER_KILLED, times: 1 },
];
