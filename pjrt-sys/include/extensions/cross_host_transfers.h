/* CrossHostTransfers: transfers of buffers between processes. */
#ifndef PJRT_EXTENSION_CROSS_HOST_TRANSFERS_H_
#define PJRT_EXTENSION_CROSS_HOST_TRANSFERS_H_

#include "../pjrt_c_api.h"

#define PJRT_API_CROSS_HOST_TRANSFERS_EXTENSION_VERSION 8

/// Arguments of PJRT_Transfers_PJRT_Client_CrossHostSendBuffers.
struct PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  size_t num_buffers;  ///< Number of buffers.
  PJRT_Buffer** buffers;  ///< The buffers.
  const int32_t* dst_global_device_ids;  ///< The destinations: a global device id per buffer.
  const int64_t* transfer_keys;  ///< A key per buffer, the same on the receiving side.
  /// The caller's array; receives an event per buffer, owned by the caller.
  PJRT_Event** send_events;
  size_t num_tasks;  ///< Length of `task_ids` and `incarnation_ids`; 0 if not known.
  const int* task_ids;  ///< Processes that are alive; borrowed for the call.
  const int64_t* incarnation_ids;  ///< Their incarnations; borrowed for the call.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args, incarnation_ids);
/// Sends buffers to devices of other processes. Asynchronous.
typedef PJRT_Error* PJRT_Transfers_PJRT_Client_CrossHostSendBuffers(
    PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args* args);

/// Arguments of PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers.
struct PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  size_t num_shapes;  ///< Number of buffers.
  size_t* shape_num_dims;  ///< Number of dimensions per buffer.
  const int64_t** num_dims;  ///< The dimensions per buffer.
  PJRT_Buffer_Type* element_types;  ///< The element type per buffer.
  PJRT_Buffer_MemoryLayout** layouts;  ///< The layout per buffer, or null for the default.
  PJRT_Device* device;  ///< The destination.
  const int32_t* src_global_device_ids;  ///< The sources: a global device id per buffer.
  const int64_t* transfer_keys;  ///< A key per buffer, the same on the sending side.
  PJRT_Buffer** buffers;  ///< The caller's array; receives the buffers, owned by the caller.
  size_t num_tasks;  ///< Length of `task_ids` and `incarnation_ids`; 0 if not known.
  const int* task_ids;  ///< Processes that are alive; borrowed for the call.
  const int64_t* incarnation_ids;  ///< Their incarnations; borrowed for the call.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args, incarnation_ids);
/// Creates buffers that other processes fill. Asynchronous.
typedef PJRT_Error* PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers(
    PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args* args);

/// Called when a transfer is canceled. Owns the error.
typedef void (*PJRT_Transfers_CrossHostOnCanceledCallback)(PJRT_Error* error, void* user_arg);

/// Cancels the transfer that a descriptor names, and reports to `on_canceled`.
typedef void (*PJRT_Transfers_CrossHostSendCancelNotifier)(
    const char* serialized_descriptor, size_t serialized_descriptor_size,
    PJRT_Error_Code reason, const char* error_message, size_t error_message_size,
    PJRT_Transfers_CrossHostOnCanceledCallback on_canceled, void* on_canceled_user_arg,
    void* user_arg);

/// Called when receiving is set up, with a descriptor per buffer for the sender. Owns the error.
typedef void (*PJRT_Transfers_CrossHostRecvNotifier)(
    PJRT_Error* error, const char** serialized_descriptors, size_t* descriptors_sizes,
    size_t num_descriptors, void* user_arg,
    PJRT_Transfers_CrossHostSendCancelNotifier cancel_notifier, void* cancel_notifier_user_arg);

/// The callback that is called when receiving is set up.
struct PJRT_Transfers_CrossHostRecvNotifierInfo {
  void* user_arg;  ///< Passed to the callback unchanged.
  PJRT_Transfers_CrossHostRecvNotifier notifier;  ///< The callback.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Transfers_CrossHostRecvNotifierInfo, notifier);

/// Arguments of PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers.
struct PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;  ///< The client.
  size_t num_shapes;  ///< Number of buffers.
  size_t* shape_num_dims;  ///< Number of dimensions per buffer.
  const int64_t** num_dims;  ///< The dimensions per buffer.
  PJRT_Buffer_Type* element_types;  ///< The element type per buffer.
  PJRT_Buffer_MemoryLayout** layouts;  ///< The layout per buffer, or null for the default.
  PJRT_Device* device;  ///< The destination.
  PJRT_Transfers_CrossHostRecvNotifierInfo notifier;  ///< Receives the descriptors.
  PJRT_Buffer** buffers;  ///< The caller's array; receives the buffers, owned by the caller.
  size_t num_buffers;  ///< Out: their number.
  bool allow_cancel_notifier;  ///< `true` if the cancel function that the notifier receives has an effect.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args,
                          allow_cancel_notifier);
/// Creates buffers that a remote sender fills, found by descriptors.
typedef PJRT_Error* PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers(
    PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args* args);

/// Called when a send ends, with whether it was enqueued at all. Owns the error.
typedef void (*PJRT_Transfers_CrossHostRemoteSendCallback)(
    PJRT_Error* error, bool sends_were_enqueued, void* user_arg);

/// The callback that is called when a send ends.
struct PJRT_Transfers_CrossHostRemoteSendCallbackInfo {
  void* user_arg;  ///< Passed to the callback unchanged.
  PJRT_Transfers_CrossHostRemoteSendCallback on_done;  ///< The callback.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Transfers_CrossHostRemoteSendCallbackInfo, on_done);
/// Frees a descriptor and its size.
typedef void (*PJRT_Transfers_DescriptorDestructor)(
    char** descriptor_data, size_t* descriptor_size);

/// Arguments of PJRT_Buffer_CopyToRemoteDevice.
struct PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;  ///< The buffer.
  PJRT_Event* event;  ///< Ready when the descriptor is available; the plugin frees it.
  char** serialized_descriptor;  ///< The receiver's descriptor, once the event is ready.
  size_t* serialized_descriptor_size;  ///< Its length, once the event is ready.
  PJRT_Transfers_CrossHostRemoteSendCallbackInfo on_done;  ///< Called when the send ends.
  /// Frees descriptor and size; the plugin calls it when it no longer needs them.
  PJRT_Transfers_DescriptorDestructor descriptor_destructor;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args,
                          descriptor_destructor);
/// Sends a buffer to a remote receiver. Asynchronous; errors go to the callback.
typedef void PJRT_Buffer_CopyToRemoteDevice(
    PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args* args);

/// The CrossHostTransfers extension. If it is present, hosts assume that device-to-device copies
/// between processes work.
struct PJRT_CrossHostTransfers_Extension {
  PJRT_Extension_Base base;
  PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers*
      PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers;
  PJRT_Buffer_CopyToRemoteDevice* PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice;
  PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers*
      PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers;
  PJRT_Transfers_PJRT_Client_CrossHostSendBuffers* PJRT_Transfers_PJRT_Client_CrossHostSendBuffers;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_CrossHostTransfers_Extension,
                          PJRT_Transfers_PJRT_Client_CrossHostSendBuffers);

#endif /* PJRT_EXTENSION_CROSS_HOST_TRANSFERS_H_ */
