//! Options of a compilation (`CompileOptionsProto`).

use prost::Message;

use crate::device_assignment::DeviceAssignment;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::options::{COMPILE, OptionSpec, OptionValue, Options};
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
    /// The layout that the host wants for the output; `None` leaves it to the compiler.
    pub result_layout: Option<Layout>,
    /// Whether the parameters are the elements of one tuple.
    pub parameter_is_tupled_arguments: bool,
    /// Whether partitions run the same program on parts of the data.
    pub use_spmd_partitioning: bool,
    /// Whether the compiler may choose all shardings itself, for a mesh of devices.
    pub use_auto_spmd_partitioning: bool,
    /// The shape of that mesh.
    pub auto_spmd_partitioning_mesh_shape: Vec<i64>,
    /// The partitions in that mesh, in row-major order.
    pub auto_spmd_partitioning_mesh_ids: Vec<i64>,
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
    /// How hard to try to fit the program into memory, as XLA counts it; 0 if the host does not say.
    pub memory_fitting_level: i32,
    /// What an earlier run has measured, in a form of the compiler's own; empty as a rule.
    pub fdo_profile: Vec<u8>,
    /// The version of the profile in the compiler's caches; -1 for none.
    pub profile_version: i64,
    /// How exact products are at least, as XLA counts it: 0 (default), 1 (high), 2 (highest).
    pub matrix_unit_operand_precision: i32,
    /// The number of this process among those that compile the program together.
    pub process_index: i32,
    /// How many processes compile the program together; 0 if the host does not say.
    pub process_count: i32,
    /// Compiler options by name, as the host gave them; [`compiler_options`](Self::compiler_options) checks them. In JAX: `jax.jit(..., compiler_options={...})`.
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
                     num_partitions {}",
                    given.0, given.1, options.num_replicas, options.num_partitions
                )));
            }
        }
        Ok(options)
    }

    /// The values of compiler options that a plugin declares: what the host gave, and defaults for the rest. Text is converted to
    /// the declared type. XLA's own options, `xla_...`, which hosts send to every compiler, are passed over unless they are declared.
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
    /// INVALID_ARGUMENT for a name that is not declared, naming the nearest one, and for a value of the wrong type.
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

    /// A serialized `CompileOptionsProto`: the one that these were read from, with all of its fields, unless they have been changed
    /// since; then one of these fields.
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

/// A number of replicas or partitions; 0 is how protocol buffers say nothing.
fn count(name: &str, value: i64) -> Result<usize> {
    // No machine has as many devices as would overflow what is computed from these.
    match u32::try_from(value) {
        Ok(value) => Ok(value.max(1) as usize),
        Err(_) => Err(Error::invalid_argument(format!("{name} is {value}"))),
    }
}

/// A shape of which nothing but the layout matters.
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
        usize::try_from(dimension)
            .map_err(|_| Error::invalid_argument(format!("a layout has the dimension {dimension}")))
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
        // A field with a number that nobody knows.
        let mut bytes = CompileOptions { num_partitions: 2, ..CompileOptions::default() }.encode();
        bytes.extend([0xf8, 0x3f, 1]);
        let mut options = CompileOptions::decode(&bytes).unwrap();
        assert_eq!(options.encode(), bytes);
        options.num_partitions = 4;
        assert_eq!(CompileOptions::decode(&options.encode()).unwrap().num_partitions, 4);
    }

    #[test]
    fn compiler_options_are_typed_and_a_misspelt_one_is_refused() {
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
