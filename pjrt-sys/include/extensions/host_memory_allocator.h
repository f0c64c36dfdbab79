/* HostMemoryAllocator: host memory that devices reach fast. */
#ifndef PJRT_EXTENSION_HOST_MEMORY_ALLOCATOR_H_
#define PJRT_EXTENSION_HOST_MEMORY_ALLOCATOR_H_

#include "../pjrt_c_api.h"

#define PJRT_API_HOST_MEMORY_ALLOCATOR_EXTENSION_VERSION 0

struct PJRT_HostMemoryAllocator_Allocate_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  size_t size;
  int numa_node;
  uint8_t* ptr;
  void (*deleter)(void* ptr, void* arg);
  void* deleter_arg;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostMemoryAllocator_Allocate_Args, deleter_arg);
typedef PJRT_Error* (*PJRT_HostMemoryAllocator_Allocate)(PJRT_HostMemoryAllocator_Allocate_Args*
    args);

struct PJRT_HostMemoryAllocator_Extension {
  PJRT_Extension_Base base;
  PJRT_HostMemoryAllocator_Allocate allocate;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostMemoryAllocator_Extension, allocate);

#endif /* PJRT_EXTENSION_HOST_MEMORY_ALLOCATOR_H_ */
