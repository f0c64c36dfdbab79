//! Partitioners of custom calls, which the host supplies.

use crate::error::Error;
use crate::sharding::Sharding;
use pjrt_stablehlo::ir::TensorType;

/// Partitions the custom calls of one target. [`Options::find_partitioner`](crate::Options::find_partitioner) returns it for a
/// target.
///
/// The methods may run for a long time, and may call back into the plugin.
///
/// ```
/// use pjrt_sharding::{CallPartitioner, Error, Options, PartitionedCall, Sharding, WholeCall, partition_calls};
/// use std::sync::Arc;
///
/// /// Partitions a call that doubles its operand: each partition doubles its part.
/// struct Double;
///
/// impl CallPartitioner for Double {
///     fn partition(&self, call: &WholeCall<'_>) -> Result<PartitionedCall, Error> {
///         let (ty, sharding) = &call.operands[0];
///         let parts = |dim: usize| sharding.as_ref().map_or(1, |sharding| sharding.parts[dim] as i64);
///         let dims: Vec<i64> = ty.dims().iter().enumerate().map(|(dim, size)| size / parts(dim)).collect();
///         let part = ty.with_dims(dims);
///         let program = format!(
///             "func.func @main(%x: {part}) -> {part} {{ %0 = stablehlo.add %x, %x : {part}
///              return %0 : {part} }}"
///         );
///         let shardings = vec![sharding.clone()];
///         Ok(PartitionedCall { program: program.into(), operands: shardings.clone(), results: shardings })
///     }
///
///     fn infer(&self, _: &WholeCall<'_>) -> Result<Option<Vec<Option<Sharding>>>, Error> {
///         Ok(None)
///     }
/// }
///
/// let options = Options {
///     num_partitions: 2,
///     find_partitioner: |target| if target == "double" { Some(Arc::new(Double)) } else { None },
///     ..Options::default()
/// };
/// let module = pjrt_stablehlo::parse(
///     r#"sdy.mesh @mesh = <["x"=2]>
///     func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
///       %0 = stablehlo.custom_call @double(%a) : (tensor<8xf32>) -> tensor<8xf32>
///       return %0 : tensor<8xf32>
///     }"#,
/// )?;
/// let program = partition_calls(&module, &options)?;
/// assert_eq!(program.op_counts()["sdy.manual_computation"], 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait CallPartitioner {
    /// Returns the program of a call on one partition, and the shardings that it needs.
    ///
    /// # Errors
    /// Returns the error of the host. [`partition_calls`](crate::partition_calls) adds the operation and its location.
    fn partition(&self, call: &WholeCall<'_>) -> Result<PartitionedCall, Error>;

    /// Returns the shardings of a call's results, given its operands; `None` if the host states none. Only programs for XLA's
    /// GSPMD partitioner need this; programs for Shardy have the attribute `sdy.sharding_rule`.
    ///
    /// # Errors
    /// Returns the error of the host.
    fn infer(&self, call: &WholeCall<'_>) -> Result<Option<Vec<Option<Sharding>>>, Error>;
}

/// A custom call on whole arrays, as a [`CallPartitioner`] receives it.
#[derive(Debug)]
pub struct WholeCall<'a> {
    /// The type of each operand on whole arrays, and the sharding that it has where it is computed; `None` if every partition
    /// holds the whole array.
    pub operands: Vec<(TensorType, Option<Sharding>)>,
    /// The type of each result on whole arrays, and the sharding that its users need; `None` if they need the whole array.
    pub results: Vec<(TensorType, Option<Sharding>)>,
    /// The `backend_config` of the call.
    pub backend_config: &'a [u8],
    /// The number of partitions.
    pub partitions: usize,
}

/// The program of a custom call on one partition, which a [`CallPartitioner`] returns.
#[derive(Debug)]
pub struct PartitionedCall {
    /// A StableHLO program as text or bytecode. The parameters and results of its `main` are parts of the arrays.
    pub program: Vec<u8>,
    /// The sharding that the program needs for each operand; `None` if it needs the whole array.
    pub operands: Vec<Option<Sharding>>,
    /// The sharding of each result; `None` if the program returns the whole array.
    pub results: Vec<Option<Sharding>>,
}
