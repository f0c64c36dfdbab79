//! Functions of the host that say how custom calls run on parts of arrays.

use crate::error::Error;
use crate::sharding::Sharding;
use pjrt_stablehlo::ir::TensorType;

/// Says how the custom calls of a target run on parts. May take long, and call back into this plugin.
pub trait CallPartitioner {
    /// What a call is on one partition.
    ///
    /// # Errors
    /// Whatever the host finds wrong with the call.
    fn partition(&self, call: &WholeCall<'_>) -> Result<PartitionedCall, Error>;

    /// How the results of a call are best split, given its operands; `None` if the host does not say. Only programs that were
    /// written for XLA's older partitioner need this: others have the attribute `sdy.sharding_rule`.
    ///
    /// # Errors
    /// Whatever the host finds wrong with the call.
    fn infer(&self, call: &WholeCall<'_>) -> Result<Option<Vec<Option<Sharding>>>, Error>;
}

/// A custom call of the program on whole arrays.
#[derive(Debug)]
pub struct WholeCall<'a> {
    /// The operands, and how they are split where they are computed; `None`: every partition has the array whole.
    pub operands: Vec<(TensorType, Option<Sharding>)>,
    /// The results, and how those who use them want them to be split.
    pub results: Vec<(TensorType, Option<Sharding>)>,
    /// The call's configuration.
    pub backend_config: &'a [u8],
    /// How many partitions there are.
    pub partitions: usize,
}

/// What a custom call is on one partition.
#[derive(Debug)]
pub struct PartitionedCall {
    /// A program in StableHLO, text or bytecode. Its `main` is on parts.
    pub program: Vec<u8>,
    /// How each operand is to be split.
    pub operands: Vec<Option<Sharding>>,
    /// How each result is split.
    pub results: Vec<Option<Sharding>>,
}
