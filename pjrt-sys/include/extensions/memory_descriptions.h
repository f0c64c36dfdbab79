/* MemoryDescriptions: the memory kinds of devices that are only described, for ahead-of-time compilation. */
#ifndef PJRT_EXTENSION_MEMORY_DESCRIPTIONS_H_
#define PJRT_EXTENSION_MEMORY_DESCRIPTIONS_H_

#include "../pjrt_c_api.h"

#define PJRT_API_MEMORY_DESCRIPTIONS_EXTENSION_VERSION 1

/// A memory of a device that is only described. Lives as long as the device's description.
typedef struct PJRT_MemoryDescription PJRT_MemoryDescription;

/// Arguments of PJRT_DeviceDescription_MemoryDescriptions.
struct PJRT_DeviceDescription_MemoryDescriptions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;  ///< The device.
  /// Out: the memories; the array lives as long as the description.
  const PJRT_MemoryDescription* const* memory_descriptions;
  size_t num_memory_descriptions;  ///< Out: their number.
  size_t default_memory_index;  ///< Out: the index of the default, or all bits set if there is none.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceDescription_MemoryDescriptions_Args, default_memory_index);
/// Lists the memories that a described device has, in no particular order.
typedef PJRT_Error* PJRT_DeviceDescription_MemoryDescriptions(
    PJRT_DeviceDescription_MemoryDescriptions_Args* args);

/// Arguments of PJRT_MemoryDescription_Kind.
struct PJRT_MemoryDescription_Kind_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_MemoryDescription* memory_description;  ///< The memory.
  const char* kind;  ///< Out: its name; lives as long as the description.
  size_t kind_size;  ///< Out: length of `kind`.
  int kind_id;  ///< Out: its number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MemoryDescription_Kind_Args, kind_id);
/// Returns a described memory's kind.
typedef PJRT_Error* PJRT_MemoryDescription_Kind(PJRT_MemoryDescription_Kind_Args* args);

/// The MemoryDescriptions extension.
struct PJRT_MemoryDescriptions_Extension {
  PJRT_Extension_Base base;
  PJRT_DeviceDescription_MemoryDescriptions* PJRT_DeviceDescription_MemoryDescriptions;
  PJRT_MemoryDescription_Kind* PJRT_MemoryDescription_Kind;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_MemoryDescriptions_Extension, PJRT_MemoryDescription_Kind);

#endif /* PJRT_EXTENSION_MEMORY_DESCRIPTIONS_H_ */
