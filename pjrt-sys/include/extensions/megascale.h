/* Megascale: TPU slices joined over the data centre network. Superseded by MultiSlice. */
#ifndef PJRT_EXTENSION_MEGASCALE_H_
#define PJRT_EXTENSION_MEGASCALE_H_

#include "../pjrt_c_api.h"

#define PJRT_API_MEGASCALE_EXTENSION_VERSION 1

typedef struct PJRT_Megascale_ClientContext PJRT_Megascale_ClientContext;
typedef struct PJRT_Megascale_MultiSliceConfig PJRT_Megascale_MultiSliceConfig;
typedef struct PJRT_Megascale_NumDevicesPerSlice PJRT_Megascale_NumDevicesPerSlice;
typedef struct PJRT_Megascale_SerializedConfig PJRT_Megascale_SerializedConfig;

struct PJRT_Megascale_CreateClientContextFromPjRtClient_Args {
  size_t struct_size;
  PJRT_Client* client;
  PJRT_Megascale_ClientContext* client_context;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_CreateClientContextFromPjRtClient_Args, client_context);
typedef PJRT_Error* PJRT_Megascale_CreateClientContextFromPjRtClient(
    PJRT_Megascale_CreateClientContextFromPjRtClient_Args* args);

struct PJRT_Megascale_CreateDefaultClientContext_Args {
  size_t struct_size;
  PJRT_Megascale_ClientContext* client_context;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_CreateDefaultClientContext_Args, client_context);
typedef PJRT_Error* PJRT_Megascale_CreateDefaultClientContext(
    PJRT_Megascale_CreateDefaultClientContext_Args* args);

struct PJRT_Megascale_DeleteClientContext_Args {
  size_t struct_size;
  PJRT_Megascale_ClientContext* client_context;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_DeleteClientContext_Args, client_context);
typedef PJRT_Error* PJRT_Megascale_DeleteClientContext(PJRT_Megascale_DeleteClientContext_Args*
    args);

struct PJRT_Megascale_CreateAoTConfig_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;
  int32_t num_slices;
  PJRT_Megascale_MultiSliceConfig* multi_slice_config;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_CreateAoTConfig_Args, multi_slice_config);
typedef PJRT_Error* PJRT_Megascale_CreateAoTConfig(PJRT_Megascale_CreateAoTConfig_Args* args);

struct PJRT_Megascale_CreateMultiSliceConfig_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;
  int32_t num_slices;
  int32_t local_slice_id;
  int32_t local_host_id;
  const char* endpoint_addresses;
  int32_t endpoint_addresses_size;
  const char* dcn_topology;
  int32_t dcn_topology_size;
  PJRT_Megascale_ClientContext* client_context;
  PJRT_Megascale_MultiSliceConfig* multi_slice_config;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_CreateMultiSliceConfig_Args, multi_slice_config);
typedef PJRT_Error* PJRT_Megascale_CreateMultiSliceConfig(
    PJRT_Megascale_CreateMultiSliceConfig_Args* args);

struct PJRT_Megascale_DeleteMultiSliceConfig_Args {
  size_t struct_size;
  PJRT_Megascale_MultiSliceConfig* multi_slice_config;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_DeleteMultiSliceConfig_Args, multi_slice_config);
typedef PJRT_Error* PJRT_Megascale_DeleteMultiSliceConfig(
    PJRT_Megascale_DeleteMultiSliceConfig_Args* args);

struct PJRT_Megascale_ClientContext_Initialize_Args {
  size_t struct_size;
  PJRT_Megascale_ClientContext* client_context;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_ClientContext_Initialize_Args, client_context);
typedef PJRT_Error* PJRT_Megascale_ClientContext_Initialize(
    PJRT_Megascale_ClientContext_Initialize_Args* args);

struct PJRT_Megascale_ClientContext_UnblockPendingWork_Args {
  size_t struct_size;
  PJRT_Megascale_ClientContext* client_context;
  int32_t launch_id;
  int64_t expire_after_ms;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_ClientContext_UnblockPendingWork_Args, expire_after_ms);
typedef PJRT_Error* PJRT_Megascale_ClientContext_UnblockPendingWork(
    PJRT_Megascale_ClientContext_UnblockPendingWork_Args* args);

struct PJRT_Megascale_ClientContext_MegascalePort_Args {
  size_t struct_size;
  PJRT_Megascale_ClientContext* client_context;
  int32_t port;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_ClientContext_MegascalePort_Args, port);
typedef PJRT_Error* PJRT_Megascale_ClientContext_MegascalePort(
    PJRT_Megascale_ClientContext_MegascalePort_Args* args);

struct PJRT_Megascale_MultiSliceConfig_NumSlices_Args {
  size_t struct_size;
  PJRT_Megascale_MultiSliceConfig* config;
  int32_t num_slices;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_MultiSliceConfig_NumSlices_Args, num_slices);
typedef PJRT_Error* PJRT_Megascale_MultiSliceConfig_NumSlices(
    PJRT_Megascale_MultiSliceConfig_NumSlices_Args* args);

struct PJRT_Megascale_MultiSliceConfig_SliceId_Args {
  size_t struct_size;
  PJRT_Megascale_MultiSliceConfig* config;
  int32_t slice_id;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_MultiSliceConfig_SliceId_Args, slice_id);
typedef PJRT_Error* PJRT_Megascale_MultiSliceConfig_SliceId(
    PJRT_Megascale_MultiSliceConfig_SliceId_Args* args);

struct PJRT_Megascale_MultiSliceConfig_GetNumDevicesPerSlice_Args {
  size_t struct_size;
  PJRT_Megascale_MultiSliceConfig* config;
  size_t num_devices_per_slice_map;
  const int32_t* slice_ids;
  const int32_t* num_devices;
  PJRT_Megascale_NumDevicesPerSlice* devices_per_slice_map_ptr;
  void (*devices_per_slice_map_deleter)(PJRT_Megascale_NumDevicesPerSlice* ptr);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_MultiSliceConfig_GetNumDevicesPerSlice_Args,
                          devices_per_slice_map_deleter);
typedef PJRT_Error* PJRT_Megascale_MultiSliceConfig_GetNumDevicesPerSlice(
    PJRT_Megascale_MultiSliceConfig_GetNumDevicesPerSlice_Args* args);

struct PJRT_Megascale_MultiSliceConfig_Serialize_Args {
  size_t struct_size;
  PJRT_Megascale_MultiSliceConfig* config;
  const char* serialized;
  size_t size;
  PJRT_Megascale_SerializedConfig* serialized_config_ptr;
  void (*serialized_config_deleter)(PJRT_Megascale_SerializedConfig* ptr);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_MultiSliceConfig_Serialize_Args,
                          serialized_config_deleter);
typedef PJRT_Error* PJRT_Megascale_MultiSliceConfig_Serialize(
    PJRT_Megascale_MultiSliceConfig_Serialize_Args* args);

struct PJRT_Megascale_Extension {
  PJRT_Extension_Base base;
  PJRT_Megascale_CreateClientContextFromPjRtClient* create_client_context_from_pjrt_client;
  PJRT_Megascale_CreateDefaultClientContext* create_default_client_context;
  PJRT_Megascale_DeleteClientContext* delete_client_context;
  PJRT_Megascale_CreateAoTConfig* create_aot_config;
  PJRT_Megascale_CreateMultiSliceConfig* create_multi_slice_config;
  PJRT_Megascale_DeleteMultiSliceConfig* delete_multi_slice_config;
  PJRT_Megascale_MultiSliceConfig_NumSlices* multi_slice_config_num_slices;
  PJRT_Megascale_MultiSliceConfig_SliceId* multi_slice_config_slice_id;
  PJRT_Megascale_MultiSliceConfig_GetNumDevicesPerSlice*
      multi_slice_config_get_num_devices_per_slice;
  PJRT_Megascale_MultiSliceConfig_Serialize* multi_slice_config_serialize;
  PJRT_Megascale_ClientContext_Initialize* client_context_initialize;
  PJRT_Megascale_ClientContext_UnblockPendingWork* client_context_unblock_pending_work;
  PJRT_Megascale_ClientContext_MegascalePort* client_context_megascale_port;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_Extension, client_context_megascale_port);

#endif /* PJRT_EXTENSION_MEGASCALE_H_ */
