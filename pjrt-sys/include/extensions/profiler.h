/* Profiler: a table of functions to trace a plugin. */
#ifndef PJRT_EXTENSION_PROFILER_H_
#define PJRT_EXTENSION_PROFILER_H_

#include "../pjrt_c_api.h"

#define PLUGIN_PROFILER_VERSION 1

/// A tracing session.
typedef struct PLUGIN_Profiler PLUGIN_Profiler;
/// An error of the profiler; owned by the receiver.
typedef struct PLUGIN_Profiler_Error PLUGIN_Profiler_Error;
/// The trace that a session returned.
typedef struct PLUGIN_Profiler_ConsumeResult PLUGIN_Profiler_ConsumeResult;

/// Arguments of PLUGIN_Profiler_Error_Destroy.
struct PLUGIN_Profiler_Error_Destroy_Args {
  size_t struct_size;
  void* priv;  ///< Reserved; null.
  PLUGIN_Profiler_Error* error;  ///< The error.
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_Error_Destroy_Args, error);
/// Frees an error.
typedef void PLUGIN_Profiler_Error_Destroy(PLUGIN_Profiler_Error_Destroy_Args* args);

/// Arguments of PLUGIN_Profiler_Error_Message.
struct PLUGIN_Profiler_Error_Message_Args {
  size_t struct_size;
  void* priv;  ///< Reserved; null.
  const PLUGIN_Profiler_Error* error;  ///< The error.
  const char* message;  ///< Out: the text; lives as long as the error.
  size_t message_size;  ///< Out: its length.
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_Error_Message_Args, message_size);
/// Returns an error's text.
typedef void PLUGIN_Profiler_Error_Message(PLUGIN_Profiler_Error_Message_Args* args);

/// Arguments of PLUGIN_Profiler_Error_GetCode.
struct PLUGIN_Profiler_Error_GetCode_Args {
  size_t struct_size;
  void* priv;  ///< Reserved; null.
  const PLUGIN_Profiler_Error* error;  ///< The error.
  int code;  ///< Out: a `PJRT_Error_Code`.
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_Error_GetCode_Args, code);
/// Returns an error's code.
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Error_GetCode(
    PLUGIN_Profiler_Error_GetCode_Args* args);

/// Arguments of PLUGIN_Profiler_Create.
struct PLUGIN_Profiler_Create_Args {
  size_t struct_size;
  const char* options;  ///< A serialized `ProfileOptions` proto; borrowed for the call.
  size_t options_size;  ///< Its length.
  PLUGIN_Profiler* profiler;  ///< Out: the session, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_Create_Args, profiler);
/// Creates a session.
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Create(PLUGIN_Profiler_Create_Args* args);

/// Arguments of PLUGIN_Profiler_Destroy.
struct PLUGIN_Profiler_Destroy_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;  ///< The profiler.
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_Destroy_Args, profiler);
/// Frees a session.
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Destroy(PLUGIN_Profiler_Destroy_Args* args);

/// Arguments of PLUGIN_Profiler_Start.
struct PLUGIN_Profiler_Start_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;  ///< The profiler.
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_Start_Args, profiler);
/// Starts tracing.
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Start(PLUGIN_Profiler_Start_Args* args);

/// Arguments of PLUGIN_Profiler_Stop.
struct PLUGIN_Profiler_Stop_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;  ///< The profiler.
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_Stop_Args, profiler);
/// Stops tracing.
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Stop(PLUGIN_Profiler_Stop_Args* args);

/// Arguments of PLUGIN_Profiler_CollectData.
struct PLUGIN_Profiler_CollectData_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;  ///< The profiler.
  uint8_t* buffer;  ///< The caller's buffer for a serialized `XSpace` proto, or null.
  size_t buffer_size_in_bytes;  ///< Its size; out, if `buffer` is null: the size needed.
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_CollectData_Args, buffer_size_in_bytes);
/// Returns the trace. Called twice: with a null `buffer` for the size, then with a buffer of that size.
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_CollectData(PLUGIN_Profiler_CollectData_Args* args);

/// Arguments of PLUGIN_Profiler_Consume.
struct PLUGIN_Profiler_Consume_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;  ///< The profiler.
  PLUGIN_Profiler_ConsumeResult* result;  ///< Out: the trace, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_Consume_Args, result);
/// Returns the trace.
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Consume(PLUGIN_Profiler_Consume_Args* args);

/// Arguments of PLUGIN_Profiler_ConsumeResult_Destroy.
struct PLUGIN_Profiler_ConsumeResult_Destroy_Args {
  size_t struct_size;
  PLUGIN_Profiler_ConsumeResult* consume_result;  ///< The trace.
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_ConsumeResult_Destroy_Args, consume_result);
/// Frees a trace.
typedef void PLUGIN_Profiler_ConsumeResult_Destroy(
    PLUGIN_Profiler_ConsumeResult_Destroy_Args* args);

/// Arguments of PLUGIN_Profiler_Serialize.
struct PLUGIN_Profiler_Serialize_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;  ///< The profiler.
  PLUGIN_Profiler_ConsumeResult* consume_result;  ///< The trace.
  const uint8_t* serialized_bytes;  ///< Out: the bytes, owned by the plugin.
  size_t serialized_size;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_Serialize_Args, serialized_size);
/// Serializes a trace as an `XSpace` proto.
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Serialize(PLUGIN_Profiler_Serialize_Args* args);

/// The profiler's function table.
struct PLUGIN_Profiler_Api {
  size_t struct_size;
  void* priv;  ///< Reserved; null.
  PLUGIN_Profiler_Error_Destroy* error_destroy;
  PLUGIN_Profiler_Error_Message* error_message;  ///< Returns an error's text.
  PLUGIN_Profiler_Error_GetCode* error_get_code;
  PLUGIN_Profiler_Create* create;
  PLUGIN_Profiler_Destroy* destroy;
  PLUGIN_Profiler_Start* start;
  PLUGIN_Profiler_Stop* stop;
  PLUGIN_Profiler_CollectData* collect_data;
  PLUGIN_Profiler_Consume* consume;
  PLUGIN_Profiler_ConsumeResult_Destroy* consume_result_destroy;
  PLUGIN_Profiler_Serialize* serialize;
};
PJRT_DEFINE_STRUCT_TRAITS(PLUGIN_Profiler_Api, serialize);

#define PJRT_API_PROFILER_EXTENSION_VERSION 1

/// The Profiler extension. A plugin offers one in its table; a host passes one in Compile and Execute
/// args to link its trace with the plugin's.
struct PJRT_Profiler_Extension {
  PJRT_Extension_Base base;
  /// The function table; null where a host passes the extension.
  PLUGIN_Profiler_Api* profiler_api;
  int64_t traceme_context_id;  ///< Links the plugin's trace of this call with the host's.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Profiler_Extension, traceme_context_id);

#endif /* PJRT_EXTENSION_PROFILER_H_ */
