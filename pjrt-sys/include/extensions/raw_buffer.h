/* RawBuffer: untyped views of device memory. Experimental. */
#ifndef PJRT_EXTENSION_RAW_BUFFER_H_
#define PJRT_EXTENSION_RAW_BUFFER_H_

#include "../pjrt_c_api.h"
#include "device_event.h"

/// An untyped view of device memory. Reference counted.
typedef struct PJRT_RawBuffer PJRT_RawBuffer;

/// A raw buffer's functions.
struct PJRT_RawBuffer_FunctionTable {
  size_t struct_size;
  size_t instance_size;  ///< Size of the raw buffer object.
  PJRT_Extension_Base* extension_start;
  void (*inc_ref)(PJRT_RawBuffer* raw_buffer);  ///< Adds a reference.
  void (*dec_ref)(PJRT_RawBuffer* raw_buffer);  ///< Drops a reference.
  /// Returns its size on the device.
  size_t (*get_on_device_size_in_bytes)(const PJRT_RawBuffer* raw_buffer);
  /// Returns the memory that it is in.
  PJRT_Memory* (*get_memory_space)(const PJRT_RawBuffer* raw_buffer);
  /// Returns its address if the host can read it, or null.
  void* (*get_host_pointer)(const PJRT_RawBuffer* raw_buffer);
  /// Copies host memory into a range of it, after the dependencies. Asynchronous.
  PJRT_Error* (*copy_raw_host_to_device_and_return_event)( PJRT_RawBuffer* raw_buffer, const void*
      src, int64_t offset, int64_t transfer_size, PJRT_DeviceEventVector* dependencies,
      PJRT_DeviceEvent* event);
  /// Copies a range of it into host memory, after the dependencies. Asynchronous.
  PJRT_Error* (*copy_raw_device_to_host_and_return_event)( PJRT_RawBuffer* raw_buffer, void* dst,
      int64_t offset, int64_t transfer_size, PJRT_DeviceEventVector* dependencies,
      PJRT_DeviceEvent* event);
  /// Returns its device address.
  void* (*opaque_device_memory_data_pointer)(const PJRT_RawBuffer* raw_buffer);
  /// Returns the event of its allocation.
  PJRT_Error* (*make_allocation_ready_event)( PJRT_RawBuffer* raw_buffer, PJRT_DeviceEvent* event);
  /// Returns the event of its content.
  PJRT_Error* (*get_raw_buffer_async_value)( PJRT_RawBuffer* raw_buffer, PJRT_DeviceEvent* event);
  bool (*is_mutable)(const PJRT_RawBuffer* raw_buffer);  ///< Returns whether it may be written.
  /// Creates a raw buffer of a range of it.
  PJRT_Error* (*slice)(PJRT_RawBuffer* raw_buffer, int64_t offset, int64_t slice_size,
      PJRT_RawBuffer** sliced_buffer);
  /// Copies it to another raw buffer, after the dependencies (null for none), and completes both
  /// promises.
  void (*schedule_copy_to)(PJRT_RawBuffer* src_buffer, PJRT_DeviceEventVector*
      transfer_dependency_events, PJRT_RawBuffer* dst_buffer, PJRT_DeviceEventPromise*
      definition_event_promise, PJRT_DeviceEventPromise* src_usage_event_promise, void
      (*allocation_event_callback)(PJRT_Error* status, void* user_data), void*
      allocation_event_user_data);
};

/// An untyped view of device memory. Reference counted.
struct PJRT_RawBuffer {
  const struct PJRT_RawBuffer_FunctionTable* vtable;  ///< Its functions.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RawBuffer_FunctionTable, schedule_copy_to);
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RawBuffer, vtable);

/// Arguments of PJRT_RawBuffer_CreateRawAliasOfBuffer.
struct PJRT_RawBuffer_CreateRawAliasOfBuffer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  PJRT_RawBuffer* raw_buffer;  ///< Out: the raw buffer, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RawBuffer_CreateRawAliasOfBuffer_Args, raw_buffer);
/// Creates a raw buffer that shares a buffer's memory.
typedef PJRT_Error* PJRT_RawBuffer_CreateRawAliasOfBuffer(
    PJRT_RawBuffer_CreateRawAliasOfBuffer_Args* args);

/// Arguments of PJRT_RawBuffer_Destroy.
struct PJRT_RawBuffer_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_RawBuffer* buffer;  ///< The buffer.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RawBuffer_Destroy_Args, buffer);
/// Drops a raw buffer.
typedef PJRT_Error* PJRT_RawBuffer_Destroy(PJRT_RawBuffer_Destroy_Args* args);

/// Arguments of PJRT_RawBuffer_GetHostPointer.
struct PJRT_RawBuffer_GetHostPointer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_RawBuffer* buffer;  ///< The buffer.
  void* host_pointer;  ///< Out: the address, or null.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RawBuffer_GetHostPointer_Args, host_pointer);
/// Returns the address if the host can read it.
typedef PJRT_Error* PJRT_RawBuffer_GetHostPointer(PJRT_RawBuffer_GetHostPointer_Args* args);

/// Arguments of PJRT_RawBuffer_GetOnDeviceSizeInBytes.
struct PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_RawBuffer* buffer;  ///< The buffer.
  size_t on_device_size_in_bytes;  ///< Out: the number of bytes.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args, on_device_size_in_bytes);
/// Returns the size on the device.
typedef PJRT_Error* PJRT_RawBuffer_GetOnDeviceSizeInBytes(
    PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args* args);

/// Arguments of PJRT_RawBuffer_GetMemorySpace.
struct PJRT_RawBuffer_GetMemorySpace_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_RawBuffer* buffer;  ///< The buffer.
  PJRT_Memory* memory_space;  ///< Out: the memory, owned by the client.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RawBuffer_GetMemorySpace_Args, memory_space);
/// Returns the memory that it is in.
typedef PJRT_Error* PJRT_RawBuffer_GetMemorySpace(PJRT_RawBuffer_GetMemorySpace_Args* args);

/// Arguments of PJRT_RawBuffer_CopyRawDeviceToHost.
struct PJRT_RawBuffer_CopyRawDeviceToHost_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_RawBuffer* buffer;  ///< The buffer.
  void* dst;  ///< The host memory; valid until the event is ready.
  int64_t offset;  ///< The offset in the buffer, in bytes.
  int64_t transfer_size;  ///< The number of bytes.
  PJRT_Event* event;  ///< Out: ready when the transfer is complete; owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RawBuffer_CopyRawDeviceToHost_Args, event);
/// Copies a range of it into host memory. Asynchronous.
typedef PJRT_Error* PJRT_RawBuffer_CopyRawDeviceToHost(
    PJRT_RawBuffer_CopyRawDeviceToHost_Args* args);

/// Arguments of PJRT_RawBuffer_CopyRawHostToDevice.
struct PJRT_RawBuffer_CopyRawHostToDevice_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_RawBuffer* buffer;  ///< The buffer.
  const void* src;  ///< The host memory; valid until the event is ready.
  int64_t offset;  ///< The offset in the buffer, in bytes.
  int64_t transfer_size;  ///< The number of bytes.
  PJRT_Event* event;  ///< Out: ready when the transfer is complete; owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RawBuffer_CopyRawHostToDevice_Args, event);
/// Copies host memory into a range of it. Asynchronous.
typedef PJRT_Error* PJRT_RawBuffer_CopyRawHostToDevice(
    PJRT_RawBuffer_CopyRawHostToDevice_Args* args);

#define PJRT_API_RAW_BUFFER_EXTENSION_VERSION 2

/// The RawBuffer extension.
struct PJRT_RawBuffer_Extension {
  PJRT_Extension_Base base;
  PJRT_RawBuffer_CreateRawAliasOfBuffer* PJRT_RawBuffer_CreateRawAliasOfBuffer;
  PJRT_RawBuffer_Destroy* PJRT_RawBuffer_Destroy;
  PJRT_RawBuffer_GetOnDeviceSizeInBytes* PJRT_RawBuffer_GetOnDeviceSizeInBytes;
  PJRT_RawBuffer_GetMemorySpace* PJRT_RawBuffer_GetMemorySpace;
  PJRT_RawBuffer_CopyRawHostToDevice* PJRT_RawBuffer_CopyRawHostToDevice;
  PJRT_RawBuffer_CopyRawDeviceToHost* PJRT_RawBuffer_CopyRawDeviceToHost;
  PJRT_RawBuffer_GetHostPointer* PJRT_RawBuffer_GetHostPointer;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RawBuffer_Extension, PJRT_RawBuffer_GetHostPointer);

#endif /* PJRT_EXTENSION_RAW_BUFFER_H_ */
