//! Replaces the custom calls by which programs for XLA's GSPMD partitioner enter and leave code on parts of arrays with manual
//! computations.

mod computation;
mod copy;
mod level;
mod region;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::options::Options;
use crate::rebuilt::without_functions;
use copy::Copy;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Function, Op, Operation};

/// A custom call at the border between operations on whole arrays and operations on their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Border {
    /// `SPMDFullToShardShape`: the operand is a whole array, and the result is a part of it.
    ToShard,
    /// `SPMDShardToFullShape`: the operand is a part, and the result is the whole array.
    ToFull,
}

impl Border {
    fn of(op: &Operation) -> Option<Self> {
        let Op::CustomCall(call) = &op.kind else { return None };
        let border = match &*call.call_target_name {
            "SPMDFullToShardShape" => Self::ToShard,
            "SPMDShardToFullShape" => Self::ToFull,
            _ => return None,
        };
        (op.operands.len() == 1 && op.results.len() == 1).then_some(border)
    }
}

/// Returns whether a module contains manual regions in the form of XLA's GSPMD partitioner, which
/// [`to_manual_computations`] replaces.
pub fn has_manual_regions(module: &Module) -> bool {
    module.functions().iter().any(has_borders)
}

fn has_borders(function: &Function) -> bool {
    function.body.all_ops().any(|(_, op)| Border::of(op).is_some())
}

/// Replaces the manual regions of a program for XLA's GSPMD partitioner with manual computations.
///
/// A manual region consists of the operations between custom calls `SPMDFullToShardShape`, which convert whole arrays to parts,
/// and custom calls `SPMDShardToFullShape`, which convert parts to whole arrays. JAX lowers `shard_map` to this form if it does
/// not use Shardy. [`propagate`](crate::propagate()) and [`partition`](crate::partition()) support only the equivalent
/// `sdy.manual_computation`:
///
/// * The shardings of operands are those of the `mhlo.sharding` of the operation before `SPMDFullToShardShape`, or of the
///   function's argument. Those of results are the `mhlo.sharding` of `SPMDShardToFullShape`.
/// * A sharding `{manual}` in the region makes all axes of the mesh manual. A subgroup `manual` makes those axes manual along
///   which it divides the partitions. Shardings along the other axes are left to propagation.
/// * A region in another one becomes a computation in a computation, whose manual axes are those that the outer region leaves.
/// * An array that has no equal parts is padded with zeros at the end of its dimensions, as XLA does, and the result of the
///   region is trimmed.
/// * If a region uses its own results as whole arrays, the operations that depend on them become another computation. The first
///   computation gives its parts to the second as an array with one more dimension, which is split along the manual axes.
/// * A whole array that an operation on parts uses is an operand of the region, of which each partition has the whole.
/// * Tokens enter and leave regions without custom calls: they are operands and results of the manual computations.
/// * Operations without operands, such as constants and `partition_id`, and what is computed from these alone are copied into
///   each region that uses them.
///
/// Calls of functions must be inlined first, as for [`propagate`](crate::propagate()).
///
/// ```
/// use pjrt_sharding::{Options, to_manual_computations};
///
/// let module = pjrt_stablehlo::parse(
///     r#"func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
///       %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[2]<=[2]}"}
///         : (tensor<8xf32>) -> tensor<8xf32>
///       %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"}
///         : (tensor<8xf32>) -> tensor<4xf32>
///       %2 = stablehlo.reverse %1, dims = [0] : tensor<4xf32>
///       %3 = stablehlo.custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = "{devices=[2]<=[2]}"}
///         : (tensor<4xf32>) -> tensor<8xf32>
///       return %3 : tensor<8xf32>
///     }"#,
/// )?;
/// let options = Options { num_partitions: 2, ..Options::default() };
/// let module = to_manual_computations(&module, &options)?;
/// assert_eq!(module.op_counts()["sdy.manual_computation"], 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if a part leaves its block without passing
/// `SPMDShardToFullShape`, or leaves two regions at once, or if the shardings of a region are not along the axes of one mesh; or
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the shape of a part is not that of its sharding.
pub fn to_manual_computations(module: &Module, options: &Options) -> Result<Module> {
    let mut program = without_functions(module);
    for function in module.functions() {
        let mut function = function.clone();
        if has_borders(&function) {
            function.body = Copy::of(&function, options.num_partitions)?;
        }
        program
            .add_function(function)
            .map_err(|function| Error::internal(format!("two functions are named @{}", function.name)))?;
    }
    Ok(program)
}
