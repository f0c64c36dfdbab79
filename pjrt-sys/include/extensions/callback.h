/* Callback: the host is told of slice failures and of a coming fatal error. */
#ifndef PJRT_EXTENSION_CALLBACK_H_
#define PJRT_EXTENSION_CALLBACK_H_

#include "../pjrt_c_api.h"

#define PJRT_API_CALLBACK_EXTENSION_VERSION 1

typedef enum {
  PJRT_Callback_Type_Unknown,
  PJRT_Callback_Type_Tpu_SliceBuilder,
  PJRT_Callback_Type_Prefatal,
} PJRT_Callback_Type;

typedef enum {
  SLICE_FAILURE_UNKNOWN = 0,
  SLICE_FAILURE_INIT_ERROR = 1,
  SLICE_FAILURE_WORKER_UNAVAILABLE = 2,
  SLICE_FAILURE_FLAPPING_TASK_ERROR = 3,
  SLICE_FAILURE_SW_INJECT_ERROR = 4,
  SLICE_FAILURE_CHIP_DRIVER_ERROR = 5,
} PJRT_Callback_Tpu_SliceFailureType;

struct PJRT_Callback_Tpu_SliceBuilderArgs {
  size_t struct_size;
  PJRT_Callback_Tpu_SliceFailureType failure_type;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Callback_Tpu_SliceBuilderArgs, failure_type);

struct PJRT_Callback_PrefatalArgs {
  size_t struct_size;
  PJRT_Error_Code error_code;
  const char* error_message;
  size_t error_message_size;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Callback_PrefatalArgs, error_message_size);
typedef void PJRT_Callback_Function(void* args, void* user_arg);

struct PJRT_Callback_RegisterCallback_Args {
  size_t struct_size;
  PJRT_Client* client;
  PJRT_Callback_Type type;
  PJRT_Callback_Function* callback;
  void* user_arg;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Callback_RegisterCallback_Args, user_arg);
typedef PJRT_Error* PJRT_Register_Callback(PJRT_Callback_RegisterCallback_Args* args);

struct PJRT_Callback_InvokeCallback_Args {
  size_t struct_size;
  PJRT_Client* client;
  PJRT_Callback_Type type;
  void* args;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Callback_InvokeCallback_Args, args);
typedef PJRT_Error* PJRT_Callback_InvokeCallback(PJRT_Callback_InvokeCallback_Args* args);

struct PJRT_Callback_Extension {
  PJRT_Extension_Base base;
  PJRT_Register_Callback* register_callback;
  PJRT_Callback_InvokeCallback* invoke_callback;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Callback_Extension, invoke_callback);

#endif /* PJRT_EXTENSION_CALLBACK_H_ */
