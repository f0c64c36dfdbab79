/* Callback: notifications of slice failures and of imminent fatal errors. */
#ifndef PJRT_EXTENSION_CALLBACK_H_
#define PJRT_EXTENSION_CALLBACK_H_

#include "../pjrt_c_api.h"

#define PJRT_API_CALLBACK_EXTENSION_VERSION 1

/// The kind of event that a callback reports.
typedef enum {
  PJRT_Callback_Type_Unknown,  ///< Nothing defined.
  PJRT_Callback_Type_Tpu_SliceBuilder,  ///< A slice of TPUs failed.
  PJRT_Callback_Type_Prefatal,  ///< The plugin is about to end the process.
} PJRT_Callback_Type;

/// The reason why a slice of TPUs failed. A signed integer of 32 bits in C++.
typedef enum {
  SLICE_FAILURE_UNKNOWN = 0,  ///< Not known.
  SLICE_FAILURE_INIT_ERROR = 1,  ///< While the slice was set up.
  SLICE_FAILURE_WORKER_UNAVAILABLE = 2,  ///< A worker stopped answering.
  SLICE_FAILURE_FLAPPING_TASK_ERROR = 3,  ///< A task restarted too fast.
  SLICE_FAILURE_SW_INJECT_ERROR = 4,  ///< Injected on purpose.
  SLICE_FAILURE_CHIP_DRIVER_ERROR = 5,  ///< A chip's driver reports an error.
} PJRT_Callback_Tpu_SliceFailureType;

/// The arguments of a slice failure callback.
struct PJRT_Callback_Tpu_SliceBuilderArgs {
  size_t struct_size;
  PJRT_Callback_Tpu_SliceFailureType failure_type;  ///< The reason why the slice failed.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Callback_Tpu_SliceBuilderArgs, failure_type);

/// The arguments of a prefatal callback; borrowed for the call.
struct PJRT_Callback_PrefatalArgs {
  size_t struct_size;
  PJRT_Error_Code error_code;  ///< The error code.
  const char* error_message;  ///< A human-readable text; borrowed for the call.
  size_t error_message_size;  ///< Length of `error_message`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Callback_PrefatalArgs, error_message_size);
/// A callback: the struct that belongs to its type, and the argument given at registration.
typedef void PJRT_Callback_Function(void* args, void* user_arg);

/// Arguments of PJRT_Register_Callback.
struct PJRT_Callback_RegisterCallback_Args {
  size_t struct_size;
  PJRT_Client* client;  ///< The client.
  PJRT_Callback_Type type;  ///< The type of the callback.
  PJRT_Callback_Function* callback;  ///< The callback.
  void* user_arg;  ///< Passed to the callback unchanged.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Callback_RegisterCallback_Args, user_arg);
/// Registers a callback with a client.
typedef PJRT_Error* PJRT_Register_Callback(PJRT_Callback_RegisterCallback_Args* args);

/// Arguments of PJRT_Callback_InvokeCallback.
struct PJRT_Callback_InvokeCallback_Args {
  size_t struct_size;
  PJRT_Client* client;  ///< The client.
  PJRT_Callback_Type type;  ///< The type of the callbacks.
  void* args;  ///< The struct that belongs to the type; borrowed for the call.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Callback_InvokeCallback_Args, args);
/// Calls the callbacks of a type, during the call.
typedef PJRT_Error* PJRT_Callback_InvokeCallback(PJRT_Callback_InvokeCallback_Args* args);

/// The Callback extension.
struct PJRT_Callback_Extension {
  PJRT_Extension_Base base;
  PJRT_Register_Callback* register_callback;
  PJRT_Callback_InvokeCallback* invoke_callback;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Callback_Extension, invoke_callback);

#endif /* PJRT_EXTENSION_CALLBACK_H_ */
