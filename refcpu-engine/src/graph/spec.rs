//! The attributes of nodes that have more than one or two.

/// Dimension numbers of a gather, named as in StableHLO.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GatherDims {
    /// Dimensions of the result that walk through a window.
    pub offset_dims: Vec<usize>,
    /// Operand dimensions of window size 1 that the result leaves out.
    pub collapsed_slice_dims: Vec<usize>,
    /// Operand dimensions whose index is that of a dimension of the indices.
    pub operand_batching_dims: Vec<usize>,
    /// The dimensions of the indices that belong to them.
    pub start_indices_batching_dims: Vec<usize>,
    /// The operand dimension that each component of an index vector is for.
    pub start_index_map: Vec<usize>,
    /// The dimension of the indices along which index vectors lie; its rank if each element is one.
    pub index_vector_dim: usize,
    /// The window's size in each operand dimension.
    pub slice_sizes: Vec<usize>,
}

/// Dimension numbers of a scatter, named as in StableHLO.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScatterDims {
    /// Dimensions of the updates that walk through a window.
    pub update_window_dims: Vec<usize>,
    /// Operand dimensions of window size 1 that the updates leave out.
    pub inserted_window_dims: Vec<usize>,
    /// Operand dimensions whose index is that of a dimension of the indices.
    pub input_batching_dims: Vec<usize>,
    /// The dimensions of the indices that belong to them.
    pub scatter_indices_batching_dims: Vec<usize>,
    /// The operand dimension that each component of an index vector is for.
    pub scatter_dims_to_operand_dims: Vec<usize>,
    /// The dimension of the indices along which index vectors lie; its rank if each element is one.
    pub index_vector_dim: usize,
    /// The program's promise that index vectors ascend.
    pub indices_are_sorted: bool,
    /// The program's promise that no two updates meet.
    pub unique_indices: bool,
}

/// How `sdy.manual_computation` cuts its operands for its body and joins its results: for each operand and result,
/// and each of its dimensions, the mesh axes (by number) that it is cut along, from major to minor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ManualSpec {
    /// Sizes of the mesh's axes.
    pub mesh: Vec<usize>,
    /// The axes that the body is manual over; it runs once for each position along them.
    pub axes: Vec<usize>,
    /// How operands are cut.
    pub inputs: Vec<Vec<Vec<usize>>>,
    /// How results are joined.
    pub outputs: Vec<Vec<Vec<usize>>>,
    /// The devices at the mesh's positions.
    pub device_ids: Vec<usize>,
}
