//! Structured attributes of StableHLO's operations.

use super::{Ints, Precision, ReplicaGroupMeshAxes, ResultAccuracyMode, Type};

/// The precision of each operand. An empty list means `DEFAULT` for all operands.
pub type PrecisionConfig = Box<[Precision]>;

/// The batching and contracting dimensions of `dot_general`'s operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DotDimensionNumbers {
    /// The batching dimensions of the left operand.
    pub lhs_batching_dimensions: Ints,
    /// The batching dimensions of the right operand, in the order of the left operand's.
    pub rhs_batching_dimensions: Ints,
    /// The contracting dimensions of the left operand.
    pub lhs_contracting_dimensions: Ints,
    /// The contracting dimensions of the right operand, in the order of the left operand's.
    pub rhs_contracting_dimensions: Ints,
}

/// The algorithm that `dot_general` must use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotAlgorithm {
    /// The type to which the left operand is rounded.
    pub lhs_precision_type: Type,
    /// The type to which the right operand is rounded.
    pub rhs_precision_type: Type,
    /// The type in which products are accumulated.
    pub accumulation_type: Type,
    /// The number of components into which the left operand is split.
    pub lhs_component_count: i64,
    /// The number of components into which the right operand is split.
    pub rhs_component_count: i64,
    /// The number of products of components that are computed.
    pub num_primitive_operations: i64,
    /// `true` if intermediate sums may have a lower precision than the accumulation type.
    pub allow_imprecise_accumulation: bool,
}

/// The roles of the dimensions of a convolution's operands and result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvDimensionNumbers {
    /// The batch dimension of the left operand.
    pub input_batch_dimension: i64,
    /// The feature dimension of the left operand.
    pub input_feature_dimension: i64,
    /// The spatial dimensions of the left operand.
    pub input_spatial_dimensions: Ints,
    /// The input feature dimension of the kernel.
    pub kernel_input_feature_dimension: i64,
    /// The output feature dimension of the kernel.
    pub kernel_output_feature_dimension: i64,
    /// The spatial dimensions of the kernel.
    pub kernel_spatial_dimensions: Ints,
    /// The batch dimension of the result.
    pub output_batch_dimension: i64,
    /// The feature dimension of the result.
    pub output_feature_dimension: i64,
    /// The spatial dimensions of the result.
    pub output_spatial_dimensions: Ints,
}

/// The roles of the dimensions of `gather`'s operands and result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatherDimensionNumbers {
    /// The dimensions of the result that are offsets into a slice.
    pub offset_dims: Ints,
    /// The dimensions of the operand that are removed from slices.
    pub collapsed_slice_dims: Ints,
    /// The batching dimensions of the operand.
    pub operand_batching_dims: Ints,
    /// The batching dimensions of the indices, in the order of the operand's.
    pub start_indices_batching_dims: Ints,
    /// For each component of an index vector, the dimension of the operand that it indexes.
    pub start_index_map: Ints,
    /// The dimension of the indices that contains the index vectors. If it equals their rank, each index is a scalar.
    pub index_vector_dim: i64,
}

/// The roles of the dimensions of `scatter`'s operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScatterDimensionNumbers {
    /// The dimensions of the updates that are offsets into a window.
    pub update_window_dims: Ints,
    /// The dimensions of the inputs that are not part of windows.
    pub inserted_window_dims: Ints,
    /// The batching dimensions of the inputs.
    pub input_batching_dims: Ints,
    /// The batching dimensions of the indices, in the order of the inputs'.
    pub scatter_indices_batching_dims: Ints,
    /// For each component of an index vector, the dimension of the inputs that it indexes.
    pub scatter_dims_to_operand_dims: Ints,
    /// The dimension of the indices that contains the index vectors. If it equals their rank, each index is a scalar.
    pub index_vector_dim: i64,
}

/// The channel of a transfer or a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelHandle {
    /// The id of the channel; 0 if there is none.
    pub handle: i64,
    /// The type of the channel: 1 for device to device, 2 for device to host, 3 for host to device. 0 in collectives.
    pub channel_type: i64,
}

/// The accuracy that an elementwise function requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResultAccuracy {
    /// The absolute tolerance.
    pub atol: f64,
    /// The relative tolerance.
    pub rtol: f64,
    /// The tolerance in units in the last place.
    pub ulps: i64,
    /// The mode. The tolerances apply to [`ResultAccuracyMode::Tolerance`] only.
    pub mode: ResultAccuracyMode,
}

impl Default for ResultAccuracy {
    fn default() -> Self {
        ResultAccuracy { atol: 0.0, rtol: 0.0, ulps: 0, mode: ResultAccuracyMode::Default }
    }
}

/// A part of a `custom_call`'s result that shares memory with a part of an operand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputOperandAlias {
    /// The path to the part in the result, which may be a nested tuple.
    pub output_tuple_indices: Ints,
    /// The position of the operand.
    pub operand_index: i64,
    /// The path to the part in the operand, which may be a nested tuple.
    pub operand_tuple_indices: Ints,
}

/// The groups of processes that take part in a collective.
///
/// ```
/// use pjrt_stablehlo::ir::{Module, ReplicaGroups};
///
/// let groups = ReplicaGroups::Dense { group_size: 2, ids: [0, 2, 1, -1].into() };
/// assert_eq!(groups.groups(&Module::new())?, [vec![0, 2], vec![1]]);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplicaGroups {
    /// The rows of a matrix, one row for each group. Shorter groups are padded with -1.
    Dense {
        /// The number of columns, which is the size of the largest group.
        group_size: usize,
        /// The elements in row-major order.
        ids: Ints,
    },
    /// Groups along axes of a device mesh.
    MeshAxes(Box<ReplicaGroupMeshAxes>),
}

impl Default for ReplicaGroups {
    fn default() -> Self {
        ReplicaGroups::Dense { group_size: 0, ids: Box::default() }
    }
}

/// For each operand or result of a `custom_call`, its dimensions from minor to major in memory.
pub type Layouts = Box<[Ints]>;

/// For each result of a `custom_call`, its tilings from the outermost to the innermost.
pub type Tilings = Box<[Box<[Ints]>]>;
