//! Tests that span crates: the ABI, real hosts, and the corpus.

/// Tests the code of the page on programs in memory.
#[cfg(doctest)]
#[doc = include_str!("../../docs/program-ir.md")]
struct ProgramsInMemory;

/// Tests the code of the page on queues and memory.
#[cfg(doctest)]
#[doc = include_str!("../../docs/queues-and-memory.md")]
struct QueuesAndMemory;
