/* Device events: the events of the RawBuffer extension. */
#ifndef PJRT_EXTENSION_DEVICE_EVENT_H_
#define PJRT_EXTENSION_DEVICE_EVENT_H_

#include "../pjrt_c_api.h"

/// Called once when a device event is over.
typedef void (*PJRT_DeviceEvent_AndThen)(void* user_arg);

/// How a device event stands.
typedef enum {
  PJRT_DeviceEvent_State_Unavailable = 0,  ///< Pending.
  PJRT_DeviceEvent_State_Ready = 1,  ///< Over, without error.
  PJRT_DeviceEvent_State_Error = 2,  ///< Over, with an error.
} PJRT_DeviceEvent_State;

/// A device event's functions; all take the event's object.
struct PJRT_DeviceEvent_FunctionTable {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  void (*inc_ref)(void* device_event);  ///< Adds a reference.
  void (*dec_ref)(void* device_event);  ///< Drops a reference.
  /// Registers a callback, which is called exactly once.
  void (*and_then)(void* device_event, PJRT_DeviceEvent_AndThen callback, void* user_arg);
  /// Gives the error, if there is one, and whether there is. The text lives as long as the event.
  int (*get_error_if_present)(void* device_event, PJRT_Error_Code* code, const char** message,
      size_t* message_size);
  /// A table as whose event this one may be used, or null.
  const struct PJRT_DeviceEvent_FunctionTable* parent;
  PJRT_DeviceEvent_State (*get_state)(void* device_event);  ///< Gives the state.
  /// Gives the stream that completes the event, as the platform understands it, or 0.
  intptr_t (*get_definition_stream)(void* device_event, uint64_t* sequence_number);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceEvent_FunctionTable, get_definition_stream);

/// A device event: its functions and its object.
typedef struct PJRT_DeviceEvent {
  const struct PJRT_DeviceEvent_FunctionTable* vtable;  ///< The functions.
  void* device_event;  ///< The object.
} PJRT_DeviceEvent;

/// A list of device events.
typedef struct PJRT_DeviceEventVector {
  PJRT_DeviceEvent* data;  ///< The events.
  size_t size;  ///< How many.
  size_t capacity;  ///< Room for how many.
  void (*destroy)(PJRT_DeviceEvent* data);  ///< Frees `data`.
} PJRT_DeviceEventVector;

/// The side of a device event that completes it. Reference counted.
typedef struct PJRT_DeviceEventPromise PJRT_DeviceEventPromise;

/// A promise's functions.
struct PJRT_DeviceEventPromise_FunctionTable {
  size_t struct_size;
  size_t instance_size;  ///< Size of the promise object.
  PJRT_Extension_Base* extension_start;
  void (*inc_ref)(PJRT_DeviceEventPromise* promise);  ///< Adds a reference.
  void (*dec_ref)(PJRT_DeviceEventPromise* promise);  ///< Drops a reference.
  PJRT_DeviceEvent (*event)(PJRT_DeviceEventPromise* promise);  ///< Gives the event, borrowed.
  /// Completes it when another event completes, to which it takes a reference.
  void (*set)(PJRT_DeviceEventPromise* promise, PJRT_DeviceEvent event);
  /// Completes it with an error, which it takes over.
  void (*set_error)(PJRT_DeviceEventPromise* promise, PJRT_Error* error);
  void (*set_ready)(PJRT_DeviceEventPromise* promise);  ///< Completes it.
};

/// The side of a device event that completes it. Reference counted.
struct PJRT_DeviceEventPromise {
  const struct PJRT_DeviceEventPromise_FunctionTable* vtable;  ///< Its functions.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceEventPromise_FunctionTable, set_ready);
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceEventPromise, vtable);

#endif /* PJRT_EXTENSION_DEVICE_EVENT_H_ */
