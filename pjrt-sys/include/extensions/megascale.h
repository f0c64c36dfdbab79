/* Megascale: TPU slices joined over the data center network. Superseded by MultiSlice. */
#ifndef PJRT_EXTENSION_MEGASCALE_H_
#define PJRT_EXTENSION_MEGASCALE_H_

#include "../pjrt_c_api.h"

#define PJRT_API_MEGASCALE_EXTENSION_VERSION 1

/// A process's part in the network of slices.
typedef struct PJRT_Megascale_ClientContext PJRT_Megascale_ClientContext;
/// The configuration of several slices as one system.
typedef struct PJRT_Megascale_MultiSliceConfig PJRT_Megascale_MultiSliceConfig;
/// Owns the memory that is returned by PJRT_Megascale_MultiSliceConfig_GetNumDevicesPerSlice.
typedef struct PJRT_Megascale_NumDevicesPerSlice PJRT_Megascale_NumDevicesPerSlice;
/// Owns the memory that is returned by PJRT_Megascale_MultiSliceConfig_Serialize.
typedef struct PJRT_Megascale_SerializedConfig PJRT_Megascale_SerializedConfig;

/// Arguments of PJRT_Megascale_CreateClientContextFromPjRtClient.
struct PJRT_Megascale_CreateClientContextFromPjRtClient_Args {
  size_t struct_size;
  PJRT_Client* client;  ///< The client.
  PJRT_Megascale_ClientContext* client_context;  ///< Out: the context, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_CreateClientContextFromPjRtClient_Args, client_context);
/// Creates a context for a client.
typedef PJRT_Error* PJRT_Megascale_CreateClientContextFromPjRtClient(
    PJRT_Megascale_CreateClientContextFromPjRtClient_Args* args);

/// Arguments of PJRT_Megascale_CreateDefaultClientContext.
struct PJRT_Megascale_CreateDefaultClientContext_Args {
  size_t struct_size;
  PJRT_Megascale_ClientContext* client_context;  ///< Out: the context, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_CreateDefaultClientContext_Args, client_context);
/// Creates a context with default options.
typedef PJRT_Error* PJRT_Megascale_CreateDefaultClientContext(
    PJRT_Megascale_CreateDefaultClientContext_Args* args);

/// Arguments of PJRT_Megascale_DeleteClientContext.
struct PJRT_Megascale_DeleteClientContext_Args {
  size_t struct_size;
  PJRT_Megascale_ClientContext* client_context;  ///< The context.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_DeleteClientContext_Args, client_context);
/// Frees a context.
typedef PJRT_Error* PJRT_Megascale_DeleteClientContext(
    PJRT_Megascale_DeleteClientContext_Args* args);

/// Arguments of PJRT_Megascale_CreateAoTConfig.
struct PJRT_Megascale_CreateAoTConfig_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t num_slices;  ///< Number of slices.
  /// Out: the configuration, owned by the caller.
  PJRT_Megascale_MultiSliceConfig* multi_slice_config;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_CreateAoTConfig_Args, multi_slice_config);
/// Creates a configuration for ahead-of-time compilation.
typedef PJRT_Error* PJRT_Megascale_CreateAoTConfig(PJRT_Megascale_CreateAoTConfig_Args* args);

/// Arguments of PJRT_Megascale_CreateMultiSliceConfig.
struct PJRT_Megascale_CreateMultiSliceConfig_Args {
  size_t struct_size;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int32_t num_slices;  ///< Number of slices.
  int32_t local_slice_id;  ///< This process's slice.
  int32_t local_host_id;  ///< This process's host in its slice.
  const char* endpoint_addresses;  ///< A serialized `EndpointAddresses` proto.
  int32_t endpoint_addresses_size;  ///< Its length.
  const char* dcn_topology;  ///< A serialized `DCNTopology` proto.
  int32_t dcn_topology_size;  ///< Its length.
  PJRT_Megascale_ClientContext* client_context;  ///< The context.
  /// Out: the configuration, owned by the caller.
  PJRT_Megascale_MultiSliceConfig* multi_slice_config;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_CreateMultiSliceConfig_Args, multi_slice_config);
/// Creates a configuration for execution.
typedef PJRT_Error* PJRT_Megascale_CreateMultiSliceConfig(
    PJRT_Megascale_CreateMultiSliceConfig_Args* args);

/// Arguments of PJRT_Megascale_DeleteMultiSliceConfig.
struct PJRT_Megascale_DeleteMultiSliceConfig_Args {
  size_t struct_size;
  PJRT_Megascale_MultiSliceConfig* multi_slice_config;  ///< The configuration.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_DeleteMultiSliceConfig_Args, multi_slice_config);
/// Frees a configuration.
typedef PJRT_Error* PJRT_Megascale_DeleteMultiSliceConfig(
    PJRT_Megascale_DeleteMultiSliceConfig_Args* args);

/// Arguments of PJRT_Megascale_ClientContext_Initialize.
struct PJRT_Megascale_ClientContext_Initialize_Args {
  size_t struct_size;
  PJRT_Megascale_ClientContext* client_context;  ///< The context.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_ClientContext_Initialize_Args, client_context);
/// Starts a context.
typedef PJRT_Error* PJRT_Megascale_ClientContext_Initialize(
    PJRT_Megascale_ClientContext_Initialize_Args* args);

/// Arguments of PJRT_Megascale_ClientContext_UnblockPendingWork.
struct PJRT_Megascale_ClientContext_UnblockPendingWork_Args {
  size_t struct_size;
  PJRT_Megascale_ClientContext* client_context;  ///< The context.
  int32_t launch_id;  ///< The launch.
  int64_t expire_after_ms;  ///< The duration in milliseconds.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_ClientContext_UnblockPendingWork_Args, expire_after_ms);
/// Releases the work of a launch that waits for other slices.
typedef PJRT_Error* PJRT_Megascale_ClientContext_UnblockPendingWork(
    PJRT_Megascale_ClientContext_UnblockPendingWork_Args* args);

/// Arguments of PJRT_Megascale_ClientContext_MegascalePort.
struct PJRT_Megascale_ClientContext_MegascalePort_Args {
  size_t struct_size;
  PJRT_Megascale_ClientContext* client_context;  ///< The context.
  int32_t port;  ///< Out: the port.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_ClientContext_MegascalePort_Args, port);
/// Returns the port that the context listens on.
typedef PJRT_Error* PJRT_Megascale_ClientContext_MegascalePort(
    PJRT_Megascale_ClientContext_MegascalePort_Args* args);

/// Arguments of PJRT_Megascale_MultiSliceConfig_NumSlices.
struct PJRT_Megascale_MultiSliceConfig_NumSlices_Args {
  size_t struct_size;
  PJRT_Megascale_MultiSliceConfig* config;  ///< The configuration.
  int32_t num_slices;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_MultiSliceConfig_NumSlices_Args, num_slices);
/// Returns the number of slices.
typedef PJRT_Error* PJRT_Megascale_MultiSliceConfig_NumSlices(
    PJRT_Megascale_MultiSliceConfig_NumSlices_Args* args);

/// Arguments of PJRT_Megascale_MultiSliceConfig_SliceId.
struct PJRT_Megascale_MultiSliceConfig_SliceId_Args {
  size_t struct_size;
  PJRT_Megascale_MultiSliceConfig* config;  ///< The configuration.
  int32_t slice_id;  ///< Out: its id.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_MultiSliceConfig_SliceId_Args, slice_id);
/// Returns this process's slice.
typedef PJRT_Error* PJRT_Megascale_MultiSliceConfig_SliceId(
    PJRT_Megascale_MultiSliceConfig_SliceId_Args* args);

/// Arguments of PJRT_Megascale_MultiSliceConfig_GetNumDevicesPerSlice.
struct PJRT_Megascale_MultiSliceConfig_GetNumDevicesPerSlice_Args {
  size_t struct_size;
  PJRT_Megascale_MultiSliceConfig* config;  ///< The configuration.
  size_t num_devices_per_slice_map;  ///< Out: number of slices listed.
  const int32_t* slice_ids;  ///< Out: their ids.
  const int32_t* num_devices;  ///< Out: their numbers of devices.
  PJRT_Megascale_NumDevicesPerSlice* devices_per_slice_map_ptr;  ///< Out: owns the memory of the arrays.
  /// Out: frees the above; called exactly once.
  void (*devices_per_slice_map_deleter)(PJRT_Megascale_NumDevicesPerSlice* ptr);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_MultiSliceConfig_GetNumDevicesPerSlice_Args,
                          devices_per_slice_map_deleter);
/// Returns the number of devices of each slice.
typedef PJRT_Error* PJRT_Megascale_MultiSliceConfig_GetNumDevicesPerSlice(
    PJRT_Megascale_MultiSliceConfig_GetNumDevicesPerSlice_Args* args);

/// Arguments of PJRT_Megascale_MultiSliceConfig_Serialize.
struct PJRT_Megascale_MultiSliceConfig_Serialize_Args {
  size_t struct_size;
  PJRT_Megascale_MultiSliceConfig* config;  ///< The configuration.
  const char* serialized;  ///< Out: the bytes; they live until the deleter is called.
  size_t size;  ///< Out: their number.
  PJRT_Megascale_SerializedConfig* serialized_config_ptr;  ///< Out: owns the memory of `serialized`.
  /// Out: frees the above; called exactly once.
  void (*serialized_config_deleter)(PJRT_Megascale_SerializedConfig* ptr);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Megascale_MultiSliceConfig_Serialize_Args,
                          serialized_config_deleter);
/// Serializes a configuration.
typedef PJRT_Error* PJRT_Megascale_MultiSliceConfig_Serialize(
    PJRT_Megascale_MultiSliceConfig_Serialize_Args* args);

/// The Megascale extension.
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
