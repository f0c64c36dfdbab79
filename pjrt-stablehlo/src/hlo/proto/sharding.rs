//! Shardings, meshes and groups of devices.

use prost::Message;

/// `OpSharding`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Sharding {
    #[prost(int32, tag = "1")]
    pub(in crate::hlo) ty: i32,
    #[prost(int64, repeated, tag = "3")]
    pub(in crate::hlo) tile_assignment_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub(in crate::hlo) tile_assignment_devices: Vec<i64>,
    #[prost(message, repeated, tag = "5")]
    pub(in crate::hlo) tuple_shardings: Vec<Sharding>,
    #[prost(bool, tag = "6")]
    pub(in crate::hlo) replicate_on_last_tile_dim: bool,
    #[prost(int32, repeated, tag = "8")]
    pub(in crate::hlo) last_tile_dims: Vec<i32>,
    #[prost(int64, repeated, tag = "9")]
    pub(in crate::hlo) iota_reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "10")]
    pub(in crate::hlo) iota_transpose_perm: Vec<i32>,
    #[prost(bool, tag = "11")]
    pub(in crate::hlo) is_shard_group: bool,
    #[prost(int64, tag = "12")]
    pub(in crate::hlo) shard_group_id: i64,
    #[prost(int32, tag = "13")]
    pub(in crate::hlo) shard_group_type: i32,
    #[prost(message, optional, tag = "14")]
    pub(in crate::hlo) named_sharding: Option<NamedSharding>,
}

/// `NamedShardingProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct NamedSharding {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hlo) tuple_shardings: Vec<NamedSharding>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::hlo) mesh: Option<Mesh>,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::hlo) dim_shardings: Vec<DimensionSharding>,
    #[prost(message, repeated, tag = "4")]
    pub(in crate::hlo) replicated_axes: Vec<AxisRef>,
    #[prost(message, repeated, tag = "5")]
    pub(in crate::hlo) unreduced_axes: Vec<AxisRef>,
}

/// `NamedShardingProto.DimensionSharding`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct DimensionSharding {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hlo) axes: Vec<AxisRef>,
    #[prost(bool, tag = "2")]
    pub(in crate::hlo) is_closed: bool,
}

/// `MeshProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct Mesh {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hlo) axes: Vec<MeshAxis>,
    #[prost(int64, repeated, tag = "2")]
    pub(in crate::hlo) device_ids: Vec<i64>,
}

/// `MeshProto.MeshAxis`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct MeshAxis {
    #[prost(string, tag = "1")]
    pub(in crate::hlo) name: String,
    #[prost(int64, tag = "2")]
    pub(in crate::hlo) size: i64,
}

/// `AxisRefProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct AxisRef {
    #[prost(int64, tag = "1")]
    pub(in crate::hlo) mesh_axis_index: i64,
    #[prost(message, optional, tag = "2")]
    pub(in crate::hlo) sub_axis_info: Option<SubAxis>,
}

/// `AxisRefProto.SubAxis`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct SubAxis {
    #[prost(int64, tag = "1")]
    pub(in crate::hlo) pre_size: i64,
    #[prost(int64, tag = "2")]
    pub(in crate::hlo) size: i64,
}

/// `ReplicaGroup`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct ReplicaGroup {
    #[prost(int64, repeated, tag = "1")]
    pub(in crate::hlo) replica_ids: Vec<i64>,
}

/// `CollectiveDeviceListProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct CollectiveDeviceList {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hlo) replica_groups: Vec<ReplicaGroup>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::hlo) iota_replica_group_list: Option<IotaReplicaGroupList>,
}

/// `IotaReplicaGroupListProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct IotaReplicaGroupList {
    #[prost(int64, tag = "1")]
    pub(in crate::hlo) num_replica_groups: i64,
    #[prost(int64, tag = "2")]
    pub(in crate::hlo) num_devices_per_group: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(in crate::hlo) iota_reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "4")]
    pub(in crate::hlo) iota_transpose_perm: Vec<i32>,
}

/// `MeshAxesReplicaGroupListProto`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct MeshAxesReplicaGroupList {
    #[prost(message, optional, tag = "1")]
    pub(in crate::hlo) mesh: Option<Mesh>,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::hlo) axes: Vec<AxisRef>,
}

/// `SourceTarget`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hlo) struct SourceTarget {
    #[prost(int64, tag = "1")]
    pub(in crate::hlo) source: i64,
    #[prost(int64, tag = "2")]
    pub(in crate::hlo) target: i64,
}
