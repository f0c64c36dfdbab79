/* Memories: the spaces that contain buffers. */
#ifndef PJRT_MEMORY_H_
#define PJRT_MEMORY_H_

#include "error.h"

/// The functions of a memory, to which its first word points. Hosts use them to attach data to the memory. Several
/// keys can be in use at once; all functions are thread-safe.
struct PJRT_Memory_FunctionTable {
  size_t struct_size;  ///< Size of this table in the plugin's version.
  struct PJRT_Extension_Base* extension_start;
  size_t instance_struct_size;  ///< Size of the memory object that the plugin allocates.
  /// Returns the data set for a key (an address), or null.
  void* (*get_user_data)(struct PJRT_Memory* memory, const void* key);
  /// Sets the data for a key; `dtor`, if not null, runs on the data when it is replaced and when the
  /// memory is destroyed.
  void (*set_user_data)(struct PJRT_Memory* memory, const void* key, void* data, void
      (*dtor)(void*));
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Memory_FunctionTable, set_user_data);

/// A memory space of a client. Borrowed, lives as long as the client; its address is its identity. The
/// first word is public; the rest is private to the plugin.
struct PJRT_Memory {
  /// User data storage. Hosts read it if the plugin reports version 0.105 or newer; null is tolerated.
  const struct PJRT_Memory_FunctionTable* vtable;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Memory, vtable);

/// Arguments of PJRT_Memory_Id.
struct PJRT_Memory_Id_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;  ///< The memory.
  int id;  ///< Out: the id.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Memory_Id_Args, id);
/// Returns the memory's id, unique in its client.
typedef PJRT_Error* PJRT_Memory_Id(PJRT_Memory_Id_Args* args);

/// Arguments of PJRT_Memory_Kind.
struct PJRT_Memory_Kind_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;  ///< The memory.
  const char* kind;  ///< Out: the name; lives as long as the memory.
  size_t kind_size;  ///< Out: length of `kind`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Memory_Kind_Args, kind_size);
/// Returns the name of the kind of memory, such as `device` or `pinned_host`.
typedef PJRT_Error* PJRT_Memory_Kind(PJRT_Memory_Kind_Args* args);

/// Arguments of PJRT_Memory_Kind_Id.
struct PJRT_Memory_Kind_Id_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;  ///< The memory.
  int kind_id;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Memory_Kind_Id_Args, kind_id);
/// Returns the number of the memory's kind.
typedef PJRT_Error* PJRT_Memory_Kind_Id(PJRT_Memory_Kind_Id_Args* args);

/// Arguments of PJRT_Memory_DebugString.
struct PJRT_Memory_DebugString_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;  ///< The memory.
  const char* debug_string;  ///< Out: verbose text; lives as long as the object.
  size_t debug_string_size;  ///< Out: length of `debug_string`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Memory_DebugString_Args, debug_string_size);
/// Describes the memory unambiguously, for logs.
typedef PJRT_Error* PJRT_Memory_DebugString(PJRT_Memory_DebugString_Args* args);

/// Arguments of PJRT_Memory_ToString.
struct PJRT_Memory_ToString_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;  ///< The memory.
  const char* to_string;  ///< Out: short text; lives as long as the object.
  size_t to_string_size;  ///< Out: length of `to_string`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Memory_ToString_Args, to_string_size);
/// Describes the memory briefly, for users.
typedef PJRT_Error* PJRT_Memory_ToString(PJRT_Memory_ToString_Args* args);

/// Arguments of PJRT_Memory_AddressableByDevices.
struct PJRT_Memory_AddressableByDevices_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;  ///< The memory.
  PJRT_Device* const* devices;  ///< Out: the devices; the array lives as long as the memory.
  size_t num_devices;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Memory_AddressableByDevices_Args, num_devices);
/// Lists the devices that can address the memory.
typedef PJRT_Error* PJRT_Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args* args);

#endif /* PJRT_MEMORY_H_ */
