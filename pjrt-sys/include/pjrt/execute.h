/* Execution: options, callbacks, contexts. */
#ifndef PJRT_EXECUTE_H_
#define PJRT_EXECUTE_H_

#include "event.h"
#include "plugin.h"
#include "types.h"

/// Arguments of PJRT_ExecuteContext_Create.
struct PJRT_ExecuteContext_Create_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;  ///< Out: the context, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ExecuteContext_Create_Args, context);
/// Creates a context for user data.
typedef PJRT_Error* PJRT_ExecuteContext_Create(PJRT_ExecuteContext_Create_Args* args);

/// Arguments of PJRT_ExecuteContext_Destroy.
struct PJRT_ExecuteContext_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;  ///< The context.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ExecuteContext_Destroy_Args, context);
/// Frees a context; null is allowed.
typedef PJRT_Error* PJRT_ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args* args);

/// A piece of data with its owner's deleter.
typedef struct PJRT_Chunk {
  void* data;  ///< The data.
  size_t size;  ///< Its length in bytes.
  /// Frees the data; called once by the consumer of the chunk.
  void (*deleter)(void* data, void* deleter_arg);
  void* deleter_arg;  ///< Passed to `deleter`.
} PJRT_Chunk;

/// Receives data that a program sends. Owns the chunk. Returns null, or an error made with
/// `callback_error`.
typedef PJRT_Error* (*PJRT_SendCallback)(
    PJRT_Chunk* chunk, PJRT_CallbackError* callback_error, size_t total_size_in_bytes,
    bool done, void* user_arg);

/// Delivers data that a program receives, through the stream, which it owns.
typedef void (*PJRT_RecvCallback)(PJRT_CopyToDeviceStream* stream, void* user_arg);

/// The callback of a send operation.
struct PJRT_SendCallbackInfo {
  int64_t channel_id;  ///< The operation's channel.
  void* user_arg;  ///< Passed to the callback unchanged.
  PJRT_SendCallback send_callback;  ///< The callback.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_SendCallbackInfo, send_callback);

/// The callback of a receive operation.
struct PJRT_RecvCallbackInfo {
  int64_t channel_id;  ///< The operation's channel.
  void* user_arg;  ///< Passed to the callback unchanged.
  PJRT_RecvCallback recv_callback;  ///< The callback.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RecvCallbackInfo, recv_callback);
/// Receives an array that a program emits for observation. `data` is borrowed for the call.
typedef void (*PJRT_HloOutputCallback)(
    int64_t replica_id, int64_t partition_id, const void* data, const int64_t* shape_dims,
    size_t shape_num_dims, PJRT_Buffer_Type shape_element_type, int64_t operand_index,
    void* user_arg);

/// The callback that observes an emitted array, for all replicas and partitions.
struct PJRT_HloOutputCallbackInfo {
  void* user_arg;  ///< Passed to the callback unchanged.
  PJRT_HloOutputCallback callback;  ///< The callback.
  int64_t callback_id;  ///< The operation.
  size_t num_operands;  ///< The number of arrays that the operation emits.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_HloOutputCallbackInfo, num_operands);

/// The options of an execution. Everything in them is borrowed for the call, except that callbacks outlive
/// the execution.
struct PJRT_ExecuteOptions {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_SendCallbackInfo** send_callbacks;  ///< Per device, the callbacks of its send operations.
  PJRT_RecvCallbackInfo** recv_callbacks;  ///< Per device, the callbacks of its receive operations.
  size_t num_send_ops;  ///< Number of send operations per device.
  size_t num_recv_ops;  ///< Number of receive operations per device.
  /// Identifies this launch among processes and for `PJRT_Device_PoisonExecution`; 0 for none.
  int launch_id;
  /// Arguments that must not be donated, even if the program donates them.
  const int64_t* non_donatable_input_indices;
  size_t num_non_donatable_input_indices;  ///< Their number.
  PJRT_ExecuteContext* context;  ///< User data for custom calls, or null.
  /// The location of the call in the user's source, NUL-terminated; may be null.
  const char* call_location;
  size_t num_tasks;  ///< Length of `task_ids` and `incarnation_ids`.
  int* task_ids;  ///< The participating processes.
  int64_t* incarnation_ids;  ///< The incarnation of each process.
  PJRT_MultiSlice_Config* multi_slice_config;  ///< The configuration of the slices, or null.
  /// `true` if callbacks receive arrays in row-major order instead of the device's layout.
  bool use_major_to_minor_data_layout_for_callbacks;
  PJRT_HloOutputCallbackInfo* hlo_output_callbacks;  ///< Callbacks for emitted arrays.
  size_t num_hlo_output_callbacks;  ///< Their number.
  const PJRT_NamedValue* custom_options;  ///< Options for this execution that the plugin defines.
  size_t num_custom_options;  ///< Their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ExecuteOptions, num_custom_options);

/// Arguments of PJRT_LoadedExecutable_Execute.
struct PJRT_LoadedExecutable_Execute_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;  ///< The loaded executable.
  PJRT_ExecuteOptions* options;  ///< The options.
  /// Per device, its arguments. Those that the program donates are consumed.
  PJRT_Buffer* const* const* argument_lists;
  size_t num_devices;  ///< Number of devices: outer length of all lists.
  size_t num_args;  ///< Number of arguments per device.
  /// Per device, the caller's array; receives buffers that the caller owns.
  PJRT_Buffer** const* output_lists;
  /// The caller's array, or null; receives an event per device, owned by the caller.
  PJRT_Event** device_complete_events;
  /// The one device to run on, or null for those of the device assignment.
  PJRT_Device* execute_device;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_LoadedExecutable_Execute_Args, execute_device);
/// Runs an executable on its devices in this process. Returns when the work is enqueued. Later failures
/// are the errors of the outputs and the completion events. If the call itself fails, no output and no
/// event exists.
typedef PJRT_Error* PJRT_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args* args);

#endif /* PJRT_EXECUTE_H_ */
