/* MultiSlice: how several slices form one system. */
#ifndef PJRT_EXTENSION_MULTI_SLICE_H_
#define PJRT_EXTENSION_MULTI_SLICE_H_

#include "../pjrt_c_api.h"

#define PJRT_API_MULTI_SLICE_EXTENSION_VERSION 1

typedef struct PJRT_MultiSlice_NumDevicesPerSlice PJRT_MultiSlice_NumDevicesPerSlice;
typedef struct PJRT_MultiSlice_SerializedConfig PJRT_MultiSlice_SerializedConfig;

struct PJRT_MultiSlice_Config_Destroy_Args {
  size_t struct_size;
  PJRT_MultiSlice_Config* config;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MultiSlice_Config_Destroy_Args, config);
typedef PJRT_Error* PJRT_MultiSlice_Config_Destroy(PJRT_MultiSlice_Config_Destroy_Args* args);

struct PJRT_MultiSlice_Config_NumSlices_Args {
  size_t struct_size;
  PJRT_MultiSlice_Config* config;
  int32_t num_slices;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MultiSlice_Config_NumSlices_Args, num_slices);
typedef PJRT_Error* PJRT_MultiSlice_Config_NumSlices(PJRT_MultiSlice_Config_NumSlices_Args* args);

struct PJRT_MultiSlice_Config_SliceId_Args {
  size_t struct_size;
  PJRT_MultiSlice_Config* config;
  int32_t slice_id;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MultiSlice_Config_SliceId_Args, slice_id);
typedef PJRT_Error* PJRT_MultiSlice_Config_SliceId(PJRT_MultiSlice_Config_SliceId_Args* args);

struct PJRT_MultiSlice_Config_NumDevicesPerSlice_Args {
  size_t struct_size;
  PJRT_MultiSlice_Config* config;
  size_t num_devices_per_slice_map;
  const int32_t* slice_ids;
  const int32_t* num_devices;
  PJRT_MultiSlice_NumDevicesPerSlice* devices_per_slice_map;
  void (*devices_per_slice_map_deleter)( PJRT_MultiSlice_NumDevicesPerSlice* ptr);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MultiSlice_Config_NumDevicesPerSlice_Args,
                          devices_per_slice_map_deleter);
typedef PJRT_Error* PJRT_MultiSlice_Config_NumDevicesPerSlice(
    PJRT_MultiSlice_Config_NumDevicesPerSlice_Args* args);

struct PJRT_MultiSlice_Config_Serialize_Args {
  size_t struct_size;
  PJRT_MultiSlice_Config* config;
  const char* serialized;
  size_t size;
  PJRT_MultiSlice_SerializedConfig* serialized_config;
  void (*serialized_config_deleter)( PJRT_MultiSlice_SerializedConfig* ptr);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MultiSlice_Config_Serialize_Args, serialized_config_deleter);
typedef PJRT_Error* PJRT_MultiSlice_Config_Serialize(PJRT_MultiSlice_Config_Serialize_Args* args);

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
