/* Executables, compiled and loaded. */
#ifndef PJRT_EXECUTABLE_H_
#define PJRT_EXECUTABLE_H_

#include "plugin.h"
#include "types.h"

/// Arguments of PJRT_Executable_Destroy.
struct PJRT_Executable_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_Destroy_Args, executable);
/// Frees a compiled executable; null is allowed.
typedef PJRT_Error* PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args* args);

/// Arguments of PJRT_LoadedExecutable_Destroy.
struct PJRT_LoadedExecutable_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;  ///< The executable.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_LoadedExecutable_Destroy_Args, executable);
/// Deletes and frees a loaded executable; null is allowed. Executions in progress continue.
typedef PJRT_Error* PJRT_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args* args);

/// Arguments of PJRT_LoadedExecutable_GetExecutable.
struct PJRT_LoadedExecutable_GetExecutable_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* loaded_executable;  ///< The loaded executable.
  PJRT_Executable* executable;  ///< Out: the compiled executable, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_LoadedExecutable_GetExecutable_Args, executable);
/// Returns the compiled executable inside a loaded one.
typedef PJRT_Error* PJRT_LoadedExecutable_GetExecutable(
    PJRT_LoadedExecutable_GetExecutable_Args* args);

/// Arguments of PJRT_LoadedExecutable_GetDeviceAssignment.
struct PJRT_LoadedExecutable_GetDeviceAssignment_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;  ///< The executable.
  const char* serialized_bytes;  ///< Out: the bytes; they live until the deleter is called.
  size_t serialized_bytes_size;  ///< Out: length of `serialized_bytes`.
  PJRT_DeviceAssignmentSerialized* serialized_device_assignment;  ///< Out: owns the memory of `serialized_bytes`.
  /// Out: frees the above; called exactly once.
  void (*serialized_device_assignment_deleter)( PJRT_DeviceAssignmentSerialized* da);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_LoadedExecutable_GetDeviceAssignment_Args,
                          serialized_device_assignment_deleter);
/// Serializes the assignment of replicas and partitions to devices (`DeviceAssignmentProto`).
typedef PJRT_Error* PJRT_LoadedExecutable_GetDeviceAssignment(
    PJRT_LoadedExecutable_GetDeviceAssignment_Args* args);

/// Arguments of PJRT_Executable_Name.
struct PJRT_Executable_Name_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  const char* executable_name;  ///< Out: the name; lives as long as the executable.
  size_t executable_name_size;  ///< Out: length of `executable_name`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_Name_Args, executable_name_size);
/// Returns the program's name.
typedef PJRT_Error* PJRT_Executable_Name(PJRT_Executable_Name_Args* args);

/// Arguments of PJRT_Executable_NumReplicas.
struct PJRT_Executable_NumReplicas_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  size_t num_replicas;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_NumReplicas_Args, num_replicas);
/// Returns the number of replicas.
typedef PJRT_Error* PJRT_Executable_NumReplicas(PJRT_Executable_NumReplicas_Args* args);

/// Arguments of PJRT_Executable_NumPartitions.
struct PJRT_Executable_NumPartitions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  size_t num_partitions;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_NumPartitions_Args, num_partitions);
/// Returns the number of partitions.
typedef PJRT_Error* PJRT_Executable_NumPartitions(PJRT_Executable_NumPartitions_Args* args);

/// A device's place in a device assignment.
typedef struct PJRT_LogicalDeviceIds {
  int replica;  ///< The replica that it runs.
  int partition;  ///< The partition of the replica.
} PJRT_LogicalDeviceIds;

/// Arguments of PJRT_LoadedExecutable_AddressableDevices.
struct PJRT_LoadedExecutable_AddressableDevices_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;  ///< The executable.
  /// Out: the devices; the array lives as long as the executable.
  PJRT_Device* const* addressable_devices;
  size_t num_addressable_devices;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_LoadedExecutable_AddressableDevices_Args, num_addressable_devices);
/// Lists the devices of this process that the executable runs on.
typedef PJRT_Error* PJRT_LoadedExecutable_AddressableDevices(
    PJRT_LoadedExecutable_AddressableDevices_Args* args);

/// Arguments of PJRT_LoadedExecutable_AddressableDeviceLogicalIds.
struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;  ///< The executable.
  /// Out: one per device; the array lives as long as the executable.
  PJRT_LogicalDeviceIds* addressable_device_logical_ids;
  size_t num_addressable_device_logical_ids;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args,
                          num_addressable_device_logical_ids);
/// Lists the replica and the partition of each device of `PJRT_LoadedExecutable_AddressableDevices`, in the same order.
typedef PJRT_Error* PJRT_LoadedExecutable_AddressableDeviceLogicalIds(
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args* args);

/// Arguments of PJRT_Executable_OptimizedProgram.
struct PJRT_Executable_OptimizedProgram_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  /// The caller's struct; its format and size, and on the second call its code, are written.
  PJRT_Program* program;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_OptimizedProgram_Args, program);
/// Returns the program after the compiler's passes. Called twice: with a null `code` for the size, then
/// with a buffer of that size.
typedef PJRT_Error* PJRT_Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args* args);

/// Arguments of PJRT_LoadedExecutable_Delete.
struct PJRT_LoadedExecutable_Delete_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;  ///< The executable.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_LoadedExecutable_Delete_Args, executable);
/// Releases an executable's resources; only IsDeleted and Destroy are valid afterwards.
typedef PJRT_Error* PJRT_LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args* args);

/// Arguments of PJRT_LoadedExecutable_IsDeleted.
struct PJRT_LoadedExecutable_IsDeleted_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;  ///< The executable.
  bool is_deleted;  ///< Out: the result.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_LoadedExecutable_IsDeleted_Args, is_deleted);
/// Returns whether `PJRT_LoadedExecutable_Delete` was called.
typedef PJRT_Error* PJRT_LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args* args);

/// Arguments of PJRT_Executable_NumOutputs.
struct PJRT_Executable_NumOutputs_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  size_t num_outputs;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_NumOutputs_Args, num_outputs);
/// Returns the number of outputs per device.
typedef PJRT_Error* PJRT_Executable_NumOutputs(PJRT_Executable_NumOutputs_Args* args);

/// Arguments of PJRT_Executable_SizeOfGeneratedCodeInBytes.
struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  int64_t size_in_bytes;  ///< Out: the number of bytes.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, size_in_bytes);
/// Returns the size of the machine code.
typedef PJRT_Error* PJRT_Executable_SizeOfGeneratedCodeInBytes(
    PJRT_Executable_SizeOfGeneratedCodeInBytes_Args* args);

/// Arguments of PJRT_Executable_Fingerprint.
struct PJRT_Executable_Fingerprint_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  const char* executable_fingerprint;  ///< Out: the text; lives as long as the executable.
  size_t executable_fingerprint_size;  ///< Out: its length.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_Fingerprint_Args, executable_fingerprint_size);
/// Returns a text that is equal for executables compiled from equal inputs.
typedef PJRT_Error* PJRT_Executable_Fingerprint(PJRT_Executable_Fingerprint_Args* args);

/// Arguments of PJRT_Executable_GetCostAnalysis.
struct PJRT_Executable_GetCostAnalysis_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  size_t num_properties;  ///< Out: their number.
  const PJRT_NamedValue* properties;  ///< Out: the estimates; they live as long as the executable.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_GetCostAnalysis_Args, properties);
/// Returns estimates, such as `flops` and `bytes accessed`.
typedef PJRT_Error* PJRT_Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args* args);

/// Arguments of PJRT_Executable_GetCompiledMemoryStats.
struct PJRT_Executable_GetCompiledMemoryStats_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  int64_t generated_code_size_in_bytes;  ///< Out: machine code.
  int64_t argument_size_in_bytes;  ///< Out: arguments.
  int64_t output_size_in_bytes;  ///< Out: outputs.
  int64_t alias_size_in_bytes;  ///< Out: arguments that outputs reuse.
  int64_t temp_size_in_bytes;  ///< Out: temporaries.
  int64_t host_generated_code_size_in_bytes;  ///< Out: machine code.
  int64_t host_argument_size_in_bytes;  ///< Out: arguments.
  int64_t host_output_size_in_bytes;  ///< Out: outputs.
  int64_t host_alias_size_in_bytes;  ///< Out: arguments that outputs reuse.
  int64_t host_temp_size_in_bytes;  ///< Out: temporaries.
  int64_t peak_memory_in_bytes;  ///< Out: the peak of used memory.
  int64_t total_size_in_bytes;  ///< Out: all device memory together.
  int64_t total_allocation_bytes;  ///< Out: all allocations together.
  /// Out: bytes in indefinite allocations, as XLA counts them.
  int64_t indefinite_allocations;
  int64_t peak_unpadded_heap_bytes;  ///< Out: the peak of temporaries without padding.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_GetCompiledMemoryStats_Args, peak_unpadded_heap_bytes);
/// Estimates the memory that running the executable takes, in bytes: in device memory, and with the
/// prefix `host_` in host memory.
typedef PJRT_Error* PJRT_Executable_GetCompiledMemoryStats(
    PJRT_Executable_GetCompiledMemoryStats_Args* args);

/// Arguments of PJRT_Executable_OutputElementTypes.
struct PJRT_Executable_OutputElementTypes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  PJRT_Buffer_Type* output_types;  ///< Out: one per output; lives as long as the executable.
  size_t num_output_types;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_OutputElementTypes_Args, num_output_types);
/// Lists the element types of the outputs.
typedef PJRT_Error* PJRT_Executable_OutputElementTypes(
    PJRT_Executable_OutputElementTypes_Args* args);

/// Arguments of PJRT_Executable_OutputDimensions.
struct PJRT_Executable_OutputDimensions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  size_t num_outputs;  ///< Out: number of outputs.
  /// Out: the dimensions of all outputs, one after the other; lives as long as the executable.
  const int64_t* dims;
  /// Out: the number of `dims` of each output; lives as long as the executable.
  const size_t* dim_sizes;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_OutputDimensions_Args, dim_sizes);
/// Lists the dimensions of the outputs.
typedef PJRT_Error* PJRT_Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args* args);

/// Arguments of PJRT_Executable_ParameterMemoryKinds.
struct PJRT_Executable_ParameterMemoryKinds_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  size_t num_parameters;  ///< Out: number of parameters.
  /// Out: one text per parameter; lives as long as the executable.
  const char* const* memory_kinds;
  const size_t* memory_kind_sizes;  ///< Out: their lengths.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_ParameterMemoryKinds_Args, memory_kind_sizes);
/// Lists the memory kinds of the parameters.
typedef PJRT_Error* PJRT_Executable_ParameterMemoryKinds(
    PJRT_Executable_ParameterMemoryKinds_Args* args);

/// Arguments of PJRT_Executable_OutputMemoryKinds.
struct PJRT_Executable_OutputMemoryKinds_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  size_t num_outputs;  ///< Out: number of outputs.
  const char* const* memory_kinds;  ///< Out: one text per output; lives as long as the executable.
  const size_t* memory_kind_sizes;  ///< Out: their lengths.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_OutputMemoryKinds_Args, memory_kind_sizes);
/// Lists the memory kinds of the outputs.
typedef PJRT_Error* PJRT_Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args* args);

/// Arguments of PJRT_Executable_Serialize.
struct PJRT_Executable_Serialize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Executable* executable;  ///< The executable.
  const char* serialized_bytes;  ///< Out: the bytes; they live until the deleter is called.
  size_t serialized_bytes_size;  ///< Out: length of `serialized_bytes`.
  PJRT_SerializedExecutable* serialized_executable;  ///< Out: owns the memory of `serialized_bytes`.
  /// Out: frees the above; called exactly once.
  void (*serialized_executable_deleter)( PJRT_SerializedExecutable* exec);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_Serialize_Args, serialized_executable_deleter);
/// Serializes an executable in the plugin's own format, for `PJRT_Executable_DeserializeAndLoad`.
typedef PJRT_Error* PJRT_Executable_Serialize(PJRT_Executable_Serialize_Args* args);

/// Arguments of PJRT_Executable_GetCompileOptions.
struct PJRT_Executable_GetCompileOptions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  const char* serialized_bytes;  ///< Out: the bytes; they live until the deleter is called.
  size_t serialized_bytes_size;  ///< Out: length of `serialized_bytes`.
  PJRT_SerializedCompileOptions* serialized_compile_options;  ///< Out: owns the memory of `serialized_bytes`.
  /// Out: frees the above; called exactly once.
  void (*serialized_compile_options_deleter)( PJRT_SerializedCompileOptions* options);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_GetCompileOptions_Args,
                          serialized_compile_options_deleter);
/// Serializes the `CompileOptionsProto` that the executable was compiled with.
typedef PJRT_Error* PJRT_Executable_GetCompileOptions(PJRT_Executable_GetCompileOptions_Args* args);

/// The options for loading a serialized executable.
struct PJRT_LoadOptions {
  size_t struct_size;
  /// The coordinates in the topology at which to load; may be null.
  const int32_t* computation_origin;
  size_t computation_origin_size;  ///< Number of coordinates.
  PJRT_MultiSlice_Config* multi_slice_config;  ///< The configuration of the slices, or null.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_LoadOptions, multi_slice_config);

/// Arguments of PJRT_Executable_DeserializeAndLoad.
struct PJRT_Executable_DeserializeAndLoad_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  const char* serialized_executable;  ///< The bytes; borrowed for the call.
  size_t serialized_executable_size;  ///< Their length.
  PJRT_LoadedExecutable* loaded_executable;  ///< Out: the executable, owned by the caller.
  /// A `CompileOptionsProto` to use in place of the stored one, or null.
  const char* overridden_serialized_compile_options;
  size_t overridden_serialized_compile_options_size;  ///< Its length.
  PJRT_LoadOptions* load_options;  ///< The options for loading, or null.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_DeserializeAndLoad_Args, load_options);
/// Loads the bytes that `PJRT_Executable_Serialize` returned, on the same platform and version.
typedef PJRT_Error* PJRT_Executable_DeserializeAndLoad(
    PJRT_Executable_DeserializeAndLoad_Args* args);

/// Arguments of PJRT_LoadedExecutable_Fingerprint.
struct PJRT_LoadedExecutable_Fingerprint_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;  ///< The executable.
  const char* executable_fingerprint;  ///< Out: the text; lives as long as the executable.
  size_t executable_fingerprint_size;  ///< Out: its length.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_LoadedExecutable_Fingerprint_Args, executable_fingerprint_size);
/// Deprecated in favor of `PJRT_Executable_Fingerprint`.
typedef PJRT_Error* PJRT_LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args* args);

#endif /* PJRT_EXECUTABLE_H_ */
