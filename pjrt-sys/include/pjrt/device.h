/* Devices and their descriptions. */
#ifndef PJRT_DEVICE_H_
#define PJRT_DEVICE_H_

#include "plugin.h"

/// Arguments of PJRT_DeviceDescription_Id.
struct PJRT_DeviceDescription_Id_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;  ///< The description.
  int id;  ///< Out: the id.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceDescription_Id_Args, id);
/// Returns the device's id, unique among all processes.
typedef PJRT_Error* PJRT_DeviceDescription_Id(PJRT_DeviceDescription_Id_Args* args);

/// Arguments of PJRT_DeviceDescription_ProcessIndex.
struct PJRT_DeviceDescription_ProcessIndex_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;  ///< The description.
  int process_index;  ///< Out: its number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceDescription_ProcessIndex_Args, process_index);
/// Returns the process that drives the device.
typedef PJRT_Error* PJRT_DeviceDescription_ProcessIndex(
    PJRT_DeviceDescription_ProcessIndex_Args* args);

/// Arguments of PJRT_DeviceDescription_Attributes.
struct PJRT_DeviceDescription_Attributes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;  ///< The description.
  size_t num_attributes;  ///< Out: number of attributes.
  const PJRT_NamedValue* attributes;  ///< Out: the attributes; they live as long as the description.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceDescription_Attributes_Args, attributes);
/// Returns vendor-specific attributes. JAX accepts only strings, integers and lists of integers.
typedef PJRT_Error* PJRT_DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args* args);

/// Arguments of PJRT_DeviceDescription_Kind.
struct PJRT_DeviceDescription_Kind_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;  ///< The description.
  const char* device_kind;  ///< Out: the name; lives as long as the description.
  size_t device_kind_size;  ///< Out: length of `device_kind`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceDescription_Kind_Args, device_kind_size);
/// Returns the vendor's name of the kind of device.
typedef PJRT_Error* PJRT_DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args* args);

/// Arguments of PJRT_DeviceDescription_DebugString.
struct PJRT_DeviceDescription_DebugString_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;  ///< The description.
  const char* debug_string;  ///< Out: verbose text; lives as long as the object.
  size_t debug_string_size;  ///< Out: length of `debug_string`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceDescription_DebugString_Args, debug_string_size);
/// Describes the device unambiguously, for logs.
typedef PJRT_Error* PJRT_DeviceDescription_DebugString(
    PJRT_DeviceDescription_DebugString_Args* args);

/// Arguments of PJRT_DeviceDescription_ToString.
struct PJRT_DeviceDescription_ToString_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;  ///< The description.
  const char* to_string;  ///< Out: short text; lives as long as the object.
  size_t to_string_size;  ///< Out: length of `to_string`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceDescription_ToString_Args, to_string_size);
/// Describes the device briefly, for users.
typedef PJRT_Error* PJRT_DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args* args);

/// Arguments of PJRT_Device_GetDescription.
struct PJRT_Device_GetDescription_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;  ///< The device.
  /// Out: the description; lives as long as the device.
  PJRT_DeviceDescription* device_description;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Device_GetDescription_Args, device_description);
/// Returns the device's description.
typedef PJRT_Error* PJRT_Device_GetDescription(PJRT_Device_GetDescription_Args* args);

/// Arguments of PJRT_Device_IsAddressable.
struct PJRT_Device_IsAddressable_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;  ///< The device.
  bool is_addressable;  ///< Out: the result.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Device_IsAddressable_Args, is_addressable);
/// Returns whether this process can drive the device.
typedef PJRT_Error* PJRT_Device_IsAddressable(PJRT_Device_IsAddressable_Args* args);

/// Arguments of PJRT_Device_LocalHardwareId.
struct PJRT_Device_LocalHardwareId_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;  ///< The device.
  int local_hardware_id;  ///< Out: the number, or -1.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Device_LocalHardwareId_Args, local_hardware_id);
/// Returns the device's number on this machine.
typedef PJRT_Error* PJRT_Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args* args);

/// Arguments of PJRT_Device_AddressableMemories.
struct PJRT_Device_AddressableMemories_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;  ///< The device.
  PJRT_Memory* const* memories;  ///< Out: the memories; the array lives as long as the device.
  size_t num_memories;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Device_AddressableMemories_Args, num_memories);
/// Lists the memories that the device can address.
typedef PJRT_Error* PJRT_Device_AddressableMemories(PJRT_Device_AddressableMemories_Args* args);

/// Arguments of PJRT_Device_DefaultMemory.
struct PJRT_Device_DefaultMemory_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;  ///< The device.
  PJRT_Memory* memory;  ///< Out: the memory, owned by the client.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Device_DefaultMemory_Args, memory);
/// Returns the memory in which the device places results by default.
typedef PJRT_Error* PJRT_Device_DefaultMemory(PJRT_Device_DefaultMemory_Args* args);

/// Arguments of PJRT_Device_MemoryStats.
struct PJRT_Device_MemoryStats_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;  ///< The device.
  int64_t bytes_in_use;  ///< Out: bytes allocated now.
  int64_t peak_bytes_in_use;  ///< Out: the peak of allocated bytes.
  bool peak_bytes_in_use_is_set;  ///< Out: whether the previous field is set.
  int64_t num_allocs;  ///< Out: number of allocations.
  bool num_allocs_is_set;  ///< Out: whether the previous field is set.
  int64_t largest_alloc_size;  ///< Out: the largest single allocation.
  bool largest_alloc_size_is_set;  ///< Out: whether the previous field is set.
  int64_t bytes_limit;  ///< Out: the limit of allocated bytes.
  bool bytes_limit_is_set;  ///< Out: whether the previous field is set.
  int64_t bytes_reserved;  ///< Out: bytes reserved now.
  bool bytes_reserved_is_set;  ///< Out: whether the previous field is set.
  int64_t peak_bytes_reserved;  ///< Out: the peak of reserved bytes.
  bool peak_bytes_reserved_is_set;  ///< Out: whether the previous field is set.
  int64_t bytes_reservable_limit;  ///< Out: the limit of reserved bytes.
  bool bytes_reservable_limit_is_set;  ///< Out: whether the previous field is set.
  int64_t largest_free_block_bytes;  ///< Out: the largest free block.
  bool largest_free_block_bytes_is_set;  ///< Out: whether the previous field is set.
  int64_t pool_bytes;  ///< Out: bytes that the allocator holds, used or not.
  bool pool_bytes_is_set;  ///< Out: whether the previous field is set.
  int64_t peak_pool_bytes;  ///< Out: the peak of bytes that the allocator held.
  bool peak_pool_bytes_is_set;  ///< Out: whether the previous field is set.
  int64_t peak_allocated_bytes;  ///< Out: the peak of used and reserved bytes together.
  bool peak_allocated_bytes_is_set;  ///< Out: whether the previous field is set.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Device_MemoryStats_Args, peak_allocated_bytes_is_set);
/// Returns statistics of the device's allocator. All fields except `bytes_in_use` are optional.
typedef PJRT_Error* PJRT_Device_MemoryStats(PJRT_Device_MemoryStats_Args* args);

/// Arguments of PJRT_Device_ClearMemoryStats.
struct PJRT_Device_ClearMemoryStats_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;  ///< The device.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Device_ClearMemoryStats_Args, device);
/// Resets the device's high-water marks.
typedef PJRT_Error* PJRT_Device_ClearMemoryStats(PJRT_Device_ClearMemoryStats_Args* args);

/// Arguments of PJRT_Device_PoisonExecution.
struct PJRT_Device_PoisonExecution_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;  ///< The device.
  int32_t launch_id;  ///< The id in the launch's `PJRT_ExecuteOptions`.
  PJRT_Error_Code error_code;  ///< The error code, or OK.
  /// A human-readable text; borrowed for the call, and meaningful only if the code is not OK.
  const char* error_message;
  size_t error_message_size;  ///< Length of `error_message`.
  bool poisoned;  ///< Out: whether such a launch existed.
  /// Payloads to attach to the error, as named values; may be null.
  const PJRT_NamedValue* payload;
  size_t num_payload;  ///< Number of payloads.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Device_PoisonExecution_Args, num_payload);
/// Makes the earliest unfinished launch with an id fail: its outputs receive the error.
typedef PJRT_Error* PJRT_Device_PoisonExecution(PJRT_Device_PoisonExecution_Args* args);

/// Arguments of PJRT_Device_GetAttributes.
struct PJRT_Device_GetAttributes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;  ///< The device.
  /// Out: the attributes; they live until the deleter is called.
  const PJRT_NamedValue* attributes;
  size_t num_attributes;  ///< Out: number of attributes.
  PJRT_Device_Attributes* device_attributes;  ///< Out: owns the memory of `attributes`.
  /// Out: frees `device_attributes`; never null, hosts call it unconditionally.
  void (*attributes_deleter)(PJRT_Device_Attributes* device_attributes);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Device_GetAttributes_Args, attributes_deleter);
/// Returns attributes of the device that may change.
typedef PJRT_Error* PJRT_Device_GetAttributes(PJRT_Device_GetAttributes_Args* args);

/// Arguments of PJRT_Device_CreateAsyncTrackingEvent.
struct PJRT_Device_CreateAsyncTrackingEvent_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;  ///< The device.
  const char* description;  ///< A description of the step; borrowed for the call.
  size_t description_size;  ///< Length of `description`.
  PJRT_AsyncTrackingEvent* event;  ///< Out: the handle, owned by the caller, or null for none.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Device_CreateAsyncTrackingEvent_Args, event);
/// Creates a handle that marks an asynchronous step.
typedef PJRT_Error* PJRT_Device_CreateAsyncTrackingEvent(
    PJRT_Device_CreateAsyncTrackingEvent_Args* args);

/// Arguments of PJRT_AsyncTrackingEvent_Destroy.
struct PJRT_AsyncTrackingEvent_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncTrackingEvent* event;  ///< The handle.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_AsyncTrackingEvent_Destroy_Args, event);
/// Frees a tracking handle.
typedef PJRT_Error* PJRT_AsyncTrackingEvent_Destroy(PJRT_AsyncTrackingEvent_Destroy_Args* args);

#endif /* PJRT_DEVICE_H_ */
