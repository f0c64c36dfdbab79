/* HostMemoryAllocator: host memory that devices access fast. */
#ifndef PJRT_EXTENSION_HOST_MEMORY_ALLOCATOR_H_
#define PJRT_EXTENSION_HOST_MEMORY_ALLOCATOR_H_

#include "../pjrt_c_api.h"

#define PJRT_API_HOST_MEMORY_ALLOCATOR_EXTENSION_VERSION 0

/// Arguments of PJRT_HostMemoryAllocator_Allocate.
struct PJRT_HostMemoryAllocator_Allocate_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  size_t size;  ///< The number of bytes.
  int numa_node;  ///< The NUMA node, or -1 for any.
  uint8_t* ptr;  ///< Out: the memory.
  /// Out: frees it; called once with `ptr` and `deleter_arg`.
  void (*deleter)(void* ptr, void* arg);
  void* deleter_arg;  ///< Out: passed to `deleter`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostMemoryAllocator_Allocate_Args, deleter_arg);
/// Allocates host memory that devices access fast.
typedef PJRT_Error* (*PJRT_HostMemoryAllocator_Allocate)(
    PJRT_HostMemoryAllocator_Allocate_Args* args);

/// The HostMemoryAllocator extension.
struct PJRT_HostMemoryAllocator_Extension {
  PJRT_Extension_Base base;
  PJRT_HostMemoryAllocator_Allocate allocate;  ///< Allocates.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostMemoryAllocator_Extension, allocate);

#endif /* PJRT_EXTENSION_HOST_MEMORY_ALLOCATOR_H_ */
