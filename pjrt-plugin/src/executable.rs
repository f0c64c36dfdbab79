//! Compiled programs.

use crate::attributes::AttributeValue;
use crate::element_type::ElementType;
use crate::error::Result;
use crate::program::Program;
use crate::stats::CompiledMemoryStats;

/// A compiled program (`PJRT_Executable`), with no client and no device in it: what can be stored, and loaded elsewhere.
pub trait PjrtExecutable: Send + Sync + 'static {
    /// The name of the program, as a rule that of its module. Called once.
    fn name(&self) -> &str;

    /// How many replicas run it.
    fn num_replicas(&self) -> usize {
        1
    }

    /// Into how many partitions each replica is divided.
    fn num_partitions(&self) -> usize {
        1
    }

    /// Returns true if the devices of a launch communicate with each other, as by collective operations, so that none can run the
    /// program alone. If a host launches such a program on one device at a time (`execute_device`), the SDK waits until it has launched
    /// it on all, and makes that one [`Execution`](crate::Execution). Otherwise the SDK runs each launch by itself, and
    /// [`Execution::devices`](crate::Execution::devices) says which device it is on. Called once for each loaded program.
    fn devices_communicate(&self) -> bool {
        self.num_replicas() * self.num_partitions() > 1
    }

    /// What it takes, on each device. The SDK checks arguments against it before every execution. Called once.
    fn parameters(&self) -> &[ArraySpec];

    /// What it gives, on each device. Called once.
    fn outputs(&self) -> &[ArraySpec];

    /// The parameters whose buffers it consumes. The host may except single ones in a call. Called once.
    fn donated_parameters(&self) -> &[usize] {
        &[]
    }

    /// Its serialized form, for [`PjrtClient::deserialize`](crate::client::PjrtClient::deserialize). `None`: the SDK stores
    /// the program and its options, and compiles them again.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being serialized.
    fn serialize(&self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// A text that differs between programs that do something different. `None`: the SDK hashes program and options.
    fn fingerprint(&self) -> Option<String> {
        None
    }

    /// The program after optimisation (`PJRT_Executable_OptimizedProgram`). `None`: the program as it came. Hosts read `mlir`
    /// and `hlo_with_config`; of `hlo` the SDK makes the latter.
    fn optimized_program(&self) -> Option<Program> {
        None
    }

    /// What a run costs (`PJRT_Executable_GetCostAnalysis`). Keys that hosts know: `flops`, `bytes accessed`,
    /// `transcendentals`, as floats.
    fn cost_analysis(&self) -> Vec<(String, AttributeValue)> {
        Vec::new()
    }

    /// What memory a run needs. `None`: the SDK counts the parameters and the outputs.
    fn memory_stats(&self) -> Option<CompiledMemoryStats> {
        None
    }

    /// How large the compiled code is; -1 if that is not known.
    fn generated_code_size_in_bytes(&self) -> i64 {
        -1
    }
}

/// An array that a program takes or gives: element type, dimensions, and the memory that it lives in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArraySpec {
    element_type: ElementType,
    dims: Vec<i64>,
    memory_kind: Option<String>,
}

impl ArraySpec {
    /// An array in the default memory of its device.
    #[must_use]
    pub fn new(element_type: ElementType, dims: impl Into<Vec<i64>>) -> Self {
        Self { element_type, dims: dims.into(), memory_kind: None }
    }

    /// The same array in a memory of this kind.
    #[must_use]
    pub fn with_memory_kind(mut self, kind: impl Into<String>) -> Self {
        self.memory_kind = Some(kind.into());
        self
    }

    /// The type of the elements.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// The dimensions.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// The kind of the memory; `None` is the default memory.
    #[must_use]
    pub fn memory_kind(&self) -> Option<&str> {
        self.memory_kind.as_deref()
    }
}
