/* Buffers: arrays on a device. */
#ifndef PJRT_BUFFER_H_
#define PJRT_BUFFER_H_

#include "event.h"
#include "types.h"

/// Arguments of PJRT_Buffer_Destroy.
struct PJRT_Buffer_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_Destroy_Args, buffer);
/// Deletes and frees a buffer; null is allowed.
typedef PJRT_Error* PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args* args);

/// Arguments of PJRT_Buffer_ElementType.
struct PJRT_Buffer_ElementType_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  PJRT_Buffer_Type type;  ///< Out: the type.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_ElementType_Args, type);
/// Returns the element type.
typedef PJRT_Error* PJRT_Buffer_ElementType(PJRT_Buffer_ElementType_Args* args);

/// Arguments of PJRT_Buffer_Dimensions.
struct PJRT_Buffer_Dimensions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  const int64_t* dims;  ///< Out: the dimensions; the array lives as long as the buffer.
  size_t num_dims;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_Dimensions_Args, num_dims);
/// Returns the dimensions.
typedef PJRT_Error* PJRT_Buffer_Dimensions(PJRT_Buffer_Dimensions_Args* args);

/// Arguments of PJRT_Buffer_UnpaddedDimensions.
struct PJRT_Buffer_UnpaddedDimensions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  const int64_t* unpadded_dims;  ///< Out: the dimensions; the array lives as long as the buffer.
  size_t num_dims;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_UnpaddedDimensions_Args, num_dims);
/// Returns the dimensions without the padding of dynamic ones.
typedef PJRT_Error* PJRT_Buffer_UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args* args);

/// Arguments of PJRT_Buffer_DynamicDimensionIndices.
struct PJRT_Buffer_DynamicDimensionIndices_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  const size_t* dynamic_dim_indices;  ///< Out: their indices; the array lives as long as the buffer.
  size_t num_dynamic_dims;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_DynamicDimensionIndices_Args, num_dynamic_dims);
/// Lists the dimensions whose sizes are known only at run time.
typedef PJRT_Error* PJRT_Buffer_DynamicDimensionIndices(
    PJRT_Buffer_DynamicDimensionIndices_Args* args);

/// Arguments of PJRT_Buffer_GetMemoryLayout.
struct PJRT_Buffer_GetMemoryLayout_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  PJRT_Buffer_MemoryLayout layout;  ///< Out: the layout; its arrays live as long as the buffer.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_GetMemoryLayout_Args, layout);
/// Returns the layout on the device. Deprecated in favor of the Layouts extension.
typedef PJRT_Error* PJRT_Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args* args);

/// Arguments of PJRT_Buffer_ToHostBuffer.
struct PJRT_Buffer_ToHostBuffer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* src;  ///< The buffer.
  /// The layout to write, or null for the buffer's own; borrowed for the call.
  PJRT_Buffer_MemoryLayout* host_layout;
  void* dst;  ///< The host memory, or null to request the size.
  size_t dst_size;  ///< Size of `dst`; out, if `dst` is null: the size needed.
  PJRT_Event* event;  ///< Out: ready when the copy is complete; owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_ToHostBuffer_Args, event);
/// Copies a buffer to host memory. Asynchronous.
typedef PJRT_Error* PJRT_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args* args);

/// Arguments of PJRT_Buffer_OnDeviceSizeInBytes.
struct PJRT_Buffer_OnDeviceSizeInBytes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  size_t on_device_size_in_bytes;  ///< Out: the number of bytes.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_OnDeviceSizeInBytes_Args, on_device_size_in_bytes);
/// Returns the buffer's size on the device.
typedef PJRT_Error* PJRT_Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args* args);

/// Arguments of PJRT_Buffer_Delete.
struct PJRT_Buffer_Delete_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_Delete_Args, buffer);
/// Releases a buffer's memory; only IsDeleted and Destroy are valid afterwards. Work in progress keeps
/// the memory until it ends.
typedef PJRT_Error* PJRT_Buffer_Delete(PJRT_Buffer_Delete_Args* args);

/// Arguments of PJRT_Buffer_IsDeleted.
struct PJRT_Buffer_IsDeleted_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  bool is_deleted;  ///< Out: the result.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_IsDeleted_Args, is_deleted);
/// Returns whether the buffer was deleted or donated.
typedef PJRT_Error* PJRT_Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args* args);

/// Arguments of PJRT_Buffer_CopyRawToHost.
struct PJRT_Buffer_CopyRawToHost_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  void* dst;  ///< The host memory; valid until the event is ready.
  int64_t offset;  ///< The offset in the buffer, in bytes.
  int64_t transfer_size;  ///< The number of bytes.
  PJRT_Event* event;  ///< Out: ready when the copy is complete; owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_CopyRawToHost_Args, event);
/// Copies bytes of a buffer in the layout of the device. Asynchronous.
typedef PJRT_Error* PJRT_Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args* args);

/// The arguments of the callback that a host calls when the destination of `PJRT_Buffer_CopyRawToHostFuture` is known.
struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
  size_t struct_size;
  void* callback_data;  ///< The `callback_data` that the call returned.
  PJRT_Error_Code error_code;  ///< The error code, or OK.
  /// A human-readable text; borrowed for the call, and meaningful only if the code is not OK.
  const char* error_message;
  size_t error_message_size;  ///< Length of `error_message`.
  void* dst;  ///< The host memory, if the code is OK.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, dst);

/// Arguments of PJRT_Buffer_CopyRawToHostFuture.
struct PJRT_Buffer_CopyRawToHostFuture_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  int64_t offset;  ///< The offset in the buffer, in bytes.
  int64_t transfer_size;  ///< The number of bytes.
  PJRT_Event* event;  ///< Out: ready when the copy is complete; owned by the caller.
  void* callback_data;  ///< Out: the plugin's state, to be passed to the callback once.
  /// Out: to be called once, with the destination or an error.
  void (*future_ready_callback)( PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_CopyRawToHostFuture_Args, future_ready_callback);
/// The same as `PJRT_Buffer_CopyRawToHost`, but the destination is provided later. Asynchronous.
typedef PJRT_Error* PJRT_Buffer_CopyRawToHostFuture(PJRT_Buffer_CopyRawToHostFuture_Args* args);

/// Arguments of PJRT_Buffer_CopyToDevice.
struct PJRT_Buffer_CopyToDevice_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  PJRT_Device* dst_device;  ///< The destination.
  PJRT_Buffer* dst_buffer;  ///< Out: the copy, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_CopyToDevice_Args, dst_buffer);
/// Copies a buffer to another device of the client. Asynchronous.
typedef PJRT_Error* PJRT_Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args* args);

/// Arguments of PJRT_Buffer_CopyToMemory.
struct PJRT_Buffer_CopyToMemory_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  PJRT_Memory* dst_memory;  ///< The destination.
  PJRT_Buffer* dst_buffer;  ///< Out: the copy, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_CopyToMemory_Args, dst_buffer);
/// Copies a buffer to another memory of the client. Asynchronous.
typedef PJRT_Error* PJRT_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args* args);

/// Arguments of PJRT_Buffer_Bitcast.
struct PJRT_Buffer_Bitcast_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  PJRT_Buffer_Type element_type;  ///< The new element type.
  const int64_t* dims;  ///< The new dimensions; borrowed for the call.
  size_t num_dims;  ///< Number of dimensions.
  PJRT_Buffer_MemoryLayout* device_layout;  ///< The new layout, or null for the default.
  PJRT_Buffer* out_buffer;  ///< Out: the new buffer, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_Bitcast_Args, out_buffer);
/// Creates a buffer that interprets the same bytes as a different type, shape and layout.
typedef PJRT_Error* PJRT_Buffer_Bitcast(PJRT_Buffer_Bitcast_Args* args);

/// Arguments of PJRT_Buffer_IsOnCpu.
struct PJRT_Buffer_IsOnCpu_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  bool is_on_cpu;  ///< Out: the result.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_IsOnCpu_Args, is_on_cpu);
/// Returns whether the host may read the memory directly: JAX then skips the copy to the host.
typedef PJRT_Error* PJRT_Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args* args);

/// Arguments of PJRT_Buffer_Device.
struct PJRT_Buffer_Device_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  PJRT_Device* device;  ///< Out: the device, owned by the client.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_Device_Args, device);
/// Returns the device that the buffer is on.
typedef PJRT_Error* PJRT_Buffer_Device(PJRT_Buffer_Device_Args* args);

/// Arguments of PJRT_Buffer_Memory.
struct PJRT_Buffer_Memory_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  PJRT_Memory* memory;  ///< Out: the memory, owned by the client.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_Memory_Args, memory);
/// Returns the memory that the buffer is in.
typedef PJRT_Error* PJRT_Buffer_Memory(PJRT_Buffer_Memory_Args* args);

/// Arguments of PJRT_Buffer_ReadyEvent.
struct PJRT_Buffer_ReadyEvent_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  PJRT_Event* event;  ///< Out: the event, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_ReadyEvent_Args, event);
/// Returns an event that is ready when the data is ready or an error has occurred. For a deleted or donated
/// buffer it is ready with an error. Deleting a buffer later does not change a returned event.
typedef PJRT_Error* PJRT_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args* args);

/// Arguments of PJRT_Buffer_UnsafePointer.
struct PJRT_Buffer_UnsafePointer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  uintptr_t buffer_pointer;  ///< Out: the address.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_UnsafePointer_Args, buffer_pointer);
/// Returns the buffer's address, in the platform's representation.
typedef PJRT_Error* PJRT_Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args* args);

/// Arguments of PJRT_Buffer_IncreaseExternalReferenceCount.
struct PJRT_Buffer_IncreaseExternalReferenceCount_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_IncreaseExternalReferenceCount_Args, buffer);
/// Declares that others share the memory: it must not be moved or reused until the count is decreased again.
typedef PJRT_Error* PJRT_Buffer_IncreaseExternalReferenceCount(
    PJRT_Buffer_IncreaseExternalReferenceCount_Args* args);

/// Arguments of PJRT_Buffer_DecreaseExternalReferenceCount.
struct PJRT_Buffer_DecreaseExternalReferenceCount_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_DecreaseExternalReferenceCount_Args, buffer);
/// Reverts one `PJRT_Buffer_IncreaseExternalReferenceCount`; fails if there is none to revert.
typedef PJRT_Error* PJRT_Buffer_DecreaseExternalReferenceCount(
    PJRT_Buffer_DecreaseExternalReferenceCount_Args* args);

/// Arguments of PJRT_Buffer_OpaqueDeviceMemoryDataPointer.
struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  void* device_memory_ptr;  ///< Out: the address.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, device_memory_ptr);
/// Returns the address of the data, valid while there is an external reference.
typedef PJRT_Error* PJRT_Buffer_OpaqueDeviceMemoryDataPointer(
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args* args);

/// The arguments of the callback that a host calls when the dependency of `PJRT_Buffer_DonateWithControlDependency` is complete.
struct PJRT_Buffer_DonateWithControlDependency_Callback_Args {
  size_t struct_size;
  void* callback_data;  ///< The `callback_data` that the call returned.
  PJRT_Error_Code error_code;  ///< The error code, or OK.
  /// A human-readable text; borrowed for the call, and meaningful only if the code is not OK.
  const char* error_message;
  size_t error_message_size;  ///< Length of `error_message`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_DonateWithControlDependency_Callback_Args,
                          error_message_size);

/// Arguments of PJRT_Buffer_DonateWithControlDependency.
struct PJRT_Buffer_DonateWithControlDependency_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  void* callback_data;  ///< Out: the plugin's state, to be passed to the callback once.
  /// Out: to be called once, with the dependency's outcome.
  void (*dependency_ready_callback)( PJRT_Buffer_DonateWithControlDependency_Callback_Args* args);
  PJRT_Buffer* out_buffer;  ///< Out: the new buffer, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_DonateWithControlDependency_Args, out_buffer);
/// Donates a buffer to a new one, which becomes ready only after the returned callback is called.
typedef PJRT_Error* PJRT_Buffer_DonateWithControlDependency(
    PJRT_Buffer_DonateWithControlDependency_Args* args);

#endif /* PJRT_BUFFER_H_ */
