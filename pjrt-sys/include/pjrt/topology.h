/* Topologies: devices described without a client, and compilation for them. */
#ifndef PJRT_TOPOLOGY_H_
#define PJRT_TOPOLOGY_H_

#include "plugin.h"
#include "types.h"

/// Arguments of PJRT_TopologyDescription_Create.
struct PJRT_TopologyDescription_Create_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* topology_name;  ///< The name; borrowed for the call.
  size_t topology_name_size;  ///< Length of `topology_name`.
  /// Options of this platform, by name; borrowed for the call.
  const PJRT_NamedValue* create_options;
  size_t num_options;  ///< Number of `create_options`.
  PJRT_TopologyDescription* topology;  ///< Out: the topology, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TopologyDescription_Create_Args, topology);
/// Describes a topology by name, without a client.
typedef PJRT_Error* PJRT_TopologyDescription_Create(PJRT_TopologyDescription_Create_Args* args);

/// Arguments of PJRT_TopologyDescription_Destroy.
struct PJRT_TopologyDescription_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;  ///< The topology.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TopologyDescription_Destroy_Args, topology);
/// Frees a topology that the caller owns; null is allowed.
typedef PJRT_Error* PJRT_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args* args);

/// Arguments of PJRT_TopologyDescription_PlatformVersion.
struct PJRT_TopologyDescription_PlatformVersion_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;  ///< The topology.
  const char* platform_version;  ///< Out: the version text; lives as long as the object.
  size_t platform_version_size;  ///< Out: length of `platform_version`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TopologyDescription_PlatformVersion_Args, platform_version_size);
/// Returns the platform's version as human-readable text.
typedef PJRT_Error* PJRT_TopologyDescription_PlatformVersion(
    PJRT_TopologyDescription_PlatformVersion_Args* args);

/// Arguments of PJRT_TopologyDescription_PlatformName.
struct PJRT_TopologyDescription_PlatformName_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  const char* platform_name;  ///< Out: the name; lives as long as the object.
  size_t platform_name_size;  ///< Out: length of `platform_name`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TopologyDescription_PlatformName_Args, platform_name_size);
/// Returns the name of the platform.
typedef PJRT_Error* PJRT_TopologyDescription_PlatformName(
    PJRT_TopologyDescription_PlatformName_Args* args);

/// Arguments of PJRT_TopologyDescription_GetDeviceDescriptions.
struct PJRT_TopologyDescription_GetDeviceDescriptions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  /// Out: the descriptions; they live as long as the topology.
  PJRT_DeviceDescription* const* descriptions;
  size_t num_descriptions;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions);
/// Lists the devices, always in the same order.
typedef PJRT_Error* PJRT_TopologyDescription_GetDeviceDescriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args* args);

/// Arguments of PJRT_TopologyDescription_Serialize.
struct PJRT_TopologyDescription_Serialize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;  ///< The topology.
  const char* serialized_bytes;  ///< Out: the bytes; they live until the deleter is called.
  size_t serialized_bytes_size;  ///< Out: length of `serialized_bytes`.
  PJRT_SerializedTopology* serialized_topology;  ///< Out: owns the memory of `serialized_bytes`.
  /// Out: frees the above; called exactly once.
  void (*serialized_topology_deleter)( PJRT_SerializedTopology* serialized_topology);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TopologyDescription_Serialize_Args, serialized_topology_deleter);
/// Serializes a topology, also for cache keys: equal topologies give equal bytes.
typedef PJRT_Error* PJRT_TopologyDescription_Serialize(
    PJRT_TopologyDescription_Serialize_Args* args);

/// Arguments of PJRT_TopologyDescription_Deserialize.
struct PJRT_TopologyDescription_Deserialize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* serialized_topology;  ///< The bytes; borrowed for the call.
  size_t serialized_topology_size;  ///< Their length.
  PJRT_TopologyDescription* topology;  ///< Out: the topology, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TopologyDescription_Deserialize_Args, topology);
/// Deserializes the bytes that `PJRT_TopologyDescription_Serialize` returned.
typedef PJRT_Error* PJRT_TopologyDescription_Deserialize(
    PJRT_TopologyDescription_Deserialize_Args* args);

/// Arguments of PJRT_TopologyDescription_Attributes.
struct PJRT_TopologyDescription_Attributes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;  ///< The topology.
  const PJRT_NamedValue* attributes;  ///< Out: the attributes; they live as long as the topology.
  size_t num_attributes;  ///< Out: number of attributes.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TopologyDescription_Attributes_Args, num_attributes);
/// Returns the attributes of the topology.
typedef PJRT_Error* PJRT_TopologyDescription_Attributes(
    PJRT_TopologyDescription_Attributes_Args* args);

/// Arguments of PJRT_TopologyDescription_Fingerprint.
struct PJRT_TopologyDescription_Fingerprint_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  uint64_t fingerprint;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TopologyDescription_Fingerprint_Args, fingerprint);
/// Returns a number that is equal for equal topologies.
typedef PJRT_Error* PJRT_TopologyDescription_Fingerprint(
    PJRT_TopologyDescription_Fingerprint_Args* args);

/// Arguments of PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace.
struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  int memory_space_kind_id;  ///< The memory kind's number.
  const int64_t* dims;  ///< The dimensions; borrowed for the call.
  size_t num_dims;  ///< Number of dimensions.
  PJRT_Buffer_Type element_type;  ///< The element type.
  const PJRT_Buffer_MemoryLayout* layout;  ///< The requested layout, or null.
  /// Out: a serialized `ShapeProto`; lives until the deleter is called.
  const char* serialized_shape;
  size_t serialized_shape_size;  ///< Out: its length.
  void (*serialized_shape_deleter)(const char*);  ///< Out: frees `serialized_shape`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args,
                          serialized_shape_deleter);
/// Adds the layout that a memory kind requires to a shape.
typedef PJRT_Error* PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace(
    PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args* args);

/// Arguments of PJRT_TopologyDescription_GetMemorySpaceKindIds.
struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  const int* memory_space_kind_ids;  ///< Out: the numbers; the array lives as long as the topology.
  size_t num_memory_space_kind_ids;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args,
                          num_memory_space_kind_ids);
/// Lists the numbers of the memory kinds.
typedef PJRT_Error* PJRT_TopologyDescription_GetMemorySpaceKindIds(
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args* args);

/// Arguments of PJRT_Compile.
struct PJRT_Compile_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;  ///< The topology.
  const PJRT_Program* program;  ///< The program; borrowed for the call.
  const char* compile_options;  ///< A serialized `CompileOptionsProto`; borrowed for the call.
  size_t compile_options_size;  ///< Length of `compile_options`.
  PJRT_Client* client;  ///< A client whose properties may guide the compiler, or null.
  PJRT_Executable* executable;  ///< Out: the executable, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Compile_Args, executable);
/// Compiles a program for a topology, without loading it. Synchronous.
typedef PJRT_Error* PJRT_Compile(PJRT_Compile_Args* args);

#endif /* PJRT_TOPOLOGY_H_ */
