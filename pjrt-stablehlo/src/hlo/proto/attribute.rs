//! Attributes of operations.

use prost::Message;

/// `Window`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Window {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dimensions: Vec<WindowDimension>,
}

/// `WindowDimension`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WindowDimension {
    #[prost(int64, tag = "1")]
    pub(crate) size: i64,
    #[prost(int64, tag = "2")]
    pub(crate) stride: i64,
    #[prost(int64, tag = "3")]
    pub(crate) padding_low: i64,
    #[prost(int64, tag = "4")]
    pub(crate) padding_high: i64,
    #[prost(int64, tag = "5")]
    pub(crate) window_dilation: i64,
    #[prost(int64, tag = "6")]
    pub(crate) base_dilation: i64,
    #[prost(bool, tag = "7")]
    pub(crate) window_reversal: bool,
}

/// `ConvolutionDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConvolutionDimensionNumbers {
    #[prost(int64, tag = "3")]
    pub(crate) kernel_input_feature_dimension: i64,
    #[prost(int64, tag = "4")]
    pub(crate) kernel_output_feature_dimension: i64,
    #[prost(int64, repeated, tag = "6")]
    pub(crate) kernel_spatial_dimensions: Vec<i64>,
    #[prost(int64, tag = "7")]
    pub(crate) input_batch_dimension: i64,
    #[prost(int64, tag = "8")]
    pub(crate) input_feature_dimension: i64,
    #[prost(int64, tag = "9")]
    pub(crate) output_batch_dimension: i64,
    #[prost(int64, tag = "10")]
    pub(crate) output_feature_dimension: i64,
    #[prost(int64, repeated, tag = "11")]
    pub(crate) input_spatial_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "12")]
    pub(crate) output_spatial_dimensions: Vec<i64>,
}

/// `HloInstructionProto.SliceDimensions`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SliceDimensions {
    #[prost(int64, tag = "1")]
    pub(crate) start: i64,
    #[prost(int64, tag = "2")]
    pub(crate) limit: i64,
    #[prost(int64, tag = "3")]
    pub(crate) stride: i64,
}

/// `PaddingConfig`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PaddingConfig {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dimensions: Vec<PaddingConfigDimension>,
}

/// `PaddingConfig.PaddingConfigDimension`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PaddingConfigDimension {
    #[prost(int64, tag = "1")]
    pub(crate) edge_padding_low: i64,
    #[prost(int64, tag = "2")]
    pub(crate) edge_padding_high: i64,
    #[prost(int64, tag = "3")]
    pub(crate) interior_padding: i64,
}

/// `DotDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DotDimensionNumbers {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) lhs_contracting_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) rhs_contracting_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) lhs_batch_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub(crate) rhs_batch_dimensions: Vec<i64>,
}

/// `RaggedDotDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RaggedDotDimensionNumbers {
    #[prost(message, optional, tag = "1")]
    pub(crate) dot_dimension_numbers: Option<DotDimensionNumbers>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) lhs_ragged_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) rhs_group_dimensions: Vec<i64>,
}

/// `GatherDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GatherDimensionNumbers {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) offset_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) collapsed_slice_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) start_index_map: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(crate) index_vector_dim: i64,
    #[prost(int64, repeated, tag = "5")]
    pub(crate) operand_batching_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "6")]
    pub(crate) start_indices_batching_dims: Vec<i64>,
}

/// `ScatterDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScatterDimensionNumbers {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) update_window_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) inserted_window_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) scatter_dims_to_operand_dims: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(crate) index_vector_dim: i64,
    #[prost(int64, repeated, tag = "5")]
    pub(crate) input_batching_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "6")]
    pub(crate) scatter_indices_batching_dims: Vec<i64>,
}

/// `PrecisionConfig`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PrecisionConfig {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) operand_precision: Vec<i32>,
    #[prost(int32, tag = "2")]
    pub(crate) algorithm: i32,
}

/// `TriangularSolveOptions`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TriangularSolveOptions {
    #[prost(bool, tag = "1")]
    pub(crate) left_side: bool,
    #[prost(bool, tag = "2")]
    pub(crate) lower: bool,
    #[prost(bool, tag = "3")]
    pub(crate) unit_diagonal: bool,
    #[prost(int32, tag = "4")]
    pub(crate) transpose_a: i32,
}

/// `CholeskyOptions`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CholeskyOptions {
    #[prost(bool, tag = "1")]
    pub(crate) lower: bool,
}

/// `OutputOperandAliasing`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OutputOperandAliasing {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) output_shape_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(crate) operand_index: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) operand_shape_index: Vec<i64>,
}

/// `ResultAccuracy`; at most one of the fields is set.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResultAccuracy {
    #[prost(int32, tag = "1")]
    pub(crate) mode: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) tolerance: Option<Tolerance>,
}

/// `ResultAccuracy.Tolerance`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tolerance {
    #[prost(double, tag = "1")]
    pub(crate) atol: f64,
    #[prost(double, tag = "2")]
    pub(crate) rtol: f64,
    #[prost(int64, tag = "3")]
    pub(crate) ulps: i64,
}
