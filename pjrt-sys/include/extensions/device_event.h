/* Device events: the events of the RawBuffer extension. */
#ifndef PJRT_EXTENSION_DEVICE_EVENT_H_
#define PJRT_EXTENSION_DEVICE_EVENT_H_

#include "../pjrt_c_api.h"

/// Called once when a device event is complete.
typedef void (*PJRT_DeviceEvent_AndThen)(void* user_arg);

/// The state of a device event.
typedef enum {
  PJRT_DeviceEvent_State_Unavailable = 0,  ///< Pending.
  PJRT_DeviceEvent_State_Ready = 1,  ///< Complete, without an error.
  PJRT_DeviceEvent_State_Error = 2,  ///< Complete, with an error.
} PJRT_DeviceEvent_State;

/// A device event's functions; all take the event's object.
struct PJRT_DeviceEvent_FunctionTable {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  void (*inc_ref)(void* device_event);  ///< Adds a reference.
  void (*dec_ref)(void* device_event);  ///< Drops a reference.
  /// Registers a callback, which is called exactly once.
  void (*and_then)(void* device_event, PJRT_DeviceEvent_AndThen callback, void* user_arg);
  /// Returns whether there is an error, and the error. The text lives as long as the event.
  int (*get_error_if_present)(void* device_event, PJRT_Error_Code* code, const char** message,
      size_t* message_size);
  /// A table of functions that also accept the event's object, or null.
  const struct PJRT_DeviceEvent_FunctionTable* parent;
  PJRT_DeviceEvent_State (*get_state)(void* device_event);  ///< Returns the state.
  /// Returns the stream that completes the event, in the platform's representation, or 0.
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
  size_t size;  ///< Their number.
  size_t capacity;  ///< The capacity of the list.
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
  PJRT_DeviceEvent (*event)(PJRT_DeviceEventPromise* promise);  ///< Returns the event, borrowed.
  /// Completes it when another event completes. Acquires a reference to that event.
  void (*set)(PJRT_DeviceEventPromise* promise, PJRT_DeviceEvent event);
  /// Completes it with an error, of which it takes ownership.
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
