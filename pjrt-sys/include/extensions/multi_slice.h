/* MultiSlice: the configuration of several slices as one system. */
#ifndef PJRT_EXTENSION_MULTI_SLICE_H_
#define PJRT_EXTENSION_MULTI_SLICE_H_

#include "../pjrt_c_api.h"

#define PJRT_API_MULTI_SLICE_EXTENSION_VERSION 1

/// Owns the memory that is returned by PJRT_MultiSlice_Config_NumDevicesPerSlice.
typedef struct PJRT_MultiSlice_NumDevicesPerSlice PJRT_MultiSlice_NumDevicesPerSlice;
/// Owns the memory that is returned by PJRT_MultiSlice_Config_Serialize.
typedef struct PJRT_MultiSlice_SerializedConfig PJRT_MultiSlice_SerializedConfig;

/// Arguments of PJRT_MultiSlice_Config_Destroy.
struct PJRT_MultiSlice_Config_Destroy_Args {
  size_t struct_size;
  PJRT_MultiSlice_Config* config;  ///< The configuration.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MultiSlice_Config_Destroy_Args, config);
/// Frees a configuration.
typedef PJRT_Error* PJRT_MultiSlice_Config_Destroy(PJRT_MultiSlice_Config_Destroy_Args* args);

/// Arguments of PJRT_MultiSlice_Config_NumSlices.
struct PJRT_MultiSlice_Config_NumSlices_Args {
  size_t struct_size;
  PJRT_MultiSlice_Config* config;  ///< The configuration.
  int32_t num_slices;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MultiSlice_Config_NumSlices_Args, num_slices);
/// Returns the number of slices.
typedef PJRT_Error* PJRT_MultiSlice_Config_NumSlices(PJRT_MultiSlice_Config_NumSlices_Args* args);

/// Arguments of PJRT_MultiSlice_Config_SliceId.
struct PJRT_MultiSlice_Config_SliceId_Args {
  size_t struct_size;
  PJRT_MultiSlice_Config* config;  ///< The configuration.
  int32_t slice_id;  ///< Out: its id.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MultiSlice_Config_SliceId_Args, slice_id);
/// Returns this process's slice.
typedef PJRT_Error* PJRT_MultiSlice_Config_SliceId(PJRT_MultiSlice_Config_SliceId_Args* args);

/// Arguments of PJRT_MultiSlice_Config_NumDevicesPerSlice.
struct PJRT_MultiSlice_Config_NumDevicesPerSlice_Args {
  size_t struct_size;
  PJRT_MultiSlice_Config* config;  ///< The configuration.
  size_t num_devices_per_slice_map;  ///< Out: number of slices listed.
  const int32_t* slice_ids;  ///< Out: their ids.
  const int32_t* num_devices;  ///< Out: their numbers of devices.
  PJRT_MultiSlice_NumDevicesPerSlice* devices_per_slice_map;  ///< Out: owns the memory of the arrays.
  /// Out: frees the above; called exactly once.
  void (*devices_per_slice_map_deleter)( PJRT_MultiSlice_NumDevicesPerSlice* ptr);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MultiSlice_Config_NumDevicesPerSlice_Args,
                          devices_per_slice_map_deleter);
/// Returns the number of devices of each slice.
typedef PJRT_Error* PJRT_MultiSlice_Config_NumDevicesPerSlice(
    PJRT_MultiSlice_Config_NumDevicesPerSlice_Args* args);

/// Arguments of PJRT_MultiSlice_Config_Serialize.
struct PJRT_MultiSlice_Config_Serialize_Args {
  size_t struct_size;
  PJRT_MultiSlice_Config* config;  ///< The configuration.
  const char* serialized;  ///< Out: the bytes; they live until the deleter is called.
  size_t size;  ///< Out: their number.
  PJRT_MultiSlice_SerializedConfig* serialized_config;  ///< Out: owns the memory of `serialized`.
  /// Out: frees the above; called exactly once.
  void (*serialized_config_deleter)( PJRT_MultiSlice_SerializedConfig* ptr);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MultiSlice_Config_Serialize_Args, serialized_config_deleter);
/// Serializes a configuration.
typedef PJRT_Error* PJRT_MultiSlice_Config_Serialize(PJRT_MultiSlice_Config_Serialize_Args* args);

/// The MultiSlice extension.
struct PJRT_MultiSlice_Extension {
  PJRT_Extension_Base base;
  PJRT_MultiSlice_Config_Destroy* config_destroy;
  PJRT_MultiSlice_Config_NumSlices* config_num_slices;
  PJRT_MultiSlice_Config_SliceId* config_slice_id;
  PJRT_MultiSlice_Config_NumDevicesPerSlice* config_num_devices_per_slice;
  PJRT_MultiSlice_Config_Serialize* config_serialize;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MultiSlice_Extension, config_serialize);

#endif /* PJRT_EXTENSION_MULTI_SLICE_H_ */
