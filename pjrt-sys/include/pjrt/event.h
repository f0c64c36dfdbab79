/* Events: completion of asynchronous work. */
#ifndef PJRT_EVENT_H_
#define PJRT_EVENT_H_

#include "error.h"

/// Arguments of PJRT_Event_Destroy.
struct PJRT_Event_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< The event.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_Destroy_Args, event);
/// Frees an event; null is allowed. Registered callbacks are still called, and an event's own callback
/// may destroy it.
typedef PJRT_Error* PJRT_Event_Destroy(PJRT_Event_Destroy_Args* args);

/// Arguments of PJRT_Event_IsReady.
struct PJRT_Event_IsReady_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< The event.
  bool is_ready;  ///< Out: the result.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_IsReady_Args, is_ready);
/// Returns immediately whether the work is complete, with or without an error.
typedef PJRT_Error* PJRT_Event_IsReady(PJRT_Event_IsReady_Args* args);

/// Arguments of PJRT_Event_Error.
struct PJRT_Event_Error_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< The event.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_Error_Args, event);
/// Returns a ready event's error, or null if there is none: a new error object on every call, each owned
/// by the caller.
typedef PJRT_Error* PJRT_Event_Error(PJRT_Event_Error_Args* args);

/// Arguments of PJRT_Event_Await.
struct PJRT_Event_Await_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< The event.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_Await_Args, event);
/// Blocks until the event is ready, then returns the same as `PJRT_Event_Error`.
typedef PJRT_Error* PJRT_Event_Await(PJRT_Event_Await_Args* args);

/// Called once when an event is ready. Owns the error, which is null for success. May run on any
/// thread, also within the call that registers it.
typedef void (*PJRT_Event_OnReadyCallback)(PJRT_Error* error, void* user_arg);

/// Arguments of PJRT_Event_OnReady.
struct PJRT_Event_OnReady_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< The event.
  PJRT_Event_OnReadyCallback callback;  ///< The callback.
  void* user_arg;  ///< Passed to the callback.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_OnReady_Args, user_arg);
/// Registers a callback, which is called exactly once: immediately if the event is ready, otherwise when it
/// becomes ready.
typedef PJRT_Error* PJRT_Event_OnReady(PJRT_Event_OnReady_Args* args);

/// Arguments of PJRT_Event_Create.
struct PJRT_Event_Create_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< Out: a new event, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_Create_Args, event);
/// Creates an event that the caller completes with `PJRT_Event_Set`.
typedef PJRT_Error* PJRT_Event_Create(PJRT_Event_Create_Args* args);

/// Arguments of PJRT_Event_Set.
struct PJRT_Event_Set_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< The event.
  PJRT_Error_Code error_code;  ///< OK for success.
  /// A human-readable text; borrowed for the call, and meaningful only if the code is not OK.
  const char* error_message;
  size_t error_message_size;  ///< Length of `error_message`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_Set_Args, error_message_size);
/// Completes an event that `PJRT_Event_Create` made.
typedef PJRT_Error* PJRT_Event_Set(PJRT_Event_Set_Args* args);

#endif /* PJRT_EVENT_H_ */
