//! The errors of the crate.

/// The reason why a function cannot be executed or compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The function violates a rule of the intermediate representation.
    #[error("block {block}, instruction {instruction}: {rule}")]
    Invalid {
        /// The number of the block.
        block: usize,
        /// The number of the instruction in the block; the block's end follows its last instruction.
        instruction: usize,
        /// The rule.
        rule: String,
    },
    /// This processor or system is not supported.
    #[error("machine code can be generated for Unix on x86-64 with AVX2, FMA and BMI2 only")]
    Unsupported,
    /// The code is too large, or the system refuses memory for it.
    #[error("the system refuses executable memory: {0}")]
    Memory(String),
    /// The machine code of this process occupies as much memory as it may ([`MAX_CODE_BYTES`](crate::MAX_CODE_BYTES)).
    #[error("the machine code of this process occupies the {limit} bytes that it may")]
    Full {
        /// The limit in bytes.
        limit: usize,
    },
    /// An instruction cannot be encoded.
    #[error("an instruction cannot be encoded: {0}")]
    Encoding(String),
}
