//! The choice of the random sequences of calls.

/// The seed and the number of the random sequences of calls that the checks under `random/` make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequences {
    /// The seed of the first sequence. Those of the others follow it.
    pub seed: u64,
    /// The number of sequences of each check, or `None` for a number that takes a short time.
    pub rounds: Option<u64>,
}

impl Default for Sequences {
    fn default() -> Self {
        Self { seed: 1, rounds: None }
    }
}
