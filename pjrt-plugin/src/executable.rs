//! Compiled programs.

use crate::attributes::AttributeValue;
use crate::error::Result;
use crate::program::Program;
use crate::signature::Signature;
use crate::stats::CompiledMemoryStats;

/// A compiled program (`PJRT_Executable`). It is independent of clients and devices, so it can be serialized and loaded by
/// another client.
///
/// ```
/// use pjrt_plugin::{
///     ArraySpec, AttributeValue, CompiledMemoryStats, ElementType, Memory, PjrtExecutable, Program, ProgramFormat, Result,
///     Signature,
/// };
///
/// /// A program that adds an array, which is in host memory, to an array on the device, which is donated.
/// struct Add {
///     signature: Signature,
///     code: Vec<u8>,
/// }
///
/// impl Add {
///     fn new(size: i64) -> Self {
///         let array = ArraySpec::new(ElementType::F32, [size]);
///         let on_host = array.clone().with_memory_kind(Memory::PINNED_HOST);
///         let mut signature = Signature::new("add", [array.clone(), on_host], [array]);
///         signature.donated.push(0);
///         Self { signature, code: vec![0x90] }
///     }
///
///     fn size(&self) -> i64 {
///         self.signature.outputs[0].dims()[0]
///     }
/// }
///
/// impl PjrtExecutable for Add {
///     fn signature(&self) -> &Signature {
///         &self.signature
///     }
///
///     fn num_replicas(&self) -> usize {
///         1
///     }
///
///     fn num_partitions(&self) -> usize {
///         1
///     }
///
///     fn serialize(&self) -> Result<Option<Vec<u8>>> {
///         Ok(Some(self.code.clone()))
///     }
///
///     fn fingerprint(&self) -> Option<String> {
///         Some(format!("add {}", self.size()))
///     }
///
///     fn optimized_program(&self) -> Option<Program> {
///         Some(Program::new(ProgramFormat::Mlir, *b"module {}"))
///     }
///
///     fn cost_analysis(&self) -> Vec<(String, AttributeValue)> {
///         vec![("flops".to_owned(), AttributeValue::Float(self.size() as f32))]
///     }
///
///     fn memory_stats(&self) -> Option<CompiledMemoryStats> {
///         Some(CompiledMemoryStats::of_arrays(&self.signature, 0, ArraySpec::dense_size))
///     }
///
///     fn generated_code_size_in_bytes(&self) -> i64 {
///         self.code.len() as i64
///     }
/// }
///
/// let add = Add::new(8);
/// assert_eq!(add.cost_analysis()[0].1, AttributeValue::Float(8.0));
/// assert_eq!(add.memory_stats().unwrap().alias_size, 32);
/// ```
pub trait PjrtExecutable: Send + Sync + 'static {
    /// Returns the name of the program and the types of its arrays. The SDK calls it once.
    fn signature(&self) -> &Signature;

    /// Returns the number of replicas that run the program. The default returns 1. If it is not the
    /// [number of the compile options](crate::CompileOptions::num_replicas), the SDK returns UNIMPLEMENTED to the host.
    fn num_replicas(&self) -> usize {
        1
    }

    /// Returns the number of partitions of each replica. The default returns 1. If it is not the
    /// [number of the compile options](crate::CompileOptions::num_partitions), the SDK returns UNIMPLEMENTED to the host.
    fn num_partitions(&self) -> usize {
        1
    }

    /// Returns `true` if the devices of a launch communicate, for example by collective operations, so that no device can run
    /// the program alone. The default is `true` for a program on several devices.
    ///
    /// Hosts can launch a program on one device at a time (`execute_device`). If the devices communicate, the SDK waits for
    /// the launches on all devices, and combines them into one [`Execution`](crate::Execution). Otherwise each launch is an
    /// execution, and [`Execution::devices`](crate::Execution::devices) returns its device. The SDK calls this at most once
    /// for each loaded program.
    ///
    /// The SDK combines only launches of the same program. PyTorch/XLA also launches programs that differ between devices and
    /// communicate. A plugin whose executions on different devices can wait for each other supports them by returning `false`.
    fn devices_communicate(&self) -> bool {
        self.num_replicas() * self.num_partitions() > 1
    }

    /// Serializes the program for [`PjrtClient::deserialize`](crate::client::PjrtClient::deserialize). The default returns
    /// `None`: the serialized executable contains only the program and its options, and is compiled again.
    ///
    /// # Errors
    ///
    /// Returns an error if the executable cannot be serialized.
    fn serialize(&self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// Returns a fingerprint, which must differ between programs that differ in behavior. The default returns `None`: the
    /// SDK hashes the program and its options.
    fn fingerprint(&self) -> Option<String> {
        None
    }

    /// Returns the program after optimization (`PJRT_Executable_OptimizedProgram`). Hosts read the formats `mlir` and
    /// `hlo_with_config`; the SDK converts `hlo` to the latter. The default returns `None`: hosts receive the program that
    /// was compiled.
    fn optimized_program(&self) -> Option<Program> {
        None
    }

    /// Returns the cost of an execution (`PJRT_Executable_GetCostAnalysis`). Hosts know the keys `flops`, `bytes accessed`
    /// and `transcendentals`, whose values are floats. The default returns no costs.
    fn cost_analysis(&self) -> Vec<(String, AttributeValue)> {
        Vec::new()
    }

    /// Returns the memory that an execution needs (`PJRT_Executable_GetCompiledMemoryStats`). The default returns `None`:
    /// the SDK reports the sizes of the parameters and the outputs.
    fn memory_stats(&self) -> Option<CompiledMemoryStats> {
        None
    }

    /// Returns the size of the compiled code in bytes, or -1 if it is not known. The default returns -1.
    fn generated_code_size_in_bytes(&self) -> i64 {
        -1
    }
}
