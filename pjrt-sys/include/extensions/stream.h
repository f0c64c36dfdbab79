/* Stream: device streams for memory that others manage. */
#ifndef PJRT_EXTENSION_STREAM_H_
#define PJRT_EXTENSION_STREAM_H_

#include "../pjrt_c_api.h"

#define PJRT_API_STREAM_EXTENSION_VERSION 0

/// Arguments of PJRT_Get_Stream_For_External_Ready_Events.
struct PJRT_Get_Stream_For_External_Ready_Events_Args {
  size_t struct_size;
  PJRT_Device* device;  ///< The device.
  intptr_t stream;  ///< Out: the stream, in the platform's representation.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Get_Stream_For_External_Ready_Events_Args, stream);
/// Returns the stream on which to record when outside memory is ready.
typedef PJRT_Error* PJRT_Get_Stream_For_External_Ready_Events(
    PJRT_Get_Stream_For_External_Ready_Events_Args* args);

/// Arguments of PJRT_Wait_Until_Buffer_Ready_On_Stream.
struct PJRT_Wait_Until_Buffer_Ready_On_Stream_Args {
  size_t struct_size;
  intptr_t stream;  ///< The stream, in the platform's representation.
  PJRT_Buffer* buffer;  ///< The buffer.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Wait_Until_Buffer_Ready_On_Stream_Args, buffer);
/// Creates a stream wait until a buffer is ready.
typedef PJRT_Error* PJRT_Wait_Until_Buffer_Ready_On_Stream(
    PJRT_Wait_Until_Buffer_Ready_On_Stream_Args* args);

/// The Stream extension.
struct PJRT_Stream_Extension {
  PJRT_Extension_Base base;
  PJRT_Get_Stream_For_External_Ready_Events* get_stream;
  PJRT_Wait_Until_Buffer_Ready_On_Stream* wait_stream;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Stream_Extension, wait_stream);

#endif /* PJRT_EXTENSION_STREAM_H_ */
