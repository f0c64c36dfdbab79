/* Layouts: memory layouts of buffers, parameters and outputs as serialized text. */
#ifndef PJRT_EXTENSION_LAYOUTS_H_
#define PJRT_EXTENSION_LAYOUTS_H_

#include "../pjrt_c_api.h"

#define PJRT_API_LAYOUTS_EXTENSION_VERSION 4

/// A memory layout.
typedef struct PJRT_Layouts_MemoryLayout PJRT_Layouts_MemoryLayout;
/// Owns the memory that is returned by PJRT_Layouts_MemoryLayout_Serialize.
typedef struct PJRT_Layouts_SerializedLayout PJRT_Layouts_SerializedLayout;

/// Arguments of PJRT_Layouts_MemoryLayout_Destroy.
struct PJRT_Layouts_MemoryLayout_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Layouts_MemoryLayout* layout;  ///< The layout.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Layouts_MemoryLayout_Destroy_Args, layout);
/// Frees a layout that the caller owns; null is allowed.
typedef PJRT_Error* PJRT_Layouts_MemoryLayout_Destroy(PJRT_Layouts_MemoryLayout_Destroy_Args* args);

/// Arguments of PJRT_Layouts_MemoryLayout_Serialize.
struct PJRT_Layouts_MemoryLayout_Serialize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Layouts_MemoryLayout* layout;  ///< The layout.
  const char* serialized_bytes;  ///< Out: the text; lives until the deleter is called.
  size_t serialized_bytes_size;  ///< Out: its length.
  PJRT_Layouts_SerializedLayout* serialized_layout;  ///< Out: owns the memory of `serialized_bytes`.
  /// Out: frees the above; called exactly once.
  void (*serialized_layout_deleter)( PJRT_Layouts_SerializedLayout* s_layout);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_layout_deleter);
/// Writes a layout as XLA's text, such as `{1,0}`.
typedef PJRT_Error* PJRT_Layouts_MemoryLayout_Serialize(
    PJRT_Layouts_MemoryLayout_Serialize_Args* args);

/// Arguments of PJRT_Layouts_PJRT_Buffer_MemoryLayout.
struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  PJRT_Layouts_MemoryLayout* layout;  ///< Out: the layout, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, layout);
/// Returns a buffer's layout.
typedef PJRT_Error* PJRT_Layouts_PJRT_Buffer_MemoryLayout(
    PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* args);

/// Arguments of PJRT_Layouts_PJRT_Client_GetDefaultLayout.
struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  PJRT_Buffer_Type type;  ///< The element type.
  const int64_t* dims;  ///< The dimensions; borrowed for the call.
  size_t num_dims;  ///< Number of dimensions.
  PJRT_Layouts_MemoryLayout* layout;  ///< Out: the layout, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, layout);
/// Returns the layout that a client uses by default.
typedef PJRT_Error* PJRT_Layouts_PJRT_Client_GetDefaultLayout(
    PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args* args);

/// Arguments of PJRT_Layouts_PJRT_Topology_GetDefaultLayout.
struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology_description;  ///< The topology.
  PJRT_Buffer_Type type;  ///< The element type.
  const int64_t* dims;  ///< The dimensions; borrowed for the call.
  size_t num_dims;  ///< Number of dimensions.
  PJRT_Layouts_MemoryLayout* layout;  ///< Out: the layout, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, layout);
/// Returns the layout that a topology's devices use by default.
typedef PJRT_Error* PJRT_Layouts_PJRT_Topology_GetDefaultLayout(
    PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args* args);

/// Arguments of PJRT_Layouts_PJRT_Executable_GetOutputLayouts.
struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  size_t num_outputs;  ///< Out: number of outputs.
  PJRT_Layouts_MemoryLayout** layouts;  ///< Out: one per output, owned by the executable.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, layouts);
/// Lists the layouts of an executable's outputs.
typedef PJRT_Error* PJRT_Layouts_PJRT_Executable_GetOutputLayouts(
    PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* args);

/// Arguments of PJRT_Layouts_PJRT_Executable_GetParameterLayouts.
struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  size_t num_parameters;  ///< Out: number of parameters.
  PJRT_Layouts_MemoryLayout** layouts;  ///< Out: one per parameter, owned by the executable.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, layouts);
/// Lists the layouts of an executable's parameters.
typedef PJRT_Error* PJRT_Layouts_PJRT_Executable_GetParameterLayouts(
    PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args* args);

/// The Layouts extension. If it is missing, hosts assume that every layout is dense and row-major.
struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  PJRT_Layouts_MemoryLayout_Destroy* PJRT_Layouts_MemoryLayout_Destroy;
  PJRT_Layouts_MemoryLayout_Serialize* PJRT_Layouts_MemoryLayout_Serialize;
  PJRT_Layouts_PJRT_Client_GetDefaultLayout* PJRT_Layouts_PJRT_Client_GetDefaultLayout;
  PJRT_Layouts_PJRT_Buffer_MemoryLayout* PJRT_Layouts_PJRT_Buffer_MemoryLayout;
  PJRT_Layouts_PJRT_Topology_GetDefaultLayout* PJRT_Layouts_PJRT_Topology_GetDefaultLayout;
  PJRT_Layouts_PJRT_Executable_GetOutputLayouts* PJRT_Layouts_PJRT_Executable_GetOutputLayouts;
  PJRT_Layouts_PJRT_Executable_GetParameterLayouts*
      PJRT_Layouts_PJRT_Executable_GetParameterLayouts;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Executable_GetParameterLayouts);

#endif /* PJRT_EXTENSION_LAYOUTS_H_ */
