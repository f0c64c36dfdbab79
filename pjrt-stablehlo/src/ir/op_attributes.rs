//! Structured attributes of StableHLO operations.

use super::{Ints, Precision, ReplicaGroupMeshAxes, ResultAccuracyMode, Type};

/// Precision of each operand; empty, or without other cases, for `DEFAULT` for all.
pub type PrecisionConfig = Box<[Precision]>;

/// Which dimensions of `dot_general`'s operands are batched and contracted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DotDimensionNumbers {
    /// Batching dimensions of the left operand.
    pub lhs_batching_dimensions: Ints,
    /// Batching dimensions of the right operand, pairwise with the left's.
    pub rhs_batching_dimensions: Ints,
    /// Contracting dimensions of the left operand.
    pub lhs_contracting_dimensions: Ints,
    /// Contracting dimensions of the right operand, pairwise with the left's.
    pub rhs_contracting_dimensions: Ints,
}

/// How `dot_general` must compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotAlgorithm {
    /// Type to which the left operand is rounded.
    pub lhs_precision_type: Type,
    /// Type to which the right operand is rounded.
    pub rhs_precision_type: Type,
    /// Type in which products are summed.
    pub accumulation_type: Type,
    /// Parts into which the left operand is split.
    pub lhs_component_count: i64,
    /// Parts into which the right operand is split.
    pub rhs_component_count: i64,
    /// Products of parts that are computed.
    pub num_primitive_operations: i64,
    /// Whether sums may be kept in less precision at times.
    pub allow_imprecise_accumulation: bool,
}

/// Which dimension of a convolution's operands and result is what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvDimensionNumbers {
    /// Batch dimension of the left operand.
    pub input_batch_dimension: i64,
    /// Feature dimension of the left operand.
    pub input_feature_dimension: i64,
    /// Spatial dimensions of the left operand.
    pub input_spatial_dimensions: Ints,
    /// Input feature dimension of the kernel.
    pub kernel_input_feature_dimension: i64,
    /// Output feature dimension of the kernel.
    pub kernel_output_feature_dimension: i64,
    /// Spatial dimensions of the kernel.
    pub kernel_spatial_dimensions: Ints,
    /// Batch dimension of the result.
    pub output_batch_dimension: i64,
    /// Feature dimension of the result.
    pub output_feature_dimension: i64,
    /// Spatial dimensions of the result.
    pub output_spatial_dimensions: Ints,
}

/// How `gather` finds and places slices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatherDimensionNumbers {
    /// Dimensions of the result that are offsets into a slice.
    pub offset_dims: Ints,
    /// Dimensions of the operand that are dropped from slices.
    pub collapsed_slice_dims: Ints,
    /// Batching dimensions of the operand.
    pub operand_batching_dims: Ints,
    /// Batching dimensions of the indices, pairwise with the operand's.
    pub start_indices_batching_dims: Ints,
    /// Which dimension of the operand each component of an index vector starts in.
    pub start_index_map: Ints,
    /// Dimension of the indices that holds index vectors; the rank of the indices for scalars.
    pub index_vector_dim: i64,
}

/// How `scatter` finds and places updates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScatterDimensionNumbers {
    /// Dimensions of the updates that are offsets into a window.
    pub update_window_dims: Ints,
    /// Dimensions of the inputs that windows lack.
    pub inserted_window_dims: Ints,
    /// Batching dimensions of the inputs.
    pub input_batching_dims: Ints,
    /// Batching dimensions of the indices, pairwise with the inputs'.
    pub scatter_indices_batching_dims: Ints,
    /// Which dimension of the inputs each component of an index vector starts in.
    pub scatter_dims_to_operand_dims: Ints,
    /// Dimension of the indices that holds index vectors; the rank of the indices for scalars.
    pub index_vector_dim: i64,
}

/// The channel of a transfer or collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelHandle {
    /// Number of the channel; 0 for none.
    pub handle: i64,
    /// Kind of the channel: 1 device to device, 2 device to host, 3 host to device; 0 in collectives.
    pub channel_type: i64,
}

/// The accuracy that an elementwise function asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResultAccuracy {
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
    /// Tolerance in units in the last place.
    pub ulps: i64,
    /// Whether the tolerances count.
    pub mode: ResultAccuracyMode,
}

impl Default for ResultAccuracy {
    fn default() -> Self {
        ResultAccuracy { atol: 0.0, rtol: 0.0, ulps: 0, mode: ResultAccuracyMode::Default }
    }
}

/// Which part of an operand a part of a `custom_call`'s result shares its memory with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputOperandAlias {
    /// Path to the part in the (nested) result tuple.
    pub output_tuple_indices: Ints,
    /// Operand.
    pub operand_index: i64,
    /// Path to the part in the (nested) operand tuple.
    pub operand_tuple_indices: Ints,
}

/// Groups of processes that a collective runs in.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplicaGroups {
    /// Rows of a matrix; shorter groups are filled up with -1.
    Dense {
        /// Number of columns, the size of the largest group.
        group_size: usize,
        /// The rows, one after the other.
        ids: Ints,
    },
    /// Derived from axes of a device mesh.
    MeshAxes(Box<ReplicaGroupMeshAxes>),
}

impl Default for ReplicaGroups {
    fn default() -> Self {
        ReplicaGroups::Dense { group_size: 0, ids: Box::default() }
    }
}

/// Order of dimensions in memory, minor to major, of each operand or result of a `custom_call`.
pub type Layouts = Box<[Ints]>;

/// Tilings of each result of a `custom_call`, from outer to inner tile.
pub type Tilings = Box<[Box<[Ints]>]>;
