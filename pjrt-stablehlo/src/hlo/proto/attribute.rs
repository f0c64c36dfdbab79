//! Attributes of operations.

use prost::Message;

/// `Window`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Window {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hlo) dimensions: Vec<WindowDimension>,
}

/// `WindowDimension`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct WindowDimension {
    #[prost(int64, tag = "1")]
    pub(in crate::hlo) size: i64,
    #[prost(int64, tag = "2")]
    pub(in crate::hlo) stride: i64,
    #[prost(int64, tag = "3")]
    pub(in crate::hlo) padding_low: i64,
    #[prost(int64, tag = "4")]
    pub(in crate::hlo) padding_high: i64,
    #[prost(int64, tag = "5")]
    pub(in crate::hlo) window_dilation: i64,
    #[prost(int64, tag = "6")]
    pub(in crate::hlo) base_dilation: i64,
    #[prost(bool, tag = "7")]
    pub(in crate::hlo) window_reversal: bool,
}

/// `ConvolutionDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct ConvolutionDimensionNumbers {
    #[prost(int64, tag = "3")]
    pub(in crate::hlo) kernel_input_feature_dimension: i64,
    #[prost(int64, tag = "4")]
    pub(in crate::hlo) kernel_output_feature_dimension: i64,
    #[prost(int64, repeated, tag = "6")]
    pub(in crate::hlo) kernel_spatial_dimensions: Vec<i64>,
    #[prost(int64, tag = "7")]
    pub(in crate::hlo) input_batch_dimension: i64,
    #[prost(int64, tag = "8")]
    pub(in crate::hlo) input_feature_dimension: i64,
    #[prost(int64, tag = "9")]
    pub(in crate::hlo) output_batch_dimension: i64,
    #[prost(int64, tag = "10")]
    pub(in crate::hlo) output_feature_dimension: i64,
    #[prost(int64, repeated, tag = "11")]
    pub(in crate::hlo) input_spatial_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "12")]
    pub(in crate::hlo) output_spatial_dimensions: Vec<i64>,
}

/// `HloInstructionProto.SliceDimensions`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct SliceDimensions {
    #[prost(int64, tag = "1")]
    pub(in crate::hlo) start: i64,
    #[prost(int64, tag = "2")]
    pub(in crate::hlo) limit: i64,
    #[prost(int64, tag = "3")]
    pub(in crate::hlo) stride: i64,
}

/// `PaddingConfig`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct PaddingConfig {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hlo) dimensions: Vec<PaddingConfigDimension>,
}

/// `PaddingConfig.PaddingConfigDimension`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct PaddingConfigDimension {
    #[prost(int64, tag = "1")]
    pub(in crate::hlo) edge_padding_low: i64,
    #[prost(int64, tag = "2")]
    pub(in crate::hlo) edge_padding_high: i64,
    #[prost(int64, tag = "3")]
    pub(in crate::hlo) interior_padding: i64,
}

/// `DotDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct DotDimensionNumbers {
    #[prost(int64, repeated, tag = "1")]
    pub(in crate::hlo) lhs_contracting_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(in crate::hlo) rhs_contracting_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(in crate::hlo) lhs_batch_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub(in crate::hlo) rhs_batch_dimensions: Vec<i64>,
}

/// `RaggedDotDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct RaggedDotDimensionNumbers {
    #[prost(message, optional, tag = "1")]
    pub(in crate::hlo) dot_dimension_numbers: Option<DotDimensionNumbers>,
    #[prost(int64, repeated, tag = "2")]
    pub(in crate::hlo) lhs_ragged_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(in crate::hlo) rhs_group_dimensions: Vec<i64>,
}

/// `GatherDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct GatherDimensionNumbers {
    #[prost(int64, repeated, tag = "1")]
    pub(in crate::hlo) offset_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(in crate::hlo) collapsed_slice_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(in crate::hlo) start_index_map: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(in crate::hlo) index_vector_dim: i64,
    #[prost(int64, repeated, tag = "5")]
    pub(in crate::hlo) operand_batching_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "6")]
    pub(in crate::hlo) start_indices_batching_dims: Vec<i64>,
}

/// `ScatterDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct ScatterDimensionNumbers {
    #[prost(int64, repeated, tag = "1")]
    pub(in crate::hlo) update_window_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(in crate::hlo) inserted_window_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(in crate::hlo) scatter_dims_to_operand_dims: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(in crate::hlo) index_vector_dim: i64,
    #[prost(int64, repeated, tag = "5")]
    pub(in crate::hlo) input_batching_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "6")]
    pub(in crate::hlo) scatter_indices_batching_dims: Vec<i64>,
}

/// `PrecisionConfig`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct PrecisionConfig {
    #[prost(int32, repeated, tag = "1")]
    pub(in crate::hlo) operand_precision: Vec<i32>,
    #[prost(int32, tag = "2")]
    pub(in crate::hlo) algorithm: i32,
}

/// `TriangularSolveOptions`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct TriangularSolveOptions {
    #[prost(bool, tag = "1")]
    pub(in crate::hlo) left_side: bool,
    #[prost(bool, tag = "2")]
    pub(in crate::hlo) lower: bool,
    #[prost(bool, tag = "3")]
    pub(in crate::hlo) unit_diagonal: bool,
    #[prost(int32, tag = "4")]
    pub(in crate::hlo) transpose_a: i32,
}

/// `CholeskyOptions`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct CholeskyOptions {
    #[prost(bool, tag = "1")]
    pub(in crate::hlo) lower: bool,
}

/// `OutputOperandAliasing`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct OutputOperandAliasing {
    #[prost(int64, repeated, tag = "1")]
    pub(in crate::hlo) output_shape_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(in crate::hlo) operand_index: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(in crate::hlo) operand_shape_index: Vec<i64>,
}

/// `ResultAccuracy`; at most one of the fields is set.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct ResultAccuracy {
    #[prost(int32, tag = "1")]
    pub(in crate::hlo) mode: i32,
    #[prost(message, optional, tag = "2")]
    pub(in crate::hlo) tolerance: Option<Tolerance>,
}

/// `ResultAccuracy.Tolerance`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Tolerance {
    #[prost(double, tag = "1")]
    pub(in crate::hlo) atol: f64,
    #[prost(double, tag = "2")]
    pub(in crate::hlo) rtol: f64,
    #[prost(int64, tag = "3")]
    pub(in crate::hlo) ulps: i64,
}
