//! The programs that hosts run. Each host has those that it can express.

/// A program.
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The tier and the name of its form among the recorded programs of `cargo pjrt needs`, which JAX made.
    pub(super) recorded: (&'static str, &'static str),
}

/// Returns a program and its recorded form.
const fn program(name: &'static str, tier: &'static str, recorded: &'static str) -> Program {
    Program { name, recorded: (tier, recorded) }
}

/// All programs, from the simplest to the largest.
pub(super) const PROGRAMS: &[Program] = &[
    program("add", "arithmetic", "add"),
    program("elementwise", "arithmetic", "axpy"),
    program("activations", "arithmetic", "activations"),
    program("dot", "arithmetic", "matmul"),
    program("reduction", "arithmetic", "reductions"),
    program("donation", "arithmetic", "add"),
    program("control_flow", "control_flow", "fori"),
    program("random", "random", "uniform"),
    program("gradient", "training", "gradient"),
    program("training", "training", "gradient"),
];
