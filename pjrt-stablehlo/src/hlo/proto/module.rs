//! Modules, computations, and what is said about instructions of all kinds.

use std::collections::BTreeMap;

use prost::Message;
use prost::bytes::Bytes;

use super::Sharding;

/// `HloModuleProtoWithConfig`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct ModuleWithConfig {
    #[prost(message, optional, tag = "1")]
    pub(in crate::hlo) module: Option<Module>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::hlo) config: Option<ModuleConfig>,
}

/// `HloModuleConfigProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct ModuleConfig {
    #[prost(int64, tag = "4")]
    pub(in crate::hlo) replica_count: i64,
    #[prost(int64, tag = "5")]
    pub(in crate::hlo) num_partitions: i64,
}

/// What tells the two forms of a program from each other and from anything else; see [`recognise`](crate::hlo::recognise).
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Probe {
    #[prost(bytes = "bytes", tag = "1")]
    pub(in crate::hlo) name_or_module: Bytes,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::hlo) computations: Vec<ComputationProbe>,
}

/// `HloComputationProto` without decoding what is in it.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct ComputationProbe {
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(in crate::hlo) instructions: Vec<Bytes>,
}

/// `HloModuleProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Module {
    #[prost(string, tag = "1")]
    pub(in crate::hlo) name: String,
    #[prost(string, tag = "2")]
    pub(in crate::hlo) entry_computation_name: String,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::hlo) computations: Vec<Computation>,
    #[prost(int64, tag = "6")]
    pub(in crate::hlo) entry_computation_id: i64,
    #[prost(message, optional, tag = "8")]
    pub(in crate::hlo) input_output_alias: Option<InputOutputAlias>,
    #[prost(message, optional, tag = "12")]
    pub(in crate::hlo) spmd_output_sharding: Option<Sharding>,
    #[prost(message, repeated, tag = "14")]
    pub(in crate::hlo) spmd_parameters_shardings: Vec<Sharding>,
    #[prost(message, optional, tag = "17")]
    pub(in crate::hlo) stack_frame_index: Option<StackFrameIndex>,
    #[prost(message, optional, tag = "18")]
    pub(in crate::hlo) buffer_donor: Option<BufferDonor>,
    #[prost(message, optional, tag = "19")]
    pub(in crate::hlo) frontend_attributes: Option<FrontendAttributes>,
}

/// `HloComputationProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Computation {
    #[prost(string, tag = "1")]
    pub(in crate::hlo) name: String,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(in crate::hlo) instructions: Vec<Bytes>,
    #[prost(int64, tag = "5")]
    pub(in crate::hlo) id: i64,
    #[prost(int64, tag = "6")]
    pub(in crate::hlo) root_id: i64,
}

/// `HloInputOutputAliasProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct InputOutputAlias {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hlo) entries: Vec<AliasEntry>,
}

/// `HloInputOutputAliasProto.AliasEntryProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct AliasEntry {
    #[prost(int64, repeated, tag = "1")]
    pub(in crate::hlo) output_shape_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(in crate::hlo) parameter_number: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(in crate::hlo) parameter_shape_index: Vec<i64>,
}

/// `HloBufferDonorProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct BufferDonor {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hlo) entries: Vec<BufferDonorEntry>,
}

/// `HloBufferDonorProto.BufferDonorEntryProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct BufferDonorEntry {
    #[prost(int64, tag = "1")]
    pub(in crate::hlo) parameter_number: i64,
    #[prost(int64, repeated, tag = "2")]
    pub(in crate::hlo) parameter_shape_index: Vec<i64>,
}

/// `StackFrameIndexProto`. Ids are positions that count from 1.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct StackFrameIndex {
    #[prost(string, repeated, tag = "1")]
    pub(in crate::hlo) file_names: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(in crate::hlo) function_names: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::hlo) file_locations: Vec<FileLocation>,
    #[prost(message, repeated, tag = "4")]
    pub(in crate::hlo) stack_frames: Vec<StackFrame>,
}

/// `StackFrameIndexProto.FileLocation`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct FileLocation {
    #[prost(int32, tag = "1")]
    pub(in crate::hlo) file_name_id: i32,
    #[prost(int32, tag = "2")]
    pub(in crate::hlo) function_name_id: i32,
    #[prost(int32, tag = "3")]
    pub(in crate::hlo) line: i32,
    #[prost(int32, tag = "4")]
    pub(in crate::hlo) column: i32,
}

/// `StackFrameIndexProto.StackFrame`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct StackFrame {
    #[prost(int32, tag = "1")]
    pub(in crate::hlo) file_location_id: i32,
    #[prost(int32, tag = "2")]
    pub(in crate::hlo) parent_frame_id: i32,
}

/// `OpMetadata`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Metadata {
    #[prost(string, tag = "2")]
    pub(in crate::hlo) op_name: String,
    #[prost(string, tag = "3")]
    pub(in crate::hlo) source_file: String,
    #[prost(int32, tag = "4")]
    pub(in crate::hlo) source_line: i32,
    #[prost(int32, tag = "15")]
    pub(in crate::hlo) stack_frame_id: i32,
    #[prost(int32, tag = "17")]
    pub(in crate::hlo) source_end_line: i32,
    #[prost(int32, tag = "18")]
    pub(in crate::hlo) source_column: i32,
    #[prost(int32, tag = "19")]
    pub(in crate::hlo) source_end_column: i32,
}

/// `FrontendAttributes`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct FrontendAttributes {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(in crate::hlo) map: BTreeMap<String, String>,
}
