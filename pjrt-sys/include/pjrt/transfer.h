/* Chunked host-to-device transfers: transfer managers and copy streams. */
#ifndef PJRT_TRANSFER_H_
#define PJRT_TRANSFER_H_

#include "event.h"
#include "plugin.h"
#include "types.h"
#include "execute.h"

/// Arguments of PJRT_AsyncHostToDeviceTransferManager_Destroy.
struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;  ///< The transfer manager.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, transfer_manager);
/// Frees a manager; null is allowed.
typedef PJRT_Error* PJRT_AsyncHostToDeviceTransferManager_Destroy(
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args* args);

/// Arguments of PJRT_AsyncHostToDeviceTransferManager_TransferData.
struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;  ///< The transfer manager.
  int buffer_index;  ///< The index of the manager's buffer, from 0.
  const void* data;  ///< The piece; valid until the event is ready.
  int64_t offset;  ///< The offset in the buffer, in bytes.
  int64_t transfer_size;  ///< The number of bytes.
  bool is_last_transfer;  ///< `true` if this is the last piece of the buffer.
  PJRT_Event* done_with_h2d_transfer;  ///< Out: ready when `data` may be freed; owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args,
                          done_with_h2d_transfer);
/// Copies a piece of host memory, in the buffer's layout on the device, into a buffer. Asynchronous.
typedef PJRT_Error* PJRT_AsyncHostToDeviceTransferManager_TransferData(
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args* args);

/// Arguments of PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer.
struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;  ///< The transfer manager.
  int buffer_index;  ///< The index of the manager's buffer, from 0.
  PJRT_Buffer* buffer_out;  ///< Out: the buffer, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, buffer_out);
/// Returns one of the buffers, which may still be pending. Called once per buffer.
typedef PJRT_Error* PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args* args);

/// Arguments of PJRT_AsyncHostToDeviceTransferManager_Device.
struct PJRT_AsyncHostToDeviceTransferManager_Device_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;  ///< The transfer manager.
  PJRT_Device* device_out;  ///< Out: the device, owned by the client.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_AsyncHostToDeviceTransferManager_Device_Args, device_out);
/// Returns the device that the buffers are on.
typedef PJRT_Error* PJRT_AsyncHostToDeviceTransferManager_Device(
    PJRT_AsyncHostToDeviceTransferManager_Device_Args* args);

/// Arguments of PJRT_AsyncHostToDeviceTransferManager_BufferCount.
struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;  ///< The transfer manager.
  size_t buffer_count;  ///< Out: the number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, buffer_count);
/// Returns the number of buffers.
typedef PJRT_Error* PJRT_AsyncHostToDeviceTransferManager_BufferCount(
    PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args* args);

/// Arguments of PJRT_AsyncHostToDeviceTransferManager_BufferSize.
struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;  ///< The transfer manager.
  int buffer_index;  ///< The index of the manager's buffer, from 0.
  size_t buffer_size;  ///< Out: the size in bytes.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, buffer_size);
/// Returns a buffer's size on the device.
typedef PJRT_Error* PJRT_AsyncHostToDeviceTransferManager_BufferSize(
    PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args* args);

/// Arguments of PJRT_AsyncHostToDeviceTransferManager_SetBufferError.
struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;  ///< The transfer manager.
  int buffer_index;  ///< The index of the manager's buffer, from 0.
  PJRT_Error_Code error_code;  ///< The error code, or OK.
  /// A human-readable text; borrowed for the call, and meaningful only if the code is not OK.
  const char* error_message;
  size_t error_message_size;  ///< Length of `error_message`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args,
                          error_message_size);
/// Sets the error of a buffer that is not filled.
typedef PJRT_Error* PJRT_AsyncHostToDeviceTransferManager_SetBufferError(
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args* args);

/// Arguments of PJRT_AsyncHostToDeviceTransferManager_AddMetadata.
struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;  ///< The transfer manager.
  const PJRT_NamedValue* transfer_metadata;  ///< The values; borrowed for the call.
  size_t num_metadata;  ///< Their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, num_metadata);
/// Adds named values that describe the transfer, for profiling.
typedef PJRT_Error* PJRT_AsyncHostToDeviceTransferManager_AddMetadata(
    PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args* args);

/// Arguments of PJRT_AsyncHostToDeviceTransferManager_TransferLiteral.
struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;  ///< The transfer manager.
  int buffer_index;  ///< The index of the manager's buffer, from 0.
  const void* data;  ///< The array; valid until the event is ready.
  const int64_t* shape_dims;  ///< The dimensions; borrowed for the call.
  size_t shape_num_dims;  ///< Number of dimensions.
  PJRT_Buffer_Type shape_element_type;  ///< The element type.
  PJRT_Buffer_MemoryLayout* shape_layout;  ///< The layout, or null for the default.
  PJRT_Event* done_with_h2d_transfer;  ///< Out: ready when `data` may be freed; owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args,
                          done_with_h2d_transfer);
/// Copies a whole array into a buffer. Asynchronous.
typedef PJRT_Error* PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args* args);

/// Arguments of PJRT_CopyToDeviceStream_Destroy.
struct PJRT_CopyToDeviceStream_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;  ///< The stream.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_CopyToDeviceStream_Destroy_Args, stream);
/// Frees a stream; null is allowed.
typedef PJRT_Error* PJRT_CopyToDeviceStream_Destroy(PJRT_CopyToDeviceStream_Destroy_Args* args);

/// Arguments of PJRT_CopyToDeviceStream_AddChunk.
struct PJRT_CopyToDeviceStream_AddChunk_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;  ///< The stream.
  PJRT_Chunk* chunk;  ///< The data; the stream takes ownership and calls its deleter.
  PJRT_Event* transfer_complete;  ///< Out: ready when the chunk is transferred; owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_CopyToDeviceStream_AddChunk_Args, transfer_complete);
/// Sends a chunk to the device. Asynchronous. Fails if the chunk exceeds the total or is not a multiple of the
/// granule.
typedef PJRT_Error* PJRT_CopyToDeviceStream_AddChunk(PJRT_CopyToDeviceStream_AddChunk_Args* args);

/// Arguments of PJRT_CopyToDeviceStream_TotalBytes.
struct PJRT_CopyToDeviceStream_TotalBytes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;  ///< The stream.
  int64_t total_bytes;  ///< Out: the number of bytes.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_CopyToDeviceStream_TotalBytes_Args, total_bytes);
/// Returns the amount of data that the stream expects.
typedef PJRT_Error* PJRT_CopyToDeviceStream_TotalBytes(
    PJRT_CopyToDeviceStream_TotalBytes_Args* args);

/// Arguments of PJRT_CopyToDeviceStream_GranuleSize.
struct PJRT_CopyToDeviceStream_GranuleSize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;  ///< The stream.
  int64_t granule_size_in_bytes;  ///< Out: the number of bytes.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_CopyToDeviceStream_GranuleSize_Args, granule_size_in_bytes);
/// Returns the granule, of which the size of every chunk is a multiple.
typedef PJRT_Error* PJRT_CopyToDeviceStream_GranuleSize(
    PJRT_CopyToDeviceStream_GranuleSize_Args* args);

/// Arguments of PJRT_CopyToDeviceStream_CurrentBytes.
struct PJRT_CopyToDeviceStream_CurrentBytes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;  ///< The stream.
  int64_t current_bytes;  ///< Out: the number of bytes.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_CopyToDeviceStream_CurrentBytes_Args, current_bytes);
/// Returns the amount of data that the stream has received so far.
typedef PJRT_Error* PJRT_CopyToDeviceStream_CurrentBytes(
    PJRT_CopyToDeviceStream_CurrentBytes_Args* args);

#endif /* PJRT_TRANSFER_H_ */
