/* HostAllocator: deprecated in favor of HostMemoryAllocator; its declarations as of version 0.90. */
#ifndef PJRT_EXTENSION_HOST_ALLOCATOR_H_
#define PJRT_EXTENSION_HOST_ALLOCATOR_H_

#include "../pjrt_c_api.h"

#define PJRT_API_HOST_ALLOCATOR_EXTENSION_VERSION 0

/// Arguments of PJRT_HostAllocator_GetPreferredAlignment.
struct PJRT_HostAllocator_GetPreferredAlignment_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  size_t preferred_alignment;  ///< Out: the number of bytes.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostAllocator_GetPreferredAlignment_Args, preferred_alignment);
/// Returns the alignment that suits the devices.
typedef PJRT_Error* (*PJRT_HostAllocator_GetPreferredAlignment)(
    PJRT_HostAllocator_GetPreferredAlignment_Args* args);

/// Arguments of PJRT_HostAllocator_Allocate.
struct PJRT_HostAllocator_Allocate_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  size_t size;  ///< The number of bytes.
  size_t alignment;  ///< The alignment in bytes.
  void* ptr;  ///< Out: the memory.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostAllocator_Allocate_Args, ptr);
/// Allocates host memory.
typedef PJRT_Error* (*PJRT_HostAllocator_Allocate)(PJRT_HostAllocator_Allocate_Args* args);

/// Arguments of PJRT_HostAllocator_Free.
struct PJRT_HostAllocator_Free_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  void* ptr;  ///< The memory.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostAllocator_Free_Args, ptr);
/// Frees it.
typedef PJRT_Error* (*PJRT_HostAllocator_Free)(PJRT_HostAllocator_Free_Args* args);

/// The HostAllocator extension.
struct PJRT_HostAllocator_Extension {
  PJRT_Extension_Base base;
  /// Returns the alignment that suits the devices.
  PJRT_HostAllocator_GetPreferredAlignment get_preferred_alignment;
  PJRT_HostAllocator_Allocate allocate;  ///< Allocates.
  PJRT_HostAllocator_Free free;  ///< Frees.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostAllocator_Extension, free);

#endif /* PJRT_EXTENSION_HOST_ALLOCATOR_H_ */
