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
/// Frees an event; null is allowed. Callbacks registered before still fire, and an event's own callback
/// may destroy it.
typedef PJRT_Error* PJRT_Event_Destroy(PJRT_Event_Destroy_Args* args);

/// Arguments of PJRT_Event_IsReady.
struct PJRT_Event_IsReady_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< The event.
  bool is_ready;  ///< Out: whether it is.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_IsReady_Args, is_ready);
/// Tells at once whether the work is over, with or without error.
typedef PJRT_Error* PJRT_Event_IsReady(PJRT_Event_IsReady_Args* args);

/// Arguments of PJRT_Event_Error.
struct PJRT_Event_Error_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< The event.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_Error_Args, event);
/// Gives a ready event's error, or null if there is none: a new error object at every call, each owned
/// by the caller.
typedef PJRT_Error* PJRT_Event_Error(PJRT_Event_Error_Args* args);

/// Arguments of PJRT_Event_Await.
struct PJRT_Event_Await_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< The event.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_Await_Args, event);
/// Blocks until the event is ready, then answers as `PJRT_Event_Error`.
typedef PJRT_Error* PJRT_Event_Await(PJRT_Event_Await_Args* args);

/// Called once when an event is ready. Owns the error, which is null for success. May run on any
/// thread, also within the call that registers it.
typedef void (*PJRT_Event_OnReadyCallback)(PJRT_Error* error, void* user_arg);

/// Arguments of PJRT_Event_OnReady.
struct PJRT_Event_OnReady_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< The event.
  PJRT_Event_OnReadyCallback callback;  ///< What to call.
  void* user_arg;  ///< Handed to the callback.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_OnReady_Args, user_arg);
/// Registers a callback, which is called exactly once: at once if the event is ready, else when it
/// becomes so.
typedef PJRT_Error* PJRT_Event_OnReady(PJRT_Event_OnReady_Args* args);

/// Arguments of PJRT_Event_Create.
struct PJRT_Event_Create_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< Out: a new event, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_Create_Args, event);
/// Makes an event that the caller completes with `PJRT_Event_Set`.
typedef PJRT_Error* PJRT_Event_Create(PJRT_Event_Create_Args* args);

/// Arguments of PJRT_Event_Set.
struct PJRT_Event_Set_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  ///< The event.
  PJRT_Error_Code error_code;  ///< OK for success.
  /// Text for people; borrowed for the call, meaningful only with a code that is not OK.
  const char* error_message;
  size_t error_message_size;  ///< Length of `error_message`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Event_Set_Args, error_message_size);
/// Completes an event that `PJRT_Event_Create` made.
typedef PJRT_Error* PJRT_Event_Set(PJRT_Event_Set_Args* args);

#endif /* PJRT_EVENT_H_ */
