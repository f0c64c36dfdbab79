//! Options of a compilation (`CompileOptionsProto`).

use prost::Message;

use crate::device_assignment::DeviceAssignment;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::proto;

/// How a host wants a program compiled. Fields of the protocol buffer that no plugin has a use for are kept only in
/// what [`encode`](Self::encode) gives back.
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
    /// The layouts that the host wants for the parameters; none as a rule, which is row-major for all.
    pub argument_layouts: Vec<Option<Layout>>,
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
            argument_layouts: Vec::new(),
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
    /// INVALID_ARGUMENT if the bytes are no such message, or if their parts contradict each other.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let message = proto::CompileOptions::decode(bytes).map_err(|error| {
            Error::invalid_argument(format!("failed to deserialize CompileOptionsProto: {error}"))
        })?;
        let build = message.build.unwrap_or_default();
        let device_assignment = build.device_assignment.map(DeviceAssignment::from_proto).transpose()?;
        let mut options = Self {
            num_replicas: count("num_replicas", build.num_replicas)?,
            num_partitions: count("num_partitions", build.num_partitions)?,
            device_assignment,
            device_ordinal: i32::try_from(build.device_ordinal).ok().filter(|ordinal| *ordinal >= 0),
            compile_portable_executable: message.compile_portable_executable,
            argument_layouts: message.argument_layouts.into_iter().map(layout).collect::<Result<_>>()?,
            parameter_is_tupled_arguments: message.parameter_is_tupled_arguments,
            use_spmd_partitioning: build.use_spmd_partitioning,
            use_shardy_partitioner: build.use_shardy_partitioner,
            allow_spmd_sharding_propagation_to_parameters: build.allow_propagation_to_parameters,
            allow_spmd_sharding_propagation_to_output: build.allow_propagation_to_output,
            alias_passthrough_params: build.alias_passthrough_params,
            device_memory_size: build.device_memory_size,
            optimization_level: build.optimization_level,
            overrides: Vec::new(),
            encoded: bytes.to_vec(),
        };
        for (name, value) in message.overrides {
            if let Some(value) = value.value {
                options.overrides.push((name, value.into()));
            }
        }
        if let Some(assignment) = &options.device_assignment {
            let given = (assignment.replicas(), assignment.partitions());
            if given != (options.num_replicas, options.num_partitions) {
                return Err(Error::invalid_argument(format!(
                    "the device assignment is for {} replicas of {} partitions, but num_replicas is {} and \
                     num_partitions {}",
                    given.0, given.1, options.num_replicas, options.num_partitions
                )));
            }
        }
        Ok(options)
    }

    /// A serialized `CompileOptionsProto`: the one that these were read from, or else one of the fields.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        if !self.encoded.is_empty() {
            return self.encoded.clone();
        }
        let build = proto::BuildOptions {
            device_ordinal: self.device_ordinal.map_or(-1, i64::from),
            num_replicas: self.num_replicas as i64,
            num_partitions: self.num_partitions as i64,
            use_spmd_partitioning: self.use_spmd_partitioning,
            device_assignment: self.device_assignment.as_ref().map(DeviceAssignment::to_proto),
            alias_passthrough_params: self.alias_passthrough_params,
            allow_propagation_to_output: self.allow_spmd_sharding_propagation_to_output.clone(),
            device_memory_size: self.device_memory_size,
            allow_propagation_to_parameters: self.allow_spmd_sharding_propagation_to_parameters.clone(),
            use_shardy_partitioner: self.use_shardy_partitioner,
            optimization_level: self.optimization_level,
        };
        let overrides = self.overrides.iter().cloned();
        let message = proto::CompileOptions {
            argument_layouts: Vec::new(),
            parameter_is_tupled_arguments: self.parameter_is_tupled_arguments,
            build: Some(build),
            compile_portable_executable: self.compile_portable_executable,
            overrides: overrides
                .map(|(name, value)| (name, proto::Override { value: Some(value.into()) }))
                .collect(),
        };
        message.encode_to_vec()
    }
}

/// A number of replicas or partitions; 0 is how protocol buffers say nothing.
fn count(name: &str, value: i64) -> Result<usize> {
    // No machine has as many devices as would overflow what is computed from these.
    match u32::try_from(value) {
        Ok(value) => Ok(value.max(1) as usize),
        Err(_) => Err(Error::invalid_argument(format!("{name} is {value}"))),
    }
}

fn layout(shape: proto::Shape) -> Result<Option<Layout>> {
    let Some(layout) = shape.layout else { return Ok(None) };
    let minor_to_major = layout.minor_to_major.into_iter().map(|dimension| {
        usize::try_from(dimension)
            .map_err(|_| Error::invalid_argument(format!("a layout has the dimension {dimension}")))
    });
    Layout::new(minor_to_major.collect::<Result<_>>()?).map(Some)
}

impl From<proto::OverrideValue> for OverrideValue {
    fn from(value: proto::OverrideValue) -> Self {
        match value {
            proto::OverrideValue::String(value) => Self::String(value),
            proto::OverrideValue::Bool(value) => Self::Bool(value),
            proto::OverrideValue::Int(value) => Self::Int(value),
            proto::OverrideValue::Double(value) => Self::Double(value),
        }
    }
}

impl From<OverrideValue> for proto::OverrideValue {
    fn from(value: OverrideValue) -> Self {
        match value {
            OverrideValue::String(value) => Self::String(value),
            OverrideValue::Bool(value) => Self::Bool(value),
            OverrideValue::Int(value) => Self::Int(value),
            OverrideValue::Double(value) => Self::Double(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn options_come_back_as_they_were() {
        let mut options = CompileOptions {
            num_replicas: 2,
            num_partitions: 2,
            device_assignment: Some(DeviceAssignment::new(2, 2, vec![3, 2, 1, 0]).unwrap()),
            device_ordinal: Some(1),
            compile_portable_executable: true,
            use_spmd_partitioning: true,
            allow_spmd_sharding_propagation_to_output: vec![true, false],
            overrides: vec![
                ("a".to_owned(), OverrideValue::Bool(true)),
                ("b".to_owned(), OverrideValue::String("x".to_owned())),
            ],
            ..CompileOptions::default()
        };
        let bytes = options.encode();
        let decoded = CompileOptions::decode(&bytes).unwrap();
        options.encoded = bytes;
        assert_eq!(decoded, options);
    }

    #[test]
    fn no_bytes_are_the_defaults() {
        let options = CompileOptions::decode(&[]).unwrap();
        assert_eq!((options.num_replicas, options.num_partitions), (1, 1));
        assert_eq!(options.device_assignment, None);
    }

    #[test]
    fn an_ordinal_below_zero_names_no_device() {
        let options = CompileOptions { device_ordinal: None, ..CompileOptions::default() };
        assert_eq!(CompileOptions::decode(&options.encode()).unwrap().device_ordinal, None);
    }

    #[test]
    fn garbage_is_refused() {
        let error = CompileOptions::decode(b"not a proto").unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert!(error.message().contains("failed to deserialize CompileOptionsProto"), "{error}");
    }

    #[test]
    fn an_assignment_of_other_counts_is_refused() {
        let options = CompileOptions {
            num_replicas: 1,
            device_assignment: Some(DeviceAssignment::new(2, 1, vec![0, 1]).unwrap()),
            ..CompileOptions::default()
        };
        assert!(CompileOptions::decode(&options.encode()).is_err());
    }
}
