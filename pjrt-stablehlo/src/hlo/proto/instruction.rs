//! Instructions.

use prost::Message;
use prost::bytes::Bytes;

use super::{
    CholeskyOptions, CollectiveDeviceList, ConvolutionDimensionNumbers, DotDimensionNumbers,
    FrontendAttributes, GatherDimensionNumbers, IotaReplicaGroupList, Literal, MeshAxesReplicaGroupList,
    Metadata, OutputOperandAliasing, PaddingConfig, PrecisionConfig, RaggedDotDimensionNumbers, ReplicaGroup,
    ResultAccuracy, ScatterDimensionNumbers, Shape, Sharding, SliceDimensions, SourceTarget,
    TriangularSolveOptions, Window,
};

/// The fields of `HloInstructionProto` that say what a computation takes.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct ParameterProbe {
    #[prost(string, tag = "2")]
    pub(in crate::hlo) opcode: String,
    #[prost(message, optional, tag = "3")]
    pub(in crate::hlo) shape: Option<Shape>,
    #[prost(message, optional, tag = "7")]
    pub(in crate::hlo) metadata: Option<Metadata>,
    #[prost(int64, tag = "9")]
    pub(in crate::hlo) parameter_number: i64,
    #[prost(message, optional, tag = "40")]
    pub(in crate::hlo) sharding: Option<Sharding>,
    #[prost(message, optional, tag = "68")]
    pub(in crate::hlo) frontend_attributes: Option<FrontendAttributes>,
}

/// `HloInstructionProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Instruction {
    #[prost(string, tag = "1")]
    pub(in crate::hlo) name: String,
    #[prost(string, tag = "2")]
    pub(in crate::hlo) opcode: String,
    #[prost(message, optional, tag = "3")]
    pub(in crate::hlo) shape: Option<Shape>,
    #[prost(message, optional, tag = "7")]
    pub(in crate::hlo) metadata: Option<Metadata>,
    #[prost(message, optional, tag = "8")]
    pub(in crate::hlo) literal: Option<Literal>,
    #[prost(int64, tag = "9")]
    pub(in crate::hlo) parameter_number: i64,
    #[prost(int64, tag = "13")]
    pub(in crate::hlo) tuple_index: i64,
    #[prost(int64, repeated, tag = "14")]
    pub(in crate::hlo) dimensions: Vec<i64>,
    #[prost(message, optional, tag = "15")]
    pub(in crate::hlo) window: Option<Window>,
    #[prost(message, optional, tag = "16")]
    pub(in crate::hlo) convolution_dimension_numbers: Option<ConvolutionDimensionNumbers>,
    #[prost(message, repeated, tag = "17")]
    pub(in crate::hlo) slice_dimensions: Vec<SliceDimensions>,
    #[prost(int32, tag = "18")]
    pub(in crate::hlo) exponent_bits: i32,
    #[prost(int32, tag = "19")]
    pub(in crate::hlo) mantissa_bits: i32,
    #[prost(int64, repeated, tag = "20")]
    pub(in crate::hlo) dynamic_slice_sizes: Vec<i64>,
    #[prost(message, optional, tag = "21")]
    pub(in crate::hlo) padding_config: Option<PaddingConfig>,
    #[prost(bytes = "vec", tag = "22")]
    pub(in crate::hlo) outfeed_config: Vec<u8>,
    #[prost(int32, tag = "23")]
    pub(in crate::hlo) distribution: i32,
    #[prost(float, tag = "24")]
    pub(in crate::hlo) epsilon: f32,
    #[prost(int64, tag = "25")]
    pub(in crate::hlo) feature_index: i64,
    #[prost(int64, tag = "26")]
    pub(in crate::hlo) channel_id: i64,
    #[prost(bytes = "vec", tag = "27")]
    pub(in crate::hlo) infeed_config: Vec<u8>,
    #[prost(string, tag = "28")]
    pub(in crate::hlo) custom_call_target: String,
    #[prost(message, optional, tag = "30")]
    pub(in crate::hlo) dot_dimension_numbers: Option<DotDimensionNumbers>,
    #[prost(int32, tag = "31")]
    pub(in crate::hlo) fft_type: i32,
    #[prost(int64, repeated, tag = "32")]
    pub(in crate::hlo) fft_length: Vec<i64>,
    #[prost(message, optional, tag = "33")]
    pub(in crate::hlo) gather_dimension_numbers: Option<GatherDimensionNumbers>,
    #[prost(int64, repeated, tag = "34")]
    pub(in crate::hlo) gather_slice_sizes: Vec<i64>,
    #[prost(int64, tag = "35")]
    pub(in crate::hlo) id: i64,
    #[prost(int64, repeated, tag = "36")]
    pub(in crate::hlo) operand_ids: Vec<i64>,
    #[prost(int64, repeated, tag = "38")]
    pub(in crate::hlo) called_computation_ids: Vec<i64>,
    #[prost(message, optional, tag = "40")]
    pub(in crate::hlo) sharding: Option<Sharding>,
    #[prost(bytes = "vec", tag = "43")]
    pub(in crate::hlo) backend_config: Vec<u8>,
    #[prost(int64, tag = "45")]
    pub(in crate::hlo) all_reduce_id: i64,
    #[prost(bool, tag = "47")]
    pub(in crate::hlo) is_host_transfer: bool,
    #[prost(message, optional, tag = "48")]
    pub(in crate::hlo) scatter_dimension_numbers: Option<ScatterDimensionNumbers>,
    #[prost(message, repeated, tag = "49")]
    pub(in crate::hlo) replica_groups: Vec<ReplicaGroup>,
    #[prost(int64, tag = "50")]
    pub(in crate::hlo) feature_group_count: i64,
    #[prost(message, optional, tag = "51")]
    pub(in crate::hlo) precision_config: Option<PrecisionConfig>,
    #[prost(message, repeated, tag = "52")]
    pub(in crate::hlo) source_target_pairs: Vec<SourceTarget>,
    #[prost(bool, tag = "56")]
    pub(in crate::hlo) constrain_layout: bool,
    #[prost(message, repeated, tag = "57")]
    pub(in crate::hlo) operand_shapes_with_layout: Vec<Shape>,
    #[prost(int64, tag = "58")]
    pub(in crate::hlo) batch_group_count: i64,
    #[prost(message, optional, tag = "59")]
    pub(in crate::hlo) triangular_solve_options: Option<TriangularSolveOptions>,
    #[prost(bool, tag = "60")]
    pub(in crate::hlo) is_stable: bool,
    #[prost(message, optional, tag = "62")]
    pub(in crate::hlo) cholesky_options: Option<CholeskyOptions>,
    #[prost(string, tag = "63")]
    pub(in crate::hlo) comparison_direction: String,
    #[prost(bool, tag = "65")]
    pub(in crate::hlo) custom_call_has_side_effect: bool,
    #[prost(bool, tag = "67")]
    pub(in crate::hlo) indices_are_sorted: bool,
    #[prost(message, optional, tag = "68")]
    pub(in crate::hlo) frontend_attributes: Option<FrontendAttributes>,
    #[prost(bool, tag = "69")]
    pub(in crate::hlo) unique_indices: bool,
    #[prost(int32, tag = "70")]
    pub(in crate::hlo) rng_algorithm: i32,
    #[prost(bool, tag = "71")]
    pub(in crate::hlo) use_global_device_ids: bool,
    #[prost(string, tag = "72")]
    pub(in crate::hlo) comparison_type: String,
    #[prost(message, repeated, tag = "74")]
    pub(in crate::hlo) output_operand_aliasing: Vec<OutputOperandAliasing>,
    #[prost(int32, tag = "77")]
    pub(in crate::hlo) custom_call_api_version: i32,
    #[prost(int64, tag = "81")]
    pub(in crate::hlo) k: i64,
    #[prost(bool, tag = "85")]
    pub(in crate::hlo) largest: bool,
    #[prost(bytes = "bytes", repeated, tag = "86")]
    pub(in crate::hlo) dot_sparsity: Vec<Bytes>,
    #[prost(message, optional, tag = "87")]
    pub(in crate::hlo) collective_device_list: Option<CollectiveDeviceList>,
    #[prost(bool, tag = "89")]
    pub(in crate::hlo) is_composite: bool,
    #[prost(message, optional, tag = "90")]
    pub(in crate::hlo) ragged_dot_dimension_numbers: Option<RaggedDotDimensionNumbers>,
    #[prost(message, optional, tag = "91")]
    pub(in crate::hlo) result_accuracy: Option<ResultAccuracy>,
    #[prost(message, optional, tag = "92")]
    pub(in crate::hlo) iota_collective_device_list: Option<IotaReplicaGroupList>,
    #[prost(message, optional, tag = "93")]
    pub(in crate::hlo) mesh_axes_collective_device_list: Option<MeshAxesReplicaGroupList>,
    #[prost(bool, tag = "94")]
    pub(in crate::hlo) is_reverse: bool,
    #[prost(int64, tag = "95")]
    pub(in crate::hlo) num_carries: i64,
    #[prost(bytes = "bytes", tag = "98")]
    pub(in crate::hlo) sparsity_config: Bytes,
    #[prost(bytes = "bytes", tag = "99")]
    pub(in crate::hlo) backend_config_payload: Bytes,
}
