//! Options of a compilation (`CompileOptionsProto`).

use crate::device_assignment::DeviceAssignment;
use crate::error::Result;

/// How a host wants a program compiled. Fields of the protocol buffer that no plugin has a use for are kept only in
/// [`encoded`](Self::encoded).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CompileOptions {
    /// How many replicas run the program.
    pub num_replicas: usize,
    /// Into how many partitions each replica is divided.
    pub num_partitions: usize,
    /// Which devices run it; `None` is the client's default assignment.
    pub device_assignment: Option<DeviceAssignment>,
    /// The device to compile for, where no assignment says it.
    pub device_ordinal: Option<i32>,
    /// Whether the program may run on any device, named at each execution.
    pub compile_portable_executable: bool,
    /// Whether the parameters are the elements of one tuple.
    pub parameter_is_tupled_arguments: bool,
    /// Whether partitions run the same program on parts of the data.
    pub use_spmd_partitioning: bool,
    /// Whether shardings are expressed in the `sdy` dialect.
    pub use_shardy_partitioner: bool,
    /// For each parameter (or one for all): whether the compiler may choose its sharding.
    pub allow_spmd_sharding_propagation_to_parameters: Vec<bool>,
    /// For each output (or one for all): whether the compiler may choose its sharding.
    pub allow_spmd_sharding_propagation_to_output: Vec<bool>,
    /// Which parameters may share memory with an output although the program does not say so.
    pub alias_passthrough_params: bool,
    /// How much device memory there is to use, in bytes; 0 if the host does not say.
    pub device_memory_size: i64,
    /// How much to optimise, as XLA counts it; 0 if the host does not say.
    pub optimization_level: i32,
    /// Compiler options by name: in JAX, `jax.jit(..., compiler_options={...})`.
    pub overrides: Vec<(String, OverrideValue)>,
    encoded: Vec<u8>,
}

/// The value of a compiler option.
#[derive(Debug, Clone, PartialEq)]
pub enum OverrideValue {
    /// Text.
    String(String),
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Double(f64),
}

impl Default for CompileOptions {
    /// One replica of one partition on the default device.
    fn default() -> Self {
        Self {
            num_replicas: 1,
            num_partitions: 1,
            device_assignment: None,
            device_ordinal: None,
            compile_portable_executable: false,
            parameter_is_tupled_arguments: false,
            use_spmd_partitioning: false,
            use_shardy_partitioner: false,
            allow_spmd_sharding_propagation_to_parameters: Vec::new(),
            allow_spmd_sharding_propagation_to_output: Vec::new(),
            alias_passthrough_params: false,
            device_memory_size: 0,
            optimization_level: 0,
            overrides: Vec::new(),
            encoded: Vec::new(),
        }
    }
}

impl CompileOptions {
    /// Reads a serialized `CompileOptionsProto`; unknown fields are skipped.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT if the bytes are no protocol buffer, or if their parts contradict each other.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Ok(Self { encoded: bytes.to_vec(), ..Self::default() })
    }

    /// The serialized `CompileOptionsProto` that these were read from.
    #[must_use]
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }
}
