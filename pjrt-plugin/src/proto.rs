//! The protocol buffers that cross the C API, as far as this crate reads or writes them.
//!
//! Messages and numbers are XLA's; fields without a use here are left out, and skipped in what a host sends.

use std::collections::BTreeMap;

use prost::Message;

/// `CompileOptionsProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompileOptions {
    #[prost(message, repeated, tag = "1")]
    pub(crate) argument_layouts: Vec<Shape>,
    #[prost(bool, tag = "2")]
    pub(crate) parameter_is_tupled_arguments: bool,
    #[prost(message, optional, tag = "3")]
    pub(crate) build: Option<BuildOptions>,
    #[prost(bool, tag = "4")]
    pub(crate) compile_portable_executable: bool,
    #[prost(int64, tag = "5")]
    pub(crate) profile_version: i64,
    #[prost(btree_map = "string, message", tag = "7")]
    pub(crate) overrides: BTreeMap<String, Override>,
    /// `PrecisionConfig.Precision`.
    #[prost(int32, tag = "10")]
    pub(crate) matrix_unit_operand_precision: i32,
}

/// `ExecutableBuildOptionsProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct BuildOptions {
    #[prost(int64, tag = "1")]
    pub(crate) device_ordinal: i64,
    #[prost(message, optional, tag = "2")]
    pub(crate) result_layout: Option<Shape>,
    #[prost(int64, tag = "4")]
    pub(crate) num_replicas: i64,
    #[prost(int64, tag = "5")]
    pub(crate) num_partitions: i64,
    #[prost(bool, tag = "6")]
    pub(crate) use_spmd_partitioning: bool,
    #[prost(bool, tag = "7")]
    pub(crate) use_auto_spmd_partitioning: bool,
    #[prost(message, optional, tag = "9")]
    pub(crate) device_assignment: Option<DeviceAssignment>,
    #[prost(bool, tag = "10")]
    pub(crate) alias_passthrough_params: bool,
    #[prost(bool, repeated, tag = "12")]
    pub(crate) allow_propagation_to_output: Vec<bool>,
    #[prost(bytes = "vec", tag = "14")]
    pub(crate) fdo_profile: Vec<u8>,
    #[prost(int64, tag = "15")]
    pub(crate) device_memory_size: i64,
    #[prost(int64, repeated, tag = "16")]
    pub(crate) auto_mesh_shape: Vec<i64>,
    #[prost(int64, repeated, tag = "17")]
    pub(crate) auto_mesh_ids: Vec<i64>,
    #[prost(bool, repeated, tag = "18")]
    pub(crate) allow_propagation_to_parameters: Vec<bool>,
    #[prost(bool, tag = "19")]
    pub(crate) use_shardy_partitioner: bool,
    #[prost(int32, tag = "22")]
    pub(crate) process_index: i32,
    #[prost(int32, tag = "23")]
    pub(crate) process_count: i32,
    #[prost(int32, tag = "24")]
    pub(crate) optimization_level: i32,
    #[prost(int32, tag = "25")]
    pub(crate) memory_fitting_level: i32,
}

/// `OptionOverrideProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Override {
    #[prost(oneof = "OverrideValue", tags = "1, 2, 3, 4")]
    pub(crate) value: Option<OverrideValue>,
}

/// The value in an `OptionOverrideProto`.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum OverrideValue {
    #[prost(string, tag = "1")]
    String(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
}

/// `ShapeProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Shape {
    /// `PrimitiveType`.
    #[prost(uint32, tag = "2")]
    pub(crate) element_type: u32,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) dimensions: Vec<i64>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) tuple_shapes: Vec<Shape>,
    #[prost(message, optional, tag = "5")]
    pub(crate) layout: Option<Layout>,
    /// One for each dimension.
    #[prost(bool, repeated, tag = "6")]
    pub(crate) is_dynamic_dimension: Vec<bool>,
}

/// `LayoutProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Layout {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) minor_to_major: Vec<i64>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) tiles: Vec<Tile>,
}

/// `TileProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tile {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) dimensions: Vec<i64>,
}

/// `DeviceAssignmentProto`. A computation is what a partition is elsewhere.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeviceAssignment {
    #[prost(int32, tag = "1")]
    pub(crate) replica_count: i32,
    #[prost(int32, tag = "2")]
    pub(crate) computation_count: i32,
    #[prost(message, repeated, tag = "3")]
    pub(crate) computation_devices: Vec<ComputationDevice>,
}

/// The devices of one partition, replica by replica.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ComputationDevice {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) replica_device_ids: Vec<i64>,
}

/// `PjRtTopologyDescriptionProto`, with the devices in fields of our own.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Topology {
    #[prost(uint64, tag = "1")]
    pub(crate) platform_id: u64,
    #[prost(string, tag = "2")]
    pub(crate) platform_name: String,
    #[prost(string, tag = "3")]
    pub(crate) platform_version: String,
    #[prost(message, repeated, tag = "1001")]
    pub(crate) devices: Vec<Device>,
    #[prost(message, repeated, tag = "1002")]
    pub(crate) attributes: Vec<Attribute>,
}

/// A device of a topology.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Device {
    #[prost(int32, tag = "1")]
    pub(crate) id: i32,
    #[prost(int32, tag = "2")]
    pub(crate) process_index: i32,
    #[prost(string, tag = "3")]
    pub(crate) kind: String,
    #[prost(string, tag = "4")]
    pub(crate) display: String,
    #[prost(string, tag = "5")]
    pub(crate) debug: String,
    #[prost(message, repeated, tag = "6")]
    pub(crate) attributes: Vec<Attribute>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) memories: Vec<Memory>,
}

/// A memory of a device of a topology.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Memory {
    #[prost(int32, tag = "1")]
    pub(crate) id: i32,
    #[prost(string, tag = "2")]
    pub(crate) kind: String,
    #[prost(int32, tag = "3")]
    pub(crate) kind_id: i32,
    #[prost(bool, tag = "4")]
    pub(crate) host_accessible: bool,
}

/// An attribute of a topology or a device.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Attribute {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(oneof = "AttributeValue", tags = "2, 3, 4, 5, 6")]
    pub(crate) value: Option<AttributeValue>,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum AttributeValue {
    #[prost(string, tag = "2")]
    String(String),
    #[prost(int64, tag = "3")]
    Int64(i64),
    #[prost(message, tag = "4")]
    Int64List(Int64List),
    #[prost(float, tag = "5")]
    Float(f32),
    #[prost(bool, tag = "6")]
    Bool(bool),
}

/// A list of numbers.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Int64List {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) values: Vec<i64>,
}

/// What a serialized executable says about the program and the compiled program behind it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExecutableHeader {
    #[prost(string, tag = "1")]
    pub(crate) platform_name: String,
    #[prost(string, tag = "2")]
    pub(crate) program_format: String,
    #[prost(uint64, tag = "3")]
    pub(crate) program_size: u64,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) options: Vec<u8>,
    /// Of what the plugin made of it, if it made something.
    #[prost(uint64, optional, tag = "5")]
    pub(crate) compiled_size: Option<u64>,
}

/// `OpSharding`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpSharding {
    #[prost(int32, tag = "1")]
    pub(crate) r#type: i32,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) tile_assignment_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub(crate) tile_assignment_devices: Vec<i64>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) tuple_shardings: Vec<OpSharding>,
    #[prost(bool, tag = "6")]
    pub(crate) replicate_on_last_tile_dim: bool,
    #[prost(int32, repeated, tag = "8")]
    pub(crate) last_tile_dims: Vec<i32>,
    /// Instead of the devices: the numbers from 0 on as an array of these sizes, with its dimensions permuted.
    #[prost(int64, repeated, tag = "9")]
    pub(crate) iota_reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "10")]
    pub(crate) iota_transpose_perm: Vec<i32>,
}

/// `PjRtPartialProgramProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartialProgram {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) program: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) program_format: String,
    #[prost(string, tag = "3")]
    pub(crate) producer_phase: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) consumer_phases: Vec<String>,
    #[prost(string, tag = "5")]
    pub(crate) version: String,
    #[prost(string, tag = "6")]
    pub(crate) program_name: String,
}

/// `HloModuleProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloModule {
    /// An encoded [`ProgramShape`].
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) host_program_shape: Vec<u8>,
    #[prost(message, optional, tag = "12")]
    pub(crate) spmd_output_sharding: Option<OpSharding>,
    #[prost(message, repeated, tag = "14")]
    pub(crate) spmd_parameters_shardings: Vec<OpSharding>,
}

/// `ProgramShapeProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProgramShape {
    #[prost(message, repeated, tag = "1")]
    pub(crate) parameters: Vec<Shape>,
    #[prost(message, optional, tag = "2")]
    pub(crate) result: Option<Shape>,
}

/// `HloModuleProtoWithConfig`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloModuleWithConfig {
    /// An encoded [`HloModule`], with the fields that are left out there.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) hlo_module: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub(crate) config: Option<HloModuleConfig>,
}

/// `HloModuleConfigProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloModuleConfig {
    /// A `ProgramShapeProto`.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) entry_computation_layout: Vec<u8>,
}
