/* HostAllocator: deprecated in favour of HostMemoryAllocator; its declarations as of version 0.90. */
#ifndef PJRT_EXTENSION_HOST_ALLOCATOR_H_
#define PJRT_EXTENSION_HOST_ALLOCATOR_H_

#include "../pjrt_c_api.h"

#define PJRT_API_HOST_ALLOCATOR_EXTENSION_VERSION 0

struct PJRT_HostAllocator_GetPreferredAlignment_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  size_t preferred_alignment;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostAllocator_GetPreferredAlignment_Args, preferred_alignment);
typedef PJRT_Error* (*PJRT_HostAllocator_GetPreferredAlignment)(
    PJRT_HostAllocator_GetPreferredAlignment_Args* args);

struct PJRT_HostAllocator_Allocate_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  size_t size;
  size_t alignment;
  void* ptr;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostAllocator_Allocate_Args, ptr);
typedef PJRT_Error* (*PJRT_HostAllocator_Allocate)(PJRT_HostAllocator_Allocate_Args* args);

struct PJRT_HostAllocator_Free_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  void* ptr;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostAllocator_Free_Args, ptr);
typedef PJRT_Error* (*PJRT_HostAllocator_Free)(PJRT_HostAllocator_Free_Args* args);

struct PJRT_HostAllocator_Extension {
  PJRT_Extension_Base base;
  PJRT_HostAllocator_GetPreferredAlignment get_preferred_alignment;
  PJRT_HostAllocator_Allocate allocate;
  PJRT_HostAllocator_Free free;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HostAllocator_Extension, free);

#endif /* PJRT_EXTENSION_HOST_ALLOCATOR_H_ */
