/* TpuTopology: queries of the shape of a TPU system. */
#ifndef PJRT_EXTENSION_TPU_TOPOLOGY_H_
#define PJRT_EXTENSION_TPU_TOPOLOGY_H_

#include "../pjrt_c_api.h"

#define PJRT_API_TPU_TOPOLOGY_EXTENSION_VERSION 1

/// Arguments of PJRT_TpuTopology_Subslice.
struct PJRT_TpuTopology_Subslice_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  const int32_t* chips_per_host_bounds;  ///< Chips per host, per dimension.
  size_t chips_per_host_bounds_num_dims;  ///< Number of dimensions.
  const int32_t* host_bounds;  ///< Hosts, per dimension.
  size_t host_bounds_num_dims;  ///< Number of dimensions.
  PJRT_TopologyDescription* subslice_topology;  ///< Out: the slice, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_Subslice_Args, subslice_topology);
/// Creates a slice of a topology.
typedef PJRT_Error* PJRT_TpuTopology_Subslice(PJRT_TpuTopology_Subslice_Args* args);

/// Arguments of PJRT_TpuTopology_IsSubsliceTopology.
struct PJRT_TpuTopology_IsSubsliceTopology_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  bool is_subslice_topology;  ///< Out: the result.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_IsSubsliceTopology_Args, is_subslice_topology);
/// Returns whether a topology is a slice of another topology.
typedef PJRT_Error* PJRT_TpuTopology_IsSubsliceTopology(
    PJRT_TpuTopology_IsSubsliceTopology_Args* args);

/// Arguments of PJRT_TpuTopology_SubsliceDeviceIdFromFullDeviceId.
struct PJRT_TpuTopology_SubsliceDeviceIdFromFullDeviceId_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* client_topology;  ///< The whole.
  const PJRT_TopologyDescription* subslice_topology;  ///< The slice.
  const int32_t* subslice_origin;  ///< The coordinates of the slice's start.
  size_t subslice_origin_dim_num;  ///< Number of coordinates.
  int32_t full_device_id;  ///< The id in the whole.
  int32_t subslice_device_id;  ///< Out: the id in the slice.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_SubsliceDeviceIdFromFullDeviceId_Args,
                          subslice_device_id);
/// Translates a device id of the whole into one of the slice.
typedef PJRT_Error* PJRT_TpuTopology_SubsliceDeviceIdFromFullDeviceId(
    PJRT_TpuTopology_SubsliceDeviceIdFromFullDeviceId_Args* args);

/// Arguments of PJRT_TpuTopology_ReplaceHostBounds.
struct PJRT_TpuTopology_ReplaceHostBounds_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  const int32_t* host_bounds;  ///< Hosts, per dimension.
  size_t host_bounds_dim_num;  ///< Number of dimensions.
  PJRT_TopologyDescription* new_topology;  ///< Out: the topology, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ReplaceHostBounds_Args, new_topology);
/// Creates a topology with other host bounds.
typedef PJRT_Error* PJRT_TpuTopology_ReplaceHostBounds(
    PJRT_TpuTopology_ReplaceHostBounds_Args* args);

/// Arguments of PJRT_TpuTopology_IsEnhancedBarrierEnabled.
struct PJRT_TpuTopology_IsEnhancedBarrierEnabled_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  bool is_enhanced_barrier_enabled;  ///< Out: the result.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_IsEnhancedBarrierEnabled_Args,
                          is_enhanced_barrier_enabled);
/// Returns whether the enhanced barrier is on.
typedef PJRT_Error* PJRT_TpuTopology_IsEnhancedBarrierEnabled(
    PJRT_TpuTopology_IsEnhancedBarrierEnabled_Args* args);

/// Arguments of PJRT_TpuTopology_HasLimitedIciConnectivity.
struct PJRT_TpuTopology_HasLimitedIciConnectivity_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  bool has_limited_ici_connectivity;  ///< Out: the result.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_HasLimitedIciConnectivity_Args,
                          has_limited_ici_connectivity);
/// Returns whether some chips do not reach each other over ICI.
typedef PJRT_Error* PJRT_TpuTopology_HasLimitedIciConnectivity(
    PJRT_TpuTopology_HasLimitedIciConnectivity_Args* args);

/// Arguments of PJRT_TpuTopology_IsReachableOverLimitedIci.
struct PJRT_TpuTopology_IsReachableOverLimitedIci_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t source_chip_id;  ///< From.
  int32_t dest_chip_id;  ///< To.
  bool is_reachable_over_limited_ici;  ///< Out: the result.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_IsReachableOverLimitedIci_Args,
                          is_reachable_over_limited_ici);
/// Returns whether one chip reaches another where connectivity is limited.
typedef PJRT_Error* PJRT_TpuTopology_IsReachableOverLimitedIci(
    PJRT_TpuTopology_IsReachableOverLimitedIci_Args* args);

/// Arguments of PJRT_TpuTopology_ProcessCount.
struct PJRT_TpuTopology_ProcessCount_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t process_count;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ProcessCount_Args, process_count);
/// Returns the number of processes.
typedef PJRT_Error* PJRT_TpuTopology_ProcessCount(PJRT_TpuTopology_ProcessCount_Args* args);

/// Arguments of PJRT_TpuTopology_ChipsPerProcess.
struct PJRT_TpuTopology_ChipsPerProcess_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t chips_per_process;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ChipsPerProcess_Args, chips_per_process);
/// Returns the number of chips per process.
typedef PJRT_Error* PJRT_TpuTopology_ChipsPerProcess(PJRT_TpuTopology_ChipsPerProcess_Args* args);

/// Arguments of PJRT_TpuTopology_CoreCountPerChip.
struct PJRT_TpuTopology_CoreCountPerChip_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t core_count_of_default_type_per_chip;  ///< Out: the number, of the default core type.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_CoreCountPerChip_Args,
                          core_count_of_default_type_per_chip);
/// Returns the number of cores per chip.
typedef PJRT_Error* PJRT_TpuTopology_CoreCountPerChip(PJRT_TpuTopology_CoreCountPerChip_Args* args);

/// Arguments of PJRT_TpuTopology_ChipCount.
struct PJRT_TpuTopology_ChipCount_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t chip_count;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ChipCount_Args, chip_count);
/// Returns the number of chips.
typedef PJRT_Error* PJRT_TpuTopology_ChipCount(PJRT_TpuTopology_ChipCount_Args* args);

/// Arguments of PJRT_TpuTopology_CoreCount.
struct PJRT_TpuTopology_CoreCount_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t core_count_of_default_type;  ///< Out: the number, of the default core type.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_CoreCount_Args, core_count_of_default_type);
/// Returns the number of cores.
typedef PJRT_Error* PJRT_TpuTopology_CoreCount(PJRT_TpuTopology_CoreCount_Args* args);

/// Arguments of PJRT_TpuTopology_LogiDeviceCount.
struct PJRT_TpuTopology_LogiDeviceCount_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t logical_device_count_of_default_type;  ///< Out: the number, of the default core type.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_LogiDeviceCount_Args,
                          logical_device_count_of_default_type);
/// Returns the number of logical devices.
typedef PJRT_Error* PJRT_TpuTopology_LogiDeviceCount(PJRT_TpuTopology_LogiDeviceCount_Args* args);

/// Arguments of PJRT_TpuTopology_LogiDeviceCountPerProcess.
struct PJRT_TpuTopology_LogiDeviceCountPerProcess_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  /// Out: the number, of the default core type.
  int32_t logical_device_count_of_default_type_per_process;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_LogiDeviceCountPerProcess_Args,
                          logical_device_count_of_default_type_per_process);
/// Returns the number of logical devices per process.
typedef PJRT_Error* PJRT_TpuTopology_LogiDeviceCountPerProcess(
    PJRT_TpuTopology_LogiDeviceCountPerProcess_Args* args);

/// Arguments of PJRT_TpuTopology_LogiDeviceCountPerChip.
struct PJRT_TpuTopology_LogiDeviceCountPerChip_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  /// Out: the number, of the default core type.
  int32_t logical_device_count_of_default_type_per_chip;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_LogiDeviceCountPerChip_Args,
                          logical_device_count_of_default_type_per_chip);
/// Returns the number of logical devices per chip.
typedef PJRT_Error* PJRT_TpuTopology_LogiDeviceCountPerChip(
    PJRT_TpuTopology_LogiDeviceCountPerChip_Args* args);

/// Arguments of PJRT_TpuTopology_CoreCountPerProcess.
struct PJRT_TpuTopology_CoreCountPerProcess_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t core_count_of_default_type_per_process;  ///< Out: the number, of the default core type.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_CoreCountPerProcess_Args,
                          core_count_of_default_type_per_process);
/// Returns the number of cores per process.
typedef PJRT_Error* PJRT_TpuTopology_CoreCountPerProcess(
    PJRT_TpuTopology_CoreCountPerProcess_Args* args);

/// Arguments of PJRT_TpuTopology_ProcessIds.
struct PJRT_TpuTopology_ProcessIds_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t max_process_ids;  ///< The capacity of `process_ids`.
  int32_t* process_ids;  ///< The caller's array; receives the ids.
  size_t num_process_ids;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ProcessIds_Args, num_process_ids);
/// Lists the processes.
typedef PJRT_Error* PJRT_TpuTopology_ProcessIds(PJRT_TpuTopology_ProcessIds_Args* args);

/// Arguments of PJRT_TpuTopology_LogiDeviceIdsOnProcess.
struct PJRT_TpuTopology_LogiDeviceIdsOnProcess_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t process_id;  ///< The process's id.
  int32_t max_logical_device_ids;  ///< The capacity of the array.
  int32_t* logical_device_of_default_type_ids;  ///< The caller's array; receives the ids.
  size_t num_logical_device_ids;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_LogiDeviceIdsOnProcess_Args, num_logical_device_ids);
/// Lists a process's logical devices.
typedef PJRT_Error* PJRT_TpuTopology_LogiDeviceIdsOnProcess(
    PJRT_TpuTopology_LogiDeviceIdsOnProcess_Args* args);

/// Arguments of PJRT_TpuTopology_ProcIdAndIdxOnProcForChip.
struct PJRT_TpuTopology_ProcIdAndIdxOnProcForChip_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t chip_id;  ///< The chip's id.
  int32_t process_id;  ///< Out: the process.
  int32_t index_on_process;  ///< Out: the place.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ProcIdAndIdxOnProcForChip_Args, index_on_process);
/// Returns a chip's process and place in it.
typedef PJRT_Error* PJRT_TpuTopology_ProcIdAndIdxOnProcForChip(
    PJRT_TpuTopology_ProcIdAndIdxOnProcForChip_Args* args);

/// Arguments of PJRT_TpuTopology_ProcIdAndIdxOnProcForLogiDevice.
struct PJRT_TpuTopology_ProcIdAndIdxOnProcForLogiDevice_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t device_id;  ///< The logical device's id.
  int32_t process_id;  ///< Out: the process.
  int32_t index_on_process;  ///< Out: the place.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ProcIdAndIdxOnProcForLogiDevice_Args, index_on_process);
/// Returns a logical device's process and place in it.
typedef PJRT_Error* PJRT_TpuTopology_ProcIdAndIdxOnProcForLogiDevice(
    PJRT_TpuTopology_ProcIdAndIdxOnProcForLogiDevice_Args* args);

/// Arguments of PJRT_TpuTopology_ProcessCoordFromId.
struct PJRT_TpuTopology_ProcessCoordFromId_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t process_id;  ///< The process's id.
  size_t coords_max_dims;  ///< The capacity of `coords`.
  int32_t* coords;  ///< The caller's array; receives the coordinates.
  size_t coords_num_dims;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ProcessCoordFromId_Args, coords_num_dims);
/// Returns a process's coordinates.
typedef PJRT_Error* PJRT_TpuTopology_ProcessCoordFromId(
    PJRT_TpuTopology_ProcessCoordFromId_Args* args);

/// Arguments of PJRT_TpuTopology_ChipIdFromCoord.
struct PJRT_TpuTopology_ChipIdFromCoord_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  const int32_t* coords;  ///< The coordinates.
  size_t coords_num_dims;  ///< Number of coordinates.
  int32_t chip_id;  ///< Out: its id.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ChipIdFromCoord_Args, chip_id);
/// Finds a chip by its coordinates.
typedef PJRT_Error* PJRT_TpuTopology_ChipIdFromCoord(PJRT_TpuTopology_ChipIdFromCoord_Args* args);

/// Arguments of PJRT_TpuTopology_LogiDeviceIdFromChipCoordAndIdx.
struct PJRT_TpuTopology_LogiDeviceIdFromChipCoordAndIdx_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  const int32_t* chip_coords;  ///< The chip's coordinates.
  size_t chip_coords_num_dims;  ///< Their number.
  int32_t logical_device_index_on_chip;  ///< The place.
  int32_t logical_device_of_default_type_id;  ///< Out: its id.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_LogiDeviceIdFromChipCoordAndIdx_Args,
                          logical_device_of_default_type_id);
/// Finds a logical device by its chip's coordinates and its place on the chip.
typedef PJRT_Error* PJRT_TpuTopology_LogiDeviceIdFromChipCoordAndIdx(
    PJRT_TpuTopology_LogiDeviceIdFromChipCoordAndIdx_Args* args);

/// Arguments of PJRT_TpuTopology_ChipCoordAndIdxForLogiDevice.
struct PJRT_TpuTopology_ChipCoordAndIdxForLogiDevice_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t device_id;  ///< The logical device's id.
  size_t chip_coords_max_dims;  ///< The capacity of `chip_coords`.
  int32_t* chip_coords;  ///< The caller's array; receives the coordinates.
  size_t chip_coords_num_dims;  ///< Out: their number.
  int32_t device_index_on_chip;  ///< Out: the place.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ChipCoordAndIdxForLogiDevice_Args, device_index_on_chip);
/// Returns a logical device's chip coordinates and its place on the chip.
typedef PJRT_Error* PJRT_TpuTopology_ChipCoordAndIdxForLogiDevice(
    PJRT_TpuTopology_ChipCoordAndIdxForLogiDevice_Args* args);

/// Arguments of PJRT_TpuTopology_ChipsPerProcessBounds.
struct PJRT_TpuTopology_ChipsPerProcessBounds_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  size_t chip_per_process_bounds_max_dims;  ///< The capacity of the array.
  int32_t* chip_per_process_bounds;  ///< The caller's array; receives the chips per dimension.
  size_t chip_per_process_bounds_num_dims;  ///< Out: number of dimensions.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ChipsPerProcessBounds_Args,
                          chip_per_process_bounds_num_dims);
/// Returns the arrangement of the chips in a process.
typedef PJRT_Error* PJRT_TpuTopology_ChipsPerProcessBounds(
    PJRT_TpuTopology_ChipsPerProcessBounds_Args* args);

/// Arguments of PJRT_TpuTopology_ChipBounds.
struct PJRT_TpuTopology_ChipBounds_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  size_t chip_bounds_max_dims;  ///< The capacity of the array.
  int32_t* chip_bounds;  ///< The caller's array; receives the chips per dimension.
  size_t chip_bounds_num_dims;  ///< Out: number of dimensions.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ChipBounds_Args, chip_bounds_num_dims);
/// Returns the arrangement of all chips.
typedef PJRT_Error* PJRT_TpuTopology_ChipBounds(PJRT_TpuTopology_ChipBounds_Args* args);

/// Arguments of PJRT_TpuTopology_ProcessBounds.
struct PJRT_TpuTopology_ProcessBounds_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  size_t process_bounds_max_dims;  ///< The capacity of the array.
  int32_t* process_bounds;  ///< The caller's array; receives the processes per dimension.
  size_t process_bounds_num_dims;  ///< Out: number of dimensions.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_ProcessBounds_Args, process_bounds_num_dims);
/// Returns the arrangement of the processes.
typedef PJRT_Error* PJRT_TpuTopology_ProcessBounds(PJRT_TpuTopology_ProcessBounds_Args* args);

/// Arguments of PJRT_TpuTopology_GetRoutingStrategy.
struct PJRT_TpuTopology_GetRoutingStrategy_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  char* routing_strategy;  ///< The caller's buffer; receives the name.
  size_t routing_strategy_len;  ///< In: its size; out: length of the name.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_GetRoutingStrategy_Args, routing_strategy_len);
/// Returns the name of the routing strategy.
typedef PJRT_Error* PJRT_TpuTopology_GetRoutingStrategy(
    PJRT_TpuTopology_GetRoutingStrategy_Args* args);

/// An available shape of a slice.
struct PJRT_TpuTopology_SliceConfig {
  size_t dim_size;  ///< Number of dimensions in use.
  int32_t dimensions[4];  ///< Chips per dimension.
  bool wrap[4];  ///< `true` for each dimension that is a ring.
  bool twist;  ///< `true` if the torus is twisted.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_SliceConfig, twist);

/// Arguments of PJRT_TpuTopology_GetSliceConfig.
struct PJRT_TpuTopology_GetSliceConfig_Args {
  size_t struct_size;
  const char* platform_type_name;  ///< The TPU type; borrowed for the call.
  size_t platform_type_name_len;  ///< Length of `platform_type_name`.
  const char* slice_name;  ///< The name; borrowed for the call.
  size_t slice_name_len;  ///< Its length.
  PJRT_TpuTopology_SliceConfig* slice_config;  ///< The caller's struct; receives the shape.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_GetSliceConfig_Args, slice_config);
/// Finds a slice shape by name.
typedef PJRT_Error* PJRT_TpuTopology_GetSliceConfig(PJRT_TpuTopology_GetSliceConfig_Args* args);

/// Arguments of PJRT_TpuTopology_GetSliceConfigs.
struct PJRT_TpuTopology_GetSliceConfigs_Args {
  size_t struct_size;
  const char* platform_type_name;  ///< The TPU type; borrowed for the call.
  size_t platform_type_name_len;  ///< Length of `platform_type_name`.
  PJRT_TpuTopology_SliceConfig* slice_configs;  ///< The caller's array; receives the shapes.
  size_t max_slice_configs;  ///< The capacity of the array.
  size_t num_slice_configs;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_GetSliceConfigs_Args, num_slice_configs);
/// Lists the slice shapes of a TPU type.
typedef PJRT_Error* PJRT_TpuTopology_GetSliceConfigs(PJRT_TpuTopology_GetSliceConfigs_Args* args);

/// Arguments of PJRT_TpuTopology_GetDefaultPlatformConfig.
struct PJRT_TpuTopology_GetDefaultPlatformConfig_Args {
  size_t struct_size;
  const char* platform_type_name;  ///< The TPU type; borrowed for the call.
  size_t platform_type_name_len;  ///< Length of `platform_type_name`.
  int64_t num_chips_per_tray;  ///< Out: chips per tray.
  int64_t num_trays;  ///< Out: trays.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_GetDefaultPlatformConfig_Args, num_trays);
/// Returns the usual machine of a TPU type.
typedef PJRT_Error* PJRT_TpuTopology_GetDefaultPlatformConfig(
    PJRT_TpuTopology_GetDefaultPlatformConfig_Args* args);

/// The TpuTopology extension.
struct PJRT_TpuTopology_Extension {
  PJRT_Extension_Base base;
  PJRT_TpuTopology_Subslice* subslice;
  PJRT_TpuTopology_IsSubsliceTopology* is_subslice_topology;
  PJRT_TpuTopology_SubsliceDeviceIdFromFullDeviceId* subslice_device_id_from_full_device_id;
  PJRT_TpuTopology_ReplaceHostBounds* replace_host_bounds;
  PJRT_TpuTopology_IsEnhancedBarrierEnabled* is_enhanced_barrier_enabled;
  PJRT_TpuTopology_HasLimitedIciConnectivity* has_limited_ici_connectivity;
  PJRT_TpuTopology_IsReachableOverLimitedIci* is_reachable_over_limited_ici;
  PJRT_TpuTopology_ProcessCount* process_count;
  PJRT_TpuTopology_ChipsPerProcess* chips_per_process;
  PJRT_TpuTopology_CoreCountPerChip* core_count_per_chip;
  PJRT_TpuTopology_ChipCount* chip_count;
  PJRT_TpuTopology_CoreCount* core_count;
  PJRT_TpuTopology_LogiDeviceCountPerProcess* logical_device_count_per_process;
  PJRT_TpuTopology_LogiDeviceCount* logical_device_count;
  PJRT_TpuTopology_LogiDeviceCountPerChip* logical_device_count_per_chip;
  PJRT_TpuTopology_CoreCountPerProcess* core_count_per_process;
  PJRT_TpuTopology_ProcessIds* process_ids;
  PJRT_TpuTopology_LogiDeviceIdsOnProcess* logical_device_ids_on_process;
  PJRT_TpuTopology_ProcIdAndIdxOnProcForChip* proc_id_and_idx_on_proc_for_chip;
  PJRT_TpuTopology_ProcIdAndIdxOnProcForLogiDevice* proc_id_and_idx_on_proc_for_logi_device;
  PJRT_TpuTopology_ProcessCoordFromId* process_coord_from_id;
  PJRT_TpuTopology_ChipIdFromCoord* chip_id_from_coord;
  PJRT_TpuTopology_LogiDeviceIdFromChipCoordAndIdx* logical_device_id_from_chip_coord_and_idx;
  PJRT_TpuTopology_ChipCoordAndIdxForLogiDevice* chip_coord_and_idx_for_logi_device;
  PJRT_TpuTopology_ChipsPerProcessBounds* chips_per_process_bounds;
  PJRT_TpuTopology_ChipBounds* chip_bounds;
  PJRT_TpuTopology_ProcessBounds* process_bounds;
  PJRT_TpuTopology_GetRoutingStrategy* get_routing_strategy;
  PJRT_TpuTopology_GetSliceConfig* get_slice_config;
  PJRT_TpuTopology_GetSliceConfigs* get_slice_configs;
  PJRT_TpuTopology_GetDefaultPlatformConfig* get_default_platform_config;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TpuTopology_Extension, get_default_platform_config);

#endif /* PJRT_EXTENSION_TPU_TOPOLOGY_H_ */
