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
pub(crate) struct ParameterProbe {
    #[prost(string, tag = "2")]
    pub(crate) opcode: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) shape: Option<Shape>,
    #[prost(message, optional, tag = "7")]
    pub(crate) metadata: Option<Metadata>,
    #[prost(int64, tag = "9")]
    pub(crate) parameter_number: i64,
    #[prost(message, optional, tag = "40")]
    pub(crate) sharding: Option<Sharding>,
    #[prost(message, optional, tag = "68")]
    pub(crate) frontend_attributes: Option<FrontendAttributes>,
}

/// `HloInstructionProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Instruction {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) opcode: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) shape: Option<Shape>,
    #[prost(message, optional, tag = "7")]
    pub(crate) metadata: Option<Metadata>,
    #[prost(message, optional, tag = "8")]
    pub(crate) literal: Option<Literal>,
    #[prost(int64, tag = "9")]
    pub(crate) parameter_number: i64,
    #[prost(int64, tag = "13")]
    pub(crate) tuple_index: i64,
    #[prost(int64, repeated, tag = "14")]
    pub(crate) dimensions: Vec<i64>,
    #[prost(message, optional, tag = "15")]
    pub(crate) window: Option<Window>,
    #[prost(message, optional, tag = "16")]
    pub(crate) convolution_dimension_numbers: Option<ConvolutionDimensionNumbers>,
    #[prost(message, repeated, tag = "17")]
    pub(crate) slice_dimensions: Vec<SliceDimensions>,
    #[prost(int32, tag = "18")]
    pub(crate) exponent_bits: i32,
    #[prost(int32, tag = "19")]
    pub(crate) mantissa_bits: i32,
    #[prost(int64, repeated, tag = "20")]
    pub(crate) dynamic_slice_sizes: Vec<i64>,
    #[prost(message, optional, tag = "21")]
    pub(crate) padding_config: Option<PaddingConfig>,
    #[prost(bytes = "vec", tag = "22")]
    pub(crate) outfeed_config: Vec<u8>,
    #[prost(int32, tag = "23")]
    pub(crate) distribution: i32,
    #[prost(float, tag = "24")]
    pub(crate) epsilon: f32,
    #[prost(int64, tag = "25")]
    pub(crate) feature_index: i64,
    #[prost(int64, tag = "26")]
    pub(crate) channel_id: i64,
    #[prost(bytes = "vec", tag = "27")]
    pub(crate) infeed_config: Vec<u8>,
    #[prost(string, tag = "28")]
    pub(crate) custom_call_target: String,
    #[prost(message, optional, tag = "30")]
    pub(crate) dot_dimension_numbers: Option<DotDimensionNumbers>,
    #[prost(int32, tag = "31")]
    pub(crate) fft_type: i32,
    #[prost(int64, repeated, tag = "32")]
    pub(crate) fft_length: Vec<i64>,
    #[prost(message, optional, tag = "33")]
    pub(crate) gather_dimension_numbers: Option<GatherDimensionNumbers>,
    #[prost(int64, repeated, tag = "34")]
    pub(crate) gather_slice_sizes: Vec<i64>,
    #[prost(int64, tag = "35")]
    pub(crate) id: i64,
    #[prost(int64, repeated, tag = "36")]
    pub(crate) operand_ids: Vec<i64>,
    #[prost(int64, repeated, tag = "38")]
    pub(crate) called_computation_ids: Vec<i64>,
    #[prost(message, optional, tag = "40")]
    pub(crate) sharding: Option<Sharding>,
    #[prost(bytes = "vec", tag = "43")]
    pub(crate) backend_config: Vec<u8>,
    #[prost(int64, tag = "45")]
    pub(crate) all_reduce_id: i64,
    #[prost(bool, tag = "47")]
    pub(crate) is_host_transfer: bool,
    #[prost(message, optional, tag = "48")]
    pub(crate) scatter_dimension_numbers: Option<ScatterDimensionNumbers>,
    #[prost(message, repeated, tag = "49")]
    pub(crate) replica_groups: Vec<ReplicaGroup>,
    #[prost(int64, tag = "50")]
    pub(crate) feature_group_count: i64,
    #[prost(message, optional, tag = "51")]
    pub(crate) precision_config: Option<PrecisionConfig>,
    #[prost(message, repeated, tag = "52")]
    pub(crate) source_target_pairs: Vec<SourceTarget>,
    #[prost(bool, tag = "56")]
    pub(crate) constrain_layout: bool,
    #[prost(message, repeated, tag = "57")]
    pub(crate) operand_shapes_with_layout: Vec<Shape>,
    #[prost(int64, tag = "58")]
    pub(crate) batch_group_count: i64,
    #[prost(message, optional, tag = "59")]
    pub(crate) triangular_solve_options: Option<TriangularSolveOptions>,
    #[prost(bool, tag = "60")]
    pub(crate) is_stable: bool,
    #[prost(message, optional, tag = "62")]
    pub(crate) cholesky_options: Option<CholeskyOptions>,
    #[prost(string, tag = "63")]
    pub(crate) comparison_direction: String,
    #[prost(bool, tag = "65")]
    pub(crate) custom_call_has_side_effect: bool,
    #[prost(bool, tag = "67")]
    pub(crate) indices_are_sorted: bool,
    #[prost(message, optional, tag = "68")]
    pub(crate) frontend_attributes: Option<FrontendAttributes>,
    #[prost(bool, tag = "69")]
    pub(crate) unique_indices: bool,
    #[prost(int32, tag = "70")]
    pub(crate) rng_algorithm: i32,
    #[prost(bool, tag = "71")]
    pub(crate) use_global_device_ids: bool,
    #[prost(string, tag = "72")]
    pub(crate) comparison_type: String,
    #[prost(message, repeated, tag = "74")]
    pub(crate) output_operand_aliasing: Vec<OutputOperandAliasing>,
    #[prost(int32, tag = "77")]
    pub(crate) custom_call_api_version: i32,
    #[prost(int64, tag = "81")]
    pub(crate) k: i64,
    #[prost(bool, tag = "85")]
    pub(crate) largest: bool,
    #[prost(bytes = "bytes", repeated, tag = "86")]
    pub(crate) dot_sparsity: Vec<Bytes>,
    #[prost(message, optional, tag = "87")]
    pub(crate) collective_device_list: Option<CollectiveDeviceList>,
    #[prost(bool, tag = "89")]
    pub(crate) is_composite: bool,
    #[prost(message, optional, tag = "90")]
    pub(crate) ragged_dot_dimension_numbers: Option<RaggedDotDimensionNumbers>,
    #[prost(message, optional, tag = "91")]
    pub(crate) result_accuracy: Option<ResultAccuracy>,
    #[prost(message, optional, tag = "92")]
    pub(crate) iota_collective_device_list: Option<IotaReplicaGroupList>,
    #[prost(message, optional, tag = "93")]
    pub(crate) mesh_axes_collective_device_list: Option<MeshAxesReplicaGroupList>,
    #[prost(bool, tag = "94")]
    pub(crate) is_reverse: bool,
    #[prost(int64, tag = "95")]
    pub(crate) num_carries: i64,
}
