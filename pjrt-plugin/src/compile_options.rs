//! The options of a compilation (`CompileOptionsProto`).

use prost::Message;

use crate::device_assignment::DeviceAssignment;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::options::{COMPILE, OptionSpec, OptionValue, Options};
use crate::proto;

/// The options of a compilation, which a host passes as a `CompileOptionsProto`. If the options are unchanged,
/// [`encode`](Self::encode) preserves fields of the protocol buffer that this struct does not have.
///
/// ```
/// use pjrt_plugin::CompileOptions;
///
/// let mut options = CompileOptions::default();
/// options.num_partitions = 4;
/// options.use_spmd_partitioning = true;
/// assert_eq!(CompileOptions::decode(&options.encode())?.num_partitions, 4);
/// # Ok::<(), pjrt_plugin::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CompileOptions {
    /// The number of replicas that run the program.
    pub num_replicas: usize,
    /// The number of partitions of each replica.
    pub num_partitions: usize,
    /// The devices that run the program; `None` is the client's default assignment.
    pub device_assignment: Option<DeviceAssignment>,
    /// The global id of the device of a program with one replica and one partition, if there is no assignment.
    pub device_ordinal: Option<i32>,
    /// `true` if the program can run on any device, which the host chooses for each execution.
    pub compile_portable_executable: bool,
    /// The layout that the host requests for each parameter; `None` leaves the choice to the compiler. The list is usually
    /// empty, which means row-major for all.
    pub argument_layouts: Vec<Option<Layout>>,
    /// The layout that the host requests for the output; `None` leaves the choice to the compiler.
    pub result_layout: Option<Layout>,
    /// `true` if the parameters are the elements of one tuple.
    pub parameter_is_tupled_arguments: bool,
    /// `true` if all partitions run the same program, each on its part of the data.
    pub use_spmd_partitioning: bool,
    /// `true` if the compiler chooses all shardings, for the mesh of `auto_spmd_partitioning_mesh_shape` and
    /// `auto_spmd_partitioning_mesh_ids`.
    pub use_auto_spmd_partitioning: bool,
    /// The shape of the mesh for `use_auto_spmd_partitioning`.
    pub auto_spmd_partitioning_mesh_shape: Vec<i64>,
    /// The partitions of the mesh for `use_auto_spmd_partitioning`, in row-major order.
    pub auto_spmd_partitioning_mesh_ids: Vec<i64>,
    /// `true` if shardings are expressed in the `sdy` dialect.
    pub use_shardy_partitioner: bool,
    /// For each parameter, `true` if the compiler may choose its sharding. A single element applies to all parameters.
    pub allow_spmd_sharding_propagation_to_parameters: Vec<bool>,
    /// For each output, `true` if the compiler may choose its sharding. A single element applies to all outputs.
    pub allow_spmd_sharding_propagation_to_output: Vec<bool>,
    /// `true` if a parameter that the program returns unchanged may share memory with the corresponding output.
    pub alias_passthrough_params: bool,
    /// The device memory that the program may use, in bytes; 0 if the host does not specify it.
    pub device_memory_size: i64,
    /// XLA's level of optimization; 0 if the host does not specify it.
    pub optimization_level: i32,
    /// XLA's level of effort to reduce the program's memory; 0 if the host does not specify it.
    pub memory_fitting_level: i32,
    /// The profile of an earlier execution for feedback-directed optimization, in a format of the compiler. It is usually
    /// empty.
    pub fdo_profile: Vec<u8>,
    /// The version of the profile in the compiler's caches; -1 if there is none.
    pub profile_version: i64,
    /// The minimum precision of matrix products (`xla.PrecisionConfig`): 0 (default), 1 (high) or 2 (highest).
    pub matrix_unit_operand_precision: i32,
    /// The index of this process among those that compile the program together.
    pub process_index: i32,
    /// The number of processes that compile the program together; 0 if the host does not specify it.
    pub process_count: i32,
    /// The compiler options that the host set, by name. [`compiler_options`](Self::compiler_options) validates them. In JAX,
    /// they are set with `jax.jit(..., compiler_options={...})`.
    pub overrides: Vec<(String, OverrideValue)>,
    encoded: Vec<u8>,
}

/// The value of a compiler option in [`CompileOptions::overrides`]. See the example of [`CompileOptions::compiler_options`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OverrideValue {
    /// A string.
    String(String),
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Double(f64),
}

impl Default for CompileOptions {
    /// Returns the options of a program with one replica and one partition on the default device.
    fn default() -> Self {
        Self {
            num_replicas: 1,
            num_partitions: 1,
            device_assignment: None,
            device_ordinal: None,
            compile_portable_executable: false,
            argument_layouts: Vec::new(),
            result_layout: None,
            parameter_is_tupled_arguments: false,
            use_spmd_partitioning: false,
            use_auto_spmd_partitioning: false,
            auto_spmd_partitioning_mesh_shape: Vec::new(),
            auto_spmd_partitioning_mesh_ids: Vec::new(),
            use_shardy_partitioner: false,
            allow_spmd_sharding_propagation_to_parameters: Vec::new(),
            allow_spmd_sharding_propagation_to_output: Vec::new(),
            alias_passthrough_params: false,
            device_memory_size: 0,
            optimization_level: 0,
            memory_fitting_level: 0,
            fdo_profile: Vec::new(),
            profile_version: 0,
            matrix_unit_operand_precision: 0,
            process_index: 0,
            process_count: 0,
            overrides: Vec::new(),
            encoded: Vec::new(),
        }
    }
}

impl CompileOptions {
    /// Decodes a serialized `CompileOptionsProto`. Fields that this struct does not have are kept for
    /// [`encode`](Self::encode).
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the bytes are not a `CompileOptionsProto`, if the number of replicas or partitions is
    /// negative or more than `u32::MAX`, if a layout or the device assignment is invalid, or if the assignment is for other
    /// numbers of replicas and partitions.
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
            result_layout: build.result_layout.map(layout).transpose()?.flatten(),
            use_spmd_partitioning: build.use_spmd_partitioning,
            use_auto_spmd_partitioning: build.use_auto_spmd_partitioning,
            auto_spmd_partitioning_mesh_shape: build.auto_mesh_shape,
            auto_spmd_partitioning_mesh_ids: build.auto_mesh_ids,
            use_shardy_partitioner: build.use_shardy_partitioner,
            allow_spmd_sharding_propagation_to_parameters: build.allow_propagation_to_parameters,
            allow_spmd_sharding_propagation_to_output: build.allow_propagation_to_output,
            alias_passthrough_params: build.alias_passthrough_params,
            device_memory_size: build.device_memory_size,
            optimization_level: build.optimization_level,
            memory_fitting_level: build.memory_fitting_level,
            fdo_profile: build.fdo_profile,
            profile_version: message.profile_version,
            matrix_unit_operand_precision: message.matrix_unit_operand_precision,
            process_index: build.process_index,
            process_count: build.process_count,
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
                     num_partitions is {}",
                    given.0, given.1, options.num_replicas, options.num_partitions
                )));
            }
        }
        Ok(options)
    }

    /// Returns the values of the compiler options that a plugin declares: those that the host set, and the defaults of the
    /// others. Strings are converted to the declared type. Names that begin with `xla_` are ignored unless they are
    /// declared, because hosts send XLA's options to every compiler.
    ///
    /// ```
    /// use pjrt_plugin::{CompileOptions, OptionSpec, OverrideValue};
    ///
    /// const OPTIONS: &[OptionSpec] = &[OptionSpec::boolean("fuse", true, "whether to fuse operations")];
    ///
    /// let mut given = CompileOptions::default();
    /// given.overrides.push(("fuse".to_owned(), OverrideValue::String("false".to_owned())));
    /// assert!(!given.compiler_options(OPTIONS)?.boolean("fuse")?);
    /// # Ok::<(), pjrt_plugin::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if a name is not declared, with the most similar name as a hint, or if a value has the wrong
    /// type.
    pub fn compiler_options(&self, specs: &[OptionSpec]) -> Result<Options> {
        let own = self
            .overrides
            .iter()
            .filter(|(name, _)| !name.starts_with("xla_") || specs.iter().any(|spec| spec.name() == name));
        let given = own.map(|(name, value)| {
            let value = match value {
                OverrideValue::String(value) => OptionValue::String(value.clone()),
                OverrideValue::Bool(value) => OptionValue::Boolean(*value),
                OverrideValue::Int(value) => OptionValue::Integer(*value),
                OverrideValue::Double(value) => OptionValue::Float(*value as f32),
            };
            (name.clone(), value)
        });
        Options::read(specs, given.collect(), &COMPILE)
    }

    /// Encodes the options as a `CompileOptionsProto`. If they are unchanged since [`decode`](Self::decode), the result is
    /// the decoded message with all of its fields; otherwise it contains only the fields of this struct.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        if !self.encoded.is_empty() && Self::decode(&self.encoded).is_ok_and(|original| original == *self) {
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
            result_layout: self.result_layout.as_ref().map(|layout| shape(Some(layout))),
            use_auto_spmd_partitioning: self.use_auto_spmd_partitioning,
            fdo_profile: self.fdo_profile.clone(),
            auto_mesh_shape: self.auto_spmd_partitioning_mesh_shape.clone(),
            auto_mesh_ids: self.auto_spmd_partitioning_mesh_ids.clone(),
            process_index: self.process_index,
            process_count: self.process_count,
            memory_fitting_level: self.memory_fitting_level,
        };
        let overrides = self.overrides.iter().cloned();
        let message = proto::CompileOptions {
            argument_layouts: self.argument_layouts.iter().map(|layout| shape(layout.as_ref())).collect(),
            parameter_is_tupled_arguments: self.parameter_is_tupled_arguments,
            profile_version: self.profile_version,
            matrix_unit_operand_precision: self.matrix_unit_operand_precision,
            build: Some(build),
            compile_portable_executable: self.compile_portable_executable,
            overrides: overrides
                .map(|(name, value)| (name, proto::OptionOverride { value: Some(value.into()) }))
                .collect(),
        };
        message.encode_to_vec()
    }
}

/// Reads a number of replicas or partitions. In a protocol buffer, 0 means that the field is not set.
fn count(name: &str, value: i64) -> Result<usize> {
    // The limit keeps products of these numbers from overflowing.
    match u32::try_from(value) {
        Ok(value) => Ok(value.max(1) as usize),
        Err(_) => Err(Error::invalid_argument(format!("{name} is {value}; expected 0 to {}", u32::MAX))),
    }
}

/// Returns a shape with a layout and no other properties.
fn shape(layout: Option<&Layout>) -> proto::Shape {
    let layout = layout.map(|layout| proto::Layout {
        minor_to_major: layout.minor_to_major().iter().map(|dimension| *dimension as i64).collect(),
        tiles: layout.tiles().iter().map(|tile| proto::Tile { dimensions: tile.clone() }).collect(),
    });
    proto::Shape { layout, ..proto::Shape::default() }
}

fn layout(shape: proto::Shape) -> Result<Option<Layout>> {
    let Some(layout) = shape.layout else { return Ok(None) };
    let minor_to_major = layout.minor_to_major.into_iter().map(|dimension| {
        usize::try_from(dimension).map_err(|_| {
            Error::invalid_argument(format!(
                "minor_to_major of a layout contains the negative dimension {dimension}"
            ))
        })
    });
    let tiles = layout.tiles.into_iter().map(|tile| tile.dimensions).collect();
    Ok(Some(Layout::new(minor_to_major.collect::<Result<_>>()?)?.with_tiles(tiles)))
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
            argument_layouts: vec![
                None,
                Some(Layout::new(vec![0, 1]).unwrap().with_tiles(vec![vec![8, 128]])),
            ],
            result_layout: Some(Layout::row_major(2)),
            use_auto_spmd_partitioning: true,
            auto_spmd_partitioning_mesh_shape: vec![2, 1],
            auto_spmd_partitioning_mesh_ids: vec![1, 0],
            memory_fitting_level: 29,
            fdo_profile: vec![1, 2],
            profile_version: -1,
            matrix_unit_operand_precision: 2,
            process_index: 3,
            process_count: 4,
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
    fn options_that_are_changed_are_serialized_as_changed_and_others_with_unknown_fields() {
        // A field with an unknown number.
        let mut bytes = CompileOptions { num_partitions: 2, ..CompileOptions::default() }.encode();
        bytes.extend([0xf8, 0x3f, 1]);
        let mut options = CompileOptions::decode(&bytes).unwrap();
        assert_eq!(options.encode(), bytes);
        options.num_partitions = 4;
        assert_eq!(CompileOptions::decode(&options.encode()).unwrap().num_partitions, 4);
    }

    #[test]
    fn compiler_options_are_typed_and_a_misspelled_one_is_refused() {
        const OPTIONS: &[OptionSpec] = &[
            OptionSpec::boolean("fuse", true, "whether to fuse"),
            OptionSpec::integer("tile", 8, "how large"),
        ];
        let given = |name: &str, value| {
            let overrides = vec![(name.to_owned(), value)];
            CompileOptions { overrides, ..CompileOptions::default() }.compiler_options(OPTIONS)
        };
        let text = |text: &str| OverrideValue::String(text.to_owned());
        assert_eq!(given("tile", text("16")).unwrap().integer("tile").unwrap(), 16);
        assert!(!given("fuse", OverrideValue::Bool(false)).unwrap().boolean("fuse").unwrap());
        assert_eq!(given("xla_cpu_enable_fast_math", text("1")).unwrap().integer("tile").unwrap(), 8);
        let error = given("tiel", OverrideValue::Int(1)).unwrap_err();
        assert_eq!(error.message(), "No such compile option: 'tiel'");
        assert_eq!(error.hint(), Some("did you mean 'tile'?"));
        let error = given("tile", OverrideValue::Double(1.5)).unwrap_err();
        assert!(error.message().contains("'tile' passed to the compiler must be an integer"), "{error}");
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
