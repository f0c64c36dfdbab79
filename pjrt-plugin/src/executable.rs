//! Compiled programs.

use crate::attributes::AttributeValue;
use crate::element_type::ElementType;
use crate::error::Result;
use crate::layout::dense_size;
use crate::memory::Memory;
use crate::program::Program;
use crate::stats::CompiledMemoryStats;

/// A compiled program (`PJRT_Executable`). It is independent of clients and devices, so it can be serialized and loaded by
/// another client.
///
/// ```
/// use pjrt_plugin::{
///     ArraySpec, AttributeValue, CompiledMemoryStats, ElementType, Memory, PjrtExecutable, Program, ProgramFormat, Result,
/// };
///
/// /// A program that adds an array, which is in host memory, to an array on the device, which is donated.
/// struct Add {
///     parameters: [ArraySpec; 2],
///     outputs: [ArraySpec; 1],
///     code: Vec<u8>,
/// }
///
/// impl Add {
///     fn new(size: i64) -> Self {
///         let array = ArraySpec::new(ElementType::F32, [size]);
///         let on_host = array.clone().with_memory_kind(Memory::PINNED_HOST);
///         Self { parameters: [array.clone(), on_host], outputs: [array], code: vec![0x90] }
///     }
/// }
///
/// impl PjrtExecutable for Add {
///     fn name(&self) -> &str {
///         "add"
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
///     fn parameters(&self) -> &[ArraySpec] {
///         &self.parameters
///     }
///
///     fn outputs(&self) -> &[ArraySpec] {
///         &self.outputs
///     }
///
///     fn donated_parameters(&self) -> &[usize] {
///         &[0]
///     }
///
///     fn serialize(&self) -> Result<Option<Vec<u8>>> {
///         Ok(Some(self.code.clone()))
///     }
///
///     fn fingerprint(&self) -> Option<String> {
///         Some(format!("add {:?}", self.parameters[0].dims()))
///     }
///
///     fn optimized_program(&self) -> Option<Program> {
///         Some(Program::new(ProgramFormat::Mlir, *b"module {}"))
///     }
///
///     fn cost_analysis(&self) -> Vec<(String, AttributeValue)> {
///         vec![("flops".to_owned(), AttributeValue::Float(self.parameters[0].dims()[0] as f32))]
///     }
///
///     fn memory_stats(&self) -> Option<CompiledMemoryStats> {
///         let size = 4 * self.parameters[0].dims()[0];
///         Some(CompiledMemoryStats {
///             argument_size: size,
///             host_argument_size: size,
///             output_size: size,
///             alias_size: size,
///             peak_memory: size,
///             ..CompiledMemoryStats::default()
///         })
///     }
///
///     fn generated_code_size_in_bytes(&self) -> i64 {
///         self.code.len() as i64
///     }
/// }
///
/// assert_eq!(Add::new(8).cost_analysis()[0].1, AttributeValue::Float(8.0));
/// ```
pub trait PjrtExecutable: Send + Sync + 'static {
    /// Returns the name of the program, which is usually that of its module. The SDK calls it once.
    fn name(&self) -> &str;

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

    /// Returns the parameters of the program on each device. The SDK checks the arguments of every execution against them,
    /// and calls this once.
    fn parameters(&self) -> &[ArraySpec];

    /// Returns the outputs of the program on each device. The SDK calls it once.
    fn outputs(&self) -> &[ArraySpec];

    /// Returns the indices of the parameters whose arguments are donated. The host can exclude some of them from an
    /// execution. The SDK calls it once. The default returns none.
    fn donated_parameters(&self) -> &[usize] {
        &[]
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

/// The specification of a parameter or an output: element type, dimensions and memory kind.
///
/// ```
/// use pjrt_plugin::{ArraySpec, ElementType, Memory};
///
/// let matrix = ArraySpec::new(ElementType::F32, [2, 3]).with_memory_kind(Memory::PINNED_HOST);
/// assert_eq!((matrix.dims(), matrix.memory_kind()), (&[2, 3][..], Some("pinned_host")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArraySpec {
    element_type: ElementType,
    dims: Vec<i64>,
    memory_kind: Option<String>,
}

impl ArraySpec {
    /// Creates the specification of an array in the default memory of its device.
    #[must_use]
    pub fn new(element_type: ElementType, dims: impl Into<Vec<i64>>) -> Self {
        Self { element_type, dims: dims.into(), memory_kind: None }
    }

    /// Sets the kind of the memory.
    #[must_use]
    pub fn with_memory_kind(mut self, kind: impl Into<String>) -> Self {
        self.memory_kind = Some(kind.into());
        self
    }

    /// Returns the element type.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Returns the dimensions.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Returns the kind of the memory; `None` is the default memory of the device.
    #[must_use]
    pub fn memory_kind(&self) -> Option<&str> {
        self.memory_kind.as_deref()
    }
}

impl CompiledMemoryStats {
    /// Returns the memory of a program with these parameters and outputs, dense and in the memories of their kinds, and with
    /// `temp_size` bytes of temporary device memory. No output shares the memory of an argument. An element has the size that
    /// it has in the host's memory ([`ElementType::byte_size`]); a device that stores a type in another way, or pads arrays,
    /// adds up its own sizes.
    ///
    /// ```
    /// use pjrt_plugin::{ArraySpec, CompiledMemoryStats, ElementType, Memory};
    ///
    /// let array = ArraySpec::new(ElementType::F32, [2, 3]);
    /// let on_host = array.clone().with_memory_kind(Memory::PINNED_HOST);
    /// let stats = CompiledMemoryStats::of_arrays(&[array.clone(), on_host], &[array], 100);
    /// assert_eq!((stats.argument_size, stats.host_argument_size, stats.peak_memory), (24, 24, 148));
    /// ```
    #[must_use]
    pub fn of_arrays(parameters: &[ArraySpec], outputs: &[ArraySpec], temp_size: i64) -> Self {
        let is_on_host = |spec: &&ArraySpec| {
            matches!(spec.memory_kind(), Some(Memory::PINNED_HOST | Memory::UNPINNED_HOST))
        };
        let size = |spec: &ArraySpec| {
            let size = dense_size(&spec.dims, spec.element_type.byte_size()).ok();
            size.and_then(|size| i64::try_from(size).ok()).unwrap_or(i64::MAX)
        };
        let sizes = |specs: &[ArraySpec]| -> [i64; 2] {
            let sum = |host: bool| {
                let specs = specs.iter().filter(|spec| is_on_host(spec) == host);
                specs.map(size).fold(0, i64::saturating_add)
            };
            [sum(false), sum(true)]
        };
        let ([argument_size, host_argument_size], [output_size, host_output_size]) =
            (sizes(parameters), sizes(outputs));
        let total = argument_size.saturating_add(output_size).saturating_add(temp_size);
        Self {
            argument_size,
            output_size,
            temp_size,
            host_argument_size,
            host_output_size,
            peak_memory: total,
            total_size: total,
            ..Self::default()
        }
    }
}
