/* The client: creation, devices, compilation, buffer creation, key-value callbacks. */
#ifndef PJRT_CLIENT_H_
#define PJRT_CLIENT_H_

#include "event.h"
#include "plugin.h"
#include "types.h"

/// Frees a value that a get callback returned.
typedef void (*PJRT_KeyValueGetCallback_ValueDeleter)(char* value);

/// Arguments of PJRT_KeyValueGetCallback. The plugin is the caller here.
struct PJRT_KeyValueGetCallback_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* key;  ///< The key; borrowed for the call.
  size_t key_size;  ///< Length of `key`.
  int timeout_in_ms;  ///< The time to wait for the key to appear, in milliseconds.
  PJRT_CallbackError* callback_error;  ///< Creates the error to return.
  void* user_arg;  ///< The argument given at client creation.
  char* value;  ///< Out: the value. The plugin copies it, then frees it with the deleter.
  size_t value_size;  ///< Out: length of `value`.
  PJRT_KeyValueGetCallback_ValueDeleter value_deleter_callback;  ///< Out: frees `value`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_KeyValueGetCallback_Args, value_deleter_callback);
/// Reads a key of the store that all processes share; waits for it to appear. Thread-safe.
typedef PJRT_Error* (*PJRT_KeyValueGetCallback)(PJRT_KeyValueGetCallback_Args* args);

/// Frees a value that a try-get callback returned.
typedef void (*PJRT_KeyValueTryGetCallback_ValueDeleter)(char* value);

/// Arguments of PJRT_KeyValueTryGetCallback. The plugin is the caller here.
struct PJRT_KeyValueTryGetCallback_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* key;  ///< The key; borrowed for the call.
  size_t key_size;  ///< Length of `key`.
  PJRT_CallbackError* callback_error;  ///< Creates the error to return.
  void* user_arg;  ///< The argument given at client creation.
  char* value;  ///< Out: the value. The plugin copies it, then frees it with the deleter.
  size_t value_size;  ///< Out: length of `value`.
  PJRT_KeyValueTryGetCallback_ValueDeleter value_deleter_callback;  ///< Out: frees `value`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_KeyValueTryGetCallback_Args, value_deleter_callback);
/// The same as the get callback, but fails immediately with NOT_FOUND if the key does not exist. Thread-safe.
typedef PJRT_Error* (*PJRT_KeyValueTryGetCallback)(PJRT_KeyValueTryGetCallback_Args* args);

/// Arguments of PJRT_KeyValuePutCallback. The plugin is the caller here.
struct PJRT_KeyValuePutCallback_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* key;  ///< The key; borrowed for the call.
  size_t key_size;  ///< Length of `key`.
  const char* value;  ///< The value; borrowed for the call.
  size_t value_size;  ///< Length of `value`.
  PJRT_CallbackError* callback_error;  ///< Creates the error to return.
  void* user_arg;  ///< The argument given at client creation.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_KeyValuePutCallback_Args, user_arg);
/// Writes a key of the store that all processes share. Thread-safe.
typedef PJRT_Error* (*PJRT_KeyValuePutCallback)(PJRT_KeyValuePutCallback_Args* args);

/// Arguments of PJRT_Client_Create.
struct PJRT_Client_Create_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  /// Options of this platform, by name; borrowed for the call.
  const PJRT_NamedValue* create_options;
  size_t num_options;  ///< Number of `create_options`.
  PJRT_KeyValueGetCallback kv_get_callback;  ///< Reads the shared store, or null.
  void* kv_get_user_arg;  ///< Passed to `kv_get_callback`.
  PJRT_KeyValuePutCallback kv_put_callback;  ///< Writes the shared store, or null.
  void* kv_put_user_arg;  ///< Passed to `kv_put_callback`.
  PJRT_Client* client;  ///< Out: the client, owned by the caller.
  /// Reads the shared store without waiting, or null.
  PJRT_KeyValueTryGetCallback kv_try_get_callback;
  void* kv_try_get_user_arg;  ///< Passed to `kv_try_get_callback`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_Create_Args, kv_try_get_user_arg);
/// Creates a client. The callbacks may be called only when the options say that there are several
/// processes: hosts of a single process leave them uninitialized.
typedef PJRT_Error* PJRT_Client_Create(PJRT_Client_Create_Args* args);

/// Arguments of PJRT_Client_Destroy.
struct PJRT_Client_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_Destroy_Args, client);
/// Shuts a client down and frees it; null is allowed. Hosts may destroy buffers and executables after
/// it.
typedef PJRT_Error* PJRT_Client_Destroy(PJRT_Client_Destroy_Args* args);

/// Arguments of PJRT_Client_PlatformName.
struct PJRT_Client_PlatformName_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  const char* platform_name;  ///< Out: the name; lives as long as the object.
  size_t platform_name_size;  ///< Out: length of `platform_name`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_PlatformName_Args, platform_name_size);
/// Returns the name of the platform, such as `cpu` or `tpu`.
typedef PJRT_Error* PJRT_Client_PlatformName(PJRT_Client_PlatformName_Args* args);

/// Arguments of PJRT_Client_ProcessIndex.
struct PJRT_Client_ProcessIndex_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  int process_index;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_ProcessIndex_Args, process_index);
/// Returns this process's number; 0 if there is only one process.
typedef PJRT_Error* PJRT_Client_ProcessIndex(PJRT_Client_ProcessIndex_Args* args);

/// Arguments of PJRT_Client_PlatformVersion.
struct PJRT_Client_PlatformVersion_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  const char* platform_version;  ///< Out: the version text; lives as long as the object.
  size_t platform_version_size;  ///< Out: length of `platform_version`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_PlatformVersion_Args, platform_version_size);
/// Returns the platform's version as human-readable text; hosts put it into cache keys.
typedef PJRT_Error* PJRT_Client_PlatformVersion(PJRT_Client_PlatformVersion_Args* args);

/// Arguments of PJRT_Client_TopologyDescription.
struct PJRT_Client_TopologyDescription_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  PJRT_TopologyDescription* topology;  ///< Out: the topology, owned by the client.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_TopologyDescription_Args, topology);
/// Returns the topology that the client runs on.
typedef PJRT_Error* PJRT_Client_TopologyDescription(PJRT_Client_TopologyDescription_Args* args);

/// Arguments of PJRT_Client_Devices.
struct PJRT_Client_Devices_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  PJRT_Device* const* devices;  ///< Out: the devices; array and devices live as long as the client.
  size_t num_devices;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_Devices_Args, num_devices);
/// Lists all devices, including those of other processes.
typedef PJRT_Error* PJRT_Client_Devices(PJRT_Client_Devices_Args* args);

/// Arguments of PJRT_Client_AddressableDevices.
struct PJRT_Client_AddressableDevices_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  PJRT_Device* const* addressable_devices;  ///< Out: the devices; they live as long as the client.
  size_t num_addressable_devices;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_AddressableDevices_Args, num_addressable_devices);
/// Lists the devices that this process can drive: a subset of `PJRT_Client_Devices`, with the same
/// pointers.
typedef PJRT_Error* PJRT_Client_AddressableDevices(PJRT_Client_AddressableDevices_Args* args);

/// Arguments of PJRT_Client_LookupDevice.
struct PJRT_Client_LookupDevice_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  int id;  ///< The id that `PJRT_DeviceDescription_Id` returns.
  PJRT_Device* device;  ///< Out: the device, owned by the client.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_LookupDevice_Args, device);
/// Finds a device by its global id.
typedef PJRT_Error* PJRT_Client_LookupDevice(PJRT_Client_LookupDevice_Args* args);

/// Arguments of PJRT_Client_LookupAddressableDevice.
struct PJRT_Client_LookupAddressableDevice_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  int local_hardware_id;  ///< The id that `PJRT_Device_LocalHardwareId` returns.
  PJRT_Device* addressable_device;  ///< Out: the device, owned by the client.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_LookupAddressableDevice_Args, addressable_device);
/// Finds a device of this process by its hardware id.
typedef PJRT_Error* PJRT_Client_LookupAddressableDevice(
    PJRT_Client_LookupAddressableDevice_Args* args);

/// The state of a process of a distributed program.
typedef enum {
  PJRT_ProcessState_kUnspecified = 0,  ///< Not known.
  PJRT_ProcessState_kUninitialized = 1,  ///< Not started yet.
  PJRT_ProcessState_kDisconnected = 2,  ///< Not reachable.
  PJRT_ProcessState_kConnected = 3,  ///< Running.
  PJRT_ProcessState_kError = 4,  ///< Failed.
} PJRT_ProcessState;

/// One process of a distributed program.
struct PJRT_ProcessInfo {
  size_t struct_size;
  int task_id;  ///< Its number.
  uint64_t incarnation_id;  ///< Changes when the process restarts.
  PJRT_ProcessState state;  ///< Its state.
  int error_code;  ///< Its error, if `state` is the error state.
  /// A human-readable text; borrowed for the call, and meaningful only if the code is not OK.
  const char* error_message;
  size_t error_message_size;  ///< Length of `error_message`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ProcessInfo, error_message_size);

/// Arguments of PJRT_Client_UpdateGlobalProcessInfo.
struct PJRT_Client_UpdateGlobalProcessInfo_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  PJRT_ProcessInfo* process_infos;  ///< One per process; borrowed for the call.
  size_t num_process_infos;  ///< Their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_UpdateGlobalProcessInfo_Args, num_process_infos);
/// Informs a client of the states of all processes of its distributed program.
typedef PJRT_Error* PJRT_Client_UpdateGlobalProcessInfo(
    PJRT_Client_UpdateGlobalProcessInfo_Args* args);

/// Arguments of PJRT_Client_AddressableMemories.
struct PJRT_Client_AddressableMemories_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  PJRT_Memory* const* addressable_memories;  ///< Out: the memories; they live as long as the client.
  size_t num_addressable_memories;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_AddressableMemories_Args, num_addressable_memories);
/// Lists the memories that the client can transfer to and from.
typedef PJRT_Error* PJRT_Client_AddressableMemories(PJRT_Client_AddressableMemories_Args* args);

/// Arguments of PJRT_Client_Compile.
struct PJRT_Client_Compile_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  const PJRT_Program* program;  ///< The program; borrowed for the call.
  const char* compile_options;  ///< A serialized `CompileOptionsProto`; borrowed for the call.
  size_t compile_options_size;  ///< Length of `compile_options`.
  PJRT_LoadedExecutable* executable;  ///< Out: the loaded executable, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_Compile_Args, executable);
/// Compiles a program and loads it. Synchronous.
typedef PJRT_Error* PJRT_Client_Compile(PJRT_Client_Compile_Args* args);

/// Arguments of PJRT_Client_Load.
struct PJRT_Client_Load_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  PJRT_Executable* executable;  ///< The executable.
  const char* compile_options;  ///< A serialized `CompileOptionsProto`; borrowed for the call.
  size_t compile_options_size;  ///< Length of `compile_options`.
  PJRT_LoadedExecutable* loaded_executable;  ///< Out: the loaded executable, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_Load_Args, loaded_executable);
/// Loads a compiled executable onto the client's devices.
typedef PJRT_Error* PJRT_Client_Load(PJRT_Client_Load_Args* args);

/// Arguments of PJRT_Client_DefaultDeviceAssignment.
struct PJRT_Client_DefaultDeviceAssignment_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  int num_replicas;  ///< Number of replicas.
  int num_partitions;  ///< Number of partitions per replica.
  /// Length of `default_assignment`; at least replicas times partitions.
  size_t default_assignment_size;
  /// The caller's array; receives device ids, all partitions of replica 0 first.
  int* default_assignment;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_DefaultDeviceAssignment_Args, default_assignment);
/// Returns the default assignment of replicas and partitions to devices.
typedef PJRT_Error* PJRT_Client_DefaultDeviceAssignment(
    PJRT_Client_DefaultDeviceAssignment_Args* args);

/// Arguments of PJRT_Client_DmaMap.
struct PJRT_Client_DmaMap_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  void* data;  ///< Start of the memory; the caller keeps it until it is unmapped.
  size_t size;  ///< Its length in bytes.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_DmaMap_Args, size);
/// Pins host memory so that devices can read it directly.
typedef PJRT_Error* PJRT_Client_DmaMap(PJRT_Client_DmaMap_Args* args);

/// Arguments of PJRT_Client_DmaUnmap.
struct PJRT_Client_DmaUnmap_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  void* data;  ///< Start of the memory, as it was mapped.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_DmaUnmap_Args, data);
/// Unpins memory that `PJRT_Client_DmaMap` pinned.
typedef PJRT_Error* PJRT_Client_DmaUnmap(PJRT_Client_DmaUnmap_Args* args);

/// Arguments of PJRT_Client_CreateUninitializedBuffer.
struct PJRT_Client_CreateUninitializedBuffer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  const int64_t* shape_dims;  ///< The dimensions; borrowed for the call.
  size_t shape_num_dims;  ///< Number of dimensions.
  PJRT_Buffer_Type shape_element_type;  ///< The element type.
  PJRT_Buffer_MemoryLayout* shape_layout;  ///< The layout, or null for the default.
  PJRT_Device* device;  ///< The destination, if `memory` is null.
  PJRT_Memory* memory;  ///< The destination, or null for the device's default memory.
  PJRT_Buffer* buffer;  ///< Out: the buffer, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_CreateUninitializedBuffer_Args, buffer);
/// Creates a buffer whose content is undefined.
typedef PJRT_Error* PJRT_Client_CreateUninitializedBuffer(
    PJRT_Client_CreateUninitializedBuffer_Args* args);

/// Arguments of PJRT_Client_CreateErrorBuffer.
struct PJRT_Client_CreateErrorBuffer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  PJRT_Error_Code error_code;  ///< The error code, or OK.
  /// A human-readable text; borrowed for the call, and meaningful only if the code is not OK.
  const char* error_message;
  size_t error_message_size;  ///< Length of `error_message`.
  const int64_t* shape_dims;  ///< The dimensions; borrowed for the call.
  size_t shape_num_dims;  ///< Number of dimensions.
  PJRT_Buffer_Type shape_element_type;  ///< The element type.
  PJRT_Buffer_MemoryLayout* shape_layout;  ///< Deprecated in favor of `device_layout`.
  PJRT_Memory* memory;  ///< The memory in which the buffer would be.
  PJRT_Buffer* buffer;  ///< Out: the buffer, owned by the caller.
  /// Payloads to attach to the error, as named values; may be null.
  const PJRT_NamedValue* payload;
  size_t num_payload;  ///< Number of payloads.
  PJRT_Buffer_MemoryLayout* device_layout;  ///< The layout, or null for the default.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_CreateErrorBuffer_Args, device_layout);
/// Creates a buffer that has an error from the start; an execution that uses it fails with this error.
typedef PJRT_Error* PJRT_Client_CreateErrorBuffer(PJRT_Client_CreateErrorBuffer_Args* args);

/// Arguments of PJRT_Client_CreateAliasBuffer.
struct PJRT_Client_CreateAliasBuffer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  PJRT_Memory* memory;  ///< The memory of the later buffer.
  const int64_t* shape_dims;  ///< The dimensions; borrowed for the call.
  size_t shape_num_dims;  ///< Number of dimensions.
  PJRT_Buffer_Type shape_element_type;  ///< The element type.
  PJRT_Buffer_MemoryLayout* shape_layout;  ///< The layout, or null for the default.
  PJRT_Buffer* alias_buffer;  ///< Out: the buffer, pending until fulfilled; owned by the caller.
  /// Out: to be passed once to `PJRT_Client_FulfillAliasBuffer`.
  PJRT_FulfillAliasBufferCallback* fulfill_alias_buffer_cb;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_CreateAliasBuffer_Args, fulfill_alias_buffer_cb);
/// Creates a placeholder for a buffer that is created later.
typedef PJRT_Error* PJRT_Client_CreateAliasBuffer(PJRT_Client_CreateAliasBuffer_Args* args);

/// Arguments of PJRT_Client_FulfillAliasBuffer.
struct PJRT_Client_FulfillAliasBuffer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client; some hosts leave it unset.
  PJRT_Buffer* buffer;  ///< The real buffer, or null with an error.
  PJRT_Error_Code status_code;  ///< OK, or the error that the alias buffer gets.
  /// A human-readable text; borrowed for the call, and meaningful only if the code is not OK.
  const char* error_message;
  size_t error_message_size;  ///< Length of `error_message`.
  /// The handle that `PJRT_Client_CreateAliasBuffer` returned. It is consumed.
  PJRT_FulfillAliasBufferCallback* fulfill_alias_buffer_cb;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_FulfillAliasBuffer_Args, fulfill_alias_buffer_cb);
/// Binds an alias buffer to a real one, or to an error.
typedef PJRT_Error* PJRT_Client_FulfillAliasBuffer(PJRT_Client_FulfillAliasBuffer_Args* args);

/// Arguments of PJRT_Client_BufferFromHostBuffer.
struct PJRT_Client_BufferFromHostBuffer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  /// The host memory; if strides are negative, the first element rather than the lowest address.
  const void* data;
  PJRT_Buffer_Type type;  ///< The element type, of the host memory and of the buffer.
  const int64_t* dims;  ///< The dimensions; borrowed for the call.
  size_t num_dims;  ///< Number of dimensions.
  /// The byte stride of each dimension, or null for dense, row-major memory. May be negative.
  const int64_t* byte_strides;
  size_t num_byte_strides;  ///< Length of `byte_strides`: 0 or `num_dims`.
  PJRT_HostBufferSemantics host_buffer_semantics;  ///< The time for which `data` may be used.
  PJRT_Device* device;  ///< The destination, if `memory` is null.
  PJRT_Memory* memory;  ///< The destination, or null for the device's default memory.
  /// The buffer's layout, or null for dense and row-major; borrowed for the call.
  PJRT_Buffer_MemoryLayout* device_layout;
  PJRT_Event* done_with_host_buffer;  ///< Out: ready when `data` may be freed; owned by the caller.
  PJRT_Buffer* buffer;  ///< Out: the buffer, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_BufferFromHostBuffer_Args, buffer);
/// Creates a buffer from host memory. Asynchronous.
typedef PJRT_Error* PJRT_Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args* args);

/// Arguments of PJRT_Client_CreateViewOfDeviceBuffer.
struct PJRT_Client_CreateViewOfDeviceBuffer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  void* device_buffer_ptr;  ///< The memory.
  const int64_t* dims;  ///< The dimensions; borrowed for the call.
  size_t num_dims;  ///< Number of dimensions.
  PJRT_Buffer_Type element_type;  ///< The element type.
  PJRT_Buffer_MemoryLayout* layout;  ///< The layout, or null for the default.
  PJRT_Device* device;  ///< The device of the memory; ignored if `memory` is set. Deprecated.
  /// Called when the buffer no longer needs the memory, or null.
  void (*on_delete_callback)(void* device_buffer_ptr, void* user_arg);
  void* on_delete_callback_arg;  ///< Passed to the callback.
  intptr_t stream;  ///< A stream that produces the data, in the platform's representation, or 0.
  PJRT_Buffer* buffer;  ///< Out: the buffer, owned by the caller.
  PJRT_Memory* memory;  ///< The memory space, or null.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_CreateViewOfDeviceBuffer_Args, memory);
/// Creates a buffer in device memory that the plugin does not own.
typedef PJRT_Error* PJRT_Client_CreateViewOfDeviceBuffer(
    PJRT_Client_CreateViewOfDeviceBuffer_Args* args);

/// Arguments of PJRT_Client_CreateBuffersForAsyncHostToDevice.
struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  PJRT_ShapeSpec* shape_specs;  ///< The shapes of the buffers.
  size_t num_shape_specs;  ///< Their number.
  /// A layout per buffer, each or all null for the default.
  PJRT_Buffer_MemoryLayout** device_layouts;
  size_t num_device_layouts;  ///< Length of `device_layouts`: 0 or `num_shape_specs`.
  PJRT_Memory* memory;  ///< The memory of the buffers.
  /// Out: the manager, owned by the caller.
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, transfer_manager);
/// Creates buffers that are filled piece by piece, and the manager to fill them.
typedef PJRT_Error* PJRT_Client_CreateBuffersForAsyncHostToDevice(
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args* args);

#endif /* PJRT_CLIENT_H_ */
