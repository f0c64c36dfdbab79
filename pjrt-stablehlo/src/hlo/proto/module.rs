//! Modules, computations, and what is said about instructions of all kinds.

use std::collections::BTreeMap;

use prost::Message;
use prost::bytes::Bytes;

use super::Sharding;

/// `HloModuleProtoWithConfig`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModuleWithConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) module: Option<Module>,
    #[prost(message, optional, tag = "2")]
    pub(crate) config: Option<ModuleConfig>,
}

/// `HloModuleConfigProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModuleConfig {
    #[prost(int64, tag = "4")]
    pub(crate) replica_count: i64,
    #[prost(int64, tag = "5")]
    pub(crate) num_partitions: i64,
}

/// What tells the two forms of a program from each other and from anything else; see [`recognise`](crate::hlo::recognise).
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Probe {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) name_or_module: Bytes,
    #[prost(message, repeated, tag = "3")]
    pub(crate) computations: Vec<ComputationProbe>,
}

/// `HloComputationProto` without decoding what is in it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ComputationProbe {
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(crate) instructions: Vec<Bytes>,
}

/// `HloModuleProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Module {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) entry_computation_name: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) computations: Vec<Computation>,
    #[prost(int64, tag = "6")]
    pub(crate) entry_computation_id: i64,
    #[prost(message, optional, tag = "8")]
    pub(crate) input_output_alias: Option<InputOutputAlias>,
    #[prost(message, optional, tag = "12")]
    pub(crate) spmd_output_sharding: Option<Sharding>,
    #[prost(message, repeated, tag = "14")]
    pub(crate) spmd_parameters_shardings: Vec<Sharding>,
    #[prost(message, optional, tag = "17")]
    pub(crate) stack_frame_index: Option<StackFrameIndex>,
    #[prost(message, optional, tag = "18")]
    pub(crate) buffer_donor: Option<BufferDonor>,
    #[prost(message, optional, tag = "19")]
    pub(crate) frontend_attributes: Option<FrontendAttributes>,
}

/// `HloComputationProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Computation {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(crate) instructions: Vec<Bytes>,
    #[prost(int64, tag = "5")]
    pub(crate) id: i64,
    #[prost(int64, tag = "6")]
    pub(crate) root_id: i64,
}

/// `HloInputOutputAliasProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct InputOutputAlias {
    #[prost(message, repeated, tag = "1")]
    pub(crate) entries: Vec<AliasEntry>,
}

/// `HloInputOutputAliasProto.AliasEntryProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AliasEntry {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) output_shape_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(crate) parameter_number: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) parameter_shape_index: Vec<i64>,
}

/// `HloBufferDonorProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct BufferDonor {
    #[prost(message, repeated, tag = "1")]
    pub(crate) entries: Vec<BufferDonorEntry>,
}

/// `HloBufferDonorProto.BufferDonorEntryProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct BufferDonorEntry {
    #[prost(int64, tag = "1")]
    pub(crate) parameter_number: i64,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) parameter_shape_index: Vec<i64>,
}

/// `StackFrameIndexProto`. Ids are positions that count from 1.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StackFrameIndex {
    #[prost(string, repeated, tag = "1")]
    pub(crate) file_names: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) function_names: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) file_locations: Vec<FileLocation>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) stack_frames: Vec<StackFrame>,
}

/// `StackFrameIndexProto.FileLocation`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FileLocation {
    #[prost(int32, tag = "1")]
    pub(crate) file_name_id: i32,
    #[prost(int32, tag = "2")]
    pub(crate) function_name_id: i32,
    #[prost(int32, tag = "3")]
    pub(crate) line: i32,
    #[prost(int32, tag = "4")]
    pub(crate) column: i32,
}

/// `StackFrameIndexProto.StackFrame`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StackFrame {
    #[prost(int32, tag = "1")]
    pub(crate) file_location_id: i32,
    #[prost(int32, tag = "2")]
    pub(crate) parent_frame_id: i32,
}

/// `OpMetadata`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metadata {
    #[prost(string, tag = "2")]
    pub(crate) op_name: String,
    #[prost(string, tag = "3")]
    pub(crate) source_file: String,
    #[prost(int32, tag = "4")]
    pub(crate) source_line: i32,
    #[prost(int32, tag = "15")]
    pub(crate) stack_frame_id: i32,
    #[prost(int32, tag = "17")]
    pub(crate) source_end_line: i32,
    #[prost(int32, tag = "18")]
    pub(crate) source_column: i32,
    #[prost(int32, tag = "19")]
    pub(crate) source_end_column: i32,
}

/// `FrontendAttributes`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FrontendAttributes {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(crate) map: BTreeMap<String, String>,
}
